"""Entries of a code book: numeric and categorical columns."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import Floats, check_count, check_option, check_positive
from skpuffer.utils._bounds import check_bounds, check_interval, resolve_bounds
from skpuffer.utils._reading import object_cells

from ._cells import (
    DATE,
    SECONDS,
    as_moments,
    cell_key,
    cell_numbers,
    cell_seconds,
    is_missing,
    refuse_ambiguous,
)

#: Bins of a column at most: more are hardly met, and have to be held.
MOST_BINS = 2**20

#: What an entry may be written as.
_KINDS = Statement("schema.entry_kinds")


@dataclass(frozen=True)
class Number:
    """Describe a numeric column of a schema.

    Parameters
    ----------
    low, high : float
        Public bounds; a value outside of them is read as the nearer one.
    integer : bool, default=False
        Whether values are whole numbers.
    amount : bool, default=False
        Whether it is an amount with a heavy tail (money, say): cells and scale are
        those of the logarithm, of ``x + 1``, or of ``x`` where `low` is positive.
    bins : int or tuple of float, default=None
        Number of equal cells, or their edges. None leaves it to the binning.
    missing : bool or tuple, default=True
        Whether values may be missing, or codes that mean a missing value besides None
        and NaN. Statistics leave missing values out. False declares that none is, which
        costs nothing; a missing one is then read as `fill`.
    missing_level : bool, default=None
        Whether missing values are distinguished from others. None is so if they may be
        missing and no `fill` is given. True beside a `fill` marks them as well.
    fill : float, default=None
        Public number that a missing one is read as. None is none; where one is needed,
        it is the middle of the bounds (of their logarithms for an amount).
    unit : str, default=None
        Unit of the values, for people.
    centre, spread : float, default=None
        Public mean and standard deviation, if known (of an amount's logarithm), by
        which encodings are centred and scaled.

    Examples
    --------
    >>> from skpuffer.schema import Number
    >>> Number(0, 100_000).has_gaps, Number(0, 100_000, fill=0).has_gaps
    (True, False)
    >>> Number(17, 90, integer=True, unit="years")
    Number(low=17.0, high=90.0, integer=True, unit='years')
    """

    low: float
    high: float
    integer: bool = False
    amount: bool = False
    bins: int | tuple[float, ...] | None = None
    missing: bool | tuple[Any, ...] = True
    missing_level: bool | None = None
    fill: float | None = None
    unit: str | None = None
    centre: float | None = None
    spread: float | None = None

    def __post_init__(self) -> None:
        low, high = _number(low=self.low), _number(high=self.high)
        if not low < high:
            raise value_error("schema.low_not_below_high", low=self.low, high=self.high)
        check_interval(np.asarray(low), np.asarray(high), "low, high")
        bins = self.bins
        if bins is not None and np.ndim(bins) == 0:
            bins = check_count(bins=bins, most=MOST_BINS)
        elif bins is not None:
            bins = _edges(bins)
        fill = self.fill
        if fill is not None and not low <= _number(fill=fill) <= high:
            raise value_error("schema.fill_outside_bounds", fill=fill)
        if (self.centre is None) != (self.spread is None):
            raise value_error("schema.centre_without_spread")
        if self.centre is not None:
            _number(centre=self.centre)
            check_positive(spread=self.spread)
        missing = self.missing
        if not isinstance(missing, bool | np.bool_):
            # no codes say as much as none given
            missing = _codes(missing) or True
        if self.missing_level is not None:
            told = check_option((True, False), missing_level=self.missing_level)
            if told and not missing:
                raise value_error("schema.level_of_none_missing")
        _set(
            self,
            low=low,
            high=high,
            bins=bins,
            missing=missing if isinstance(missing, tuple) else bool(missing),
            fill=None if fill is None else float(fill),
            **{
                name: check_option((True, False), **{name: getattr(self, name)})
                for name in ("integer", "amount")
            },
        )

    @property
    def missing_codes(self) -> tuple[Any, ...]:
        """Codes that mean a missing value."""
        return self.missing if isinstance(self.missing, tuple) else ()

    @property
    def has_gaps(self) -> bool:
        """Whether missing values are told from others."""
        if self.missing_level is not None:
            return self.missing_level
        return self.missing is not False and self.fill is None

    @property
    def filling(self) -> float:
        """Number that stands for a missing one where a number is needed."""
        if self.fill is not None:
            return self.fill
        usual = self.centre
        if usual is None:
            low, high = self.scale(np.array([self.low, self.high]))
            # halved first: the sum of two large bounds could overflow
            usual = low / 2 + high / 2
        middle = float(np.clip(self.unscale(np.array(usual)), self.low, self.high))
        return float(np.floor(middle)) if self.integer else middle

    @property
    def whole_range(self) -> tuple[float, float] | None:
        """First and last whole number within the bounds, if all values are whole."""
        low, high = float(np.ceil(self.low)), float(np.floor(self.high))
        return (low, high) if self.integer and low < high else None

    @property
    def ends(self) -> tuple[float, float]:
        """First and last value, of dates with the part of a unit that is cut off."""
        return self.low, self.high

    def whole_edges(self, most: int) -> Floats | None:
        """Return edges about each whole number if there are at most `most`, or None."""
        ends = self.whole_range
        if ends is None or ends[1] - ends[0] >= most:
            return None
        if self.amount or self.bins is not None:
            return None
        edges: Floats = np.arange(ends[0], ends[1] + 2) - 0.5
        # of numbers so large that nothing lies between them
        return edges if np.all(np.diff(edges) > 0) else None

    def scale(self, values: Floats) -> Floats:
        """Return clipped values on the scale of the cells: the logarithm of amounts."""
        inside = np.clip(values, self.low, self.high)
        if not self.amount:
            return inside
        logarithms: Floats = np.log(inside) if self.low > 0 else _log1p(self, inside)
        return logarithms

    def unscale(self, values: Floats) -> Floats:
        """Return numbers from those of :meth:`scale`."""
        if not self.amount:
            return values
        if self.low > 0:
            raised: Floats = np.exp(values)
        else:
            raised = np.expm1(values) + min(self.low, 0.0)
        return np.clip(raised, self.low, self.high)

    #: What cells are read as.
    reads: ClassVar[str] = "number"

    def text(self, value: float) -> str:
        """Return a value as a text."""
        return f"{value:g}"

    def __repr__(self) -> str:
        return _written(self, ("low", "high"))


def _log1p(column: Number, values: Floats) -> Floats:
    logarithms: Floats = np.log1p(values - min(column.low, 0.0))
    return logarithms


@dataclass(frozen=True, repr=False)
class Date(Number):
    """Describe a column of dates, or of moments, of a schema.

    Values are whole days, hours, minutes or seconds, clipped to the bounds. Cells may
    be of any type of dates, or texts such as "2020-01-31 17:05"; moments with a time
    zone are read in UTC. Numbers are no dates, and missing.

    Parameters
    ----------
    low, high : str, date, datetime or datetime64
        First and last public value. A day as `high` is meant to its last moment.
    unit : {'day', 'hour', 'minute', 'second'}, default='day'
        The resolution: the rest of a moment is cut off, but for means and deviations of
        :class:`~skpuffer.summary.PrivateSummary`.
    integer, amount : bool
        True and False: values are whole units, and no amounts.
    bins, missing, missing_level, fill, centre, spread : optional
        As for a :class:`Number`; numbers among them count units since 1970.

    Examples
    --------
    >>> from skpuffer.schema import Date
    >>> Date("2020-01-01", "2024-12-31")
    Date(low='2020-01-01', high='2024-12-31')
    """

    unit: str | None = "day"

    #: What cells are read as, and how a code book's file calls the bounds.
    reads: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        check_option(tuple(SECONDS), unit=self.unit)
        if self.amount:
            raise value_error("schema.dates_are_no_amounts")
        given = {"low": self.low, "high": self.high, "fill": self.fill}
        found = {
            name: value if isinstance(value, float) else self._units(name, value)
            for name, value in given.items()
            if value is not None
        }
        _set(self, integer=True, **found)
        super().__post_init__()

    @property
    def seconds(self) -> int:
        """Length of a unit."""
        return SECONDS[str(self.unit)]

    @property
    def ends(self) -> tuple[float, float]:
        """First and last second, in units."""
        return self.low, self.high + 1 - 1 / self.seconds

    def _units(self, name: str, value: Any) -> float:
        """Number of units of a bound."""
        seconds = cell_seconds(object_cells([value]), self.reads)[0]
        if math.isnan(seconds):
            raise value_error(
                "schema.not_a_moment", name=name, value=value, kind=self.reads
            )
        if name == "high" and DATE.fullmatch(str(cell_key(value))[:11]):
            # to the last moment of a day
            seconds += SECONDS["day"] - 1
        return float(seconds // self.seconds)

    def units(self, values: Any) -> Floats:
        """Return dates as numbers of whole units, numbers as they are, else NaN."""
        cells = object_cells(values)
        seconds = cell_seconds(cells, self.reads) // self.seconds
        found: Floats = np.where(np.isnan(seconds), cell_numbers(cells), seconds)
        return found

    def present(self, values: Any) -> Any:
        """Return numbers of units as dates."""
        seconds = np.asarray(values, dtype=float) * self.seconds
        return pd.DatetimeIndex(as_moments(seconds))

    def lengths(self, values: Any) -> Any:
        """Return numbers of units as lengths of time."""
        seconds = np.asarray(values, dtype=float) * self.seconds
        return pd.TimedeltaIndex(as_moments(seconds, "m8[s]"))

    def text(self, value: float) -> str:
        """Return a number of units as a text."""
        written = str(self.present([value])[0])
        return written.removesuffix(" 00:00:00")


@dataclass(frozen=True, repr=False)
class Time(Date):
    """Describe a column of times of the day of a schema; see :class:`Date`.

    Parameters
    ----------
    low : str or time, default="00:00"
        First public value.
    high : str or time, default="23:59:59"
        Last public value.
    unit : {'hour', 'minute', 'second'}, default='minute'
    integer, amount : bool
        As for a :class:`Date`.
    bins, missing, missing_level, fill, centre, spread : optional
        As for a :class:`Number`; numbers among them count units since midnight.

    Examples
    --------
    >>> from skpuffer.schema import Time
    >>> Time("08:00", "18:00")
    Time(low='08:00:00', high='18:00:00')
    """

    low: float = "00:00"  # type: ignore[assignment] # read as a number of units
    high: float = "23:59:59"  # type: ignore[assignment] # as above
    unit: str | None = "minute"

    reads: ClassVar[str] = "time"

    def present(self, values: Any) -> Any:
        """Return numbers of units as times since midnight."""
        return self.lengths(values)

    def text(self, value: float) -> str:
        """Return a number of units as a text."""
        return str(self.present([value])[0]).rpartition(" ")[2]


@dataclass(frozen=True)
class Category:
    """Describe a categorical column of a schema.

    Parameters
    ----------
    levels : tuple
        Public levels, all that are possible; each once.
    ordered : bool, default=False
        Whether their order has a meaning.
    missing : tuple, default=()
        Codes that mean a missing value, besides None and NaN.
    missing_level : bool, default=True
        Whether missing and unlisted values have a level of their own, which statistics
        leave out of rates and counts. False declares that no value is missing; one that
        is is read as `fill`.
    fill : level, default=None
        Public level that stands for a missing one. None is the first level in models;
        :class:`~skpuffer.summary.PrivateSummary` then counts the record at no level.
    unit : str, default=None
        Name of the things counted.
    shares : tuple of float, default=None
        Public shares of the levels, if known, by which encodings are centred.

    Raises
    ------
    ValueError
        If a level is missing, repeated or ambiguous, or `fill` is none of them.

    Notes
    -----
    A cell is compared with the levels by what was written, never by its column's type:

    - 1, 1.0, "1", "1.0" and "01" are one level, as all numbers are that are equal in
      double precision.
    - True, "true" and "yes" are one level with 1; False, "false" and "no" with 0, in
      any case of the letters. DuckDB reads "T" and "F" so as well.
    - Dates of any type, and texts such as "2020-01-31", are one level for each day;
      those with a time and a zone for each moment.
    - Whole numbers are compared digit by digit. A column of floats to which two levels
      round is refused: read such a column as text.
    - Other texts are compared without the space around them.

    Levels that some reader of files takes for missing ("NA", "null", "None", "nan",
    ""), for another level ("1" and "01", "yes" and 1), or for a date by other rows
    ("01/02/2020") are refused: rename them.

    Examples
    --------
    >>> from skpuffer.schema import Category
    >>> Category(["low", "high"], ordered=True, missing=["?"])
    Category(levels=('low', 'high'), ordered=True, missing=('?',))
    """

    levels: tuple[Any, ...]
    ordered: bool = False
    missing: tuple[Any, ...] = ()
    missing_level: bool = True
    fill: Any = None
    unit: str | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        given: object = self.levels
        if isinstance(given, str) or not np.iterable(given):
            raise value_error("schema.levels_not_a_list", levels=self.levels)
        levels = tuple(_plain(level) for level in self.levels)
        if not levels:
            raise value_error("schema.levels_empty")
        if any(is_missing(level) for level in levels):
            raise value_error("schema.levels_list_missing")
        refuse_ambiguous(levels)
        missing = _codes(self.missing)
        keys = [cell_key(level) for level in levels]
        if both := [code for code in missing if cell_key(code) in keys]:
            raise value_error("schema.missing_names_levels", both=both)
        fill = _plain(self.fill)
        if fill is not None:
            if (key := cell_key(fill)) not in keys:
                raise value_error("schema.fill_not_a_level", fill=fill)
            fill = levels[keys.index(key)]
        shares = self.shares
        if shares is not None:
            shares = tuple(_number(shares=share) for share in shares)
            if len(shares) != len(levels) or min(shares) < 0 or sum(shares) > 1 + 1e-9:
                raise value_error("schema.shares_invalid", shares=list(shares))
        _set(
            self,
            shares=shares,
            levels=levels,
            missing=missing,
            fill=fill,
            **{
                name: check_option((True, False), **{name: getattr(self, name)})
                for name in ("ordered", "missing_level")
            },
        )

    @property
    def missing_codes(self) -> tuple[Any, ...]:
        """Codes that mean a missing value."""
        return self.missing

    @property
    def has_gaps(self) -> bool:
        """Whether missing values are told from levels."""
        return self.missing_level

    @property
    def filling(self) -> int:
        """Code of the level that stands for a missing one."""
        return 0 if self.fill is None else self.levels.index(self.fill)

    def __repr__(self) -> str:
        return _written(self, ())


Column: TypeAlias = Number | Category


def as_column(name: Any, given: Any) -> Column:
    """Return an entry of a schema from what a user may write.

    A tuple of two different numbers is a pair of bounds, any other list one of levels;
    a dict holds the fields of either, and bounds also as ``'bounds'``.
    """
    try:
        return _read(given)
    except (TypeError, ValueError) as error:
        raise value_error("schema.column_invalid", name=name, error=error) from None


def _read(given: Any) -> Column:
    if isinstance(given, Number | Category):
        return given
    if isinstance(given, Mapping):
        return _from_dict(dict(given))
    # a tuple is a pair of bounds as everywhere else; a list enumerates
    pair = isinstance(given, tuple) and len(given) == 2
    if pair and all(isinstance(v, Real) and not isinstance(v, bool) for v in given):
        return Number(*given)
    if isinstance(given, list | tuple | np.ndarray | pd.Index | range):
        return Category(tuple(given))
    raise value_error("schema.entry_kind_unknown", kinds=_KINDS, given=given)


def _from_dict(given: dict[str, Any]) -> Column:
    kind: type[Column] = Category if "levels" in given else Number
    for word, of_word in (("bounds", Number), ("dates", Date), ("times", Time)):
        if word in given:
            bounds = given.pop(word)
            kind = kind if "levels" in given else of_word
            if np.shape(bounds) != (2,) or {"low", "high"} & given.keys():
                raise value_error("schema.bounds_not_a_pair", word=word, bounds=bounds)
            given |= dict(zip(("low", "high"), bounds, strict=True))
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(given) - known, key=str)
    if unknown:
        raise value_error(
            "schema.entry_fields_unknown",
            unknown=unknown,
            kind=kind.__name__,
            known=list(sorted(known)),
        )
    if kind is Number and not {"low", "high"} <= given.keys():
        raise value_error("schema.entry_without_bounds_or_levels")
    return kind(**given)


def differing_fields(column: Column) -> dict[str, Any]:
    """Fields of a column that are not at their defaults, as plain data."""
    held = asdict(column)
    plain = {
        field.name: list(held[field.name])
        if isinstance(held[field.name], tuple)
        else held[field.name]
        for field in fields(column)
        if held[field.name] != field.default
    }
    if isinstance(column, Date):
        for name in ("low", "high", "integer", "fill"):
            plain.pop(name, None)
        plain[f"{column.reads}s"] = [column.text(column.low), column.text(column.high)]
        if column.fill is not None:
            plain["fill"] = column.text(column.fill)
    return plain


def _written(column: Any, always: tuple[str, ...]) -> str:
    names = [
        field.name
        for field in fields(column)
        if field.name in always or getattr(column, field.name) != field.default
    ]
    held = {name: getattr(column, name) for name in names}
    if isinstance(column, Date):
        held |= {name: column.text(held[name]) for name in ("low", "high")}
        held.pop("integer")
    told = ", ".join(f"{name}={value!r}" for name, value in held.items())
    return f"{type(column).__name__}({told})"


def _set(column: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(column, name, value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _codes(given: object) -> tuple[Any, ...]:
    """Codes of missing values, given one or several."""
    if isinstance(given, str) or not np.iterable(given):
        given = (given,)
    return tuple(_plain(code) for code in given if not is_missing(code))


def _number(**named: Any) -> float:
    [(name, value)] = named.items()
    number = math.nan
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if real:
        with contextlib.suppress(OverflowError):  # of a whole number beyond floats
            number = float(value)
    if not math.isfinite(number):
        raise value_error("schema.number_not_finite", name=name, value=value)
    return number


def _edges(given: Any) -> tuple[float, ...]:
    edges = np.asarray(given, dtype=float)
    sound = edges.ndim == 1 and edges.size >= 2 and np.all(np.isfinite(edges))
    if not sound or not np.all(np.diff(edges) > 0):
        raise value_error("schema.bins_invalid", given=given)
    return tuple(edges.tolist())


# -- code book from the parameters of an estimator that was given none -----------------


def entries(
    names: list[Hashable],
    bounds: Any,
    categories: Mapping[Hashable, Sequence[Any]] | None,
    amounts: Sequence[Hashable],
) -> dict[Hashable, Column]:
    """Return an entry for each column; see `Schema.from_parameters`."""
    categories = dict(categories or {})
    named = {
        "categories": categories,
        "amounts": amounts,
        "bounds": bounds if isinstance(bounds, dict) else (),
    }
    for parameter, given in named.items():
        unknown = [name for name in given if name not in names]
        if unknown:
            raise value_error(
                "schema.columns_not_in_table",
                parameter=parameter,
                unknown=unknown,
                names=names,
            )
    both = [name for name in categories if name in {*named["bounds"], *amounts}]
    if both:
        raise value_error("schema.category_and_number", both=both)
    check_bounds(bounds)
    numbers = [name for name in names if name not in categories]
    if isinstance(bounds, dict):
        pairs = {name: bounds[name] for name in numbers if name in bounds}
    elif bounds is None or isinstance(bounds, str):
        pairs = {}
    else:
        found = resolve_bounds(bounds, len(numbers))
        assert found is not None  # given outright
        pairs = dict(zip(numbers, zip(found.low, found.high, strict=True), strict=True))
    lacking = [name for name in numbers if name not in pairs]
    if lacking:
        raise value_error("schema.columns_without_bounds", lacking=lacking)
    return {
        name: Category(tuple(categories[name]))
        if name in categories
        # bounds alone do not say that a value may be missing
        else Number(
            pairs[name][0], pairs[name][1], amount=name in amounts, missing=False
        )
        for name in names
    }
