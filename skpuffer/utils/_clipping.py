"""Norms of rows, and clipping: rows scaled down to a public norm, for all that clip.

Norms are found at any scale, without overflow: clipping and noise rest on them.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Numbers, check_positive
from skpuffer.utils._reading import row_parts

# Length of a row from which on squares that underflow are below its round-off.
_LEAST_LENGTH = 2.0**-480

# Sums of no more squares than these are off by less than 1e-3 in single precision, and
# such sums are made of numbers that are not so small that they have lost their digits.
_FEW_SQUARES, _LEAST_SQUARES = 2**12, 2.0**-80


def row_norms(X: Any, order: float) -> Floats:
    """Return the norm of each row, in float64; inf or NaN where there is none.

    Rows of which powers may overflow or vanish are divided by their largest entries
    first.
    """
    if not sparse.issparse(X):
        X = np.asarray(X, order="C")  # else entries are added up in another order
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # powers of other orders may overflow or vanish for moderate entries
        if order not in (1, 2, math.inf):
            return _scaled_norms(X, order)
        lengths = _plain_norms(X, order)
        if order == 2 and X.dtype != np.float32:  # float64 holds any square of those
            # also where a square vanished beside larger ones: it was below their
            # round-off
            sure = (lengths >= _LEAST_LENGTH) & (lengths < math.inf)
            if not sure.all():
                # NaN is not sure either, and stays NaN
                again = np.flatnonzero(~sure)
                lengths[again] = _scaled_norms(X[again], order)
        return lengths


def upper_norms(X: Any, order: float) -> NDArray[Any]:
    """Return the norm of each row, rounded up by at most 0.1 %, in the rows' dtype.

    A sum of m squares in floating point of unit u is too small by a factor of
    ``(1 - u)**m`` at most, whatever the order of additions.
    """
    if X.dtype != np.float32 or order != 2 or sparse.issparse(X):
        return rounded_up(row_norms(X, order), X.dtype)
    if X.shape[1] > _FEW_SQUARES:
        return rounded_up(row_norms(X, order), X.dtype)
    X = np.asarray(X, order="C")  # as in `row_norms`
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", X, X)
        # squares may have vanished, or overflowed; NaN is not sure either
        sure = (squares >= _LEAST_SQUARES) & (squares < math.inf)
        lengths: NDArray[Any] = np.sqrt(squares, out=squares)
        lengths *= np.float32(1 + (X.shape[1] + 8) * 2.0**-23)
    if not sure.all():
        again = np.flatnonzero(~sure)
        lengths[again] = rounded_up(row_norms(X[again], order), X.dtype)
    return lengths


def rounded_up(lengths: Floats, dtype: Any) -> NDArray[Any]:
    """Return lengths in a dtype, no less than the exact ones."""
    info = np.finfo(dtype)
    with np.errstate(over="ignore"):
        # below `tiny` numbers are too few to round to
        lengths = np.maximum(lengths, info.tiny) * (1 + 2 * float(info.eps))
        return lengths.astype(dtype, copy=False)


def _entries(X: Any) -> NDArray[Any]:
    """Stored entries of a CSR matrix, whose arrays may have room for more."""
    entries: NDArray[Any] = X.data[: X.indptr[-1]]
    return entries


def _row_reduced(reduce: np.ufunc, values: Floats, X: Any) -> Floats:
    """Sums, or other reductions, of what stands in each row of a CSR matrix."""
    found = np.zeros(X.shape[0])
    # of a row without entries `reduceat` would give one of the next row's
    some = np.flatnonzero(np.diff(X.indptr))
    found[some] = reduce.reduceat(values, X.indptr[some]) if len(some) else 0.0
    return found


def _plain_norms(X: Any, order: float) -> Floats:
    norms: Floats
    if sparse.issparse(X):
        entries = np.abs(_entries(X), dtype=np.float64)
        if order == math.inf:
            return _row_reduced(np.maximum, entries, X)
        if order == 2:
            entries *= entries
        sums = _row_reduced(np.add, entries, X)
        return np.sqrt(sums, out=sums) if order == 2 else sums
    X = np.asarray(X, np.float64)
    if order == 2:
        # without a table of all squares
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    else:
        norms = np.linalg.norm(X, ord=order, axis=1)
    return norms


def _scaled_norms(X: Any, order: float) -> Floats:
    """Norms of the rows divided by their largest entries, times these."""
    largest = _plain_norms(X, math.inf)
    # a row of zeros, or with a NaN, is divided by one
    scale = np.where(largest > 0, largest, 1.0)
    if sparse.issparse(X):
        shares = np.abs(_entries(X)) / np.repeat(scale, np.diff(X.indptr))
        powers = _row_reduced(np.add, shares**order, X)
    else:
        # entries of at most one, one of which is one: no power overflows, nor does
        # their sum
        powers = ((np.abs(X) / scale[:, None]) ** order).sum(axis=1)
    return largest * powers ** (1 / order)


def joint_norms(a: Numbers, b: Numbers, order: float) -> Floats:
    """Return the norms of vectors whose two parts have the norms `a` and `b`."""
    if order == 2:
        return np.hypot(a, b)
    a, b = np.broadcast_arrays(a, b)
    return row_norms(np.stack([a, b], axis=1), order)


@cache  # asked at every step
def least_norm(dtype: Any) -> float:
    """Return the least norm to which vectors of a dtype may be clipped.

    Entries of shorter vectors may be subnormal, so that rounding would be a large
    share.
    """
    info = np.finfo(dtype)
    return float(info.tiny) / float(info.eps)


def check_clipping(norm: float, ord: float) -> float:
    """Check the parameters of :func:`clip_rows`; return `norm` as a float."""
    if np.ndim(ord) or not any(ord == known for known in (1, 2, np.inf)):
        raise value_error("clipping.norm_order_unknown", ord=ord)
    return check_positive(norm=norm)


def clip_rows(X: Any, norm: float, ord: float = 2) -> Any:
    """Scale each row whose norm exceeds a bound down to it; leave the others alone.

    Afterwards one record moves a sum over records by no more than `norm`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers; NaN and infinity are refused. It is never changed.
    norm : float
        Public bound, positive and finite, in the units of the features.
    ord : {1, 2, inf}, default=2
        Order of the norm.

    Returns
    -------
    {ndarray, CSR matrix} of shape (n_records, n_features)
        Floats; the bound holds up to the rounding of the dtype of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.utils._clipping import clip_rows
    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    norm = check_clipping(norm, ord)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if norm < least_norm(X.dtype):
        raise value_error(
            "clipping.norm_too_small",
            least_norm=least_norm(X.dtype),
            name=X.dtype.name,
            norm=norm,
        )
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # entries stored in parts would be measured too short
        return _clipped(X, norm, ord)
    # copied only if a row is too long: most tables are within their bound
    result = X
    for part in row_parts(X):
        clipped = _clipped(X[part], norm, ord)
        if not np.may_share_memory(clipped, X):
            result = X.copy() if result is X else result
            result[part] = clipped
    return result


