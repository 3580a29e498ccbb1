"""Closed forms for one record in one of many bins, from a Gram matrix.

With the record in bin i of b, the releases are N(m_i, sigma² I), and so with the record
in a random bin the mixture P of these; without it they are Q = N(0, sigma² I). The pair
depends on the means only through their inner products, in units of the noise:
``gram[i, j] = <m_i, m_j> / sigma²``. "Remove" is the order (P, Q), "add" is (Q, P).
"""

from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_finite
from skpuffer.utils._types import Floats

from .._gaussian import gaussian_delta

__all__ = ["check_gram", "closed_add_delta", "renyi_add", "unamplified_delta"]

# Epsilons times bins that are treated at once: bounds the memory.
_BLOCK = 2**18


def check_gram(gram: Any) -> Floats:
    """Return a Gram matrix as floats, exactly symmetric.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        In units of the noise's variance.

    Returns
    -------
    ndarray of shape (n_bins, n_bins)

    Raises
    ------
    ValueError
        If it is not square, symmetric, finite and non-negative.
    """
    values = check_finite(gram=gram)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(Statement("allocation.gram_not_square", shape=values.shape))
    if np.any(values < 0):
        raise ValueError(Statement("allocation.gram_negative", least=values.min()))
    if np.any(np.abs(values - values.T) > 1e-9 * values.max()):
        raise ValueError(Statement("allocation.gram_not_symmetric"))
    # the larger of two entries that differ by rounding: the safe one
    return np.maximum(values, values.T)


def closed_add_delta(gram: Any, epsilon: Any) -> Floats:
    """Bound the hockey-stick divergence in the direction "add", in closed form.

    By Jensen's inequality the log of the mixture's density over Q's is at least the
    mean of that of its components, which under Q is Gaussian.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance; not merely bounds
        on them, unless these are a covariance as well.
    epsilon : float or array-like
        In nats, of any sign.

    Returns
    -------
    ndarray of the shape of `epsilon`
        In [0, 1]; exact where there is a single bin.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemma 3.4, whose Rényi divergence of the same
    Gaussian never implies less.
    """
    gram = check_gram(gram)
    # with the loss bounded by l ~ N(-drop, spread²), the mean of (1 - exp(epsilon+l))₊
    # is the trade-off of two Gaussians `spread` apart, at an epsilon that is less by
    # what the mean of exp(l) falls short of one
    drop, square = np.trace(gram) / (2 * len(gram)), gram.mean()
    short = max(0.0, float(drop - square / 2))
    moved = np.asarray(epsilon, float) - short
    return np.asarray(gaussian_delta(moved, np.sqrt(square)))


def unamplified_delta(gram: Any, epsilon: Any) -> Floats:
    """Bound the hockey-stick divergence in both directions by a known bin's.

    The divergence is jointly convex, so that of the mixture is at most the mean of its
    components'.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance. Only the diagonal
        counts.
    epsilon : float or array-like
        In nats, of any sign.

    Returns
    -------
    ndarray of the shape of `epsilon`
        In [0, 1]; exact where there is a single bin.
    """
    norms, counts = np.unique(np.sqrt(np.diag(check_gram(gram))), return_counts=True)
    weights = counts / counts.sum()
    epsilon = np.asarray(epsilon, float)
    at = epsilon.reshape(-1, 1)
    found = np.empty(len(at))
    for part in gen_batches(len(at), max(1, _BLOCK // len(norms))) if len(at) else ():
        found[part] = gaussian_delta(at[part], norms) @ weights
    return np.minimum(found, 1.0).reshape(epsilon.shape)


def renyi_add(gram: Any, orders: Any) -> Floats:
    """Bound the Rényi divergence in the direction "add", in closed form.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance; not merely bounds
        on them, unless these are a covariance as well.
    orders : float or array-like
        Above one and finite, whole or not.

    Returns
    -------
    ndarray of the shape of `orders`
        In nats. For many bins far above the truth: as the order approaches one it
        approaches that of a known bin. :func:`closed_add_delta` bounds a delta better.

    References
    ----------
    Schuchardt and Kalinin (2026), Lemma 3.4.
    """
    gram, orders = check_gram(gram), check_finite(orders=orders)
    if np.any(orders <= 1):
        raise ValueError(
            Statement("allocation.orders_not_above_one", least=orders.min())
        )
    drop = np.trace(gram) / (2 * len(gram))
    return np.asarray(drop + (orders - 1) * gram.mean() / 2)
