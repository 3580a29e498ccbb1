"""Exact counts that the releases read: they never leave without noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Indices

__all__ = ["dependence_scores", "joint_counts", "pairs_of"]


def pairs_of(n_columns: int) -> list[tuple[int, int]]:
    """List the pairs (i, j), i < j, of columns in the order of the scores."""
    return list(combinations(range(n_columns), 2))


def joint_counts(
    codes: Indices, columns: Sequence[int], n_cells: Sequence[int]
) -> Floats:
    """Count the records of every combination of cells of some columns.

    Parameters
    ----------
    codes : ndarray of int of shape (n_records, n_columns)
        Cells, column ``k`` in ``range(n_cells[k])``.
    columns : sequence of int
    n_cells : sequence of int
        Cells of each column of `codes`.

    Returns
    -------
    ndarray of shape ``[n_cells[k] for k in columns]``
        Whole numbers. One record stands in one cell: added or removed it moves the
        counts by one (l1 and l2), replaced by 2 (l1) or the root of 2 (l2).
    """
    shape = [n_cells[k] for k in columns]
    # one code for each combination, no indicator columns: n integers, whatever the
    # number of cells
    joint = codes[:, columns[0]].astype(np.int64)
    for column in columns[1:]:
        joint *= n_cells[column]
        joint += codes[:, column]
    counts = np.bincount(joint, minlength=int(np.prod(shape)))
    return counts.reshape(shape).astype(float)


def dependence_scores(
    codes: Indices,
    n_cells: Sequence[int],
    margins: Sequence[Floats],
    target: int | None = None,
) -> Floats:
    """Return how far every pair of columns is from independence within the classes.

    Parameters
    ----------
    codes : ndarray of int of shape (n_records, n_columns)
    n_cells : sequence of int of length n_columns
    margins : sequence of ndarray of shape (n_classes, n_cells[k])
        Released margins of the columns besides the target, in their order: what the
        pairs are compared with. Each class has one mass in all of them.
    target : int, default=None
        The column whose cells are the classes; None for one class of all records.

    Returns
    -------
    ndarray of shape (n_pairs,)
        In the order of :func:`pairs_of`: the sum of absolute differences between the
        counts of (class and) both columns and what they would be if the columns were
        independent by these margins. As these are public, one record moves one cell of
        one table a pair: each score by at most one when it is added or removed, and by
        two when it is replaced.
    """
    others = [k for k in range(len(n_cells)) if k != target]
    first = [] if target is None else [target]
    scores = []
    for i, j in pairs_of(len(others)):
        counts = joint_counts(codes, [*first, others[i], others[j]], n_cells)
        counts = counts.reshape(-1, *counts.shape[-2:])
        expected = independent_table(margins[i], margins[j])
        scores.append(float(np.abs(counts - expected).sum()))
    return np.array(scores)


def independent_table(left: Floats, right: Floats) -> Floats:
    """Return the counts of two columns that are independent within the classes.

    Parameters
    ----------
    left : ndarray of shape (n_classes, a)
    right : ndarray of shape (n_classes, b)
        Non-negative, with the same sum as `left` in each class.

    Returns
    -------
    ndarray of shape (n_classes, a, b)
    """
    masses = left.sum(axis=1, keepdims=True)
    shares = left / np.where(masses > 0, masses, 1.0)
    return shares[:, :, None] * right[:, None, :]
