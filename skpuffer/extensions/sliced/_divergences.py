"""Rényi divergences of projections, averaged or taken jointly with their direction."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_at_least_one,
    check_count,
    check_non_negative,
    check_positive,
)
from skpuffer.privacy_loss import gaussian_renyi_divergence
from skpuffer.utils._checks import check_masses

from .transport._profile import SliceProfile

#: Standard deviations around the largest term of a series outside of which its terms
#: do not add to it.
_WIDE = 12.0

#: Argument past which a series has too many terms, and is bounded.
_LONGEST = 1e10

#: What sums are raised by, relatively, to cover their round-off.
_ROUND_UP = 1e-12

#: Relative round-off of the logarithm of a gamma function, several together.
_ROUND_OFF = 1e-14


def averaged_divergence(
    divergences: ArrayLike, weights: ArrayLike | None = None
) -> float:
    r"""Return the average sliced Rényi divergence :math:`\sum_l w_l D_l`.

    Parameters
    ----------
    divergences : array-like of shape (n_slices,)
        Rényi divergences of the projections, of one order.
    weights : array-like of shape (n_slices,), default=None
        Weights of the slices, summing to one; equal if None.

    Returns
    -------
    divergence : float
        In nats.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, Definition 4.1.

    Examples
    --------
    >>> from skpuffer.privacy_loss import averaged_divergence
    >>> averaged_divergence([1.0, 2.0], [0.25, 0.75])
    1.75
    """
    values, masses = _counted(divergences, weights)
    if math.isinf(values.max()):
        return math.inf
    return math.fsum(masses * values)


def joint_divergence(
    divergences: ArrayLike, weights: ArrayLike | None = None, *, alpha: float
) -> float:
    r"""Return the joint sliced Rényi divergence.

    .. math:: \frac{1}{\alpha - 1} \log \sum_l w_l e^{(\alpha - 1) D_l}

    It is that of one direction, drawn by its weight and revealed, with its projection.

    Parameters
    ----------
    divergences : array-like of shape (n_slices,)
        Rényi divergences of the projections, of order `alpha`.
    weights : array-like of shape (n_slices,), default=None
        Weights of the slices, summing to one; equal if None.
    alpha : float
        Order, at least 1. At 1 it is the average, at infinity the largest.

    Returns
    -------
    divergence : float
        In nats. It lies between the average and the divergence of the vectors.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, Definition 4.3.

    Examples
    --------
    >>> from skpuffer.privacy_loss import joint_divergence
    >>> round(joint_divergence([1.0, 2.0], [0.25, 0.75], alpha=4), 6)
    1.909592
    """
    order = check_at_least_one(alpha=alpha)
    values, masses = _counted(divergences, weights)
    largest = float(values.max())
    if math.isinf(largest) or math.isinf(order):
        return largest
    average = math.fsum(masses * values)
    if order == 1:
        return average
    # Relative to the largest, no exponential overflows. Near order one the sum is near
    # one, and its logarithm is taken of the difference.
    exponents = (order - 1) * (values - largest)
    short = math.fsum(masses * np.expm1(exponents))
    if short > -0.5:
        log_mean = math.log1p(short)
    else:
        log_mean = float(logsumexp(exponents, b=masses))
    # by round-off alone it leaves this range
    return min(max(largest + log_mean / (order - 1), average), largest)


def sliced_gaussian_divergences(
    mean_p: ArrayLike,
    covariance_p: ArrayLike,
    mean_q: ArrayLike,
    covariance_q: ArrayLike,
    alpha: float,
    profile: SliceProfile,
) -> Floats:
    """Return Rényi divergences between the projections of two Gaussian distributions.

    Parameters
    ----------
    mean_p, mean_q : array-like of shape (dim,)
    covariance_p, covariance_q : array-like of shape (dim, dim)
        Positive definite.
    alpha : float
        Order, greater than 1 and finite.
    profile : SliceProfile
        Finite.

    Returns
    -------
    divergences : ndarray of shape (n_slices,)
        In nats; infinite where the first projection is too wide for the second.

    Examples
    --------
    >>> from skpuffer.privacy_loss import sliced_gaussian_divergences
    >>> from skpuffer.transport import SliceProfile
    >>> one, axes = [[1, 0], [0, 1]], SliceProfile.basis(2)
    >>> sliced_gaussian_divergences([1, 2], one, [0, 0], one, 4, axes).tolist()
    [2.0, 8.0]
    """
    if profile.directions is None:
        raise value_error("distribution.profile_infinite")
    means = [np.atleast_1d(np.asarray(m, dtype=float)) for m in (mean_p, mean_q)]
    covariances = [
        np.atleast_2d(np.asarray(c, dtype=float)) for c in (covariance_p, covariance_q)
    ]
    dim = profile.dim
    if any(m.shape != (dim,) for m in means) or any(
        c.shape != (dim, dim) for c in covariances
    ):
        raise value_error("sliced.gaussian_shapes_wrong", dim=dim)
    return np.array(
        [
            gaussian_renyi_divergence(
                u @ means[0],
                u @ covariances[0] @ u,
                u @ means[1],
                u @ covariances[1] @ u,
                alpha,
            )
            for u in profile.directions
        ]
    )


def averaged_shift_divergence(
    length: float, scale: float, dim: int, alpha: float
) -> float:
    r"""Return the average sliced divergence of a Gaussian and its shift.

    .. math:: \frac{\alpha r^2}{2 \sigma^2 d}

    The average is over all directions uniformly.

    Parameters
    ----------
    length, scale : float
        Euclidean length of the shift, and standard deviation of each coordinate.
    dim : int
        Number of coordinates.
    alpha : float
        Order, at least 1.

    Returns
    -------
    divergence : float
        In nats: a share ``1 / dim`` of the divergence of the vectors themselves.

    Examples
    --------
    >>> from skpuffer.privacy_loss import averaged_shift_divergence
    >>> averaged_shift_divergence(2.0, 1.0, dim=4, alpha=3)
    1.5
    """
    return _whole(length, scale, alpha) / check_count(dim=dim)


def joint_shift_divergence(
    length: float, scale: float, dim: int, alpha: float
) -> float:
    r"""Return the joint sliced divergence of a Gaussian and its shift.

    .. math:: \frac{1}{\alpha - 1} \log {}_1F_1\Big(\frac12; \frac d2;
              \frac{\alpha (\alpha - 1) r^2}{2 \sigma^2}\Big)

    The direction is uniform: its squared cosine with the shift is Beta(1/2, (d - 1)/2).

    Parameters
    ----------
    length, scale : float
        Euclidean length of the shift, and standard deviation of each coordinate.
    dim : int
        Number of coordinates.
    alpha : float
        Order, at least 1.

    Returns
    -------
    divergence : float
        In nats, rounded up.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, Definition 4.3.

    Examples
    --------
    >>> from skpuffer.privacy_loss import joint_shift_divergence
    >>> round(joint_shift_divergence(1.0, 1.0, dim=2, alpha=4), 6)
    1.528436
    """
    whole, dim = _whole(length, scale, alpha), check_count(dim=dim)
    # all directions of a line are one, and at order infinity the worst one counts
    if dim == 1 or math.isinf(alpha) or math.isinf(whole) or whole == 0:
        return whole
    averaged = whole / dim
    if alpha == 1:
        return averaged
    joint = _log_kummer(dim, (alpha - 1) * whole) / (alpha - 1)
    return min(max(joint, averaged), whole)


def shift_divergence_bound(averaged: float, profile: SliceProfile) -> float:
    """Bound the divergence of a Gaussian and its shift by its sliced average.

    A profile sees at least the least eigenvalue of its frame of a squared shift.

    Parameters
    ----------
    averaged : float
        Average sliced divergence, in nats, of a shift of one Gaussian only.
    profile : SliceProfile

    Returns
    -------
    bound : float
        Infinite if the profile leaves a direction out.

    Examples
    --------
    >>> from skpuffer.privacy_loss import shift_divergence_bound
    >>> from skpuffer.transport import SliceProfile
    >>> shift_divergence_bound(0.5, SliceProfile.basis(4))
    2.0
    """
    value = check_non_negative(averaged=averaged)
    if profile.least_share == 0:
        return math.inf
    return value / profile.least_share


def _counted(
    divergences: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Divergences and weights of the slices that have any weight."""
    values = np.asarray(divergences, dtype=float)
    # a NaN is not at least zero either
    if values.ndim != 1 or not values.size or not np.all(values >= 0):
        raise value_error("sliced.divergences_invalid", shape=values.shape)
    masses = check_masses(len(values), weights=weights)
    return values[masses > 0], masses[masses > 0]


