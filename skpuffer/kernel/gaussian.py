"""Gaussian noise, and its exact trade-off."""

import math
from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np
from scipy.special import log_ndtr, ndtri

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import MagnitudeNoise
from skpuffer.kernel.numbers import Floats, Numbers, largest_argument, root_above

__all__ = [
    "GaussianNoise",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
]


@dataclass(frozen=True)
class GaussianNoise(MagnitudeNoise):
    """Gaussian noise with independent coordinates, N(0, scale² I).

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Standard deviation, in the unit of the output, or one for each coordinate.

    See Also
    --------
    CorrelatedGaussianNoise : Of any covariance.

    Notes
    -----
    Every divergence of N(x, Σ) from N(0, Σ) depends on x only through its Mahalanobis
    norm, the l2 norm of x in standard deviations, and grows with it, so the worst
    displacement is the longest in that norm. Pierquin et al. (2024), Corollary 3.1, for
    the Rényi divergence; Balle and Wang (2018) for the hockey-stick divergence.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise
    >>> GaussianNoise(scale=2.0).renyi(8, 1.0)
    1.0
    """

    family = "gaussian"
    norm = 2.0
    unit_variance = 1.0
    _mu_per_unit = 1.0

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        # in floating point, where theorems take a real number: a fit's certificate
        # names it as an assumption
        return rng.standard_normal(shape)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):  # inf * 0
            # of N(u, 1) from N(0, 1): alpha u² / 2
            return np.where(u == 0, 0.0, alpha / 2 * u**2)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        return gaussian_delta(epsilon, u)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        # the loss is linear in the noise, hence unbounded
        if math.isinf(alpha):
            raise value_error("gaussian.no_pure_epsilon")
        # alpha u² / 2 = epsilon; the last digit is seen to where a scale is made of it
        return math.sqrt(2 * epsilon / alpha)

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        return gaussian_mu(epsilon, delta)

    def _epsilon(self, delta: float, u: float) -> float:
        return gaussian_epsilon(delta, u)

    def _interval_width(self, level: float) -> float:
        # each coordinate is Gaussian, also of correlated noise
        return float(ndtri((1 + level) / 2))

    def covariance_matrix(self, dim: int) -> Floats:
        """Return the covariance of the noise in `dim` coordinates."""
        # independent coordinates are uncorrelated
        return np.diag(np.broadcast_to(self.variance(dim), (dim,)))

    def whitened(self, displacements: Floats) -> Floats:
        """Return displacements, one a row, in standard deviations of the noise."""
        # after which the worst displacement is simply the longest
        return np.asarray(displacements / np.asarray(self.scale))


@overload
def gaussian_delta(epsilon: float, mu: float) -> float: ...


@overload
def gaussian_delta(epsilon: Floats, mu: Numbers) -> Floats: ...


@overload
def gaussian_delta(epsilon: Numbers, mu: Floats) -> Floats: ...


def gaussian_delta(epsilon: Numbers, mu: Numbers) -> Numbers:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1) at exp(epsilon).

    Parameters
    ----------
    epsilon : float or ndarray
        In nats; negative values are meaningful.
    mu : float or ndarray
        Distance of the means in standard deviations, in [0, inf]. Arrays broadcast.

    Returns
    -------
    delta : float or ndarray
        In [0, 1].

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.
    """
    if isinstance(epsilon, float) and isinstance(mu, float):
        # solvers ask for single numbers by the thousand: spare them the arrays
        if mu == 0:
            return max(0.0, -math.expm1(epsilon)) if epsilon < 700 else 0.0
        if math.isinf(mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0 if epsilon > 0 else 1.0
        return float(_difference(epsilon, mu))
    epsilon, mu = np.asarray(epsilon, float), np.asarray(mu, float)
    # limits are put in afterwards: where mu or epsilon is infinite or zero, NaN comes
    # out
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = _difference(epsilon, mu)
        value = np.where(np.isinf(epsilon), np.where(epsilon > 0, 0.0, 1.0), value)
        value = np.where(mu == 0, np.maximum(0.0, -np.expm1(epsilon)), value)
        value = np.where(np.isinf(mu), 1.0, value)
    return float(value) if value.ndim == 0 else value


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon >= 0 with ``gaussian_delta(epsilon, mu) <= delta``.

    Rounded up: the value returned never promises more than holds.
    """
    # no epsilon is needed where delta covers the total variation already
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    # the loss is N(mu²/2, mu²), so that P(loss > epsilon) <= delta at this upper end
    upper = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    if mu > 1e8:  # it is as good as exact, and the curve has lost its digits
        return upper * (1 + 1e-12)
    # bracketed by a point that misses delta and one that meets it
    return root_above(partial(gaussian_delta, mu=mu), delta, 0.0, upper)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu with ``gaussian_delta(epsilon, mu) <= delta``, rounded down."""
    mu = largest_argument(partial(gaussian_delta, epsilon), delta, 1.0)
    # evaluated once more, as it is by whoever asks the curve: down is the safe side
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-12
    return mu


def _difference(epsilon: Numbers, mu: Numbers) -> Floats:
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)."""
    # Theorem 8 of Balle and Wang with mu the sensitivity over the standard deviation.
    first = log_ndtr(mu / 2 - epsilon / mu)
    # exp(epsilon) * Phi(...) in logarithms: the product is tame, its factors are not
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    # as exp(first) (1 - exp(second - first)), without the cancellation of two small
    # terms
    difference: Floats = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    return difference
