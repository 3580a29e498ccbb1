"""Numbers of a certificate's data, and what is not recomputed of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

__all__ = ["Floats", "NotRecomputableError", "number", "smallest_epsilon"]

Floats = NDArray[np.float64]

#: Beyond it no epsilon is looked for.
_FARTHEST = 1e6


class NotRecomputableError(Exception):
    """A number does not follow from the file by any path there is here; why not."""


def number(value: Any) -> float:
    """Return a number of the schema, in which infinity is a text."""
    return float(value)


def smallest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the smallest ``epsilon >= 0`` at which a trade-off is at most delta."""
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
        if high > _FARTHEST:
            return math.inf
    found = optimize.brentq(lambda e: delta_at(e) - delta, 0.0, high, xtol=1e-13)
    return float(found)
