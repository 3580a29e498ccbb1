"""Cells of centres: the nearest centre of a record, and sums of records by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.releases import Sensitivity
from skpuffer.utils._clipping import clip_rows, slices

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices

__all__ = ["CellSums", "nearest", "squared_distances"]

#: Rows whose distances to all centres are held at once.
_BLOCK = 2**12

#: Clipped differences are whole multiples of this, so that their sums are exact in any
#: order, of up to 2**30 records: no record changes how those of others are rounded.
_GRAIN = 2.0**-20


def squared_distances(rows: Floats, centres: Floats) -> Floats:
    """Return squared distances of rows to centres, each of its own row alone.

    A matrix product would round the distance of a row by which rows stand beside it, so
    that one record could move another one into another cell. Here every entry is one
    and the same sum, column by column, whatever else the table holds.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    centres : ndarray of shape (k, d)

    Returns
    -------
    ndarray of shape (n, k)
    """
    # rows along the fast axis: there are more of them than centres
    total = np.zeros((len(centres), len(rows)))
    gap = np.empty_like(total)
    columns = np.ascontiguousarray(rows.T)
    for column, places in zip(columns, centres.T, strict=True):
        np.subtract(column, places[:, None], out=gap)
        np.multiply(gap, gap, out=gap)
        total += gap
    return total.T


def nearest(rows: Floats, centres: Floats) -> Indices:
    """Return the nearest centre of each row, of equally near ones the first.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    centres : ndarray of shape (k, d)

    Returns
    -------
    ndarray of int of shape (n,)
    """
    found: Indices = np.empty(len(rows), dtype=np.intp)
    for part in slices(len(rows), _BLOCK):
        found[part] = squared_distances(rows[part], centres).argmin(axis=1)
    return found


@dataclass(frozen=True)
class CellSums:
    """Counts of cells, and sums of records relative to the centres, clipped.

    A record fills the block of its cell with ``(weight, clip(row - centre, radius))``,
    and leaves all others at zero.

    Parameters
    ----------
    radius : float
        To which the difference of a record and its centre is clipped, in `norm`.
    n_columns : int
    norm : {2.0, 1.0}, default=2.0
        2 for Gaussian noise, 1 for Laplace noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.cluster._cells import CellSums
    >>> sums = CellSums(radius=1.0, n_columns=1)
    >>> sums(np.array([[0.25], [-0.5], [7.0]]), np.array([[0.0], [5.0]]))
    array([[ 2.  , -0.25],
           [ 1.  ,  1.  ]])
    """

    radius: float
    n_columns: int
    norm: float = 2.0

    @property
    def weight(self) -> float:
        """Number that counts one record.

        The mean of a cell whose centre is off by l has the squared error
        ``(d + (l / a)**2) * s(a)**2`` by noise in sum and count, for the weight a and
        the sensitivity s. It is least here, for the typical length of a clipped
        difference: `radius` in l2, and ``radius / sqrt(d)`` where it is clipped in l1.
        """
        power = -1 / 4 if self.norm == 2 else -2 / 3
        weight: float = self.radius * float(self.n_columns) ** power
        return weight

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sums to one record, whatever the centres are.

        A record that is replaced stays in its cell, where differences may be opposite,
        or moves to another, which changes two blocks.
        """
        a, length = self.weight, self.radius
        # largest norms of a clipped difference, in l2 and l1
        total = length * math.sqrt(self.n_columns) if self.norm == 2 else length
        block = math.hypot(a, length)
        return Sensitivity(
            add_remove={2: block, 1: a + total},
            replace={2: max(2 * length, math.sqrt(2) * block), 1: 2 * (a + total)},
        )

    def __call__(self, rows: Floats, centres: Floats) -> Floats:
        """Return the exact sums, which must not be released without noise.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        centres : ndarray of shape (k, d)

        Returns
        -------
        ndarray of shape (k, 1 + d)
            `weight` times the count, then the sum of clipped differences, of each cell.
        """
        k = len(centres)
        sums = np.zeros((k, 1 + self.n_columns))
        for part in slices(len(rows), _BLOCK):
            cells = squared_distances(rows[part], centres).argmin(axis=1)
            moved = clip_rows(rows[part] - centres[cells], self.radius, self.norm)
            # toward zero, by which no norm grows
            moved = np.trunc(moved / _GRAIN) * _GRAIN
            sums[:, 0] += np.bincount(cells, minlength=k)
            for at, column in enumerate(moved.T, start=1):
                sums[:, at] += np.bincount(cells, weights=column, minlength=k)
        sums[:, 0] *= self.weight
        return sums
