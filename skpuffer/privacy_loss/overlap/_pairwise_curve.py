"""Amplification by overlap, pair by pair: two records may be harder to tell apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from skpuffer.exceptions import Statement
from skpuffer.kernel.curves import GaussianCurve
from skpuffer.kernel.gaussian import gaussian_mu
from skpuffer.kernel.numbers import check_non_negative, check_real

from ._curve import OverlapCurve, amplified_budgets, amplified_target
from ._pair_splitting import GAP, PairSplitting
from ._pairwise import ROOM_OF_PAIRS, PairwiseOverlap
from ._rounding import DIGITS, FARTHEST, ROUNDING

__all__ = ["PairwiseOverlapCurve", "composed_pairs", "largest_pairwise_mu"]

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

    Parameters
    ----------
    curve : curve
        Of all that is released of the table together, where the record becomes any
        other, exactly Gaussian.
    overlap : PairwiseOverlap
        Of all that is read of the record. Its costs are shares of the curve's
        `gaussian_mu`.
    wider : tuple of (Statement or str, Overlap), default=()
        As in the base class: what is not the belief is not told apart pair by pair.

    Notes
    -----
    At each epsilon the positive and the negative part of P - e^ε Q are split into
    pairs; see :class:`PairSplitting`. Bounds are within 0.2 % of the least there is for
    the costs, and fall with epsilon to as much.

    Examples
    --------
    >>> from skpuffer.privacy_loss import GaussianCurve
    >>> from skpuffer.privacy_loss.overlap import FiniteOverlap, OverlapCurve
    >>> from skpuffer.privacy_loss.overlap import PairwiseOverlap, PairwiseOverlapCurve
    >>> coins = FiniteOverlap(first=(0.5, 0.5), second=(0.25, 0.75))
    >>> pairs = PairwiseOverlap((coins,), costs=((0.0, 0.5), (0.5, 0.0)))
    >>> for kind in (OverlapCurve, PairwiseOverlapCurve):
    ...     print(round(kind(GaussianCurve(1.0), pairs).epsilon(1e-5), 2))
    0.63
    0.43
    """

    overlap: PairwiseOverlap

    #: What a grid may add to the noise: pairs that nearly agree have so much room.
    most_room: ClassVar[float] = ROOM_OF_PAIRS

    def __post_init__(self) -> None:
        if self.curve.gaussian_mu is None:
            raise ValueError(Statement("belief.curve_not_gaussian"))

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

    Parameters
    ----------
    curves : sequence of PairwiseOverlapCurve

    Returns
    -------
    PairwiseOverlap or None
        Its costs are shares of what any record moves all of them by. None if they are
        not of the same values and groups.
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

    Parameters
    ----------
    overlap : PairwiseOverlap
    epsilon, delta : float
        Positive: the budget for whoever believes in it.
    most : float, default=100.0
        Largest mu to consider, such as that of the fallback.

    Returns
    -------
    float
        ``PairwiseOverlapCurve(GaussianCurve(mu), overlap)`` is within the budget as
        evaluated. `most` where the overlap alone is.
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
