"""Divergences between two known distributions."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_real
from skpuffer.utils._checks import check_masses

__all__ = [
    "gaussian_renyi_divergence",
    "hockey_stick_divergence",
    "renyi_divergence",
]


def _pmf_pair(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.asarray(p), np.asarray(q)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(
            Statement(
                "curve.masses_shape_mismatch",
                first_shape=first.shape,
                second_shape=second.shape,
            )
        )
    return check_masses(first.size, p=first), check_masses(second.size, q=second)


def renyi_divergence(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """Rényi divergence D_alpha(p || q) of two distributions on a finite set.

    Parameters
    ----------
    p, q : array-like of shape (n_points,)
        Masses. Integers are taken as counts.
    alpha : float
        Order, at least 1. At 1 it is the Kullback-Leibler divergence, at infinity
        the logarithm of the largest ratio.

    Returns
    -------
    divergence : float
        In nats; infinite if `p` has mass where `q` has none.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Definition A.1.

    Examples
    --------
    >>> from skpuffer.privacy_loss import renyi_divergence
    >>> round(renyi_divergence([0.5, 0.5], [0.25, 0.75], alpha=2), 6)
    0.287682
    """
    p, q = _pmf_pair(p, q)
    alpha = check_real(alpha=alpha)
    if alpha < 1:
        raise ValueError(Statement("curve.order_below_one", alpha=alpha))
    # points without mass under p add nothing, at no order
    on = p > 0
    p, q = p[on], q[on]
    if np.any(q == 0):
        return math.inf
    log_p, log_q = np.log(p), np.log(q)
    if alpha == 1:
        value = np.sum(p * (log_p - log_q))
    elif math.isinf(alpha):
        value = np.max(log_p - log_q)
    else:
        # log of sum p^alpha q^(1 - alpha), whose terms may under- or overflow
        value = logsumexp(alpha * log_p + (1 - alpha) * log_q) / (alpha - 1)
    # a divergence is not negative, its rounding may be
    return max(0.0, float(value))


def gaussian_renyi_divergence(
    mean_p: ArrayLike,
    covariance_p: ArrayLike,
    mean_q: ArrayLike,
    covariance_q: ArrayLike,
    alpha: float,
) -> float:
    """Rényi divergence of two Gaussian distributions.

    Parameters
    ----------
    mean_p, mean_q : array-like of shape (n_dims,) or float
    covariance_p, covariance_q : array-like of shape (n_dims, n_dims) or float
        Positive definite.
    alpha : float
        Order, greater than 1 and finite.

    Returns
    -------
    divergence : float
        In nats; infinite when the mixed covariance
        ``alpha * covariance_q + (1 - alpha) * covariance_p`` is not positive definite.

    References
    ----------
    Gil, Alajaji and Linder (2013), Rényi divergence measures for commonly used
    univariate continuous distributions.
    """
    alpha = check_real(alpha=alpha)
    if alpha <= 1 or math.isinf(alpha):
        raise ValueError(Statement("curve.gaussian_order_out_of_range", alpha=alpha))
    mean_p, mean_q = (np.atleast_1d(np.asarray(m, float)) for m in (mean_p, mean_q))
    cov_p, cov_q = (
        np.atleast_2d(np.asarray(c, float)) for c in (covariance_p, covariance_q)
    )
    # p^alpha q^(1 - alpha) can be integrated only if this matrix is positive definite,
    # which the Cholesky factorisation tells
    mixed = alpha * cov_q + (1 - alpha) * cov_p
    try:
        factor = np.linalg.cholesky(mixed)
        log_dets = [
            2 * np.sum(np.log(np.diag(np.linalg.cholesky(c)))) for c in (cov_p, cov_q)
        ]
    except np.linalg.LinAlgError:
        return math.inf
    # with the mixed covariance M: alpha/2 |M^(-1/2) (mean_p - mean_q)|² less
    # log(|M| / (|cov_p|^(1 - alpha) |cov_q|^alpha)) / (2 (alpha - 1))
    z = np.linalg.solve(factor, mean_p - mean_q)
    log_det = 2 * np.sum(np.log(np.diag(factor)))
    spread = log_det - (1 - alpha) * log_dets[0] - alpha * log_dets[1]
    return float(alpha / 2 * (z @ z) - spread / (2 * (alpha - 1)))


def hockey_stick_divergence(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """Largest ``P(S) - exp(epsilon) * Q(S)`` over the subsets S of a finite set.

    Parameters
    ----------
    p, q : array-like of shape (n_points,)
        Masses. Integers are taken as counts.
    epsilon : float
        In nats.

    Returns
    -------
    delta : float
        In [0, 1]: the smallest delta of an (epsilon, delta) promise in this direction.

    Examples
    --------
    >>> from skpuffer.privacy_loss import hockey_stick_divergence
    >>> hockey_stick_divergence([0.5, 0.5], [0.25, 0.75], epsilon=0.0)
    0.25
    """
    p, q = _pmf_pair(p, q)
    epsilon = check_real(epsilon=epsilon)
    # The best S holds the points where p > exp(epsilon) q: delta is the sum of the
    # positive parts of p - exp(epsilon) q. First those that q cannot produce.
    alone = p[(p > 0) & (q == 0)].sum()
    shared = (p > 0) & (q > 0)
    p, q = p[shared], q[shared]
    # in logarithms: exp(epsilon) may overflow where its product with q does not
    log_ratio = np.minimum(epsilon + np.log(q) - np.log(p), 0.0)
    return float(alone + np.sum(p * -np.expm1(log_ratio)))
