"""Clipping: records scaled down to a public norm, for every estimator that clips."""

from typing import Any

import numpy as np
from scipy import sparse

from ._checks import check_positive
from ._norms import least_norm, row_norms, row_parts
from ._types import Floats

__all__ = ["check_clipping", "clip_rows"]


def check_clipping(norm: float, ord: float) -> float:
    """Check the parameters of :func:`clip_rows`; return `norm` as a float.

    Raises
    ------
    TypeError
        If `norm` is not a real number.
    ValueError
        If `norm` is not in (0, inf) or `ord` is not 1, 2 or inf.
    """
    if np.ndim(ord) or not any(ord == known for known in (1, 2, np.inf)):
        raise ValueError(f"The parameter 'ord' must be one of 1, 2, inf. Got {ord!r}.")
    return check_positive(norm=norm)


def clip_rows(X: Any, norm: float, ord: float = 2) -> Any:
    """Scale each row whose norm exceeds a bound down to it; leave the others alone.

    Afterwards a row's norm is at most `norm`, whatever the row was, so that one record
    moves a sum over records by no more.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers.
    norm : float
        Public bound, positive and finite, in the units of the features.
    ord : {1, 2, inf}, default=2
        Order of the norm.

    Returns
    -------
    {ndarray, CSR matrix} of shape (n_records, n_features)
        Floats; sparse stays sparse. `X` itself if it is so already, in canonical
        format, and no row exceeds the bound; `X` is never changed.

    Raises
    ------
    TypeError
        If `norm` is not a real number.
    ValueError
        If `norm` is not in (0, inf) or too short for the dtype of `X`, `ord` is not one
        of the three, or `X` has NaN or infinity: such a row would pass a comparison of
        norms unclipped.

    Notes
    -----
    The bound holds up to the rounding of the dtype of `X`, at any scale.

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
        raise ValueError(
            f"The parameter 'norm' must be at least {least_norm(X.dtype):.3g} for rows "
            f"in {X.dtype.name}, which hold no shorter ones exactly. Got {norm}. Scale "
            "the features, or use float64."
        )
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # entries stored in parts would be measured too short
        return _clipped(X, norm, ord)
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
    long = ~(lengths <= norm)
    if not np.any(long):
        return X
    factors = np.ones(len(lengths))
    with np.errstate(invalid="ignore"):
        np.divide(norm, lengths, out=factors, where=long)
    far = np.flatnonzero(~(factors >= np.finfo(float).tiny))
    if len(far):
        largest = row_norms(X[far], np.inf)
        if not np.all(np.isfinite(largest)):
            raise ValueError("X contains NaN or infinity: its rows cannot be clipped.")
        # a power of two that brings any length into range, exactly
        units = np.ones(len(lengths))
        units[far] = np.ldexp(1.0, np.frexp(largest)[1] - 1)
        X = _scaled(X.astype(np.float64), 1 / units)
        factors[far] = norm / row_norms(X[far], ord)
    return _scaled(X, factors).astype(dtype, copy=False)


def _scaled(X: Any, factors: Floats) -> Any:
    """Each row times its factor."""
    if not sparse.issparse(X):
        return X * factors[:, None]
    X = X.astype(np.float64)  # a copy
    X.data *= np.repeat(factors, np.diff(X.indptr))
    return X
