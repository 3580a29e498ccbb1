"""What is known of an event's two probabilities, from a privacy curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.privacy_loss._protocols import PrivacyCurve
    from skpuffer.utils._types import Floats

__all__ = ["most_probable"]

#: Epsilons at which a curve is read. Fewer prove less, and nothing false.
_READ = 25

#: Deltas, in units of the probability that matters, beyond which nothing is gained.
_NEGLIGIBLE = 1e-4


def most_probable(curve: PrivacyCurve, matters: float) -> tuple[Floats, Floats]:
    """Bound an event's probability on one table by that on a neighbouring one.

    For every event, of the probabilities p and p' on two neighbouring tables, and every
    e >= 0, ``p' <= exp(e) p + delta(e)``; and so for its complement, which is to say
    ``p' <= 1 - exp(-e) (1 - delta(e) - p)``. The least of finitely many of these lines,
    and of 1, is a concave bound of p' by p, in pieces that are straight.

    Parameters
    ----------
    curve : curve
        Whose `delta` holds in both orders of the tables.
    matters : float
        The probability p around which the bound matters most, in (0, 1].

    Returns
    -------
    p, bound : ndarray of shape (n_corners,)
        Corners of the bound, from p = 0 to p = 1.
    """
    far = float(curve.epsilon(_NEGLIGIBLE * matters))
    pure = float(curve.renyi(math.inf))
    far = min(far, pure)
    # beyond this a line passes 1 at once, and exp(-e) is nothing
    far = min(far, 50.0) if math.isfinite(far) else 50.0
    # nearer to each other where the curve bends, around zero
    epsilons = far * np.linspace(0.0, 1.0, _READ) ** 1.5
    deltas = np.array([float(curve.delta(float(e))) for e in epsilons])
    if math.isfinite(pure):
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    deltas = np.clip(deltas, 0.0, 1.0)
    slopes = np.concatenate([np.exp(epsilons), np.exp(-epsilons), [0.0]])
    heights = np.concatenate([deltas, 1 - np.exp(-epsilons) * (1 - deltas), [1.0]])
    return _least_of_lines(slopes, heights)


def _least_of_lines(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """Corners in [0, 1] of the least of some lines, by slopes and heights at zero."""
    # by falling slopes, of which the lowest of each leads
    order = np.lexsort((heights, -slopes))
    kept: list[tuple[float, float]] = []
    starts: list[float] = []  # where each becomes the least one
    for slope, height in zip(slopes[order], heights[order], strict=True):
        start = 0.0
        if kept and kept[-1][0] == slope:
            continue
        while kept:
            steep, low = kept[-1]
            start = (height - low) / (steep - slope)
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        kept.append((float(slope), float(height)))
        starts.append(float(start))
    within = [start for start in starts if 0 < start < 1]
    corners = np.unique([0.0, *within, 1.0])
    # the least of all lines there, whatever rounding did to the order of them
    bound = np.min(np.outer(corners, slopes) + heights, axis=1)
    return corners, np.clip(bound, corners, 1.0)
