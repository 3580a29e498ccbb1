"""Cells drawn by weights: as even as whole numbers allow, then shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Indices

__all__ = ["systematic_cells"]


def systematic_cells(
    weights: Floats, groups: Indices, rng: np.random.Generator
) -> Indices:
    """Draw a cell for each row, evenly within groups.

    Of a group of g rows each cell gets its share of g, rounded down or up at random and
    without bias; which rows get it is random too.

    Parameters
    ----------
    weights : ndarray of shape (n_groups, n_cells)
        Of the cells in each group, non-negative. A group without any draws uniformly.
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
