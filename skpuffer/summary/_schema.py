"""Schema of a mixed table: the columns that are read, and their public encoding."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer._template._lazy_tables import (
    LazyColumn,
    codes,
    codes_of_book,
    number,
    number_of_book,
)
from skpuffer.exceptions import value_error
from skpuffer.schema import Encoding, Number
from skpuffer.schema._cells import (
    AT_ONCE,
    UNLISTED,
    column_arrays,
    is_missing,
    level_codes,
    level_places,
    numbers,
    refuse_ambiguous,
)
from skpuffer.utils._reading import (
    cells_of,
    floats,
    held_as_codes,
    is_frame,
    missing_cells,
    row_count,
    slices,
)

if TYPE_CHECKING:
    from skpuffer._template._lazy_tables import LazyTable
    from skpuffer.kernel.numbers import Floats
    from skpuffer.schema import Schema
    from skpuffer.schema._dates import DatePart
    from skpuffer.utils._types import Table


@dataclass(frozen=True)
class Column:
    """Schema of one column that is read.

    Parameters
    ----------
    position : int
        In the table as it reaches the estimator.
    levels : tuple or None
        Public levels of a categorical column; None for a numeric one. None among them
        is the level of missing values.
    boolean : bool
        Whether the table's own type of the column is boolean.
    mark : int or None
        In the encoded table, position of the column that is one where a value is
        missing, and zero elsewhere; None if none ever is.
    number : Number or None
        Its entry in a code book, if it is numeric there.
    """

    name: Hashable
    position: int
    levels: tuple | None = None
    boolean: bool = False
    mark: int | None = None
    number: Number | None = None


@dataclass(frozen=True)
class TableEncoder:
    """Public encoding of the columns that are read, as one array of floats.

    Numbers stay as they are, levels become codes 0, 1, …. The same for private data
    and for the prior of a scenario.

    Parameters
    ----------
    n_columns : int
        Width of the table as it reaches the estimator.
    before : callable, default=None
        Public preprocessing that comes first.
    strict : bool, default=False
        Whether a level that is not listed is refused: in a public prior it is a slip,
        in private data it counts as nothing.
    """

    columns: tuple[Column, ...]
    n_columns: int
    before: Callable | None = None
    strict: bool = False

    def is_identity(self, named: bool) -> bool:
        """Whether the columns that are read reach the query as they are."""
        plain = all(column.levels is None for column in self.columns)
        # positions are those of the whole table, so leaving columns out would move them
        whole = named or len(self.columns) == self.n_columns
        return self.before is None and plain and whole

    def __call__(self, X: Table) -> Floats:
        """Encode a table as an array of shape (n, len(columns)).

        A missing number raises a ValueError that quotes no value.
        """
        # Row by row and by public levels only: no row's code depends on another's, or
        # one record would move the contributions of others.
        if self.before is not None:
            X = self.before(X)
        places = self._places(X)
        read = list(zip(self.columns, places, strict=True))
        # no copy of a table that is read as it is
        if isinstance(X, np.ndarray) and X.dtype == float:
            plain = all(column.levels is None for column in self.columns)
            if plain and places == list(range(X.shape[1])):
                for column, place in read:
                    _numbers(column, X[:, place])
                return X
        table = _empty_table(row_count(X), len(read))
        for row, (column, place) in zip(table.T, read, strict=True):
            values = _values(X, place)
            if column.levels is None:
                row[:] = _numbers(column, values)
            else:
                _write_codes(column, values, self.strict, row)
        return table

    def lazy_columns(self, table: LazyTable) -> list[LazyColumn]:
        """Encode a lazy data frame, as far as that is said by expressions."""
        return [
            number(table, c.name)
            if c.levels is None
            else LazyColumn(c.name, codes(table, c.name, c.levels, _other(c.levels)))
            for c in self.columns
        ]

    def _places(self, X):
        """Names or positions of the columns in this very table."""
        # The prior of a scenario may hold fewer columns than the data, or more, or be
        # an array: by name where there are names, by position in a table of the same
        # width, and in order in one of just these columns.
        names = [column.name for column in self.columns]
        if is_frame(X):
            known = list(nw.from_native(X, eager_only=True).columns)
            if all(name in known for name in names):
                return names
            width = len(known)
        else:
            width = np.shape(X)[1]
        if width == self.n_columns:
            return [column.position for column in self.columns]
        if width == len(names):
            return list(range(width))
        raise value_error(
            "summary.table_width_differs",
            width=width,
            n_columns=self.n_columns,
            names=names,
        )


def column_kinds(X: Table) -> dict[Hashable, str]:
    """Kind of each column by its dtype: 'number', 'boolean' or 'other'."""
    # by dtype alone: a kind that depended on values would tell of the rows
    if not is_frame(X):
        kind = {"b": "boolean", "U": "other", "S": "other"}.get(X.dtype.kind, "number")
        return dict.fromkeys(range(X.shape[1]), kind)
    schema = nw.from_native(X, eager_only=True).schema
    return {name: _kind(dtype) for name, dtype in schema.items()}


def lazy_kinds(table: LazyTable) -> dict[str, str]:
    """Kind of each column of a lazy data frame; see :func:`column_kinds`."""
    return {name: _kind(dtype) for name, dtype in table.types.items()}


def _kind(dtype):
    if dtype == nw.Boolean:
        return "boolean"
    return "number" if dtype.is_numeric() or dtype == nw.Object else "other"


def check_levels(name: Hashable, levels: Any) -> tuple[Any, ...]:
    """Return public levels as a tuple of plain values, missing ones as None."""
    # a string would be taken for the list of its letters
    if isinstance(levels, str) or not np.iterable(levels):
        raise value_error("summary.levels_not_listed", name=name, levels=levels)
    plain = tuple(None if is_missing(v) else _plain(v) for v in levels)
    # NaN, NaT and NA are all None here: missing values have one level at most
    if not plain or plain.count(None) > 1:
        raise value_error("summary.levels_repeated", name=name, levels=list(plain))
    refuse_ambiguous([level for level in plain if level is not None], "categories")
    return plain


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _empty_table(n_records, n_columns):
    """Table of floats to be filled."""
    # columns stay whole: they are written, and read again, one by one
    return np.empty((n_columns, n_records)).T


def _values(X, place):
    """Values of one column, as an array."""
    if isinstance(X, pd.DataFrame) and place in X.columns:
        held = held_as_codes(X[place])
        if held is not None:
            return held
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        # a position, unless the frame's own names are integers
        if isinstance(place, int) and place not in frame.columns:
            place = frame.columns[place]
        column = frame.get_column(place)
        held = held_as_codes(column)
        return cells_of(column) if held is None else held
    return np.asarray(X)[:, place]


def _numbers(column, values):
    """Values of a numeric column, as floats."""
    # what it nearly always is, in one reading
    if values.dtype == float and np.isfinite(values).all():
        return values
    # what cannot be compared is not missing, and refused as no number
    if missing_cells(values).any():
        raise value_error("summary.column_missing_values", name=column.name)
    numbers = floats(values)
    if numbers is None:
        raise value_error("summary.column_not_numeric", name=column.name)
    if not np.all(np.isfinite(numbers)):
        raise value_error("summary.column_infinite", name=column.name)
    return numbers


def _write_codes(column, values, strict, out):
    """Write codes of a categorical column's values; -1 for what counts as nothing."""
    other = _other(column.levels)
    # some at a time: what is made on the way stays small
    for part in slices(len(out), AT_ONCE):
        places = level_places(column.levels, values[part])
        if strict and np.any(places == UNLISTED):
            raise value_error("summary.prior_values_not_listed", name=column.name)
        out[part] = np.where(places < 0, other, places)


