"""Costs of moves along slices, their curves, and the theorems of the mechanism."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import PrivacyCurve, conversion_terms, renyi_to_delta
from skpuffer.kernel.noise import root_above
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_non_negative,
    check_option,
    check_order,
    check_positive,
    check_probability,
    check_real,
)
from skpuffer.kernel.plain import Plain
from skpuffer.noise import GaussianNoise
from skpuffer.privacy_loss import GaussianPoissonPair
from skpuffer.utils._checks import check_masses

from ._divergences import joint_shift_divergence

#: Logarithms of orders, less one, among which the best is searched for.
_LOG_ORDERS = np.linspace(math.log(1e-3), math.log(1e6), 125)


@dataclass(frozen=True, kw_only=True)
class SlicedCurve(Plain):
    """Base of curves of sliced promises: of Gaussian noise, at every finite order.

    `vector` is the curve of the whole noisy output, of which slices say nothing.
    """

    vector: PrivacyCurve | None = None

    gaussian_mu: ClassVar[None] = None

    @abstractmethod
    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order in nats."""

    def epsilon(self, delta: float) -> float:
        """Return the smallest sliced epsilon at a delta in (0, 1), over all orders.

        It is of one random projection, or the mean over slices, as the divergence is.
        """
        delta = check_probability(delta=delta)
        # slices that do not move at all
        if self.renyi(2.0) == 0:
            return 0.0

        def at(log_order: float) -> float:
            order = 1 + math.exp(log_order)
            # An epsilon is none below zero, slice by slice: a mean of these is no less
            # than the mean cost.
            term = max(float(conversion_terms(np.array([order]), delta)[0]), 0.0)
            return self.renyi(order) + term

        # any order proves its own, so that the search need not find the best
        values: list[float] = []
        for x in _LOG_ORDERS:
            values.append(at(x))
            # costs grow with the order
            if self.renyi(1 + math.exp(x)) > min(values):
                break
        best, last = int(np.argmin(values)), len(_LOG_ORDERS) - 1
        ends = _LOG_ORDERS[max(best - 1, 0)], _LOG_ORDERS[min(best + 1, last)]
        options = {"xatol": 1e-12}
        found = minimize_scalar(at, bounds=ends, method="bounded", options=options)
        return min(float(found.fun), values[best])

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta with that sliced epsilon, over a grid of orders."""
        epsilon = check_real(epsilon=epsilon)
        orders, costs = [], []
        for order in (1 + np.exp(_LOG_ORDERS)).tolist():
            cost = self.renyi(order)
            # what an order adds is no less than zero, slice by slice
            if cost > epsilon:
                break
            orders.append(order)
            costs.append(cost)
        return renyi_to_delta(orders, costs, epsilon) if orders else 1.0


@dataclass(frozen=True)
class MeanSquareCurve(SlicedCurve, kind="mean_square_of_slices"):
    """Cost of a mean square move: of slices on average, or of the worst one.

    `square` is the squared move in standard deviations of the noise: the mean over the
    profile, or the largest, or a bound of it.

    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorems 4.5, 4.6 and 4.7.
    """

    square: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", check_non_negative(square=self.square))

    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order in nats."""
        return check_order(alpha=alpha) * self.square / 2


