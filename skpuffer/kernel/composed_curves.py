"""Curves by a table of Rényi orders, by a law of counts, and of several mechanisms."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from scipy.special import logsumexp

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import (
    DEFAULT_ORDERS,
    ComposedPair,
    GaussianCurve,
    NoiseCurve,
    PrivacyCurve,
    renyi_to_approximate,
    renyi_to_delta,
)
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.noise import gaussian_delta, root_above
from skpuffer.kernel.numbers import Floats, check_order, check_probability, check_real
from skpuffer.kernel.plain import Plain


@dataclass(frozen=True)
class RenyiCurve(Plain, kind="renyi"):
    """Upper bounds of the Rényi cost at finitely many orders.

    Parameters
    ----------
    orders : sequence of float
        Increasing, in (1, inf].
    epsilons : sequence of float
        Cost at each order, in nats.

    Examples
    --------
    >>> from skpuffer.privacy_loss import RenyiCurve
    >>> curve = RenyiCurve(orders=(2.0, 8.0, 32.0), epsilons=(0.1, 0.4, 1.6))
    >>> curve.renyi(4.0)  # at most the cost at the next order held
    0.4
    >>> round(curve.epsilon(delta=1e-5), 3)
    1.614
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    gaussian_mu: ClassVar[None] = None

    def __post_init__(self) -> None:
        orders = tuple(check_order(orders=a) for a in self.orders)
        epsilons = tuple(check_real(epsilons=e) for e in self.epsilons)
        if len(orders) != len(epsilons) or not orders:
            raise value_error(
                "curve.orders_epsilons_lengths_differ",
                n_orders=len(orders),
                n_epsilons=len(epsilons),
            )
        if any(b <= a for a, b in zip(orders, orders[1:], strict=False)):
            raise value_error("curve.orders_not_increasing")
        if min(epsilons) < 0:
            raise value_error("curve.epsilons_negative")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "epsilons", epsilons)

    def renyi(self, alpha: float) -> float:
        """Bound at `alpha`: the cost at the next order held, as costs grow with it."""
        alpha = check_order(alpha=alpha)
        # The Rényi divergence does not decrease with its order (van Erven and Harremoës
        # 2014, Theorem 3), so the next order held is an upper bound; beyond the last
        # there is none.
        at = np.searchsorted(self.orders, alpha)
        return self.epsilons[at] if at < len(self.orders) else math.inf

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, the smallest that one of the orders implies."""
        return renyi_to_delta(self.orders, self.epsilons, check_real(epsilon=epsilon))

    def epsilon(self, delta: float) -> float:
        """Epsilon at `delta`, the smallest that one of the orders implies."""
        return renyi_to_approximate(self.orders, self.epsilons, delta)


@dataclass(frozen=True)
class CountLawCurve(Plain, kind="count_law"):
    """The curve of a run on tables that differ in a random number of records.

    By joint convexity the trade-off is at most the mean of those of each number. That
    is so of whole runs only: two such curves do not compose.

    Parameters
    ----------
    curves : tuple of GaussianCurve or PrivacyLossCurve
        Curves of the run, by number of records that differ.
    weights : tuple of float
        How likely each of the numbers is.
    beyond : float
        Mass of the numbers that no curve is held for.
    """

    curves: tuple[GaussianCurve | PrivacyLossCurve, ...]
    weights: tuple[float, ...]
    beyond: float

    gaussian_mu: ClassVar[None] = None

    def renyi(self, alpha: float) -> float:
        """Bound on the Rényi cost at order `alpha`, in nats."""
        if self.beyond:
            return math.inf
        rest = check_order(alpha=alpha) - 1
        costs = np.array([rest * curve.renyi(alpha) for curve in self.curves])
        return float(logsumexp(costs, b=self.weights)) / rest

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, rounded up."""
        parts = zip(self.weights, self.curves, strict=True)
        found = sum(weight * curve.delta(epsilon) for weight, curve in parts)
        return min(1.0, self.beyond + found)

    def epsilon(self, delta: float) -> float:
        """Epsilon at `delta`, rounded up."""
        left = check_probability(delta=delta) - self.beyond
        if left <= 0:
            return math.inf
        if len(self.curves) == 1:
            share = left / self.weights[0]
            return self.curves[0].epsilon(share) if share < 1 else 0.0
        if self.delta(0.0) <= delta:
            return 0.0
        # the mean is no larger than the worst
        most = max(curve.epsilon(left) for curve in self.curves)
        if math.isinf(most):
            return most
        return root_above(self.delta, delta, 0.0, most)


def costs_at(curve: PrivacyCurve, orders: tuple[float, ...]) -> tuple[float, ...]:
    """Return the Rényi costs of a curve at many orders, together where that is less.

    `orders`: in (1, inf].

    Returns
    -------
    tuple of float
        In nats.
    """
    of_many = getattr(curve, "renyi_costs", None)
    if of_many is None:
        return tuple(float(curve.renyi(alpha)) for alpha in orders)
    return tuple(of_many(orders))


