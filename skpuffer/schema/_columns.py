"""Entries of a code book: numeric and categorical columns."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_count, check_option, check_positive
from skpuffer.utils._bounds import check_bounds, check_interval, resolve_bounds

from ._cells import (
    AT_ONCE,
    cell_key,
    column_arrays,
    is_missing,
    level_codes,
    numbers,
    refuse_ambiguous,
)

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Table

    from ._schema import Schema


#: Bins of a column at most: more are hardly met, and have to be held.
MOST_BINS = 2**20

#: What an entry may be written as.
_KINDS = Statement("schema.entry_kinds")


@dataclass(frozen=True)
class Number:
    """Numeric column of a code book.

    Parameters
    ----------
    low, high : float
        Public bounds; a value outside of them is read as the nearer one.
    integer : bool, default=False
        Whether values are whole numbers.
    amount : bool, default=False
        Whether it is an amount with a heavy tail (money, say): its cells and its scale
        are those of the logarithm, of ``x + 1``, or of ``x`` where `low` is positive.
    bins : int or tuple of float, default=None
        Number of equal cells, or the edges of the cells. None leaves it to whoever bins
        the column.
    missing : tuple, default=()
        Codes that mean a missing value, besides None and NaN.
    missing_level : bool, default=False
        Whether missing values have a level of their own; otherwise they are read as
        `fill`.
    fill : float, default=None
        Public number that stands for a missing one; None is the middle of the bounds,
        for an amount that of their logarithms.
    unit : str, default=None
        Unit of the values, for people.
    centre, spread : float, default=None
        Public mean and standard deviation where they are known, of an amount those of
        its logarithm: encodings are centred there, and scaled to two deviations.

    Raises
    ------
    ValueError
        If the bounds are not finite numbers ``low < high``, or another field is not as
        it must be.

    Examples
    --------
    >>> from skpuffer.schema import Number
    >>> Number(17, 90, integer=True, unit="years")
    Number(low=17.0, high=90.0, integer=True, unit='years')
    """

    low: float
    high: float
    integer: bool = False
    amount: bool = False
    bins: int | tuple[float, ...] | None = None
    missing: tuple[Any, ...] = ()
    missing_level: bool = False
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
        _set(
            self,
            low=low,
            high=high,
            bins=bins,
            missing=_codes(self.missing),
            fill=None if fill is None else float(fill),
            **{
                name: check_option((True, False), **{name: getattr(self, name)})
                for name in ("integer", "amount", "missing_level")
            },
        )

    @property
    def filling(self) -> float:
        """Number that stands for a missing one."""
        if self.fill is not None:
            return self.fill
        usual = self.centre
        if usual is None:
            low, high = self.scale(np.array([self.low, self.high]))
            # halved first: the sum of two large bounds could overflow
            usual = low / 2 + high / 2
        middle = float(np.clip(self.unscale(np.array(usual)), self.low, self.high))
        return float(np.floor(middle)) if self.integer else middle

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

    def __repr__(self) -> str:
        return _written(self, ("low", "high"))


def _log1p(column: Number, values: Floats) -> Floats:
    logarithms: Floats = np.log1p(values - min(column.low, 0.0))
    return logarithms


@dataclass(frozen=True)
class Category:
    """Categorical column of a code book.

    Parameters
    ----------
    levels : tuple
        Public levels, all that are possible; each once. See the notes on how cells are
        compared with them.
    ordered : bool, default=False
        Whether their order says something, as that of school grades.
    missing : tuple, default=()
        Codes that mean a missing value, besides None and NaN.
    missing_level : bool, default=True
        Whether missing values, and levels that are not listed, have a level of their
        own; otherwise they are read as `fill`.
    fill : level, default=None
        Public level that stands for a missing one; None is the first.
    unit : str, default=None
        What is counted, for people.
    shares : tuple of float, default=None
        Public shares of the levels where they are known: encodings are centred by them.

    Raises
    ------
    ValueError
        If no levels are listed, `fill` is none of them, or some reader of files takes a
        level for missing or two levels for one.

    Notes
    -----
    Readers of files give a column one type by all of its cells. So a cell is compared
    with the levels by what was written, and never by the type of its column:

    - 1, 1.0, "1", "1.0" and "01" are one level, and so are numbers that are equal in
      double precision.
    - True, "true" and "yes" are one level with 1; False, "false" and "no" with 0, in
      any case of the letters. DuckDB reads "T" and "F" so as well.
    - Dates of any type and unit, and texts such as "2020-01-31", are one level for each
      day; those with a time and a zone for each moment.
    - Other texts are compared without the space around them.

    Three kinds of levels are therefore refused: texts that some reader takes for
    missing ("NA", "null", "None", "nan", ""), two levels that some reader takes for one
    ("1" and "01", "yes" and 1), and dates whose day some readers find by other rows
    ("01/02/2020"). Rename such levels in the table and in the schema.

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
    def filling(self) -> int:
        """Code of the level that stands for a missing one."""
        return 0 if self.fill is None else self.levels.index(self.fill)

    def __repr__(self) -> str:
        return _written(self, ())


