"""Records of a training run: blocks of a batch, row norms, sums of bounded error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from skpuffer.utils._clipping import (
    clip_rows,
    joint_norms,
    row_norms,
    row_parts,
    slices,
)

if TYPE_CHECKING:
    from skpuffer.utils._types import Array, Floats, Indices, Matrix

__all__ = ["Rows", "products"]

# Rows are read in blocks of so many bytes: few enough to stay in cache between the
# product that makes the scores and the one that makes the gradients, enough to pay for
# the calls. Sums over blocks of so many rows round little.
_BLOCK_BYTES = 2**21
_BLOCK_ROWS, _SPARSE_ROWS = 2**12, 2**17

# A BLAS treats what is left over of so many rows with other instructions, that round
# otherwise; so does a product by a matrix within larger slices than these.
_ALIGNED = 64
_TILE = {"f": 8, "d": 64}

# Gradients in float32 are added up as such in batches of no more than a block's rows,
# and in slices that, times the batch, are no more than this; in float64 otherwise.
_FLOAT32_TERMS = 2**19

# What sums in float64 may be off by, as a share of the clip norm.
_WIDE_SLACK = 2.0**-11


class Rows:
    """Records of a training run, read in cache-sized blocks.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        float32 stays so, all else becomes float64. A dense array in C order and a CSR
        matrix in canonical format are not copied.

    Raises
    ------
    ValueError
        If `X` holds NaN or infinity.

    Notes
    -----
    A row with an entry above :attr:`limit`, ``finfo(dtype).max ** (1 / 6)`` (2e51, or
    3e6 in float32), is scaled down until it has none, in a copy: the products of its
    gradients would otherwise overflow. It is one fixed map of each record, so no record
    gains any further influence.
    """

    def __init__(self, X: Any) -> None:
        self._sparse = sparse.issparse(X)
        X = X.tocsr() if self._sparse else np.asarray(X, order="C")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if self._sparse and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # entries stored in parts would be measured too short
        self.X: Matrix = X
        #: Largest magnitude of an entry. A gradient's length has at most five factors.
        self.limit = float(np.finfo(X.dtype).max) ** (1 / 6)
        self._lengths = {(2.0, 0.0): self._measure(2.0)}
        # a length that overflows, and NaN, fail the comparison as well
        if not np.all(self._lengths[2.0, 0.0] <= self.limit):
            # a fixed map of each record on its own, so no other record's influence
            # changes
            self.X = clip_rows(X, self.limit, np.inf)
            self._lengths = {(2.0, 0.0): self._measure(2.0)}
        row_bytes = self.dtype.itemsize * max(1, self.n_features)
        size = _SPARSE_ROWS
        if not self._sparse:
            size = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // row_bytes))
        # rounded up to the alignment: whole blocks then need no padding
        self._block_size = -(-size // _ALIGNED) * _ALIGNED
        self._slice_rows = 0
        self._buffer = self._tail = np.zeros((0, self.n_features), self.dtype)
        self._padded: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.X.dtype

    @property
    def n_records(self) -> int:
        """Number of records."""
        n_records: int = self.X.shape[0]
        return n_records

    @property
    def n_features(self) -> int:
        """Number of features."""
        n_features: int = self.X.shape[1]
        return n_features

    def norms(self, order: float, constant: float = 0.0) -> Array:
        """Return the norm of each row with a constant appended, rounded up.

        Parameters
        ----------
        order : float
            In [1, inf].
        constant : float, default=0.0
            Further entry of each row, such as the one that goes with an intercept.

        Returns
        -------
        ndarray of shape (n_records,), of the dtype of the rows
        """
        # measured once; the norm with a constant follows from that without
        key = order, constant
        if key not in self._lengths:
            if constant == 0:
                self._lengths[key] = self._measure(order)
            else:
                joint = joint_norms(self.norms(order), abs(constant), order)
                self._lengths[key] = self._rounded_up(joint)
        return self._lengths[key]

    def _measure(self, order: float) -> Array:
        """Norm of each row, rounded up; with no copy of all dense rows."""
        if self._sparse:
            # up, as a length too short would leave its gradient longer than the clip
            # norm
            return self._rounded_up(row_norms(self.X, order))
        # part by part, so that powers of entries are never held for all rows
        lengths = np.empty(self.n_records, self.dtype)
        for part in row_parts(self.X):
            lengths[part] = self._rounded_up(row_norms(self.X[part], order))
        return lengths

    def _rounded_up(self, lengths: Array) -> Array:
        """Lengths of the rows' dtype, no less than the exact ones."""
        info = np.finfo(self.dtype)
        with np.errstate(over="ignore"):
            # below `tiny` numbers are too few to round to
            lengths = np.maximum(lengths, info.tiny) * (1 + 2 * float(info.eps))
            return lengths.astype(self.dtype, copy=False)

    def blocks(self, index: Indices | None = None) -> Iterator[tuple[Matrix, Any]]:
        """Yield the rows of a batch in blocks.

        Parameters
        ----------
        index : ndarray of shape (size,), default=None
            Rows of the batch; None for all.

        Yields
        ------
        rows : {ndarray, CSR matrix} of shape (block_size, n_features)
            To be read before the next block: its memory is used again.
        select : ndarray or slice
            Which records they are.
        """
        n_rows = self.n_records if index is None else len(index)
        # how many float32 rows may be summed before they go to float64; 0 for none
        self._slice_rows = 0
        # by the size of the batch alone: which of its rows they are must not change
        # rounding
        if n_rows <= _BLOCK_ROWS and not self._sparse:
            self._slice_rows = _FLOAT32_TERMS // max(1, n_rows)
        if n_rows == 0:
            return
        size = self._block_size
        # a CSR matrix copies the rows it selects, so its blocks are few and long
        if self._sparse:
            if n_rows <= size:
                yield (self.X, slice(None)) if index is None else (self.X[index], index)
                return
            for part in slices(n_rows, size):
                select = part if index is None else index[part]
                yield self.X[select], select
            return
        if index is None:
            # whole blocks are views; what is left over is padded to the alignment
            whole = n_rows // size * size
            for part in slices(whole, size):
                self._padded = self.X[part]
                yield self._padded, part
            if whole < n_rows:
                yield self._last_rows(whole), slice(whole, n_rows)
            return
        largest = min(size, n_rows)
        if len(self._buffer) < largest:
            room = min(size, largest + largest // 4)  # the next batch may be larger
            room = -(-room // _ALIGNED) * _ALIGNED
            self._buffer = np.zeros((room, self.n_features), self.dtype)
        for start in range(0, n_rows, size):
            select = index[start : start + size]
            rows = self._buffer[: len(select)]
            # any mode but the default writes into `out` without a second copy
            self.X.take(select, axis=0, out=rows, mode="clip")
            self._padded = self._buffer[: -(-len(select) // _ALIGNED) * _ALIGNED]
            yield rows, select

    def _last_rows(self, start: int) -> Array:
        """Rows from `start` on, copied once into a buffer padded to the alignment."""
        n_rows = self.n_records - start
        # the same rows at every full batch
        if not len(self._tail):
            room = -(-n_rows // _ALIGNED) * _ALIGNED
            self._tail = np.zeros((room, self.n_features), self.dtype)
            self._tail[:n_rows] = self.X[start:]
        self._padded = self._tail
        return self._tail[:n_rows]

    def padded(self, rows: Matrix) -> Matrix:
        """Return the rows of the last block, followed by others for :func:`products`.

        Parameters
        ----------
        rows : {ndarray, CSR matrix} of shape (n, n_features)

        Returns
        -------
        {ndarray, CSR matrix} of shape (at_least_n, n_features)
            The first n are those given.
        """
        # sparse products go row by row, so no row's rounding depends on its neighbours
        return rows if self._sparse else self._padded

    def add_up(self, rows: Matrix, factors: Array) -> Floats:
        """Return ``rows.T @ factors`` of a block, in float64.

        Parameters
        ----------
        rows : {ndarray, CSR matrix} of shape (n, n_features)
            As :meth:`blocks` yields them, or what was made of them row by row.
        factors : ndarray of shape (n,) or (n, m)

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, m)
        """
        size = self._slice_rows
        # float64: the wide slack covers any order of addition within a block
        total: Floats
        if rows.dtype != np.float32:
            total = rows.T.dot(factors)
            return total
        if size == 0:  # too many, or sparse
            total = rows.astype(np.float64).T.dot(factors.astype(np.float64))
            return total
        total = rows[:size].T.dot(factors[:size]).astype(np.float64)
        for start in range(size, len(rows), size):
            part = slice(start, start + size)
            total += rows[part].T.dot(factors[part])
        return total

    @property
    def slack(self) -> float:
        """Rounding error of a sum of gradients, as a share of the clip norm.

        It is added to the sensitivity of sums as :meth:`blocks` and :meth:`add_up` make
        them, by taking it off the clip norm beforehand.

        An addition is rounded by a unit u times its result. Of terms no longer than C,
        added up in slices of s, results have a length of up to C, 2 C, ... s C in each
        slice, so that m terms are off by up to u m (s + 1) C / 2, and by u m C from the
        products. Two neighbouring tables may be rounded in opposite directions: a
        record that is missing moves all others behind it to other places. With sums
        that stick at a power of two that is attained, nearly. In float64 it is next to
        nothing; in float32 it would be many times C for large batches. It is the same
        for all tables: if it depended on the table, so would the clip norm, and each
        record would move the sum by it.
        """
        # for two tables u m (s + 1), and 2 u m from the products, where s m is no more
        # than the terms and m no more than a block's rows
        few = 2.0**-24 * (_FLOAT32_TERMS + 4 * _BLOCK_ROWS)
        return _WIDE_SLACK + (few if self.dtype == np.float32 else 0.0)

    def check_size(self, n_rows: int) -> None:
        """Check that so many rows are added up within the slack.

        Raises
        ------
        ValueError
            If they are not.
        """
        size = self._block_size
        # the same bound for float64, with the block sums added up one after the other
        if 2.0**-53 * n_rows * (size + n_rows / size + 4) > _WIDE_SLACK:
            raise ValueError(
                f"A sum over {n_rows} records would round too much for the privacy "
                "analysis. Use smaller batches of fewer records."
            )


def products(rows: Matrix, matrix: Array) -> Array:
    """Return ``rows @ matrix``, rounded alike for a row wherever it stands.

    A record that comes or goes must not change how others are rounded, but a BLAS has
    other instructions for other sizes and for what is left over.

    Parameters
    ----------
    rows : {ndarray, CSR matrix} of shape (n, m)
        Best of :meth:`Rows.padded`; else they are copied.
    matrix : ndarray of shape (m,) or (m, n_outputs)

    Returns
    -------
    ndarray of shape (n,) or (n, n_outputs)
    """
    found: Array
    if sparse.issparse(rows):
        # one row at a time, by its own entries alone
        found = rows.dot(matrix)
        return found
    n_rows = len(rows)
    if n_rows % _ALIGNED:
        # zeros for rows: their products are cut off again
        rows = np.pad(rows, [(0, -n_rows % _ALIGNED), (0, 0)])
    if matrix.ndim == 1:
        found = rows.dot(matrix)[:n_rows]  # quicker to call than `@`
        return found
    # slices of one size, so that every row meets the same instructions
    slices = rows.reshape(-1, _TILE[rows.dtype.char], rows.shape[1])
    return (slices @ matrix).reshape(len(rows), -1)[:n_rows]


def largest_factor(clip_norm: float, lengths: Array, slack: float) -> Array:
    """Return the largest norm of one factor of a gradient, given that of the other.

    Parameters
    ----------
    clip_norm : float
    lengths : ndarray or scalar of NumPy, float32 or float64
    slack : float
        Share of a gradient's length that rounding may add; see `Rows.slack`.

    Returns
    -------
    ndarray or scalar
        ``clip_norm / lengths``, of the same dtype; less the slack, and some units of
        the last place, which cover the roundings here and of what is scaled by it.
        Infinite for length zero.
    """
    # rounding may lengthen what comes out; that much is taken off beforehand
    slack += 8 * float(np.finfo(lengths.dtype).eps)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return clip_norm * (1 - slack) / lengths


def clip_factors(factors: Array, caps: Array | float, order: float) -> Array:
    """Clip rows to a norm each.

    Parameters
    ----------
    factors : ndarray of shape (n,) or (n, m)
    caps : float or ndarray of shape (n,)
        Of the dtype of `factors`.
    order : float
        Of the norm, in [1, inf].

    Returns
    -------
    ndarray of the shape of `factors`
        Rows multiplied by ``min(1, cap / norm)``.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    """
    if factors.ndim == 1:
        clipped = np.minimum(factors, caps)
        return np.maximum(clipped, -caps, out=clipped)  # `clip` costs more than both
    # times min(1, cap / norm), as a division by what the norm exceeds the cap by
    excess = row_norms(factors, order).astype(factors.dtype, copy=False) / caps
    return factors / np.maximum(excess, 1)[:, None]
