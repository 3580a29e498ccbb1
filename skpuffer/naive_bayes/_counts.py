"""Counts by class and cell: the contribution of a record, and reading them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.summary._cells import Levels, Stacked
from skpuffer.utils._simplex import project_on_simplex

from ._by_class import ByClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from skpuffer.schema import Binning
    from skpuffer.utils._types import Floats, Indices

__all__ = ["CellCounts", "cell_counts", "class_tables", "smoothed"]

#: Part of the noise's deviation that is added to each cell of a class of mean size.
_PSEUDO_COUNT = 0.2


@dataclass(frozen=True)
class CellCounts(ByClass):
    """Contribution of a record: a one at its cell of each column, for its class.

    Parameters
    ----------
    block : Stacked
        Of `Levels`, one for each column.
    n_classes : int
    binning : Binning or None
        Which makes cells of raw rows; None where rows are cells already.
    """

    binning: Binning | None = None

    def _codes(self, X: Any) -> Indices:
        codes: Indices = np.asarray(X) if self.binning is None else self.binning(X)
        return codes

    def _blocks(self, X: Any) -> Floats:
        return super()._blocks(self._codes(X))  # type: ignore[arg-type] # cells are numbers

    def total(self, X: Any, y: ArrayLike) -> Floats:
        """Sum of the contributions, of shape (dim,), by counting."""
        codes, y = self._codes(X), np.asarray(y).astype(np.intp)
        known = y >= 0
        if not known.all():
            codes, y = codes[known], y[known]
        tables = []
        for column, levels in zip(codes.T, self.block.blocks, strict=True):
            joint = y * levels.dim + column.astype(np.intp, copy=False)
            counts = np.bincount(joint, minlength=self.n_classes * levels.dim)
            tables.append(counts.reshape(self.n_classes, levels.dim))
        return np.hstack(tables).astype(float).ravel()


def cell_counts(
    n_cells: Sequence[int], n_classes: int, binning: Binning | None = None
) -> CellCounts:
    """Contribution of a record to the counts of each class and cell of d columns.

    A record that is added moves the sum by sqrt(d) in l2 and by d in l1, one that is
    replaced by sqrt(2 d) and 2 d, whether or not it changes class.

    Parameters
    ----------
    n_cells : sequence of int
        Of each column.
    n_classes : int
    binning : Binning, default=None
        For raw rows.

    Returns
    -------
    CellCounts
    """
    levels = tuple(Levels(k, int(size)) for k, size in enumerate(n_cells))
    return CellCounts(Stacked(levels), n_classes, binning)


def class_tables(
    value: Floats, n_cells: Sequence[int], n_records: int, n_classes: int
) -> tuple[Floats, list[Floats]]:
    """Sizes of the classes, and counts of cells that agree with them.

    Post-processing of noisy counts. Each column's cells sum to the size of a class, so
    that there are as many measurements of it as columns, the better the fewer cells a
    column has: their inverse-variance mean is projected on the sizes that sum to n, and
    each row of counts on those that sum to the size of its class.

    Parameters
    ----------
    value : ndarray of shape (n_classes * sum(n_cells),)
    n_cells : sequence of int
    n_records, n_classes : int
        Public.

    Returns
    -------
    sizes : ndarray of shape (n_classes,)
        Not negative, with sum `n_records`.
    tables : list of ndarray of shape (n_classes, n_cells[k])
        Not negative, each row with the sum of its class.
    """
    cells = np.asarray(n_cells, dtype=float)
    parts = np.split(value.reshape(n_classes, -1), np.cumsum(n_cells)[:-1], axis=1)
    # the variance of a sum is that of a cell times the number of cells
    sums = np.column_stack([part.sum(axis=1) for part in parts])
    sizes = (sums / cells).sum(axis=1) / (1 / cells).sum()
    sizes = n_records * project_on_simplex(sizes / n_records)
    # A class without mass has no distribution: all cells are as likely. The divisor is
    # one there, and the result zero.
    divisor = np.where(sizes > 0, sizes, 1.0)[:, None]
    tables = [sizes[:, None] * project_on_simplex(part / divisor) for part in parts]
    return sizes, tables


def smoothed(tables: list[Floats], alpha: float, deviation: float) -> list[Floats]:
    """Probabilities of cells given the class, from the counts of :func:`class_tables`.

    Besides `alpha`, a part of the noise's deviation is added to each cell, in
    proportion to the size of the class: what noise leaves unknown of a cell speaks for
    no class.

    Parameters
    ----------
    tables : list of ndarray of shape (n_classes, n_cells[k])
    alpha : float
    deviation : float
        Of the noise of a count.

    Returns
    -------
    list of ndarray of shape (n_classes, n_cells[k])
        Rows have the sum one.
    """
    found = []
    for table in tables:
        sizes = table.sum(axis=1, keepdims=True)
        mean = sizes.mean()  # positive, as the sizes sum to n
        held = table + alpha + _PSEUDO_COUNT * deviation * sizes / mean
        total = held.sum(axis=1, keepdims=True)
        # of no mass at all, as of a class without records where alpha is zero
        equal = np.full_like(held, 1 / table.shape[1])
        found.append(np.divide(held, total, out=equal, where=total > 0))
    return found
