"""Norms of rows at any scale, without overflow: clipping and noise rest on them."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from sklearn.utils import gen_batches

from ._types import Floats, Numbers

__all__ = ["joint_norms", "least_norm", "row_norms", "row_parts"]

# Length of a row from which on squares that underflow are below its round-off.
_LEAST_LENGTH = 2.0**-480

# Number of entries of a temporary that stays in cache.
_PART_ENTRIES = 2**16


def row_parts(X: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows, a copy of which stays in cache.

    Parameters
    ----------
    X : ndarray of shape (n, m)

    Yields
    ------
    slice
    """
    yield from gen_batches(len(X), max(1, _PART_ENTRIES // max(1, X.shape[1])))


def row_norms(X: Any, order: float) -> Floats:
    """Return the norm of each row, in float64.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, m)
        float32 or float64.
    order : float
        In [1, inf].

    Returns
    -------
    ndarray of shape (n,)
        inf or NaN where a row is too long for float64, or has such an entry.

    Notes
    -----
    Powers of an entry may overflow, and vanish. Rows where they may are divided by
    their largest entries first; with squares, few are.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if order not in (1, 2, math.inf):
            return _scaled_norms(X, order)
        lengths = _plain_norms(X, order)
        if order == 2 and X.dtype != np.float32:  # float64 holds any square of those
            sure = (lengths >= _LEAST_LENGTH) & (lengths < math.inf)
            if not sure.all():
                again = np.flatnonzero(~sure)
                lengths[again] = _scaled_norms(X[again], order)
        return lengths


def _plain_norms(X: Any, order: float) -> Floats:
    if sparse.issparse(X):
        return sparse_linalg.norm(X.astype(np.float64), ord=order, axis=1)
    X = np.asarray(X, np.float64)
    if order == 2:
        return np.sqrt(np.einsum("ij,ij->i", X, X))
    return np.linalg.norm(X, ord=order, axis=1)


def _scaled_norms(X: Any, order: float) -> Floats:
    """Norms of the rows divided by their largest entries, times these."""
    largest = _plain_norms(X, math.inf)
    scale = np.where(largest > 0, largest, 1.0)
    if sparse.issparse(X):
        shares = X.astype(np.float64)
        shares.data = np.abs(shares.data) / np.repeat(scale, np.diff(X.indptr))
        powers = np.asarray(shares.power(order).sum(axis=1)).ravel()
    else:
        powers = ((np.abs(X) / scale[:, None]) ** order).sum(axis=1)
    return largest * powers ** (1 / order)


def joint_norms(a: Numbers, b: Numbers, order: float) -> Floats:
    """Return the norms of vectors whose two parts have the norms `a` and `b`.

    Parameters
    ----------
    a, b : ndarray of shape (n,) or float
    order : float
        In [1, inf].

    Returns
    -------
    ndarray of shape (n,)
    """
    if order == 2:
        return np.hypot(a, b)
    a, b = np.broadcast_arrays(a, b)
    return row_norms(np.stack([a, b], axis=1), order)


def least_norm(dtype: Any) -> float:
    """Return the least norm to which vectors of a dtype may be clipped.

    Entries of shorter vectors may be subnormal floats, whose spacing no longer shrinks
    with them, so that rounding would be a large share of the norm.

    Parameters
    ----------
    dtype : dtype
        float32 or float64.

    Returns
    -------
    float
    """
    info = np.finfo(dtype)
    return float(info.tiny) / float(info.eps)
