"""Laws of additive noise, as a channel reads them, and the Gaussian one."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Indices, check_positive, floats
from skpuffer.utils._checks import check_covariance

from ._atoms import cells_along

#: Least eigenvalue of a correlation matrix of noise that counts as noise. What is below
#: is taken for none at all, which overstates the leakage and never understates it.
_LEAST = 1e-13

#: Rounding of a projection by each coordinate, as a share of the largest: what is more
#: is seen through no noise.
_ROUNDED = 2.0**-50

#: Standard deviations of the noise from which on squares of outputs round off what
#: tells near ones apart, and from which on their own last digits do.
FAR, _FARTHEST = 2.0**14, 2.0**44


class Kernel(Protocol):
    """Likelihoods of outputs under each of some atoms, for one law of noise."""

    #: Whether no atom is ever ruled out.
    positive: bool

    def log_likelihood(self, index: Indices, normals: Floats) -> Floats:
        """Log densities of the outputs under each atom, up to a constant a row.

        Parameters
        ----------
        index : ndarray of int of shape (n,)
            Atom that each output comes from.
        normals : ndarray of shape (n, d)
            Standard normal numbers that its noise is made of.

        Returns
        -------
        ndarray of shape (n, k)
            May hold -inf.
        """

    def control(self, index: Indices, normals: Floats) -> Floats | None:
        """What has mean zero and takes noise out of the log ratio, or None."""


class NoiseLaw(Protocol):
    """Additive noise of known density."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise, of shape (d, d)."""

    def from_normals(self, normals: Floats) -> Floats:
        """Return draws made of standard normal numbers, both of shape (n, d).

        Of the same numbers, laws that are near give draws that are near: common random
        numbers compare them. Draws of the mirrored numbers are the mirrored draws.
        """

    def kernel(self, points: Floats, weights: Floats) -> Kernel:
        """Return the likelihoods under atoms of shape (k, d), of these weights."""

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a number."""


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """Gaussian noise of any covariance; directions without noise are exact.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Positive semi-definite. What lies in its null space is released exactly. Zero
        stands for no noise at all.

    Attributes
    ----------
    rank : int
        Number of directions with noise.
    exact : ndarray of shape (d, d - rank)
        Orthonormal basis of the directions that are released exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import GaussianLaw
    >>> law = GaussianLaw(np.diag([4.0, 0.0]))
    >>> law.rank, law.from_normals(np.ones((1, 2))).tolist()
    (1, [[2.0, 0.0]])
    """

    covariance: Floats

    def __post_init__(self) -> None:
        covariance = np.asarray(self.covariance, dtype=float)
        # zero has no eigenvalue to compare the others with
        if covariance.ndim != 2 or np.any(covariance != 0):
            covariance = check_covariance(covariance=self.covariance)
        covariance.flags.writeable = False
        object.__setattr__(self, "covariance", covariance)

    @cached_property
    def factor(self) -> Floats:
        """A matrix F of shape (d, rank) with F F' the covariance."""
        deviations = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        # the rank does not depend on the units of the coordinates
        unit = np.where(deviations > 0, deviations, 1.0)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(unit, unit))
        noisy = values > _LEAST * max(float(values[-1]), 1e-300)
        root = vectors[:, noisy] * np.sqrt(values[noisy])
        # the symmetric root moves no more than the covariance does, which eigenvectors
        # do not keep to: common random numbers would not be common
        return np.asarray(unit[:, None] * (root @ vectors.T if noisy.all() else root))

    @cached_property
    def exact(self) -> Floats:
        """Orthonormal basis of the directions without noise."""
        # complete: the columns beyond the rank are orthogonal to those of the factor
        basis, _ = np.linalg.qr(self.factor, mode="complete")
        return np.asarray(basis[:, self.rank :])

    @property
    def rank(self) -> int:
        """Number of directions with noise."""
        return int(self.factor.shape[1])

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.covariance)

    def from_normals(self, normals: Floats) -> Floats:
        """Return the noise that standard normal numbers of shape (n, d) stand for."""
        return np.asarray(normals[:, : self.rank] @ self.factor.T)

    def whitened(self, displacements: Floats) -> Floats:
        """Return displacements, one a row, in standard deviations of the noise.

        Parameters
        ----------
        displacements : ndarray of shape (n, d)
            What is off the directions with noise is left out.

        Returns
        -------
        ndarray of shape (n, rank)
        """
        return np.asarray(displacements @ np.linalg.pinv(self.factor).T)

    def cells(self, points: Floats) -> Indices:
        """Number the cells of points that are told apart by what has no noise.

        Parameters
        ----------
        points : ndarray of shape (k, d)

        Returns
        -------
        ndarray of int of shape (k,)
            All zero where every direction has noise, or none of the others varies.
        """
        if self.rank == self.dim:
            return np.zeros(len(points), dtype=np.intp)
        told = cells_along(points, self.exact, self.dim * _ROUNDED)
        # a coordinate without noise is released to its last digit
        bare = np.diag(self.covariance) == 0
        coded = np.column_stack([told, points[:, bare] + 0.0])
        return np.ravel(np.unique(coded, axis=0, return_inverse=True)[1])

    def kernel(self, points: Floats, weights: Floats) -> "GaussianKernel":
        """Return the likelihoods under atoms of shape (k, d), of these weights."""
        return GaussianKernel(self, points, weights)

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a number."""
        factor = check_positive(factor=factor)
        return replace(self, covariance=self.covariance * factor**2)


class GaussianKernel:
    """Likelihoods by one matrix product, in standard deviations of the noise."""

    def __init__(self, law: GaussianLaw, points: Floats, weights: Floats) -> None:
        self.rank = law.rank
        # centred: what is subtracted from each other stays small
        self.points = law.whitened(points - weights @ points)
        self.halves = (self.points**2).sum(axis=1) / 2
        self.weights = weights
        farthest = float(np.abs(self.points).max(initial=0.0))
        self.far = farthest > FAR
        # outputs tell the cell: atoms of other cells are ruled out
        self.cells = law.cells(points) if law.rank < law.dim else None
        if farthest > _FARTHEST:
            # next to no noise is taken for none: more leaks so, and never less
            self.cells = np.arange(len(points))
        self.positive = self.cells is None

    def log_likelihood(self, index: Indices, normals: Floats) -> Floats:
        """Log densities of the outputs under each atom, up to a constant a row."""
        outputs = self.points[index] + normals[:, : self.rank]
        if self.far:
            logs = cdist(outputs, self.points, "sqeuclidean") / -2
        else:
            # -|y - z|²/2 without |y|²/2, which is the same for all atoms
            logs = outputs @ self.points.T
            logs -= self.halves
        if self.cells is not None:
            logs[self.cells[index][:, None] != self.cells] = -np.inf
        return np.asarray(logs)

    @cached_property
    def _surrogate(self) -> Any:
        """Cholesky factor of the covariance of the whitened outputs."""
        spread = (self.points * self.weights[:, None]).T @ self.points
        return cho_factor(spread + np.eye(self.rank))

    def control(self, index: Indices, normals: Floats) -> Floats | None:
        """What has mean zero and takes noise out of the log ratio.

        Log density of the Gaussian of the moments of the outputs, less that of the
        noise, but for a constant: both quadratic forms have the mean rank / 2.
        """
        # far off, the quadratic forms are differences of large numbers
        if self.cells is not None or self.far or not self.rank:
            return None
        noise = normals[:, : self.rank]
        outputs = self.points[index] + noise
        solved = cho_solve(self._surrogate, outputs.T).T
        return np.asarray(((noise**2).sum(1) - (outputs * solved).sum(1)) / 2)


@runtime_checkable
class HasCovariance(Protocol):
    """Gaussian noise of any kind, such as those of :mod:`skpuffer.noise`."""

    def covariance_matrix(self, dim: int) -> Floats:
        """Return the covariance of the noise in `dim` coordinates."""


#: What a channel takes for its noise.
NoiseLike = NoiseLaw | HasCovariance | ArrayLike


def noise_law(noise: NoiseLike, dim: int) -> NoiseLaw:
    """Return the law of a noise, and check that it has `dim` coordinates.

    Parameters
    ----------
    noise : NoiseLaw, Gaussian noise of `skpuffer.noise`, or array-like of shape (d, d)
        An array is the covariance of Gaussian noise.
    dim : int

    Returns
    -------
    NoiseLaw

    Raises
    ------
    ValueError
        If the noise has another number of coordinates.
    """
    law: Any = noise
    if not hasattr(law, "kernel"):
        if hasattr(law, "covariance_matrix"):
            law = law.covariance_matrix(dim)
        law = GaussianLaw(_stated_covariance(law))
    if law.dim != dim:
        raise ValueError(
            Statement(
                "pac.noise_and_outputs_dimensions_differ", noise_dim=law.dim, dim=dim
            )
        )
    found: NoiseLaw = law
    return found


def _stated_covariance(noise: Any) -> Floats:
    """Return noise that is said by its covariance, or say what else would do."""
    array = floats(noise)
    if array is None or array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(Statement("pac.noise_not_a_law"))
    return array
