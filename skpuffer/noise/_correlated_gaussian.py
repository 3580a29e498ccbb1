"""Gaussian noise of any covariance: its cost depends on the Mahalanobis norm."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import GaussianNoise, Shift
from skpuffer.kernel.numbers import Floats, Numbers, check_finite
from skpuffer.utils._checks import check_covariance

# Least eigenvalue of a covariance over its largest: below, whitening loses all digits.
_LEAST = 1e-12


@dataclass(frozen=True)
class CorrelatedGaussianNoise(GaussianNoise):
    """Gaussian noise with correlated coordinates, N(0, scale² covariance).

    The notes of :class:`GaussianNoise` hold here too.

    Parameters
    ----------
    scale : float, default=1.0
        Multiplier of the standard deviations.
    covariance : array-like of shape (dim, dim)
        Symmetric and positive definite. Kept as a tuple of tuples.

    Examples
    --------
    >>> from skpuffer.noise import CorrelatedGaussianNoise, Shift
    >>> noise = CorrelatedGaussianNoise(covariance=[[4.0, 0.0], [0.0, 1.0]])
    >>> noise.renyi(2, Shift(1.0, norm=2, dim=2))
    1.0
    """

    covariance: tuple[tuple[float, ...], ...] = field(kw_only=True)

    family = "correlated_gaussian"
    by_name = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.scale):
            raise value_error("gaussian.scale_with_covariance")
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
            raise value_error(
                "gaussian.covariance_units_mismatch", dim=self.dim, shape=sizes.shape
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
    """Return the operator norm, or a bound on it, from an order's norm to the l2 norm.

    Exact for the orders 1 and 2, and for inf if the columns are orthogonal. Between 1
    and 2 the unit ball is inside that of the l2 norm. Beyond 2 two bounds hold, by the
    l2 ball around the unit ball and by Hölder's inequality on the Gram matrix.
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


# -- gaussian noise on a subspace: a move that leaves it is never hidden ---------------


#: How far a move may be off the subspace, as a share of its own length, to count as
#: rounded: its own length, so that no move is cut off for being short.
ROUNDED = 2.0**-43

#: Least singular value of a factor over its largest.
_LEAST_SINGULAR = 1e-6


@dataclass(frozen=True)
class DegenerateGaussianNoise(GaussianNoise):
    """Gaussian noise of a covariance of lower rank, N(0, scale² F F').

    Directions off the columns of F are released exactly: a move along them costs
    infinity.

    Parameters
    ----------
    scale : float, default=1.0
        Multiplier of the standard deviations.
    factor : array-like of shape (dim, rank)
        The factor F, of fewer columns than rows, which are independent.

    Notes
    -----
    A move counts as in the subspace if its part off the subspace is below 2^-43 of its
    length. Coordinates are measured in standard deviations of their noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import DegenerateGaussianNoise
    >>> noise = DegenerateGaussianNoise(factor=[[1.0], [2.0]])
    >>> np.linalg.norm(noise.whitened(np.array([[2.0, 4.0], [1.0, 0.0]])), axis=1)
    array([ 2., inf])
    """

    factor: tuple[tuple[float, ...], ...] = field(kw_only=True)

    family = "degenerate_gaussian"
    by_name = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.scale):
            raise value_error("gaussian.scale_with_factor")
        factor = check_finite(factor=self.factor)
        if factor.ndim != 2 or not 0 < factor.shape[1] < len(factor):
            raise value_error("gaussian.factor_shape_wrong", shape=factor.shape)
        object.__setattr__(self, "factor", tuple(map(tuple, factor.tolist())))
        spans = np.linalg.svd(self._rows, compute_uv=False)
        if not spans[-1] > _LEAST_SINGULAR * spans[0]:
            raise value_error(
                "gaussian.factor_columns_dependent", least=spans[-1], largest=spans[0]
            )

    @cached_property
    def _deviations(self) -> Floats:
        """Standard deviation of each coordinate at scale one; may be zero."""
        return np.asarray(np.linalg.norm(np.asarray(self.factor), axis=1))

    @cached_property
    def _rows(self) -> Floats:
        """The factor in standard deviations of the coordinates."""
        # a coordinate without noise stays as it is, zero in all columns
        unit = np.where(self._deviations > 0, self._deviations, 1.0)
        return np.asarray(self.factor) / unit[:, None]

    @cached_property
    def _decomposed(self) -> tuple[Floats, Floats]:
        """Orthonormal basis of the subspace, and the factor's coordinates in it."""
        basis, triangle = np.linalg.qr(self._rows)
        return basis, triangle

    def _magnitude(self, shift: Shift | Floats) -> Numbers:
        if not isinstance(shift, Shift):
            return super()._magnitude(shift)
        shift.common_dim(self.dim)
        # a ball of any radius leaves the subspace
        return 0.0 if shift.radius == 0 else math.inf

    def in_units(self, units: ArrayLike) -> Self:
        """Return noise of which each coordinate is so many times as large."""
        sizes = np.asarray(units, dtype=float)
        if sizes.shape not in ((), (self.dim,)):
            raise value_error(
                "gaussian.factor_units_mismatch", dim=self.dim, shape=sizes.shape
            )
        # the factor is one in these units
        factor = np.broadcast_to(sizes, (self.dim,))[:, None] * np.asarray(self.factor)
        return replace(self, factor=factor)

    def covariance_matrix(self, dim: int) -> Floats:
        """Return the covariance of the noise in `dim` coordinates."""
        self.variance(dim)  # refuses another number of coordinates
        factor = self._multiplier * np.asarray(self.factor)
        return np.asarray(factor @ factor.T)

    def whitened(self, displacements: Floats) -> Floats:
        """Return displacements (k, dim) in standard deviations of the noise, (k, rank).

        Parameters
        ----------
        displacements : ndarray of shape (k, dim)

        Returns
        -------
        ndarray of shape (k, rank)
            Infinite for a displacement that leaves the subspace.
        """
        basis, triangle = self._decomposed
        bare = self._deviations == 0
        unit = np.where(bare, 1.0, self._deviations)
        steps = np.asarray(displacements, dtype=float) / unit
        inside = steps @ basis
        # against the own length of each move, and not that of the longest
        off = np.linalg.norm(steps - inside @ basis.T, axis=1)
        lost = off > ROUNDED * np.linalg.norm(steps, axis=1)
        # no rounding moves a coordinate that has no noise
        lost |= np.any(steps[:, bare] != 0, axis=1)
        solved = np.asarray(solve_triangular(triangle, inside.T).T)
        with np.errstate(divide="ignore", invalid="ignore"):
            solved = np.where(solved == 0, 0.0, solved / self._multiplier)
        solved[lost] = math.inf
        return solved

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        factor = np.asarray(self.factor)
        unit = self._sample_unit((*shape[:-1], factor.shape[1]), rng)
        return np.asarray(self._multiplier * unit @ factor.T)

    @property
    def _multiplier(self) -> float:
        """Multiplier of the standard deviations: the scale, as one number."""
        return float(np.asarray(self.scale))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.factor)

    def _variance(self) -> Floats:
        return np.asarray((self._multiplier * self._deviations) ** 2)
