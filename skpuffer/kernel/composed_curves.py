"""Privacy curves by a table of Rényi orders, and by a law of numbers of records."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import GaussianCurve, renyi_to_approximate, renyi_to_delta
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.noise import root_above
from skpuffer.kernel.numbers import check_order, check_probability, check_real
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
