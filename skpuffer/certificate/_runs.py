"""The best of a random number of runs, recomputed from what one run costs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer.kernel.numbers import Floats

__all__ = ["log_slope", "most_probable"]

#: Probabilities and epsilons that are tried.
_TRIED = 2000


def log_slope(runs: dict[str, Any]) -> Callable[[Floats], Floats]:
    """Return the logarithm of f' at 1 - p, for f the generating function of a number.

    From its series: of a number with chances in proportion to ``(1 - stop)**k`` times
    those of a negative binomial one, or of a Poisson one, given that it is not zero.
    """
    mean, shape = float(runs["mean"]), float(runs["shape"])
    if math.isinf(shape):
        rate = optimize.brentq(lambda r: r / -math.expm1(-r) - mean, 1e-12, mean + 1)
        return lambda p: math.log(mean) - rate * p

    def mean_of(stop: float) -> float:
        if shape < 1e-9:
            return (1 / stop - 1) / -math.log(stop)
        return shape * (1 - stop) / stop / -math.expm1(shape * math.log(stop))

    log_stop = optimize.brentq(
        lambda log: math.log(mean_of(math.exp(log)) / mean), -60.0, -1e-12
    )
    stop = math.exp(log_stop)

    def at(p: Floats) -> Floats:
        found: Floats = math.log(mean) + (shape + 1) * (
            log_stop - np.log(stop + (1 - stop) * p)
        )
        return found

    return at


def most_probable(
    delta: Callable[[float], float], far: float, pure: float
) -> tuple[Floats, Floats]:
    """Return probabilities of an event, and the most they may be beside them.

    Read off the hockey-stick divergences of one run, at many epsilons up to `far`.
    """
    epsilons = np.linspace(0.0, far, _TRIED // 10)
    deltas = np.array([delta(float(e)) for e in epsilons])
    if math.isfinite(pure):
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    p = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, _TRIED)])
    there = np.exp(epsilons)[:, None] * p + deltas[:, None]
    away = 1 - np.exp(-epsilons)[:, None] * (1 - deltas[:, None] - p)
    most: Floats = np.minimum(1.0, np.minimum(there, away).min(axis=0))
    return p, np.maximum(most, p)
