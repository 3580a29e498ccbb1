"""Tables of lazy data frames: clipped, counted and summed up by the engine they lie in.

Numbers are rounded to whole steps before they are added up: sums of integers are exact,
and no rounding of one record depends on another.
"""

from __future__ import annotations

import copy
import datetime
import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import Floats
from skpuffer.schema import Category, Encoding, Number, Schema
from skpuffer.schema._cells import (
    EXACT,
    GAPS,
    NUMBER,
    RANGES,
    SECONDS,
    TRUTH,
    cell_numbers,
    cell_seconds,
    is_digits,
    level_table,
    other_code,
)
from skpuffer.schema._check import refuse_no_cell
from skpuffer.utils._reading import COLLECT, REPEATED_NAMES, object_cells
from skpuffer.utils._silence import unquoted

from ._elsewhere import STEPS, TableElsewhere

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

#: Time of the day, to the second or less.
_HOURS = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"

#: Keys of dates and times, which may be spelt in several ways.
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( |$)|[0-9]{2}:[0-9]{2}:[0-9]{2}")

#: What is read as an infinite number.
_LARGEST = sys.float_info.max

#: Beyond, sums of whole steps might not fit 64 bits.
_MOST_RECORDS = 2**32 - 1

#: Rows of a unit beyond which a float might not hold the sum of their whole steps.
#: Engines add up floats by group faster than integers, which take 128 bits there.
_MOST_IN_FLOATS = 2**53 // STEPS


def clipped(values: Any, low: float, high: float) -> Any:
    """Clip an array; or an expression, which reads what is no number as a bound."""
    if not isinstance(values, nw.Expr):
        return np.clip(values, low, high)
    upper = nw.when(values < high).then(values).otherwise(nw.lit(float(high)))
    return nw.when(values > low).then(upper).otherwise(nw.lit(float(low)))


