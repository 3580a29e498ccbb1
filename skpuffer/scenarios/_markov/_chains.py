"""Markov chains: stationary and marginal distributions, and windows of dependence."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Booleans, Floats, Indices, Integers

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
    """Stationary distribution of a row-stochastic chain with one recurrent class.

    By elimination without subtractions (Grassmann, Taksar and Heyman, 1985). The number
    type is `kind`; `fractions.Fraction` is exact.
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
        raise value_error("markov.stationary_not_unique")
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
    """Stationary distribution of an irreducible chain, or None for any other."""
    n_classes, _ = connected_components(transition > 0, connection="strong")
    return None if n_classes > 1 else np.array(stationary_distribution(transition))


class Marginals(NamedTuple):
    """Distributions of the single states of a chain, until they settle.

    Parameters
    ----------
    masses : ndarray of shape (m, n_states)
        Masses of the first records, m at most as many as there are; the last one's
        stands for all that follow.
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
    """Distributions of the states of a chain of `n` records, until they settle."""
    # q, qP, qP², ... until they agree with the stationary distribution, which stands
    # for all that follow; supports in logic
    q, on, arrows = initial, initial > 0, transition > 0
    settled = irreducible_stationary(transition)
    masses: list[Floats] = []
    possible: list[Booleans] = []
    for _ in range(n):
        if (
            settled is not None
            and on.all()
            and np.all(np.abs(q - settled) <= _SETTLED * settled)
        ):
            masses.append(settled)
            possible.append(on)
            return Marginals(np.array(masses), np.array(possible), 2 * _SETTLED)
        # a step that changes nothing, not even by rounding, never does
        same = masses and np.array_equal(q, masses[-1])
        if same and np.array_equal(on, possible[-1]):
            break
        masses.append(q)
        possible.append(on)
        q, on = q @ transition, on @ arrows
    return Marginals(np.array(masses), np.array(possible), 0.0)


def window_delta(marginals: Marginals, transition: Floats, n: int, width: int) -> float:
    """Probability that coupled chains differ outside a window around the secret.

    Given the state at position i the records at i - `width` and before, and those at
    i + `width` and after, are independent. A maximal coupling of these two ends differs
    with probability of their total variation distance. Returns the largest over
    positions and pairs of states, rounded up; exactly zero for independent records.
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

    Returns the width, None if no window is shorter than the series, and the probability
    left out by :func:`window_delta`, at most `event_delta`.
    """
    marginals = [settling_marginals(*chain, chains.n) for chain in chains.chains]

    def delta(width: int) -> float:
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
    """Probabilities as fractions with one denominator, or None."""
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


# -- distributions of sums along a Markov chain, by positive dynamic programming -------
# Nothing here subtracts or transforms: an FFT would bury the tails, which set W_inf, in
# its noise.


#: Masses below are dropped or refused: products of smaller ones lose their last digits.
TINY = 1e-290

#: Atoms of a distribution and their masses.
Atoms = tuple[Indices, Integers]

#: Distributions by the place of the secret and by its state.
ByPlace = dict[Any, list[Atoms | None]]


def exact_sum_distributions(
    initial: list[int],
    transition: tuple[list[list[int]], int],
    weights: Indices,
    n: int,
    positions: Iterable[int],
) -> ByPlace:
    """Distributions of a sum along a chain given one state, in exact integers.

    A polynomial with non-negative integer coefficients is one large integer here, so a
    convolution is one multiplication.

    Parameters
    ----------
    initial : list of int
        Numerators of the distribution of the first state.
    transition : (list of list of int, int)
        Numerators and denominator of the transition probabilities.
    weights : ndarray of int of shape (n_states,)
        Non-negative.
    positions : iterable of int
        Where the state is given, from zero.

    Returns
    -------
    dict of {int: list of (ndarray of int, ndarray of object) or None}
        By position and state the atoms of the sum and their masses, exact up to their
        sum; None where the state has no probability.
    """
    rows, denominator = transition
    k, added = len(rows), [int(w) for w in weights]
    # Kronecker substitution: no coefficient exceeds the total mass, so none overflows
    bits = (sum(initial) * denominator ** (n - 1)).bit_length() + 1
    width = -(-bits // 8)  # bytes
    # times x^w, the polynomial of a record that adds w: a shift by w coefficients
    shift = [8 * width * w for w in added]
    # forward[t][x]: records up to t, the last in state x; backward[m][x]: the next m
    # records after state x
    forward = [[initial[x] << shift[x] for x in range(k)]]
    backward = [[1] * k]
    for _ in range(n - 1):
        last = forward[-1]
        forward.append(
            [sum(last[x] * rows[x][y] for x in range(k)) << shift[y] for y in range(k)]
        )
        last = [b << s for b, s in zip(backward[-1], shift, strict=True)]
        backward.append([sum(rows[x][y] * last[y] for y in range(k)) for x in range(k)])
    distributions: dict[int, list[Any]] = {}
    for i in positions:
        distributions[i] = []
        for x in range(k):
            # given the state the records before and after it are independent
            packed = forward[i][x] * backward[n - 1 - i][x]
            distributions[i].append(_unpack(packed, width) if packed else None)
    return distributions


def _unpack(packed: int, width: int) -> tuple[Indices, NDArray[np.object_]]:
    """Atoms and masses of a polynomial that was packed into one integer."""
    # coefficient j is bytes j * width and on, the lowest first
    size = -(-packed.bit_length() // (8 * width))
    data = packed.to_bytes(size * width, "little")
    counts = [
        int.from_bytes(data[j : j + width], "little")
        for j in range(0, size * width, width)
    ]
    steps = np.array([j for j, count in enumerate(counts) if count])
    masses = np.empty(len(steps), dtype=object)
    masses[:] = [count for count in counts if count]
    return steps, masses


def prefix_tables(
    initial: Floats, transition: Floats, weights: Indices, n: int
) -> list[Floats]:
    """List, by t from zero, of P(X_t = x, sum of the weights up to t).

    Each item is an array of shape (n_states, n_sums).
    """
    # P(X_t = y, S_t = s) = sum over x of P(X_(t-1) = x, S_(t-1) = s - w_y) P(x, y)
    table = _shifted(np.asarray(initial)[:, None], weights)
    tables = [table]
    for _ in range(n - 1):
        tables.append(_shifted(transition.T @ tables[-1], weights))
    return tables


def suffix_tables(transition: Floats, weights: Indices, n: int) -> list[Floats]:
    """List, by m below `n`, of sums of the next m weights given the state before.

    Each item is an array of shape (n_states, n_sums).
    """
    # from the last record backwards: the next state and its weight, then the rest
    tables = [np.ones((len(weights), 1))]
    for _ in range(n - 1):
        tables.append(transition @ _shifted(tables[-1], weights))
    return tables


def _shifted(table: Floats, weights: Indices) -> Floats:
    """Table with every state's own weight added to its sums."""
    grown = np.zeros((len(weights), table.shape[1] + int(weights.max())))
    for row, shifted, weight in zip(table, grown, weights, strict=True):
        shifted[weight : weight + len(row)] = row
    return grown


