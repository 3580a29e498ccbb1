"""Rows drawn from a tree of tables: as even as whole numbers allow, then shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Indices

__all__ = ["sample_cells", "systematic_cells"]


def systematic_cells(
    weights: Floats, groups: Indices, rng: np.random.Generator
) -> Indices:
    """Draw a cell for each row, evenly within groups.

    Of a group of g rows, each cell gets its share of g rounded down or up, at random
    and without bias; which rows get it is random too.

    Parameters
    ----------
    weights : ndarray of shape (n_groups, n_cells)
        Non-negative; of the cells in each group. A group without any draws uniformly.
    groups : ndarray of int of shape (n_rows,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int of shape (n_rows,)

    References
    ----------
    Madow (1949), On the theory of systematic sampling, II.
    """
    n_groups, n_cells = weights.shape
    sizes = np.bincount(groups, minlength=n_groups)
    ends = np.cumsum(weights, axis=1)
    totals = ends[:, -1:]
    even = np.arange(1, n_cells + 1) / n_cells
    ends = np.where(totals > 0, ends / np.where(totals > 0, totals, 1), even)
    ends[:, -1] = 1.0
    # rows in random order, then by group: each group's rows are shuffled
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    group = groups[order]
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(len(groups)) - starts[group]
    # one grid of points a group, begun at random: (rank + u) / size in [0, 1)
    points = (rank + rng.random(n_groups)[group]) / sizes[group]
    # groups side by side on one line, so that one search serves them all
    line = (ends + np.arange(n_groups)[:, None]).ravel()
    at = np.searchsorted(line, group + points, side="right") - group * n_cells
    # rounding must not carry a row past the last cell that has any weight
    last = n_cells - 1 - np.argmax((weights > 0)[:, ::-1], axis=1)
    cells = np.empty(len(groups), dtype=np.int64)
    cells[order] = np.minimum(at, last[group])
    return cells


def sample_cells(
    margins: Sequence[Floats],
    edges: Sequence[tuple[int, int]],
    tables: Sequence[Floats],
    n_rows: int,
    rng: np.random.Generator,
) -> tuple[Indices, Indices]:
    """Draw rows of cells from the root of a forest to its leaves.

    Parameters
    ----------
    margins : sequence of ndarray of shape (n_classes, n_cells[k])
        Non-negative masses of the cells of each column by class.
    edges : sequence of (int, int)
        Pairs (parent, child), each parent before its children. A column that is no
        child is drawn by its margin, given the class alone.
    tables : sequence of ndarray of shape (n_classes, n_cells[parent], n_cells[child])
    n_rows : int
    rng : numpy.random.Generator

    Returns
    -------
    classes : ndarray of int of shape (n_rows,)
    cells : ndarray of int of shape (n_rows, n_columns)
    """
    masses = margins[0].sum(axis=1)
    one = np.zeros(n_rows, dtype=np.int64)
    classes = systematic_cells(masses[None], one, rng)
    cells = np.empty((n_rows, len(margins)), dtype=np.int64, order="F")
    children = {child for _, child in edges}
    for column, margin in enumerate(margins):
        if column not in children:
            cells[:, column] = systematic_cells(margin, classes, rng)
    for (parent, child), table in zip(edges, tables, strict=True):
        n_cells = table.shape[1]
        groups = classes * n_cells + cells[:, parent]
        weights = table.reshape(-1, table.shape[2])
        cells[:, child] = systematic_cells(weights, groups, rng)
    return classes, cells
