"""What is released of a table, from public facts alone."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.releases import Sensitivity, Stage
from skpuffer.utils._checks import project_on_simplex

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices


#: Stages of the release, by position.
MARGINS, SCORES, TABLES = range(3)

#: Noise that a structure may have: length (l2) of that of a margin, as a share of the
#: records. Below it, on seven real tables of 8 to 33 columns, links gained more of the
#: pairs' total variation than the margins lost by the budget that went to links.
_AFFORDABLE = 0.0225

#: Noise of a pair's score that still tells linked columns from others, as a share of
#: the records, of which a score is seldom a half. Laplace noise, which grows with the
#: number of pairs, meets this bound before the other one.
_TELLING = 0.2


@dataclass(frozen=True)
class Budget:
    """The available noise: its deviation on a release of sensitivity one.

    The sensitivity is meant in `relation` and `norm`.
    """

    deviation: float
    relation: str
    norm: float


@dataclass(frozen=True)
class Structure:
    """Kinds of tables that are released.

    `n_cells`: cells of each column, the classes not among them. `n_classes`: cells of
    the target, which every table is crossed with; one without a target. `linked`:
    whether columns are linked by a tree, or independent.
    """

    n_cells: tuple[int, ...]
    n_classes: int = 1
    linked: bool = True

    @property
    def n_columns(self) -> int:
        """Number of columns besides the target."""
        return len(self.n_cells)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of columns; without any there is nothing to link."""
        return len(pairs_of(self.n_columns)) if self.linked else 0

    @property
    def margin_cells(self) -> int:
        """Number of counts in all margins, by class."""
        return self.n_classes * sum(self.n_cells)

    @property
    def margin_sensitivity(self) -> Sensitivity:
        """Sensitivity of counts in one table a column, each record in one cell."""
        v = self.n_columns
        # replaced, a record moves two cells of each table
        return Sensitivity(
            add_remove={1: v, 2: math.sqrt(v)},
            replace={1: 2 * v, 2: math.sqrt(2 * v)},
        )

    def noise_share(self, n_records: int, budget: Budget) -> float:
        """Return the l2 noise of a mean margin, as a share of the records.

        It is for the whole budget: the root of the number of counts times their
        deviation.
        """
        unit = self.margin_sensitivity.value(budget.relation, budget.norm, None)
        lengths = [math.sqrt(self.n_classes * cells) for cells in self.n_cells]
        mean = math.fsum(lengths) / self.n_columns
        return mean * unit * budget.deviation / n_records

    def score_noise(
        self, n_records: int, budget: Budget, shares: Sequence[float]
    ) -> float:
        """Return the deviation of a pair's score, as a share of the records."""
        if not self.n_pairs:
            return 0.0
        scores = self.stages(shares, budget.norm)[SCORES]
        return scores.unit(budget.relation, budget.norm) * budget.deviation / n_records

    def stages(self, shares: Sequence[float], norm: float) -> tuple[Stage, ...]:
        """Return the stages of the release: margins, scores and tables of links.

        All are counts or sums of absolute differences with public numbers, so that the
        record's cell in each of some tables, or each score, moves by one.
        """
        v, pairs, tables = self.n_columns, self.n_pairs, self.margin_sensitivity
        if not pairs:
            return (Stage("margins", self.margin_cells, tables, 1.0),)
        scores = Sensitivity(
            add_remove={1: pairs, 2: math.sqrt(pairs)},
            # both ways at once: a score may move by two
            replace={1: 2 * pairs, 2: 2 * math.sqrt(pairs)},
        )
        # The tables are scaled to fill the sensitivity in the norm of the noise, see
        # `table_scale`; in l1 their l2 norm is no smaller than that of one table.
        scaled = tables
        if norm == 1.0:
            scaled = Sensitivity(add_remove={1: v}, replace={1: 2 * v})
        return (
            Stage("margins", self.margin_cells, tables, shares[MARGINS]),
            Stage("scores of pairs", pairs, scores, shares[SCORES]),
            Stage("tables of links", self._table_cells(), scaled, shares[TABLES]),
        )

    def _table_cells(self) -> int:
        """Most counts there can be in the tables of links and unlinked columns."""
        sizes = [self.n_cells[i] * self.n_cells[j] for i, j in pairs_of(self.n_columns)]
        largest = heapq.nlargest(self.n_columns - 1, sizes)
        return self.n_classes * sum(largest) + self.margin_cells

    def table_scale(self, n_tables: int, norm: float) -> float:
        """Return the factor that makes some tables as sensitive as one a column."""
        return float((self.n_columns / n_tables) ** (1 / norm))


def affordable(
    wishes: Sequence[Structure],
    n_records: int,
    budget: Budget,
    shares: Sequence[float],
) -> Structure:
    """Return the first structure that the noise allows, by public numbers.

    It is the last one with independent columns, where the noise allows none.
    """
    for wish in wishes:
        told = wish.score_noise(n_records, budget, shares) <= _TELLING
        if told and wish.noise_share(n_records, budget) <= _AFFORDABLE:
            return wish
    return replace(wishes[-1], linked=False)


# -- exact counts that the releases read: they never leave without noise ---------------


def pairs_of(n_columns: int) -> list[tuple[int, int]]:
    """List the pairs (i, j), i < j, of columns, in the order of their scores."""
    return list(combinations(range(n_columns), 2))


def joint_counts(columns: Sequence[Indices], n_cells: Sequence[int]) -> Floats:
    """Count the records of every combination of cells of some columns.

    One record stands in one cell: added or removed it moves the counts by one (l1 and
    l2), replaced by 2 (l1) or the root of 2 (l2).
    """
    # one code for each combination and no indicator columns: n integers, whatever the
    # number of cells
    joint = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], n_cells[1:], strict=True):
        joint *= size
        joint += column
    counts = np.bincount(joint, minlength=int(np.prod(n_cells)))
    return counts.reshape(n_cells).astype(float)


