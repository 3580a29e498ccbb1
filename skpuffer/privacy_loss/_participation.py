"""Participation: how many records of a group a random batch holds."""

import math
from functools import lru_cache

import numpy as np
from scipy.stats import binom, hypergeom

from skpuffer.kernel.numbers import Floats, Integers

__all__ = [
    "log_mixed",
    "participation",
    "participation_of_subset",
    "rare_participation",
]

#: Mass of a binomial tail that is not worth a term of its own.
_RARE = 1e-30


@lru_cache(maxsize=16)
def participation(trials: int, chance: float) -> tuple[Integers, Floats]:
    """Support and weights of Binomial(trials, chance), the tail lumped at `trials`.

    Parameters
    ----------
    trials : int
    chance : float
        Of each trial.

    Returns
    -------
    times : ndarray of int
        From one. The last stands for all further ones as well, and is the largest
        possible, which is the worst.
    weights : ndarray of float
        Positive.
    """
    distribution, last = binom(trials, chance), 8
    # Double until the tail beyond is rare. SciPy's `isf` would look up 1 - _RARE, which
    # is one in floating point.
    while last < trials and distribution.sf(last) > _RARE:
        last *= 2
    last = min(last, trials)
    times = np.arange(1, last + 1)
    weights = distribution.pmf(times)
    # The tail is put where divergences are largest: at all trials. Upper bounds stay
    # upper bounds.
    if last < trials:
        times, weights = (
            np.append(times, trials),
            np.append(weights, distribution.sf(last)),
        )
    times, weights = times[weights > 0], weights[weights > 0]
    for shared in (times, weights):
        shared.flags.writeable = False
    return times, weights


@lru_cache(maxsize=16)
def rare_participation(trials: int, chance: float) -> tuple[Integers, Floats]:
    """Support and log-weights of the tail that :func:`participation` lumps.

    Parameters
    ----------
    trials : int
    chance : float

    Returns
    -------
    times : ndarray of int
        Empty if nothing is lumped.
    log_weights : ndarray of float
    """
    times, _ = participation(trials, chance)
    # the last but one is the last that stands for itself
    if len(times) < 2 or times[-1] == times[-2] + 1:
        return np.arange(0), np.zeros(0)
    rare = np.arange(times[-2] + 1, trials + 1)
    return rare, binom(trials, chance).logpmf(rare)


@lru_cache(maxsize=16)
def participation_of_subset(
    n_records: int, count: int, batch_size: int
) -> tuple[Integers, Floats]:
    """Support from one, and weights, of how many of a group a random subset has.

    Parameters
    ----------
    n_records : int
    count : int
        Size of the group.
    batch_size : int
        Size of the subset.

    Returns
    -------
    times : ndarray of int
    weights : ndarray of float
        Hypergeometric, positive.
    """
    times = np.arange(1, min(count, batch_size) + 1)
    weights = hypergeom(n_records, count, batch_size).pmf(times)
    times, weights = times[weights > 0], weights[weights > 0]
    for shared in (times, weights):
        shared.flags.writeable = False
    return times, weights


#: Below, the exponential of a loss is no float to fear for.
_LARGE = 300.0


def log_mixed(loss: Floats, q: float) -> Floats:
    """Log of 1 + q (exp(loss) - 1): the loss of a mixture with weight q.

    With 1 / q for q it is the inverse: the loss of what is mixed, given the mixture's.

    Parameters
    ----------
    loss : ndarray
        Not negative if q is above one.
    q : float
        Positive.
    """
    # log(1 + q (exp(loss) - 1)), and for large losses, with exp(loss) taken out,
    # loss + log(q) + log(1 + (1 / q - 1) exp(-loss))
    near = np.log1p(q * np.expm1(np.minimum(loss, _LARGE)))
    large = np.maximum(loss, _LARGE)
    far = large + np.log1p((1 / q - 1) * np.exp(-large)) + math.log(q)
    return np.where(loss < _LARGE, near, far)
