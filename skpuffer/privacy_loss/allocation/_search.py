"""Where to look for an epsilon or a scale, if each divergence takes long to bound.

First by few samples, which tell where it is and prove nothing; then, near there, by the
bounds themselves, on the side that is safe.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from skpuffer.kernel.composed import worst_delta
from skpuffer.kernel.curves import TradeOffs
from skpuffer.kernel.numbers import Floats

from ._sampled import sampled_delta

__all__ = ["crossing", "least_epsilon", "least_scale", "sampled_crossing"]

#: Relative accuracies of a scale and of an epsilon, on the safe side: one law serves
#: many epsilons.
_FINE, _FINEST = 2e-5, 1e-11

#: The same of a scale of bounds that take long and are far above the truth.
_COARSE_SCALE = 2e-4

#: Logarithms of the first step away from where to look, near the truth and far above.
_NEAR_STEP, _FAR_STEP = 0.03, 0.3

#: Draws times bins of the samples that tell where to look, and the least of draws.
_DRAWN, _LEAST = 4e5, 200

#: What a bound exceeds the truth by, about, in logarithms of epsilons and of scales.
_ABOVE = 0.03

# Any will do: no promise rests on these.
_SEED = 20250601


class BinsPair(TradeOffs, Protocol):
    """What is asked of a pair of a record in bins."""

    @property
    def replaced(self) -> bool:
        """Whether one record is replaced by another."""

    @property
    def is_rough(self) -> bool:
        """Whether its bounds take long and are far above the truth."""

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same divergences."""

    @property
    def scaled_gram(self) -> Floats:
        """Gram matrix of the bins' means, in units of the noise's variance."""


def sampled_crossing(
    gram_at: Callable[[float], Floats],
    epsilon_at: Callable[[float], float],
    delta: float,
    replaced: bool,
) -> float:
    """Return about where a divergence is delta, by few samples and never as a promise.

    Parameters
    ----------
    gram_at, epsilon_at : callable
        Gram matrix and epsilon at a positive number, with which the divergence falls.
    delta : float
    replaced : bool

    Returns
    -------
    float
    """
    direction = "replace" if replaced else "remove"

    def miss(log: float) -> float:
        gram = gram_at(math.exp(log))
        draws = max(_LEAST, int(_DRAWN / len(gram)))
        rng = np.random.default_rng(_SEED)
        epsilon = epsilon_at(math.exp(log))
        found = sampled_delta(gram, epsilon, direction, n_samples=draws, rng=rng)
        # none that was drawn told anything: less than any delta
        if not found.estimate > 0:
            return -1.0
        return math.log(found.estimate) - math.log(delta)

    low = high = 0.0
    while miss(high) > 0 and high < 25:
        low, high = high, high + 0.7
    while miss(low) <= 0 and low > -10:
        low, high = low - 0.7, low
    if low <= -10 or high >= 25:
        return math.exp(high)
    found: float = brentq(miss, low, high, xtol=5e-3)
    return math.exp(found + _ABOVE)


def least_scale(
    pair_at: Callable[[float], BinsPair], epsilon: float, delta: float, size: float
) -> float:
    """Return nearly the least scale of noise that keeps an epsilon at a delta.

    Parameters
    ----------
    pair_at : callable
        Pair of a record in bins, at a scale.
    epsilon, delta : float
        At the one epsilon that is promised, as each of them takes a law of its own.
    size : float
        A scale of the right order of magnitude.

    Returns
    -------
    float
        At which both directions were found to keep it; infinite if there is none.
    """
    first = pair_at(size)
    guess = sampled_crossing(
        lambda part: pair_at(size * part).scaled_gram,
        lambda _: epsilon,
        delta,
        first.replaced,
    )
    fine, step = (_COARSE_SCALE, _FAR_STEP) if first.is_rough else (_FINE, _NEAR_STEP)
    return crossing(
        lambda scale: worst_delta(pair_at(scale), epsilon),
        delta,
        size * guess,
        fine,
        step,
    )


def least_epsilon(pair: BinsPair, delta: float) -> float:
    """Return nearly the least epsilon at which a pair's bounds are at most delta.

    Parameters
    ----------
    pair : DominatingPair
        Of a record in bins.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At which both directions were found to be; infinite if there is none.
    """
    if worst_delta(pair, 0.0) <= delta:
        return 0.0
    gram = pair.scaled_gram
    if not np.all(np.isfinite(gram)):
        return math.inf
    guess = sampled_crossing(lambda _: gram, lambda e: e, delta, pair.replaced)
    return crossing(lambda e: worst_delta(pair, e), delta, guess, _FINEST)


def crossing(
    function: Callable[[float], float],
    target: float,
    guess: float,
    fine: float = _FINE,
    step: float = _NEAR_STEP,
) -> float:
    """Return nearly the least positive number at which a function is at most a target.

    Parameters
    ----------
    function : callable
        Decreasing, but for errors of grids.
    target : float
    guess : float
        Where to begin.
    fine : float, optional
        Relative accuracy.
    step : float, optional
        Logarithm of the first step away from the guess.

    Returns
    -------
    float
        At which it was found to be; infinite if there is none.
    """

    def miss(log: float) -> float:
        return math.log(max(function(math.exp(log)), 1e-300) / target)

    at = math.log(guess)
    first = miss(at)
    if first == 0:
        return guess
    # away from the guess, ever further
    sign = 1.0 if first > 0 else -1.0
    near, far = at, at + sign * step
    while sign * miss(far) > 0:
        step *= 1.7
        near, far = far, far + sign * step
        if abs(far) > 60:
            return math.inf if sign > 0 else math.exp(near)
    low, high = min(near, far), max(near, far)
    root = brentq(miss, low, high, xtol=fine, rtol=1e-12)
    # grids make it rough: up until it holds, no further than where it is known to
    step = fine
    while root < high and miss(root) > 0:
        root += step
        step *= 1.5
    return math.exp(min(root, high))
