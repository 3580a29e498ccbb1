"""The least noise that keeps a promise whose loss is found numerically."""

import math
from collections.abc import Callable

__all__ = ["least_scale"]


def least_scale(
    loss: Callable[[float, float], float], target: float, guess: float, fine: float
) -> float:
    """Return nearly the smallest scale whose loss is at most a target.

    A secant search on logarithms, from coarse tolerances to `fine`, held between a
    scale known to be too small and one known to be enough.

    Parameters
    ----------
    loss : callable
        Of a scale and a relative tolerance; decreasing in the scale, never below the
        truth and at most the tolerance above it.
    target : float
        Positive.
    guess : float
        Where to begin.
    fine : float
        Tolerance at which the loss of the scale returned is found, and by four times
        which it may be below the target, relatively.

    Returns
    -------
    scale : float
        Its loss is at most the target, and as near it as `fine` says, unless the loss
        jumps there.
    """
    window = 4 * fine
    # a Rényi cost falls with the square of the scale: the slope of logarithms is -2
    at, slope = math.log(guess), -2.0
    low, high = -math.inf, math.inf  # logarithms of scales too small, and large enough
    tolerance = 0.02
    last: tuple[float, float] | None = None
    for _ in range(100):
        found = loss(math.exp(at), tolerance)
        miss = math.log(found / target) if found > 0 else -5.0
        miss = min(miss, 5.0)
        if miss <= 0:
            if tolerance <= fine and miss >= -window:
                return math.exp(at)
            high = min(high, at)
        elif tolerance <= fine or miss > tolerance:
            # too small for certain, however roughly the loss was found
            low = max(low, at)
        # the loss jumps at this scale: `high` is the least that is known to be enough
        if high - low < 1e-12:
            break
        if last is not None and abs(at - last[0]) > 1e-9:
            # a slope is taken over only where it is seen beyond the tolerance
            seen = (miss - last[1]) / (at - last[0])
            if -50 < seen < -0.2 and abs(miss - last[1]) > 2 * tolerance:
                slope = seen
        last = at, miss
        if abs(miss) < 20 * tolerance:
            tolerance = max(fine, 0.02 * abs(miss))
        # aim at the middle of the window
        step = (-window / 2 - miss) / slope
        at += max(-1.5, min(1.5, step))
        if not low < at < high:
            inside = math.isfinite(low) and math.isfinite(high)
            if inside:
                at = (low + high) / 2
            elif at >= high and tolerance <= fine:
                at = high - max(1e-6, abs(step))
    # the side that keeps the promise
    return math.exp(high)
