"""Privacy curve of noisy releases under Markov quilts, found order by order."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import Statement
from skpuffer.kernel.curves import conversion_terms
from skpuffer.kernel.numbers import Floats, check_order, check_probability, root_above
from skpuffer.kernel.plain import Plain, to_plain
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    Shift,
)
from skpuffer.privacy_loss import renyi_to_delta
from skpuffer.scenarios import MaxInfluence

from ._run import RunPart

__all__ = ["QuiltCurve", "QuiltPart", "orders_by_term"]

#: Rényi orders at which the curve is taken when it is converted. Each is a search over
#: all quilts of all records, so there are few; any set of orders gives a valid delta.
ORDERS = (1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, math.inf)


def orders_by_term(delta: float) -> list[tuple[float, float]]:
    """Return the orders, and what is added to their costs at delta, the least first."""
    terms = conversion_terms(np.array(ORDERS), delta).tolist()
    return sorted(zip(ORDERS, terms, strict=True), key=lambda order: order[1])


@dataclass(frozen=True)
class QuiltPart(Plain, kind="quilt_part"):
    """Cost of one noisy release by the size of a near set; no query, no data.

    Parameters
    ----------
    noise : Noise
    move : float
        Sensitivity of the output to one record, in the noise's norm.
    slack : float
        Added once to the sensitivity, however many records change.
    dim : int or None
    units : tuple of float or None
        As in the release.
    smallest, largest : float
        Bounds of the near sets' sizes.
    """

    noise: Noise
    move: float
    slack: float
    dim: int | None
    units: tuple[float, ...] | None
    smallest: float
    largest: float

    def radius(self, size: Any) -> Any:
        """Sensitivity of the output to so many records, or for an array of sizes."""
        # triangle inequality, one record after the other; the slack is a tolerance of
        # the two outputs, whatever differs between their tables
        return self.move * size + self.slack

    def shift(self, size: float) -> Shift:
        """Return the shift of so many records."""
        return Shift(
            float(self.radius(size)),
            norm=self.noise.norm,
            dim=self.dim,
            weights=self.units,
        )

    def renyi(self, alpha: float, sizes: Floats, ceiling: float = math.inf) -> Floats:
        """Rényi cost at order `alpha` of each size of a near set, in nats.

        Those from `ceiling` on may be given as infinite, but are known here at once.
        """
        return self._each(partial(self.noise.renyi, alpha), sizes)

    def delta(self, epsilon: float, sizes: Floats) -> Floats:
        """Delta at `epsilon` of each size of a near set."""
        return self._each(partial(self.noise.delta, epsilon), sizes)

    #: Whether :meth:`delta` is to be asked.
    has_trade_off: ClassVar[bool] = True

    #: Nothing but what the release itself assumes.
    assumptions: ClassVar[tuple[Statement, ...]] = ()

    def evidence(self, size: float, renyi: bool) -> tuple[Statement, ...]:
        """What is not proved of the noise, of its Rényi costs or of its trade-off."""
        return tuple(self.noise.evidence(self.shift(size), renyi=renyi))

    def _each(self, ask: Callable[[Any], Any], sizes: Floats) -> Floats:
        """Cost of the noise for each size of a near set.

        Parameters
        ----------
        ask : callable
            Of a shift: a `Shift`, or an array of radii of one coordinate.
        sizes : ndarray

        Returns
        -------
        ndarray
        """
        # a search over quilts asks for thousands of sizes at once, which is fast only
        # as an array
        plain = isinstance(self.noise, (GaussianNoise, LaplaceNoise))
        plain = plain and not isinstance(self.noise, CorrelatedGaussianNoise)
        if plain and not self.noise.is_zero:
            # Their cost depends on the shift's magnitude only, so one coordinate of the
            # same magnitude stands for all, and takes an array of radii.
            # radius * per_unit is the magnitude in units of the scale; times the least
            # scale, it is the move of the coordinate whose noise is the least.
            one = Shift(1.0, norm=self.noise.norm, dim=self.dim, weights=self.units)
            per_unit = one.magnitude(self.noise.scale, self.noise.norm)
            least = float(np.min(self.noise.scale))
            return np.asarray(ask(self.radius(sizes) * per_unit * least), float)
        # other families are asked shift by shift, but chains have few distinct sizes
        distinct, where = np.unique(sizes, return_inverse=True)
        return np.array([ask(self.shift(size)) for size in distinct], float)[where]


class QuiltCurve(Plain, kind="markov_quilt"):
    """Privacy curve of noisy releases under quilts, found order by order.

    At each order every protected record takes its cheapest quilt: the influence of the
    quilt and what noise costs for the near set, by the chain rule.

    Parameters
    ----------
    fact : MaxInfluence
    parts : tuple of QuiltPart or RunPart
        One for each release.
    method : {'exact', 'approximate'}
    max_distance : int or None
    """

    gaussian_mu: ClassVar[None] = None

    def __init__(
        self,
        fact: MaxInfluence,
        parts: tuple[QuiltPart | RunPart, ...],
        method: str = "exact",
        max_distance: int | None = None,
    ) -> None:
        self.fact = fact
        self.parts = parts
        self.method = method
        self.max_distance = max_distance

    def _find(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        ceiling: float = math.inf,
    ) -> Any:
        return self.fact.worst(order, cost, self.method, self.max_distance, ceiling)

    def worst(self, alpha: float, ceiling: float = math.inf) -> Any:
        """Return the quilt that sets the Rényi cost at order `alpha`.

        Parameters
        ----------
        alpha : float
        ceiling : float, default=inf
            A cost from which on it does not matter how large it is.

        Returns
        -------
        QuiltChoice
            With attributes `price` and `size`.
        """

        def cost(sizes: Floats) -> Floats:
            # Adaptive composition: given the quilt, the near records change by one
            # coupling whatever is released, so Rényi costs add up. The quilt's
            # influence is not part of the sum: it is paid for once (Song and Chaudhuri
            # 2017).
            total: Floats = np.sum(
                [part.renyi(alpha, sizes, ceiling) for part in self.parts], axis=0
            )
            return total

        return self._find(alpha, cost, ceiling)

    def renyi(self, alpha: float, ceiling: float = math.inf) -> float:
        """Rényi cost at order `alpha`, in nats; beyond the ceiling, no more is said."""
        return float(self.worst(check_order(alpha=alpha), ceiling).price)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """Rényi costs at `ORDERS`."""
        return tuple(self.renyi(alpha) for alpha in ORDERS)

    def by_orders(self, delta: float) -> float:
        """Epsilon at `delta` that follows from the Rényi costs."""
        best = math.inf
        # The least over the orders: one whose conversion alone costs more than the best
        # is not asked, and of the others no more than whether they cost less.
        for alpha, term in orders_by_term(delta):
            if term >= best:
                break
            best = min(best, term + self.renyi(alpha, best - term))
        return max(0.0, best)

    def variation(self, epsilon: float, ceiling: float = 1.0) -> float:
        """Delta at `epsilon` with quilts coupled to be equal, whatever the secret.

        They are, except for the total variation between their distributions given the
        secrets, which is a part of delta; the rest is the noise's own.

        Parameters
        ----------
        epsilon : float
        ceiling : float, default=1.0
            Beyond it, nothing but that delta is beyond it need be found out.

        Returns
        -------
        float
            One, which says nothing, for several releases, and for runs of which no
            trade-off is to be asked.
        """
        # Trade-offs of several releases do not add up at one epsilon; the way by Rényi
        # orders accounts for them.
        if len(self.parts) > 1:
            return 1.0
        (part,) = self.parts
        if not part.has_trade_off:
            return 1.0

        def cost(sizes: Floats) -> Floats:
            return part.delta(epsilon, sizes)

        return float(min(1.0, self._find("total_variation", cost, ceiling).price))

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`."""
        # two valid bounds on one mechanism: the smaller one holds
        by_orders = float(renyi_to_delta(ORDERS, self.costs, epsilon))
        return min(by_orders, self.variation(epsilon, by_orders))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon found at `delta`."""
        delta = check_probability(delta=delta)
        # by value, as long as the quilts live: model selection asks again and again
        parts = tuple(map(replace, self.parts))  # without what they have cached
        key = "epsilon", parts, self.method, self.max_distance, delta
        return float(
            MEMORY.found(self.fact.quilts, key, lambda: self._find_epsilon(delta))
        )

    def _find_epsilon(self, delta: float) -> float:
        high = self.by_orders(delta)
        # the total variation alone may exceed delta, and then no epsilon helps this way
        if math.isinf(high) or self.variation(high, delta) > delta:
            return high
        if self.variation(0.0, delta) <= delta:
            return 0.0
        # prices beyond a few times delta are cut off: the search needs their side only
        root = root_above(lambda e: self.variation(e, 4 * delta), delta, 0.0, high)
        return float(root)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": self.kind,
            "quilts": to_plain(self.fact.quilts),
            "parts": to_plain(self.parts),
            "method": self.method,
            "max_distance": self.max_distance,
        }

    @classmethod
    def read_back(cls, values: dict[str, Any]) -> Self:
        """Make one of the fields it was written with, read back each."""
        # of the fact no more than the quilts is asked for
        return cls(MaxInfluence(quilts=values.pop("quilts")), **values)
