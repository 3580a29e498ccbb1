"""Choice among calibrations that keep one promise: the least error, then the best."""

import math
from collections.abc import Sequence
from typing import Any

from skpuffer.accountants._base import Calibration
from skpuffer.privacy import Certificate

__all__ = ["least_of", "spent_by"]

#: Errors that differ by no more than this share count as equal: scales are found to
#: about so many digits.
_SAME = 1e-3


def spent_by(certificate: Certificate) -> float:
    """Return the epsilon of a certificate, infinite if it states none."""
    return math.inf if certificate.epsilon is None else certificate.epsilon


def least_of(sizes: Sequence[float], made: Sequence[Calibration]) -> int:
    """Return where the least size is; of those about equal, the best certificate."""
    near = min(sizes) * (1 + _SAME)
    # all may be infinite, and then equal
    equal = [i for i, size in enumerate(sizes) if size <= near]
    return min(equal, key=lambda i: _preference(made[i].certificate))


def _preference(certificate: Certificate) -> tuple[Any, ...]:
    """Order in which certificates of one promise are preferred, the best first."""
    return (
        not certificate.composable,
        not certificate.notion.differential,
        certificate.event_delta,
        -certificate.confidence,
        len(certificate.assumptions),
    )
