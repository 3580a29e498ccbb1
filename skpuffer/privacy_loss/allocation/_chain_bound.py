"""Bounds of kept bins by Markov chains: covers chosen, laws shared by epsilons."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skpuffer.utils._types import Floats

from ._bins import Bins
from ._chain import Accuracy, ChainLaw, chain_law
from ._cover import Cover, check_cover, geometric_covers

__all__ = ["chain_delta", "chain_plan", "delta_of_law"]

#: Epsilons up to which a law serves: closely spaced where a single one is asked for,
#: again and again in its neighbourhood, and widely where many are.
_CLOSE = np.concatenate(
    [
        np.arange(0, 2, 0.125),
        np.arange(2, 4, 0.25),
        np.arange(4, 8, 0.5),
        np.arange(8, 33.0),
    ]
)
_WIDE = np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])

#: A divergence less than so many times what is charged for rounding, by a bound to first
#: order, is not certified.
_TRUSTED = 10.0

#: A divergence of which the charge for paths outside the nodes may be this part.
_OUTSIDE = 0.01

_FINE = Accuracy()
#: Nodes and points by which covers are compared.
_COARSE = Accuracy(nodes=40, second=12, points=512)

#: Covers that are compared, of those that look best.
_TRIED = 6

#: Widths of the classes, of noise and of epsilon, in each of which a cover is chosen.
_NOISE, _EPSILON = 0.15, 0.5


class Plan(NamedTuple):
    """A window of bins and a cover of its lags, in clip norms squared."""

    size: int
    cover: Cover


def _tilted(accuracy: Accuracy, reach: float, adding: bool) -> Accuracy:
    """Tilt for a reach.

    Larger tilts keep more of what lies beyond the window from being wrapped around,
    which only adds, and smaller ones keep rounding small, which grows like
    exp(tilt (1 - 1 / reach)).
    """
    if adding:
        return accuracy._replace(tilt=11.5, window=2)
    tilt = 8.0 if reach < 1.4 else 4.0 if reach < 4 else 2.0
    return accuracy._replace(tilt=tilt, window=3)


def delta_of_law(law: ChainLaw, epsilon: Floats, adding: bool) -> Floats:
    """Bound the hockey-stick divergence by a law that serves these epsilons.

    Never less than ten times what is charged for rounding: less is not certified.
    """
    factor = np.exp(epsilon)
    if adding:
        value = factor * (law.put(1 / factor) + law.error)
        least = _TRUSTED * factor * law.error
    else:
        value = law.mean - factor + law.put(factor) + law.error
        least = np.full_like(factor, _TRUSTED * law.error)
    value = np.maximum(value + law.outside, least)
    return np.minimum(value, 1.0)


def _law(
    plan: Plan, variance: float, rung: float, adding: bool, wide: bool
) -> ChainLaw:
    """Law for epsilons up to a rung, or from it if `adding`."""
    cover = plan.cover.over(variance)
    reach = math.exp(-rung if adding else rung)
    accuracy = _tilted(_FINE, reach, adding)
    if len(cover.scales) == 2:
        accuracy = accuracy._replace(nodes=_FINE.nodes // 2)
    if wide:
        accuracy = accuracy._replace(reach=8.5)
    return chain_law(cover, plan.size, reach, adding, accuracy)


def chain_delta(bins: Bins, variance: float, epsilon: Floats, adding: bool) -> Floats:
    """Bound the hockey-stick divergence in one direction by a Markov chain.

    Parameters
    ----------
    bins : Bins
    variance : float
        Of the noise, in clip norms squared.
    epsilon : ndarray
        Non-negative.
    adding : bool

    Returns
    -------
    ndarray
    """
    flat = np.minimum(epsilon.ravel(), _WIDE[-1])
    found = np.ones(flat.shape)
    table = _CLOSE if flat.size == 1 else _WIDE
    # laws serve epsilons below their rung, and if a record is added those above it
    side = "right" if adding else "left"
    rungs = np.searchsorted(table, flat, side=side) - (1 if adding else 0)
    for rung in np.unique(rungs):
        at = rungs == rung
        found[at] = _rung_delta(bins, variance, flat[at], float(table[rung]), adding)
        # a divergence decreases, and beyond here nothing less is certified
        least = found[at].min()
        if least <= 1e-13:
            found[rungs > rung] = least
            break
    return found.reshape(epsilon.shape)


def _rung_delta(
    bins: Bins, variance: float, epsilon: Floats, rung: float, adding: bool
) -> Floats:
    plan = chain_plan(bins, _class(variance), _EPSILON * round(rung / _EPSILON), adding)
    law = _law(plan, variance, rung, adding, False)
    value = delta_of_law(law, epsilon, adding)
    if law.outside > _OUTSIDE * value.min():
        wide = _law(plan, variance, rung, adding, True)
        value = np.minimum(value, delta_of_law(wide, epsilon, adding))
    return value


def _class(variance: float) -> float:
    """Variance in the middle of a class of them."""
    return math.exp(_NOISE * round(math.log(variance) / _NOISE))


@lru_cache(maxsize=256)
def chain_plan(bins: Bins, variance: float, epsilon: float, adding: bool) -> Plan:
    """Choose window and cover by the bounds that coarse grids give.

    Every choice is a bound, so that a rough one costs tightness and nothing else.

    Parameters
    ----------
    bins : Bins
    variance, epsilon : float
        About those at which the bound will be asked for.
    adding : bool

    Returns
    -------
    Plan
        Its cover is verified, entry by entry, against the window's lags.
    """
    at = np.array([epsilon])
    reach = math.exp(-epsilon if adding else epsilon)
    accuracy = _tilted(_COARSE, reach, adding)
    tried = sorted(
        (
            (score, window.size, cover, window.lags)
            for window in bins.windows
            for score, cover in geometric_covers(window.lags)
        ),
        key=lambda each: each[0],
    )[:_TRIED]
    found = []
    for _, size, cover, lags in tried:
        check_cover(cover, lags)
        law = chain_law(cover.over(variance), size, reach, adding, accuracy)
        found.append((float(delta_of_law(law, at, adding)[0]), Plan(size, cover)))
    return min(found, key=lambda each: each[0])[1]
