"""Output distributions of a query, and W_inf distances between them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.spatial.distance import cdist

# what is asked of it loads then, and most fits ask nothing
from skpuffer import transport
from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import Floats, check_finite, check_positive, unit_near
from skpuffer.transport._masses import moved_to_zero
from skpuffer.utils._checks import check_covariance, check_masses, check_sizes

from ._weak_cache import remembered_with


def _points(points: ArrayLike) -> Floats:
    array = check_finite(points=points)
    if array.ndim < 2:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.size == 0:
        raise value_error("distribution.points_of_wrong_shape", shape=np.shape(points))
    # A copy that nobody can write to: distances are cached by the identity of a
    # distribution, so its atoms must never change.
    array = array.copy()
    array.setflags(write=False)
    return array


class Distribution(ABC):
    """Distribution of a query's output, as far as it is known.

    Attributes
    ----------
    certified : bool
        Whether the distribution is known, so that its distances are no estimates.
    dim : int
        Number of coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.distributions import Gaussian, Samples
    >>> Gaussian(0.0, 1.0).sample(5, np.random.default_rng(0)).shape
    (5, 1)
    >>> Gaussian(0.0, 1.0).certified, Samples([1.0, 3.0]).certified
    (True, False)
    """

    certified = True

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw an array of shape (n, dim)."""

    # Asked of distributions that a user states. Those computed from a query may hold
    # what has all but vanished, next to what has not.
    def check(self) -> None:  # noqa: B027 # of a distribution that has none
        """Refuse sizes by whose distances no noise can be set."""

    # They are immutable parameters of scenarios, whose clones therefore share them.
    def __sklearn_clone__(self) -> Self:
        return self


@dataclass(frozen=True, eq=False)
class Discrete(Distribution):
    """A discrete distribution: finitely many known points, with known masses.

    Parameters
    ----------
    points : array-like of shape (n_points,) or (n_points, dim)
    weights : array-like of shape (n_points,), default=None
        Masses that sum to one, or integer counts, which are kept exact. None means
        equal masses.

    Examples
    --------
    >>> from skpuffer.distributions import Discrete
    >>> Discrete([0, 1, 2], [1, 2, 1]).dim
    1
    """

    points: NDArray[Any]
    weights: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _points(self.points))
        if self.weights is not None:
            check_masses(len(self.points), weights=self.weights)
            # The type is kept: masses that are counts or fractions stay exact in
            # transport.
            weights = np.array(self.weights)
            weights.setflags(write=False)
            object.__setattr__(self, "weights", weights)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        dim: int = self.points.shape[1]
        return dim

    def check(self) -> None:
        """Refuse sizes by whose distances no noise can be set."""
        check_sizes(points=self.points)

    @property
    def masses(self) -> Floats:
        """Masses that sum to one, of shape (n_points,)."""
        return check_masses(len(self.points), weights=self.weights)

    @property
    def mean(self) -> Floats:
        """Mean, of shape (dim,)."""
        mean: Floats = self.masses @ self.points
        return mean

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw an array of shape (n, dim)."""
        return self.points[rng.choice(len(self.points), size=n, p=self.masses)]


class Samples(Discrete):
    """Draws from an unknown distribution: its distances are estimates.

    Parameters
    ----------
    points : array-like of shape (n_draws,) or (n_draws, dim)
    weights : array-like of shape (n_draws,), default=None

    Examples
    --------
    >>> from skpuffer.distributions import Samples, distribution_distance
    >>> draws = Samples([0.1, 0.4])
    >>> round(distribution_distance(draws, Samples([0.3, 0.5])), 3), draws.certified
    (0.2, False)
    """

    certified = False


class Support(Discrete):
    """An unknown distribution on finitely many known points.

    Distances are worst cases over all distributions on the supports.

    Parameters
    ----------
    points : array-like of shape (n_points,) or (n_points, dim)
    weights : array-like of shape (n_points,), default=None
        Masses to draw from; distances do not depend on them.

    Examples
    --------
    >>> from skpuffer.distributions import Support, distribution_distance
    >>> distribution_distance(Support([0.0, 1.0]), Support([1.0, 2.0]))
    2.0
    """


class PointMass(Discrete):
    """A distribution with all its mass at one point.

    Parameters
    ----------
    point : float or array-like of shape (dim,)

    Examples
    --------
    >>> from skpuffer.distributions import PointMass, distribution_distance
    >>> point = PointMass([3.0, 4.0])
    >>> point.dim, distribution_distance(PointMass([0.0, 0.0]), point)
    (2, 5.0)
    """

    def __init__(self, point: ArrayLike) -> None:
        super().__init__(np.atleast_1d(check_finite(point=point))[None, :])


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """A Gaussian distribution.

    Parameters
    ----------
    mean : float or array-like of shape (dim,)
    covariance : float or array-like of shape (dim, dim)

    Examples
    --------
    >>> from skpuffer.distributions import Gaussian
    >>> Gaussian([0.0, 1.0], [[1.0, 0.2], [0.2, 1.0]]).dim
    2
    """

    mean: Floats
    covariance: Floats

    def __post_init__(self) -> None:
        mean = np.atleast_1d(check_finite(mean=self.mean))
        covariance = np.atleast_2d(check_finite(covariance=self.covariance))
        if covariance.shape != (mean.size, mean.size):
            raise value_error(
                "distribution.covariance_of_wrong_shape",
                dim=mean.size,
                shape=covariance.shape,
            )
        covariance = check_covariance(covariance=covariance)
        # copies, frozen: distances are cached by identity
        for name, array in (("mean", mean), ("covariance", covariance)):
            array = array.copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.mean.size

    def check(self) -> None:
        """Refuse sizes by whose distances no noise can be set."""
        check_sizes(mean=self.mean)
        # no variance is too small: it is not relied on where it vanishes
        check_sizes(covariance=np.maximum(np.diag(self.covariance), 1.0))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw an array of shape (n, dim)."""
        return rng.multivariate_normal(self.mean, self.covariance, size=n)


