"""Wasserstein distances between Gaussian distributions, in closed form."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_at_least_one, check_covariance, check_real
from skpuffer.utils._lengths import lengths_of
from skpuffer.utils._types import Floats

# Two covariances are one when their entries agree to this fraction of the standard
# deviations involved: room for the round-off of conditioning, and for nothing else,
# because unequal covariances mean an infinite distance.
_SAME = 1e-12


def gaussian_wasserstein(
    mean_u: ArrayLike,
    cov_u: ArrayLike,
    mean_v: ArrayLike,
    cov_v: ArrayLike,
    p: float = np.inf,
    *,
    ord: float = 2,
) -> float:
    r"""Wasserstein distance between two Gaussian distributions.

    .. math:: W_\infty &= \|m_u - m_v\| \text{ if } \Sigma_u = \Sigma_v,
              \ \infty \text{ otherwise} \\
              W_2^2 &= \|m_u - m_v\|_2^2 + \mathrm{tr}\big(\Sigma_u + \Sigma_v
              - 2 (\Sigma_u^{1/2} \Sigma_v \Sigma_u^{1/2})^{1/2}\big)

    Parameters
    ----------
    mean_u, mean_v : float or array-like of shape (d,)
        Means.
    cov_u, cov_v : float or array-like of shape (d, d)
        Variances (not standard deviations) or covariance matrices; positive
        semi-definite, so point masses are allowed.
    p : {2, numpy.inf}, default=numpy.inf
        Order.
    ord : float, default=2
        Norm of the difference of the means for ``p=inf``, in [1, inf].
        ``p=2`` is the Euclidean distance only.

    Returns
    -------
    distance : float
        In the unit of the means. Infinite for ``p=inf`` when the covariances differ:
        along some direction one distribution has heavier tails than the other.

    Raises
    ------
    ValueError
        If shapes differ, entries are not finite, a covariance is not symmetric positive
        semi-definite, `p` is neither 2 nor infinity, or `ord` does not fit.

    Notes
    -----
    Covariances count as equal when ``|cov_u - cov_v|`` is at most 1e-12 times the
    product of the standard deviations of the two coordinates, entry by entry.

    References
    ----------
    Dowson and Landau (1982), The Fréchet distance between multivariate normal
    distributions. Pierquin et al. (2024), Rényi Pufferfish Privacy, Proposition 6.2
    (W_inf of Gaussians of equal covariance).

    Examples
    --------
    >>> from skpuffer.transport import gaussian_wasserstein
    >>> gaussian_wasserstein([0, 0], [[2, 1], [1, 2]], [3, 4], [[2, 1], [1, 2]])
    5.0
    >>> gaussian_wasserstein(0.0, 1.0, 0.0, 4.0)
    inf
    >>> gaussian_wasserstein(0.0, 1.0, 0.0, 4.0, p=2)
    1.0
    """
    order, norm = check_real(p=p), check_at_least_one(ord=ord)
    if order not in (2.0, math.inf):
        raise ValueError(Statement("transport.gaussian_order_unsupported", p=p))
    if order == 2 and norm != 2:
        raise ValueError(Statement("transport.gaussian_norm_not_two", order=ord))
    mean_u, cov_u = _mean_and_covariance("u", mean_u, cov_u)
    mean_v, cov_v = _mean_and_covariance("v", mean_v, cov_v)
    if mean_u.shape != mean_v.shape:
        raise ValueError(
            Statement(
                "transport.gaussian_mean_lengths_differ",
                n_mean_u=len(mean_u),
                n_mean_v=len(mean_v),
            )
        )
    shift = float(lengths_of(mean_u - mean_v, norm))
    if order == 2:
        # W_2² is the squared distance of the means plus the squared Bures distance
        return math.hypot(shift, _bures(cov_u, cov_v))
    # Whether the covariances are one, entry by entry in units of the standard
    # deviations. Unequal variances along a direction make the quantile gap grow without
    # bound, and W_inf infinite.
    deviations = np.sqrt(np.maximum(np.diag(cov_u), np.diag(cov_v)))
    same = np.abs(cov_u - cov_v) <= _SAME * np.outer(deviations, deviations)
    return shift if same.all() else math.inf


def _mean_and_covariance(
    side: str, mean: ArrayLike, cov: ArrayLike
) -> tuple[Floats, Floats]:
    mean = np.atleast_1d(np.asarray(mean, dtype=float))
    cov = np.asarray(cov, dtype=float)
    cov = cov.reshape(1, 1) if cov.ndim == 0 else cov
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise ValueError(
            Statement("transport.gaussian_mean_invalid", side=side, shape=mean.shape)
        )
    if cov.shape != (len(mean), len(mean)):
        raise ValueError(
            Statement(
                "transport.gaussian_covariance_shape_differs",
                side=side,
                n_mean=len(mean),
                shape=cov.shape,
            )
        )
    return mean, check_covariance(**{f"cov_{side}": cov})  # type: ignore[arg-type] # not `least`


def _bures(cov_u: Floats, cov_v: Floats) -> float:
    """Bures distance of two covariances.

    Computed as the Frobenius distance of their square roots after the best rotation,
    which equals the trace formula but does not cancel near zero.
    """
    root_u, root_v = _square_root(cov_u), _square_root(cov_v)
    rotation, _ = orthogonal_procrustes(root_v, root_u)
    return float(np.linalg.norm(root_v @ rotation - root_u))


def _square_root(cov: Floats) -> Floats:
    """Return R of shape (d, d) with ``R @ R.T == cov``."""
    values, vectors = np.linalg.eigh(cov)
    # round-off may leave eigenvalues of a singular matrix slightly below zero
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
