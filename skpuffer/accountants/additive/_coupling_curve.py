"""Privacy curve of noise against a coupling: how far outputs move, by mass."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.curves import DEFAULT_ORDERS
from skpuffer.kernel.numbers import (
    MARGIN,
    Floats,
    check_order,
    check_real,
    smallest_argument,
)
from skpuffer.kernel.plain import Plain
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    Noise,
    Shift,
)
from skpuffer.privacy_loss import renyi_to_delta

__all__ = ["AtomMoves", "CouplingCurve", "GaussianMoves", "Moves", "of_balls"]

# Number of cells into which a Gaussian's moves are rounded up where there is no closed
# form, most of them within so many standard deviations of its mean.
_CELLS = 2**14
_BULK = 9.0
_FAR = 38.0  # standard deviations: beyond, the normal tail is not a normal float
_LARGEST = 600.0  # exponents up to this one have exponentials that can be added

#: One number, or an array of them.
_Number = TypeVar("_Number", float, Floats)


class Moves(Protocol):
    """Moves of a coupling, and the mean cost of noise against them."""

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move)), or an upper bound."""

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move, or an upper bound."""

    def widened(self, distance: float) -> "Moves":
        """Return a coupling whose moves are longer by at most a distance."""


@dataclass(frozen=True, eq=False)
class AtomMoves(Plain, kind="atom_moves"):
    """Moves of a discrete coupling: finitely many displacements with masses.

    Parameters
    ----------
    radii : ndarray of shape (k,)
        Length of each move, in the noise's norm and the units of the release.
    masses : ndarray of shape (k,) or (n_couplings, k)
        Or of each of several couplings by the same moves, of which the worst counts.
    steps : ndarray of shape (k, dim) or None
        The moves themselves, in the units of the output. None where only their
        lengths are known.
    """

    radii: Floats = field(repr=False)
    masses: Floats = field(repr=False)
    steps: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _keep_arrays(self)

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move)).

        Parameters
        ----------
        noise : Noise
        alpha : float
            Finite Rényi order.
        shift : Shift
            Whose norm, dimension and weights are those of the radii.

        Returns
        -------
        float
        """
        if self.steps is None:
            # of lengths only: each move may be the costliest one of its ball
            costs = of_balls(lambda ball: noise.renyi(alpha, ball), shift, self.radii)
        else:
            costs = self.costs(noise, alpha, self.steps)
        # infinite where it overflows, as is the cost then
        with np.errstate(over="ignore"):
            exponent = (alpha - 1) * costs
        if np.max(exponent) < _LARGEST:
            # log1p and expm1: costs near zero would be lost in a sum near one
            return math.log1p(float(np.max(self.masses @ np.expm1(exponent))))
        return _log_mean(exponent, self.masses)

    @staticmethod
    def costs(noise: Noise, alpha: float, steps: Floats) -> Floats:
        """Return the Rényi cost of each step: the sum of its coordinates' costs.

        Parameters
        ----------
        noise : Noise
        alpha : float
        steps : ndarray of shape (k, dim)

        Returns
        -------
        ndarray of shape (k,)
        """
        # Rényi divergences of product distributions add up over the coordinates. Noise
        # of every family is symmetric, so a step costs what its absolute value does.
        costs: Floats
        if isinstance(noise, CorrelatedGaussianNoise | DegenerateGaussianNoise):
            # D_alpha between N(s, C) and N(0, C) is alpha s' C^-1 s / 2
            costs = alpha / 2 * np.sum(noise.whitened(steps) ** 2, axis=1)
            return costs
        if isinstance(noise.scale, tuple):
            columns = zip(noise.scale, np.abs(steps).T, strict=True)
            costs = np.column_stack(
                [noise.with_scale(s).renyi(alpha, column) for s, column in columns]
            )
        else:
            costs = np.asarray(noise.renyi(alpha, np.abs(steps)))
        return np.asarray(np.sum(costs, axis=1))

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move at exp(epsilon)."""
        # hockey-stick divergences do not add up over coordinates as Rényi costs do, so
        # each move counts as the worst one of its ball, even where steps are known
        deltas = of_balls(lambda ball: noise.delta(epsilon, ball), shift, self.radii)
        return float(np.max(self.masses @ deltas))

    def widened(self, distance: float) -> "AtomMoves":
        """Return a coupling whose moves are longer by a distance, in any direction."""
        # the direction of what is added is not known, so only lengths remain
        return AtomMoves(self.radii + distance, self.masses)


@dataclass(frozen=True, eq=False)
class GaussianMoves(Plain, kind="gaussian_moves"):
    """Moves of a linear coupling of Gaussians: a Gaussian displacement.

    Parameters
    ----------
    mean : ndarray of shape (dim,)
    covariance : ndarray of shape (dim, dim)
    """

    mean: Floats = field(repr=False)
    covariance: Floats = field(repr=False)

    def __post_init__(self) -> None:
        _keep_arrays(self)

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move)), rounded up.

        In closed form for Gaussian noise. For other noise on one coordinate moves are
        rounded up to the ends of small cells; beyond the last one the cost is at most
        linear in the move, as pure costs obey the triangle inequality. Infinite where
        neither applies.
        """
        if isinstance(noise, GaussianNoise):
            # E exp(a z^2) for z ~ N(m, v), along each principal axis of the whitened
            # move, with a = alpha (alpha - 1) / 2: finite if 2 a v < 1
            factor = noise.whitened(_root_of_covariance(self.covariance).T)
            if not np.all(np.isfinite(factor)):
                return math.inf  # moves that leave the subspace of the noise
            variances, axes = np.linalg.eigh(factor.T @ factor)
            means = noise.whitened(self.mean[None, :])[0] @ axes
            left = 1 - alpha * (alpha - 1) * np.maximum(variances, 0.0)
            if np.any(left <= 0):
                return math.inf
            rate = alpha * (alpha - 1) / 2
            return float(np.sum(rate * means**2 / left - np.log(left) / 2))
        if len(self.mean) > 1:
            return math.inf
        center, spread = self._line
        # R_alpha(z) <= R_inf(z) <= ceil(z / spread) R_inf(spread): so many times the
        # exponent of one standard deviation bound that of a longer move
        slope = (alpha - 1) * noise.pure_epsilon(spread)
        if math.isinf(slope):
            return math.inf
        # weighting a normal density by exp(slope z) moves its bulk by `slope`: cells
        # must reach beyond that for the tail to be negligible
        last = center / spread + slope + _FAR
        ends, masses = _cells(center, spread, last, slope)
        costs = np.asarray(noise.renyi(alpha, ends))
        inside = _log_mean((alpha - 1) * costs, masses)
        # Beyond the last end the exponent is at most slope (|z| + 1), the one for the
        # rounding up to whole deviations. By completing the square, for z ~ N(m, 1),
        # E exp(slope z) over z > last is exp(slope m + slope^2 / 2) Phi(slope + m -
        # last); the two tails of |z| are those of m and -m.
        beyond = [
            slope + slope**2 / 2 + slope * side + log_ndtr(slope + side - last)
            for side in (center / spread, -center / spread)
        ]
        return float(np.logaddexp.reduce([inside, *beyond]))

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move, rounded up.

        By cells on one coordinate, by way of Rényi costs on more.
        """
        if len(self.mean) == 1:
            center, spread = self._line
            # a divergence grows with the move, so outer ends round up; beyond the last
            # cell it is at most one, with the mass of both tails
            ends, masses = _cells(center, spread, center / spread + _FAR, 0.0)
            return float(masses @ noise.delta(epsilon, ends) + 2 * ndtr(-_FAR))
        # Rényi costs do have a closed form on several coordinates. At high orders the
        # moment is infinite unless the moves' variance is minute.
        orders = DEFAULT_ORDERS[DEFAULT_ORDERS < 1e3]
        costs = [self.log_moment(noise, a, shift) / (a - 1) for a in orders]
        return float(renyi_to_delta(orders, costs, epsilon))

    def widened(self, distance: float) -> Moves:
        """Refuse: there is no Gaussian coupling with longer moves."""
        raise UnsupportedError(Statement("gaussian.unequal_covariance_not_widened"))

    @property
    def _line(self) -> tuple[float, float]:
        """Absolute mean and standard deviation of one coordinate."""
        return abs(float(self.mean[0])), math.sqrt(self.covariance[0, 0])


@dataclass(frozen=True, eq=False)
class CouplingCurve(Plain, kind="coupling"):
    """Privacy curve of noise against a coupling for each pair of secrets.

    The hockey-stick divergence and exp((alpha - 1) R_alpha) are f-divergences, hence
    jointly convex: their mean over the moves of any coupling bounds that between the
    distributions of what is released.

    Parameters
    ----------
    noise : Noise
    shift : Shift
        A ball that no move leaves, maybe of infinite radius: the curve is nowhere
        above the noise's own against it.
    couplings : tuple of AtomMoves or GaussianMoves
        One for each pair of output distributions; the worst of them counts.
    event_delta : float
        Mass that may not follow the couplings. The curve holds given that it does.
    mass_error : float
        Bound on the relative error of the distributions' masses, hence of densities
        of what is released.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 4.5, with q = 1; joint
    convexity for the hockey-stick divergence.
    """

    noise: Noise
    shift: Shift
    couplings: tuple[Moves, ...]
    event_delta: float = 0.0
    mass_error: float = 0.0

    gaussian_mu: ClassVar[None] = None

    def renyi(self, alpha: _Number) -> _Number:
        """Return the Rényi cost in nats at one order or an array of orders."""
        return _one_or_many(self._renyi, alpha)

    def delta(self, epsilon: _Number) -> _Number:
        """Return a bound on the hockey-stick divergence at one or many epsilons."""
        return _one_or_many(self._delta, epsilon)

    def epsilon(self, delta: _Number) -> _Number:
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        return _one_or_many(self._epsilon, delta)

    def widened(self, distance: float) -> "CouplingCurve":
        """Return the curve with all moves longer by a distance."""
        return replace(
            self,
            shift=replace(self.shift, radius=self.shift.radius + distance),
            couplings=tuple(moves.widened(distance) for moves in self.couplings),
        )

    def conditioned(self, mass: float) -> "CouplingCurve":
        """Return the curve given an event that so much more mass is outside of."""
        return replace(self, event_delta=self.event_delta + mass)

    # -- the parts ----------------------------------------------------------------

    def _renyi(self, alpha: float) -> float:
        alpha = check_order(alpha=alpha)
        # the worst case over the ball of all moves bounds the mean (Pierquin et al.
        # 2024, Proposition 4.3), and its value too where the mean was rounded up
        ball = float(self.noise.renyi(alpha, self.shift))
        if math.isinf(alpha):
            # the mean of infinite order is the essential supremum: nothing is gained
            return ball
        moments = [
            moves.log_moment(self.noise, alpha, self.shift) for moves in self.couplings
        ]
        # Conditioning on an event divides masses by at least that of the event. Where
        # masses are off by a relative error e, the moment, an integral of p^alpha
        # q^(1 - alpha), is off by at most (1 + e)^alpha (1 - e)^(1 - alpha).
        worst = max(moments) - math.log1p(-self.event_delta)
        worst = max(0.0, worst) + alpha * self._slack
        return min(ball, worst * (1 + MARGIN) / (alpha - 1))

    def _delta(self, epsilon: float) -> float:
        epsilon = check_real(epsilon=epsilon)
        ball = float(self.noise.delta(epsilon, self.shift))
        # With p <= (1 + e) p' and q >= (1 - e) q', the hockey-stick divergence of p, q
        # at epsilon is at most (1 + e) times that of p', q' at epsilon less the slack.
        means = [
            moves.mean_delta(self.noise, epsilon - self._slack, self.shift)
            for moves in self.couplings
        ]
        inflation = (1 + self.mass_error) * (1 + MARGIN) / (1 - self.event_delta)
        return min(ball, max(means) * inflation)

    @property
    def _slack(self) -> float:
        """Error of the logarithm of a ratio of densities, at most."""
        return math.log1p(self.mass_error) - math.log1p(-self.mass_error)

    def _epsilon(self, delta: float) -> float:
        if delta == 0:
            # only the longest move counts for a pure promise, however little its mass
            return float(self.noise.renyi(math.inf, self.shift))
        root = smallest_argument(self._delta, delta)
        return min(root, float(self.noise.epsilon(delta, self.shift)))


def _keep_arrays(moves: AtomMoves | GaussianMoves) -> None:
    for part in fields(moves):
        value = getattr(moves, part.name)
        if value is not None:
            object.__setattr__(moves, part.name, np.asarray(value, dtype=float))


def _one_or_many(function: Callable[[Any], Any], values: _Number) -> _Number:
    """Apply a function of one number to it, or to each entry of an array."""
    if np.ndim(values) > 0:
        function = np.vectorize(function, otypes=[float])
    found: _Number = function(values)
    return found


def _log_mean(exponent: Floats, masses: Floats) -> float:
    """Logarithm of the mean of the exponentials, the largest by rows of masses."""
    # log 0 plus an infinite exponent would be nan
    exponent = np.where(masses > 0, exponent, -math.inf)
    log_masses = np.log(np.where(masses > 0, masses, 1.0))
    return float(np.max(logsumexp(exponent + log_masses, axis=-1)))


def of_balls(function: Callable[[Any], Any], shift: Shift, radii: Floats) -> Floats:
    """Return a function of shifts at balls like `shift`, of several radii.

    Parameters
    ----------
    function : callable of a Shift
    shift : Shift
    radii : ndarray of shape (k,)
        In units of the release.

    Returns
    -------
    ndarray of shape (k,)
    """
    if shift.dim == 1:
        # noise takes an array of shifts of one coordinate, in units of the output
        unit = 1.0 if shift.weights is None else shift.weights[0]
        return np.asarray(function(radii * unit))
    # on several coordinates a ball is resolved by a search: once for each length
    found, at = np.unique(radii, return_inverse=True)
    values = [function(replace(shift, radius=float(radius))) for radius in found]
    return np.asarray(values)[at]


def _cells(
    center: float, spread: float, last: float, slope: float
) -> tuple[Floats, Floats]:
    """Outer ends and masses of cells of |Z|, for Z Gaussian.

    Parameters
    ----------
    center, spread : float
        Mean, not negative, and standard deviation.
    last : float
        Where the last cell ends, in standard deviations.
    slope : float
        How far an exponential weight moves the bulk, in standard deviations.

    Returns
    -------
    ends, masses : ndarray of shape (n_cells,)
        The last mass is all that lies beyond the cell before.
    """
    # in standard deviations: |Z| has the upper tail Phi(m - z) + Phi(-m - z). Narrow
    # cells are spent on the bulk, where rounding up costs something.
    middle = center / spread
    low, high = max(0.0, middle - _BULK), min(last, middle + _BULK + slope)
    marks = np.concatenate(
        [
            np.linspace(0.0, low, _CELLS // 8),
            np.linspace(low, high, _CELLS),
            np.linspace(high, last, _CELLS // 4),
        ]
    )
    marks = np.unique(marks)
    above = ndtr(middle - marks) + ndtr(-middle - marks)
    below = ndtr(marks - middle) - ndtr(-marks - middle)
    # differences of upper tails above the mean, of lower ones below: no cancellation
    masses = np.where(
        marks[1:] > middle, above[:-1] - above[1:], below[1:] - below[:-1]
    )
    masses[-1] = above[-2]
    return marks[1:] * spread, np.maximum(masses, 0.0)


def _root_of_covariance(covariance: Floats) -> Floats:
    """Return a matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
