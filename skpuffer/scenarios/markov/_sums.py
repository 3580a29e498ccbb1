"""Distributions of sums along a Markov chain, by positive dynamic programming.

Nothing here subtracts or transforms: an FFT would bury the tails, which set W_inf, in
its noise.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skpuffer.kernel.numbers import Floats, Indices, Integers

__all__ = [
    "TINY",
    "exact_sum_distributions",
    "float_sum_distributions",
    "mix",
    "prefix_complete",
    "prefix_tables",
    "suffix_complete",
    "suffix_tables",
    "window_sum_distributions",
]

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

    A polynomial with non-negative integer coefficients is one large integer here, a
    fixed number of bytes to each coefficient, so a convolution is one multiplication.

    Parameters
    ----------
    initial : list of int
        Numerators of the distribution of the first state.
    transition : (list of list of int, int)
        Numerators and denominator of the transition probabilities.
    weights : ndarray of int of shape (n_states,)
        Non-negative.
    n : int
        Length of the chain.
    positions : iterable of int
        Where the state is given, from zero.

    Returns
    -------
    dict of {int: list of (ndarray of int, ndarray of object) or None}
        For each position and state the atoms of the sum and their masses, integers
        that are exact up to their sum; None where the state has no probability.
    """
    rows, denominator = transition
    k, weights = len(rows), [int(w) for w in weights]
    # Kronecker substitution: no coefficient exceeds the total mass, so none overflows
    bits = (sum(initial) * denominator ** (n - 1)).bit_length() + 1
    width = -(-bits // 8)  # bytes
    # times x^w, the polynomial of a record that adds w: a shift by w coefficients
    shift = [8 * width * w for w in weights]
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
    distributions = {}
    for i in positions:
        distributions[i] = []
        for x in range(k):
            # given the state the records before and after it are independent
            packed = forward[i][x] * backward[n - 1 - i][x]
            distributions[i].append(_unpack(packed, width) if packed else None)
    return distributions


def _unpack(packed, width):
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
    """Joint distributions of the sum of the first records and the last state.

    Parameters
    ----------
    initial : ndarray of shape (n_states,)
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of int of shape (n_states,)
    n : int

    Returns
    -------
    list of ndarray of shape (n_states, n_sums)
        Item `t` holds P(X_t = x, sum of the weights up to `t`), with `t` from zero.
    """
    # P(X_t = y, S_t = s) = sum over x of P(X_(t-1) = x, S_(t-1) = s - w_y) P(x, y)
    table = _shifted(np.asarray(initial)[:, None], weights)
    tables = [table]
    for _ in range(n - 1):
        tables.append(_shifted(transition.T @ tables[-1], weights))
    return tables


def suffix_tables(transition: Floats, weights: Indices, n: int) -> list[Floats]:
    """Distributions of the sum of the next records given the state before them.

    Parameters
    ----------
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of shape (n_states,)
    n : int
        As for :func:`prefix_tables`.

    Returns
    -------
    list of ndarray of shape (n_states, n_sums)
        Item `m`, below `n`, holds the distribution of the sum of the next `m` weights.
    """
    # from the last record backwards: the next state and its weight, then the rest
    tables = [np.ones((len(weights), 1))]
    for _ in range(n - 1):
        tables.append(transition @ _shifted(tables[-1], weights))
    return tables


def _shifted(table, weights):
    """Table with every state's own weight added to its sums."""
    grown = np.zeros((len(weights), table.shape[1] + int(weights.max())))
    for row, shifted, weight in zip(table, grown, weights, strict=True):
        shifted[weight : weight + len(row)] = row
    return grown


def mix(
    left: Floats, right: Floats, complete: bool = True
) -> tuple[Atoms | None, float]:
    """Convolution: the distribution of a sum of two independent parts.

    Parameters
    ----------
    left, right : ndarray
        Masses of the sums 0, 1, 2, ..., up to a factor.
    complete : bool, default=True
        Whether every sum that can occur has a mass here.

    Returns
    -------
    distribution : (ndarray of int, ndarray) or None
        Atoms and masses above zero; None if there are none.
    lost : float
        Bound on the mass of atoms too light to be computed; 0.0 if there are none.
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

    Parameters
    ----------
    initial : ndarray of shape (n_states,)
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of int of shape (n_states,)
    n : int
    positions : iterable of int

    Returns
    -------
    distributions : dict of {int: list of (ndarray, ndarray) or None}
        As for :func:`exact_sum_distributions`, but floats of relative error
        :func:`mass_error`.
    lost : float
        Bound on the mass of atoms too light to be computed, in any distribution.
    """
    forward = prefix_tables(initial, transition, weights, n)
    backward = suffix_tables(transition, weights, n)
    complete = prefix_complete(forward, initial, transition, weights)
    complete = complete and suffix_complete(backward, transition, weights)
    distributions, lost = {}, 0.0
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


def _union(sets):
    """Union of sets of sums, each held as the bits of an integer."""
    total = 0
    for bits in sets:
        total |= bits
    return total


def _covers(table, support):
    masses = np.count_nonzero(table >= TINY, axis=1)
    return all(
        n == bits.bit_count() for n, bits in zip(masses.tolist(), support, strict=True)
    )


def window_sum_distributions(
    initial: Floats, transition: Floats, weights: Indices, n: int, width: int
) -> tuple[ByPlace, float]:
    """Distributions of the sum inside a window, by its ends and the given state.

    Parameters
    ----------
    initial : ndarray of shape (n_states,)
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of int of shape (n_states,)
    n : int
    width : int
        As for :func:`window_delta`.

    Returns
    -------
    distributions : dict of {tuple: list of (ndarray, ndarray) or None}
        By state, for every position of the window and every pair of states at its
        ends. An end that lies outside the table is None, and a window that lies inside
        is the same wherever it lies. A state at an end counts as a part of the window:
        it is the same in both tables of a pair.
    lost : float
        As for :func:`float_sum_distributions`.
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
    ends, distributions, lost = range(k), {}, 0.0
    inside = [("inside", u, v) for u in ends for v in ends] if n > 2 * width else []
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
