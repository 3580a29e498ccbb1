"""The records of a run, kept so that a batch is read, and its norms known, fast."""

import math

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from sklearn.utils import gen_batches

from skpuffer.utils._clipping import clip_rows

__all__ = ["Rows", "entry_norms", "joint_norms"]

# Rows are read in blocks of so many bytes: few enough to stay in cache between the
# product that makes the scores and the one that makes the gradients, enough to pay for
# the calls. Sums over blocks of so many rows round little.
_BLOCK_BYTES = 2**21
_BLOCK_ROWS = 2**12

# Gradients in float32 are added up as such in batches of no more than a block's rows,
# and in slices that, times the batch, are no more than this; in float64 otherwise.
_FLOAT32_TERMS = 2**19


class Rows:
    """Records of a training run.

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

    def __init__(self, X):
        self._sparse = sparse.issparse(X)
        X = X.tocsr() if self._sparse else np.asarray(X, order="C")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if self._sparse and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # entries stored in parts would be measured too short
        self.X = X
        #: Largest magnitude of an entry. A gradient's length has at most five factors.
        self.limit = float(np.finfo(X.dtype).max) ** (1 / 6)
        self._lengths = {(2.0, 0.0): self._measure(2.0)}
        # a length that overflows, and NaN, fail the comparison as well
        if not np.all(self._lengths[2.0, 0.0] <= self.limit):
            self.X = clip_rows(X, self.limit, np.inf)
            self._lengths = {(2.0, 0.0): self._measure(2.0)}
        row_bytes = self.dtype.itemsize * max(1, self.n_features)
        self._block_size = min(_BLOCK_ROWS, max(16, _BLOCK_BYTES // row_bytes))
        self._slice_rows = 0
        self._buffer = np.empty((0, self.n_features), self.dtype)

    @property
    def dtype(self):
        """float32 or float64."""
        return self.X.dtype

    @property
    def n_records(self):
        """Number of records."""
        return self.X.shape[0]

    @property
    def n_features(self):
        """Number of features."""
        return self.X.shape[1]

    def norms(self, order, constant=0.0):
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
        key = order, constant
        if key not in self._lengths:
            if constant == 0:
                self._lengths[key] = self._measure(order)
            else:
                joint = joint_norms(self.norms(order), abs(constant), order)
                self._lengths[key] = self._rounded_up(joint)
        return self._lengths[key]

    def _measure(self, order):
        """Norm of each row, rounded up; with no copy of all rows."""
        lengths = np.empty(self.n_records, self.dtype)
        size = max(1, _BLOCK_BYTES // (32 * max(1, self.n_features)))
        for part in gen_batches(self.n_records, size):
            lengths[part] = self._rounded_up(entry_norms(self.X[part], order))
        return lengths

    def _rounded_up(self, lengths):
        info = np.finfo(self.dtype)
        # also where the squares of small entries may have underflowed
        least = max(math.sqrt(1e-307 * (self.n_features + 1)), float(info.tiny))
        with np.errstate(over="ignore"):
            lengths = np.maximum(lengths, least) * (1 + 2 * float(info.eps))
            return lengths.astype(self.dtype, copy=False)

    def blocks(self, index=None):
        """Yield the rows of a batch in blocks.

        Parameters
        ----------
        index : ndarray of shape (size,), default=None
            Rows of the batch; None for all.

        Yields
        ------
        rows : {ndarray, CSR matrix} of shape (block_size, n_features)
            To be read before the next block: its memory is used again. In float64
            where they are too many, or sparse, to be added up in float32.
        select : ndarray or slice
            Which records they are.
        """
        n_rows = self.n_records if index is None else len(index)
        few = n_rows <= _BLOCK_ROWS
        self._slice_rows = _FLOAT32_TERMS // max(1, n_rows)
        if self._sparse:
            if index is None:
                yield _wide(self.X), slice(None)
            elif len(index):
                yield _wide(self.X[index]), index
            return
        size = self._block_size
        if index is None:
            for part in gen_batches(self.n_records, size):
                yield self.X[part] if few else _wide(self.X[part]), part
            return
        largest = min(size, len(index))
        if len(self._buffer) < largest:
            room = min(size, largest + largest // 4)  # the next batch may be larger
            self._buffer = np.empty((room, self.n_features), self.dtype)
        for start in range(0, len(index), size):
            select = index[start : start + size]
            rows = self._buffer[: len(select)]
            # any mode but the default writes into `out` without a second copy
            self.X.take(select, axis=0, out=rows, mode="clip")
            yield rows if few else _wide(rows), select

    def add_up(self, rows, factors):
        """Return ``rows.T @ factors`` of a block, in float64.

        Parameters
        ----------
        rows : {ndarray, CSR matrix} of shape (n, n_features)
            As :meth:`blocks` yields them; of a dense array of float32, or what was made
            of it, any array will do.
        factors : ndarray of shape (n,) or (n, m)

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, m)
        """
        if rows.dtype != np.float32:
            return rows.T.dot(factors)
        size = self._slice_rows
        total = rows[:size].T.dot(factors[:size]).astype(np.float64)
        for start in range(size, len(rows), size):
            part = slice(start, start + size)
            total += rows[part].T.dot(factors[part])
        return total

    def slack(self, batch_size):
        """Return the share of its length by which rounding may add to a move of a sum.

        Parameters
        ----------
        batch_size : int
            Expected number of rows of a batch.

        Returns
        -------
        float
            For sums of gradients as :meth:`add_up` and :meth:`blocks` make them.

        Notes
        -----
        An addition is rounded by a unit u times its result. Of terms no longer than C,
        added up in slices of s, results have a length of up to C, 2 C, ... s C in each
        slice, so that m terms are off by up to u m (s + 1) C / 2, and by u m C from the
        products. It may be one way in one world and the other way in the other: a
        record that is missing moves all others behind it to other places. With sums
        that stick at a power of two that is attained, nearly. In float64 it is next to
        nothing; in float32 it would be many times C for large batches.
        """
        n_rows = max(self.n_records, batch_size)
        slice_rows = n_rows if self._sparse else min(n_rows, self._block_size)
        slack = 2.0**-53 * n_rows * (slice_rows + n_rows / slice_rows + 4)
        if self.dtype == np.float32:  # if sparse as well: the same rows, the same sum
            most = _FLOAT32_TERMS + 4 * _BLOCK_ROWS
            slack += 2.0**-24 * min(most, n_rows * (n_rows + 4))
        return slack


def _wide(rows):
    """The rows in float64."""
    return rows.astype(np.float64, copy=False)


def entry_norms(X, order):
    """Return the norm of each row, in float64.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, m)
    order : float
        In [1, inf].

    Returns
    -------
    ndarray of shape (n,)
        inf or NaN where a row is too long to be measured, or has such an entry.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if order not in (1, 2, math.inf):
            return _general_norms(X, order)
        if sparse.issparse(X):
            return sparse_linalg.norm(X.astype(np.float64), ord=order, axis=1)
        X = np.asarray(X, np.float64)
        if order == 2:
            return np.sqrt(np.einsum("ij,ij->i", X, X))
        return np.linalg.norm(X, ord=order, axis=1)


def _general_norms(X, order):
    """Norm of any order; the largest entries go first, as a high power overflows."""
    largest = entry_norms(X, math.inf)
    scale = np.where(largest > 0, largest, 1.0)
    if sparse.issparse(X):
        shares = X.astype(np.float64)
        shares.data = np.abs(shares.data) / np.repeat(scale, np.diff(X.indptr))
        powers = np.asarray(shares.power(order).sum(axis=1)).ravel()
    else:
        powers = ((np.abs(X) / scale[:, None]) ** order).sum(axis=1)
    return largest * powers ** (1 / order)


def joint_norms(a, b, order):
    """Return the norm of the vectors whose two parts have the norms `a` and `b`."""
    if order == 2:
        return np.hypot(a, b)
    a, b = np.broadcast_arrays(a, b)
    return entry_norms(np.stack([a, b], axis=1), order)
