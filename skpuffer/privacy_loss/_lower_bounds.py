"""Epsilon from below: how much of a composed bound is lost to its grid, at most."""

import contextlib
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skpuffer.kernel.curves import Pair
from skpuffer.kernel.distribution import (
    _TAIL,
    TOLERANCE,
    PrivacyLossCurve,
    Steps,
    _sum_on,
    _upper,
)
from skpuffer.kernel.loss_grid import (
    GridTooLargeError,
    LossGrid,
    convex_envelope,
    dots,
    grid_of,
    masses_of,
)
from skpuffer.kernel.numbers import Floats, check_probability

__all__ = ["Accounted", "account"]


class Accounted(NamedTuple):
    """Epsilon of composed pairs at some delta.

    Parameters
    ----------
    epsilon : float
        Not below the truth.
    lower : float
        Not above the truth for the pairs themselves, so for a mechanism only where
        they are attained.
    engine : {'exact', 'grid', 'coarse_grid', 'renyi'}
        A grid is coarse if memory allows none as fine as asked for, and epsilon may be
        above the truth by more than `LOOSE`, relatively.
    """

    epsilon: float
    lower: float
    engine: str


def account(curve: PrivacyLossCurve, delta: float) -> Accounted:
    """Return bounds on epsilon at `delta` from both sides, and their engine.

    Parameters
    ----------
    curve : PrivacyLossCurve
    delta : float
        In (0, 1).

    Returns
    -------
    accounted : Accounted
    """
    return _account(curve, check_probability(delta=delta))


@lru_cache(maxsize=4096)
def _account(curve: "PrivacyLossCurve", delta: float) -> Accounted:
    epsilon, engine, grids = _upper(curve, delta, TOLERANCE)
    if engine == "exact":
        known = not hasattr(curve.steps[0][0], "least_epsilon")
        return Accounted(epsilon, epsilon * (1 - 1e-9) if known else 0.0, engine)
    lower = 0.0
    # no grids where epsilon is zero, or none could be held
    for steps, step in zip(curve._directions, grids, strict=False):
        # of a bound on a pair nothing is known from below
        if not all(getattr(pair, "convex", True) for pair, _ in steps):
            continue
        # nor where losses are too large to be held beside others
        with contextlib.suppress(GridTooLargeError):
            found = _lower_epsilon_on(steps, delta, step, curve._max_points)
            lower = max(lower, found)
    return Accounted(epsilon, float(min(lower, epsilon)), engine)


def _lower_epsilon_on(
    steps: Steps, delta: float, step: float, max_points: float
) -> float:
    """Epsilon by one grid, rounded down: of pairs that those of the steps dominate."""
    total = _sum_on(steps, delta, step, max_points, lower_grid)
    tilt, best = total.tilt_for_delta(delta), 0.0
    for _ in range(40):
        # what grids may be above the pairs by
        lower = total.tail(tilt, max_points).lower(delta * (1 + 2 * _TAIL))
        if lower <= best > 0:
            break
        best, tilt = max(best, lower), tilt / 2
    return best


def lower_grid(pair: Pair, step: float, tail: float, max_points: float) -> LossGrid:
    """Discretise a pair's privacy loss with a trade-off nowhere above its own.

    But for a mass of `tail`. At the points it is less by as much as four times what
    the one of connected dots is above.
    """
    first, height, masses = dots(pair, step, tail, max_points)
    zero = -first
    if max(zero, len(height) - 1 - zero) * step >= 600:
        raise GridTooLargeError
    height = convex_envelope(_lowered(height, masses, zero, step, tail), zero, step)
    return grid_of(step, first, height, masses_of(height, zero, step))


def _lowered(
    height: Floats, masses: Floats, zero: int, step: float, tail: float
) -> Floats:
    """Heights whose connected dots are nowhere above a trade-off with those given.

    A convex trade-off lies above its chords, extended beyond their ends. In the cell
    between two points, of masses p and p', it is thus below its own chord by at most
    ``growth p p' / ((1 + growth) p + p')``. Of this cell and the next the larger one is
    taken off each point. Where that leaves less than nothing, and beyond, the trade-off
    is taken for that of equal distributions: from the point on at which it is above
    that by what is taken off in the cell before, but for a mass of `tail`.
    """
    growth = math.expm1(step)
    mass = np.maximum(masses, 0.0)
    both = (1 + growth) * mass[:-1] + mass[1:]
    apart = growth * mass[:-1] * mass[1:] / np.where(both > 0, both, 1.0)
    # a hair more, for rounding
    apart *= 1 + 1e-6
    taken = np.zeros(len(height))
    taken[:-1] = apart
    taken[1:] = np.maximum(taken[1:], apart)
    left = height - taken
    left[[0, -1]] = 0.0
    # to the right of zero, and to its left
    for at, end in ((np.arange(zero, len(height)), 0), (np.arange(zero, -1, -1), 1)):
        cell = at[1:] - 1 + end
        # the cells that may be the last one before what is nothing
        may_end = height[at[1:]] >= apart[cell] - tail
        bad = np.flatnonzero(left[at] < 0)
        most = (bad[0] if len(bad) else len(at) - 1) - 1
        ends = np.flatnonzero(may_end[: most + 1])
        if not len(ends):
            return np.zeros(len(height))
        left[at[ends[-1] + 1 :]] = 0.0
    return left
