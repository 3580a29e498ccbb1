"""Serialisation of frozen dataclasses to plain data that JSON can hold, and back."""

import math
from dataclasses import fields
from functools import singledispatch
from typing import ClassVar

import numpy as np

from skpuffer.kernel import loaders

_LIBRARY = __name__.partition(".")[0]

#: Classes by the key and the name that their plain data goes by.
_KINDS: dict[tuple[str, str], type] = {}


class Plain:
    """Base of dataclasses that are written as plain data, and read back by their kind.

    A dataclass inherits it with a name, ``class Curve(Plain, kind="curve")``. A
    subclass without a name of its own, or with one that is taken, is another kind and
    is not read back: what it adds to the fields is not known.
    """

    #: Under which its data holds the kind.
    kind_key: ClassVar[str] = "kind"
    #: What its data goes by.
    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # the first class of a name keeps it: a later one could make data mean something
        # else. Those of this library are the first.
        foreign = cls.__module__.partition(".")[0] != _LIBRARY
        if foreign:
            load_kinds()
        if kind is not None:
            held = _KINDS.setdefault((cls.kind_key, kind), cls)
            # unless it is the same class, defined anew in a notebook: the corrected
            # formulas count
            if foreign and _place(held) == _place(cls):
                _KINDS[cls.kind_key, kind] = held = cls
        cls.kind = kind if kind is not None and held is cls else cls.__qualname__

    def to_dict(self) -> dict[str, object]:
        """Return kind and fields as plain data that strict JSON can hold."""
        # all fields, so that what is read back is the same in every one
        return {self.kind_key: self.kind} | {
            f.name: to_plain(getattr(self, f.name))
            for f in fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def read_back(cls, values: dict[str, object]) -> object:
        """Return an instance, given the fields it was written with, each read back."""
        return cls(**values)


def _place(kind: type) -> tuple[str, str]:
    """Return the module and the name under which a class was defined."""
    return kind.__module__, kind.__qualname__


def kinds(key: str) -> dict[str, type]:
    """Return the classes that declared themselves, by the name their data goes by.

    Parameters
    ----------
    key : str
        Under which their data holds the name, such as ``'family'`` of noise.

    Returns
    -------
    dict of {str: type}
    """
    return {name: kind for (at, name), kind in _KINDS.items() if at == key}


@singledispatch
def to_plain(value: object) -> object:
    """Return data as JSON can hold it: infinity is the text 'inf'.

    Parameters
    ----------
    value : object
        Numbers, text, None, arrays, tuples, lists, dicts, or an object that has a
        method `to_dict`.
    """
    written = getattr(value, "to_dict", None)
    return value if written is None else written()


@to_plain.register
def _(value: np.ndarray | np.generic) -> object:
    return to_plain(value.tolist())


@to_plain.register
def _(value: dict) -> object:  # type: ignore[type-arg] # what it dispatches by
    return {key: to_plain(part) for key, part in value.items()}


@to_plain.register
def _(value: list | tuple) -> object:  # type: ignore[type-arg]
    return [to_plain(part) for part in value]


@to_plain.register
def _(value: float) -> object:
    # strict JSON has no infinity; 'inf' is read back as one
    return float(value) if math.isfinite(value) else str(float(value))


def load_kinds() -> None:
    """Load the modules that declare kinds."""
    for load in loaders:
        load()
