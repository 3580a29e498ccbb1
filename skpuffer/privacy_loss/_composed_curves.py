"""Curves of several mechanisms: of any one of them, and of all of them together."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from skpuffer.kernel.composed_curves import RenyiCurve
from skpuffer.kernel.curves import (
    DEFAULT_ORDERS,
    ComposedPair,
    GaussianCurve,
    NoiseCurve,
    PrivacyCurve,
)
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.plain import Plain

__all__ = ["RepeatedCurve", "SymmetricPair", "WorstCurve", "compose_curves"]


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
