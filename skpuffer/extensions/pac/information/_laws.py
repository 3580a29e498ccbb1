"""Laws of additive noise, as a channel reads them, and the Gaussian one."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr, ndtr, ndtri

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_finite,
    check_positive,
    floats,
)
from skpuffer.noise import GaussianNoise
from skpuffer.utils._checks import check_covariance, check_masses

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
        """Return log densities (n, k) of outputs under each atom, up to a constant.

        `index` (n,) is the atom of each output, and `normals` (n, d) its noise. The
        constant differs by row.
        """

    def control(self, index: Indices, normals: Floats) -> Floats | None:
        """A mean-zero variable that takes noise out of the log ratio, or None."""


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

        Laws that are near give draws of the same numbers that are near: common random
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
        Positive semi-definite. The part in its null space is released exactly. Zero
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
        """Return displacements (n, d) in standard deviations, of shape (n, rank)."""
        return np.asarray(displacements @ np.linalg.pinv(self.factor).T)

    def cells(self, points: Floats) -> Indices:
        """Number the cells of points (k, d) that differ where there is no noise."""
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
    """Likelihoods by one matrix product in standard deviations of the noise."""

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
        """Return a mean-zero variable that takes noise out of the log ratio.

        Log density of the Gaussian of the moments of the outputs, less that of the
        noise.
        """
        # far off, the quadratic forms are differences of large numbers
        if self.cells is not None or self.far or not self.rank:
            return None
        noise = normals[:, : self.rank]
        outputs = self.points[index] + noise
        solved = cho_solve(self._surrogate, outputs.T).T
        return np.asarray(((noise**2).sum(1) - (outputs * solved).sum(1)) / 2)


#: What a channel takes for its noise.
NoiseLike = NoiseLaw | GaussianNoise | ArrayLike


def noise_law(noise: NoiseLike, dim: int) -> NoiseLaw:
    """Return the law of a noise or covariance, and check that it has `dim` columns."""
    law: Any = noise
    if not hasattr(law, "kernel"):
        if hasattr(law, "covariance_matrix"):
            law = law.covariance_matrix(dim)
        covariance = floats(law)
        if covariance is None or covariance.ndim != 2 or len(set(covariance.shape)) > 1:
            raise value_error("pac.noise_not_a_law")
        law = GaussianLaw(covariance)
    if law.dim != dim:
        raise value_error(
            "pac.noise_and_outputs_dimensions_differ", noise_dim=law.dim, dim=dim
        )
    return law


# -- noise of independent coordinates that is not Gaussian -----------------------------


#: Halvings by which a quantile is found.
_HALVINGS = 60

#: How far off the lattice rounding takes a point, as a share of the spacing.
_OFF = 2.0**-40


class Marginal(Protocol):
    """Symmetric noise of one coordinate at scale one."""

    @property
    def variance(self) -> float:
        """Variance of the noise."""

    @property
    def positive(self) -> bool:
        """Whether the density is positive everywhere."""

    def log_density(self, noise: Floats) -> Floats:
        """Log density, or log probability of a point, entry by entry."""

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers, entry by entry."""


@dataclass(frozen=True)
class LaplaceMarginal:
    """Density ``exp(-abs(x)) / 2``.

    Attributes
    ----------
    variance : float
        Variance of the noise.
    positive : bool
        Whether the density is positive everywhere.

    Examples
    --------
    >>> from skpuffer.information import LaplaceMarginal
    >>> marginal = LaplaceMarginal()
    >>> marginal.variance, float(marginal.log_density(0.0).round(4))
    (2.0, -0.6931)
    """

    variance = 2.0
    positive = True

    def log_density(self, noise: Floats) -> Floats:
        """Log density, entry by entry."""
        return np.asarray(-np.abs(noise) - np.log(2.0))

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers."""
        tail = log_ndtr(-np.abs(normals)) + np.log(2.0)
        return np.asarray(-np.sign(normals) * tail)


@dataclass(frozen=True)
class LogisticMarginal:
    """Density exp(-x) / (1 + exp(-x))².

    Attributes
    ----------
    variance : float
        Variance of the noise.
    positive : bool
        Whether the density is positive everywhere.

    Examples
    --------
    >>> from skpuffer.information import LogisticMarginal
    >>> marginal = LogisticMarginal()
    >>> round(marginal.variance, 4), round(float(marginal.log_density(0.0)), 4)
    (3.2899, -1.3863)
    """

    variance = np.pi**2 / 3
    positive = True

    def log_density(self, noise: Floats) -> Floats:
        """Log density, entry by entry."""
        size = np.abs(noise)
        return np.asarray(-size - 2 * np.log1p(np.exp(-size)))

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers."""
        # the logit of the normal distribution function
        return np.asarray(log_ndtr(normals) - log_ndtr(-normals))