def mix(
    left: Floats, right: Floats, complete: bool = True
) -> tuple[Atoms | None, float]:
    """Convolve masses of sums 0, 1, 2, ... of two independent parts, up to a factor.

    Returns (atoms, masses above zero), or None if there are none, and a bound on the
    mass of atoms too light to be computed; 0.0 if `complete`, as every sum then has a
    mass.
    """
    # by definition and not by FFT, whose error is absolute and would bury the tails
    masses = np.convolve(left, right)
    total = masses.sum()
    if not total > 0:
        return None, 0.0
    # Atoms below TINY are dropped, and counted as lost: each holds less than TINY.
    # Where the tables are complete and no product underflows, nothing can be missing.
    kept = np.flatnonzero(masses >= TINY)
    lost = 0.0 if complete else len(masses) * TINY / total
    if complete and left[left > 0].min() * right[right > 0].min() < TINY:
        # some product may be too small: compare with the number of possible sums
        support = np.convolve((left > 0).astype(float), (right > 0).astype(float))
        if np.count_nonzero(support > 0.5) > len(kept):
            lost = len(masses) * TINY / total
    # all atoms are too light: the distribution is not known at all
    if not len(kept):
        return None, np.inf
    masses = masses[kept]
    return (kept, masses / masses.sum()), float(lost)


