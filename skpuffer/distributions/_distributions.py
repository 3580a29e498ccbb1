"""Laws of a query's output: what is known of them, and how far apart two are."""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist

from skpuffer.transport import (
    bottleneck_transport,
    continuous_wasserstein,
    gaussian_wasserstein,
    wasserstein_distance,
)
from skpuffer.utils._checks import check_covariance, check_masses

from ._weak_cache import remembered_with

__all__ = [
    "Continuous",
    "Discrete",
    "Distribution",
    "Gaussian",
    "PointMass",
    "Samples",
    "Support",
    "distribution_distance",
]


def _points(points):
    array = np.asarray(points, dtype=float)
    if array.ndim < 2:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "The parameter 'points' must have shape (n_points, dim) and at least one "
            f"point. Got shape {np.shape(points)}."
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("The parameter 'points' must be finite.")
    array = array.copy()
    array.setflags(write=False)
    return array


class Distribution:
    """What is known of the law of a query's output.

    Every law knows its `dim`, whether it is `certified` (known) or estimated, and how
    to draw from itself.
    """

    certified = True

    @property
    def dim(self):
        """Number of coordinates."""
        return self.points.shape[1]

    # Laws are held as parameters of scenarios and are immutable, so clones share them.
    def __sklearn_clone__(self):
        return self


@dataclass(frozen=True, eq=False)
class Discrete(Distribution):
    """A law on finitely many known points, with known masses.

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

    points: np.ndarray
    weights: np.ndarray | None = None

    def __post_init__(self):
        object.__setattr__(self, "points", _points(self.points))
        if self.weights is not None:
            check_masses(len(self.points), weights=self.weights)
            weights = np.array(self.weights)
            weights.setflags(write=False)
            object.__setattr__(self, "weights", weights)

    @property
    def masses(self):
        """Masses that sum to one, of shape (n_points,)."""
        return check_masses(len(self.points), weights=self.weights)

    @property
    def mean(self):
        """Mean, of shape (dim,)."""
        return self.masses @ self.points

    def sample(self, n, rng):
        """Draw an array of shape (n, dim)."""
        return self.points[rng.choice(len(self.points), size=n, p=self.masses)]


class Samples(Discrete):
    """Draws from a law that is otherwise unknown: its distances are estimates.

    Parameters
    ----------
    points : array-like of shape (n_draws,) or (n_draws, dim)
    weights : array-like of shape (n_draws,), default=None
    """

    certified = False


class Support(Discrete):
    """Any law at all on finitely many known points.

    Distances between such laws are worst cases over everything the supports allow.

    Parameters
    ----------
    points : array-like of shape (n_points,) or (n_points, dim)
    weights : array-like of shape (n_points,), default=None
        Masses to draw from; distances do not depend on them.
    """


class PointMass(Discrete):
    """A law with all its mass at one point.

    Parameters
    ----------
    point : float or array-like of shape (dim,)
    """

    def __init__(self, point):
        super().__init__(np.atleast_1d(np.asarray(point, dtype=float))[None, :])


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """A Gaussian law.

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

    mean: np.ndarray
    covariance: np.ndarray

    def __post_init__(self):
        mean = np.atleast_1d(np.asarray(self.mean, dtype=float))
        covariance = np.atleast_2d(np.asarray(self.covariance, dtype=float))
        if covariance.shape != (mean.size, mean.size):
            raise ValueError(
                f"The parameter 'covariance' must have shape ({mean.size}, "
                f"{mean.size}) to go with 'mean'. Got {covariance.shape}."
            )
        if not np.all(np.isfinite(mean)):
            raise ValueError("The parameter 'mean' must be finite.")
        covariance = check_covariance(covariance=covariance)
        # copies, frozen: distances between laws are cached by identity
        for name, array in (("mean", mean), ("covariance", covariance)):
            array = array.copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def dim(self):
        """Number of coordinates."""
        return self.mean.size

    def sample(self, n, rng):
        """Draw an array of shape (n, dim)."""
        return rng.multivariate_normal(self.mean, self.covariance, size=n)