def in_unit_ball(columns: Sequence[Any], radius: float) -> list[Any]:
    """Return rows divided by a radius, to which longer ones are scaled down."""
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
        Name of the raw column.
    values : narwhals.Expr
        Numbers, or codes of levels.
    is_readable : narwhals.Expr or None
        Where the estimator takes the cell; None takes any.
    made : callable or None
        Makes `values`, which are None then, of all columns that are read.
    """

    name: Hashable
    values: Any
    is_readable: Any = None
    made: Callable[[Sequence[Any]], Any] | None = None


@dataclass(frozen=True, eq=False)
class LazyUnits:
    """Units of a lazy table, whose rows are summed up before the units are.

    Parameters
    ----------
    key : narwhals.Expr
        Key equal in the rows of one unit, null where a row has no id.
    most : int
        Rows that a unit counts for at most: the rows of one that has more weigh less.
    alone : bool
        Whether a unit is one record, with the mean of its rows.
    """

    key: Any
    most: int
    alone: bool

    def weight(self, size: Any) -> Any:
        """Weight of each row of a unit of so many rows."""
        if self.alone:
            return 1.0 / size
        within = nw.when(size > self.most).then(float(self.most) / size)
        return within.otherwise(nw.lit(1.0))


class LazyTable:
    """Lazy data frame, of which names and types of columns are known and no cell.

    Parameters
    ----------
    X : lazy data frame
        A frame of Polars, DuckDB, Dask, PySpark or another engine that narwhals knows.

    Attributes
    ----------
    n_records, n_rows : int
        As the engine counts them: for units those counted, and the rows with an id.
    sums_floats : bool
        Whether a float holds any sum of whole steps of the rows of a unit.
    """

    units: LazyUnits | None = None

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
        # An engine may read a name as a pattern of names, or as a path: so no
        # expression holds one.
        self._plain = {name: f"column_{i}" for i, name in enumerate(self.names)}
        if self.engine == "duckdb":  # whose expressions read a star as all columns
            quoted = [name.replace('"', '""') for name in self.names]
            listed = [f'"{q}" AS column_{i}' for i, q in enumerate(quoted)]
            native = self._frame.to_native().project(", ".join(listed))
            self._frame = nw.from_native(native)
        else:
            self._frame = self._frame.rename(self._plain)

    def column(self, name: str) -> Any:
        """Return the expression of a column, whatever its name looks like."""
        return nw.col(self._plain[name])

    @property
    def n_records(self) -> int:
        """Number of records, as the engine counts them."""
        return self._counts[1]

    @property
    def n_rows(self) -> int:
        """Number of rows that are read."""
        return self._counts[0]

    @property
    def sums_floats(self) -> bool:
        """Whether no unit has so many rows that a float might not hold their sum."""
        return self.units is not None and self._counts[2] <= _MOST_IN_FLOATS

    @functools.cached_property
    def _counts(self) -> tuple[int, int, int]:
        """Numbers of rows, of records, and of rows of the largest unit."""
        units = self.units
        if units is None:
            found = self._collected(lambda frame: frame.select(nw.len().alias("n")))
            return int(found["n"][0]), int(found["n"][0]), 1

        def counts(frame: Any) -> Any:
            frame = frame.select(units.key.alias("unit"))
            frame = frame.filter(~nw.col("unit").is_null())
            sizes = frame.group_by("unit").agg(nw.len().alias("n"))
            n = nw.col("n").cast(nw.Int64)
            most = nw.when(n > units.most).then(nw.lit(units.most)).otherwise(n)
            kept = _constant(n, 1) if units.alone else most
            sizes = sizes.select(n.alias("n"), kept.cast(nw.Int64).alias("kept"))
            n, kept = nw.col("n"), nw.col("kept")
            return sizes.select(n.sum(), kept.sum(), n.max().alias("largest"))

        found = self._collected(counts)
        n_rows, *others = (found[name][0] for name in ("n", "kept", "largest"))
        # an engine has no sum of no rows
        if not n_rows > 0:
            raise value_error("units.no_row_has_an_id")
        n_records, largest = map(int, others)
        return int(n_rows), n_records, largest

    def by_units(self, name: str, most: int, *, alone: bool) -> LazyTable:
        """Return the table without its column of ids, to be summed up by these."""
        kind, raw = self.types[name], self.column(name)
        if _is_text(kind):
            key = _text_id(self, name)
        elif kind in (nw.Float32, nw.Float64):
            key = nw.when(~raw.is_nan()).then(raw)
        elif kind.is_numeric() or kind.is_temporal() or kind == nw.Boolean:
            key = raw
        else:
            raise value_error("units.ids_of_no_kind", unit=name, told=_told(kind))
        rest = self.without(name)
        rest.units = LazyUnits(key, most, alone)
        return rest

    def without(self, name: str) -> LazyTable:
        """Return the table without a column."""
        rest = copy.copy(self)
        rest.types = {other: self.types[other] for other in self.names if other != name}
        rest.names = tuple(rest.types)
        return rest

    def check_names(self, names: Sequence[Any]) -> None:
        """Refuse names of a code book that the table lacks."""
        lacking = [name for name in names if name not in self.types]
        if lacking:
            raise value_error(
                "lazy.schema_columns_missing", lacking=lacking, names=list(self.names)
            )

    def totals(
        self,
        stages: Sequence[dict[str, Any]],
        counted: Collection[str],
        steps: dict[str, int],
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Sum up integers over all records, or over those of each cell, in one pass."""
        units = self.units
        own = [
            nw.col(name).count() if name in counted else nw.col(name).sum()
            for name in stages[-1]
            if name != "cell"
        ]

        def totals(frame: Any) -> Any:
            # engines aggregate plain columns: what is computed of them comes first
            for i, stage in enumerate(stages):
                columns = dict(stage)
                if units is not None:
                    columns["unit"] = nw.col("unit") if i else units.key
                frame = frame.select(*(e.alias(name) for name, e in columns.items()))
                if units is not None and not i:
                    frame = frame.filter(~nw.col("unit").is_null())
            by, sums = [name for name in stages[-1] if name == "cell"], own
            if units is not None:
                frame = frame.group_by(*by, "unit").agg(*own, nw.len().alias("n"))
                names = [name for name in stages[-1] if name not in by]
                frame = _weighed(frame, units, by, names, steps)
                sums = [nw.col(name).sum() for name in (*names, "n", "w")]
                sums.append(nw.col("size").max().alias("largest"))
            frame = frame.group_by(*by).agg(*sums) if by else frame.select(*sums)
            # some sum to wider integers, of which pandas would make floats
            return frame.select(nw.all().cast(nw.Int64))

        return self._collected(totals)

    def any_of(self, truths: dict[str, Any]) -> dict[str, bool]:
        """Tell of truth values, by name, whether any record has one that holds."""
        found = self._collected(
            lambda frame: frame.select(
                *(indicator(truth).max().alias(name) for name, truth in truths.items())
            )
        )
        return {name: bool(held[0] == 1) for name, held in found.items()}

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


