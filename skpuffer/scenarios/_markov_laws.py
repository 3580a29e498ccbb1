"""Laws of sums along a Markov chain, by dynamic programming in positive arithmetic.

W_inf is a maximum over a support, set by the far tails, so a law is either kept in
exact integers or in floats whose relative error is bounded mass by mass; nothing here
subtracts or transforms (an FFT would bury the tails in its noise).
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from ._laws import Discrete, _distance

__all__ = [
    "SumLaw",
    "exact_entries",
    "exact_sum_laws",
    "float_sum_laws",
    "lattice_distance",
    "lattice_of",
    "law_error",
    "marginal_laws",
    "mix",
    "prefix_complete",
    "prefix_tables",
    "stationary_law",
    "suffix_complete",
    "suffix_tables",
    "window_delta",
    "window_sum_laws",
]

#: Masses below are dropped or refused: products of smaller ones lose their last digits.
TINY = 1e-290
_EPS = np.finfo(float).eps
_LARGEST_DENOMINATOR = 10**6
# Cumulative mass to which atoms are kept: the median with room for errors.
_PAST_MEDIAN = 0.5 * (1 + 1e-6)


class SumLaw(Discrete):
    """A law on an arithmetic progression of points, its masses known to an error.

    Parameters
    ----------
    steps : ndarray of int of shape (n_atoms,)
        Increasing multiples of `direction`.
    masses : ndarray of shape (n_atoms,)
        Masses above zero: floats that sum to one, or Python integers (dtype object),
        which are exact up to their sum.
    origin, direction : ndarray of shape (dim,)
        Atom `j` lies at ``origin + steps[j] * direction``.
    error : float, default=0.0
        Bound on the relative error of float masses.
    """

    def __init__(self, steps, masses, origin, direction, error=0.0):
        weights = masses
        if masses.dtype == object:
            total = sum(masses)
            weights = np.empty(len(masses), dtype=object)
            weights[:] = [Fraction(mass, total) for mass in masses]
        super().__init__(origin + np.multiply.outer(steps, direction), weights)
        for name, value in (
            ("steps", steps),
            ("known", masses),
            ("origin", origin),
            ("direction", direction),
            ("error", error),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def halves(self):
        """What comparisons of float masses read; see :func:`_halves`."""
        return _halves(self.steps, self.known)


@_distance.register
def _(u: SumLaw, v, norm, units, ceiling):
    alike = (
        isinstance(v, SumLaw)
        and np.array_equal(u.direction, v.direction)
        and np.array_equal(u.origin, v.origin)
    )
    if not alike:
        return _distance.dispatch(Discrete)(u, v, norm, units, ceiling)
    if u.known.dtype == object or v.known.dtype == object:
        gap = lattice_distance(u.steps, u.known, v.steps, v.known)
    else:
        gap = _farthest(u.halves, v.halves, max(u.error, v.error))
    return gap * float(np.linalg.norm(u.direction / units, ord=norm))


def lattice_distance(u_steps, u_masses, v_steps, v_masses, error=0.0):
    """W_inf between two laws on the integers whose masses are known to an error.

    Parameters
    ----------
    u_steps, v_steps : ndarray of int
        Increasing atoms.
    u_masses, v_masses : ndarray
        Masses above zero: floats that sum to one, or Python integers (dtype object),
        which are exact up to their sum.
    error : float, default=0.0
        Bound on the relative error of float masses.

    Returns
    -------
    int
        The distance for integers. For floats no less than that of any two laws within
        the error, and equal to it unless cumulative masses agree to within the error.

    Notes
    -----
    Float quantiles are compared from the lower end up to the median and from the upper
    end down to it, so that the cumulative masses compared are sums of small numbers
    and keep their relative error.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.scenarios._markov_laws import lattice_distance
    >>> steps = np.arange(3)
    >>> lattice_distance(
    ...     steps, np.array([0.2, 0.5, 0.3]), steps, np.array([0.5, 0.3, 0.2])
    ... )
    1
    """
    if u_masses.dtype == object or v_masses.dtype == object:
        u, v = np.cumsum(u_masses), np.cumsum(v_masses)
        u, v = u * v[-1], v * u[-1]
        return max(
            int(np.max(u_steps[np.searchsorted(u, v)] - v_steps)),
            int(np.max(v_steps[np.searchsorted(v, u)] - u_steps)),
        )
    return _farthest(_halves(u_steps, u_masses), _halves(v_steps, v_masses), error)


def _halves(steps, masses):
    """Atoms and cumulative masses from either end to a little past the median."""

    def half(atoms, levels):
        last = int(np.searchsorted(levels, _PAST_MEDIAN)) + 1
        return atoms[:last], levels[:last]

    return (
        half(steps, np.cumsum(masses)),
        half(-steps[::-1], np.cumsum(masses[::-1])),
        len(steps),
    )


def _farthest(u, v, error):
    """W_inf of two laws given by their halves, or a little more."""
    rounding = 4 * _EPS * (u[2] + v[2])
    margin = (1 + error) / (1 - error) * (1 + rounding)
    if margin >= 2 * _PAST_MEDIAN:
        raise ValueError("The error of the masses is too large to compare them.")
    return max(
        _excess(*u[0], *v[0], margin),
        _excess(*v[0], *u[0], margin),
        _excess(*u[1], *v[1], margin),
        _excess(*v[1], *u[1], margin),
    )


def _excess(u_steps, u_levels, v_steps, v_levels, margin):
    """Largest lead of a quantile of `u` over that of `v`, up to the median."""
    at = np.searchsorted(u_levels, np.minimum(v_levels, 0.5) * margin)
    return int((u_steps[at] - v_steps).max())


def law_error(n_steps, n_states, n_atoms):
    """Bound on the relative error of masses made by `n_steps` of the recursion.

    Every operation adds or multiplies positive numbers, so relative errors add up: at
    each step one product and a sum over states, in the end a sum over the atoms, and
    the round-off of the transition probabilities themselves. Doubled.
    """
    operations = n_steps * (n_states + 3) + 2 * n_atoms + n_states**2 + 16
    return 2 * operations * _EPS


def lattice_of(values):
    """Read the states' contributions as whole multiples of one vector.

    Parameters
    ----------
    values : ndarray of shape (n_states, dim)

    Returns
    -------
    tuple of (ndarray of shape (dim,), ndarray of shape (dim,), ndarray of int) or None
        Origin, direction and multiples from zero up, such that a contribution is
        ``origin + multiple * direction``; None if there is no such lattice with at
        most 1000 multiples.
    """
    k = len(values)
    origin, far = values[0], values[np.argmax(np.abs(values - values[0]).sum(axis=1))]
    span = far - origin
    size = float(span @ span)
    if size == 0:
        return origin, span, np.zeros(k, dtype=int)
    shares = (values - origin) @ span / size
    off = np.abs(values - origin - np.multiply.outer(shares, span)).max()
    scale = np.abs(values).max()
    if off > 1e-12 * scale:
        return None
    exact = [Fraction(share).limit_denominator(1000) for share in shares.tolist()]
    parts = math.lcm(*(share.denominator for share in exact))
    if parts > 1000 or np.any(np.abs(shares - np.array(exact, float)) > 1e-12):
        return None
    weights = np.array([int(share * parts) for share in exact])
    direction = span / parts
    least = int(weights.min())
    weights = weights - least
    origin = origin + least * direction
    common = int(np.gcd.reduce(weights))
    return origin, direction * common, weights // common


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


def exact_sum_laws(initial, transition, weights, n, positions):
    """Laws of the sum of weights along a chain given one state, in exact integers.

    A polynomial with non-negative integer coefficients is one large integer here, a
    fixed number of bytes to each coefficient, so a convolution is one multiplication.

    Parameters
    ----------
    initial : list of int
        Numerators of the law of the first state.
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
    bits = (sum(initial) * denominator ** (n - 1)).bit_length() + 1
    width = -(-bits // 8)  # bytes
    shift = [8 * width * w for w in weights]
    forward = [[initial[x] << shift[x] for x in range(k)]]
    backward = [[1] * k]
    for _ in range(n - 1):
        last = forward[-1]
        forward.append(
            [sum(last[x] * rows[x][y] for x in range(k)) << shift[y] for y in range(k)]
        )
        last = [b << s for b, s in zip(backward[-1], shift, strict=True)]
        backward.append([sum(rows[x][y] * last[y] for y in range(k)) for x in range(k)])
    laws = {}
    for i in positions:
        laws[i] = []
        for x in range(k):
            packed = forward[i][x] * backward[n - 1 - i][x]
            laws[i].append(_unpack(packed, width) if packed else None)
    return laws


def _unpack(packed, width):
    """Atoms and masses of a polynomial that was packed into one integer."""
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


def prefix_tables(initial, transition, weights, n):
    """Tables of the sums of the first records by the state of the last of them.

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
    table = _shifted(np.asarray(initial)[:, None], weights)
    tables = [table]
    for _ in range(n - 1):
        tables.append(_shifted(transition.T @ tables[-1], weights))
    return tables


def suffix_tables(transition, weights, n):
    """Tables of the sums of the next records by the state before the first of them.

    Parameters
    ----------
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of shape (n_states,)
    n : int
        As for :func:`prefix_tables`.

    Returns
    -------
    list of ndarray of shape (n_states, n_sums)
        Item `m`, below `n`, holds the law of the sum of the next `m` weights.
    """
    tables = [np.ones((len(weights), 1))]
    for _ in range(n - 1):
        tables.append(transition @ _shifted(tables[-1], weights))
    return tables


def _shifted(table, weights):
    """Add to the sums of every state its own weight."""
    grown = np.zeros((len(weights), table.shape[1] + int(weights.max())))
    for row, shifted, weight in zip(table, grown, weights, strict=True):
        shifted[weight : weight + len(row)] = row
    return grown


def mix(left, right, complete=True):
    """Law of a sum of two independent parts.

    Parameters
    ----------
    left, right : ndarray
        Masses of the sums 0, 1, 2, ..., up to a factor.
    complete : bool, default=True
        Whether every sum that can occur has a mass here.

    Returns
    -------
    law : (ndarray of int, ndarray) or None
        Atoms and masses above zero; None if there are none.
    lost : float
        Bound on the mass of atoms too light to be computed; 0.0 if there are none.
    """
    masses = np.convolve(left, right)
    total = masses.sum()
    if not total > 0:
        return None, 0.0
    kept = np.flatnonzero(masses >= TINY)
    lost = 0.0 if complete else len(masses) * TINY / total
    if complete and left[left > 0].min() * right[right > 0].min() < TINY:
        support = np.convolve((left > 0).astype(float), (right > 0).astype(float))
        if np.count_nonzero(support > 0.5) > len(kept):
            lost = len(masses) * TINY / total
    if not len(kept):
        return None, np.inf
    masses = masses[kept]
    return (kept, masses / masses.sum()), float(lost)


def float_sum_laws(initial, transition, weights, n, positions):
    """Laws of the sum of weights along a chain given one state, in floats.

    Parameters
    ----------
    initial : ndarray of shape (n_states,)
    transition : ndarray of shape (n_states, n_states)
    weights : ndarray of int of shape (n_states,)
    n : int
    positions : iterable of int

    Returns
    -------
    laws : dict of {int: list of (ndarray, ndarray) or None}
        As for :func:`exact_sum_laws`, but floats of relative error :func:`law_error`.
    lost : float
        Bound on the mass of atoms too light to be computed, in any law.
    """
    forward = prefix_tables(initial, transition, weights, n)
    backward = suffix_tables(transition, weights, n)
    complete = prefix_complete(forward, initial, transition, weights)
    complete = complete and suffix_complete(backward, transition, weights)
    laws, lost = {}, 0.0
    for i in positions:
        laws[i] = []
        for left, right in zip(forward[i], backward[n - 1 - i], strict=True):
            law, missing = mix(left, right, complete)
            laws[i].append(law)
            lost = max(lost, missing)
    return laws, lost


def prefix_complete(tables, initial, transition, weights):
    """Whether every sum that can occur has a mass in tables of prefixes."""
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


def suffix_complete(tables, transition, weights):
    """Whether every sum that can occur has a mass in tables of suffixes."""
    targets = [np.flatnonzero(row).tolist() for row in transition]
    support = [1] * len(weights)
    for table in tables:
        if not _covers(table, support):
            return False
        moved = [s << int(w) for s, w in zip(support, weights, strict=True)]
        support = [_union(moved[y] for y in ys) for ys in targets]
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


def window_sum_laws(initial, transition, weights, n, width):
    """Laws of the sum inside a window around the given state, by what its ends are.

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
    laws : dict of {tuple: list of (ndarray, ndarray) or None}
        By state, for every position of the window and every pair of states at its
        ends. An end that lies outside the table is None, and a window that lies inside
        is the same wherever it lies. A state at an end counts as a part of the window:
        it is the same in both worlds.
    lost : float
        As for :func:`float_sum_laws`.
    """
    k = len(weights)
    bridges, complete = [], True
    for row in transition:
        tables = prefix_tables(row, transition, weights, width)
        complete &= prefix_complete(tables, row, transition, weights)
        bridges.append(tables[-1])
    edge = min(width, n)
    starts = prefix_tables(initial, transition, weights, edge)
    complete = complete and prefix_complete(starts, initial, transition, weights)
    stops = suffix_tables(transition, weights, edge)
    complete = complete and suffix_complete(stops, transition, weights)
    ends, laws, lost = range(k), {}, 0.0
    inside = [("inside", u, v) for u in ends for v in ends] if n > 2 * width else []
    for where in inside + [
        (i, u, v)
        for i in (*range(edge), *range(max(edge, n - width), n))
        for u in (ends if i >= width else (None,))
        for v in (ends if i + width < n else (None,))
    ]:
        i, u, v = where
        laws[where] = []
        for a in ends:
            left = starts[i][a] if u is None else bridges[u][a]
            right = stops[n - 1 - i][a] if v is None else bridges[a][v]
            law, missing = None, 0.0
            if left.any() and right.any():
                law, missing = mix(left, right, complete)
            laws[where].append(law)
            lost = max(lost, missing)
    return laws, lost


def marginal_laws(initial, transition, n):
    """Laws of the single states of a chain, of shape (n, n_states)."""
    laws = np.empty((n, len(initial)))
    laws[0] = initial
    for t in range(1, n):
        laws[t] = laws[t - 1] @ transition
    return laws
