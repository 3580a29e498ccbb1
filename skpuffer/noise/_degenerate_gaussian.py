"""Gaussian noise on a subspace: a move that leaves it is never hidden."""

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
from skpuffer.kernel.numbers import Floats, Numbers, check_finite

#: How far a move may be off the subspace, as a share of its own length, to count as
#: rounded: its own length, so that no move is cut off for being short.
ROUNDED = 2.0**-43

#: Least singular value of a factor over its largest.
_LEAST_SINGULAR = 1e-6


@dataclass(frozen=True)
class DegenerateGaussianNoise(GaussianNoise):
    """Gaussian noise of a covariance of lower rank, N(0, scale² F F').

    Directions off the columns of F are released exactly, so a move that has any part
    in them costs infinitely much.

    Parameters
    ----------
    scale : float, default=1.0
        Multiplier of the standard deviations.
    factor : array-like of shape (dim, rank)
        The factor F, of fewer columns than rows, which are independent. Kept as a tuple
        of tuples.

    See Also
    --------
    CorrelatedGaussianNoise : Of full rank.

    Notes
    -----
    Outputs are rounded, and so are their differences. A move counts as in the subspace
    if what is off it is below 2^-43 of the move's own length, each coordinate measured
    in standard deviations of its noise. A short move is therefore cut off as little as
    a long one; a cut by eigenvalues would hide what has no noise at all.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.scale):
            raise ValueError(Statement("gaussian.scale_with_factor"))
        factor = check_finite(factor=self.factor)
        if factor.ndim != 2 or not 0 < factor.shape[1] < len(factor):
            raise ValueError(
                Statement("gaussian.factor_shape_wrong", shape=factor.shape)
            )
        object.__setattr__(self, "factor", tuple(map(tuple, factor.tolist())))
        spans = np.linalg.svd(self._rows, compute_uv=False)
        if not spans[-1] > _LEAST_SINGULAR * spans[0]:
            raise ValueError(
                Statement(
                    "gaussian.factor_columns_dependent",
                    least=spans[-1],
                    largest=spans[0],
                )
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
            raise ValueError(
                Statement(
                    "gaussian.factor_units_mismatch", dim=self.dim, shape=sizes.shape
                )
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
        """Return displacements, one a row, in standard deviations of the noise.

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
