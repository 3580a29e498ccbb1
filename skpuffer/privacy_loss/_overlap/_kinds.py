"""How much of the two distributions of a record overlaps, kind by kind."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Floats, check_real
from skpuffer.kernel.plain import Plain

#: Odds nearer to one are taken for this: divergences grow with them, and are found by
#: dividing by what they exceed one by.
_LEAST_ODDS = 1 + 1e-6

#: Values that an overlap keeps: with more, those of about one likelihood ratio are
#: taken together.
_MOST_VALUES = 512

#: Mass that covers the rounding of taking values together.
_TOGETHER = 1e-12


class Overlap(Plain, ABC):
    """Hockey-stick divergences between two distributions of one record, or bounds.

    A subclass is a frozen dataclass. Its method `_etas` returns the divergences in
    either order at an epsilon of at least zero.
    """

    @abstractmethod
    def _etas(self, epsilon: float) -> tuple[float, float]:
        """Divergences at ``exp(epsilon)``, for ``epsilon >= 0``, in either order."""

    def etas(self, epsilon: float) -> tuple[float, float]:
        """Return the divergences at an epsilon, in either order, rounded up.

        First of the first distribution from the second at ``exp(epsilon)``, then in
        reverse.
        """
        epsilon = check_real(epsilon=epsilon)
        # they fall with epsilon, and its exponential overflows further out
        found = self._etas(min(abs(epsilon), FARTHEST))
        if epsilon < 0:
            # (P - e^ε Q)₊ = (P - e^ε Q) + e^ε (Q - e^-ε P)₊, summed up
            less = -math.expm1(epsilon)
            first, second = (less + (1 - less) * eta for eta in reversed(found))
            found = first, second
        first, second = (min(1.0, eta * (1 + ROUNDING)) for eta in found)
        return first, second


@dataclass(frozen=True)
class OddsOverlap(Overlap, kind="odds_overlap"):
    """Two distributions whose likelihood ratio keeps within a range.

    `odds`: largest ratio over the smallest, at least one. `share`: mass of either
    distribution of which nothing is known.
    """

    odds: float
    share: float = 0.0

    def _etas(self, epsilon: float) -> tuple[float, float]:
        # The largest value over all such distributions: a coin with odds √w either way.
        gap = math.log(self.odds) - epsilon
        eta = 0.0
        if gap > 0:
            # (√w - e^(ε/2))² / (w - 1), with √w taken out
            widest = self.odds / (self.odds - 1)
            slack = ROUNDING * max(1.0, math.log(self.odds))
            eta = widest * math.expm1(-(gap + slack) / 2) ** 2
        eta = (1 - self.share) * eta + self.share
        return eta, eta


@dataclass(frozen=True)
class NormalOverlap(Overlap, kind="normal_overlap"):
    """Two normal distributions of variance one, and whatever else keeps within odds.

    `mu`: distance of the means. `odds`: range of the likelihood ratio of all else,
    given the value that the two describe.
    """

    mu: float
    odds: float = 1.0

    def _etas(self, epsilon: float) -> tuple[float, float]:
        if self.odds == 1 or self.mu == 0:
            alone = OddsOverlap(self.odds)._etas(epsilon)[0] if self.odds > 1 else 0.0
            eta = float(gaussian_delta(epsilon, self.mu)) if self.mu else alone
            eta = max(0.0, eta) + ROUNDING
            return eta, eta
        w = max(self.odds, _LEAST_ODDS)
        mu, log_w = self.mu, math.log(w)
        # `_with_odds` integrated: where the ratio of the densities is w e^ε, e^ε / w
        high = (epsilon + log_w) / mu + mu / 2
        low = (epsilon - log_w) / mu + mu / 2
        # Mass beyond `high`, as without odds, and between the two that of p, of e^ε q,
        # and of √(p e^ε q), which is a normal density in the middle between the means.
        eta = ndtr(mu - high) - math.exp(epsilon + log_ndtr(-high))
        first = ndtr(mu - low) - ndtr(mu - high)
        second = math.exp(epsilon + log_ndtr(-low)) - math.exp(
            epsilon + log_ndtr(-high)
        )
        mean = ndtr(mu / 2 - low) - ndtr(mu / 2 - high)
        mean *= math.exp((epsilon + log_w) / 2 - mu**2 / 8)
        eta += (w * first + second - 2 * mean) / (w - 1)
        eta = max(0.0, float(eta)) + _slack(w)
        return eta, eta


@dataclass(frozen=True)
class FiniteOverlap(Overlap, kind="finite_overlap"):
    """Two distributions on finitely many values, and whatever else keeps within odds.

    `first`, `second`: masses of the same values, each of sum one. `odds`: range of the
    likelihood ratio of all else, given the value.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    odds: float = 1.0

    def _etas(self, epsilon: float) -> tuple[float, float]:
        first, second = self.shares(epsilon)
        return float(first.sum()), float(second.sum())

    def shares(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return what each value adds to the divergences in either order.

        Rounded up.
        """
        p, q = np.asarray(self.first), np.asarray(self.second)
        grown = math.exp(epsilon)
        return (
            _with_odds(p, grown * q, self.odds),
            _with_odds(q, grown * p, self.odds),
        )


def finite_overlap(first: Floats, second: Floats, odds: float = 1.0) -> FiniteOverlap:
    """Return an overlap of many values, with few of them and no smaller divergences.

    Values of one likelihood ratio may be taken together, as divergences are homogeneous
    in both masses. Any other value is split into one of the next smaller and one of the
    next larger ratio on a grid. Divergences are convex, so none of them falls.
    """
    there = (first > 0) | (second > 0)
    p, q = first[there], second[there]
    if len(p) <= _MOST_VALUES:
        return FiniteOverlap(tuple(p.tolist()), tuple(q.tolist()), odds)
    both = (p > 0) & (q > 0)
    ratios = np.log(p[both]) - np.log(q[both])
    # one ratio is a grid of two all the same
    grid = np.linspace(ratios.min() - 1e-9, ratios.max() + 1e-9, _MOST_VALUES - 4)
    below = np.clip(np.searchsorted(grid, ratios) - 1, 0, len(grid) - 2)
    # a share of the first masses goes up, such that the second ones add up too
    low, high = np.exp(-grid[below]), np.exp(-grid[below + 1])
    share = np.clip((low - np.exp(-ratios)) / (low - high), 0.0, 1.0)
    up, down = share * p[both], (1 - share) * p[both]
    at = np.bincount(below, down, len(grid)) + np.bincount(below + 1, up, len(grid))
    # values that only one of them has, and what rounding may have taken
    ends = [[p[~both].sum(), 0.0], [0.0, q[~both].sum()]]
    ends += [[_TOGETHER, 0.0], [0.0, _TOGETHER]]
    masses = np.vstack([np.column_stack([at, at * np.exp(-grid)]), ends])
    p, q = masses.T
    return FiniteOverlap(tuple(p.tolist()), tuple(q.tolist()), odds)


@dataclass(frozen=True)
class NearOverlap(Overlap, kind="near_overlap"):
    """Two distributions, each within a total variation of one of another two.

    `part` is the overlap of the other two, `variation` in [0, 1].
    """

    part: Overlap
    variation: float

    def _etas(self, epsilon: float) -> tuple[float, float]:
        # (P' - e^ε Q')₊ exceeds (P - e^ε Q)₊ by (P' - P)₊ and e^ε (Q - Q')₊ at most
        more = self.variation * (1 + math.exp(epsilon))
        first, second = self.part._etas(epsilon)
        return min(1.0, first + more), min(1.0, second + more)


@dataclass(frozen=True)
class WorstOverlap(Overlap, kind="worst_overlap"):
    """The largest of several, in each order: pairs of secrets, and beliefs."""

    parts: tuple[Overlap, ...]

    def _etas(self, epsilon: float) -> tuple[float, float]:
        first, second = zip(*(part._etas(epsilon) for part in self.parts), strict=True)
        return max(first), max(second)


def _with_odds(u: Floats, v: Floats, odds: float) -> Floats:
    """Return the largest divergences of masses u from v, each split by odds within a
    range.

    The largest of ``u w q / (1 + (w - 1) q) - v q`` over shares q of all else.
    """
    if odds == 1:
        return np.maximum(u * (1 + ROUNDING) - v, 0.0)
    w = max(odds, _LEAST_ODDS)
    split = np.maximum(np.sqrt(u * w) - np.sqrt(v), 0.0) ** 2 / (w - 1)
    return np.where(u >= w * v, u - v, split) + _slack(w) * u


def _slack(odds: float) -> float:
    # terms of order w are subtracted, and what is left is divided by w - 1
    return ROUNDING * (odds + 1) ** 2 / (odds - 1)


# -- margins of rounding that divergences of overlaps are raised by --------------------


#: Differences of numbers up to one lose a few units of their last digit.
ROUNDING = 16 * float(np.finfo(float).eps)

#: Curves and sums of divergences are evaluated to about as many digits.
DIGITS = 1e-12

#: Largest epsilon whose exponential is a float.
FARTHEST = 700.0
