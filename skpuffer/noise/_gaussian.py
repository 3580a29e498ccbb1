"""Gaussian noise, whose cost depends on the l2 norm in standard deviations."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Numbers
from skpuffer.privacy_loss._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)

from ._base import MagnitudeNoise


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
            raise ValueError(Statement("gaussian.no_pure_epsilon"))
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