def float_sum_distributions(
    initial: Floats,
    transition: Floats,
    weights: Indices,
    n: int,
    positions: Iterable[int],
) -> tuple[ByPlace, float]:
    """Distributions of a sum along a chain given one state, in floats.

    As :func:`exact_sum_distributions`, with relative error :func:`mass_error`, and a
    bound on the mass of atoms too light to be computed, in any distribution.
    """
    forward = prefix_tables(initial, transition, weights, n)
    backward = suffix_tables(transition, weights, n)
    complete = prefix_complete(forward, initial, transition, weights)
    complete = complete and suffix_complete(backward, transition, weights)
    distributions: dict[int, list[Any]] = {}
    lost = 0.0
    for i in positions:
        distributions[i] = []
        for left, right in zip(forward[i], backward[n - 1 - i], strict=True):
            distribution, missing = mix(left, right, complete)
            distributions[i].append(distribution)
            lost = max(lost, missing)
    return distributions, lost


def prefix_complete(
    tables: list[Floats], initial: Floats, transition: Floats, weights: Indices
) -> bool:
    """Whether every possible sum has a mass in tables of prefixes."""
    # supports as bits of integers, by the same recursion: bit s is set where sum s can
    # occur, and adding a weight is a shift
    sources = [np.flatnonzero(column).tolist() for column in transition.T]
    support = [int(q > 0) << int(w) for q, w in zip(initial, weights, strict=True)]
    for table in tables:
        if not _covers(table, support):
            return False
        support = [
            _union(support[x] for x in sources[y]) << int(w)
            for y, w in enumerate(weights)
        ]
    return True


def suffix_complete(tables: list[Floats], transition: Floats, weights: Indices) -> bool:
    """Whether every possible sum has a mass in tables of suffixes."""
    targets = [np.flatnonzero(row).tolist() for row in transition]
    support = [1] * len(weights)
    for table in tables:
        if not _covers(table, support):
            return False
        shifted = [s << int(w) for s, w in zip(support, weights, strict=True)]
        support = [_union(shifted[y] for y in ys) for ys in targets]
    return True


def _union(sets: Iterator[Any]) -> int:
    """Union of sets of sums, each held as the bits of an integer."""
    total = 0
    for bits in sets:
        total |= bits
    return total


def _covers(table: Floats, support: list[int]) -> bool:
    masses = np.count_nonzero(table >= TINY, axis=1)
    return all(
        n == bits.bit_count() for n, bits in zip(masses.tolist(), support, strict=True)
    )


def window_sum_distributions(
    initial: Floats, transition: Floats, weights: Indices, n: int, width: int
) -> tuple[ByPlace, float]:
    """Distributions of the sum inside a window, by its ends and the given state.

    A dict by (left, right) ends with a list by state, and the mass lost as in
    :func:`float_sum_distributions`. An end outside the table is None. States at the
    ends are a part of the window; a window that lies inside is the same wherever it
    lies.
    """
    k = len(weights)
    # bridges[u][a]: sums over the `width` records after state u, the last of which is
    # the secret in state a; and the same from a to an end v
    bridges, complete = [], True
    for row in transition:
        tables = prefix_tables(row, transition, weights, width)
        complete &= prefix_complete(tables, row, transition, weights)
        bridges.append(tables[-1])
    # windows that reach over the first or the last record start or stop with the table
    edge = min(width, n)
    starts = prefix_tables(initial, transition, weights, edge)
    complete = complete and prefix_complete(starts, initial, transition, weights)
    stops = suffix_tables(transition, weights, edge)
    complete = complete and suffix_complete(stops, transition, weights)
    distributions: dict[Any, list[Any]] = {}
    ends, lost = range(k), 0.0
    inside: list[tuple[Any, Any, Any]] = []
    if n > 2 * width:
        inside = [("inside", u, v) for u in ends for v in ends]
    for where in inside + [
        (i, u, v)
        for i in (*range(edge), *range(max(edge, n - width), n))
        for u in (ends if i >= width else (None,))
        for v in (ends if i + width < n else (None,))
    ]:
        i, u, v = where
        distributions[where] = []
        for a in ends:
            # given the secret the two sides of a window are independent
            left = starts[i][a] if u is None else bridges[u][a]
            right = stops[n - 1 - i][a] if v is None else bridges[a][v]
            distribution, missing = None, 0.0
            if left.any() and right.any():
                distribution, missing = mix(left, right, complete)
            distributions[where].append(distribution)
            lost = max(lost, missing)
    return distributions, lost
