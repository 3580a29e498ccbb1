"""Canaries: unmistakable private values, and a search for places that leak them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import struct
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skpuffer.utils._reading import is_frame, to_pandas

#: A word that nobody says by chance.
TEXT = "canary-7310457"

#: A number in [-1, 1] that nobody says by chance, and how it begins when it is printed.
NUMBER = 0.731045773104577
_PRINTED = "0.73104"

# In the byte orders and widths in which a number or text may lie in a pickle.
_SIGNS = (
    TEXT.encode(),
    TEXT.encode("utf-32-le"),  # as NumPy keeps text
    struct.pack("<d", NUMBER),
    struct.pack(">d", NUMBER),
    struct.pack("<f", NUMBER),
)


def sings(value: str | bytes) -> bool:
    """Whether a text, or the bytes of a pickle, hold a canary."""
    # printed numbers are rounded, so their first digits are looked for
    if isinstance(value, str):
        return TEXT in value or _PRINTED in value
    return any(sign in value for sign in _SIGNS)


_LEAVES = (bool, int, float, complex, str, bytes, np.generic)


class Said:
    """Output of a block of code: its error, warnings, prints and log.

    Attributes
    ----------
    error : Exception or None
        The error that ended it.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._printed, self._logged = io.StringIO(), io.StringIO()
        self._warned: list[warnings.WarningMessage] = []

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """Iterate over where something was said, and what."""
        for error in _chain(self.error):
            yield "an error", "".join(traceback.format_exception_only(error))
            yield "the arguments of an error", repr(error.args)
        for warning in self._warned:
            said = warning.message
            yield "a warning", f"{said} {getattr(said, 'args', ())!r}"
        yield "what was printed", self._printed.getvalue()
        yield "what was logged", self._logged.getvalue()

    @property
    def songs(self) -> list[str]:
        """Where a canary was quoted, in words; empty if it was not."""
        return sorted({place for place, text in self.texts if sings(text)})


def _chain(raised: BaseException | None) -> list[BaseException]:
    """Error with its causes and contexts, which a traceback may show or hide."""
    # `raise ... from None` hides a context from a traceback, not from a debugger
    waiting: list[BaseException | None] = [raised]
    met: list[BaseException] = []
    while waiting:
        error = waiting.pop()
        if error is not None and not any(error is other for other in met):
            met.append(error)
            waiting += [error.__cause__, error.__context__]
    return met


@contextlib.contextmanager
def listen() -> Iterator[Said]:
    """Context that records errors, warnings, prints and the log of a block."""
    said, root = Said(), logging.getLogger()
    handler, level = logging.StreamHandler(said._logged), root.level
    with (
        warnings.catch_warnings(record=True) as said._warned,
        contextlib.redirect_stdout(said._printed),
        contextlib.redirect_stderr(said._printed),
    ):
        # every warning and every level: what is filtered here may be heard elsewhere
        warnings.simplefilter("always")
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield said
        except Exception as error:
            said.error = error
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


def reachable(value: object) -> dict[str, Any]:
    """Leaves of the object graph below an object, whatever its attributes' names."""
    leaves: dict[str, Any] = {}
    _collect(value, "", leaves, {})
    return leaves


def _collect(
    value: Any, path: str, leaves: dict[str, Any], met: dict[int, Any]
) -> None:
    """Add the leaves below `value` to `leaves`; `met` holds what was seen."""
    # classes and modules are shared by all objects: a fit leaves nothing on them
    if isinstance(value, type | types.ModuleType):
        return
    if value is None or isinstance(value, _LEAVES):
        leaves[path] = value
        return
    if id(value) in met:
        return
    met[id(value)] = value  # kept, so that no other object gets its id
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        leaves[path] = value
        return
    for name, part in _parts(value):
        _collect(part, f"{path}{name}", leaves, met)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of the parts of an object."""
    if is_frame(value) or isinstance(value, pd.Series | pd.Index):
        table = to_pandas(value) if is_frame(value) else value
        yield ".values", table.to_numpy()
        return
    if isinstance(value, dict):
        # keys may tell as well, so they are a part of the way
        yield from ((f"[{key!r}]", part) for key, part in value.items())
        return
    if isinstance(value, np.ndarray):
        value = value.tolist()
    # in an order that two runs share, so that paths can be compared
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
        return
    if isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args))
        yield ".keywords", value.keywords
    if isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    # a closure or a default argument holds data as well as an attribute does
    if isinstance(value, types.FunctionType):
        yield from ((f".{n}", v) for n, v in inspect.getclosurevars(value)[0].items())
        yield ".__defaults__", (value.__defaults__, value.__kwdefaults__)
        return
    yield from ((f".{name}", part) for name, part in _attributes(value).items())


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes of an object, those in slots included."""
    slots = [
        name
        for kind in type(value).__mro__
        for name in np.atleast_1d(getattr(kind, "__slots__", ())).tolist()
    ]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**held, **getattr(value, "__dict__", {})}