def _weighed(
    frame: Any,
    units: LazyUnits,
    by: Sequence[str],
    names: Sequence[str],
    steps: dict[str, int],
) -> Any:
    """Weigh the totals of each unit as the unit counts.

    A total is rounded once more, to whole steps: what a unit adds is a function of its
    own rows alone.
    """
    n = nw.col("n").cast(nw.Float64)
    # of a unit with rows in several cells
    size = n.sum().over("unit") if by else n
    frame = frame.with_columns(size.alias("size"))
    frame = frame.with_columns(units.weight(nw.col("size")).alias("weight"))
    weight = nw.col("weight")
    weighed = {
        name: (nw.col(name).cast(nw.Float64) * weight * float(step)).cast(nw.Int64)
        for name, step in steps.items()
    }
    plain = {name: nw.col(name) for name in (*by, *names, "n", "size")}
    columns = plain | weighed | {"w": (n * weight * float(STEPS)).cast(nw.Int64)}
    return frame.select(*(e.alias(name) for name, e in columns.items()))


def _text_id(table: LazyTable, name: str) -> Any:
    """Ids of texts: without the space around them, numbers as such, gaps as null."""
    numbers, texts = _cells(table, name)
    spelt = nw.when(~_is_gap(texts)).then(texts)
    is_number = ~numbers.is_null() & ~texts.str.contains("^[+-]?[0-9]{16,}$")
    return nw.when(is_number).then(numbers.cast(nw.String)).otherwise(spelt)


