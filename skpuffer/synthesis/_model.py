"""Joint distribution of the cells of a table, as released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices


def group_cells(
    masses: Floats, least: float, kind: str, has_missing: bool = False
) -> Indices:
    """Group the cells of a column so that each group has some mass, numbered from 0.

    Parameters
    ----------
    masses : ndarray of shape (n_cells,)
        *Released* masses: which level is rare must not be read off exact counts.
    least : float
        Mass that is worth a group.
    kind : {'levels', 'ordered', 'amount'}
        Rare levels make one group, in any order; ordered cells join their neighbours.
    has_missing : bool, default=False
        Whether the last cell is that of missing values, which have no neighbours.
    """
    if kind == "levels":
        own = masses >= least
        groups = np.where(own, np.cumsum(own) - 1, np.count_nonzero(own))
        return groups.astype(np.intp)
    n_ordered = len(masses) - has_missing
    groups = np.zeros(len(masses), dtype=np.intp)
    group, held = 0, 0.0
    for cell in range(n_ordered):
        # a heavy cell does not take in the lighter ones before it
        heavy = masses[cell] >= least and 2 * held >= least
        if held > 0 and (held >= least or heavy):
            group, held = group + 1, 0.0
        groups[cell] = group
        held += masses[cell]
    # what is left at the end joins the last group
    if held < least and group > 0:
        groups[groups == group] = group - 1
        group -= 1
    if has_missing:
        groups[-1] = group + (masses[-1] >= least)
    return groups


def sum_groups(table: Floats, groups: Indices) -> Floats:
    """Sum the last axis (n_cells,) by groups."""
    belongs = groups[:, None] == np.arange(groups.max() + 1)
    summed: Floats = table @ belongs.astype(float)
    return summed


def systematic_cells(
    weights: Floats, groups: Indices, rng: np.random.Generator
) -> Indices:
    """Draw a cell for each row, evenly within groups.

    Each cell of a group gets its share of the rows by non-negative `weights` (n_groups,
    n_cells), rounded down or up at random and without bias, and random rows get it. A
    group without weights draws uniformly. Madow (1949), On the theory of systematic
    sampling, II.
    """
    n_groups, n_cells = weights.shape
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    # rows in random order, and then by group: so each group's rows are shuffled
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    group = groups[order]
    sizes = np.bincount(groups, minlength=n_groups)
    rank = np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[group]
    # a grid of points in [0, 1) for each group, begun at random
    starts = rng.random((n_groups,))
    points = (rank + starts[group]) / sizes[group]
    # groups side by side on one line, so that one search serves them all
    line = (ends + np.arange(n_groups)[:, None]).ravel()
    found = np.searchsorted(line, group + points, side="right") - group * n_cells
    # rounding must carry no row past the last cell that has any weight
    last = n_cells - 1 - np.argmax((weights > 0)[:, ::-1], axis=1)
    cells = np.empty(len(groups), dtype=np.intp)
    cells[order] = np.minimum(found, last[group])
    return cells


@dataclass(frozen=True, eq=False)
class TableModel:
    """Masses of a table's cells: trees of tables within classes, all consistent.

    Parameters
    ----------
    margins : tuple of ndarray of shape (n_classes, n_cells[k])
        Margins of each column; one sum a class.
    groups : tuple of ndarray of int of shape (n_cells[k],)
        Group of each cell: within a group of a table a cell depends on the class alone.
    edges : tuple of (int, int)
        Pairs (parent, child), each parent before its children. A column that is no
        child is the root of a tree; trees are independent within the classes.
    tables : tuple of ndarray of shape (n_classes, n_groups[parent], n_groups[child])
        Tables whose sums are those of the margins.
    """

    margins: tuple[Floats, ...]
    groups: tuple[Indices, ...]
    edges: tuple[tuple[int, int], ...] = ()
    tables: tuple[Floats, ...] = ()

    @property
    def masses(self) -> Floats:
        """Masses of the classes, of shape (n_classes,)."""
        masses: Floats = self.margins[0].sum(axis=1)
        return masses

    @cached_property
    def _group_margins(self) -> list[Floats]:
        return [
            sum_groups(margin, groups)
            for margin, groups in zip(self.margins, self.groups, strict=True)
        ]

    @cached_property
    def _within(self) -> list[Floats]:
        """Shares of the cells within their groups, of shape (n_classes, n_cells)."""
        return [
            margin / np.where(whole > 0, whole, 1.0)[:, groups]
            for margin, whole, groups in zip(
                self.margins, self._group_margins, self.groups, strict=True
            )
        ]

    def scaled_to(self, mass: float) -> TableModel:
        """Return the model of another total mass."""
        factor = mass / self.masses.sum()
        return replace(
            self,
            margins=tuple(factor * margin for margin in self.margins),
            tables=tuple(factor * table for table in self.tables),
        )

    # -- rows ---------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Indices, list[Indices]]:
        """Draw rows from the roots to the leaves: classes and cells by column."""
        nowhere = np.zeros(n, dtype=np.intp)
        classes = systematic_cells(self.masses[None], nowhere, rng)
        drawn: dict[int, Indices] = {}
        children = {child for _, child in self.edges}
        for column, margin in enumerate(self._group_margins):
            if column not in children:
                drawn[column] = systematic_cells(margin, classes, rng)
        for (parent, child), table in zip(self.edges, self.tables, strict=True):
            _, a, b = table.shape
            at = classes * a + drawn[parent]
            drawn[child] = systematic_cells(table.reshape(-1, b), at, rng)
        cells = [
            self._refined(column, classes, drawn[column], rng)
            for column in range(len(self.margins))
        ]
        return classes, cells

    def _refined(
        self, column: int, classes: Indices, groups: Indices, rng: np.random.Generator
    ) -> Indices:
        """Cells of rows whose groups are drawn."""
        margin, belongs = self.margins[column], self.groups[column]
        n_groups = belongs.max() + 1
        # of each class and group, the masses of its own cells
        inside = belongs == np.arange(n_groups)[:, None]
        weights = (margin[:, None, :] * inside).reshape(-1, margin.shape[1])
        empty = weights.sum(axis=1) <= 0
        weights[empty] = np.tile(inside, (len(margin), 1))[empty]
        return systematic_cells(weights, classes * n_groups + groups, rng)

    # -- joint masses -------------------------------------------------------------

    def joint(self, columns: Sequence[int]) -> Floats:
        """Return the masses of the classes and all cells of some columns."""
        masses = self.masses
        table, order = masses, list[int]()
        children = {child for _, child in self.edges}
        for root in range(len(self.margins)):
            if root in children:
                continue
            below, kept = self._below(root, frozenset(columns))
            if root in columns:
                kept = [root, *kept]
            elif not kept:
                continue
            shares = _shares(self._group_margins[root])
            shares = shares.reshape(*shares.shape, *[1] * (below.ndim - 2))
            found = shares * below
            if root not in columns:
                found = found.sum(axis=1)
            # independent of the trees before, given the class
            table, order = _outer(table, found), [*order, *kept]
        table = np.moveaxis(
            table, [1 + order.index(c) for c in columns], range(1, len(columns) + 1)
        )
        return self._spread(table, columns)

    def _below(self, node: int, wanted: frozenset[int]) -> tuple[Floats, list[int]]:
        """Distribution of the wanted columns below a column, given class and group."""
        shares = np.ones_like(self._group_margins[node])
        columns: list[int] = []
        for (parent, child), table in zip(self.edges, self.tables, strict=True):
            if parent != node:
                continue
            below, kept = self._below(child, wanted)
            if child not in wanted and not kept:
                continue
            given = _shares(table)
            if child in wanted:
                below = given.reshape(*given.shape, *[1] * len(kept)) * below[:, None]
                kept = [child, *kept]
            else:
                below = np.einsum("cab,cb...->ca...", given, below)
            shares, columns = _outer(shares, below, 2), [*columns, *kept]
        return shares, columns

    def _spread(self, table: Floats, columns: Sequence[int]) -> Floats:
        """From groups to cells, one axis after the other."""
        for axis, column in enumerate(columns, start=1):
            within = self._within[column]
            shape = [1] * table.ndim
            shape[0], shape[axis] = within.shape
            table = np.take(table, self.groups[column], axis=axis)
            table = table * within.reshape(shape)
        return table


def _shares(table: Floats) -> Floats:
    """Distribution along the last axis; zeros where there is no mass."""
    sums = table.sum(axis=-1, keepdims=True)
    return table / np.where(sums > 0, sums, 1.0)


def _outer(first: Floats, second: Floats, common: int = 1) -> Floats:
    """Product that shares the first axes."""
    middle = [1] * (second.ndim - common)
    wide = first.reshape(*first.shape, *middle)
    ones = [1] * (first.ndim - common)
    product: Floats = wide * second.reshape(
        *second.shape[:common], *ones, *second.shape[common:]
    )
    return product