Column: TypeAlias = Number | Category


def as_column(name: Any, given: Any) -> Column:
    """Return an entry of a code book from what a user may write.

    Parameters
    ----------
    name : str or int
        Of the column, for messages.
    given : Number, Category, pair of numbers, list of levels, or dict
        A tuple of two different numbers is a pair of bounds, any other list one of
        levels; a dict holds the fields of either, and bounds also as ``'bounds'``.

    Raises
    ------
    ValueError
        Naming the column.
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
    if "bounds" in given:
        bounds = given.pop("bounds")
        if np.shape(bounds) != (2,) or {"low", "high"} & given.keys():
            raise value_error("schema.bounds_not_a_pair", bounds=bounds)
        given |= dict(zip(("low", "high"), bounds, strict=True))
    kind = Category if "levels" in given else Number
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
    found: Column = kind(**given)
    return found


def differing_fields(column: Column) -> dict[str, Any]:
    """Fields of a column that are not at their defaults, as plain data."""
    held = asdict(column)
    return {
        field.name: list(held[field.name])
        if isinstance(held[field.name], tuple)
        else held[field.name]
        for field in fields(column)
        if held[field.name] != field.default
    }


def _written(column: Any, always: tuple[str, ...]) -> str:
    names = [
        field.name
        for field in fields(column)
        if field.name in always or getattr(column, field.name) != field.default
    ]
    told = ", ".join(f"{name}={getattr(column, name)!r}" for name in names)
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
        else Number(pairs[name][0], pairs[name][1], amount=name in amounts)
        for name in names
    }


# -- public cells of a table's columns -------------------------------------------------


#: What cells are of.
LEVELS, ORDERED, AMOUNT = "levels", "ordered", "amount"


@dataclass(frozen=True)
class Binning:
    """Public map from the rows of a table to one cell a column.

    Levels are cells as they are, and so are whole numbers of no more values than
    `n_bins`; other numbers fall into equal cells of their bounds, amounts into equal
    cells of the logarithm. A column with a level for missing values has it as its last
    cell. Each row is read by itself, and whatever it holds has a cell.

    Parameters
    ----------
    schema : Schema
    n_bins : int, default=32
        Cells of a number for which the schema does not say how many.
    n_amount_bins : int, default=256
        The same, of an amount.

    Attributes
    ----------
    names : tuple
        Of the columns.
    n_cells : tuple of int
        Number of cells of each column.
    kinds : tuple of {'levels', 'ordered', 'amount'}
        Whether the order of cells says something, and of what they are.
    has_missing : tuple of bool
        Whether the last cell is that of missing values.
    edges : tuple of ndarray or None
        Of the cells of numbers, one more than there are, in the column's unit.
    values : tuple of list
        What stands for each cell: a level, the middle of a cell, None if missing.

    Examples
    --------
    >>> from skpuffer.schema import Schema
    >>> schema = Schema({"age": (0, 100), "sex": ["F", "M"]})
    >>> binning = schema.binning(n_bins=4)
    >>> binning.n_cells
    (4, 3)
    >>> binning([[30, "M"], [170, None]])
    array([[1, 1],
           [3, 2]], dtype=uint8)
    """

    schema: Schema
    n_bins: int = 32
    n_amount_bins: int = 256
    names: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    n_cells: tuple[int, ...] = field(init=False, repr=False, compare=False)
    kinds: tuple[str, ...] = field(init=False, repr=False, compare=False)
    has_missing: tuple[bool, ...] = field(init=False, repr=False, compare=False)
    edges: tuple[Floats | None, ...] = field(init=False, repr=False, compare=False)
    values: tuple[list[Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(n_bins=self.n_bins, most=MOST_BINS)
        check_count(n_amount_bins=self.n_amount_bins, most=MOST_BINS)
        columns = [self.schema[name] for name in self.schema.names]
        edges = tuple(self._edges_of(column) for column in columns)
        missing = tuple(column.missing_level for column in columns)
        values = tuple(map(_values, columns, edges))
        found = {
            "names": self.schema.names,
            "edges": edges,
            "has_missing": missing,
            "kinds": tuple(map(_kind, columns)),
            "values": values,
            "n_cells": tuple(map(len, values)),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def _edges_of(self, column: Column) -> Floats | None:
        if isinstance(column, Category):
            return None
        if isinstance(column.bins, tuple):
            return np.asarray(column.bins)
        if column.bins is None and column.integer and not column.amount:
            low, high = np.ceil(column.low), np.floor(column.high)
            if high - low < self.n_bins and high > low:
                return np.arange(low, high + 2) - 0.5
        count = column.bins or (self.n_amount_bins if column.amount else self.n_bins)
        low, high = column.scale(np.array([column.low, column.high]))
        inner = column.unscale(np.linspace(low, high, count + 1)[1:-1])
        # the ends are the bounds themselves, whatever a logarithm rounds to
        return np.concatenate([[column.low], inner, [column.high]])

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Statement("assume.schema_fixed_beforehand")
    leaks = ()

    def __call__(self, X: Table) -> Indices:
        """Return the cell of each value.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)
            A frame may have other columns too.

        Returns
        -------
        codes : ndarray of shape (n, n_columns)
            Unsigned, in Fortran order: whoever counts reads column by column.

        Raises
        ------
        ValueError
            If a column is not there.
        """
        arrays = column_arrays(X, self.names)
        largest = max(self.n_cells, default=1) - 1
        kind = np.min_scalar_type(largest)
        codes = np.empty((len(arrays[0]), len(arrays)), dtype=kind, order="F")
        # some rows at a time: what is made on the way stays small
        for start in range(0, len(codes), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            for k, values in enumerate(arrays):
                codes[rows, k] = self._codes_of(k, values[rows])
        return codes

    def _codes_of(self, k: int, values: Any) -> Indices:
        column, edges = self.schema[self.names[k]], self.edges[k]
        if isinstance(column, Category):
            return level_codes(column, values)
        assert edges is not None
        found, missing = numbers(column, values)
        # closed below and open above, the ends without end
        codes = np.searchsorted(edges[1:-1], found, side="right")
        if column.missing_level:
            codes[missing] = self.n_cells[k] - 1
        return codes

    def labels(self, k: int) -> list[str]:
        """Return a text for each cell of a column."""
        column, edges = self.schema[self.names[k]], self.edges[k]
        if edges is None or _whole(column, edges):
            texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in self._of(k)]
        else:
            texts = [
                f"[{low:.4g}, {high:.4g})"
                for low, high in zip(edges[:-1], edges[1:], strict=True)
            ]
            texts[-1] = texts[-1][:-1] + "]"
        return texts + ["missing"] * self.has_missing[k]

    def _of(self, k: int) -> list[Any]:
        values = self.values[k]
        return values[:-1] if self.has_missing[k] else values


def _kind(column: Column) -> str:
    if isinstance(column, Number):
        return AMOUNT if column.amount else ORDERED
    return ORDERED if column.ordered else LEVELS


def _whole(column: Column, edges: Floats) -> bool:
    """Whether each cell is one whole number."""
    integer = isinstance(column, Number) and column.integer
    return integer and bool(np.all(np.diff(edges) == 1) and edges[0] % 1 == 0.5)


def _values(column: Column, edges: Floats | None) -> list[Any]:
    if isinstance(column, Category):
        found = list(column.levels)
    else:
        assert edges is not None
        scaled = column.scale(edges)
        if _whole(column, edges):
            found = (edges[:-1] + 0.5).tolist()
        else:
            found = column.unscale((scaled[:-1] + scaled[1:]) / 2).tolist()
    return found + [None] * column.missing_level
