"""The largest convex trade-off below bounds of one at some losses."""

import numpy as np
from scipy.optimize import isotonic_regression

from skpuffer.utils._types import Floats

__all__ = ["Hull"]

#: Losses beyond which, on either side, nothing is read: slopes in their exponential
#: would leave the range of floats.
_FARTHEST = 600.0


class Hull:
    """Trade-off of a pair of distributions, linear in exp(loss) between points.

    A true trade-off is convex in exp(loss), so one that lies below all heights given
    lies below their convex hull, and that is the trade-off of a pair which dominates.
    Both directions are read off the one hull, so that they belong to one pair.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Increasing, zero among them. Beyond the last height the trade-off stays; before
        the first it falls in proportion. Those beyond 600 on either side are left out,
        which only raises what is read there.
    heights : ndarray of shape (n,)
        Bounds of the trade-off, less max(0, 1 - exp(loss)).
    """

    def __init__(self, losses: Floats, heights: Floats) -> None:
        near = np.abs(losses) <= _FARTHEST
        losses, heights = losses[near], heights[near]
        self._losses, self._heights = losses, _convex(losses, heights)

    def excess(self, loss: Floats) -> Floats:
        """Return the trade-off at losses, less max(0, 1 - exp(loss))."""
        x, y = self._losses, self._heights
        loss = np.asarray(loss, float)
        right = np.clip(np.searchsorted(x, loss), 1, len(x) - 1)
        left = right - 1
        inside = np.clip(loss, x[0], x[-1])
        part = np.expm1(inside - x[left]) / np.expm1(x[right] - x[left])
        value = (1 - part) * y[left] + part * y[right]
        # a line through the origin, where the trade-off is one
        found: Floats = value * np.exp(np.minimum(loss - x[0], 0.0))
        return found


def _convex(losses: Floats, heights: Floats) -> Floats:
    zero = int(np.searchsorted(losses, 0.0))
    # widths in exp(loss), in units of its value at the left end
    growth = np.expm1(np.diff(losses))
    width = growth * np.exp(losses[:-1])
    slopes = np.diff(heights) / width
    # either side from its own end, where heights are small and no digit may be lost
    before = _monotone(slopes[:zero], width[:zero])
    after = _monotone(slopes[zero:], width[zero:])
    if zero and len(after) and before[-1] - 1 > after[0]:
        equal = np.arange(len(slopes)) < zero
        slopes = _monotone(slopes - equal, width) + equal
    else:
        slopes = np.concatenate([before, after])
    rise = slopes * width
    convex = heights.copy()
    convex[1:zero] = heights[0] + np.cumsum(rise[: zero - 1]) if zero else 0.0
    convex[zero:-1] = heights[-1] - np.cumsum(rise[zero:][::-1])[::-1]
    # rounding takes none of them above what was given, or below zero
    return np.clip(convex, 0.0, heights)


def _monotone(slopes: Floats, width: Floats) -> Floats:
    if np.all(np.diff(slopes) >= 0):
        return slopes
    rising: Floats = isotonic_regression(slopes, weights=width).x
    return rising
