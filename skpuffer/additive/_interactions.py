"""Pairs of features that interact, and their coarse cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices

__all__ = ["merged_cells", "pairs_of"]

#: Coarse cells of a feature that interacts, at most.
_COARSE = 8


def pairs_of(interactions: Any, names: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the positions of features that interact.

    Parameters
    ----------
    interactions : {'all', None} or list of pairs of names
    names : sequence
        Of the features.

    Returns
    -------
    tuple of (int, int)

    Raises
    ------
    ValueError
        If a pair names a feature that is not there, one twice, or comes twice.
    """
    if interactions is None:
        return ()
    n = len(names)
    if isinstance(interactions, str):
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))
    found = []
    for pair in interactions:
        unknown = [name for name in pair if name not in names]
        if unknown:
            raise ValueError(
                Statement(
                    "additive.interactions_unknown_feature",
                    unknown=unknown,
                    names=list(names),
                )
            )
        i, j = sorted(list(names).index(name) for name in pair)
        if i == j or (i, j) in found:
            raise ValueError(
                Statement("additive.interactions_not_distinct_pairs", pair=pair)
            )
        found.append((i, j))
    return tuple(found)


def merged_cells(
    masses: Floats, kind: str, has_missing: bool = False, n_merged: int = _COARSE
) -> Indices:
    """Coarse cell of each cell of a feature.

    Neighbours of about equal mass together; of levels the largest stand alone and the
    others together.

    Parameters
    ----------
    masses : ndarray of shape (n_cells,)
    kind : str
        As the code book says.
    has_missing : bool, default=False
        Whether the last cell is of missing values; it stays alone.
    n_merged : int, default=8

    Returns
    -------
    ndarray of int of shape (n_cells,)
        All of 0, 1, ... up to the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.additive._interactions import merged_cells
    >>> merged_cells(np.array([0.5, 0.1, 0.2, 0.2]), "ordered", n_merged=2)
    array([0, 1, 1, 1])
    """
    n_cells = masses.size
    if n_cells <= n_merged:
        return np.arange(n_cells)
    if kind == "levels":
        ranks = np.empty(n_cells, dtype=np.intp)
        ranks[np.argsort(-masses, kind="stable")] = np.arange(n_cells)
        return np.minimum(ranks, n_merged - 1)
    if has_missing:
        inner = merged_cells(masses[:-1], kind, n_merged=n_merged - 1)
        return np.append(inner, inner.max() + 1)
    # by rank among the records and by number alike, as empty cells are cells too
    masses = masses / masses.sum()
    middle = np.cumsum(masses) - masses / 2
    parts = np.minimum((middle * n_merged).astype(np.intp), n_merged - 1)
    # without gaps, where one cell is as large as several parts
    merged: Indices = np.unique(parts, return_inverse=True)[1]
    return merged
