"""Gaussian noise of any covariance: its cost depends on the Mahalanobis norm."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from skpuffer.exceptions import Statement
from skpuffer.kernel.gaussian import GaussianNoise
from skpuffer.kernel.noise import Shift
from skpuffer.kernel.numbers import Floats, Numbers
from skpuffer.utils._checks import check_covariance

# Least eigenvalue of a covariance over its largest: below, whitening loses all digits.
_LEAST = 1e-12


@dataclass(frozen=True)
class CorrelatedGaussianNoise(GaussianNoise):
    """Gaussian noise with correlated coordinates, N(0, scale² covariance).

    Parameters
    ----------
    scale : float, default=1.0
        Multiplier of the standard deviations.
    covariance : array-like of shape (dim, dim)
        Symmetric and positive definite. Kept as a tuple of tuples.

    See Also
    --------
    GaussianNoise : Of independent coordinates; its notes hold here too.

    Examples
    --------
    >>> from skpuffer.noise import CorrelatedGaussianNoise, Shift
    >>> noise = CorrelatedGaussianNoise(covariance=[[4.0, 0.0], [0.0, 1.0]])
    >>> noise.renyi(2, Shift(1.0, norm=2, dim=2))
    1.0
    """

    covariance: tuple[tuple[float, ...], ...] = field(kw_only=True)

    family = "correlated_gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.scale):
            raise ValueError(Statement("gaussian.scale_with_covariance"))
        # nested tuples: noise is hashable, and equal where its numbers are
        covariance = check_covariance(least=_LEAST, covariance=self.covariance)
        object.__setattr__(self, "covariance", tuple(map(tuple, covariance.tolist())))

    @cached_property
    def _factor(self) -> Floats:
        """Lower Cholesky factor of the covariance."""
        # kept after the first call: neither scale nor shift changes it
        return np.linalg.cholesky(np.asarray(self.covariance))

    def _magnitude(self, shift: Shift | Floats) -> Numbers:
        if not isinstance(shift, Shift):
            return super()._magnitude(shift)
        shift.common_dim(self.dim)
        # no cost without a move, not even without noise; then no noise hides a move
        if shift.radius == 0 or self.scale == 0:
            return 0.0 if shift.radius == 0 else math.inf
        weights = np.ones(self.dim) if shift.weights is None else shift.weights
        # with covariance L L^T the Mahalanobis norm of x is the l2 norm of L^-1 x
        whitened = solve_triangular(self._factor, np.diag(weights), lower=True)
        # single coordinates moved are the corners of the l1 ball, and a norm, being
        # convex, is largest at a corner of a ball
        order = 1.0 if shift.structure == "scalar" else shift.norm
        return shift.radius / self._multiplier * _norm_to_l2(whitened, order)

    def in_units(self, units: ArrayLike) -> Self:
        """Return noise of which each coordinate is so many times as large."""
        sizes = np.asarray(units, dtype=float)
        if sizes.shape not in ((), (self.dim,)):
            raise ValueError(
                Statement(
                    "gaussian.covariance_units_mismatch",
                    dim=self.dim,
                    shape=sizes.shape,
                )
            )
        sizes = np.broadcast_to(sizes, (self.dim,))
        # the covariance is one in these units
        covariance = np.asarray(self.covariance) * np.outer(sizes, sizes)
        return replace(self, covariance=covariance)  # type: ignore[arg-type] # made tuples

    def covariance_matrix(self, dim: int) -> Floats:
        """Return the covariance of the noise in `dim` coordinates."""
        self.variance(dim)  # refuses another number of coordinates
        return self._multiplier**2 * np.asarray(self.covariance)

    def whitened(self, displacements: Floats) -> Floats:
        """Return displacements, one a row, in standard deviations of the noise."""
        # solved for instead of inverted: the error stays that of the condition number
        solved = solve_triangular(self._factor, displacements.T, lower=True).T
        return np.asarray(solved / self._multiplier)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        # rows z with z L^T have the covariance L L^T
        return self._multiplier * self._sample_unit(shape, rng) @ self._factor.T

    @property
    def _multiplier(self) -> float:
        """Multiplier of the standard deviations: the scale, as one number."""
        return float(np.asarray(self.scale))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.covariance)

    def _variance(self) -> Floats:
        return self._multiplier**2 * np.diag(np.asarray(self.covariance))


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
    # largest singular value: the l2 norm's own operator norm
    spectral = float(np.linalg.norm(matrix, ord=2))
    if order <= 2:
        return spectral
    # ||y||_2 <= d^(1/2 - 1/p) ||y||_p for p >= 2
    ball: float = spectral * len(matrix) ** (1 / 2 - 1 / order)
    # |y^T G y| <= ||G||_dual ||y y^T||_order, and ||y y^T||_order = ||y||_order² <= 1
    dual = 1 / (1 - 1 / order)
    gram = np.linalg.norm(np.ravel(matrix.T @ matrix), ord=dual)
    return min(ball, math.sqrt(gram))
