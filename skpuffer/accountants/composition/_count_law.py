"""Accounts of a run whose number of differing records follows a known law."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats
from skpuffer.noise import Noise
from skpuffer.privacy_loss import CountLawCurve, GaussianCurve

from ._accounting import Accounting, StepsOfRelease

__all__ = ["law_account", "law_scale"]

#: How likely the numbers of records that have a curve are exceeded, relatively to
#: delta: many where curves are in closed form, and one where they take grids.
_LEVELS = np.geomspace(1e8, 1e-3, 100)
_ONE_LEVEL = np.array([0.1])

#: To which a scale is found, relatively.
_FINE = 2e-5

_REMARK = Statement("assume.mean_over_count_law")


def law_account(
    steps: StepsOfRelease, noise: Noise, delta: float, max_memory: float
) -> tuple[CountLawCurve, Accounting]:
    """Account of all steps by the mean over how many records differ.

    Under one coupling the number is that of a pair of tables, the same at all steps.
    So the mean is over whole runs (joint convexity), and only once.

    Parameters
    ----------
    steps : StepsOfRelease
        With a law.
    noise : Noise
    delta : float
        Near which the curve is to be good.
    max_memory : float

    Returns
    -------
    curve : CountLawCurve
    accounting : Accounting
        That of the largest number which the curve holds one for.
    """
    assert steps.law is not None

    def account(count: int) -> Accounting:
        return replace(steps, count=count, event=0.0, law=None).under(noise, max_memory)

    one = account(1)
    levels = _LEVELS if isinstance(one.curve, GaussianCurve) else _ONE_LEVEL
    counts, weights, beyond = _binned(np.array(steps.law), delta * levels)
    found = [account(count) for count in counts]
    curve = CountLawCurve(tuple(each.curve for each in found), weights, beyond)
    # a mean of bounds that single tables attain is attained by none
    assumptions = (*found[-1].assumptions, _REMARK)
    told = replace(found[-1], tight=False, assumptions=assumptions, events=None)
    return curve, told


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


def _binned(
    survival: Floats, levels: Floats
) -> tuple[list[int], tuple[float, ...], float]:
    """Numbers that stand for all up to them, their weights, and the mass beyond."""
    n = len(survival)
    # the least number that is exceeded with at most each probability
    exceeded = np.minimum.accumulate(survival)
    first = np.unique(np.searchsorted(-exceeded, -levels)).tolist()
    # if all n are exceeded too often, all n are what there is
    counts = [count for count in first if count > 0]
    # mass moves to larger numbers only, which cost no less
    above = [1.0] + [exceeded[count] if count < n else 0.0 for count in counts]
    return counts, tuple(-np.diff(above)), float(above[-1])
