"""Public coding of a table: each value is read as one of finitely many declared."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import restating
from skpuffer.schema import Binning, Schema
from skpuffer.schema._cells import (
    cell_key,
    cell_numbers,
    level_places,
    refuse_ambiguous,
)

from ._tables import ordered


@dataclass(frozen=True, eq=False)
class Numbers:
    """Declared numbers of one column, each with the interval that is read as it.

    Parameters
    ----------
    edges : ndarray of shape (n - 1,)
        Between the intervals, ascending. An edge belongs to the lower one.
    values : ndarray of shape (n,)
    """

    edges: Floats
    values: NDArray[Any]

    def codes(self, column: Any) -> Indices:
        """Index of the number that each value is read as."""
        return np.searchsorted(self.edges, cell_numbers(np.asarray(column)))

    def read(self, column: Any) -> NDArray[Any]:
        """Return each value as it is read; what is missing stays missing."""
        numbers = cell_numbers(np.asarray(column))
        missing = np.isnan(numbers)
        read: NDArray[Any] = self.values[np.searchsorted(self.edges, numbers)]
        return np.where(missing, np.nan, read) if missing.any() else read

    @property
    def places(self) -> Floats:
        """Position of each number, such that all lie within a distance of one."""
        width = float(np.ptp(self.values)) or 1.0
        return (np.asarray(self.values, dtype=float) / width)[:, None]


@dataclass(frozen=True, eq=False)
class Levels:
    """Declared values of one column that are no numbers.

    Parameters
    ----------
    values : ndarray of object of shape (n,)
        Any other value is as far from each of them, and is read as the first.
    """

    values: NDArray[np.object_]

    def codes(self, column: Any) -> Indices:
        """Index of the level that each value is read as."""
        return np.maximum(level_places(self.values.tolist(), np.asarray(column)), 0)

    def read(self, column: Any) -> NDArray[Any]:
        """Return each value as it is read."""
        return self.values[self.codes(column)]

    @property
    def places(self) -> Floats:
        """Position of each level: any two are at a distance of one, in l1."""
        return 0.5 * np.eye(len(self.values))


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one column of a code book, each read as what stands for it.

    Parameters
    ----------
    binning : Binning
        Binning of this column alone.
    """

    binning: Binning

    @cached_property
    def values(self) -> NDArray[Any]:
        """Value of each cell; NaN or None for missing values."""
        held = self.binning.values[0]
        if self.binning.edges[0] is not None:
            return np.array(held, dtype=float)
        levels = np.empty(len(held), dtype=object)
        levels[:] = held
        return levels

    @property
    def edges(self) -> Floats | None:
        """Between the cells of a number."""
        return self.binning.edges[0]

    def codes(self, column: Any) -> Indices:
        """Index of the cell that each value is in."""
        values = np.asarray(column)[:, None]
        if values.dtype.kind == "c":  # as objects, of which none is refused
            values = values.astype(object)
        return self.binning(values)[:, 0].astype(np.intp)

    def read(self, column: Any) -> NDArray[Any]:
        """Return each value as it is read."""
        return self.values[self.codes(column)]

    @property
    def places(self) -> Floats:
        """Position of each cell, such that all lie within a distance of one, in l1."""
        if self.edges is None:
            return 0.5 * np.eye(len(self.values))
        missing = np.isnan(self.values)
        known = self.values[~missing]
        width = float(np.ptp(known)) or 1.0
        # a missing value is as far from every number
        line = np.where(missing, 0.0, (self.values - known.mean()) / width)
        return np.column_stack([line, missing.astype(float)])


