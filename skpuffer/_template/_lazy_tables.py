"""Tables of lazy data frames: clipped, counted and summed up by the engine they lie in.

A contribution that can be summed there says what each record adds in numbers in [-1,
1] and in truth values (`parts`), written so that an array and an expression are both
understood, and how sums of these become the sum of contributions (`from_parts`).
Numbers are rounded to whole steps before they are added up: sums of integers are exact,
whatever the order, and no rounding of one record depends on another.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.releases import STEPS, TableElsewhere
from skpuffer.schema import Category, Encoding, Number
from skpuffer.schema._cells import NUMBER, TRUTH, cell_numbers, level_table
from skpuffer.utils._reading import COLLECT, REPEATED_NAMES, object_cells
from skpuffer.utils._silence import unquoted

#: Sums of one pass at most: each is an expression of its own, evaluated in each record.
MOST_SUMS = 1024

#: Engines to which names that differ in upper and lower case are two; to SQL they are
#: one.
_CASE_COUNTS = ("polars", "dask")

#: Engines whose moments can be subtracted.
_HAVE_DURATIONS = ("polars", "duckdb", "dask")

#: Entry of a row beyond which its length is no longer told from a longer one.
_LONGEST = 2.0**480

#: Day of the calendar, leap years and all.
_DAY = (
    "[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])"
    "|(?:[2468][048]|[13579][26])00)-02-29"
)

#: Keys of dates and times, which may be spelt in several ways.
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( |$)|[0-9]{2}:[0-9]{2}:[0-9]{2}")

#: What is read as an infinite number.
_LARGEST = sys.float_info.max

#: Beyond, sums of whole steps might not fit 64 bits.
_MOST_RECORDS = 2**32 - 1


def clipped(values: Any, low: float, high: float) -> Any:
    """Clip an array; or an expression, to which what is no number is a bound as well.

    Returns
    -------
    ndarray or narwhals.Expr
        Of an expression, within the bounds whatever a cell holds: engines order NaN
        differently, and all that none finds to be between is at one of the ends.
    """
    if not isinstance(values, nw.Expr):
        return np.clip(values, low, high)
    upper = nw.when(values < high).then(values).otherwise(nw.lit(float(high)))
    return nw.when(values > low).then(upper).otherwise(nw.lit(float(low)))


def in_unit_ball(columns: Sequence[Any], radius: float) -> list[Any]:
    """Return rows divided by a radius, those that are longer scaled down to it.

    Returns
    -------
    list of narwhals.Expr
        Of a row of length one at most, whatever its cells hold.
    """
    # no square of these overflows
    rows = [clipped(c / float(radius), -_LONGEST, _LONGEST) for c in columns]
    squared = functools.reduce(operator.add, (row * row for row in rows))
    share = nw.when(squared > 1).then(squared**-0.5).otherwise(nw.lit(1.0))
    return [row * share for row in rows]


@dataclass(frozen=True, eq=False)
class LazyColumn:
    """Column of a lazy table as an estimator reads it.

    Parameters
    ----------
    name : str
        Of the raw column.
    values : narwhals.Expr
        Numbers, or codes of levels.
    is_readable : narwhals.Expr or None
        Where the estimator takes the cell; None takes any.
    """

    name: Hashable
    values: Any
    is_readable: Any = None


class LazyTable:
    """Lazy data frame, of which names and types of columns are known and no cell.

    Parameters
    ----------
    X : lazy data frame
        Of Polars, DuckDB, Dask, PySpark or another engine that narwhals knows.

    Attributes
    ----------
    names : tuple of str
    types : dict of {str: narwhals type}
    n_records : int
        As the engine counts it.
    engine : str
        Its name.
    """

    def __init__(self, X: Any) -> None:
        self._frame: Any = nw.from_native(X)
        self.engine = self._frame.implementation.name.lower()
        self.types = dict(self._frame.collect_schema())
        # where an engine has two of one name, a dict of types keeps one alone, and the
        # engine answers for the first; Polars never has
        listed = [
            *map(str, self.types if self.engine == "polars" else self._frame.columns)
        ]
        if self.engine not in _CASE_COUNTS:
            listed = [name.lower() for name in listed]
        if len(set(listed)) < len(listed):
            raise ValueError(REPEATED_NAMES)
        self.names = tuple(self.types)
        if not all(isinstance(name, str) for name in self.names):
            raise value_error("lazy.columns_without_names")

    @functools.cached_property
    def n_records(self) -> int:
        """Number of records, as the engine counts them."""
        counts = self._collected(lambda frame: frame.select(nw.len().alias("n")))
        return int(counts["n"][0])

    def without(self, name: str) -> LazyTable:
        """Return the table without a column."""
        return LazyTable(self._frame.drop(name))

    def check_names(self, names: Sequence[Any]) -> None:
        """Refuse names of a code book that the table lacks."""
        lacking = [name for name in names if name not in self.types]
        if lacking:
            raise value_error(
                "lazy.schema_columns_missing", lacking=lacking, names=list(self.names)
            )

    def totals(
        self, stages: Sequence[dict[str, Any]]
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Sum up integers over all records, or over those of each cell, in one pass.

        Parameters
        ----------
        stages : sequence of dict of {str: narwhals.Expr}
            Columns computed of the table, of these, and so on. Those of the last are
            summed up, but for ``cell``, by which records are grouped.

        Returns
        -------
        dict of {str: ndarray of int of shape (n_cells,)}
            The totals, and the cells as ``cell``.
        """
        sums = [nw.col(name).sum() for name in stages[-1] if name != "cell"]

        def totals(frame: Any) -> Any:
            # engines aggregate plain columns: what is computed of them comes first
            for stage in stages:
                frame = frame.select(*(e.alias(name) for name, e in stage.items()))
            if "cell" in stages[-1]:
                frame = frame.group_by("cell").agg(*sums)
            else:
                frame = frame.select(*sums)
            # some sum to wider integers, of which pandas would make floats
            return frame.select(nw.all().cast(nw.Int64))

        return self._collected(totals)

    def _collected(
        self, query: Callable[[Any], Any]
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns of a small query, with the engine's words withheld."""

        def collect(frame: Any) -> dict[str, np.ndarray[Any, Any]]:
            eager = query(frame).collect(**_options(frame))
            return {name: eager[name].to_numpy() for name in eager.columns}

        owner = Statement("lazy.subject_engine", engine=self.engine)
        totals: dict[str, np.ndarray[Any, Any]] = unquoted(owner, collect, self._frame)
        return totals


def _options(frame: Any) -> dict[str, Any]:
    """Options by which an engine collects what is small, and reads what is large."""
    if not frame.implementation.is_polars():
        # narwhals' own choice may need a library that is not ours to require
        return {"backend": "pandas"}
    version = frame.implementation.to_native_namespace().__version__
    # part by part, whatever the size of the table
    streams = tuple(map(int, version.split(".")[:2])) >= (1, 23)
    return {"engine": "streaming"} if streams else {}


class SummedColumns(TableElsewhere):
    """Columns of a lazy table as an estimator reads them: of which sums are asked.

    Parameters
    ----------
    reader : str
        Name of the estimator, for messages.
    """

    def __init__(
        self, table: LazyTable, columns: Sequence[LazyColumn], reader: str
    ) -> None:
        super().__init__(table.n_records, len(columns))
        self._table, self._columns, self._reader = table, tuple(columns), reader
        self._known: tuple[Any, Floats] | None = None

    def sum(self, contribution: Any) -> Floats:
        """Return the sum of contributions; see :class:`TableElsewhere`.

        Raises
        ------
        ValueError
            If a cell cannot be read, or the table changes meanwhile. Neither quotes a
            value.
        UnsupportedError
            If it cannot be summed there.
        """
        if self._known is None or self._known[0] is not contribution:
            self._known = contribution, self._sum(contribution)
        return self._known[1]

    def rounding(self, contribution: Any) -> Floats:
        """Return how far a contribution is rounded; see :class:`TableElsewhere`."""
        off = [0.0 if p.is_count else 1 / STEPS for p in self._parts(contribution)]
        # Sums are an affine map of these, of which each rounded one is in a coordinate
        # of its own, with a positive factor.
        rounded = contribution.from_parts(np.array([off]), np.zeros((1, 1)))
        return np.tile(np.abs(rounded[0]), getattr(contribution, "n_cells", 1))

    @property
    def _names(self) -> list[Any]:
        """Columns as an estimator reads them, by name."""
        return [nw.col(f"c{i}") for i in range(len(self._columns))]

    def _parts(self, contribution: Any) -> list[Any]:
        if not hasattr(contribution, "parts"):
            raise unsupported_error(
                "lazy.release_not_summable", reader=self._reader, collect=COLLECT
            )
        parts: list[Any] = contribution.parts(self._names)
        if len(parts) > MOST_SUMS:
            raise unsupported_error(
                "lazy.too_many_sums",
                reader=self._reader,
                n_parts=len(parts),
                most_sums=MOST_SUMS,
                collect=COLLECT,
            )
        return parts

    def _stages(self, contribution: Any, parts: Sequence[Any]) -> list[dict[str, Any]]:
        """Columns computed of the table, one after the other, in one query."""
        checks = {
            f"r{i}": column.is_readable
            for i, column in enumerate(self._columns)
            if column.is_readable is not None
        }
        kept = {name: nw.col(name) for name in checks}
        stages = [{f"c{i}": c.values for i, c in enumerate(self._columns)} | checks]
        if hasattr(contribution, "prepared"):
            made = contribution.prepared(self._names)
            stages.append({f"c{i}": column for i, column in enumerate(made)} | kept)
        counted = kept | {f"p{i}": p.values for i, p in enumerate(parts) if p.is_count}
        if self._table.engine != "polars":  # which counts truth values as they are
            counted = {name: truth.cast(nw.Int64) for name, truth in counted.items()}
        # A sum over rows: an engine may take their number from what it knew of a file.
        counted["n"] = _constant("c0", 1).cast(nw.Int64)
        last = counted | {
            f"p{i}": (p.values * float(STEPS)).cast(nw.Int64)
            for i, p in enumerate(parts)
            if not p.is_count
        }
        if hasattr(contribution, "cell"):
            last["cell"] = contribution.cell(self._names)
        return [*stages, last]

    def _sum(self, contribution: Any) -> Floats:
        n_records = self.shape[0]
        if n_records > _MOST_RECORDS:
            raise unsupported_error("lazy.too_many_records", most_records=_MOST_RECORDS)
        parts = self._parts(contribution)
        # one pass for everything: sums of one state of the table, and its size
        found = self._table.totals(self._stages(contribution, parts))
        counts = found["n"].astype(float)
        if counts.sum() != n_records:
            raise value_error("lazy.table_changed_while_read")
        for i, column in enumerate(self._columns):
            if column.is_readable is not None and found[f"r{i}"].sum() != n_records:
                raise value_error(
                    "lazy.column_not_finite", name=column.name, reader=self._reader
                )
        sums = np.zeros((len(counts), len(parts)))
        for i, part in enumerate(parts):
            sums[:, i] = found[f"p{i}"] / (1 if part.is_count else STEPS)
        counts = counts[:, None]
        if "cell" in found:
            # An engine has no cells without records. The one beyond the last holds who
            # is in none.
            cells, n_cells = found["cell"].astype(int), contribution.n_cells
            held = np.column_stack([sums, counts])
            total = np.zeros((n_cells + 1, held.shape[1]))
            total[cells] = held
            sums, counts = total[:-1, :-1], total[:-1, -1:]
        total_of_all: Floats = contribution.from_parts(sums, counts).ravel()
        return total_of_all


# -- columns ---------------------------------------------------------------------------


def number(table: LazyTable, name: str) -> LazyColumn:
    """Return a column of numbers, none of which may be missing or infinite.

    Raises
    ------
    ValueError
        By the type of the column, if it holds no numbers.
    """
    values, present = _numbers(table, name)
    if _is_whole(table.types[name]):
        return LazyColumn(name, values, present)
    # nothing is known of a null, and what is not known is not counted
    return LazyColumn(name, values, values.is_finite())


def _numbers(table: LazyTable, name: str) -> tuple[Any, Any]:
    """Numbers of a column in double precision, and where its cells are not null."""
    kind = table.types[name]
    if not (kind.is_numeric() or kind == nw.Boolean):
        raise value_error("lazy.column_not_numeric", name=name, told=_told(kind))
    raw = nw.col(name)
    # not all engines cast truth values, or those that are missing
    values = _indicator(raw) if kind == nw.Boolean else raw.cast(nw.Float64)
    return values, ~raw.is_null()


def _cells(table: LazyTable, name: str) -> tuple[Any, Any]:
    """Numbers and texts of a column as `skpuffer.schema._cells` reads them.

    Returns
    -------
    numbers : narwhals.Expr or None
        Null where there is none; None if the type of the column has none.
    texts : narwhals.Expr or None
    """
    kind, raw = table.types[name], nw.col(name)
    if kind == nw.Boolean:
        held = nw.when(raw).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return nw.when(~raw.is_null()).then(held), None
    if kind.is_numeric():
        return raw.cast(nw.Float64), None
    if kind in (nw.Date, nw.Datetime):
        return None, raw
    if not (_is_text(kind) or kind == nw.Time):
        return None, None  # of lists and the like no cell is a number or a level
    texts = (raw if kind == nw.String else raw.cast(nw.String)).str.strip_chars()
    words = texts.str.to_lowercase()
    # no other text is cast: engines refuse what is no number
    is_number = texts.str.contains(f"^(?:{NUMBER})$")
    numbers: Any = nw.when(is_number).then(texts).cast(nw.Float64)
    named = TRUTH | {
        f"{sign}{word}": -_LARGEST if sign == "-" else _LARGEST
        for sign in ("", "+", "-")
        for word in ("inf", "infinity")
    }
    for value in sorted(set(named.values())):
        spelt = [word for word, number in named.items() if number == value]
        numbers = nw.when(words.is_in(spelt)).then(nw.lit(value)).otherwise(numbers)
    return numbers, texts


def _told(kind: Any) -> str:
    """Name of a type: some list all values that a column has."""
    return type(kind).__name__


def _is_whole(kind: Any) -> bool:
    return bool(kind.is_integer() or kind == nw.Boolean)


def _is_text(kind: Any) -> bool:
    return kind in (nw.String, nw.Categorical, nw.Enum)


def _days(table: LazyTable, name: str) -> Any:
    """Days since the beginning of 1970, of a column of dates or of texts."""
    kind, dates = table.types[name], nw.col(name)
    if not (kind == nw.Date or kind == nw.Datetime):
        dates = dates if kind == nw.String else dates.cast(nw.String)
        dates = dates.str.strip_chars()
        dates = nw.when(dates.str.contains(f"^(?:{_DAY})$")).then(dates)
        dates = dates.str.to_datetime(format="%Y-%m-%d")
    elif kind == nw.Date:
        dates = dates.cast(nw.Datetime)
    if table.engine not in _HAVE_DURATIONS:
        at: Any = dates.dt
        before = at.year() - 1
        leap_days = before // 4 - before // 100 + before // 400 - 477
        days = 365 * (before - 1969) + leap_days + at.ordinal_day() - 1
        clock = ((at.hour(), 24), (at.minute(), 1440), (at.second(), 86_400))
        return sum((p.cast(nw.Float64) / n for p, n in clock), days.cast(nw.Float64))
    zone = getattr(kind, "time_zone", None) and datetime.UTC
    beginning = nw.lit(datetime.datetime(1970, 1, 1, tzinfo=zone))
    return (dates - beginning).dt.total_seconds().cast(nw.Float64) / 86_400.0


def codes(table: LazyTable, name: str, levels: Sequence[Any], other: int) -> Any:
    """Return positions of a column's cells among public levels.

    Parameters
    ----------
    levels : sequence
        None is that of what is missing.
    other : int
        Position of what is missing or not listed.

    Returns
    -------
    narwhals.Expr
        Of integers: see :func:`skpuffer.schema._cells.level_places`.
    """
    numbers, texts = _cells(table, name)
    known = level_table(levels)
    found = _constant(name, other)
    if texts is not None:
        spelt = {key: place for key, place in known.items() if isinstance(key, str)}
        moments = {key: spelt.pop(key) for key in [*spelt] if _MOMENT.match(key)}
        kind = table.types[name]
        if kind in (nw.Date, nw.Datetime):
            spelt = {}
        elif spelt:
            found = _code(texts, [(place, key) for key, place in spelt.items()], other)
        for key, place in moments.items():
            found = nw.when(_is_moment(texts, kind, key)).then(place).otherwise(found)
    held = [(place, key) for key, place in known.items() if isinstance(key, float)]
    if numbers is not None and held:
        # no text that is a number is another level
        if texts is None:
            return _code(numbers, held, other)
        by_number = _code(numbers, held, -1)
        found = nw.when(by_number >= 0).then(by_number).otherwise(found)
    return found


def _is_moment(cells: Any, kind: Any, key: str) -> Any:
    """Where a column of dates or of texts holds a date or a time of a level."""
    if kind == nw.Date or kind == nw.Datetime:
        zone = getattr(kind, "time_zone", None) and datetime.UTC
        try:
            moment = datetime.datetime.fromisoformat(key).replace(tzinfo=zone)
        except ValueError:  # no such day, or no day at all
            return cells != cells
        if kind == nw.Datetime:
            return cells == nw.lit(moment)
        return cells != cells if " " in key else cells == nw.lit(moment.date())
    day, _, clock = key.rpartition(" ") if ":" in key else (key, "", "")
    spelt = "[-/.]".join(f"0?{part.lstrip('0')}" for part in day.split("-") if part)
    if clock:
        spelt += "[T ]" if day else ""
        hour, minute, second = clock.split(":")
        spelt += f"0?{hour.lstrip('0') or '0'}:{minute}"
        if second == "00":
            spelt += r"(?::00(?:\.0+)?)?"
        else:
            spelt += f":{re.escape(second)}" + ("0*" if "." in second else r"(?:\.0+)?")
    else:
        spelt += r"(?:[T ]0?0(?::00(?::00(?:\.0+)?)?)?)?"
    return cells.str.contains(f"^{spelt}Z?$")


def _code(column: Any, known: list[tuple[int, Any]], other: int) -> Any:
    """Code of a cell among some: by halves, as engines limit how deep one may ask."""
    if len(known) > 1:
        half = len(known) // 2
        is_there = column.is_in([value for _, value in known[:half]])
        lower, upper = (_code(column, k, other) for k in (known[:half], known[half:]))
        return nw.when(is_there).then(lower).otherwise(upper)
    # a null is equal to nothing
    ((code, value),) = known
    return nw.when(column == value).then(nw.lit(code)).otherwise(nw.lit(other))


# -- code books ------------------------------------------------------------------------


def number_of_book(table: LazyTable, name: str, column: Number) -> tuple[Any, Any]:
    """Return a column as its code book reads numbers.

    Returns
    -------
    values : narwhals.Expr
        Within the bounds, the public `filling` where one is missing.
    missing : narwhals.Expr
        Whether it is missing.
    """
    values, texts = _cells(table, name)
    if texts is not None:
        days = _days(table, name)
        values = days if values is None else _first(days, values)
    elif values is None:
        values = _constant(name, math.nan)
    present = ~values.is_null() & ~values.is_nan()
    for code in cell_numbers(object_cells(column.missing)):
        # those that are no numbers are NaN, and in no column of numbers
        if not math.isnan(code):
            present = present & (values != float(code))
    inside = clipped(values, column.low, column.high)
    filled = nw.when(present).then(inside).otherwise(nw.lit(float(column.filling)))
    return filled, nw.when(present).then(nw.lit(False)).otherwise(nw.lit(True))


def codes_of_book(table: LazyTable, name: str, column: Category) -> Any:
    """Return a column as its code book reads levels.

    Returns
    -------
    narwhals.Expr
        Of integers: see :func:`skpuffer.schema._cells.level_codes`.
    """
    other = len(column.levels) if column.missing_level else column.filling
    return codes(table, name, column.levels, other)


def encoded(table: LazyTable, encoding: Encoding) -> list[LazyColumn]:
    """Return the columns that an encoding in raw units makes.

    Raises
    ------
    UnsupportedError
        If it scales rows.
    """
    if encoding.scale != "raw":
        raise unsupported_error("lazy.schema_scales_rows", collect=COLLECT)
    found: list[LazyColumn] = []
    for name in encoding.schema.names:
        column = encoding.schema[name]
        if isinstance(column, Number):
            values, missing = number_of_book(table, name, column)
            made = [values, _indicator(missing)] if column.missing_level else [values]
        else:
            held = codes_of_book(table, name, column)
            width = len(column.levels) + column.missing_level
            made = [_indicator(held == code) for code in range(width)]
        found += [LazyColumn(name, values) for values in made]
    return found


def _constant(name: str, value: float) -> Any:
    """A value in each row: an expression of no column would have one row alone."""
    held = nw.lit(value)
    return nw.when(nw.col(name).is_null()).then(held).otherwise(held)


def _first(values: Any, others: Any) -> Any:
    return nw.when(~values.is_null()).then(values).otherwise(others)


def _indicator(condition: Any) -> Any:
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
