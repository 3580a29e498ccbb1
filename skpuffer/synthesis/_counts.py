"""Exact counts that the releases read: they never leave without noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices

__all__ = ["dependence_scores", "independent_table", "joint_counts", "pairs_of"]


def pairs_of(n_columns: int) -> list[tuple[int, int]]:
    """List the pairs (i, j), i < j, of columns, in the order of their scores."""
    return list(combinations(range(n_columns), 2))


def joint_counts(columns: Sequence[Indices], n_cells: Sequence[int]) -> Floats:
    """Count the records of every combination of cells of some columns.

    Parameters
    ----------
    columns : sequence of ndarray of int of shape (n_records,)
        Cells, column ``k`` in ``range(n_cells[k])``.
    n_cells : sequence of int

    Returns
    -------
    ndarray of shape `n_cells`
        Whole numbers. One record stands in one cell: added or removed it moves the
        counts by one (l1 and l2), replaced by 2 (l1) or the root of 2 (l2).
    """
    # one code for each combination and no indicator columns: n integers, whatever the
    # number of cells
    joint = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], n_cells[1:], strict=True):
        joint *= size
        joint += column
    counts = np.bincount(joint, minlength=int(np.prod(n_cells)))
    return counts.reshape(n_cells).astype(float)


def dependence_scores(
    classes: Indices,
    cells: Sequence[Indices],
    margins: Sequence[Floats],
    pairs: Iterable[tuple[int, int]],
) -> Iterator[float]:
    """Yield how far pairs of columns are from independence within the classes.

    Parameters
    ----------
    classes : ndarray of int of shape (n_records,)
    cells : sequence of ndarray of int of shape (n_records,)
        Of each column.
    margins : sequence of ndarray of shape (n_classes, n_cells[k])
        *Released* margins of each column, which the pairs are compared with; each class
        has one mass in all of them.
    pairs : iterable of (int, int)

    Yields
    ------
    score : float
        Sum of absolute differences between the counts of (class and) both columns and
        what they would be if the columns were independent by these margins. As these
        are public, one record moves one cell of one table a pair: each score by at most
        one where it is added or removed, and by two where it is replaced.
    """
    n_classes = len(margins[0])
    for i, j in pairs:
        expected = independent_table(margins[i], margins[j])
        counts = joint_counts(
            [classes, cells[i], cells[j]], (n_classes, *expected.shape[1:])
        )
        yield float(np.abs(counts - expected).sum())


def independent_table(rows: Floats, columns: Floats) -> Floats:
    """Return the counts of two columns that are independent within the classes.

    Parameters
    ----------
    rows : ndarray of shape (n_classes, a)
    columns : ndarray of shape (n_classes, b)
        Non-negative, with the same sum as `rows` in each class.

    Returns
    -------
    ndarray of shape (n_classes, a, b)
    """
    masses = rows.sum(axis=1, keepdims=True)
    shares = rows / np.where(masses > 0, masses, 1.0)
    return shares[:, :, None] * columns[:, None, :]