@dataclass(frozen=True, eq=False)
class Coding:
    """Coding of some columns of a table; the others stay as they are.

    Parameters
    ----------
    columns : dict of {column: Numbers, Levels or Cells}
    """

    columns: Mapping[Hashable, Numbers | Levels | Cells]

    def read(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with every value as it is read."""
        frame = frame.copy()
        for name in frame.columns:
            if name in self.columns:
                frame[name] = self.columns[name].read(frame[name])
        return frame

    def codes(self, frame: pd.DataFrame, names: Iterable[Hashable]) -> Indices:
        """Index of the value that each cell is read as, for some of the columns."""
        found = [self.columns[name].codes(frame[name]) for name in names]
        if not found:
            return np.zeros((len(frame), 0), dtype=np.intp)
        return np.column_stack(found)

    def places(self, codes: Indices, names: Iterable[Hashable]) -> Floats:
        """Positions of coded rows: columns add up, each at most one apart, in l1."""
        parts = [
            self.columns[name].places[column]
            for name, column in zip(names, codes.T, strict=True)
        ]
        return np.hstack(parts) if parts else np.zeros((len(codes), 0))


def coding_of(
    frame: pd.DataFrame,
    bins: Mapping[Hashable, Any] | Schema,
    names: Iterable[Hashable],
) -> Coding:
    """Return the coding of columns of a public table; see :class:`BinnedLaw`."""
    if isinstance(bins, Schema):
        # each by itself, so that one column can be read without the others
        return Coding({n: Cells(Schema({0: bins[n]}).binning()) for n in names})
    found = {name: column_coding(frame[name], bins.get(name), name) for name in names}
    return Coding(found)


def column_coding(column: pd.Series, bins: Any, name: Hashable) -> Numbers | Levels:
    """Return the coding of one column of a public table; see :class:`BinnedLaw`."""
    if column.isna().any():
        raise scenario_error("prior.rows_missing_values", name=name)
    kind = column.dtype
    numeric = pd.api.types.is_numeric_dtype(kind) and not (
        pd.api.types.is_bool_dtype(kind) or pd.api.types.is_complex_dtype(kind)
    )
    if not numeric:
        return _levels(column, bins, name)
    numbers = column.to_numpy(dtype=float)
    if not np.all(np.isfinite(numbers)):
        raise scenario_error("prior.rows_infinite", name=name)
    if bins is None:
        values = np.unique(numbers)
        # in the type they have: labels that are integers stay integers
        own = np.unique(column.to_numpy())
        edges = (values[:-1] + values[1:]) / 2
        return Numbers(edges, own if len(own) == len(values) else values)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise _wrong(name, Statement("prior.bins_not_one_bin"))
        shares = np.linspace(0, 1, int(bins) + 1)[1:-1]
        edges = np.unique(np.quantile(numbers, shares, method="lower"))
    else:
        try:
            edges = np.asarray(bins, dtype=float)
        except (TypeError, ValueError):
            edges = np.array([np.nan])
        ascending = edges.ndim == 1 and np.all(np.diff(edges) > 0)
        if not ascending or not np.all(np.isfinite(edges)):
            raise _wrong(name, Statement("prior.bins_not_ascending_edges"))
    # bins without public rows are not declared: the nearest one that is takes them
    numbers = np.sort(numbers)
    there, first, count = np.unique(
        np.searchsorted(edges, numbers), return_index=True, return_counts=True
    )
    # a mean within its bin, whatever rounding says: read again it is read as itself
    last = first + count - 1
    values = np.clip(
        np.add.reduceat(numbers, first) / count, numbers[first], numbers[last]
    )
    between = (values[:-1] + values[1:]) / 2
    adjacent = np.diff(there) == 1
    return Numbers(np.where(adjacent, edges[there[:-1]], between), values)


def _levels(column: pd.Series, bins: Any, name: Hashable) -> Levels:
    values = ordered(dict.fromkeys(column.to_numpy(dtype=object).tolist()))
    if bins is not None:
        if isinstance(bins, str | Integral) or not isinstance(bins, Iterable):
            raise _wrong(name, Statement("prior.bins_need_levels"))
        known = set(map(cell_key, values))
        listed = list(dict.fromkeys(bins))
        # what public rows lack has no mass, whatever is listed
        values = [value for value in listed if cell_key(value) in known]
        if len(set(map(cell_key, values))) < len(known):
            raise _wrong(name, Statement("prior.bins_lack_seen_values"))
    with restating("prior.column_levels_unreadable", name=name):
        refuse_ambiguous(values, "rows")
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return Levels(held)


def _wrong(name: Hashable, what: Statement) -> ScenarioError:
    return ScenarioError(
        Statement("prior.bins_invalid_at_column", name=name, what=what)
    )


# -- the target among the columns of public rows ---------------------------------------


#: Values of a column that are told apart; of more numbers, tenths of the records are.
_MOST_LEVELS = 64

#: How often the target may differ from the secret, relative to chance, and how likely
#: an agreement by chance may be.
_DIFFERENT, _BY_CHANCE = 0.1, 1e-6


def check_target(scenario: Any, context: PublicContext) -> None:
    """Refuse a target of another name than the one that is declared."""
    names = {scenario.target, context.target_name}
    if len(names) > 1 and all(isinstance(name, str) for name in names):
        raise scenario_error(
            "target.name_differs_from_data",
            target=scenario.target,
            target_name=context.target_name,
        )


def target_of(scenario: Any, context: PublicContext) -> Hashable | None:
    """Name of the target among the columns of public rows, or None."""
    # of several, one name says nothing
    if context.n_targets > 1:
        return None
    if scenario.target is not None:
        return scenario.target
    return context.target_name


def target_statement(scenario: Any, context: PublicContext) -> Statement:
    """Return what a certificate says of which column the target is."""
    name = target_of(scenario, context)
    target = (
        Statement("assume.target_unnamed")
        if name is None
        else Statement("assume.target_named", name=name)
    )
    if name is not None and name == scenario.column:
        return Statement("assume.target_is_secret", target=target)
    return Statement(
        "assume.target_is_not_secret", target=target, column=scenario.column
    )


def target_leaks(
    scenario: Any, y: Any, secret: Any, name: Hashable | None
) -> tuple[Statement, ...]:
    """Return a sentence if the target is nearly the secret; refuse if it is the secret.

    Notes
    -----
    The values are compared, whatever codes either has. The target is nearly the secret
    if one is guessed from the other with at most a tenth of the errors of independent
    columns with the same shares, and these would agree so well with a probability below
    1e-6. Numbers of many values are compared by tenths of the records.

    The answer depends on private rows. It can only take a promise away, and one record
    changes it only for tables at the threshold.
    """
    inner = getattr(scenario, "scenario", scenario)
    column = getattr(inner, "column", None)
    if y is None or secret is None or column is None:
        return ()
    if column in (name, getattr(inner, "target", None)):
        return ()
    leaks: tuple[Statement, ...] = ()
    for target in np.asarray(y, dtype=object).reshape(len(secret), -1).T:
        equal, nearly = _agreement(_codes_of_target(target), _codes_of_target(secret))
        if equal:
            raise scenario_error("target.is_secret_recoded", column=column)
        if nearly:
            leaks = (Statement("target.nearly_secret_recoded", column=column),)
    return leaks


def _codes_of_target(values: Any) -> Indices:
    """Code of each value, or of the tenth of the records it is in where there are many.

    What is missing has a code of its own.
    """
    texts = pd.Series(np.asarray(values, dtype=object)).map(text_of)
    codes, levels = pd.factorize(texts)
    if len(levels) <= min(_MOST_LEVELS, max(2, len(codes) // 10)):
        return np.asarray(codes, dtype=np.intp)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    if np.isnan(numbers).mean() > 0.5:
        numbers = pd.util.hash_array(texts.to_numpy(dtype=object)).astype(float)
    edges = np.nanquantile(numbers, np.linspace(0, 1, 11)[1:-1])
    return np.searchsorted(np.unique(edges), numbers)


def text_of(value: Any) -> str:
    """Return the text of a cell, an empty one if it has none."""
    try:
        return str(value)
    except Exception:  # a cell may be anything, and must neither raise nor be quoted
        return ""


def _agreement(first: Indices, second: Indices) -> tuple[bool, bool]:
    """Whether two codes are one another's recoding, and whether they nearly are."""
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    n, freedom = len(first), (table.shape[0] - 1) * (table.shape[1] - 1)
    if not freedom:
        return False, False
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / n
    statistic = 2 * special.rel_entr(table, expected).sum()
    if stats.chi2.sf(statistic, freedom) >= _BY_CHANCE:
        return False, False
    nearly = any(
        n - side.max(axis=1).sum()
        <= _DIFFERENT * (n - (side.sum(axis=0) ** 2).sum() / n)
        for side in (table, table.T)
    )
    return bool(
        np.all((table > 0).sum(axis=0) == 1) and len(set(table.shape)) == 1
    ), nearly
