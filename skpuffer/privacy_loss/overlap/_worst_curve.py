"""The largest of several curves under beliefs, whichever of them counts."""

from dataclasses import dataclass

from skpuffer.exceptions import Statement
from skpuffer.kernel.composed_curves import WorstCurve
from skpuffer.kernel.curves import BeliefCurve

from ._curve import OverlapCurve
from ._kinds import WorstOverlap

__all__ = ["WorstOverlapCurve"]


@dataclass(frozen=True)
class WorstOverlapCurve(WorstCurve, BeliefCurve, kind="worst_overlap_curve"):
    """The largest of several amplified curves: of any one of them.

    Each is amplified by its own belief before they are compared.

    Parameters
    ----------
    curves : tuple of OverlapCurve or WorstOverlapCurve

    Examples
    --------
    >>> from skpuffer.privacy_loss import GaussianCurve
    >>> from skpuffer.privacy_loss.overlap import OddsOverlap, OverlapCurve
    >>> from skpuffer.privacy_loss.overlap import WorstOverlapCurve
    >>> first = OverlapCurve(GaussianCurve(0.5), OddsOverlap(2.0))
    >>> second = OverlapCurve(GaussianCurve(0.4), OddsOverlap(8.0))
    >>> worst = WorstOverlapCurve((first, second))
    >>> [round(each.epsilon(1e-5), 2) for each in (first, second, worst)]
    [0.27, 0.66, 0.66]
    """

    curves: "tuple[OverlapCurve | WorstOverlapCurve, ...]"

    @property
    def curve(self) -> WorstCurve:
        """What holds of any one whatever is believed."""
        return WorstCurve(tuple(each.curve for each in self.curves))

    def without_belief(self) -> WorstCurve:
        """Return what holds of any one whatever is believed."""
        return self.curve

    @property
    def overlap(self) -> WorstOverlap:
        """What is left to hide of any one."""
        return WorstOverlap(tuple(each.overlap for each in self.curves))

    def if_off(self, delta: float) -> dict[Statement | str, float]:
        """Return the epsilon at a delta if the belief is off, by the name of how.

        Of beliefs that are off in other ways the worst is all that can be said of any
        one; nothing, where it is not known of each.
        """
        found = [each.if_off(delta) for each in self.curves]
        if not all(found):
            return {}
        names = dict.fromkeys(name for each in found for name in each)
        if all(each.keys() == names.keys() for each in found):
            return {name: max(each[name] for each in found) for name in names}
        worst = max(epsilon for each in found for epsilon in each.values())
        return {Statement("prior.each_of_its_own_belief", names=tuple(names)): worst}