def _clipped(X: Any, norm: float, ord: float) -> Any:
    """Clipped rows of a small table; the table itself if no row exceeds the bound."""
    lengths, dtype = row_norms(X, ord), X.dtype
    # what is not known to be short, NaN included, is long
    long = ~(lengths <= norm)
    if not np.any(long):
        return X
    factors = np.ones(len(lengths))
    with np.errstate(invalid="ignore"):
        np.divide(norm, lengths, out=factors, where=long)
    # subnormal, zero or NaN: the quotient has lost its digits, or the row is not finite
    far = np.flatnonzero(~(factors >= np.finfo(float).tiny))
    if len(far):
        largest = row_norms(X[far], np.inf)
        # quoting nothing: the row is private
        if not np.all(np.isfinite(largest)):
            raise value_error("clipping.rows_not_finite")
        # a power of two that brings any length into range, exactly
        units = np.ones(len(lengths))
        units[far] = np.ldexp(1.0, np.frexp(largest)[1] - 1)
        X = _scaled(X.astype(np.float64), 1 / units)
        # measured anew, in the units by which the rows have been divided
        factors[far] = norm / row_norms(X[far], ord)
    # rounded once, to the dtype the table came in
    return _scaled(X, factors).astype(dtype, copy=False)


def _scaled(X: Any, factors: Floats) -> Any:
    """Each row times its factor."""
    if not sparse.issparse(X):
        return X * factors[:, None]
    X = X.astype(np.float64)  # a copy
    X.data *= np.repeat(factors, np.diff(X.indptr))
    return X
