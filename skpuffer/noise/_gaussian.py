"""Gaussian noise: its cost depends on the l2 or the Mahalanobis norm."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from skpuffer.privacy_loss._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from skpuffer.utils._checks import check_covariance
from skpuffer.utils._types import Floats, Numbers

from ._base import Noise
from ._shift import Shift

# Least eigenvalue of a covariance over its largest: below, whitening loses all digits.
_LEAST = 1e-12


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Gaussian noise, N(0, scale² I) or N(0, scale² covariance).

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Standard deviation, in the unit of the output, or one for each coordinate. One
        number only, a multiplier, if `covariance` is given.
    covariance : array-like of shape (dim, dim) or None, default=None
        Symmetric and positive definite. Kept as a tuple of tuples.

    Notes
    -----
    Every divergence of N(x, Σ) from N(0, Σ) depends on x only through its Mahalanobis
    norm, the l2 norm of x in standard deviations, and grows with it, so the worst
    displacement is the longest in that norm. Pierquin et al. (2024), Corollary 3.1, for
    the Rényi divergence; Balle and Wang (2018) for the hockey-stick divergence.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise, Shift
    >>> GaussianNoise(scale=2.0).renyi(8, 1.0)
    1.0
    >>> noise = GaussianNoise(covariance=[[4.0, 0.0], [0.0, 1.0]])
    >>> noise.renyi(2, Shift(1.0, norm=2, dim=2))
    1.0
    """

    covariance: tuple[tuple[float, ...], ...] | None = None

    family = "gaussian"
    norm = 2.0
    unit_variance = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance is None:
            return
        if np.ndim(self.scale):
            raise ValueError(
                "The parameter 'scale' must be one number where 'covariance' is given: "
                "put the scales of the coordinates into the covariance."
            )
        covariance = check_covariance(least=_LEAST, covariance=self.covariance)
        object.__setattr__(self, "covariance", tuple(map(tuple, covariance.tolist())))

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.standard_normal(shape)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):  # inf * 0
            # of N(u, 1) from N(0, 1): alpha u² / 2
            return np.where(u == 0, 0.0, alpha / 2 * u**2)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        return gaussian_delta(epsilon, u)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        if math.isinf(alpha):
            raise ValueError(
                "Gaussian noise has no finite pure-epsilon cost. Use LaplaceNoise, a "
                "finite order 'alpha', or a positive 'delta'."
            )
        return math.sqrt(2 * epsilon / alpha)

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        return gaussian_mu(epsilon, delta)

    def _epsilon(self, delta: float, u: float) -> float:
        return gaussian_epsilon(delta, u)

    def _gaussian_mu(self, magnitude: float) -> float | None:
        return magnitude

    @cached_property
    def _factor(self) -> Floats:
        """Lower Cholesky factor of the covariance."""
        return np.linalg.cholesky(np.asarray(self.covariance))

    def _magnitude(self, shift: Shift | Floats) -> Numbers:
        if self.covariance is None or not isinstance(shift, Shift):
            return super()._magnitude(shift)
        shift.common_dim(self.dim)
        if shift.radius == 0 or self.scale == 0:
            return 0.0 if shift.radius == 0 else math.inf
        weights = (
            np.ones(len(self.covariance)) if shift.weights is None else shift.weights
        )
        # with covariance L L^T the Mahalanobis norm of x is the l2 norm of L^-1 x
        whitened = solve_triangular(self._factor, np.diag(weights), lower=True)
        order = 1.0 if shift.structure == "scalar" else shift.norm
        multiplier = float(np.asarray(self.scale))  # one number beside a covariance
        return shift.radius / multiplier * _norm_to_l2(whitened, order)

    def _spread(self, unit: Floats) -> Floats:
        if self.covariance is None:
            return super()._spread(unit)
        return self.scale * unit @ self._factor.T

    @property
    def dim(self) -> int | None:
        """Number of coordinates, or None if the noise fits any number."""
        return super().dim if self.covariance is None else len(self.covariance)

    def _variance(self) -> Numbers:
        if self.covariance is None:
            return super()._variance()
        multiplier = float(np.asarray(self.scale))
        return multiplier**2 * np.diag(np.asarray(self.covariance))


def _norm_to_l2(matrix: Floats, order: float) -> float:
    """Operator norm, or a bound on it, from the norm of that order to the l2 norm.

    Exact for the orders 1 (the longest column) and 2 (the largest singular value), and
    for the order inf if the columns are orthogonal. Between 1 and 2 the unit ball is
    inside that of the l2 norm, whose value is the bound. Beyond 2 the exact value is
    NP-hard; two bounds hold, by the l2 ball around the unit ball, and by Hölder's
    inequality on the entries of the Gram matrix. The second is never above the sum of
    the lengths of the columns.
    """
    if order == 1:
        return float(np.max(np.linalg.norm(matrix, axis=0)))
    spectral = float(np.linalg.norm(matrix, ord=2))
    if order <= 2:
        return spectral
    ball = spectral * len(matrix) ** (1 / 2 - 1 / order)
    # |y^T G y| <= ||G||_dual ||y y^T||_order, and ||y y^T||_order = ||y||_order² <= 1
    dual = 1 / (1 - 1 / order)
    gram = np.linalg.norm(np.ravel(matrix.T @ matrix), ord=dual)
    return min(ball, math.sqrt(gram))
