"""The release of a table: margins, scores of pairs and tables of links, in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._consistency import (
    WeightedMean,
    fit_to_margins,
    project_on_groups,
    project_on_mass,
)
from ._counts import dependence_scores, joint_counts, pairs_of
from ._grouping import group_cells, sum_groups
from ._model import TableModel
from ._structure import MARGINS, SCORES, TABLES, Structure
from ._tree import spanning_forest, unlinked

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._types import Floats, Indices

__all__ = ["Mechanism"]

#: Mean absolute value of Gaussian noise of deviation one, which is no smaller than that
#: of Laplace noise.
_MEAN_NOISE = math.sqrt(2 / math.pi)

#: Part of a table's noise that is left when it is made non-negative and consistent.
_LEFT = 0.5

#: Deviations of a score's noise by which a link must be better than none.
_BEYOND = 2.0


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The release of a table, executed stage by stage.

    It reads exact counts and keeps none: what it returns is made of noisy numbers.

    Parameters
    ----------
    structure : Structure
    kinds : tuple of str
        Of the columns' cells; see :class:`Binning`.
    has_missing : tuple of bool
    release : AdaptiveRelease
    noise : Noise
    """

    structure: Structure
    kinds: tuple[str, ...]
    has_missing: tuple[bool, ...]
    release: AdaptiveRelease
    noise: Noise

    def run(
        self,
        classes: Indices,
        cells: Sequence[Indices],
        rng: np.random.Generator,
        shown: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    ) -> TableModel:
        """Release a table.

        Parameters
        ----------
        classes : ndarray of int of shape (n,)
            Zeros if there is no target.
        cells : sequence of ndarray of int of shape (n,)
            Of each column.
        rng : numpy.random.Generator
        shown : callable of an iterable
            Wraps the pairs of columns, to show progress.

        Returns
        -------
        TableModel
        """
        structure = self.structure
        exact = self._margins(classes, cells, range(structure.n_columns))
        noisy = self._noisy(MARGINS, exact, rng)
        variance = self.release.deviation(MARGINS, self.noise) ** 2
        masses = self._masses([(table, variance) for table in noisy])
        margins = [project_on_mass(table, masses) for table in noisy]
        if not structure.n_pairs:
            return TableModel(tuple(margins), tuple(map(_own_groups, margins)))
        # rows of the tables that are mostly noise are put together, by what is released
        groups = self._groups(margins)
        grouped = [g[c] for g, c in zip(groups, cells, strict=True)]
        edges = self._forest(classes, grouped, margins, groups, rng, shown)
        return self._linked(classes, cells, grouped, noisy, groups, edges, rng)

    # -- the stages ---------------------------------------------------------------

    def _noisy(
        self,
        stage: int,
        tables: Sequence[Floats],
        rng: np.random.Generator,
        scale: float = 1.0,
    ) -> list[Floats]:
        """The tables of a stage with noise, each of its own shape."""
        exact = np.zeros(self.release.stages[stage].dim)
        sizes = np.cumsum([table.size for table in tables])
        # what a stage was accounted for with and does not need stays zero
        exact[: sizes[-1]] = scale * np.concatenate([t.ravel() for t in tables])
        noisy = self.release.noisy(stage, exact, self.noise, rng) / scale
        pieces = np.split(noisy, sizes)[:-1]
        return [p.reshape(t.shape) for p, t in zip(pieces, tables, strict=True)]

    def _margins(
        self, classes: Indices, cells: Sequence[Indices], columns: Iterable[int]
    ) -> list[Floats]:
        """Exact counts of class and cell."""
        of, n_cells = self.structure.n_classes, self.structure.n_cells
        return [joint_counts([classes, cells[k]], (of, n_cells[k])) for k in columns]

    def _groups(self, margins: Sequence[Floats]) -> list[Indices]:
        """Groups of the cells of each column."""
        # at least the noise of one cell in the tables, in each class
        least = self._table_deviation() * self.structure.n_classes
        return [
            group_cells(margin.sum(axis=0), least, kind, missing)
            for margin, kind, missing in zip(
                margins, self.kinds, self.has_missing, strict=True
            )
        ]

    def _table_deviation(self) -> float:
        """Deviation of a count in the tables of the last stage, unscaled."""
        return self.release.deviation(TABLES, self.noise)

    def _forest(
        self,
        classes: Indices,
        cells: Sequence[Indices],
        margins: Sequence[Floats],
        groups: Sequence[Indices],
        rng: np.random.Generator,
        shown: Callable[[Iterable[Any]], Iterable[Any]],
    ) -> list[tuple[int, int]]:
        """Links of the columns, by noisy scores."""
        of_groups = [sum_groups(m, g) for m, g in zip(margins, groups, strict=True)]
        pairs = pairs_of(len(cells))
        exact = np.fromiter(
            dependence_scores(classes, cells, of_groups, shown(pairs)), dtype=float
        )
        (scores,) = self._noisy(SCORES, [exact], rng)
        # less what the table of the link would add by its own noise
        sizes = [m.shape[1] for m in of_groups]
        counts = np.array([sizes[i] * sizes[j] for i, j in pairs])
        cost = _LEFT * _MEAN_NOISE * self._table_deviation()
        scores = scores - cost * self.structure.n_classes * counts
        least = _BEYOND * self.release.deviation(SCORES, self.noise)
        return spanning_forest(scores, len(cells), least)

    def _linked(
        self,
        classes: Indices,
        cells: Sequence[Indices],
        grouped: Sequence[Indices],
        margins: Sequence[Floats],
        groups: Sequence[Indices],
        edges: Sequence[tuple[int, int]],
        rng: np.random.Generator,
    ) -> TableModel:
        """Tables of the links, and once more the margins of what is not linked."""
        n_classes = self.structure.n_classes
        sizes = [int(g.max()) + 1 for g in groups]
        alone = unlinked(edges, len(cells))
        exact = [
            joint_counts(
                [classes, grouped[i], grouped[j]], (n_classes, sizes[i], sizes[j])
            )
            for i, j in edges
        ]
        exact += self._margins(classes, cells, alone)
        scale = self.structure.table_scale(len(exact), self.release.norm)
        noisy = self._noisy(TABLES, exact, rng, scale)
        return self._consistent(
            margins,
            groups,
            edges,
            noisy[: len(edges)],
            dict(zip(alone, noisy[len(edges) :], strict=True)),
            (self._table_deviation() / scale) ** 2,
        )

    # -- post-processing ----------------------------------------------------------

    def _masses(self, tables: Iterable[tuple[Floats, float]]) -> Floats:
        """Masses of the classes, from all tables and the variances of their cells."""
        mean = WeightedMean()
        for table, variance in tables:
            by_class = table.reshape(len(table), -1)
            mean.add(by_class.sum(axis=1), variance * by_class.shape[1])
        return project_on_mass(mean.value, self.release.n_records)

    def _consistent(
        self,
        margins: Sequence[Floats],
        groups: Sequence[Indices],
        edges: Sequence[tuple[int, int]],
        tables: Sequence[Floats],
        again: dict[int, Floats],
        variance: float,
    ) -> TableModel:
        """Model in which margins and tables agree.

        Parameters
        ----------
        margins, tables : sequence of ndarray
            Noisy.
        groups : sequence of ndarray
        edges : sequence of (int, int)
        again : dict of {int: ndarray}
            Noisy margins of the columns without links, from the last stage.
        variance : float
            Of each count of the last stage.
        """
        of_margins = self.release.deviation(MARGINS, self.noise) ** 2
        masses = self._masses(
            [(table, of_margins) for table in margins]
            + [(table, variance) for table in [*tables, *again.values()]]
        )
        fitted, of_groups = [], []
        for column, (margin, group) in enumerate(zip(margins, groups, strict=True)):
            if column in again:
                mean = WeightedMean()
                mean.add(margin, of_margins)
                mean.add(again[column], variance)
                fitted.append(project_on_mass(mean.value, masses))
                of_groups.append(sum_groups(fitted[-1], group))
                continue
            mean = WeightedMean()
            mean.add(sum_groups(margin, group), of_margins * np.bincount(group))
            for edge, table in zip(edges, tables, strict=True):
                if column in edge:
                    other = 2 - edge.index(column)
                    mean.add(table.sum(axis=other), variance * table.shape[other])
            of_groups.append(project_on_mass(mean.value, masses))
            fitted.append(project_on_groups(margin, group, of_groups[-1]))
        joint = [
            fit_to_margins(table, of_groups[parent], of_groups[child])
            for (parent, child), table in zip(edges, tables, strict=True)
        ]
        return TableModel(tuple(fitted), tuple(groups), tuple(edges), tuple(joint))


def _own_groups(margin: Floats) -> Indices:
    """Each cell its own group."""
    return np.arange(margin.shape[1])
