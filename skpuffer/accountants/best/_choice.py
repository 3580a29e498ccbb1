"""Choice among calibrations that keep one promise: the least error, then the best."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skpuffer.accountants._base import Calibration
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate

__all__ = ["least_of", "mean_square", "ratio", "spent_by"]

#: Errors that differ by no more than this share count as equal: scales are found to
#: about so many digits.
_SAME = 1e-3


def mean_square(noise: Noise, dim: int | None) -> float:
    """Return the mean square of a noise, in units of the output, over coordinates."""
    # where their number is not known, all candidates have the same for each
    return float(np.sum(noise.variance(dim)))


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


def ratio(error: float, least: float) -> str:
    """Return in words how many times the least an error is."""
    if error == least:
        return "(the same)"
    if least == 0 or math.isinf(error):
        return "(infinitely more)"
    return f"({error / least:.3g} ×)"
