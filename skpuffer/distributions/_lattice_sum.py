"""Distributions of lattice sums, their masses known to an error, and their W_inf.

W_inf is set by the far tails, so masses are exact integers or have a bounded error.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Indices, Integers, lengths_of

from ._distributions import Discrete, Distribution, _distance

#: Floats, or Python integers.
Masses = NDArray[Any]

#: Atoms, and cumulative masses from one end.
Half = tuple[Integers, Masses]

#: The halves from the lower and from the upper end, and how many atoms there are.
Halves = tuple[Half, Half, int]

_EPS = float(np.finfo(float).eps)
# Cumulative mass to which atoms are kept: the median with room for errors.
_PAST_MEDIAN = 0.5 * (1 + 1e-6)
# Share of their range by which values may be off a lattice.
_OFF_LATTICE = 1e-12


class LatticeSum(Discrete):
    """A distribution on an arithmetic progression, its masses known to an error.

    Parameters
    ----------
    steps : ndarray of int of shape (n_atoms,)
        Increasing multiples of `direction`.
    masses : ndarray of shape (n_atoms,)
        Masses above zero: floats that sum to one, or Python integers (dtype object).
    origin, direction : ndarray of shape (dim,)
        Atom `j` lies at ``origin + steps[j] * direction``.
    error : float, default=0.0
        Bound on the relative error of float masses.
    """

    def __init__(
        self,
        steps: Integers,
        masses: Masses,
        origin: Floats,
        direction: Floats,
        error: float = 0.0,
    ) -> None:
        weights = masses
        if masses.dtype == object:
            # As fractions the masses stay exact in transport against other
            # distributions.
            total = sum(masses)
            weights = np.empty(len(masses), dtype=object)
            weights[:] = [Fraction(mass, total) for mass in masses]
        # declared here and set below, as the dataclass is frozen
        self.steps: Integers
        self.known: Masses
        self.origin: Floats
        self.direction: Floats
        self.error: float
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
    def halves(self) -> Halves:
        """Atoms and cumulative masses from either end; see :func:`_halves`."""
        return _halves(self.steps, self.known)

    def step_length(self, norm: float, units: Any = None) -> float:
        """Return the length of a step: of k steps it is k times that, in any norm."""
        return float(
            lengths_of(self.direction / (1.0 if units is None else units), norm)
        )

    @cached_property
    def level_error(self) -> float:
        """Relative error of float masses read off as differences of their halves."""
        (_, low), (_, high), _ = self.halves
        read = np.zeros(len(self.known))
        read[: len(low)] += np.diff(np.minimum(low, 0.5), prepend=0.0)
        read[::-1][: len(high)] += np.diff(np.minimum(high, 0.5), prepend=0.0)
        return float(np.abs(read / self.known - 1).max())


def _same(one: Floats, other: Floats) -> bool:
    # the sums of one chain share theirs
    return one is other or np.array_equal(one, other)


def step_gap(u: LatticeSum, v: LatticeSum) -> int | None:
    """Return W_inf of two lattice sums in steps, rounded up; None without a lattice."""
    if not (_same(u.direction, v.direction) and _same(u.origin, v.origin)):
        return None
    if u.known.dtype == object or v.known.dtype == object:
        return _farthest_of_integers(u, v)
    return _farthest(u.halves, v.halves, max(u.error, v.error))


@_distance.register
def _(
    u: LatticeSum, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    # Other pairs are compared as discrete distributions of any kind.
    gap = step_gap(u, v) if isinstance(v, LatticeSum) else None
    if gap is None:
        return _distance.dispatch(Discrete)(u, v, norm, units, ceiling)
    return gap * u.step_length(norm, units)


def _farthest_of_integers(u: LatticeSum, v: LatticeSum) -> int:
    """Return W_inf in steps, of integer masses whose sums may differ.

    It is attained at the end of some atom, where quantiles of the other are looked up.
    """
    u_levels, v_levels = np.cumsum(u.known), np.cumsum(v.known)
    # Cumulative masses over one denominator, the product of both totals: the comparison
    # of levels is exact.
    u_levels, v_levels = u_levels * v_levels[-1], v_levels * u_levels[-1]
    # The first atom whose cumulative mass is not below a level is its quantile.
    return max(
        int(np.max(u.steps[np.searchsorted(u_levels, v_levels)] - v.steps)),
        int(np.max(v.steps[np.searchsorted(v_levels, u_levels)] - u.steps)),
    )


def _halves(steps: Integers, masses: Masses) -> Halves:
    """Atoms and cumulative masses from either end to a little past the median."""

    def half(atoms: Integers, levels: Masses) -> Half:
        last = int(np.searchsorted(levels, _PAST_MEDIAN)) + 1
        return atoms[:last], levels[:last]

    return (
        half(steps, np.cumsum(masses)),
        half(-steps[::-1], np.cumsum(masses[::-1])),
        len(steps),
    )


def _farthest(u: Halves, v: Halves, error: float) -> int:
    """Return W_inf in steps of two distributions given by their halves, rounded up.

    No less than that of any two within the error of the masses. Quantiles are compared
    from either end to the median, so that sums of small numbers keep their relative
    error.
    """
    # Adding up n positive floats one by one has a relative error of at most n eps / 2;
    # eight times that of both distributions is allowed for.
    rounding = 4 * _EPS * (u[2] + v[2])
    # A true level is at most 1 / (1 - error) times the computed one, and what is truly
    # below a level t is computed to be below (1 + error) t: no atom of one distribution
    # that lies below its true quantile reaches the computed level of the other times
    # the margin.
    margin = (1 + error) / (1 - error) * (1 + rounding)
    # `_excess` looks up levels of at most margin / 2, and halves end at _PAST_MEDIAN.
    if margin >= 2 * _PAST_MEDIAN:
        raise value_error("distribution.mass_error_too_large")
    # Both signs of the gap at the lower end, then both at the upper end.
    return max(
        _excess(*u[0], *v[0], margin),
        _excess(*v[0], *u[0], margin),
        _excess(*u[1], *v[1], margin),
        _excess(*v[1], *u[1], margin),
    )


def _excess(
    u_steps: Integers,
    u_levels: Masses,
    v_steps: Integers,
    v_levels: Masses,
    margin: float,
) -> int:
    """Largest excess of a quantile of `u` over that of `v`, up to the median."""
    # Over the levels of one atom of v its quantile is constant while that of u grows,
    # so the excess is largest where the atom ends, or at 0.5 if it holds the median. A
    # level raised by the margin finds a quantile of u that is not below the true one.
    at = np.searchsorted(u_levels, np.minimum(v_levels, 0.5) * margin)
    return int((u_steps[at] - v_steps).max())


def mass_error(n_steps: int, n_states: int, n_atoms: int) -> float:
    """Bound the relative error of masses after `n_steps` of the forward recursion.

    Every operation adds or multiplies positive numbers, so relative errors add up.
    Doubled.
    """
    operations = n_steps * (n_states + 3) + 2 * n_atoms + n_states**2 + 16
    return 2 * operations * _EPS


def lattice_of(values: Floats) -> tuple[Floats, Floats, Integers] | None:
    """Return the lattice of the states' contributions (n_states, dim), or None.

    Origin and direction (dim,) and multiples from zero up, such that a contribution is
    ``origin + multiple * direction``. None if there is no such lattice with at most
    1000 multiples, or if round-off hides it.
    """
    origin = values[0]
    gaps = values - origin
    extent = float(np.abs(gaps).max())
    if extent == 0:
        return origin, gaps[0], np.zeros(len(values), dtype=int)
    # numbers whose own digits are coarser than that are on no known lattice
    if not _EPS * np.abs(values).max() <= _OFF_LATTICE * extent < math.inf:
        return None
    # Relative to the extent, so that one tolerance suits contributions of any unit.
    gaps = gaps / extent
    span = gaps[np.argmax(np.abs(gaps).sum(axis=1))]
    # If all gaps are on one line, each is a share of the longest: its projection.
    shares = gaps @ span / float(span @ span)
    if np.abs(gaps - np.multiply.outer(shares, span)).max() > _OFF_LATTICE:
        return None
    # shares of the largest gap as fractions: their common denominator is the lattice
    exact = [Fraction(share).limit_denominator(1000) for share in shares.tolist()]
    parts = math.lcm(*(share.denominator for share in exact))
    off = np.abs(shares - np.array(exact, float)).max()
    if parts > 1000 or off > _OFF_LATTICE:
        return None
    # Multiples of the longest gap over `parts`, exact integers from here on.
    weights = np.array([int(share * parts) for share in exact])
    _, first, state = np.unique(weights, return_index=True, return_inverse=True)
    if not np.array_equal(values[first[state]], values):
        return None  # a move, however small, is not none
    direction = span * extent / parts
    # Multiples are counted from the least, and in the coarsest steps that reach all.
    least = int(weights.min())
    weights = weights - least
    origin = origin + least * direction
    common = int(np.gcd.reduce(weights))
    return origin, direction * common, weights // common


# -- couplings of lattice sums, for many pairs of them at once -------------------------
# A scenario of a long series has thousands of pairs of secrets, whose distributions
# share one lattice: what is asked of each is asked of all together.


#: Pairs of distributions to compare.
Pairs = Sequence[tuple[LatticeSum, LatticeSum]]

# Masses are counted in integers of this unit, rounded down: sums of them are exact.
_UNIT = 2.0**-60

# Pairs that are matched at once: the temporaries stay in cache.
_BLOCK = 512

# Largest relative error of masses that are taken as differences of levels.
_WORST_ERROR = 1e-9


def on_one_lattice(
    pairs: Sequence[tuple[Distribution, Distribution]],
) -> TypeGuard[Pairs]:
    """Whether all are lattice sums of one lattice, with masses in floats."""
    first = pairs[0][0]
    return isinstance(first, LatticeSum) and all(
        isinstance(each, LatticeSum)
        and each.known.dtype != object
        and _same(each.origin, first.origin)
        and _same(each.direction, first.direction)
        for pair in pairs
        for each in pair
    )


def largest_near_gap(pairs: Pairs, spare: float, most: int) -> tuple[int, int]:
    """Return the largest near radius of pairs, in steps of their lattice, rounded up.

    `pairs`: on one lattice. `spare`: mass of each pair that may move any distance, in
    (0, 1). `most`: number of steps within which some coupling of each pair keeps all
    mass.

    Returns
    -------
    gap : int
        The smallest number of steps within which a coupling of each pair keeps a mass
        of ``1 - spare``, unless it does so to 1e-12 only.
    at : int
        Position of a pair that does not do so within fewer.
    """
    number, low, high, worst = np.arange(len(pairs)), -1, most, 0
    # nearly always no less than all steps will do, so that is asked first
    middle = most - 1
    while high - low > 1:
        short = []
        for part in np.array_split(number, -(-len(number) // _BLOCK)):
            short.append(part[~_keeps(pairs, part, middle, spare)])
            # one is enough where no number of steps is left in between
            if len(short[-1]) and high - middle == 1:
                return high, int(short[-1][0])
        failed = np.concatenate(short)
        if len(failed):
            # the others keep enough within any more steps too
            low, number, worst = middle, failed, int(failed[0])
        else:
            high = middle
        middle = (low + high) // 2
    return high, worst


def _keeps(pairs: Pairs, part: Indices, radius: int, spare: float) -> Indices:
    """Whether each of some pairs keeps enough mass within so many steps."""
    u, v = (_table([pairs[at][side] for at in part]) for side in (0, 1))
    low, high = min(u[0], v[0]), max(u[0] + len(u[1]), v[0] + len(v[1]))
    u_mass, v_mass = (
        np.pad(table, ((start - low, high - start - len(table)), (0, 0)))
        for start, table in (u, v)
    )
    # What is rounded off counts as left out. The masses of a distribution add up to
    # their unit up to round-off, which what is kept is compared with.
    rounded = max(len(each.steps) for at in part for each in pairs[at])
    whole = np.maximum(u_mass.sum(axis=0), v_mass.sum(axis=0)) + rounded
    need = whole - int(spare / _UNIT * (1 - 1e-12))
    # each atom in order takes the lowest mass still free within reach
    ends = np.cumsum(v_mass, axis=0)
    taken = np.zeros(len(part), dtype=np.int64)
    kept = np.zeros(len(part), dtype=np.int64)
    for i, mass in enumerate(u_mass):
        start = taken if i <= radius else np.maximum(taken, ends[i - radius - 1])
        taken = np.minimum(start + mass, ends[min(i + radius, len(ends) - 1)])
        kept += taken - start
    enough: Indices = kept >= need
    return enough


def _table(distributions: Sequence[LatticeSum]) -> tuple[int, Indices]:
    """Return the first step, and masses in units by step and distribution."""
    counted = [(each.known / _UNIT).astype(np.int64) for each in distributions]
    some = [np.flatnonzero(counts) for counts in counted]
    steps = [each.steps for each in distributions]
    low = min(int(step[at[0]]) for step, at in zip(steps, some, strict=True))
    high = max(int(step[at[-1]]) for step, at in zip(steps, some, strict=True))
    table = np.zeros((high - low + 1, len(distributions)), dtype=np.int64)
    for j, (step, at) in enumerate(zip(steps, some, strict=True)):
        table[step[at] - low, j] = counted[j][at]
    return low, table


def monotone_gaps(pairs: Pairs) -> tuple[Floats, float] | None:
    """Return masses (n_pairs, n_gaps) of the gaps of monotone couplings, and an error.

    Gaps are in steps of the lattice. The error is relative and that of the
    distributions' masses. Levels are compared from either end to the median. None where
    some mass is too small next to those beyond it to be told from levels.
    """
    rows, error = [], 0.0
    for u, v in pairs:
        for each in (u, v):
            rounded = each.level_error
            error = max(error, each.error + rounded + each.error * rounded)
        halves = [
            _half(*first, *second)
            for first, second in zip(u.halves[:2], v.halves[:2], strict=True)
        ]
        gaps = np.concatenate([gap for gap, _ in halves])
        row = np.bincount(gaps, np.concatenate([mass for _, mass in halves]))
        rows.append(np.trim_zeros(row, "b"))
    if not error < _WORST_ERROR:
        return None
    masses = np.zeros((len(rows), max(map(len, rows))))
    for table, row in zip(masses, rows, strict=True):
        table[: len(row)] = row
    return masses, error


def _half(
    u_steps: Indices, u_levels: Floats, v_steps: Indices, v_levels: Floats
) -> tuple[Indices, Floats]:
    """Gaps of the monotone coupling from one end to the median, and their masses."""
    ends = np.concatenate([np.minimum(u_levels, 0.5), np.minimum(v_levels, 0.5)])
    order = np.argsort(ends, kind="stable")  # merges two sorted runs in linear time
    # Between two ends one atom of either meets one of the other: those of which as many
    # have ended before. There is nothing between equal ends.
    of_u = order < len(u_levels)
    u_at: Indices = np.cumsum(of_u) - of_u
    v_at = np.arange(len(order)) - u_at
    gaps = u_steps.take(u_at, mode="clip") - v_steps.take(v_at, mode="clip")
    return np.abs(gaps), np.diff(ends[order], prepend=0.0)
