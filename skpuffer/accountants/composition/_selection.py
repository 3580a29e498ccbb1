"""Dominating pairs of choices by noisy scores."""

from dataclasses import dataclass

from skpuffer.accountants._selection import selection_curve
from skpuffer.exceptions import Statement
from skpuffer.noise import GumbelNoise, Noise
from skpuffer.releases import SelectionRelease

from ._accounting import Accounting, StepsOfRelease

__all__ = ["SelectionSteps"]


@dataclass(frozen=True)
class SelectionSteps(StepsOfRelease, kind=SelectionRelease):
    """The choices of a selection; see :class:`StepsOfRelease`.

    Parameters
    ----------
    family : {GumbelNoise, ExponentialNoise}
        Of the noise whose scale is searched for.
    """

    release: SelectionRelease
    family: type[Noise] = GumbelNoise

    def check(self) -> None:
        """Accept every selection; its noise is checked by :meth:`under`."""

    def scaled(self, unit: Noise, scale: float) -> Noise:
        """Return noise of the family; see :meth:`StepsOfRelease.scaled`."""
        return self.family(scale)

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the pairs of all rounds; see :class:`StepsOfRelease`."""
        curve, shift, source, statement = selection_curve(
            noise, self.release, self.relation, self.count, max_memory
        )
        source = Statement("source.composition_dominating_pairs", source=source)
        return Accounting(
            curve, shift, source, False, ((), ()), (statement,), curve.steps
        )
