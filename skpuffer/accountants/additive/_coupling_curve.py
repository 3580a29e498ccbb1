"""What noise costs against a coupling: how far the output moves, with what mass."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtr

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise, Shift
from skpuffer.privacy_loss import renyi_to_delta
from skpuffer.privacy_loss._conversions import DEFAULT_ORDERS
from skpuffer.utils._checks import check_order, check_real
from skpuffer.utils._solve import MARGIN, smallest_argument

__all__ = ["AtomMoves", "CouplingCurve", "GaussianMoves"]

# Cells into which a Gaussian's moves are rounded up, where there is no closed form:
# most of them within so many standard deviations of its mean.
_CELLS = 2**14
_BULK = 9.0
_FAR = 38.0  # standard deviations beyond which nothing but a bound is left
_LARGEST = 600.0  # exponents whose exponentials can be added


@dataclass(frozen=True, eq=False)
class AtomMoves:
    """A coupling that moves the output by one of finitely many steps.

    Parameters
    ----------
    radii : ndarray of shape (k,)
        Length of each move, in the noise's norm and the units of the release.
    masses : ndarray of shape (k,)
    steps : ndarray of shape (k, dim) or None
        The moves themselves, in the units of the output. None where only their
        lengths are known.
    """

    radii: np.ndarray = field(repr=False)
    masses: np.ndarray = field(repr=False)
    steps: np.ndarray | None = field(default=None, repr=False)

    def log_moment(self, noise, alpha, shift):
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
            costs = _of_balls(lambda ball: noise.renyi(alpha, ball), shift, self.radii)
        else:
            costs = self.costs(noise, alpha, self.steps)
        exponent = (alpha - 1) * costs
        if np.max(exponent) < _LARGEST:
            # the mass that hardly moves must not drown the little that is lost
            return math.log1p(float(self.masses @ np.expm1(exponent)))
        return _log_mean(exponent, self.masses)

    @staticmethod
    def costs(noise, alpha, steps):
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
        if getattr(noise, "covariance", None) is not None:
            return alpha / 2 * np.sum(_in_deviations(noise, steps) ** 2, axis=1)
        if np.ndim(noise.scale):
            columns = zip(noise.scale, np.abs(steps).T, strict=True)
            each = [noise.with_scale(s).renyi(alpha, column) for s, column in columns]
            costs = np.transpose(each)
        else:
            costs = noise.renyi(alpha, np.abs(steps))
        return np.sum(costs, axis=1)

    def mean_delta(self, noise, epsilon, shift):
        """Return the mean of the hockey-stick divergence at exp(epsilon) of a move."""
        return float(
            self.masses
            @ _of_balls(lambda ball: noise.delta(epsilon, ball), shift, self.radii)
        )

    def widened(self, distance):
        """Return a coupling whose moves are longer by a distance, any way they like."""
        return AtomMoves(self.radii + distance, self.masses)


@dataclass(frozen=True, eq=False)
class GaussianMoves:
    """A coupling that moves the output by a Gaussian step.

    Parameters
    ----------
    mean : ndarray of shape (dim,)
    covariance : ndarray of shape (dim, dim)
    """

    mean: np.ndarray = field(repr=False)
    covariance: np.ndarray = field(repr=False)

    def log_moment(self, noise, alpha, shift):
        """Return log E exp((alpha - 1) R_alpha(move)), rounded up.

        In closed form for Gaussian noise. For other noise on one coordinate moves are
        rounded up to the ends of small cells; beyond the last one the cost is at most
        linear in the move, because pure costs obey the triangle inequality. Infinite
        where neither applies.
        """
        if noise.family == "gaussian":
            factor = _in_deviations(noise, _square_root(self.covariance).T)
            variances, axes = np.linalg.eigh(factor.T @ factor)
            means = _in_deviations(noise, self.mean[None, :])[0] @ axes
            left = 1 - alpha * (alpha - 1) * np.maximum(variances, 0.0)
            if np.any(left <= 0):
                return math.inf
            rate = alpha * (alpha - 1) / 2
            return float(np.sum(rate * means**2 / left - np.log(left) / 2))
        if len(self.mean) > 1:
            return math.inf
        center, spread = self._line
        slope = (alpha - 1) * noise.pure_epsilon(spread)
        if math.isinf(slope):
            return math.inf
        last = center / spread + slope + _FAR
        ends, masses = _cells(center, spread, last, slope)
        inside = _log_mean((alpha - 1) * noise.renyi(alpha, ends), masses)
        beyond = [
            slope + slope**2 / 2 + slope * side + log_ndtr(slope + side - last)
            for side in (center / spread, -center / spread)
        ]
        return float(np.logaddexp.reduce([inside, *beyond]))

    def mean_delta(self, noise, epsilon, shift):
        """Return the mean hockey-stick divergence of a move, rounded up.

        By cells on one coordinate, by way of Rényi costs on more.
        """
        if len(self.mean) == 1:
            center, spread = self._line
            ends, masses = _cells(center, spread, center / spread + _FAR, 0.0)
            return float(masses @ noise.delta(epsilon, ends) + 2 * ndtr(-_FAR))
        orders = DEFAULT_ORDERS[DEFAULT_ORDERS < 1e3]
        costs = [self.log_moment(noise, a, shift) / (a - 1) for a in orders]
        return renyi_to_delta(orders, costs, epsilon)

    def widened(self, distance):
        """Refuse: there is no Gaussian coupling with longer moves."""
        raise UnsupportedError(
            "Laws of unequal Gaussian covariance have no bounded coupling to widen. "
            "Account for the wrong prior by another method."
        )

    @property
    def _line(self):
        """Absolute mean and deviation of one coordinate."""
        return abs(float(self.mean[0])), math.sqrt(self.covariance[0, 0])


@dataclass(frozen=True, eq=False)
class CouplingCurve:
    """The curve of noise against one coupling for each pair of secrets.

    Every divergence that is an f-divergence in disguise is jointly convex, so its mean
    over the moves of a coupling bounds that of the released laws, for any coupling.

    Parameters
    ----------
    noise : Noise
    shift : Shift
        A ball that no move leaves, maybe of infinite radius: the curve is nowhere
        above the noise's own against it.
    couplings : tuple of AtomMoves or GaussianMoves
        One for each pair of laws; the worst of them counts.
    event_delta : float
        Mass that may not follow the couplings. The curve holds given that it does.
    mass_error : float
        Bound on the relative error of the masses of the laws, hence of densities of
        what is released.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 4.5, with q = 1; joint
    convexity for the hockey-stick divergence.
    """

    noise: Noise
    shift: Shift
    couplings: tuple
    event_delta: float = 0.0
    mass_error: float = 0.0

    gaussian_mu = None

    def renyi(self, alpha):
        """Return the Rényi cost in nats at one order or an array of orders."""
        return _one_or_many(self._renyi, alpha)

    def delta(self, epsilon):
        """Return a bound on the hockey-stick divergence at one or many epsilons."""
        return _one_or_many(self._delta, epsilon)

    def epsilon(self, delta):
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        return _one_or_many(self._epsilon, delta)

    def widened(self, distance):
        """Return the curve with all moves longer by a distance."""
        return replace(
            self,
            shift=replace(self.shift, radius=self.shift.radius + distance),
            couplings=tuple(moves.widened(distance) for moves in self.couplings),
        )

    def conditioned(self, mass):
        """Return the curve given an event of which so much mass is missing."""
        return replace(self, event_delta=self.event_delta + mass)

    def to_dict(self):
        """Return noise and worst shift as plain data that JSON can hold."""
        return {
            "kind": "coupling",
            "noise": self.noise.to_dict(),
            "shift": self.shift.to_dict(),
            "n_couplings": len(self.couplings),
        }

    # -- the parts ----------------------------------------------------------------

    def _renyi(self, alpha):
        alpha = check_order(alpha=alpha)
        ball = float(self.noise.renyi(alpha, self.shift))
        if math.isinf(alpha):
            return ball
        moments = [
            moves.log_moment(self.noise, alpha, self.shift) for moves in self.couplings
        ]
        # given an event, a mass grows by no more than the event's own
        worst = max(moments) - math.log1p(-self.event_delta)
        worst = max(0.0, worst) + alpha * self._slack
        return min(ball, worst * (1 + MARGIN) / (alpha - 1))

    def _delta(self, epsilon):
        epsilon = check_real(epsilon=epsilon)
        ball = float(self.noise.delta(epsilon, self.shift))
        means = [
            moves.mean_delta(self.noise, epsilon - self._slack, self.shift)
            for moves in self.couplings
        ]
        inflation = (1 + self.mass_error) * (1 + MARGIN) / (1 - self.event_delta)
        return min(ball, max(means) * inflation)

    @property
    def _slack(self):
        """Logarithm by which a ratio of densities may be off."""
        return math.log1p(self.mass_error) - math.log1p(-self.mass_error)

    def _epsilon(self, delta):
        if delta == 0:
            return float(self.noise.renyi(math.inf, self.shift))
        root = smallest_argument(self._delta, delta)
        return min(root, float(self.noise.epsilon(delta, self.shift)))


def _one_or_many(function, values):
    if np.ndim(values) == 0:
        return function(values)
    return np.vectorize(function, otypes=[float])(values)


def _log_mean(exponent, masses):
    some = masses > 0
    return float(logsumexp(exponent[some] + np.log(masses[some])))


def _in_deviations(noise, steps):
    """Return steps in standard deviations of Gaussian noise, whitened."""
    covariance = getattr(noise, "covariance", None)
    if covariance is None:
        return steps / np.asarray(noise.scale)
    factor = np.linalg.cholesky(np.asarray(covariance))
    return solve_triangular(factor, steps.T, lower=True).T / noise.scale


def _of_balls(function, shift, radii):
    """Value of a function of shifts for balls like `shift` of several radii."""
    if shift.dim == 1:
        return function(radii * (1.0 if shift.weights is None else shift.weights[0]))
    found, at = np.unique(radii, return_inverse=True)
    values = [function(replace(shift, radius=float(radius))) for radius in found]
    return np.array(values)[at]


def _cells(center, spread, last, slope):
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
    # each difference where it loses nothing
    masses = np.where(
        marks[1:] > middle, above[:-1] - above[1:], below[1:] - below[:-1]
    )
    masses[-1] = above[-2]
    return marks[1:] * spread, np.maximum(masses, 0.0)


def _square_root(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