@dataclass(frozen=True)
class WorstCurve(Plain, kind="worst_curve"):
    """The largest of several curves in each form of a promise: of any one of them.

    Parameters
    ----------
    curves : tuple of curve
    """

    curves: tuple[PrivacyCurve, ...]

    gaussian_mu: ClassVar[None] = None

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order."""
        return self.renyi_costs((alpha,))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> tuple[float, ...]:
        """Return the Rényi costs at many orders."""
        costs = [costs_at(curve, orders) for curve in self.curves]
        return tuple(np.max(costs, axis=0).tolist())

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon."""
        return max(float(curve.delta(epsilon)) for curve in self.curves)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at a delta."""
        return max(float(curve.epsilon(delta)) for curve in self.curves)


@dataclass(frozen=True)
class RepeatedCurve(Plain, kind="repeated"):
    """The curve of a mechanism that is run several times, for others to be added to.

    Parameters
    ----------
    curve : curve
    times : int
    """

    curve: PrivacyCurve
    times: int

    @property
    def gaussian_mu(self) -> float | None:
        """Mu of all runs together, if each is Gaussian."""
        mu = self.curve.gaussian_mu
        return None if mu is None else mu * math.sqrt(self.times)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order."""
        return self.times * float(self.curve.renyi(alpha))

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon."""
        return float(compose_curves([self]).delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at a delta."""
        return float(compose_curves([self]).epsilon(delta))


def compose_curves(curves: Iterable[PrivacyCurve]) -> PrivacyCurve:
    """Return the curve of several mechanisms together, which share one coupling.

    Parameters
    ----------
    curves : sequence of curves

    Returns
    -------
    curve
        Exact when all are Gaussian. With a :class:`PrivacyLossCurve` among them, or of
        Gaussian noise beside Laplace noise, one of all steps together, unless another
        knows Rényi costs only; otherwise Rényi costs added order by order, on the
        orders of the tabulated curves or on a default grid.
    """
    counted = list(map(_counted, curves))
    if len(counted) == 1 and counted[0][1] == 1:
        return counted[0][0]
    mu = _distance(counted)
    if mu is not None:
        return GaussianCurve(mu)
    # by the attribute: the best of several runs is known by its costs as well
    tabulated = [c.orders for c, _ in counted if hasattr(c, "orders")]
    stepwise = [c for c, _ in counted if isinstance(c, PrivacyLossCurve)]
    # a pure cost beside a Gaussian one is lost on most Rényi orders
    gaussian = any(c.gaussian_mu is not None for c, _ in counted)
    noises = all(
        c.gaussian_mu is not None or getattr(c, "exact_trade_off", False)
        for c, _ in counted
    )
    if not tabulated and (stepwise or (gaussian and noises)):
        return _one_after_another(counted, stepwise)
    # Rényi costs of independent or adaptive mechanisms add, order by order.
    orders = np.unique(np.concatenate(tabulated)) if tabulated else DEFAULT_ORDERS
    # curves of noise are known at order infinity too, where pure costs add
    if not tabulated:
        orders = np.append(orders, math.inf)
    of_each = [times * np.array(costs_at(c, tuple(orders))) for c, times in counted]
    return RenyiCurve(tuple(orders), tuple(np.sum(of_each, axis=0).tolist()))


def _counted(curve: PrivacyCurve) -> tuple[PrivacyCurve, int]:
    if isinstance(curve, RepeatedCurve):
        return curve.curve, curve.times
    return curve, 1


def _distance(counted: Sequence[tuple[PrivacyCurve, int]]) -> float | None:
    """Mu of all curves together, where each is that of Gaussians at a distance."""
    known = [(c.gaussian_mu, times) for c, times in counted]
    # a product of Gaussian pairs is one whose squared distances are added
    parts = [mu * math.sqrt(times) for mu, times in known if mu is not None]
    return math.hypot(*parts) if len(parts) == len(known) else None


def _one_after_another(
    counted: Sequence[tuple[PrivacyCurve, int]], stepwise: Sequence[PrivacyLossCurve]
) -> PrivacyLossCurve:
    """Return the curve of all steps of all curves, none of which is a table."""
    steps: list[tuple[ComposedPair, int]] = []
    others = []
    for curve, times in counted:
        if isinstance(curve, PrivacyLossCurve):
            steps += [(pair, times * count) for pair, count in curve.steps]
        else:
            others.append((curve, times))
    # Gaussian ones together are one Gaussian step, exactly
    gaussian = [(c, times) for c, times in others if c.gaussian_mu is not None]
    mu = _distance(gaussian)
    if gaussian and mu is not None:
        steps.append((SymmetricPair(GaussianCurve(mu)), 1))
    steps += [(SymmetricPair(c), times) for c, times in others if c.gaussian_mu is None]
    if not stepwise:
        return PrivacyLossCurve(tuple(steps))
    # no more memory than each of them was allowed
    memory = min(curve.max_memory for curve in stepwise)
    return PrivacyLossCurve(tuple(steps), memory)


@dataclass(frozen=True)
class SymmetricPair(Plain, kind="symmetric_pair"):
    """Dominating pair whose trade-off is the curve of additive symmetric noise."""

    curve: PrivacyCurve

    # noise that is symmetric about zero: exchanging the two tables mirrors it
    symmetric = True

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        mu = self.curve.gaussian_mu
        if mu is not None:
            return gaussian_delta(epsilon, mu)
        # neither a table nor Gaussian, so the curve of a noise, which takes arrays
        return cast(NoiseCurve, self.curve).delta(epsilon)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at order `alpha`, in nats."""
        return self.curve.renyi(alpha)
