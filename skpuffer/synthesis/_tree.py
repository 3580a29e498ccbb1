"""The tree that links the columns: a maximum spanning tree, and its walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._counts import pairs_of

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["maximum_spanning_tree"]


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
        Pairs (parent, child), each parent met before its children: the first column is
        the root. Of equal scores, the column of the lower number is taken, and then the
        parent of the lower number.

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
        nearer = outside & (
            (weights[child] > best) | ((weights[child] == best) & (child < parent))
        )
        best[nearer], parent[nearer] = weights[child][nearer], child
    return edges


def path_between(
    edges: Sequence[tuple[int, int]], start: int, end: int
) -> list[int]:
    """Return the columns from one to another along the tree, both included."""
    parents = {child: parent for parent, child in edges}

    def to_root(node: int) -> list[int]:
        way = [node]
        while way[-1] in parents:
            way.append(parents[way[-1]])
        return way

    up, down = to_root(start), to_root(end)
    # what both share above the place where they meet is no part of the way
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up.pop()
        down.pop()
    return up + down[-2::-1]