def _other(levels):
    """Code of what is missing or not listed: that of the level None, if any."""
    return levels.index(None) if None in levels else -1


@dataclass(frozen=True)
class SchemaEncoder:
    """Public encoding of the columns of a code book, as one array of floats.

    As :class:`TableEncoder`, for a table that its schema reads. Behind the columns
    there is one for each number that may be missing: one where it is.

    Parameters
    ----------
    schema : Schema
        Schema of the columns that are read; it has no target.
    parts : tuple of DatePart, default=()
        Columns of levels that are made of dates. They come behind all others, and
        before the marks of what is missing.
    """

    schema: Schema
    parts: tuple[DatePart, ...] = ()

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Encoding.assumption
    leaks = ()

    @property
    def n_columns(self) -> int:
        """Number of columns that are read."""
        return len(self.schema)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns as a summary knows them."""
        width = len(self.schema) + len(self.parts)
        marks = {name: width + i for i, name in enumerate(self._with_gaps)}
        held = [(name, self.schema[name]) for name in self.schema.names]
        found = [
            Column(name, position, mark=marks.get(name), number=entry)
            if isinstance(entry, Number)
            else Column(name, position, _levels(entry))
            for position, (name, entry) in enumerate(held)
        ]
        for position, part in enumerate(self.parts, len(found)):
            found.append(Column(part.label, position, part.levels))
        return tuple(found)

    def cell_ranges(self, name: Hashable) -> Floats:
        """How far each column of the array may move where one raw column does."""
        found = np.zeros(len(self.columns) + len(self._with_gaps))
        for column in self.columns[: len(self.schema)]:
            if column.name == name:
                entry = column.number
                plain = entry is not None and entry.reads == "number"
                found[column.position] = entry.high - entry.low if plain else math.inf
                if column.mark is not None:
                    found[column.mark] = 1.0
        for place, part in enumerate(self.parts, len(self.schema)):
            if part.name == name:
                found[place] = math.inf
        return found

    def known_numbers(self, table: Floats, name: Hashable) -> Floats:
        """Return the cells of a column of numbers or dates that are there."""
        for column in self.columns[: len(self.schema)]:
            if column.name == name and column.number is not None:
                known = (
                    slice(None) if column.mark is None else table[:, column.mark] == 0
                )
                return table[known, column.position]
        return np.empty(0)

    @property
    def _with_gaps(self) -> list[Hashable]:
        """Numbers that may be missing."""
        held = [(name, self.schema[name]) for name in self.schema.names]
        return [name for name, c in held if isinstance(c, Number) and c.has_gaps]

    def __call__(self, X: Table) -> Floats:
        """Encode a table, of shape (n, n_columns, parts and one for each with gaps)."""
        arrays = column_arrays(X, self.schema.names)
        marked = sum(column.mark is not None for column in self.columns)
        table = _empty_table(row_count(X), len(arrays) + len(self.parts) + marked)
        for column, values in zip(self.columns, arrays, strict=False):
            entry = self.schema[column.name]
            if not isinstance(entry, Number):
                table[:, column.position] = level_codes(entry, values, counted=True)
                continue
            found, missing = numbers(entry, values, exact=True)
            table[:, column.position] = found
            if column.mark is not None:
                table[:, column.mark] = missing
            for place, part in enumerate(self.parts, len(arrays)):
                if part.name == column.name:
                    table[:, place] = part.codes(found, missing)
        return table

    def lazy_columns(self, table: LazyTable) -> list[LazyColumn]:
        """Encode a lazy data frame; see :meth:`TableEncoder.lazy_columns`."""
        found, marks, others = [], [], {}
        for name in self.schema.names:
            column = self.schema[name]
            if not isinstance(column, Number):
                values = codes_of_book(table, name, column, counted=True)
            else:
                values, missing = number_of_book(table, name, column, exact=True)
                told = marks if column.has_gaps else others.setdefault(name, [])
                told.append(LazyColumn(name, missing))
            found.append(LazyColumn(name, values))
        # a gap in a date that is said to have none is in no group: its mark comes last
        dates = dict.fromkeys(part.name for part in self.parts if part.name in others)
        width = len(found) + len(self.parts) + len(marks)
        places = {c.name: c.mark for c in self.columns if c.mark is not None}
        places |= {name: width + i for i, name in enumerate(dates)}
        parts = [
            LazyColumn(
                part.name,
                None,
                made=functools.partial(self._made, part, mark=places[part.name]),
            )
            for part in self.parts
        ]
        last = [mark for name in dates for mark in others[name]]
        return [*found, *parts, *marks, *last]

    def _made(self, part: DatePart, columns: Sequence[Any], mark: int) -> Any:
        """Levels of a part of a date, of the columns that are read of a lazy table."""
        own = next(column for column in self.columns if column.name == part.name)
        return part.codes(columns[own.position], columns[mark] > 0)


def _levels(column):
    # the level of missing values is the last code
    return column.levels + (None,) * column.has_gaps
