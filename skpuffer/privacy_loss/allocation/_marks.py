"""Many epsilons by few: read off the line between bounds at some."""

from collections.abc import Callable

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.utils._types import Floats

__all__ = ["by_marks"]

#: Epsilons at which a divergence is bounded where many are asked for.
_MARKS = np.concatenate([np.arange(0, 4, 0.25), np.arange(4, 8, 0.5), np.arange(8, 33)])


def by_marks(
    delta_at: Callable[[float], float], epsilon: Floats, least: float
) -> Floats:
    """Bound a divergence at epsilons, each of which takes long.

    Parameters
    ----------
    delta_at : callable
        Upper bound of a hockey-stick divergence at one epsilon.
    epsilon : ndarray
        Non-negative.
    least : float
        Divergence for less than which no further bound is found.

    Returns
    -------
    ndarray
        One or two are found as such. Many are read off the line, as a function of
        exp(epsilon), between two bounds: the divergence is convex in that, so that it
        lies below.

    Raises
    ------
    ValueError
        If an epsilon is negative.
    """
    if np.any(epsilon < 0):
        raise ValueError(Statement("allocation.epsilon_negative", least=epsilon.min()))
    flat = np.minimum(epsilon.ravel(), _MARKS[-1])
    if flat.size <= 2:
        return np.array([delta_at(at) for at in flat.tolist()]).reshape(epsilon.shape)
    last = int(np.searchsorted(_MARKS, flat.max()))
    marks, heights = _MARKS[: last + 1], np.ones(last + 1)
    for i, at in enumerate(marks.tolist()):
        heights[i] = delta_at(at)
        # a divergence decreases: this serves the rest
        if heights[i] <= least:
            heights[i:] = heights[i]
            break
    heights = np.minimum.accumulate(heights)
    found: Floats = np.interp(np.exp(flat), np.exp(marks), heights)
    return found.reshape(epsilon.shape)