def _is_gap(texts: Any) -> Any:
    """Where a text that is there stands for a gap."""
    return texts.is_in(sorted(GAPS)) | texts.str.contains("^[+-]?[nN][aA][nN]$")


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
        """Return the sum of contributions; see :class:`TableElsewhere`."""
        if self._known is None or self._known[0] is not contribution:
            self._known = contribution, self._sum(contribution)
        return self._known[1]

    def rounding(self, contribution: Any) -> Floats:
        """Return how far a contribution is rounded; see :class:`TableElsewhere`."""
        if self._table.units is not None:
            return self._rounding_of_units(contribution)
        off = [0.0 if p.is_count else 1 / STEPS for p in self._parts(contribution)]
        # Sums are an affine map of these, of which each rounded one is in a coordinate
        # of its own, with a positive factor.
        rounded = contribution.from_parts(np.array([off]), np.zeros((1, 1)))
        return np.tile(np.abs(rounded[0]), getattr(contribution, "n_cells", 1))

    def _rounding_of_units(self, contribution: Any) -> Floats:
        """How far contributions of units are rounded, for each row that one counts for.

        A row's number once, by a step. Then all sums of a unit, counts too, by another.
        Of m rows these are m + 1 steps, and of a mean of rows two.
        """
        block = self._block(contribution)
        n_parts = len(self._parts(block))
        # by each part, and by the number of rows: an affine map of all
        off = np.vstack([np.eye(n_parts), np.zeros(n_parts)]) * (2 / STEPS)
        counts = np.append(np.zeros(n_parts), 2 / STEPS)[:, None]
        found = np.abs(block.from_parts(off, counts)).sum(axis=0)
        return np.tile(found, getattr(block, "n_cells", 1))

    def _block(self, contribution: Any) -> Any:
        """What a row adds, which the table weighs."""
        units = self._table.units
        alone = units is not None and units.alone
        return contribution.block if alone else contribution

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

    @property
    def _counts_cells(self) -> bool:
        """Whether truths are null where they do not hold, and counted: faster by unit.

        Polars sums truths as fast.
        """
        return bool(self._table.units is not None and self._table.engine != "polars")

    def _stages(self, contribution: Any, parts: Sequence[Any]) -> list[dict[str, Any]]:
        """Columns computed of the table, one after the other, in one query."""
        checks = {
            f"r{i}": column.is_readable
            for i, column in enumerate(self._columns)
            if column.is_readable is not None
        }
        kept = {name: nw.col(name) for name in checks}
        read = {f"c{i}": c.values for i, c in enumerate(self._columns) if not c.made}
        stages = [read | checks]
        if len(read) < len(self._columns):
            every = [
                c.made(self._names) if c.made else nw.col(f"c{i}")
                for i, c in enumerate(self._columns)
            ]
            stages.append({f"c{i}": column for i, column in enumerate(every)} | kept)
        if hasattr(contribution, "prepared"):
            made = contribution.prepared(self._names)
            stages.append({f"c{i}": column for i, column in enumerate(made)} | kept)
        truths = kept | {f"p{i}": p.values for i, p in enumerate(parts) if p.is_count}
        if self._counts_cells:
            one = nw.lit(1)
            truths = {name: nw.when(truth).then(one) for name, truth in truths.items()}
        elif self._table.engine != "polars":  # which counts truth values as they are
            truths = {name: truth.cast(nw.Int64) for name, truth in truths.items()}
        last, floats = truths, self._table.sums_floats
        for i, p in enumerate(parts):
            if not p.is_count:
                step = p.values * float(STEPS)
                last[f"p{i}"] = step.floor() if floats else step.cast(nw.Int64)
        if self._table.units is None:
            # A sum over rows: an engine may take their number from what it knew of a
            # file.
            last["n"] = _constant(nw.col("c0"), 1).cast(nw.Int64)
        if hasattr(contribution, "cell"):
            last["cell"] = contribution.cell(self._names)
        return [*stages, last]

    def _sum(self, contribution: Any) -> Floats:
        units, n_rows = self._table.units, self.shape[0]
        if units is not None:
            n_rows = self._table.n_rows
        if n_rows > _MOST_RECORDS:
            raise unsupported_error("lazy.too_many_records", most_records=_MOST_RECORDS)
        contribution = self._block(contribution)
        parts = self._parts(contribution)
        # one pass for everything: sums of one state of the table, and its size
        steps = {f"p{i}": STEPS if p.is_count else 1 for i, p in enumerate(parts)}
        stages, counted = self._stages(contribution, parts), []
        if self._counts_cells:
            counted = [n for n in stages[-1] if n[0] == "r" or steps.get(n, 1) > 1]
        found = self._table.totals(stages, counted, steps)
        counts = found["n"].astype(float)
        largest = found["largest"].max() if self._table.sums_floats else 0
        if counts.sum() != n_rows or largest > _MOST_IN_FLOATS:
            raise value_error("lazy.table_changed_while_read")
        if units is not None:
            counts = found["w"] / STEPS
        for i, column in enumerate(self._columns):
            if column.is_readable is not None and found[f"r{i}"].sum() != n_rows:
                raise value_error(
                    "lazy.column_not_finite", name=column.name, reader=self._reader
                )
        sums = np.zeros((len(counts), len(parts)))
        for i, part in enumerate(parts):
            whole = part.is_count and units is None
            sums[:, i] = found[f"p{i}"] / (1 if whole else STEPS)
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
    """Return a column of numbers, none of which may be missing or infinite."""
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
    raw = table.column(name)
    # not all engines cast truth values, or those that are missing
    values = indicator(raw) if kind == nw.Boolean else raw.cast(nw.Float64)
    return values, ~raw.is_null()


def _cells(table: LazyTable, name: str) -> tuple[Any, Any]:
    """Numbers and texts of a column as `skpuffer.schema._cells` reads them."""
    kind, raw = table.types[name], table.column(name)
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