def dependence_scores(
    classes: Indices,
    cells: Sequence[Indices],
    margins: Sequence[Floats],
    pairs: Iterable[tuple[int, int]],
) -> Iterator[float]:
    """Yield how far pairs of columns are from independence within the classes.

    The score is the sum of absolute differences between the counts of (class and) both
    columns and those of independent columns by the *released* margins. As these are
    public, one record moves one cell of one table a pair: each score by at most one
    where it is added or removed, and by two where it is replaced. Each class has one
    mass in all margins.
    """
    n_classes = len(margins[0])
    for i, j in pairs:
        expected = independent_table(margins[i], margins[j])
        counts = joint_counts(
            [classes, cells[i], cells[j]], (n_classes, *expected.shape[1:])
        )
        yield float(np.abs(counts - expected).sum())


def independent_table(rows: Floats, columns: Floats) -> Floats:
    """Return counts (n_classes, a, b) of two columns independent within the classes.

    Both are non-negative, with the same sum in each class.
    """
    masses = rows.sum(axis=1, keepdims=True)
    shares = rows / np.where(masses > 0, masses, 1.0)
    return shares[:, :, None] * columns[:, None, :]


# -- noisy tables made consistent: means, projections and Sinkhorn's scaling -----------


# Alternations between the tables of given margins and the non-negative ones, and of
# scaling rows and columns.
_ALTERNATIONS = 20
_SCALINGS = 100

#: How near scaling comes to the margins, as a share of the mass, before an exact step
#: makes up for what is left.
_NEAR = 1e-9

#: Share of the independent table in what is scaled: a cell of zero would stay one, and
#: a row of zeros cannot be scaled to a positive margin.
_SMOOTHING = 1e-6


class WeightedMean:
    """Mean of independent unbiased estimates, each weighted by its inverse variance."""

    def __init__(self) -> None:
        self._weighted: Floats | float = 0.0
        self._weight: Floats | float = 0.0

    def add(self, estimate: Floats, variance: ArrayLike) -> None:
        """Take in an estimate, with the variance of each entry."""
        weight = 1 / np.asarray(variance, dtype=float)
        self._weighted = self._weighted + weight * estimate
        self._weight = self._weight + weight

    @property
    def value(self) -> Floats:
        """The mean of least variance."""
        return np.asarray(self._weighted / self._weight)


def project_on_mass(values: Floats, mass: ArrayLike) -> Floats:
    """Return the nearest non-negative vectors (..., m) of given sums (...,)."""
    mass = np.asarray(mass, dtype=float)[..., None]
    scale = np.where(mass > 0, mass, 1.0)
    return mass * project_on_simplex(values / scale)


def project_on_groups(values: Floats, groups: Indices, masses: Floats) -> Floats:
    """Return the nearest non-negative vectors whose groups have given sums.

    `values` (..., n_cells), `groups` (n_cells,) and non-negative `masses` (...,
    n_groups).
    """
    nearest = np.empty_like(values)
    for group in range(masses.shape[-1]):
        inside = groups == group
        nearest[..., inside] = project_on_mass(values[..., inside], masses[..., group])
    return nearest


def project_on_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the nearest tables (n_classes, a, b) with given sums of rows and columns.

    Rows and columns have the same sum in each class. Entries may be negative.
    """
    a, b = table.shape[1:]
    of_rows = rows - table.sum(axis=2)
    of_columns = columns - table.sum(axis=1)
    # in both corrections, so once too often
    common = of_rows.sum(axis=1) / (a * b)
    nearest: Floats = (
        table
        + of_rows[:, :, None] / b
        + of_columns[:, None, :] / a
        - common[:, None, None]
    )
    return nearest


def scale_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale non-negative tables (n_classes, a, b) to given sums of rows and columns.

    The sums hold up to rounding, also where cells, rows or columns of `table` are zero.

    Sinkhorn (1967), Diagonal equivalence to matrices with prescribed row and column
    sums; Altschuler, Weed and Rigollet (2017), Algorithm 2 (the last, exact step).
    """
    mass = rows.sum(axis=1)
    table = table * _ratio(mass, table.sum(axis=(1, 2)))[:, None, None]
    # some mass in every cell that the margins allow, so that it can be scaled
    table = (1 - _SMOOTHING) * table + _SMOOTHING * independent_table(rows, columns)
    for _ in range(_SCALINGS):
        table = table * _ratio(rows, table.sum(axis=2))[:, :, None]
        found = table.sum(axis=1)
        if np.all(np.abs(found - columns).sum(axis=1) <= _NEAR * mass):
            break
        table = table * _ratio(columns, found)[:, None, :]
    # down to both margins; what then lacks is added as an independent table
    table = table * np.minimum(1, _ratio(rows, table.sum(axis=2)))[:, :, None]
    table = table * np.minimum(1, _ratio(columns, table.sum(axis=1)))[:, None, :]
    lacking = (
        np.maximum(rows - table.sum(axis=2), 0),
        np.maximum(columns - table.sum(axis=1), 0),
    )
    exact: Floats = table + independent_table(*lacking)
    return exact


def fit_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Make noisy tables non-negative and consistent with their non-negative margins.

    `table` (n_classes, a, b) has noise of one scale in every cell; the margins have the
    same sum in each class.
    """
    for _ in range(_ALTERNATIONS):
        table = np.maximum(project_on_margins(table, rows, columns), 0.0)
    return scale_to_margins(table, rows, columns)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotients, zero where the denominator is."""
    positive = denominator > 0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), 0.0)
