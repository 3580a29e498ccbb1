"""What noisy releases cost under quilts, order by order."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpuffer.noise import GaussianNoise, LaplaceNoise, Noise, Shift
from skpuffer.privacy_loss import renyi_to_approximate, renyi_to_delta
from skpuffer.utils._checks import check_order, check_probability
from skpuffer.utils._solve import root_above

__all__ = ["QuiltCurve", "QuiltPart"]

#: Orders at which a curve of quilts is asked when it is converted.
ORDERS = (1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, math.inf)


@dataclass(frozen=True)
class QuiltPart:
    """One noisy release, as a cost of near records. It holds no query and no data.

    Parameters
    ----------
    noise : Noise
    move : float
        How far one record moves the output, in the noise's norm.
    slack : float
        Added once to every move.
    dim : int or None
    units : tuple of float or None
        As in the release.
    smallest, largest : float
        Sizes between which near sets lie.
    """

    noise: Noise
    move: float
    slack: float
    dim: int | None
    units: tuple | None
    smallest: float
    largest: float

    def radius(self, size):
        """Move of the output when so many records change."""
        return self.move * size + self.slack

    def shift(self, size):
        """Return the shift of so many records."""
        return Shift(
            float(self.radius(size)),
            norm=self.noise.norm,
            dim=self.dim,
            weights=self.units,
        )

    def each(self, ask, sizes):
        """Ask the noise for the cost of each size.

        Parameters
        ----------
        ask : callable
            Of a shift: a `Shift`, or an array of radii of one coordinate.
        sizes : ndarray

        Returns
        -------
        ndarray
        """
        plain = isinstance(self.noise, (GaussianNoise, LaplaceNoise))
        if plain and getattr(self.noise, "covariance", None) is not None:
            plain = False
        if plain and not self.noise.is_zero:
            # their cost depends on the magnitude only, so that one coordinate stands
            # for all
            one = Shift(1.0, norm=self.noise.norm, dim=self.dim, weights=self.units)
            per_unit = one.magnitude(self.noise.scale, self.noise.norm)
            least = float(np.min(self.noise.scale))
            return np.asarray(ask(self.radius(sizes) * per_unit * least), float)
        distinct, where = np.unique(sizes, return_inverse=True)
        return np.array([ask(self.shift(size)) for size in distinct], float)[where]


class QuiltCurve:
    """The privacy curve of noisy releases under quilts, found order by order.

    Parameters
    ----------
    fact : MaxInfluence
    parts : tuple of QuiltPart
    method : {'exact', 'approximate'}
    max_distance : int or None
    """

    gaussian_mu = None

    def __init__(self, fact, parts, method="exact", max_distance=None):
        self.fact = fact
        self.parts = parts
        self.method = method
        self.max_distance = max_distance

    def _find(self, order, cost, ceiling=math.inf):
        return self.fact.worst(order, cost, self.method, self.max_distance, ceiling)

    def worst(self, alpha):
        """Return the quilt that sets the Rényi cost at order `alpha`."""

        def cost(sizes):
            return sum(
                part.each(lambda shift, p=part: p.noise.renyi(alpha, shift), sizes)
                for part in self.parts
            )

        return self._find(alpha, cost)

    def renyi(self, alpha):
        """Rényi cost at order `alpha`, in nats."""
        return float(self.worst(check_order(alpha=alpha)).price)

    @cached_property
    def costs(self):
        """Rényi costs at `ORDERS`."""
        return tuple(self.renyi(alpha) for alpha in ORDERS)

    def by_orders(self, delta):
        """Epsilon at `delta` that follows from the Rényi costs."""
        return float(renyi_to_approximate(ORDERS, self.costs, delta))

    def variation(self, epsilon, ceiling=1.0):
        """Delta at `epsilon` when the quilt is taken not to depend on the secret.

        That holds except for the total variation of its laws, which is a part of delta.
        Beyond `ceiling`, nothing but that it is beyond need be found out.
        """
        if len(self.parts) > 1:
            return 1.0
        (part,) = self.parts

        def cost(sizes):
            return part.each(lambda shift: part.noise.delta(epsilon, shift), sizes)

        return float(min(1.0, self._find("total_variation", cost, ceiling).price))

    def delta(self, epsilon):
        """Delta at `epsilon`."""
        by_orders = float(renyi_to_delta(ORDERS, self.costs, epsilon))
        return min(by_orders, self.variation(epsilon, by_orders))

    def epsilon(self, delta):
        """Smallest epsilon found at `delta`."""
        delta = check_probability(delta=delta)
        high = self.by_orders(delta)
        if math.isinf(high) or self.variation(high, delta) > delta:
            return high
        if self.variation(0.0, delta) <= delta:
            return 0.0
        return root_above(lambda e: self.variation(e, 4 * delta), delta, 0.0, high)

    def to_dict(self):
        """Return plain data that JSON can hold."""
        return {
            "kind": "markov_quilt",
            "method": self.method,
            "releases": [
                {
                    "noise": part.noise.to_dict(),
                    "record_move": part.move,
                    "slack": part.slack,
                }
                for part in self.parts
            ],
            "worlds": [quilts.to_dict() for quilts in self.fact.quilts],
        }