@dataclass(frozen=True)
class UniformMarginal:
    """Density one half on [-1, 1].

    Attributes
    ----------
    variance : float
        Variance of the noise.
    positive : bool
        Whether the density is positive everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import UniformMarginal
    >>> UniformMarginal().log_density(np.array([0.0, 2.0])).round(4).tolist()
    [-0.6931, -inf]
    """

    variance = 1.0 / 3.0
    positive = False

    def log_density(self, noise: Floats) -> Floats:
        """Log density, entry by entry."""
        return np.where(np.abs(noise) <= 1.0, -np.log(2.0), -np.inf)

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers."""
        return np.asarray(2 * ndtr(normals) - 1)


@dataclass(frozen=True)
class GaussianMixtureMarginal:
    """A mixture of centred Gaussian densities.

    Parameters
    ----------
    weights : sequence of float
        They sum to one.
    deviations : sequence of float
        Positive.

    Examples
    --------
    >>> from skpuffer.information import GaussianMixtureMarginal
    >>> marginal = GaussianMixtureMarginal(weights=(0.9, 0.1), deviations=(1.0, 3.0))
    >>> round(marginal.variance, 3)
    1.8
    """

    weights: tuple[float, ...]
    deviations: tuple[float, ...]

    def __post_init__(self) -> None:
        deviations = check_finite(deviations=self.deviations)
        if deviations.ndim != 1 or not deviations.size or np.any(deviations <= 0):
            raise value_error(
                "pac.mixture_deviations_not_positive", shape=deviations.shape
            )
        weights = check_masses(len(deviations), weights=self.weights)
        object.__setattr__(self, "weights", tuple(weights.tolist()))
        object.__setattr__(self, "deviations", tuple(deviations.tolist()))

    positive = True

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return float(np.dot(self.weights, np.square(self.deviations)))

    def log_density(self, noise: Floats) -> Floats:
        """Log density, entry by entry."""
        parts = [
            np.log(w / s) - (noise / s) ** 2 / 2
            for w, s in zip(self.weights, self.deviations, strict=True)
            if w > 0
        ]
        total = np.logaddexp.reduce(parts, axis=0)
        return np.asarray(total - np.log(2 * np.pi) / 2)

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers."""
        size = np.abs(normals)
        target = ndtr(-size)
        # a quantile of the mixture lies between those of its parts
        low, high = size * min(self.deviations), size * max(self.deviations)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            tail = sum(
                w * ndtr(-middle / s)
                for w, s in zip(self.weights, self.deviations, strict=True)
            )
            below = tail > target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.sign(normals) * (low + high) / 2)


