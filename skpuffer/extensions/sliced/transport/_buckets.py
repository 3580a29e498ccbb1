"""Largest gaps of sorted projections, of which only few are sorted.

How many projections of a direction fall into each of equal buckets says in which bucket
each one of the sorted projections is. The buckets that meet furthest apart hold the
largest gap, as on the line (see `_buckets`), and only what they hold is sorted. A
distribution is counted once for all pairs.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from skpuffer.kernel.numbers import Floats, Indices, Integers

__all__ = ["Match", "gaps_by_buckets"]

#: Which sorted atoms of two distributions meet; None if they meet in turn.
Match: TypeAlias = tuple[Indices, Indices] | None

# Buckets for each root of the number of points, and most of them: they are counted in
# 16 bits, with a sign for their differences.
_FINENESS = 10
_MOST = 2**15 - 1
# With a larger share of the projections to be sorted, a sort of all is as quick.
_WORTH_SORTING = 0.2


class _Furthest(NamedTuple):
    """What meets furthest apart, of all directions in turn."""

    row: Indices
    #: Buckets of the two that meet.
    buckets: tuple[Indices, Indices]
    #: Their places in the sorted rows.
    places: tuple[Indices, Indices]


def gaps_by_buckets(
    rows: dict[int, Floats], pairs: list[tuple[int, int]], matches: list[Match]
) -> Floats | None:
    """W_inf of pairs of distributions, along each direction.

    Parameters
    ----------
    rows : dict of int to ndarray of shape (n_directions, n_points)
        Finite projections of each distribution, in any order. What they hold is
        overwritten if gaps are returned, and left as it is if not.
    pairs : list of (int, int)
        Each distribution is in one at least.
    matches : list of Match
        For each pair.

    Returns
    -------
    gaps : ndarray of shape (n_pairs, n_directions) or None
        To the last bit what sorts of all rows would give. None if those are as quick.
    """
    low = np.min([values.min(axis=1) for values in rows.values()], axis=0)
    high = np.max([values.max(axis=1) for values in rows.values()], axis=0)
    n_points = max(values.shape[1] for values in rows.values())
    size = min(_MOST, int(_FINENESS * math.sqrt(n_points)))
    with np.errstate(divide="ignore", over="ignore"):
        scale = (size - 1) / (high - low)
    if not np.all((scale > 0) & np.isfinite(scale)):
        return None
    index = {at: _indices(values, low, scale) for at, values in rows.items()}
    counts = {
        at: np.array([np.bincount(row, minlength=size) for row in each])
        for at, each in index.items()
    }
    furthest = _furthest(counts, pairs, matches)
    chosen = {at: np.zeros(each.shape, dtype=bool) for at, each in counts.items()}
    for pair, found in zip(pairs, furthest, strict=True):
        for at, buckets in zip(pair, found.buckets, strict=True):
            chosen[at][found.row, buckets] = True
    n_chosen = sum(int(counts[at][chosen[at]].sum()) for at in rows)
    if n_chosen > _WORTH_SORTING * sum(values.size for values in rows.values()):
        return None
    for at, values in rows.items():
        for row, bucket, count, some in zip(
            values, index[at], counts[at], chosen[at], strict=True
        ):
            # to where they are in the sorted row; what is elsewhere is not read
            row[np.repeat(some, count)] = np.sort(row[some.take(bucket)])
    gaps = []
    for (i, j), found in zip(pairs, furthest, strict=True):
        x, y = found.places
        apart = np.abs(rows[i][found.row, x] - rows[j][found.row, y])
        starts = np.searchsorted(found.row, np.arange(len(low)))
        gaps.append(np.maximum.reduceat(apart, starts))
    return np.array(gaps)


def _indices(values: Floats, low: Floats, scale: Floats) -> Indices:
    """Bucket of each projection, which never falls as they rise."""
    scaled = values - low[:, None]
    scaled *= scale[:, None]
    return scaled.astype(np.int16)  # rounded down


def _furthest(
    counts: dict[int, Integers], pairs: list[tuple[int, int]], matches: list[Match]
) -> list[_Furthest]:
    """Return for each pair what may be furthest apart, by the counts of buckets.

    Atoms of buckets i and j are more than |i - j| - 1 and less than |i - j| + 1 buckets
    apart; round-off moves no atom by as much as 2**-30 of a bucket.
    """
    buckets = {}
    for at, each in counts.items():
        names = np.tile(np.arange(each.shape[1], dtype=np.int16), len(each))
        buckets[at] = np.repeat(names, each.ravel()).reshape(len(each), -1)
    found = []
    for (i, j), meeting in zip(pairs, matches, strict=True):
        x, y = buckets[i], buckets[j]
        if meeting is not None:
            x, y = x.take(meeting[0], axis=1), y.take(meeting[1], axis=1)
        apart = np.abs(x - y)
        close = apart.max(axis=1, keepdims=True) - 2
        row, place = np.divmod(np.flatnonzero(apart >= close), apart.shape[1])
        held = x[row, place], y[row, place]
        places = place, place
        if meeting is not None:
            places = meeting[0][place], meeting[1][place]
        found.append(_Furthest(row, held, places))
    return found
