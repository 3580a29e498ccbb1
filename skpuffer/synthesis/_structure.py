"""What is released of a table, from public facts alone."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skpuffer.releases import Sensitivity, Stage

from ._counts import pairs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MARGINS", "SCORES", "TABLES", "Budget", "Structure", "affordable"]

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
    """What noise is to be had.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise on a release of sensitivity one.
    relation : {'add_remove', 'replace'}
        In which the sensitivity is meant.
    norm : {1.0, 2.0}
    """

    deviation: float
    relation: str
    norm: float


@dataclass(frozen=True)
class Structure:
    """Kinds of tables that are released.

    Parameters
    ----------
    n_cells : tuple of int
        Cells of each column, the classes not among them.
    n_classes : int, default=1
        Cells of the target, which every table is crossed with; one without a target.
    linked : bool, default=True
        Whether columns are linked by a tree, or independent.
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
        """Return the noise of a mean margin that had the whole budget.

        Parameters
        ----------
        n_records : int
        budget : Budget

        Returns
        -------
        float
            Its length in l2, which is about the root of the number of its counts times
            their standard deviation, as a share of the records.
        """
        unit = self.margin_sensitivity.value(budget.relation, budget.norm, None)
        lengths = [math.sqrt(self.n_classes * cells) for cells in self.n_cells]
        mean = math.fsum(lengths) / self.n_columns
        return mean * unit * budget.deviation / n_records

    def score_noise(
        self, n_records: int, budget: Budget, shares: Sequence[float]
    ) -> float:
        """Return the noise of a pair's score.

        Parameters
        ----------
        n_records : int
        budget : Budget
        shares : sequence of 3 float

        Returns
        -------
        float
            Its standard deviation, as a share of the records.
        """
        if not self.n_pairs:
            return 0.0
        scores = self.stages(shares, budget.norm)[SCORES]
        return scores.unit(budget.relation, budget.norm) * budget.deviation / n_records

    def stages(self, shares: Sequence[float], norm: float) -> tuple[Stage, ...]:
        """Return the stages of the release.

        Parameters
        ----------
        shares : sequence of 3 float
            Parts of the budget; not read where nothing is linked.
        norm : {1.0, 2.0}
            Of the noise.

        Returns
        -------
        tuple of Stage
            Margins; scores of the pairs; tables of the links. All are counts or sums
            of absolute differences with public numbers, so that the record's cell in
            each of some tables, or each score, moves by one.
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
        """Return the factor that makes some tables as sensitive as one a column.

        Parameters
        ----------
        n_tables : int
            Tables that are released in the last stage, at most one a column.
        norm : {1.0, 2.0}

        Returns
        -------
        float
        """
        return float((self.n_columns / n_tables) ** (1 / norm))


def affordable(
    wishes: Sequence[Structure],
    n_records: int,
    budget: Budget,
    shares: Sequence[float],
) -> Structure:
    """Return the first structure that the noise allows, by public numbers.

    Parameters
    ----------
    wishes : sequence of Structure
        Best first.
    n_records : int
    budget : Budget
    shares : sequence of 3 float

    Returns
    -------
    Structure
        The last one with independent columns, where the noise allows none.
    """
    for wish in wishes:
        told = wish.score_noise(n_records, budget, shares) <= _TELLING
        if told and wish.noise_share(n_records, budget) <= _AFFORDABLE:
            return wish
    return replace(wishes[-1], linked=False)