@dataclass(frozen=True, eq=False)
class Continuous(Distribution):
    """A continuous distribution on the line.

    Parameters
    ----------
    distribution : frozen distribution
        As SciPy freezes them, such as ``scipy.stats.gamma(2, scale=3)``.

    Examples
    --------
    >>> from scipy import stats
    >>> from skpuffer.distributions import Continuous, distribution_distance
    >>> distribution_distance(Continuous(stats.expon(0)), Continuous(stats.expon(0.5)))
    0.5
    """

    distribution: Any

    def __post_init__(self) -> None:
        if not isinstance(
            getattr(self.distribution, "dist", None), stats.rv_continuous
        ):
            raise type_error(
                "distribution.not_frozen_continuous", distribution=self.distribution
            )

    @property
    def dim(self) -> int:
        """Number of coordinates: one."""
        return 1

    def check(self) -> None:
        """Refuse sizes by whose distances no noise can be set."""
        # nearly all of the mass: the tails may go on for ever
        low, high = (float(end) for end in self.distribution.interval(0.99))
        check_positive(distribution=high - low)
        check_sizes(distribution=max(abs(low), abs(high)))

    @property
    def mean(self) -> Floats:
        """Mean, of shape (1,); infinite or NaN where there is none."""
        return np.array([float(self.distribution.mean())])

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw an array of shape (n, 1)."""
        draws: Floats = self.distribution.rvs(size=(n, 1), random_state=rng)
        return draws


def distribution_distance(
    u: Distribution,
    v: Distribution,
    norm: float = 2,
    units: ArrayLike | None = None,
    ceiling: float = math.inf,
) -> float:
    """Return the W_inf distance of two distributions, or a certified upper bound on it.

    Parameters
    ----------
    u, v : Distribution
        With the same number of coordinates.
    norm : float, default=2
        Norm of the displacement.
    units : array-like of shape (dim,), default=None
        Unit of each coordinate; displacements are measured in them.
    ceiling : float, default=inf
        The distance is infinite once it is known to reach this.

    Returns
    -------
    distance : float
        Infinite if no bound holds.
    """
    if u.dim != v.dim:
        raise value_error(
            "distribution.coordinates_unequal", first_dim=u.dim, second_dim=v.dim
        )
    units = np.ones(u.dim) if units is None else np.asarray(units, dtype=float)
    return _distance(u, v, norm, units, ceiling)


# Distributions are immutable, so their identity is enough of a key.
cached_distribution_distance = remembered_with(2)(distribution_distance)


def largest_distance(
    pairs: Iterable[tuple[Distribution, Distribution]],
    norm: float = 2,
    units: tuple[float, ...] | None = None,
    ceiling: float = math.inf,
) -> tuple[float, int]:
    """Return the largest W_inf distance over pairs, and its position.

    Norm, units and ceiling are those of :func:`distribution_distance`.
    """
    pairs = list(pairs)
    # One pair that reaches the ceiling settles the answer, so look first where that is
    # cheap: W_inf of a marginal bounds W_inf from below and takes a sort only.
    if ceiling < math.inf:
        for at, (u, v) in enumerate(pairs):
            if _coordinate_reaches(u, v, units, ceiling):
                return math.inf, at
    # Once one distance is infinite, so is the largest.
    distances = []
    for u, v in pairs:
        distances.append(cached_distribution_distance(u, v, norm, units, ceiling))
        if math.isinf(distances[-1]):
            break
    at = int(np.argmax(distances))
    return distances[at], at


# Dispatched on the type of `u`. As W_inf is symmetric, each pair of types is computed
# in one place, and the mirrored pair calls it with `u` and `v` exchanged.
@singledispatch
def _distance(
    u: Distribution, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    raise type_error("distribution.distance_unknown", u_type=type(u).__name__)


@_distance.register
def _(
    u: Continuous, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    other = on_the_line(v)
    if other is not None:
        return transport.continuous_wasserstein(u.distribution, other) / float(units[0])
    # Against atoms: no coupling moves mass further than the largest distance between
    # the two supports, which is finite where the continuous one is bounded.
    low, high = (float(end) for end in u.distribution.support())
    points = cast(Discrete, v).points
    longest: float = max(high - points.min(), points.max() - low)
    return longest / float(units[0])


@_distance.register
def _(
    u: Gaussian, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    if isinstance(v, Continuous):
        return _distance(v, u, norm, units, ceiling)
    if not isinstance(v, Gaussian):
        # Unbounded support against a bounded one. For a Gaussian of variance zero it is
        # an upper bound, hence safe.
        return math.inf
    # A change of units D = diag(1 / units) takes N(m, S) to N(D m, D S D).
    return float(
        transport.gaussian_wasserstein(
            # the difference first: far from zero, rounded means have another
            (u.mean - v.mean) / units,
            u.covariance / np.outer(units, units),
            np.zeros(u.dim),
            v.covariance / np.outer(units, units),
            ord=norm,
        )
    )


@_distance.register
def _(
    u: Discrete, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    if isinstance(v, Gaussian):
        return math.inf
    if isinstance(v, Continuous):
        return _distance(v, u, norm, units, ceiling)
    v = cast(Discrete, v)  # the one kind left
    # The worst case over all masses on a support: everything at its point farthest from
    # some atom of the other distribution.
    if isinstance(u, Support) or isinstance(v, Support):
        x, y, _ = moved_to_zero(u.points, v.points)
        return _support_diameter(x / units, y / units, norm)
    return transport.bottleneck_transport(
        u.points,
        v.points,
        u.weights,
        v.weights,
        ord=norm,
        coordinate_scale=units,
        ceiling=ceiling,
    ).distance


def on_the_line(distribution: Distribution) -> Any:
    """Return a distribution on the line as SciPy freezes it, None unless continuous."""
    if isinstance(distribution, Continuous):
        return distribution.distribution
    if isinstance(distribution, Gaussian) and distribution.dim == 1:
        deviation = math.sqrt(float(distribution.covariance[0, 0]))
        return stats.norm(float(distribution.mean[0]), deviation)
    return None


@remembered_with(2)
def _coordinate_reaches(
    u: Distribution, v: Distribution, units: tuple[float, ...] | None, ceiling: float
) -> bool:
    """Whether the marginals of one coordinate are at least `ceiling` apart."""
    if not (isinstance(u, Discrete) and isinstance(v, Discrete)):
        return False
    # A coupling of u and v couples their marginals too, and no norm of a displacement
    # is below one of its coordinates, so the marginal W_inf is a lower bound. For a
    # `Support` the masses to draw from are one case of those it allows.
    return any(
        transport.wasserstein_distance(
            u.points[:, j], v.points[:, j], u.weights, v.weights
        )
        >= ceiling * (1.0 if units is None else units[j])
        for j in range(u.dim)
    )


def _support_diameter(
    x: Floats, y: Floats, norm: float, block: int = 2_000_000
) -> float:
    """Largest distance between a point of `x` and one of `y`, in blocks of memory."""
    x, y = np.unique(x, axis=0), np.unique(y, axis=0)
    # the unit of the longest move, as for `lengths_of`
    unit = unit_near(
        np.maximum(x.max(axis=0) - y.min(axis=0), y.max(axis=0) - x.min(axis=0))
    )
    x, y = x / unit, y / unit
    # As many rows at a time as keep the matrix of distances within the block.
    rows = max(1, block // len(y))
    return unit * max(
        float(cdist(x[i : i + rows], y, "minkowski", p=norm).max())
        if not math.isinf(norm)
        else float(cdist(x[i : i + rows], y, "chebyshev").max())
        for i in range(0, len(x), rows)
    )
