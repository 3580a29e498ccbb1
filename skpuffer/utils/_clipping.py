"""Scaling records down to a public norm: one place for every estimator that clips."""

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from ._checks import check_positive

__all__ = ["check_clipping", "clip_rows"]


def check_clipping(norm, ord):
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


def clip_rows(X, norm, ord=2):
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
        Floats; sparse stays sparse. `X` itself if it is so already and no row exceeds
        the bound; `X` is never changed.

    Raises
    ------
    TypeError
        If `norm` is not a real number.
    ValueError
        If `norm` is not in (0, inf), `ord` is not one of the three, or `X` has NaN or
        infinity: such a row would pass a comparison of norms unclipped.

    Notes
    -----
    The bound holds up to the rounding of the dtype of `X`.

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
    if X.dtype.kind != "f":
        X = X.astype(np.float64)
    lengths = _lengths(X, ord)
    if not np.all(np.isfinite(lengths)):
        if not np.all(np.isfinite(_lengths(X, np.inf))):
            raise ValueError("X contains NaN or infinity: its rows cannot be clipped.")
        # a square overflowed; a first clip along the same ray brings it into range
        X = clip_rows(X, norm, np.inf)
        lengths = _lengths(X, ord)
    if np.all(lengths <= norm):
        return X
    factors = np.ones_like(lengths)
    np.divide(norm, lengths, out=factors, where=lengths > norm)
    if not sparse.issparse(X):
        return X * factors[:, None]
    X = X.copy()
    X.data *= np.repeat(factors, np.diff(X.indptr))
    return X


def _lengths(X, ord):
    """Norm of each row, of shape (n_records,)."""
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            return np.asarray(sparse_linalg.norm(X, ord=ord, axis=1)).ravel()
        return np.linalg.norm(X, ord=ord, axis=1)