@dataclass(frozen=True)
class LatticeMarginal:
    """Noise on the integers, for outputs that lie on a lattice.

    Parameters
    ----------
    probabilities : sequence of float
        Probabilities of the integers from zero on, each with its negative; they sum to
        one.

    Examples
    --------
    >>> from skpuffer.information import LatticeMarginal
    >>> marginal = LatticeMarginal(probabilities=(0.5, 0.3, 0.2))
    >>> round(marginal.variance, 3)
    1.1
    """

    probabilities: tuple[float, ...]

    positive = False

    def __post_init__(self) -> None:
        found = check_masses(
            np.size(self.probabilities), probabilities=self.probabilities
        )
        object.__setattr__(self, "probabilities", tuple(found.tolist()))

    @property
    def _masses(self) -> Floats:
        """Probabilities of -k, ..., k."""
        halves = np.asarray(self.probabilities[1:]) / 2
        return np.concatenate([halves[::-1], self.probabilities[:1], halves])

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        steps = np.arange(len(self.probabilities))
        return float(np.dot(self.probabilities, steps**2))

    def log_density(self, noise: Floats) -> Floats:
        """Log probability, entry by entry; none off the integers."""
        nearest = np.rint(noise)
        on = np.abs(noise - nearest) <= _OFF
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([self._masses, [0.0]]))
        last = len(self.probabilities) - 1
        # the entry behind the last one stands for all that is farther
        inside = on & (np.abs(nearest) <= last)
        place = np.where(inside, nearest + last, len(logs) - 1)
        return np.asarray(logs[place.astype(np.intp)])

    def from_normals(self, normals: Floats) -> Floats:
        """Noise of the same quantile as standard normal numbers."""
        ends = np.cumsum(self._masses)
        last = len(self.probabilities) - 1
        place = np.searchsorted(ends, ndtr(normals))
        return np.asarray(np.minimum(place, 2 * last) - last, dtype=float)

    def nodes(self) -> tuple[Floats, Floats]:
        """Return normal numbers (k,) and masses (k,) for `Bank.from_rule`."""
        masses = self._masses
        middles = np.cumsum(masses) - masses / 2
        kept = masses > 0
        return ndtri(middles[kept]), masses[kept]


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """Noise of independent coordinates, all of one kind.

    Parameters
    ----------
    marginal : Marginal
        Noise of one coordinate at scale one, such as ``LaplaceMarginal()``.
    scale : array-like of shape (d,)
        Positive; the spacing, for noise on a lattice.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> from skpuffer.information import LaplaceMarginal, ProductLaw
    >>> atoms = Atoms([[-1.0], [1.0]])
    >>> channel = MixtureChannel(atoms, ProductLaw(LaplaceMarginal(), [0.5]))
    >>> round(channel.information(Bank.quadrature(atoms)).value, 3)
    0.499
    """

    marginal: Marginal
    scale: Floats

    def __post_init__(self) -> None:
        scale = check_finite(scale=self.scale)
        if scale.ndim != 1 or not scale.size or np.any(scale <= 0):
            raise value_error("pac.product_scale_not_positive", shape=scale.shape)
        object.__setattr__(self, "scale", scale)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.scale)

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise, of shape (d, d)."""
        return np.diag(self.scale**2 * self.marginal.variance)

    def from_normals(self, normals: Floats) -> Floats:
        """Return the noise that standard normal numbers of shape (n, d) stand for."""
        return np.asarray(self.scale * self.marginal.from_normals(normals))

    def kernel(self, points: Floats, weights: Floats) -> "ProductKernel":
        """Return the likelihoods under atoms of shape (k, d)."""
        return ProductKernel(self, points)

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a number."""
        return replace(self, scale=self.scale * check_positive(factor=factor))


class ProductKernel:
    """Likelihoods by coordinates, as no matrix product gives them."""

    def __init__(self, law: ProductLaw, points: Floats) -> None:
        self.law, self.points = law, points
        self.positive = law.marginal.positive

    def log_likelihood(self, index: Indices, normals: Floats) -> Floats:
        """Log densities of the outputs under each atom, up to a constant."""
        noise, logs = self.law.from_normals(normals), np.zeros((len(index), 1))
        for c, scale in enumerate(self.law.scale):
            moves = self.points[index, c, None] - self.points[:, c]
            units = (noise[:, c, None] + moves) / scale
            logs = logs + self.law.marginal.log_density(units)
        return np.asarray(logs)

    def control(self, index: Indices, normals: Floats) -> None:
        """Nothing of mean zero is known."""
