"""Amplification by overlap: what is left to hide of a record that is believed alike.

What its two distributions have in common tells nothing of the secret.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from skpuffer.exceptions import Statement
from skpuffer.kernel.composed_curves import WorstCurve
from skpuffer.kernel.curves import BeliefCurve, PrivacyCurve
from skpuffer.kernel.noise import smallest_argument
from skpuffer.kernel.numbers import check_non_negative, check_real
from skpuffer.kernel.plain import Plain

from ._kinds import DIGITS, FARTHEST, Overlap, WorstOverlap

#: A delta below one, however little is left to hide beyond it.
_NEARLY_ALL = 1 - 1e-9


def amplified_target(epsilon: float, eta: float) -> float:
    """Return the epsilon at which a curve is read for an overlap eta in (0, 1].

    ``log(1 + (exp(epsilon) - 1) / eta)``; minus infinity where the second distribution
    holds no more than the first.

    Balle, Barthe and Gaboardi (2018), Privacy amplification by subsampling, Theorem 2,
    applied to the belief instead of the sampler.
    """
    if epsilon > FARTHEST:  # one is nothing beside the exponential
        return epsilon - math.log(eta)
    grown = math.expm1(epsilon) / eta
    return math.log1p(grown) if grown > -1 else -math.inf


def amplified_budgets(
    overlap: Overlap, epsilon: float, delta: float
) -> tuple[tuple[float, float], ...]:
    """Return the budgets that a mechanism keeps where a record becomes any other.

    One (epsilon, delta) for each order of the record's distributions; none where the
    overlap alone is within the budget.
    """
    # eta * curve(target) <= delta
    budgets = [
        (amplified_target(epsilon, eta), min(delta / eta, _NEARLY_ALL))
        for eta in overlap.etas(epsilon)
        if eta > delta
    ]
    return tuple(dict.fromkeys(budgets))


@dataclass(frozen=True)
class OverlapCurve(Plain, BeliefCurve, kind="overlap"):
    """Privacy curve of a mechanism, for whoever believes that one record overlaps.

    `curve`: curve of the whole release of the table, where the record becomes any
    other: composed first, and amplified once. `overlap`: overlap of all that is read of
    the record. `wider`: overlap if the belief is off, each under a name.

    Notes
    -----
    With η(ε) the divergence of the record's distributions, ``delta(ε) = η(ε)
    curve.delta(log(1 + (exp(ε) - 1) / η(ε)))``, the larger of both orders. The positive
    and the negative part of P - e^ε Q have the masses η and η + e^ε - 1. Otherwise they
    are two distributions of the record, which the mechanism hides like any two records.
    """

    curve: PrivacyCurve
    overlap: Overlap
    wider: tuple[tuple[Statement | str, Overlap], ...] = ()

    gaussian_mu: ClassVar[None] = None

    def without_belief(self) -> PrivacyCurve:
        """Return the curve of a record that becomes any other."""
        return self.curve

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order: what holds whatever is believed."""
        return self.curve.renyi(alpha)

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon, rounded up."""
        epsilon = check_real(epsilon=epsilon)
        found = [
            eta * self._at(amplified_target(epsilon, eta))
            for eta in self.overlap.etas(epsilon)
            if eta > 0
        ]
        # an average over records promises no less than the worst of them
        plain = float(self.curve.delta(epsilon))
        return min(max(found, default=0.0) * (1 + DIGITS), plain)

    def _at(self, epsilon: float) -> float:
        return 1.0 if epsilon == -math.inf else float(self.curve.delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 at a delta, rounded up."""
        delta = check_non_negative(delta=delta)
        plain = float(self.curve.epsilon(delta))
        # a search needs a target above zero
        if delta == 0 or plain == 0:
            return plain
        return min(plain, smallest_argument(self.delta, delta))

    def if_off(self, delta: float) -> dict[Statement | str, float]:
        """Return the epsilon at a delta if the belief is off, by the name of how."""
        return {
            name: OverlapCurve(self.curve, other).epsilon(delta)
            for name, other in self.wider
        }


# -- the largest of several curves under beliefs, whichever of them counts -------------


@dataclass(frozen=True)
class WorstOverlapCurve(WorstCurve, BeliefCurve, kind="worst_overlap_curve"):
    """The largest of several amplified curves: of any one of them.

    Each is amplified by its own belief before they are compared.
    """

    curves: "tuple[OverlapCurve | WorstOverlapCurve, ...]"

    @property
    def curve(self) -> WorstCurve:
        """Curve that holds of any one whatever is believed."""
        return WorstCurve(tuple(each.curve for each in self.curves))

    def without_belief(self) -> WorstCurve:
        """Return what holds of any one whatever is believed."""
        return self.curve

    @property
    def overlap(self) -> WorstOverlap:
        """Overlap left to hide of any one."""
        return WorstOverlap(tuple(each.overlap for each in self.curves))

    def if_off(self, delta: float) -> dict[Statement | str, float]:
        """Return the epsilon at a delta if the belief is off, by the name of how.

        For beliefs that are off in other ways it is the worst, where known of each.
        """
        found = [each.if_off(delta) for each in self.curves]
        if not all(found):
            return {}
        names = dict.fromkeys(name for each in found for name in each)
        if all(each.keys() == names.keys() for each in found):
            return {name: max(each[name] for each in found) for name in names}
        worst = max(epsilon for each in found for epsilon in each.values())
        return {Statement("prior.each_of_its_own_belief", names=tuple(names)): worst}
