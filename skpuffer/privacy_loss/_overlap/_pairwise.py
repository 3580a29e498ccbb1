"""Overlaps that count how far each pair of a record's values moves the release.

That is known of Gaussian noise on sums of all records.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy
from scipy.optimize import brentq
from scipy.spatial.distance import squareform

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import GaussianCurve
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.numbers import Floats, Indices, check_non_negative, check_real

from ._curve import (
    OverlapCurve,
    amplified_budgets,
    amplified_target,
)
from ._kinds import (
    DIGITS,
    FARTHEST,
    ROUNDING,
    FiniteOverlap,
    Overlap,
)
from ._pair_splitting import GAP, PairSplitting

#: Values beyond so many are merged.
MOST_GROUPS = 200


#: Share of the longest move that is added to each positive one for the rounding of an
#: output to a grid.
ROOM_OF_PAIRS = 2.0**-16


@dataclass(frozen=True)
class PairwiseOverlap(Overlap, kind="pairwise_overlap"):
    """Pairs of distributions of one record, and how far its values are apart.

    `overlaps`: pairs of distributions on the same values: of secrets, and beliefs.
    `costs`: largest move of the output from a record of one group to one of another, as
    a share of any record's: symmetric, in [0, 1]. The diagonal is for two records of
    one group: zero where they are read as one and the same. `groups`: group of each
    value. None where each value is a group.

    Notes
    -----
    Where an overlap's odds leave the rest of a record open, the costs are the largest
    over that rest.

    The positive and the negative part of P - e^ε Q are kept apart for a group. Each is
    a mixture of records. The trade-off of two mixtures is no worse than the worst of
    their members'. So the two parts are as far apart as the group's diagonal, and from
    those of other groups as its costs. More of both parts diverges no less, where costs
    are a metric: the best test rejects the positive part of a group no less often than
    its negative part. They are made one: trade-offs of unit normals add up their
    distances along a chain of records.
    """

    overlaps: tuple[FiniteOverlap, ...]
    costs: tuple[tuple[float, ...], ...]
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        costs = np.array(self.costs, float)
        if costs.ndim != 2 or len(costs) != len(costs.T) or not len(costs):
            raise value_error("belief.costs_not_square", shape=costs.shape)
        # a unit in the last place is from dividing by the largest
        if not np.all((costs >= 0) & (costs <= 1 + ROUNDING)):
            raise value_error("belief.costs_out_of_range")
        if not np.array_equal(costs, costs.T):
            raise value_error("belief.costs_not_symmetric")
        n_values = {len(part.first) for part in self.overlaps}
        n_values |= {len(part.second) for part in self.overlaps}
        groups = range(len(costs)) if self.groups is None else self.groups
        if n_values != {len(groups)} or not set(groups) <= set(range(len(costs))):
            raise value_error("belief.overlaps_values_mismatch")
        # no fields: found once
        self._group: Indices
        self._metric: Floats
        object.__setattr__(self, "_group", np.array(groups))
        object.__setattr__(self, "_metric", _metric(np.minimum(costs, 1.0)))

    def _etas(self, epsilon: float) -> tuple[float, float]:
        first, second = zip(
            *(part._etas(epsilon) for part in self.overlaps), strict=True
        )
        return max(first), max(second)

    def masses(self, epsilon: float) -> list[tuple[Floats, Floats]]:
        """Return positive and negative masses of each group, for all overlaps' orders.

        They are rounded to the side of the larger divergence.
        """
        found = []
        grown = math.exp(epsilon)
        for part in self.overlaps:
            p, q = np.asarray(part.first), np.asarray(part.second)
            for plus, u, v in zip(part.shares(epsilon), (p, q), (q, p), strict=True):
                # what is added to the one part is added to the other
                minus = np.maximum(plus - (u * (1 + ROUNDING) - grown * v), 0.0)
                sums = [self._by_group(mass) for mass in (plus, minus)]
                # records that are read as one and the same are one
                same = np.where(np.diag(self._metric) == 0, np.minimum(*sums), 0.0)
                found.append((sums[0] - same, sums[1] - same))
        return found

    def _by_group(self, mass: Floats) -> Floats:
        sums: Floats = np.bincount(self._group, mass, len(self._metric)).astype(float)
        return sums

    @property
    def metric(self) -> Floats:
        """Costs along the shortest chains of records, of shape (n_groups, n_groups)."""
        return self._metric


def _metric(costs: Floats) -> Floats:
    """Shortest chains; on the diagonal those of two different records of a group."""
    own = np.diag(costs).copy()
    metric = costs.copy()
    np.fill_diagonal(metric, 0.0)
    for between in range(len(metric)):
        by = metric[:, between, None] + metric[between]
        np.minimum(metric, by, out=metric)
    others = metric + np.diag(np.full(len(metric), math.inf))
    np.fill_diagonal(metric, np.minimum(own, 2 * others.min(axis=1)))
    return metric


def pairwise_overlap(
    overlaps: Iterable[FiniteOverlap], costs: Floats, *, most_groups: int = MOST_GROUPS
) -> PairwiseOverlap:
    """Return distributions of a record with the costs of its values.

    More than `most_groups` values are merged into so many groups of near ones.
    """
    costs, groups = np.asarray(costs, float), None
    if len(costs) > most_groups:
        apart = np.where(np.eye(len(costs), dtype=bool), 0.0, costs)
        hierarchy = scipy.cluster.hierarchy
        tree = hierarchy.linkage(squareform(apart, checks=False), "complete")
        groups = hierarchy.fcluster(tree, most_groups, "maxclust") - 1
        # of any member with any other, itself included where it has a cost
        merged = np.zeros((groups.max() + 1,) * 2)
        np.maximum.at(merged, (groups[:, None], groups[None]), costs)
        costs, groups = merged, tuple(groups.tolist())
    return PairwiseOverlap(tuple(overlaps), tuple(map(tuple, costs.tolist())), groups)


# -- amplification by overlap, pair by pair: two records may be harder to tell apart ---


# Width of a search: bounds are near the least ones, and do not fall evenly.
_STEP = 2e-4


class _Bounds:
    """Bounds on delta, with what was found for the last ones as a start."""

    def __init__(self, overlap: PairwiseOverlap) -> None:
        self._overlap = overlap
        self._splittings = [
            PairSplitting(overlap.metric) for _ in range(2 * len(overlap.overlaps))
        ]

    def delta(self, epsilon: float, mu: float, near: float | None = None) -> float:
        """Bound at an ``epsilon >= 0``, where any record moves the output by `mu`."""
        overlap, plain = self._overlap, GaussianCurve(mu)
        masses = overlap.masses(min(epsilon, FARTHEST))
        # as if all pairs were as far apart as any
        known = []
        for plus, _ in masses:
            eta = min(1.0, float(plus.sum()))
            found = eta and eta * plain.delta(amplified_target(epsilon, eta))
            known.append(found * (1 + DIGITS))
        if not 0 < mu < math.inf:
            return max(known)
        worst = 0.0
        # the worst first: what is known to be less need not be looked at
        for at in np.argsort(known)[::-1]:
            if known[at] <= worst:
                break
            found = self._splittings[at].bound(*masses[at], mu, near=near, enough=worst)
            # masses of pairs add up to those of values but for rounding
            found = found * (1 + DIGITS) + ROUNDING
            worst = max(worst, min(found, known[at]))
        return worst


@dataclass(frozen=True)
class PairwiseOverlapCurve(OverlapCurve, kind="pairwise_overlap_curve"):
    """Privacy curve of Gaussian noise on sums of all records, pair by pair.

    It is never above :class:`OverlapCurve` of the same curve and overlap.

    `curve`: curve of the whole release of the table, where the record becomes any
    other, exactly Gaussian. `overlap`: overlap of all that is read of the record. Its
    costs are shares of the curve's `gaussian_mu`. `wider`: as in the base class,
    without costs of pairs.

    Notes
    -----
    At each epsilon the positive and the negative part of P - e^ε Q are split into
    pairs; see :class:`PairSplitting`. Bounds are within 0.2 % of the least there is for
    the costs, and fall with epsilon to as much.
    """

    overlap: PairwiseOverlap

    #: What a grid may add to the noise: pairs that nearly agree have so much room.
    most_room: ClassVar[float] = ROOM_OF_PAIRS

    def __post_init__(self) -> None:
        if self.curve.gaussian_mu is None:
            raise value_error("belief.curve_not_gaussian")

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon, rounded up."""
        epsilon = check_real(epsilon=epsilon)
        # nothing is kept between calls, so that each answer is always the same
        return self._bound(_Bounds(self.overlap), epsilon)

    @property
    def _without_pairs(self) -> OverlapCurve:
        return OverlapCurve(self.curve, self.overlap)

    def _bound(
        self, bounds: _Bounds, epsilon: float, near: float | None = None
    ) -> float:
        if epsilon < 0:
            # (P - e^ε Q)₊ = (P - e^ε Q) + e^ε (Q - e^-ε P)₊, summed up
            less = -math.expm1(epsilon)
            found = less + (1 - less) * self._bound(bounds, -epsilon)
        else:
            found = bounds.delta(epsilon, float(self.curve.gaussian_mu or 0.0), near)
        return min(found, self._without_pairs.delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """Return nearly the smallest epsilon >= 0 at a delta, rounded up."""
        delta = check_non_negative(delta=delta)
        most = self._without_pairs.epsilon(delta)
        # a search needs a target above zero
        if delta == 0 or not 0 < most < math.inf:
            return most
        bounds = _Bounds(self.overlap)
        # met by bounds that are no nearer to the least ones than they need to be
        target = delta * (1 - GAP)
        if self._bound(bounds, 0.0, target) <= target:
            return 0.0
        low, high = 0.0, most / 8
        # from below, where a bound is found in few rounds
        while self._bound(bounds, high, target) > target:
            if high >= most:
                return most
            low, high = high, 2 * high
        found: float = brentq(
            # of the logarithm, as a divergence spans hundreds of decades
            lambda e: math.log(max(self._bound(bounds, e, target), 1e-300) / target),
            low,
            high,
            xtol=_STEP * high / 16,
            rtol=_STEP,
        )
        # up, until the target is met as it is evaluated
        step = _STEP
        while found < most and self.delta(found) > delta:
            found, step = min(most, found * (1 + step)), 2 * step
        return found


def composed_pairs(curves: Sequence[PairwiseOverlapCurve]) -> PairwiseOverlap | None:
    """Return the overlap of several releases together, whose costs add in squares.

    Its costs are shares of the joint move of any record. None if they are not of the
    same values and groups.
    """
    first = curves[0].overlap
    if any(
        (curve.overlap.overlaps, curve.overlap.groups) != (first.overlaps, first.groups)
        for curve in curves
    ):
        return None
    # pair by pair a product of Gaussian releases is one of squared distances added
    mus = np.array([curve.curve.gaussian_mu for curve in curves], float)
    costs = np.array([curve.overlap.costs for curve in curves])
    squares = np.tensordot(mus**2, costs**2, 1) / np.sum(mus**2)
    shares = np.minimum(1.0, np.sqrt(squares) * (1 + ROUNDING))
    return replace(first, costs=tuple(map(tuple, shares.tolist())))


def largest_pairwise_mu(
    overlap: PairwiseOverlap, epsilon: float, delta: float, *, most: float = 100.0
) -> float:
    """Return nearly the largest mu at which a run keeps a budget, rounded down.

    ``PairwiseOverlapCurve(GaussianCurve(mu), overlap)`` is within the budget as
    evaluated. It is `most` where the overlap alone is within the budget.
    """
    # bounds are no further from the least ones, so that at any epsilon above this one
    # they are within the budget as well
    target = delta * (1 - 3 * GAP)
    # as if all pairs were as far apart as any
    budgets = amplified_budgets(overlap, epsilon, delta)
    least = min((gaussian_mu(*budget) for budget in budgets), default=most)
    if least >= most:
        return most
    found = most
    for plus, minus in overlap.masses(epsilon):
        if plus.sum() > target:
            pair = PairSplitting(overlap.metric)
            found = pair.largest_scale(plus, minus, target, found)
    # down, until the budget is kept as it is evaluated
    step = _STEP
    while found > least and _curve_at(found, overlap).delta(epsilon) > delta:
        found, step = found / (1 + step), 2 * step
    return max(found, least)


def _curve_at(mu: float, overlap: PairwiseOverlap) -> PairwiseOverlapCurve:
    return PairwiseOverlapCurve(GaussianCurve(mu), overlap)