@dataclass(frozen=True, eq=False)
class JointSlicedCurve(SlicedCurve, kind="joint_slices"):
    """Joint sliced cost of the moves along finitely many slices.

    `squares` (n_pairs, n_slices): squared moves in standard deviations of the noise, of
    each pair of secrets. `weights` (n_slices,): positive, summing to one. `vector`: see
    :class:`SlicedCurve`.

    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Corollary 4.1.
    """

    squares: Floats
    weights: Floats

    def __post_init__(self) -> None:
        # of one layout and kept as they are, so that what is read back answers the same
        squares = np.atleast_2d(np.array(self.squares, dtype=float, order="C"))
        weights = np.array(self.weights, dtype=float)
        check_masses(squares.shape[1], weights=weights)
        object.__setattr__(self, "squares", squares)
        object.__setattr__(self, "weights", weights)

    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order, in nats, of the worst pair."""
        alpha = check_order(alpha=alpha)
        return float(np.max(self._divergences(alpha)))

    def _divergences(self, alpha: float) -> Floats:
        """Joint sliced divergence of each pair, of shape (n_pairs,)."""
        if math.isinf(alpha):
            return np.where(self.squares.max(axis=1) > 0, math.inf, 0.0)
        log_moments = self._log_moments(alpha * (alpha - 1) / 2)
        return np.maximum(log_moments / (alpha - 1), 0.0)

    def _log_moments(self, factor: float) -> Floats:
        """Log of the mean over slices of exp(factor squares), pair by pair."""
        exponents = factor * self.squares
        largest = exponents.max(axis=1)
        # relative to the largest, so that no exponential overflows; near order one the
        # mean is near one, and its logarithm is taken of the difference
        below = exponents - largest[:, None]
        short = np.expm1(below) @ self.weights
        near = np.log1p(np.maximum(short, -0.5))
        far = logsumexp(below, b=self.weights, axis=1)
        return largest + np.where(short > -0.5, near, far)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    @cached_property
    def _hash(self) -> int:
        return hash((self.squares.tobytes(), self.weights.tobytes(), self.vector))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, eq=False)
class SampledSlicesCurve(JointSlicedCurve, kind="sampled_joint_slices"):
    """Joint sliced cost over all directions, of those that were drawn.

    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorem 4.8.

    Parameters
    ----------
    squares : array-like of shape (n_pairs, n_slices)
        See :class:`JointSlicedCurve`, along directions drawn from the profile.
    weights : array-like of shape (n_slices,)
    most : array-like of shape (n_pairs,)
        Bound of the squared move along any direction, of each pair.
    shortfall : float
        By how much the mean over all directions of values in [0, 1] may exceed that
        over those drawn, with the stated confidence (Hoeffding's inequality).
    """

    most: Floats
    shortfall: float

    def __post_init__(self) -> None:
        super().__post_init__()
        most = np.broadcast_to(np.asarray(self.most, float), (len(self.squares),))
        object.__setattr__(self, "most", most)
        shortfall = check_non_negative(shortfall=self.shortfall)
        object.__setattr__(self, "shortfall", shortfall)

    def _divergences(self, alpha: float) -> Floats:
        # the worst direction alone bounds the mean, whatever was drawn
        trivial = alpha * self.most / 2
        return np.minimum(super()._divergences(alpha), trivial)

    def _log_moments(self, factor: float) -> Floats:
        # exp(factor square) is between 1 and exp(factor most)
        largest = factor * self.most
        with np.errstate(divide="ignore"):
            # log(exp(x) - 1), and of the shortfall; minus infinity at zero
            beyond = largest + np.log(-np.expm1(-largest)) + np.log(self.shortfall)
        return np.logaddexp(super()._log_moments(factor), beyond)


@dataclass(frozen=True)
class ShiftedSphereCurve(SlicedCurve, kind="shift_over_sphere"):
    """Joint sliced cost of one move, over all directions uniformly.

    `square` is its squared length in standard deviations of the noise.
    """

    square: float
    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", check_non_negative(square=self.square))
        object.__setattr__(self, "dim", check_count(dim=self.dim))

    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order in nats."""
        return joint_shift_divergence(
            math.sqrt(self.square), 1.0, self.dim, check_order(alpha=alpha)
        )


class SliceCosts(ABC):
    """Base of costs of moves along slices, under Gaussian noise."""

    @abstractmethod
    def _mean_square(self, variances: Floats) -> float:
        """Mean square move in units of the noise, of variances (n_slices,) or (1,)."""

    def curve(self, variances: Floats) -> SlicedCurve:
        """Return the curve of noise of variances (n_slices,) or (1,) along slices."""
        return MeanSquareCurve(self._mean_square(variances))

    def bracket(self, variances: Floats) -> Floats:
        """Return two mean squares between which that of the curve lies.

        The divergence of order alpha is between alpha halves of these.
        """
        return np.full(2, self._mean_square(variances))


@dataclass(frozen=True)
class WorstSlice(SliceCosts):
    """The worst slice for all: a joint promise in closed form (Theorem 4.6).

    `squares` are the largest squared moves along each slice.
    """

    squares: float | Floats

    @classmethod
    def along(cls, squares: Floats, *rest: object) -> Self:
        """Return the cost of moves along slices, whose weights do not matter."""
        return cls(squares.max(axis=0))

    def _mean_square(self, variances: Floats) -> float:
        return float(np.max(self.squares / variances))


@dataclass(frozen=True)
class UniformAverage(SliceCosts):
    """One displacement, averaged over all directions; `square` bounds its square."""

    square: float
    dim: int

    def _mean_square(self, variances: Floats) -> float:
        # the mean of <v, U>^2 over the sphere
        return self.square / self.dim / float(np.min(variances))


@dataclass(frozen=True)
class UniformJoint(UniformAverage):
    """One displacement, along one of all directions that is revealed."""

    def curve(self, variances: Floats) -> ShiftedSphereCurve:
        """Return the curve of noise of at least that variance."""
        return ShiftedSphereCurve(self.square / float(np.min(variances)), self.dim)

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean over directions and the largest (Proposition B.1)."""
        most = self.curve(variances).square
        return np.array([most / self.dim, most])


@dataclass(frozen=True)
class AveragedSlices(SliceCosts):
    """Moves along slices, averaged (Theorems 4.5 and 4.7).

    Parameters
    ----------
    squares : ndarray of shape (n_rows, n_slices)
        Squared moves, of each pair of secrets.
    weights : ndarray of shape (n_slices,)
    most : float
        Squared move of the whole output, no less than along any direction.
    shortfall : float
        As in :class:`SampledSlicesCurve`; zero for a profile in its own right.
    """

    squares: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    most: float
    shortfall: float = 0.0

    def _mean_square(self, variances: Floats) -> float:
        mean = float(np.max((self.squares / variances) @ self.weights))
        if not self.shortfall:
            return mean
        # the worst direction alone bounds the mean, whatever was drawn
        most = self._most(variances)
        return min(mean + most * self.shortfall, most)

    def _most(self, variances: Floats) -> float:
        """Bound of the squared move along any direction, in units of the noise."""
        return self.most / float(np.min(variances))


@dataclass(frozen=True)
class JointSlices(AveragedSlices):
    """Moves along slices, of one that is revealed (Corollary 4.1, Theorem 4.8)."""

    def curve(self, variances: Floats) -> SlicedCurve:
        """Return the curve of noise of a variance along each slice."""
        squares = self.squares / variances
        if not self.shortfall:
            return JointSlicedCurve(squares, self.weights)
        return SampledSlicesCurve(
            squares,
            self.weights,
            most=np.array([self._most(variances)]),
            shortfall=self.shortfall,
        )

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean over slices and the largest (Proposition B.1)."""
        squares = self.squares / variances
        mean = float(np.max(squares @ self.weights))
        most = self._most(variances) if self.shortfall else float(squares.max())
        return np.array([mean, most])


# -- published costs of sliced runs and of groups of records, to compare with ----------


def sliced_variance(
    caps: ArrayLike,
    epsilon: float,
    alpha: float,
    *,
    slice_weights: ArrayLike | None = None,
    bound: str = "joint",
) -> float:
    """Return the published variance of the noise of sliced Rényi Pufferfish privacy.

    Parameters
    ----------
    caps : array-like of shape (n_steps, n_slices)
        Squared move of each step along each slice, at most.
    epsilon : float
        In nats.
    alpha : float
        Rényi order.
    slice_weights : array-like of shape (n_slices,), default=None
        Equal if None.
    bound : {'joint', 'averaged', 'exact'}, default='joint'
        The worst slice of each step; their weighted mean; or the joint divergence of
        the summed caps.

    Returns
    -------
    float
        As published. **Where caps differ from slice to slice it does not hold** for
        runs that read their own history, as training runs do: see
        :class:`~skpuffer.accountants.HistoryUniformCap`.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorem 5.6.

    Examples
    --------
    >>> from skpuffer.papers import sliced_variance
    >>> sliced_variance([[1, 4], [2, 2]], 2.0, 4.0)
    6.0
    """
    squares = np.asarray(caps, float)
    if squares.ndim != 2 or not squares.size or not np.all(squares >= 0):
        raise value_error("papers.caps_shape_wrong", shape=squares.shape)
    epsilon, alpha = check_positive(epsilon=epsilon), check_order(alpha=alpha)
    weights = check_masses(squares.shape[1], slice_weights=slice_weights)
    check_option(("joint", "averaged", "exact"), bound=bound)
    # slices without weight are looked along by nobody
    squares, weights = squares[:, weights > 0], weights[weights > 0]
    per_epsilon = alpha / (2 * epsilon)
    if bound == "averaged":
        return float(per_epsilon * math.fsum(squares @ weights))
    joint = float(per_epsilon * math.fsum(squares.max(axis=1)))
    totals = squares.sum(axis=0)
    if bound == "joint" or not totals.max():
        return joint

    def cost(variance: float) -> float:
        divergences = alpha * totals / (2 * variance)
        return float(logsumexp((alpha - 1) * divergences, b=weights) / (alpha - 1))

    # no mean is below the plain one, nor above the largest
    low, high = per_epsilon * float(totals @ weights), per_epsilon * float(totals.max())
    # too near the smallest float to search from, the largest will do
    if low < 1e-280 or cost(low) <= epsilon:
        return high
    return root_above(cost, epsilon, low, high)


class GroupPrivacyCosts(NamedTuple):
    """Rényi costs of a group of records that come or go, by different accounts."""

    naive: float
    subsampled: float
    converted: float


def group_privacy_costs(
    scale: float, rate: float, count: int, alpha: float, *, n_steps: int = 1
) -> GroupPrivacyCosts:
    """Return Rényi costs of a group that is added or removed, in Poisson batches.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise on a sum in clip norms.
    rate : float
        Probability that a record is in a batch; in (0, 1).
    count : int
        Records that are added, or removed. A replaced one counts twice.
    alpha : float
        Rényi order, at least 2.
    n_steps : int, default=1

    Returns
    -------
    GroupPrivacyCosts
        A named tuple. `naive` has all of them in every batch and `subsampled` as many
        as a batch draws, in the worse direction. `converted` is from one record at a
        higher order.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Proposition 2. Zhang and Vorobeychik,
    Sliced Rényi Pufferfish privacy, Appendix G.

    Examples
    --------
    >>> from skpuffer.papers import group_privacy_costs
    >>> costs = group_privacy_costs(5.0, 0.2, 10, alpha=8.0)
    >>> round(costs.naive, 6), round(costs.subsampled, 6)
    (16.0, 1.487835)
    """
    scale, rate = check_positive(scale=scale), check_probability(rate=rate)
    count, n_steps = check_count(count=count), check_count(n_steps=n_steps)
    alpha = check_order(alpha=alpha)
    if not 2 <= alpha < math.inf:
        raise value_error("papers.group_order_below_two", alpha=alpha)
    curve = GaussianNoise(scale).curve(1.0)

    def sampled(size: int, order: float) -> float:
        pairs = (
            GaussianPoissonPair(curve, rate, size, 0),
            GaussianPoissonPair(curve, rate, 0, size),
        )
        return max(pair.renyi_costs((order,))[0] for pair in pairs)

    # from each group to one of twice its size, at half the order
    doublings = math.ceil(math.log2(count))
    costs = (
        alpha * count**2 / (2 * scale**2),
        sampled(count, alpha),
        3**doublings * sampled(1, alpha * 2**doublings),
    )
    return GroupPrivacyCosts(*(n_steps * cost for cost in costs))
