"""In how many records two coupled Markov chains differ until they meet, and where."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.utils._types import Floats

from ._chains import Chains, settling_marginals

__all__ = ["Meeting", "meeting"]

# Numbers in the transitions of pairs of states that are worth the time.
_MOST_NUMBERS = 200_000

#: Above what rounding may take off a probability here.
_ROUNDED = 1e-14


class Meeting(NamedTuple):
    """Bounds of how likely coupled chains differ, each of shape (n,).

    Parameters
    ----------
    count : ndarray
        In more than 0, 1, ... records.
    distance : ndarray
        In any record that is 0, 1, ... or more steps from the secret.
    """

    count: Floats
    distance: Floats


@remembered_with(1)
def meeting(life: object, chains: Chains) -> Meeting | None:
    """Bound in how many records coupled chains differ, and how far from the secret.

    The chains differ at one time. On either side of it they are coupled step by step,
    the next states being the same with the largest probability there is, until they
    meet; from then on they are one. Given the state at that time the two sides are
    independent.

    Parameters
    ----------
    life : object
        What keeps the result; see `life_of`.
    chains : Chains

    Returns
    -------
    Meeting or None
        The largest over chains, times and pairs of states. None where it would take too
        long.
    """
    found = [_of_chain(*chain, chains.n) for chain in chains.chains]
    if any(one is None for one in found):
        return None
    return Meeting(*np.max(found, axis=0))


def _of_chain(initial: Floats, transition: Floats, n: int) -> Meeting | None:
    known = settling_marginals(initial, transition, n)
    # once they have settled all steps are alike backwards
    marginals = np.concatenate([known.masses, known.masses[-1:]])[:n]
    if np.allclose(marginals, initial, rtol=1e-12, atol=0):
        marginals = marginals[:2]  # they had from the start
    # by Bayes' rule, the chain in reversed time; no row for a state without mass
    backwards = [
        np.divide(
            (before[:, None] * transition).T,
            now[:, None],
            out=np.zeros_like(transition),
            where=now[:, None] > 0,
        )
        for before, now in zip(marginals, marginals[1:], strict=False)
    ]
    if len(backwards) * len(initial) ** 4 > _MOST_NUMBERS:
        return None
    left = _survival(backwards, n, known.drift)
    right = _survival([transition], n)
    # further on both are level
    m = min(n, len(left) + len(right))
    left, right = (np.pad(one, (0, m - len(one)), "edge") for one in (left, right))
    # more than k differ, with the secret's own, if k or more do on both sides together:
    # l on the left and k - l or more on the right, or more than k on the left
    beyond = np.append(left[1:], left[-1])
    both = np.maximum(scipy.signal.fftconvolve(left[:-1] - left[1:], right)[:m], 0.0)
    count = np.minimum(1.0, both + beyond + _ROUNDED)
    distance = np.minimum(1.0, left + right - left * right + _ROUNDED)
    return Meeting(*(np.pad(one, (0, n - m), "edge") for one in (count, distance)))


def _survival(steps: Sequence[Floats], n: int, drift: float = 0.0) -> Floats:
    """Bound how likely chains have not met after 0, 1, ... steps, at worst.

    The steps are known to a relative error of `drift`, beyond rounding.
    """
    pairs = np.array([_apart(step) for step in steps])
    k = len(steps[0])
    states, found = 1.0 - np.eye(k), [1.0]
    # the worst step each time: exact where all of them are alike
    while len(found) < n and found[-1] > _ROUNDED:
        states = np.einsum("sabcd,cd->sab", pairs, states).max(axis=0)
        # what two states have beyond each other, and its total, drift by so much
        rounded = _ROUNDED + 10 * drift * found[-1]
        found.append(min(found[-1], float(states.max()) * (1 + 1e-9) + rounded))
    return np.array(found)


def _apart(step: Floats) -> Floats:
    """Probabilities to go from two states to two that differ, coupled to be the same.

    What either has beyond the other's probability is drawn independently.
    """
    first, second = step[:, None, :], step[None, :, :]
    same = np.minimum(first, second)
    one, other = first - same, second - same
    total = other.sum(axis=2)
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return one[..., :, None] * other[..., None, :] * scale[..., None, None]
