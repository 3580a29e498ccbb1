"""Inverses of monotone functions, with the error on the safe side."""

import math
from collections.abc import Callable

from scipy.optimize import brentq

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Numbers

__all__ = []


# Costs are evaluated to a few units in the last place, some 1e-15 relative, and roots
# are found to 1e-14: a thousandfold margin on both that no reader will ever notice.
MARGIN = 1e-12


def largest_argument(
    function: Callable[[float], Numbers], target: float, start: float
) -> float:
    """Return nearly the largest u > 0 with ``function(u) <= target``, rounded down.

    Parameters
    ----------
    function : callable
        Increasing and continuous on (0, inf), zero at zero.
    target : float
        Positive.
    start : float
        A positive guess; the bracket grows from it geometrically.

    Returns
    -------
    u : float
        Below the root by the relative margin `MARGIN`.
    """

    def excess(u: float) -> Numbers:
        # relative, as targets span hundreds of decades
        return function(u) / target - 1

    # a bracket that grows by factors reaches any scale in few steps
    low = high = start
    # a bracket with excess(low) <= 0 < excess(high)
    while excess(low) > 0:
        low, high = low / 4, low
    while excess(high) <= 0:
        low, high = high, high * 4
        # the target is met as far as floats go
        if math.isinf(high):
            return low
    root: float = brentq(excess, low, high, xtol=low * 1e-15, rtol=1e-15)
    # down: a smaller shift per unit of noise is more noise
    return root * (1 - MARGIN)


def root_below(
    function: Callable[[float], Numbers], target: float, most: float
) -> float:
    """Return the largest u in (0, most] with ``function(u) <= target``, rounded down.

    For functions that take long: to six digits, in few steps.

    Parameters
    ----------
    function : callable
        Increasing on (0, inf), positive.
    target : float
        Positive.
    most : float
        Positive.
    """
    low = high = most
    while function(low) > target:
        low, high = 0.9 * low, low
    # nothing to search: even the most is within the target
    if low == high:
        return most
    root: float = brentq(
        lambda u: math.log(max(function(u), 1e-320) / target),
        low,
        high,
        xtol=1e-7 * low,
        rtol=1e-7,
    )
    # down, until the target is met as it is evaluated
    while function(root) > target:
        root *= 1 - 2e-7
    return root


def smallest_argument(function: Callable[[float], Numbers], target: float) -> float:
    """Return nearly the smallest e >= 0 with ``function(e) <= target``, rounded up.

    Parameters
    ----------
    function : callable
        Decreasing and continuous on [0, inf) with limit zero.
    target : float
        Positive.
    """
    if function(0.0) <= target:
        return 0.0
    high = 1.0
    while function(high) > target:
        high *= 2
        # no float is enough: infinity is the only safe answer
        if math.isinf(high):
            return high
    return root_above(function, target, 0.0, high)


def root_above(
    function: Callable[[float], Numbers], target: float, low: float, high: float
) -> float:
    """Return nearly the smallest x with ``function(x) <= target``, rounded up.

    Parameters
    ----------
    function : callable
        Decreasing; may be infinite.
    target : float
        Positive.
    low, high : float
        Not negative. The target is met at `high`, and not at `low`.
    """
    root: float = brentq(
        # of the logarithm, as a divergence spans hundreds of decades
        lambda x: math.log(min(max(function(x) / target, 1e-300), 1e300)),
        low,
        high,
        xtol=1e-15 * (low or high),
        rtol=1e-14,
    )
    found, step = root, 2.0**-50
    while found < high and function(found) > target:
        # a function read off a grid is smooth to the width of its cells only
        step *= 4
        # up, and never beyond the end at which the target is known to be met
        found = min(high, max(root, 1e-15 * high) * (1 + step))
    return found


def raise_until(holds: Callable[[float], object], value: float) -> float:
    """Return the value itself or the next few floats above at which `holds` is true.

    A closed form evaluated in floating point may miss its target by a unit in the last
    place; this makes the promise hold as evaluated.

    Raises
    ------
    ValueError
        If it holds at no float near.
    """
    step = 2.0**-53
    while not holds(value):
        step *= 2
        if step > 1e-6 or not math.isfinite(value):
            raise ValueError(Statement("noise.no_finite_scale"))
        # by doubling steps: a few units in the last place, if the closed form is right
        value = value * (1 + step)
    return value
