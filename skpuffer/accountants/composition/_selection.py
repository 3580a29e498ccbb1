"""Dominating pairs of choices by noisy scores."""

import math

import numpy as np

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import GumbelNoise, Noise, Shift
from skpuffer.privacy_loss import BoundedRangePair, PrivacyLossCurve
from skpuffer.releases import SelectionRelease

from ._accounting import Accounting, StepsOfRelease

__all__ = ["SELECTION_FIELDS", "SelectionSteps"]

#: What is read of a selection.
SELECTION_FIELDS = frozenset({"assumptions", "context", "n_records", "name", "scores"})

_SOURCE = (
    "exponential mechanism, by the range of its privacy loss (Dong, Durfee and Rogers "
    "2020), and composition of dominating pairs (Zhu, Dong and Wang 2022)"
)


class SelectionSteps(StepsOfRelease, kind=SelectionRelease):
    """The choices of a selection; see :class:`StepsOfRelease`.

    Notes
    -----
    With c the reciprocal of the scale, the privacy loss of a candidate is c times the
    move of its score, plus a constant that all candidates share: so losses lie in an
    interval of c times the range of these moves. If k records differ, moves add up one
    record after the other, and so do their ranges.
    """

    release: SelectionRelease

    def check(self) -> None:
        """Accept every selection; its noise is checked by :meth:`under`."""

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the pairs of all choices; see :class:`StepsOfRelease`.

        Raises
        ------
        UnsupportedError
            If the noise is not Gumbel noise of one scale.
        """
        # by exact type, as a subclass may draw otherwise
        if type(noise) is not GumbelNoise or noise.dim is not None:
            raise UnsupportedError(
                f"The release {self.release.name!r} is chosen by Gumbel noise of one "
                f"scale on scores. Got {noise!r}."
            )
        ranges = [self.count * one for one in self.release.ranges(self.relation)]
        scale = float(np.max(noise.scale))  # of one scale
        steps = tuple((BoundedRangePair(r / scale), 1) for r in ranges)
        largest = Shift(max(ranges), norm=math.inf, dim=None, structure="scalar")
        statement = (
            f"{len(ranges)} choices, each by scores that move by amounts of a range of "
            f"at most {max(ranges):g} between neighbouring tables"
        )
        curve = PrivacyLossCurve(steps, float(max_memory))
        return Accounting(curve, largest, _SOURCE, False, ((), ()), (statement,))
