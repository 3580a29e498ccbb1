"""What a code book does to a private table: for the curator's eyes, not for release."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement, type_error, value_error
from skpuffer.utils._reading import column_names, is_lazy, row_count

from ._cells import (
    MISSING,
    UNLISTED,
    cell_key,
    column_arrays,
    is_digits,
    level_places,
    missing_keys,
    plain_numbers,
    round_alike,
)
from ._columns import Category, Column, Number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skpuffer.utils._types import Array, Table

    from ._schema import Schema


@dataclass(frozen=True)
class ColumnCheck:
    """How the cells of one column are read.

    Parameters
    ----------
    name : str or int
    kind : str
        Kind in the code book: 'number' or 'category'.
    type : str or None
        Type in the table, in the words of its library; None if the column is not there.
    is_held : bool
        Whether the code book's kind can hold values of that type.
    counts : dict of {str: int}
        Number of cells by what happens to them; see :class:`TableCheck`.
    example : int or None
        Position of the first cell that is clipped, unlisted or unreadable.
    """

    name: Hashable
    kind: str
    type: str | None
    is_held: bool
    counts: Mapping[str, int]
    example: int | None


#: What may happen to a cell that is not read as it is.
FATES = ("missing", "clipped", "unlisted", "unreadable", "filled")


@dataclass(frozen=True)
class TableCheck:
    """Report how a table is read by its schema, for the curator's eyes.

    The counts are exact, and so as private as the table. They are not for release.
    Cells are 'missing', 'clipped' to the nearer bound, 'unlisted' levels, or
    'unreadable'; the 'filled' ones are read as the `fill` of their column.

    Parameters
    ----------
    columns : tuple of ColumnCheck
        Columns of the code book, in its order.
    n_records : int
    unread : tuple
        Names of the table's columns that the code book does not have.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.schema import Schema
    >>> schema = Schema({"age": (17, 90), "sex": ["F", "M"]})
    >>> table = pd.DataFrame({"age": [30, 95, None], "sex": ["F", "m", "M"]})
    >>> found = schema.check(table)
    >>> found.to_frame()[["column", "missing", "clipped", "unlisted"]]
      column  missing  clipped  unlisted
    0    age        1        1         0
    1    sex        0        0         1
    """

    columns: tuple[ColumnCheck, ...]
    n_records: int
    unread: tuple[Hashable, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every cell but missing ones is read as it is."""
        return all(
            column.is_held
            and not any(column.counts[fate] for fate in FATES if fate != "missing")
            for column in self.columns
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row a column of the code book.

        Returns
        -------
        DataFrame
            With the columns 'column', 'kind', 'type', 'held', the numbers of cells and
            'example', the position of a cell to look at.
        """
        rows = [
            {
                "column": column.name,
                "kind": column.kind,
                "type": column.type,
                "held": column.is_held,
                **column.counts,
                "example": column.example,
            }
            for column in self.columns
        ]
        return pd.DataFrame(rows).astype({"example": "Int64"})

    def __str__(self) -> str:
        lines = [
            str(Statement("schema.check_title", n_records=self.n_records)),
            self.to_frame().to_string(index=False, na_rep=""),
        ]
        if self.unread:
            unread = Statement("schema.check_unread", names=list(self.unread))
            lines.append(str(unread))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, *_ = str(self).splitlines()
        table = self.to_frame().to_html(index=False, na_rep="")
        return f"<p>{escape(title)}</p>{table}"


def check_table(schema: Schema, X: Table, y: Any) -> TableCheck:
    """Count how the cells of a table are read; see :meth:`Schema.check`."""
    types = column_types(X)
    held = list(types) if types else list(schema.names)
    named = {name: schema[name] for name in schema.names}
    if schema.target is not None and (y is not None or schema.target in held):
        named[schema.target] = schema[schema.target]
    found = []
    for name, column in named.items():
        if name == schema.target and y is not None:
            kind, values = getattr(y, "dtype", "object"), np.asarray(y, dtype=object)
        elif name in held:
            kind = types.get(name, getattr(X, "dtype", "object"))
            values = _column(schema, X, name)
        else:
            kind, values = None, np.empty(0, dtype=object)
        counts, example = _fates(column, values)
        found.append(
            ColumnCheck(
                name=name,
                kind=type(column).__name__.lower(),
                type=None if kind is None else str(kind),
                is_held=kind is not None
                and (name not in types or holds(column, types[name])),
                counts=counts,
                example=example,
            )
        )
    unread = tuple(name for name in types if name not in named)
    n_records = _row_count(X)
    return TableCheck(tuple(found), n_records, unread)


def _column(schema: Schema, X: Any, name: Hashable) -> Array:
    """One column of a table, as an array."""
    if is_lazy(X):
        # one at a time: the others stay where they are
        # and by its place, for an engine may read a name as a pattern
        frame = nw.from_native(X)
        names = list(frame.collect_schema())
        places = {held: f"column_{place}" for place, held in enumerate(names)}
        column = frame.rename(places).select(places[name]).rename({places[name]: name})
        X = column.collect().to_native()
    if column_names(X) is not None:
        return column_arrays(X, [name])[0]
    return column_arrays(X, schema.names)[schema.names.index(name)]


def _row_count(X: Any) -> int:
    if not is_lazy(X):
        return row_count(X)
    return int(nw.from_native(X).select(nw.len()).collect().item())


def _fates(column: Column, values: Array) -> tuple[dict[str, int], int | None]:
    """Number of cells by what happens to them, and the position of an odd one."""
    if isinstance(column, Category):
        places = level_places(column.levels, values)
        missing = places == MISSING
        missing |= level_places(column.missing_codes, values) >= 0
        found = {"unlisted": (places == UNLISTED) & ~missing}
        lost = missing | found["unlisted"]
    else:
        numbers = plain_numbers(column, values)
        codes = level_places(column.missing_codes, values) >= 0
        missing = missing_keys(values) | codes
        lost = np.isnan(numbers) | missing
        outside = (numbers < column.low) | (numbers > column.high)
        found = {"clipped": outside & ~lost, "unreadable": lost & ~missing}
    odd = np.flatnonzero(np.any(list(found.values()), axis=0))
    fill = lost if not column.has_gaps else np.zeros_like(lost)
    found |= {"missing": missing, "filled": fill}
    counts = {fate: int(np.sum(found[fate])) if fate in found else 0 for fate in FATES}
    return counts, int(odd[0]) if len(odd) else None


# -- types of columns, which are public ------------------------------------------------


def column_types(X: Any) -> dict[Hashable, Any]:
    """Return the type of each column of a data frame, lazy or not; of others none."""
    if not is_lazy(X) and column_names(X) is None:
        return {}
    return dict(nw.from_native(X).collect_schema())


def holds(column: Column, kind: Any) -> bool:
    """Return whether a kind of the schema can hold a type of a table.

    Texts may hold anything, as one malformed cell makes texts of numbers. A number
    holds numeric types, and a category types that one of its levels can be of.
    """
    if kind.is_nested():
        return False
    numeric: bool = kind.is_numeric() or kind == nw.Boolean
    if not (numeric or kind.is_temporal()):
        return True
    if isinstance(column, Category):
        keys = map(cell_key, column.levels)
        if kind.is_float() and round_alike(
            column.levels, "f4" if kind == nw.Float32 else "f8"
        ):
            return False
        if numeric:
            return any(isinstance(key, float) or is_digits(key) for key in keys)
        return any(isinstance(key, str) and key[:1].isdigit() for key in keys)
    if column.reads == "number":
        return numeric
    of_times = kind in (nw.Time, nw.Duration)
    return not numeric and of_times is (column.reads == "time")


def refuse_types(
    schema: Schema,
    types: Mapping[Hashable, Any],
    held: Mapping[Hashable, Array] | None = None,
) -> None:
    """Refuse a table whose columns are of types that the code book cannot hold."""
    for name in schema.names:
        if name in types and not holds(schema[name], types[name]):
            if held is not None and missing_keys(held[name]).all():
                continue
            raise value_error(
                "schema.type_not_held",
                name=name,
                type=str(types[name]),
                kind=type(schema[name]).__name__,
            )


#: Cells of a column that are looked at first.
_HEAD = 1000


def refuse_unread(schema: Schema, frame: pd.DataFrame) -> None:
    """Refuse a table with a column of a number in which no cell can be read as one."""
    for name in schema.names:
        column, values = schema[name], frame[name].to_numpy()
        if not isinstance(column, Number) or not len(values):
            continue
        # that of most tables is seen at once
        read = any(
            not np.isnan(plain_numbers(column, part)).all()
            for part in (values[:_HEAD], values)
        )
        refuse_no_cell(name, column, read=read, cell=not missing_keys(values).all())


def refuse_no_cell(name: Hashable, column: Number, *, read: bool, cell: bool) -> None:
    """Refuse a column of a number in which no cell is read as one."""
    if not read and (cell or not column.has_gaps):
        kind = type(column).__name__
        raise value_error("schema.no_cell_held", name=name, kind=kind)


# -- a code book to fill in ------------------------------------------------------------


def draft(X: Table, target: Hashable | None) -> str:
    """Write a code book from names and types of columns; see :meth:`Schema.draft`."""
    types = column_types(X)
    if not types:
        raise type_error("schema.draft_not_frame", table_type=type(X).__name__)
    if target is not None and target not in types:
        raise value_error(
            "schema.target_not_a_column", columns=list(types), target=target
        )
    lines = [
        f"        {name!r}: {_entry(kind)},  # {kind}" for name, kind in types.items()
    ]
    last = [] if target is None else [f"    target={target!r},"]
    return "\n".join(["Schema(", "    {", *lines, "    },", *last, ")"])


def _entry(kind: Any) -> str:
    """What is to be known of a column, by its type."""
    if kind == nw.Boolean:
        return "Category([False, True])"
    if kind == nw.Time:
        return "Time(..., ...)"
    if kind.is_temporal() and kind != nw.Duration:
        return "Date(..., ...)"
    if kind.is_integer():
        return "Number(..., ..., integer=True)"
    if kind.is_numeric():
        return "Number(..., ...)"
    return "Category([...])"
