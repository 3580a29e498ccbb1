"""Curves of sliced promises: costs along slices, taken together over a profile."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from skpuffer.kernel.curves import PrivacyCurve, conversion_terms, renyi_to_delta
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_non_negative,
    check_order,
    check_probability,
    check_real,
)
from skpuffer.kernel.plain import Plain
from skpuffer.utils._checks import check_masses

from ._divergences import joint_shift_divergence

__all__ = [
    "JointSlicedCurve",
    "MeanSquareCurve",
    "SampledSlicesCurve",
    "ShiftedSphereCurve",
    "SlicedCurve",
]


#: Logarithms of orders, less one, among which the best is searched for.
_LOG_ORDERS = np.linspace(math.log(1e-3), math.log(1e6), 125)


@dataclass(frozen=True, kw_only=True)
class SlicedCurve(Plain):
    """Base of curves of sliced promises: of Gaussian noise, at every finite order.

    Parameters
    ----------
    vector : curve or None
        Of the whole noisy output, of which slices say nothing.
    """

    vector: PrivacyCurve | None = None

    gaussian_mu: ClassVar[None] = None

    @abstractmethod
    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order, in nats."""

    def epsilon(self, delta: float) -> float:
        """Return the smallest sliced epsilon at `delta`, over all orders.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Of one random projection, or the mean over slices of each one's epsilon, as
            the divergence is.
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

    Parameters
    ----------
    square : float
        Squared move in standard deviations of the noise: the mean over the profile, or
        the largest, or a bound of it.
    vector : curve or None
        As in :class:`SlicedCurve`.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorems 4.5, 4.6 and 4.7.
    """

    square: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", check_non_negative(square=self.square))

    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order, in nats."""
        return check_order(alpha=alpha) * self.square / 2


@dataclass(frozen=True, eq=False)
class JointSlicedCurve(SlicedCurve, kind="joint_slices"):
    """Joint sliced cost of the moves along finitely many slices.

    Parameters
    ----------
    squares : array-like of shape (n_pairs, n_slices)
        Squared moves in standard deviations of the noise, of each pair of secrets.
    weights : array-like of shape (n_slices,)
        Positive, summing to one.
    vector : curve or None
        As in :class:`SlicedCurve`.

    References
    ----------
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
        divergences: Floats = np.maximum(log_moments / (alpha - 1), 0.0)
        return divergences

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
        moments: Floats = largest + np.where(short > -0.5, near, far)
        return moments

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

    Parameters
    ----------
    squares : array-like of shape (n_pairs, n_slices)
        As in :class:`JointSlicedCurve`, along directions drawn from the profile.
    weights : array-like of shape (n_slices,)
    vector : curve or None
    most : array-like of shape (n_pairs,)
        Bound of the squared move along any direction, of each pair.
    shortfall : float
        By how much the mean over all directions of what is in [0, 1] may exceed that
        over those drawn, with the stated confidence (Hoeffding's inequality).

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorem 4.8.
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
        moments: Floats = np.logaddexp(super()._log_moments(factor), beyond)
        return moments


@dataclass(frozen=True)
class ShiftedSphereCurve(SlicedCurve, kind="shift_over_sphere"):
    """Joint sliced cost of one move, over all directions uniformly.

    Parameters
    ----------
    square : float
        Squared length of the move in standard deviations of the noise.
    dim : int
    vector : curve or None
        As in :class:`SlicedCurve`.
    """

    square: float
    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", check_non_negative(square=self.square))
        object.__setattr__(self, "dim", check_count(dim=self.dim))

    def renyi(self, alpha: float) -> float:
        """Return the sliced divergence at an order, in nats."""
        return joint_shift_divergence(
            math.sqrt(self.square), 1.0, self.dim, check_order(alpha=alpha)
        )
