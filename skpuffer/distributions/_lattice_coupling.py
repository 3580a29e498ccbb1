"""Couplings of lattice sums, for many pairs of them at once.

A scenario of a long series has thousands of pairs of secrets, whose distributions share
one lattice: what is asked of each is asked of all together.
"""

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from skpuffer.kernel.numbers import Floats, Indices

from ._distributions import Distribution
from ._lattice_sum import LatticeSum, _same

__all__ = ["largest_near_gap", "monotone_gaps", "on_one_lattice"]

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
    """Largest near radius of pairs, in steps of their lattice, rounded up.

    Parameters
    ----------
    pairs : sequence of (LatticeSum, LatticeSum)
        On one lattice.
    spare : float
        Mass of each pair that may move any distance, in (0, 1).
    most : int
        Number of steps within which some coupling of each pair keeps all mass.

    Returns
    -------
    gap : int
        The smallest number of steps within which a coupling of each pair keeps a mass
        of ``1 - spare``, unless it does so to 1e-12 only.
    at : int
        Position of a pair that does not do so within fewer.

    References
    ----------
    Glover (1967), Maximum matching in a convex bipartite graph; see `near_radius`.
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
    """Masses of the gaps of monotone couplings, in steps of the lattice.

    Levels are compared from either end to the median, so that they are sums of small
    numbers and keep their relative error.

    Parameters
    ----------
    pairs : sequence of (LatticeSum, LatticeSum)
        On one lattice.

    Returns
    -------
    masses : ndarray of shape (n_pairs, n_gaps)
        Mass that each pair's coupling moves by 0, 1, ... steps.
    error : float
        Bound on the relative error of the masses of the distributions that are coupled,
        that of their own included.

    Notes
    -----
    None where some mass is too small next to those beyond it to be told from levels.
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
