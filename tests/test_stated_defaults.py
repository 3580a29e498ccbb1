"""Whoever leaves a parameter out gets what the documentation says.

Promises are made of defaults as well: a clip norm, a delta, how many releases there
are. Whatever a signature has instead, nobody who read about it asked for.
"""

import contextlib
import importlib
import inspect
import math
import pkgutil
import re

import numpy
import pytest

import skpuffer

ROOMS = sorted(
    room.name
    for room in pkgutil.iter_modules(skpuffer.__path__)
    if not room.name.startswith("__")
)

#: Head of a parameter, or of several: names, and what they are unless given.
_HEAD = re.compile(
    r"^ *(?P<names>\w+(?:, \w+)*) : [^\n]*\bdefault=(?P<stated>[^\n]+)$", re.MULTILINE
)
#: Stated as nothing that Python reads.
_IN_WORDS = {"(2, 3, ..., 128)": tuple(range(2, 129))}


def modules(room):
    """Modules of a room, but those whose libraries are not here."""
    root = importlib.import_module(f"skpuffer.{room}")
    yield root
    for inner in pkgutil.walk_packages(
        getattr(root, "__path__", ()), f"{root.__name__}."
    ):
        if not inner.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                yield importlib.import_module(inner.name)


def documented(module):
    """Classes, functions and methods that a module defines, by name."""
    for name, one in vars(module).items():
        if getattr(one, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(one):
            yield name, one
            for method, held in vars(one).items():
                # of a class method or a static one as well
                held = getattr(held, "__func__", held)
                if inspect.isfunction(held):
                    yield f"{name}.{method}", held
        elif inspect.isfunction(one):
            yield name, one


def stated_defaults(one):
    """Parameters with the default that the documentation states, as text."""
    text = one.__doc__ or ""
    parameters = text.partition("Parameters\n")[2]
    parameters = re.split(r"\n *[A-Z][A-Za-z ]+\n *---", parameters)[0]
    for head in _HEAD.finditer(parameters.replace("\\\n", "\n")):
        for name in head["names"].split(", "):
            yield name, head["stated"]


def is_default(stated, default, names):
    """Whether a text states a default, given what its module calls by names."""
    # what has no value to compare is written as it is made
    if stated in (str(default), repr(default)):
        return True
    if stated in _IN_WORDS:
        value = _IN_WORDS[stated]
    else:
        try:
            value = eval(stated, {"inf": math.inf, "numpy": numpy, **names})
        except (NameError, SyntaxError):
            return False
    # what goes by its name, as sampling schemes do
    known = default, getattr(default, "name", default)
    return any(
        v == value and isinstance(v, bool) == isinstance(value, bool) for v in known
    )


@pytest.mark.parametrize("room", ROOMS)
def test_a_parameter_is_by_default_what_is_stated(room):
    wrong = []
    for module in modules(room):
        for name, one in documented(module):
            stated = dict(stated_defaults(one))
            own = inspect.signature(one).parameters if stated else {}
            wrong += [
                f"{module.__name__}.{name}: {parameter} is not {text}"
                for parameter, text in stated.items()
                if parameter not in own
                or not is_default(text, own[parameter].default, vars(module))
            ]
    assert not wrong


def test_defaults_of_the_library_are_read():
    """What is stated in a form that nobody reads would be compared with nothing."""
    stated = dict(stated_defaults(skpuffer.accountants.GroupPrivacy))
    assert {"epsilon": "1.0", "delta": "None"}.items() <= stated.items()


def test_another_default_is_noticed():
    def f(a, b=1.0, c=True, d=None, e="x"):
        """Do nothing.

        Parameters
        ----------
        a, b : float, default=1
        c : {True, False}, \
default=True
        d : callable of (float, float), default=None
            Such as ``default=3``.
        e : str, default='y'

        Attributes
        ----------
        g : float, default=2
        """

    stated = dict(stated_defaults(f))
    assert stated == {"a": "1", "b": "1", "c": "True", "d": "None", "e": "'y'"}
    parameters = inspect.signature(f).parameters
    right = [n for n, s in stated.items() if is_default(s, parameters[n].default, {})]
    assert right == ["b", "c", "d"]
    assert not is_default("True", 1, {})
    assert not is_default("here", 1, {}) and is_default("here", 1, {"here": 1.0})
