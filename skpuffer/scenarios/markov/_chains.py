"""Markov chains: laws of single states, and how far the influence of one reaches."""

import math
from fractions import Fraction

import numpy as np
from scipy.sparse.csgraph import connected_components

from skpuffer.distributions._weak_cache import remembered_with

__all__ = [
    "Chains",
    "exact_entries",
    "irreducible_law",
    "marginal_laws",
    "smallest_window",
    "stationary_law",
    "window_delta",
]

_EPS = np.finfo(float).eps
_LARGEST_DENOMINATOR = 10**6


class Chains:
    """Chains and a length, comparable by content."""

    def __init__(self, chains, n):
        self.chains, self.n = chains, n
        self._key = (n, *(part.tobytes() for chain in chains for part in chain))

    def __eq__(self, other):
        return isinstance(other, Chains) and self._key == other._key

    def __hash__(self):
        return hash(self._key)


def stationary_law(transition, kind=float):
    """Stationary law of a chain, without a subtraction.

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
        If there are several stationary laws.

    References
    ----------
    Grassmann, Taksar and Heyman (1985), Regenerative analysis and steady state
    distributions for Markov chains.
    """
    rows = [[kind(p) for p in row] for row in transition]
    k = len(rows)
    reach = np.linalg.matrix_power(
        (np.array(rows, dtype=float) > 0) | np.eye(k, dtype=bool), k
    )
    recurrent = [
        x for x in range(k) if all(reach[y, x] for y in np.flatnonzero(reach[x]))
    ]
    if not all(reach[recurrent[0], x] for x in recurrent):
        raise ValueError("several stationary laws")
    m = len(recurrent)
    p = [[rows[x][y] for y in recurrent] for x in recurrent]
    for last in range(m - 1, 0, -1):
        leave = sum(p[last][:last])
        for x in range(last):
            p[x][last] = p[x][last] / leave
            for y in range(last):
                p[x][y] += p[x][last] * p[last][y]
    weight = [kind(1)]
    for last in range(1, m):
        weight.append(sum(weight[x] * p[x][last] for x in range(last)))
    total = sum(weight)
    law = [kind(0)] * k
    for x, w in zip(recurrent, weight, strict=True):
        law[x] = w / total
    return law


def irreducible_law(transition):
    """Return the stationary law of an irreducible chain, or None of another.

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
    >>> from skpuffer.scenarios.markov._chains import irreducible_law
    >>> irreducible_law(np.array([[0.9, 0.1], [0.2, 0.8]])).round(6)
    array([0.666667, 0.333333])
    """
    n_classes, _ = connected_components(transition > 0, connection="strong")
    return None if n_classes > 1 else np.array(stationary_law(transition))


def marginal_laws(initial, transition, n):
    """Laws of the single states of a chain, of shape (n, n_states)."""
    laws = np.empty((n, len(initial)))
    laws[0] = initial
    for t in range(1, n):
        laws[t] = laws[t - 1] @ transition
    return laws


def window_delta(marginals, transition, width):
    """Chance that two worlds differ outside a window around the secret.

    Given the state at position i the records at i - `width` and before, and those at
    i + `width` and after, are independent. Two worlds that agree at these two ends of
    the window agree outside it.

    Parameters
    ----------
    marginals : ndarray of shape (n, n_states)
        Laws of the single states.
    transition : ndarray of shape (n_states, n_states)
    width : int

    Returns
    -------
    float
        Largest total variation distance of the ends, over positions and pairs of
        states that have a probability there, rounded up; exactly zero for independent
        records.
    """
    n, k = marginals.shape
    if np.array_equal(transition, np.broadcast_to(transition[0], transition.shape)):
        return 0.0
    ahead = np.linalg.matrix_power(transition, width)
    apart = 0.5 * np.abs(ahead[:, None] - ahead[None]).sum(axis=2)
    chance = np.divide(1.0, marginals, out=np.zeros((n, k)), where=marginals > 0)
    worst = 0.0
    for a in range(k):
        for b in range(a):
            both = (marginals[:, a] > 0) & (marginals[:, b] > 0)
            keep = np.ones(n)
            keep[: max(n - width, 0)] -= apart[a, b]
            if width < n:
                before = marginals[: n - width]
                gap = np.abs(
                    before * np.multiply.outer(chance[width:, a], ahead[:, a])
                    - before * np.multiply.outer(chance[width:, b], ahead[:, b])
                )
                keep[width:] *= 1 - 0.5 * gap.sum(axis=1)
            if both.any():
                worst = max(worst, float((1 - keep[both]).max()))
    # differences of sums of positive numbers, each known to so many round-offs
    return min(1.0, worst + 8 * _EPS * (k + 2) * (width + k))


@remembered_with(1)
def smallest_window(life, chains, event_delta):
    """Find the smallest window outside of which two worlds rarely differ.

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
    marginals = [marginal_laws(*chain, chains.n) for chain in chains.chains]

    def delta(width):
        return max(
            window_delta(laws, transition, width)
            for laws, (_, transition) in zip(marginals, chains.chains, strict=True)
        )

    high = 1
    while delta(high) > event_delta:
        high *= 2
        if 2 * high - 1 >= chains.n:
            break
    low = high // 2  # the distance of the ends falls with the width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= event_delta else (middle, high)
    found = delta(high)
    return (high, found) if found <= event_delta else (None, 0.0)


def exact_entries(rows):
    """Read probabilities as fractions with one denominator, or None.

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