def _moments(table: LazyTable, name: str) -> Any:
    """Seconds since the beginning of 1970, of a column of dates or of texts."""
    kind, dates = table.types[name], table.column(name)
    clock: Any = 0.0
    if not (kind == nw.Date or kind == nw.Datetime):
        texts = (
            dates if kind == nw.String else dates.cast(nw.String)
        ).str.strip_chars()
        known = texts.str.contains(f"^(?:{_DAY})(?:[T ]{_HOURS})?$")
        days = nw.when(known).then(texts).str.slice(0, 10)
        dates = days.str.to_datetime(format="%Y-%m-%d")
        clock = _of_clock(texts.str.slice(11), texts.str.contains(f"[T ]{_HOURS}$"))
    elif kind == nw.Date:
        # engines refuse to cast days of which they have no moment, or an infinite one
        dates = _within(dates, datetime.date.min, datetime.date.max).cast(nw.Datetime)
    elif table.engine == "polars" and kind.time_zone:
        # which compares no moments of two zones
        dates = dates.dt.convert_time_zone("UTC")
    elif table.engine == "duckdb":
        # which counts no seconds from a moment that is infinite
        zone = getattr(kind, "time_zone", None) and datetime.UTC
        ends = [datetime.datetime.min, datetime.datetime.max]
        if kind.time_unit == "ns":
            ends = [datetime.datetime(1677, 9, 22), datetime.datetime(2262, 4, 11)]
        dates = _within(dates, *(end.replace(tzinfo=zone) for end in ends))
    if table.engine not in _HAVE_DURATIONS:
        at: Any = dates.dt
        before = at.year() - 1
        leap_days = before // 4 - before // 100 + before // 400 - 477
        days = 365 * (before - 1969) + leap_days + at.ordinal_day() - 1
        parts = ((days, 86_400.0), (at.hour(), 3600.0), (at.minute(), 60.0))
        seconds = sum((p.cast(nw.Float64) * n for p, n in parts), at.second())
        return seconds.cast(nw.Float64) + clock
    zone = getattr(kind, "time_zone", None) and datetime.UTC
    beginning = nw.lit(datetime.datetime(1970, 1, 1, tzinfo=zone))
    return (dates - beginning).dt.total_seconds().cast(nw.Float64) + clock


def _within(dates: Any, first: datetime.date, last: datetime.date) -> Any:
    """Dates between two, null where one is not."""
    is_within = (dates >= nw.lit(first)) & (dates <= nw.lit(last))
    return nw.when(is_within).then(dates)


def _clock(table: LazyTable, name: str) -> Any:
    """Seconds since midnight, of a column of times or of texts."""
    kind, times = table.types[name], table.column(name)
    if kind == nw.Duration:
        return times.dt.total_seconds().cast(nw.Float64)
    texts = (times if kind == nw.String else times.cast(nw.String)).str.strip_chars()
    known = texts.str.contains(f"^{_HOURS}$")
    return nw.when(known).then(_of_clock(texts, known))


def _of_clock(texts: Any, known: Any) -> Any:
    """Seconds of texts such as 17:05:30, zero where there is no such text."""
    found: Any = nw.lit(0.0)
    for start, length in ((0, 3600.0), (3, 60.0), (6, 1.0)):
        digits = texts.str.slice(start, 2)
        is_there = known & digits.str.contains("^[0-9]{2}$")
        part = nw.when(is_there).then(digits).cast(nw.Float64)
        found = found + nw.when(is_there).then(part * length).otherwise(nw.lit(0.0))
    return found


def codes(table: LazyTable, name: str, levels: Sequence[Any], other: int) -> Any:
    """Return positions of a column's cells among public levels, else `other`."""
    numbers, texts = _cells(table, name)
    known = level_table(levels)
    found = _constant(table.column(name), other)
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
            found = _code(numbers, held, other)
            return _exact_code(table, name, known, found, other)
        by_number = _code(numbers, held, -1)
        found = nw.when(by_number >= 0).then(by_number).otherwise(found)
    return _exact_code(table, name, known, found, other)


