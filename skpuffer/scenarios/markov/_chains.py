"""Markov chains: stationary and marginal distributions, and windows of dependence."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Booleans, Floats

__all__ = [
    "Chains",
    "Marginals",
    "exact_entries",
    "irreducible_stationary",
    "settling_marginals",
    "smallest_window",
    "stationary_distribution",
    "window_delta",
]

_EPS = np.finfo(float).eps
_LARGEST_DENOMINATOR = 10**6

#: Distributions of records that agree with the stationary one to this are taken for it.
#: By the averaging that each step is, they never drift away again.
_SETTLED = 1e-13

#: Distribution of the first record, and transition probabilities.
Chain = tuple[Floats, Floats]


class Chains:
    """Markov chains of one length, comparable by content."""

    def __init__(self, chains: Sequence[Chain], n: int) -> None:
        self.chains, self.n = chains, n
        self._key = (n, *(part.tobytes() for chain in chains for part in chain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chains) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def stationary_distribution(
    transition: Any, kind: Callable[[Any], Any] = float
) -> list[Any]:
    """Stationary distribution of a chain, by elimination without subtractions.

    Parameters
    ----------
    transition : sequence of sequences
        Row-stochastic, with one recurrent class.
    kind : type, default=float
        Number type of the result; `fractions.Fraction` is exact.

    Returns
    -------
    list of kind

    Raises
    ------
    ValueError
        If there are several stationary distributions.

    References
    ----------
    Grassmann, Taksar and Heyman (1985), Regenerative analysis and steady state
    distributions for Markov chains.
    """
    rows = [[kind(p) for p in row] for row in transition]
    k = len(rows)
    # Where k steps may lead, in logic. Recurrent are the states that can be returned to
    # from wherever they lead.
    reachable = np.linalg.matrix_power(
        (np.array(rows, dtype=float) > 0) | np.eye(k, dtype=bool), k
    )
    recurrent = [
        x
        for x in range(k)
        if all(reachable[y, x] for y in np.flatnonzero(reachable[x]))
    ]
    if not all(reachable[recurrent[0], x] for x in recurrent):
        raise ValueError(Statement("markov.stationary_not_unique"))
    m = len(recurrent)
    p = [[rows[x][y] for y in recurrent] for x in recurrent]
    for last in range(m - 1, 0, -1):
        # Censor the chain to the states before `last`: a visit there is replaced by
        # where it leads. 1 - p[last][last] is summed from the other entries, so that
        # nothing is subtracted and every mass keeps its relative accuracy.
        leave = sum(p[last][:last])
        for x in range(last):
            p[x][last] = p[x][last] / leave
            for y in range(last):
                p[x][y] += p[x][last] * p[last][y]
    # and back: a state's mass is what flows into it over what leaves it, in the chain
    # censored to the states up to it
    weight = [kind(1)]
    for last in range(1, m):
        weight.append(sum(weight[x] * p[x][last] for x in range(last)))
    total = sum(weight)
    masses = [kind(0)] * k
    for x, w in zip(recurrent, weight, strict=True):
        masses[x] = w / total
    return masses


def irreducible_stationary(transition: Floats) -> Floats | None:
    """Stationary distribution of an irreducible chain, or None for any other.

    Parameters
    ----------
    transition : ndarray of shape (n_states, n_states)
        Row-stochastic.

    Returns
    -------
    ndarray of shape (n_states,) or None
        Each mass to full relative accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.scenarios.markov._chains import irreducible_stationary
    >>> irreducible_stationary(np.array([[0.9, 0.1], [0.2, 0.8]])).round(6)
    array([0.666667, 0.333333])
    """
    n_classes, _ = connected_components(transition > 0, connection="strong")
    return None if n_classes > 1 else np.array(stationary_distribution(transition))


class Marginals(NamedTuple):
    """Distributions of the single states of a chain, until they settle.

    Parameters
    ----------
    masses : ndarray of shape (m, n_states)
        Of the first records, m at most as many as there are; the last one's stands for
        all that follow.
    possible : bool ndarray of shape (m, n_states)
        Where they have mass, however little: masses underflow, this does not.
    drift : float
        Relative error, beyond rounding, of a ratio of masses that have settled.
    """

    masses: Floats
    possible: Booleans
    drift: float

    def at(self, index: Any) -> tuple[Floats, Booleans]:
        """Return the masses of a record, or of several, and where they have any."""
        index = np.minimum(index, len(self.masses) - 1)
        return self.masses[index], self.possible[index]


def settling_marginals(initial: Floats, transition: Floats, n: int) -> Marginals:
    """Distributions of the single states of a chain of `n` records, until they settle.

    Parameters
    ----------
    initial : ndarray of shape (n_states,)
    transition : ndarray of shape (n_states, n_states)
    n : int

    Returns
    -------
    Marginals
    """
    # q, qP, qP², ... until they agree with the stationary distribution, which stands
    # for all that follow; supports in logic
    q, on, arrows = initial, initial > 0, transition > 0
    settled = irreducible_stationary(transition)
    masses, possible = [], []
    for _ in range(n):
        done = settled is not None and on.all()
        if done and np.all(np.abs(q - settled) <= _SETTLED * settled):
            masses.append(settled)
            possible.append(on)
            return Marginals(np.array(masses), np.array(possible), 2 * _SETTLED)
        # a step that changes nothing, not even by rounding, never does
        last = (masses[-1], possible[-1]) if masses else (None, None)
        if np.array_equal(q, last[0]) and np.array_equal(on, last[1]):
            break
        masses.append(q)
        possible.append(on)
        q, on = q @ transition, on @ arrows
    return Marginals(np.array(masses), np.array(possible), 0.0)


def window_delta(marginals: Marginals, transition: Floats, n: int, width: int) -> float:
    """Probability that coupled chains differ outside a window around the secret.

    Given the state at position i the records at i - `width` and before, and those at
    i + `width` and after, are independent. Two chains coupled to agree at these two
    ends of the window agree outside it; a maximal coupling of the ends differs with a
    probability of their total variation distance.

    Parameters
    ----------
    marginals : Marginals
        Distributions of the single states.
    transition : ndarray of shape (n_states, n_states)
    n : int
    width : int

    Returns
    -------
    float
        Largest total variation distance of the ends, over positions and pairs of
        states that have a probability there, rounded up; exactly zero for independent
        records.
    """
    k = len(transition)
    # equal rows: the next record does not depend on this one
    if np.array_equal(transition, np.broadcast_to(transition[0], transition.shape)):
        return 0.0
    ahead = np.linalg.matrix_power(transition, width)
    # total variation between the states ahead, given each two states now
    apart = 0.5 * np.abs(ahead[:, None] - ahead[None]).sum(axis=2)
    # One record of each kind: those before the marginals have settled, also at the
    # earlier end of the window, then any one, and those without a later end.
    index = np.append(np.arange(min(n, len(marginals.masses) + width)), n - 1)
    now, before = (marginals.at(at)[0] for at in (index, np.maximum(index - width, 0)))
    has_end, has_start = index + width < n, index >= width
    # one over the probability of each state at each time, for Bayes' rule below
    chance = np.divide(1.0, now, out=np.zeros_like(now), where=now > 0)
    # A maximal coupling agrees at one end with one less the total variation; given the
    # secret the two ends are independent, so both agree with the product of these.
    worst = 0.0
    for a in range(k):
        for b in range(a):
            both = (now[:, a] > 0) & (now[:, b] > 0)
            # probability that both ends agree; an end outside the table always does
            keep = np.where(has_end, 1 - apart[a, b], 1.0)
            # the chain in reversed time, by Bayes' rule
            gap = np.abs(
                before * np.multiply.outer(chance[:, a], ahead[:, a])
                - before * np.multiply.outer(chance[:, b], ahead[:, b])
            )
            keep *= np.where(has_start, 1 - 0.5 * gap.sum(axis=1), 1.0)
            if both.any():
                worst = max(worst, float((1 - keep[both]).max()))
    # differences of sums of positive numbers, each known to so many round-offs
    rounded = 8 * _EPS * (k + 2) * (width + k)
    return min(1.0, worst + rounded + 2 * marginals.drift)


@remembered_with(1)
def smallest_window(
    life: object, chains: Chains, event_delta: float
) -> tuple[int | None, float]:
    """Smallest window outside of which coupled chains differ with a small probability.

    Parameters
    ----------
    life : object
        What keeps the result; see `life_of`.
    chains : Chains
    event_delta : float
        Mass that may be left out.

    Returns
    -------
    width : int or None
        None if no window is shorter than the series.
    delta : float
        What is left out, as by :func:`window_delta`.
    """
    marginals = [settling_marginals(*chain, chains.n) for chain in chains.chains]

    def delta(width):
        return max(
            window_delta(marginal, transition, chains.n, width)
            for marginal, (_, transition) in zip(marginals, chains.chains, strict=True)
        )

    # double until it fits, then halve the interval in which the smallest lies
    high = 1
    while delta(high) > event_delta:
        high *= 2
        # as long as the series: no window is shorter
        if 2 * high - 1 >= chains.n:
            break
    low = high // 2  # the distance of the ends falls with the width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= event_delta else (middle, high)
    found = delta(high)
    return (high, found) if found <= event_delta else (None, 0.0)


def exact_entries(rows: Floats) -> tuple[list[list[int]], int] | None:
    """Probabilities as fractions with one denominator, or None.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n)
        Each row sums to one up to round-off.

    Returns
    -------
    (list of list of int, int) or None
        Numerators, and the denominator that all share. None if some row is not the
        round-off of fractions with a denominator of at most 10**6 that sum to one.
    """
    fractions = [
        [Fraction(p).limit_denominator(_LARGEST_DENOMINATOR) for p in row]
        for row in rows.tolist()
    ]
    for row, read in zip(rows.tolist(), fractions, strict=True):
        # fractions that were meant sum to one, and round to the floats given
        if sum(read) != 1:
            return None
        if any(
            abs(p - float(f)) > 4 * _EPS * p for p, f in zip(row, read, strict=True)
        ):
            return None
    common = math.lcm(*(f.denominator for row in fractions for f in row))
    if common > _LARGEST_DENOMINATOR:
        return None
    return [[int(f * common) for f in row] for row in fractions], common
