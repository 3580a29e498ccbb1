"""The tree that links the columns: a maximum spanning tree, or what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._counts import pairs_of

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["maximum_spanning_tree", "spanning_forest", "unlinked"]


def maximum_spanning_tree(scores: Floats, n_columns: int) -> list[tuple[int, int]]:
    """Return the spanning tree of the largest total score.

    Parameters
    ----------
    scores : ndarray of shape (n_pairs,)
        Of the pairs in the order of :func:`pairs_of`; of any sign.
    n_columns : int

    Returns
    -------
    list of (int, int)
        Pairs (parent, child), each parent met before its children; the first column is
        the root. Of equal scores the child of the lower number is taken first, and then
        the parent that stood in the tree first.

    References
    ----------
    Prim (1957), Shortest connection networks and some generalizations; Chow and Liu
    (1968), Approximating discrete probability distributions with dependence trees.
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

    Parameters
    ----------
    scores : ndarray of shape (n_pairs,)
    n_columns : int
    least : float

    Returns
    -------
    list of (int, int)
        As :func:`maximum_spanning_tree`; a column that is no child is the root of its
        own tree.
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
