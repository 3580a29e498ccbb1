"""Every public class shows by an example how one comes by it and what it says.

The examples themselves run with the doctests.
"""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import skpuffer

ROOT = Path(skpuffer.__file__).parent


def name_of(path):
    """Name of the module that a file is."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_public(module):
    # what the kernel holds has its examples in the rooms that offer it
    kernel = module.startswith("skpuffer.kernel")
    return not kernel and not any(part.startswith("_") for part in module.split("."))


#: Rooms, those within them, and the modules that are read by their own names.
PLACES = sorted(filter(is_public, map(name_of, ROOT.rglob("*.py"))))


def public_classes(place):
    """Classes by name that a place lists, lazily loaded ones as well."""
    module = importlib.import_module(place)
    named = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return {name: each for name, each in named.items() if inspect.isclass(each)}


def has_example(kind):
    """Whether a class's own docstring has an example that runs and prints something."""
    # not that of a base class, which inspect.getdoc would fall back to
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    _, found, section = text.partition("\nExamples\n--------\n")
    run = [
        example
        for example in doctest.DocTestParser().get_examples(section)
        if doctest.SKIP not in example.options
    ]
    return bool(found) and any(example.want for example in run)


@pytest.mark.parametrize("place", PLACES)
def test_every_public_class_has_an_example(place):
    without = [n for n, kind in public_classes(place).items() if not has_example(kind)]
    assert not without


def test_rooms_and_their_classes_are_found():
    assert {"skpuffer", "skpuffer.exceptions", "skpuffer.noise.strategies"} <= {*PLACES}
    assert not any("._" in place for place in PLACES)
    assert {"Calibration", "Best"} <= public_classes("skpuffer.accountants").keys()


def test_a_missing_example_is_noticed():
    class Base:
        """Say what it is.

        Examples
        --------
        >>> 1 + 1
        2
        """

    class Inherits(Base):
        pass

    class Promises(Base):
        """Say what it is.

        Examples
        --------
        None so far.
        """

    class Skips(Base):
        """Say what it is.

        Examples
        --------
        >>> 1 + 1  # doctest: +SKIP
        2
        """

    class Mute(Base):
        """Say what it is.

        Examples
        --------
        >>> two = 1 + 1
        """

    class Elsewhere(Base):
        """Say what it is: ``>>> 1 + 1``.

        Notes
        -----
        >>> 1 + 1
        2
        """

    assert has_example(Base)
    for kind in (Inherits, Promises, Skips, Mute, Elsewhere, int):
        assert not has_example(kind)