def _exact_code(
    table: LazyTable, name: str, known: dict[Any, int], found: Any, other: int
) -> Any:
    """Codes where cells are whole numbers, of which floats may not tell two apart."""
    # of the numbers that a column of an engine may hold
    whole = [(p, int(k)) for k, p in known.items() if is_digits(k)]
    whole = [(p, n) for p, n in whole if -(2**63) <= n < 2**63]
    if not whole or not table.types[name].is_integer():
        return found
    raw = table.column(name)
    exact = _code(raw, whole, other)
    return nw.when((raw < EXACT) & (raw > -EXACT)).then(found).otherwise(exact)


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


def number_of_book(
    table: LazyTable,
    name: str,
    column: Number,
    clip: bool = True,
    exact: bool = False,
) -> tuple[Any, Any]:
    """Return a column as its schema reads numbers, and one where a value is missing.

    `clip` of False leaves clipping to the reader; `exact` keeps the part of a unit of
    dates.
    """
    if column.reads == "number":
        values, _ = _cells(table, name)
        whole: Any = values
        codes: Any = cell_numbers(object_cells(column.missing_codes))
    else:
        unit = SECONDS[str(column.unit)]
        seconds = (_moments if column.reads == "date" else _clock)(table, name)
        first, end = RANGES[column.reads]
        inside = (seconds >= float(first)) & (seconds < float(end))
        values = nw.when(inside).then(seconds) / unit
        whole = values.floor()
        values = values if exact else whole
        codes = cell_seconds(object_cells(column.missing_codes), column.reads) // unit
    if values is None:
        values = whole = _constant(table.column(name), math.nan)
    present = ~values.is_null() & ~values.is_nan()
    for code in codes:
        # those that are no numbers are NaN, and in no column of numbers
        if not math.isnan(code):
            present = present & (whole != float(code))
    low, high = column.ends if exact else (column.low, column.high)
    inside = clipped(values, low, high) if clip else values
    filled = nw.when(present).then(inside).otherwise(nw.lit(float(column.filling)))
    return filled, nw.when(present).then(nw.lit(0.0)).otherwise(nw.lit(1.0))


def codes_of_book(
    table: LazyTable, name: str, column: Category, counted: bool = False
) -> Any:
    """Return a column as its code book reads levels."""
    return codes(table, name, column.levels, other_code(column, counted))


def refuse_unread_texts(table: LazyTable, schema: Schema) -> None:
    """Refuse a column of texts declared as a number in which no cell is read as one."""
    held: dict[str, Number] = {}
    for name in schema.names:
        column = schema[name]
        if isinstance(column, Number) and _is_text(table.types[name]):
            held[name] = replace(column, missing=column.has_gaps)
    truths = {}
    for i, (name, column) in enumerate(held.items()):
        _, missing = number_of_book(table, name, column)
        texts = table.column(name).cast(nw.String).str.strip_chars()
        truths[f"read{i}"] = missing == 0
        truths[f"cell{i}"] = ~texts.is_null() & ~_is_gap(texts)
    if not truths:
        return
    found = table.any_of(truths)
    for i, (name, column) in enumerate(held.items()):
        refuse_no_cell(name, column, read=found[f"read{i}"], cell=found[f"cell{i}"])


def encoded(table: LazyTable, encoding: Encoding) -> list[LazyColumn]:
    """Return the columns that an encoding in raw units makes."""
    if encoding.scale != "raw":
        raise unsupported_error("lazy.schema_scales_rows", collect=COLLECT)
    found: list[LazyColumn] = []
    for name in encoding.schema.names:
        column = encoding.schema[name]
        if isinstance(column, Number):
            # whatever a cell holds, contributions clip it to these bounds
            values, missing = number_of_book(table, name, column, clip=False)
            made = [values, missing] if column.has_gaps else [values]
        else:
            held = codes_of_book(table, name, column)
            width = len(column.levels) + column.has_gaps
            made = [indicator(held == code) for code in range(width)]
        found += [LazyColumn(name, values) for values in made]
    return found


def _constant(column: Any, value: float) -> Any:
    """A value in each row: an expression of no column would have one row alone."""
    held = nw.lit(value)
    return nw.when(column.is_null()).then(held).otherwise(held)


def _first(values: Any, others: Any) -> Any:
    return nw.when(~values.is_null()).then(values).otherwise(others)


def indicator(condition: Any) -> Any:
    """Return an expression that is one where a condition holds, and zero elsewhere."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
