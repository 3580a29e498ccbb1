"""Serialisation of frozen dataclasses to plain data that JSON can hold, and back."""

import math
from dataclasses import fields
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from skpuffer.exceptions import stated, value_error
from skpuffer.kernel import loaders

__all__ = ["Plain", "from_plain", "kinds", "to_plain"]


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
            _load_kinds()
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

    Returns
    -------
    object
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


@singledispatch
def from_plain(value: object) -> object:
    """Return the data that :func:`to_plain` wrote, with tuples for lists.

    Parameters
    ----------
    value : object

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If there is something of a kind that is not known.
    """
    return value


@from_plain.register
def _(value: list) -> object:  # type: ignore[type-arg]
    return tuple(map(from_plain, value))


@from_plain.register
def _(value: str) -> object:
    # texts that may be just these are kept away from here by whoever reads them
    return float(value) if value in ("inf", "-inf", "nan") else value


@from_plain.register
def _(value: dict) -> object:  # type: ignore[type-arg]
    if value.keys() == {"code", "parameters", "text"}:
        return stated(value)
    # noise goes by its family, all else by its kind
    for key in ("kind", "family"):
        if type(value.get(key)) is str:
            return _of_kind(key, value)
    return {name: from_plain(part) for name, part in value.items()}


def _load_kinds() -> None:
    for load in loaders:
        load()


def _of_kind(key: str, plain: dict[str, Any]) -> object:
    if (key, plain[key]) not in _KINDS:
        _load_kinds()
    kind = _KINDS.get((key, plain[key]))
    # only classes that declared themselves are made, never one named by the data
    if kind is None:
        names = ", ".join(sorted(map(repr, kinds(key))))
        raise value_error(
            "table.data_kind_unknown", key=key, plain=plain[key], names=names
        )
    values = {name: from_plain(part) for name, part in plain.items() if name != key}
    try:
        # through the constructor, so that fields are checked as they were the first
        # time
        return kind.read_back(values)  # type: ignore[attr-defined]
    except (TypeError, KeyError) as error:
        raise value_error(
            "table.data_fields_missing", key=key, plain=plain[key], error=error
        ) from None
