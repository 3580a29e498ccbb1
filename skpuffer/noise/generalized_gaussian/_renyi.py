"""Rényi divergence of unit generalised Gaussian noise shifted by u."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gamma

from skpuffer.kernel.laplace import exp_remainder
from skpuffer.kernel.numbers import Floats, Numbers

from ._loss import loss

__all__ = ["renyi"]

#: Relative amount by which costs are rounded up: a thousand times the quadrature error.
_HAIR = 1e-11

#: Nats below its peak at which an integrand is cut off.
_DROP = 60.0

#: Exponent from which on only the maximum of an integrand counts.
_PEAK_ALONE = 1e14

#: Elements integrated at once, which bounds the memory.
_CHUNK = 1000


@lru_cache(maxsize=8)
def _rule(density: int) -> tuple[Floats, Floats, Floats]:
    """Double exponential rule on [0, 1]: nodes' distances from both ends, and weights.

    It converges exponentially whatever the kinks at the ends (Takahasi and Mori, 1974).
    """
    # x = 1 / (1 + exp(-pi sinh(t))) for evenly spaced t, up to where the weights
    # vanish; distances from the nearer end keep their digits
    last = int(3.2 * density)
    t = np.arange(-last, last + 1) / density
    s = np.pi / 2 * np.sinh(t)
    weights = np.pi / 2 * np.cosh(t) / (2 * np.cosh(s) ** 2) / density
    return 1 / (1 + np.exp(-2 * s)), 1 / (1 + np.exp(2 * s)), weights


def _density(beta: float) -> int:
    """Density of nodes that gives fourteen digits, for all orders and shifts."""
    # from comparisons with many more: the larger beta, the steeper are the tails
    return 20 if beta <= 2 else 40 if beta <= 12 else 80


def _integral(
    integrand: Callable[[Floats], Floats], marks: Floats, beta: float
) -> Floats:
    """Integrals over the segments between marks of shape (n, m), added up."""
    near, far, weights = _rule(_density(beta))
    low, width = marks[:, :-1, np.newaxis], np.diff(marks)[..., np.newaxis]
    high = marks[:, 1:, np.newaxis]
    x = np.where(near < far, low + width * near, high - width * far)
    values = integrand(x.reshape(len(marks), -1)).reshape(x.shape)
    integrals: Floats = ((values * weights).sum(axis=-1) * width[..., 0]).sum(axis=-1)
    return integrals


def _edges(
    height: Callable[[Floats], Floats], peak: Floats, size: Floats
) -> list[Floats]:
    """Points to either side where a unimodal function is `_DROP` below its peak.

    At most a hundredth beyond, by bisection on the logarithm of the distance.
    """
    least = height(peak) - _DROP
    ends = []
    for sign in (-1.0, 1.0):
        low, high = np.full_like(peak, -60.0), np.full_like(peak, 60.0)
        # the logarithm of the distance, halved 14 times from [-60, 60] to within 1/100;
        # the end outside is returned, so nothing within the drop is cut off
        for _ in range(14):
            middle = (low + high) / 2
            above = height(peak + sign * size * np.exp(middle)) > least
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        ends.append(peak + sign * size * np.exp(high))
    return ends


def renyi(alpha: Numbers, u: Numbers, beta: float) -> Floats:
    """Rényi divergence of unit noise shifted by u from the noise, rounded up.

    Parameters
    ----------
    alpha : float or ndarray
        Orders in (1, inf].
    u : float or ndarray
        In [0, inf]. Arrays broadcast.
    beta : float
        Above one.

    Returns
    -------
    cost : ndarray
        In nats; infinity where it is, or is too large for a float.

    Notes
    -----
    For the density p of the noise and the loss L against shifted noise, the mean of
    exp((alpha - 1) L) is one more than the integral of p times r((alpha - 1) L) +
    (alpha - 1) r(-L), where r(x) = exp(x) - 1 - x: a sum of positive terms in which
    nothing cancels, however small u is. Where it is large, the mean is integrated as
    it stands, about the one peak of its integrand.
    """
    alpha, u = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(u, float))
    cost = np.where(u > 0, np.inf, 0.0)
    usual = (u > 0) & np.isfinite(u) & np.isfinite(alpha)
    rest, shift = alpha[usual] - 1, u[usual]
    found = [
        _costs(rest[i : i + _CHUNK], shift[i : i + _CHUNK], beta)
        for i in range(0, rest.size, _CHUNK)
    ]
    if found:
        cost[usual] = np.concatenate(found)
    return cost


def _weighted(exponent: Floats, x: Floats) -> Floats:
    """Return exp(exponent) (exp(x) - 1 - x), also where exp(x) is too large."""
    # for large x the exponents are added first: their sum may be small
    near = np.exp(exponent) * exp_remainder(np.minimum(x, 1.0))
    return np.where(x <= 1, near, np.exp(exponent + x) - np.exp(exponent) * (1 + x))


def _costs(rest: Floats, u: Floats, beta: float) -> Floats:
    """Rényi divergences at orders ``1 + rest``, all finite and u positive."""
    norm = 2 * gamma(1 + 1 / beta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        # the exponent rest (|x - u|^beta - |x|^beta) - |x|^beta is stationary where
        # ((u - x) / -x)^(beta - 1) = (1 + rest) / rest
        peak = -u / np.expm1(np.log1p(1 / rest) / (beta - 1))
        column, moved = rest[:, np.newaxis], u[:, np.newaxis]

        def exponent(x: Floats) -> Floats:
            return -(np.abs(x) ** beta) + rest * loss(x, u, beta)

        left, right = _edges(exponent, peak, 1.0 + u + np.abs(peak))
        top = exponent(peak)
        # segments between the peak, which is negative, and the kinks at 0 and u
        marks = np.stack([left, peak, 0 * u, u, right], axis=1)
        marks = np.clip(marks, left[:, np.newaxis], right[:, np.newaxis])

        def moment(x: Floats) -> Floats:
            rise = -(np.abs(x) ** beta) + column * loss(x, moved, beta)
            return np.exp(rise - top[:, np.newaxis])

        log_moment = np.log(_integral(moment, marks, beta) / norm) + top
        # from here on the width of the peak is lost in rounding, and less than `_HAIR`
        log_moment = np.where(top > _PEAK_ALONE, top, log_moment)

        # where the noise itself, unshifted or shifted, is `_DROP` below its peak; the
        # loss changes sign at u / 2
        end = _DROP ** (1 / beta)
        left, right = np.minimum(left, -end), np.maximum(right, u + end)
        marks = np.stack([left, 0 * u, u / 2, u, right], axis=1)
        marks = np.clip(marks, left[:, np.newaxis], right[:, np.newaxis])

        def remainder(x: Floats) -> Floats:
            size, fall = loss(x, moved, beta), -(np.abs(x) ** beta)
            return _weighted(fall, column * size) + column * _weighted(fall, -size)

        # mean of exp(rest L) - 1 as a sum of positive terms, where it is small
        small = log_moment < 0.5
        if small.any():
            rest_, u_ = rest[small], u[small]
            column, moved = rest_[:, np.newaxis], u_[:, np.newaxis]
            more = np.log1p(_integral(remainder, marks[small], beta) / norm)
            log_moment[small] = more
        cost = log_moment / rest * (1 + _HAIR)
    return np.where(np.isfinite(cost) & (cost > 0), cost, np.inf)