@dataclass(frozen=True, eq=False)
class Continuous(Distribution):
    """A continuous law on the line.

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

    distribution: object

    def __post_init__(self):
        if not isinstance(
            getattr(self.distribution, "dist", None), stats.rv_continuous
        ):
            raise TypeError(
                "The parameter 'distribution' must be a frozen continuous distribution "
                "of scipy.stats, such as scipy.stats.norm(0, 1). Got "
                f"{self.distribution!r}; give atoms to Discrete."
            )

    @property
    def dim(self):
        """Number of coordinates: one."""
        return 1

    @property
    def mean(self):
        """Mean, of shape (1,); infinite or NaN where the law has none."""
        return np.array([float(self.distribution.mean())])

    def sample(self, n, rng):
        """Draw an array of shape (n, 1)."""
        return self.distribution.rvs(size=(n, 1), random_state=rng)


def distribution_distance(u, v, norm=2, units=None, ceiling=math.inf):
    """W_inf distance between two laws, or a certified upper bound of it.

    Parameters
    ----------
    u, v : Law
        Of one dimension count.
    norm : float, default=2
        Norm of the displacement.
    units : array-like of shape (dim,), default=None
        Unit of each coordinate; displacements are measured in them.
    ceiling : float, default=inf
        A distance from which on it does not matter how large it is.

    Returns
    -------
    distance : float
        Infinite if no bound holds, or once it is known to reach `ceiling`.
    """
    if u.dim != v.dim:
        raise ValueError(f"The laws have {u.dim} and {v.dim} coordinates.")
    units = np.ones(u.dim) if units is None else np.asarray(units, dtype=float)
    return _distance(u, v, norm, units, ceiling)


# Laws are immutable, so their identity is enough of a key.
cached_distribution_distance = remembered_with(2)(distribution_distance)


def largest_distance(pairs, norm=2, units=None, ceiling=math.inf):
    """Largest W_inf distance of some pairs of laws.

    Parameters
    ----------
    pairs : iterable of (Distribution, Distribution)
    norm : float, default=2
        Norm of the displacement.
    units : tuple of float, default=None
        Unit of each coordinate.
    ceiling : float, default=inf
        A distance from which on it does not matter how large it is.

    Returns
    -------
    distance : float
        Infinite if no bound holds, or once one pair is known to reach `ceiling`.
    at : int
        Position of the pair that sets it.
    """
    pairs = list(pairs)
    if ceiling < math.inf:
        # one coordinate alone is quick to see, where many together are not
        for at, (u, v) in enumerate(pairs):
            if _coordinate_reaches(u, v, units, ceiling):
                return math.inf, at
    distances = []
    for u, v in pairs:
        distances.append(cached_distribution_distance(u, v, norm, units, ceiling))
        if math.isinf(distances[-1]):
            break
    at = int(np.argmax(distances))
    return distances[at], at


@singledispatch
def _distance(u, v, norm, units, ceiling):
    raise TypeError(f"No distance is known for laws of type {type(u).__name__}.")


@_distance.register
def _(u: Continuous, v, norm, units, ceiling):
    other = on_the_line(v)
    if other is not None:
        return continuous_wasserstein(u.distribution, other) / float(units[0])
    # no more than the supports tell, which is something where both are bounded
    low, high = (float(end) for end in u.distribution.support())
    return max(high - v.points.min(), v.points.max() - low) / float(units[0])


@_distance.register
def _(u: Gaussian, v, norm, units, ceiling):
    if isinstance(v, Continuous):
        return _distance(v, u, norm, units, ceiling)
    if not isinstance(v, Gaussian):
        return math.inf  # unbounded support against a bounded one
    return float(
        gaussian_wasserstein(
            u.mean / units,
            u.covariance / np.outer(units, units),
            v.mean / units,
            v.covariance / np.outer(units, units),
            ord=norm,
        )
    )


@_distance.register
def _(u: Discrete, v, norm, units, ceiling):
    if isinstance(v, Gaussian):
        return math.inf
    if isinstance(v, Continuous):
        return _distance(v, u, norm, units, ceiling)
    if isinstance(u, Support) or isinstance(v, Support):
        return _support_diameter(u.points / units, v.points / units, norm)
    return bottleneck_transport(
        u.points,
        v.points,
        u.weights,
        v.weights,
        ord=norm,
        coordinate_scale=units,
        ceiling=ceiling,
    ).distance


def on_the_line(law):
    """Return a law of one coordinate as SciPy freezes it, None unless continuous.

    Parameters
    ----------
    law : Distribution

    Returns
    -------
    distribution : frozen distribution or None
    """
    if isinstance(law, Continuous):
        return law.distribution
    if isinstance(law, Gaussian) and law.dim == 1:
        deviation = math.sqrt(float(law.covariance[0, 0]))
        return stats.norm(float(law.mean[0]), deviation)
    return None


@remembered_with(2)
def _coordinate_reaches(u, v, units, ceiling):
    """Whether the laws of one coordinate are at least `ceiling` apart."""
    if not (isinstance(u, Discrete) and isinstance(v, Discrete)):
        return False
    return any(
        wasserstein_distance(u.points[:, j], v.points[:, j], u.weights, v.weights)
        >= ceiling * (1.0 if units is None else units[j])
        for j in range(u.dim)
    )


def _support_diameter(x, y, norm, block=2_000_000):
    """Largest distance between a point of `x` and one of `y`, in blocks of memory."""
    x, y = np.unique(x, axis=0), np.unique(y, axis=0)
    rows = max(1, block // len(y))
    return max(
        float(cdist(x[i : i + rows], y, "minkowski", p=norm).max())
        if not math.isinf(norm)
        else float(cdist(x[i : i + rows], y, "chebyshev").max())
        for i in range(0, len(x), rows)
    )
