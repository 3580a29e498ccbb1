"""Accounts of a run whose number of differing records follows a known law."""

import math
from collections.abc import Callable

from scipy.optimize import brentq

from skpuffer.kernel.composed import law_account
from skpuffer.kernel.steps import StepsOfRelease
from skpuffer.noise import Noise

__all__ = ["law_scale"]


#: To which a scale is found, relatively.
_FINE = 2e-5


def law_scale(
    steps: StepsOfRelease,
    scaled: Callable[[float], Noise],
    epsilon: float,
    delta: float,
    enough: float,
    max_memory: float,
) -> float:
    """Return the least scale by the law of the number of records, at most `enough`.

    Parameters
    ----------
    steps : StepsOfRelease
        With a law.
    scaled : callable
        Returns the noise of a scale.
    epsilon, delta : float
        The promise.
    enough : float
        A scale that is enough by another account.
    max_memory : float

    Returns
    -------
    float
    """

    def excess(log_scale: float) -> float:
        noise = scaled(math.exp(log_scale))
        curve, _ = law_account(steps, noise, delta, max_memory)
        return math.log(max(curve.epsilon(delta) / epsilon, 1e-300))

    high = math.log(enough)
    if excess(high) > 0:
        return enough
    low = high - 0.5
    while excess(low) <= 0:
        low, high = low - 0.5, low
    found: float = brentq(excess, low, high, xtol=_FINE)
    # to the side that keeps the promise
    while excess(found) > 0:
        found += _FINE
    return min(enough, math.exp(found))