def _whole(length: float, scale: float, alpha: float) -> float:
    """Rényi divergence of a Gaussian and its shift."""
    ratio = check_non_negative(length=length) / check_positive(scale=scale)
    order = check_at_least_one(alpha=alpha)
    # no shift has no divergence, at order infinity either
    return 0.0 if ratio == 0 else order * ratio**2 / 2


def _log_kummer(dim: int, z: float) -> float:
    """Return the logarithm of 1F1(1/2; dim/2; z) for z above zero, rounded up.

    The mean of ``exp(z B)`` for a Beta variable B, by its series around
    ``z - dim / 2``.
    """
    if z > _LONGEST:
        return z
    half, middle = dim / 2, max(z - dim / 2, 0.0)
    wide = _WIDE * math.sqrt(z) + 50
    k = np.arange(math.floor(max(middle - wide, 0)), math.ceil(middle + wide))
    if k[0] == 0:
        # after the first, which is one: what adds little to it is kept to all digits
        terms = np.cumprod((k + 0.5) / (k + half) * (z / (k + 1)))
        return min(math.log1p(math.fsum(terms)) * (1 + _ROUND_UP), z)
    logs = (
        (gammaln(k + 0.5) - gammaln(0.5))
        - (gammaln(k + half) - gammaln(half))
        + (k * math.log(z) - gammaln(k + 1))
    )
    # round-off is relative to the parts of a term, the largest of which are of size
    # z log(z)
    error = _ROUND_OFF * (z + half) * math.log(z + half)
    return min(float(logsumexp(logs)) + error, z)
