"""The release of a table: margins, scores of pairs and tables of links, in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._model import TableModel, group_cells, sum_groups
from ._structure import (
    MARGINS,
    SCORES,
    TABLES,
    Structure,
    WeightedMean,
    dependence_scores,
    fit_to_margins,
    joint_counts,
    pairs_of,
    project_on_groups,
    project_on_mass,
)

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease


def maximum_spanning_tree(scores: Floats, n_columns: int) -> list[tuple[int, int]]:
    """Return the spanning tree of the largest total score, as pairs (parent, child).

    Scores are in the order of :func:`pairs_of`. Each parent is met before its children;
    the first column is the root. Ties go to the child of the lower number, then to the
    parent that stood in the tree first. Prim (1957); Chow and Liu (1968).
    """
    weights = np.full((n_columns, n_columns), -np.inf)
    for (i, j), score in zip(pairs_of(n_columns), scores, strict=True):
        weights[i, j] = weights[j, i] = score
    # for each column outside of the tree, its best link into it
    best, parent = weights[0].copy(), np.zeros(n_columns, dtype=int)
    outside = np.arange(n_columns) > 0
    edges = []
    for _ in range(n_columns - 1):
        child = int(np.argmax(np.where(outside, best, -np.inf)))
        edges.append((int(parent[child]), child))
        outside[child] = False
        nearer = outside & (weights[child] > best)
        best[nearer], parent[nearer] = weights[child][nearer], child
    return edges


def spanning_forest(
    scores: Floats, n_columns: int, least: float
) -> list[tuple[int, int]]:
    """Return the links of the maximum spanning tree whose score is above a threshold.

    A column that is no child is the root of its own tree.
    """
    by_pair = dict(zip(pairs_of(n_columns), scores, strict=True))
    return [
        (parent, child)
        for parent, child in maximum_spanning_tree(scores, n_columns)
        if by_pair[min(parent, child), max(parent, child)] > least
    ]


def unlinked(edges: Sequence[tuple[int, int]], n_columns: int) -> list[int]:
    """List the columns that no link touches."""
    linked = {column for edge in edges for column in edge}
    return [column for column in range(n_columns) if column not in linked]


#: Mean absolute value of Gaussian noise of deviation one, which is no smaller than that
#: of Laplace noise.
_MEAN_NOISE = math.sqrt(2 / math.pi)

#: Part of a table's noise that is left when it is made non-negative and consistent.
_LEFT = 0.5

#: Mass of a row of a table that is worth it, in deviations of a cell's noise: what
#: neighbouring cells lose together is less than what levels do.
_WORTH = {"levels": 1.0, "ordered": 3.0, "amount": 3.0}

#: Deviations of a score's noise by which a link must be better than none.
_BEYOND = 2.0


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The release of a table, executed stage by stage.

    Exact counts are read in :meth:`run` alone, and none is kept.

    `kinds`: kinds of the columns' cells; see :class:`Binning`. `counts_all`: whether
    every record is counted: those without a target are not. `is_private_size`: whether
    the number of records is known by noisy counts alone.
    """

    structure: Structure
    kinds: tuple[str, ...]
    has_missing: tuple[bool, ...]
    release: AdaptiveRelease
    noise: Noise
    counts_all: bool = True
    is_private_size: bool = False

    def _scaled(self, model: TableModel) -> TableModel:
        """The model of all records, where their number is known."""
        if self.is_private_size:
            return model
        return model.scaled_to(self.release.n_records)

    # -- the release ----------------------------------------------------------------

    def run(
        self,
        classes: Indices,
        cells: Sequence[Indices],
        rng: np.random.Generator,
        shown: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    ) -> Floats:
        """Release a table of classes and cells, stage by stage: all numbers that leave.

        `shown` wraps the pairs of columns, to show progress.
        """
        structure = self.structure
        exact = self._margins(classes, cells, range(structure.n_columns))
        released = [self._noisy(MARGINS, exact, rng)]
        if structure.n_pairs:
            # from here on by what is released: which cells stand together, what pairs
            # are compared with, which are linked
            margins = self._margins_of(released[MARGINS])
            groups = self._groups(margins)
            own = [g[c] for g, c in zip(groups, cells, strict=True)]
            summed = [sum_groups(m, g) for m, g in zip(margins, groups, strict=True)]
            pairs = shown(pairs_of(structure.n_columns))
            scores = list(dependence_scores(classes, own, summed, pairs))
            released.append(self._noisy(SCORES, [np.array(scores)], rng))
            edges = self._forest(groups, released[SCORES])
            of = structure.n_classes
            sizes = [int(g.max()) + 1 for g in groups]
            exact = [
                joint_counts([classes, own[i], own[j]], (of, sizes[i], sizes[j]))
                for i, j in edges
            ]
            exact += self._margins(classes, cells, unlinked(edges, len(cells)))
            scale = structure.table_scale(len(exact), self.release.norm)
            released.append(self._noisy(TABLES, [scale * t for t in exact], rng))
        return np.concatenate(released)

    def _margins(
        self, classes: Indices, cells: Sequence[Indices], columns: Iterable[int]
    ) -> list[Floats]:
        """Exact counts of class and cell."""
        of, n_cells = self.structure.n_classes, self.structure.n_cells
        return [joint_counts([classes, cells[k]], (of, n_cells[k])) for k in columns]

    def _noisy(
        self, stage: int, tables: Sequence[Floats], rng: np.random.Generator
    ) -> Floats:
        """The tables of a stage with noise, one after the other."""
        # what a stage was accounted for with and does not need stays zero
        exact = np.zeros(self.release.stages[stage].dim)
        filled = np.concatenate([table.ravel() for table in tables])
        exact[: filled.size] = filled
        return self.release.noisy(stage, exact, self.noise, rng)

    # -- what is read of it, noisy numbers alone ------------------------------------

    def read(self, released: Floats) -> TableModel:
        """Return the joint distribution that the released numbers describe."""
        structure = self.structure
        ends = np.cumsum([stage.dim for stage in self.release.stages])
        stages = np.split(released, ends[:-1])
        margins = self._margins_of(stages[MARGINS])
        if not structure.n_pairs:
            model = TableModel(tuple(margins), tuple(map(_own_groups, margins)))
            return self._scaled(model)
        groups = self._groups(margins)
        edges = self._forest(groups, stages[SCORES])
        sizes = [int(g.max()) + 1 for g in groups]
        alone = unlinked(edges, structure.n_columns)
        shapes: list[tuple[int, ...]] = [(sizes[i], sizes[j]) for i, j in edges]
        shapes += [(structure.n_cells[k],) for k in alone]
        scale = structure.table_scale(len(shapes), self.release.norm)
        tables = _split(stages[TABLES] / scale, structure.n_classes, shapes)
        return self._consistent(
            self._split_margins(stages[MARGINS]),
            groups,
            edges,
            tables[: len(edges)],
            dict(zip(alone, tables[len(edges) :], strict=True)),
            (self.release.deviation(TABLES, self.noise) / scale) ** 2,
        )

    def _split_margins(self, released: Floats) -> list[Floats]:
        shapes = [(n,) for n in self.structure.n_cells]
        return _split(released, self.structure.n_classes, shapes)

    def _margins_of(self, released: Floats) -> list[Floats]:
        """Margins of the first stage, consistent."""
        noisy = self._split_margins(released)
        variance = self.release.deviation(MARGINS, self.noise) ** 2
        masses = self._masses([(table, variance) for table in noisy])
        return [project_on_mass(table, masses) for table in noisy]

    def _groups(self, margins: Sequence[Floats]) -> list[Indices]:
        """Groups of the cells of each column."""
        # rows of a table that would be mostly noise
        least = self.release.deviation(TABLES, self.noise) * self.structure.n_classes
        return [
            group_cells(margin.sum(axis=0), _WORTH[kind] * least, kind, missing)
            for margin, kind, missing in zip(
                margins, self.kinds, self.has_missing, strict=True
            )
        ]

    def _forest(
        self, groups: Sequence[Indices], scores: Floats
    ) -> list[tuple[int, int]]:
        """Links of the columns, by noisy scores."""
        # less what the table of the link would add by its own noise
        sizes = [int(g.max()) + 1 for g in groups]
        counts = np.array([sizes[i] * sizes[j] for i, j in pairs_of(len(sizes))])
        counts *= self.structure.n_classes
        cost = _LEFT * _MEAN_NOISE * self.release.deviation(TABLES, self.noise)
        least = _BEYOND * self.release.deviation(SCORES, self.noise)
        return spanning_forest(scores - cost * counts, len(sizes), least)

    def _masses(self, tables: Iterable[tuple[Floats, float]]) -> Floats:
        """Masses of the classes, from all tables and the variances of their cells."""
        mean = WeightedMean()
        for table, variance in tables:
            by_class = table.reshape(len(table), -1)
            mean.add(by_class.sum(axis=1), variance * by_class.shape[1])
        n = float(self.release.n_records)
        if not self.counts_all or self.is_private_size:
            # as many as are counted by what was released
            n = min(max(float(mean.value.sum()), 1.0), n)
        return project_on_mass(mean.value, n)

    def _consistent(
        self,
        margins: Sequence[Floats],
        groups: Sequence[Indices],
        edges: Sequence[tuple[int, int]],
        tables: Sequence[Floats],
        again: dict[int, Floats],
        variance: float,
    ) -> TableModel:
        """Model in which margins and tables agree."""
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
        model = TableModel(tuple(fitted), tuple(groups), tuple(edges), tuple(joint))
        return self._scaled(model)


def _own_groups(margin: Floats) -> Indices:
    """Each cell its own group."""
    return np.arange(margin.shape[1])


def _split(
    released: Floats, n_classes: int, shapes: Sequence[tuple[int, ...]]
) -> list[Floats]:
    """Tables of a stage, each of shape (n_classes, ...)."""
    whole = [(n_classes, *shape) for shape in shapes]
    ends = np.cumsum([np.prod(shape) for shape in whole])
    pieces = np.split(released, ends)[:-1]
    return [p.reshape(shape) for p, shape in zip(pieces, whole, strict=True)]
