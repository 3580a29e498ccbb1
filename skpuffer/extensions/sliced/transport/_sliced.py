"""Sliced W_inf: the distances of projections, for several distributions at once."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Indices, Integers, check_positive
from skpuffer.transport._masses import integer_masses, match, rescale

from ._profile import Match, SliceProfile, gaps_by_buckets

#: Most atoms whose gaps are bounded together before they are computed.
_STRETCH = 64

#: How many times its length a stretch of fewer is away from the ends.
_TAPER = 8

#: Of a larger share of all stretches, gaps are computed in a row.
_MANY_STRETCHES = 0.2

#: Most directions projected at once: enough for a matrix product to run at full speed.
_DIRECTIONS = 80

#: Projections of a distribution that are counted at once: they stay in cache.
_CELLS = 2**17

#: Of fewer points a sort takes no longer than to count them.
_MANY = 4000

#: Of more pairs for each distribution, sorted rows are compared faster than counts.
_FEW_PAIRS = 4

#: A column whose values are this many times their range is moved to the origin.
_FAR = 16.0

#: Points of each distribution by which that is told.
_FEW = 64

#: Largest projection, whose differences are finite.
_LARGEST = float(np.finfo(float).max) / 4


@dataclass(frozen=True)
class Atoms:
    """Points, and their integer masses unless all are the same."""

    points: Floats
    masses: Integers | None = None

    @property
    def total(self) -> int:
        return len(self.points) if self.masses is None else int(self.masses.sum())

    def levels_of(self, total: int) -> Integers:
        """Masses as integers of that sum."""
        masses = np.ones(len(self.points), dtype=np.int64)
        masses = masses if self.masses is None else self.masses
        return rescale(masses, self.total, total)


@dataclass(frozen=True)
class Sorted:
    """Projections of a block of directions, each a sorted row, and what sorts them."""

    rows: Floats
    order: Indices | None

    @classmethod
    def of(cls, world: Atoms, rows: Floats) -> Self:
        """Sort projections of one distribution, in place where masses are equal."""
        if world.masses is None:
            rows.sort(axis=1)
            return cls(rows, None)
        order = np.argsort(rows, axis=1)
        return cls(np.take_along_axis(rows, order, axis=1), order)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """First and last of each stretch of atoms, for all pairs."""
        return _ends(self.rows)


def sliced_distances(
    worlds: Sequence[ArrayLike],
    profile: SliceProfile,
    *,
    weights: Sequence[ArrayLike | None] | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
    coordinate_scale: ArrayLike | None = None,
    n_jobs: int | None = None,
    max_memory: float = 256.0,
) -> Floats:
    r"""Return W_inf distances between the projections of discrete distributions.

    .. math:: z_u = W_\infty(\langle X, u \rangle, \langle Y, u \rangle)

    Parameters
    ----------
    worlds : sequence of array-like of shape (n_points, dim)
        Points of each distribution; their numbers may differ.
    profile : SliceProfile
        Finite, of as many coordinates.
    weights : sequence of (array-like of shape (n_points,) or None), default=None
        Masses of each distribution's points, as for `wasserstein_distance`.
    pairs : iterable of (int, int), default=None
        Positions of the distributions to compare. All pairs if None, lower first.
    coordinate_scale : array-like of shape (dim,), default=None
        Unit of each coordinate, by which points are divided first.
    n_jobs, max_memory : int, float
        Threads, as joblib counts them, and megabytes for projections.

    Returns
    -------
    distances : ndarray of shape (n_pairs, n_slices)
        Exact up to the round-off of the projections, in the unit of the points.

    Notes
    -----
    No slice exceeds W_inf of the points. All may be zero where that is not, so slices
    alone bound no distance in several coordinates.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, equations 5 and 6.

    Examples
    --------
    >>> from skpuffer.transport import SliceProfile, sliced_distances
    >>> three = [[[0, 0]], [[3, 0]], [[0, 4]]]
    >>> sliced_distances(three, SliceProfile.basis(2)).tolist()
    [[3.0, 0.0], [0.0, 4.0], [3.0, 4.0]]
    """
    directions = directions_of(profile, coordinate_scale)
    atoms = _checked(worlds, weights, profile.dim)
    compared = checked_pairs(pairs, len(atoms))
    wanted = unordered(compared)
    used = {at: atoms[at] for pair in wanted for at in pair}
    gaps = _Gaps(used, wanted)
    table = over_blocks(used, directions, gaps.measure, n_jobs, max_memory)
    return for_each(compared, wanted, table, len(directions))


# -- what is given ----------------------------------------------------------------


def directions_of(
    profile: SliceProfile, coordinate_scale: ArrayLike | None = None
) -> Floats:
    """Return what points are projected on, of shape (n_slices, dim), or refuse."""
    if profile.directions is None:
        raise value_error("distribution.profile_infinite")
    if coordinate_scale is None:
        return profile.directions
    scale = np.asarray(coordinate_scale, dtype=float)
    if scale.shape != (profile.dim,) or not np.all((scale > 0) & np.isfinite(scale)):
        raise value_error("sliced.coordinate_scale_invalid", dim=profile.dim)
    # of directions rather than of points, of which there are more
    return profile.directions / scale


def _checked(
    worlds: Sequence[ArrayLike], weights: Sequence[ArrayLike | None] | None, dim: int
) -> list[Atoms]:
    points, _ = centred(worlds, dim)
    given = [None] * len(points) if weights is None else list(weights)
    if len(given) != len(points):
        raise value_error(
            "sliced.weights_count_differs", n_points=len(points), n_given=len(given)
        )
    return [_atoms(*one) for one in zip(points, given, strict=True)]


def _atoms(points: Floats, weights: ArrayLike | None) -> Atoms:
    if weights is None:
        return Atoms(points)
    masses, _ = integer_masses(len(points), weights=weights)
    counted = masses > 0
    points, masses = points[counted], masses[counted]
    return Atoms(points, None if np.all(masses == masses[0]) else masses)


def centred(worlds: Sequence[ArrayLike], dim: int) -> tuple[list[Floats], Floats]:
    """Return points as float arrays, and the vector they were all moved by."""
    points = [np.asarray(world, dtype=float) for world in worlds]
    if not points:
        raise value_error("sliced.worlds_empty")
    for one in points:
        if one.ndim != 2 or one.shape[1] != dim or not len(one):
            raise value_error("sliced.worlds_shape_invalid", dim=dim, shape=one.shape)
    # Projections round relative to the size of the points, distances do not depend on
    # where the origin is. Any will do, hence one by a few points.
    few = np.concatenate([one[:: max(1, len(one) // _FEW)] for one in points])
    low, high = few.min(axis=0), few.max(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(low) > _FAR * (high - low)
    # what is infinite stays, to be refused
    origin = np.where(far & np.isfinite(low), low, 0.0)
    if origin.any():
        points = [one - origin for one in points]
    return points, origin


def checked_pairs(
    pairs: Iterable[tuple[int, int]] | None, n_worlds: int
) -> list[tuple[int, int]]:
    """Return pairs of positions, all of them if None."""
    if pairs is None:
        return list(itertools.combinations(range(n_worlds), 2))
    compared = [(int(i), int(j)) for i, j in pairs]
    if not all(0 <= at < n_worlds for pair in compared for at in pair):
        raise value_error("sliced.pairs_out_of_range", n_worlds=n_worlds - 1)
    return compared


def unordered(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return each pair once, and none of a position with itself."""
    # W_inf is symmetric, and zero of a distribution to itself
    return sorted({(min(i, j), max(i, j)) for i, j in pairs if i != j})


def for_each(
    pairs: list[tuple[int, int]],
    wanted: list[tuple[int, int]],
    table: Floats,
    n_slices: int,
) -> Floats:
    """Return the rows of all pairs from those of each once."""
    place = {pair: at for at, pair in enumerate(wanted)}
    rows = np.zeros((len(pairs), n_slices))
    for row, (i, j) in zip(rows, pairs, strict=True):
        if i != j:
            # of two zeros the maximum may be the negative one
            row[:] = np.abs(table[place[min(i, j), max(i, j)]])
    return rows


# -- blocks of directions ---------------------------------------------------------


def over_blocks(
    worlds: dict[int, Atoms],
    directions: Floats,
    measure: Callable[[dict[int, Floats], slice], Floats],
    n_jobs: int | None,
    max_memory: float,
) -> Floats:
    """Project once for each block of directions, and measure: (n_rows, n_slices).

    `measure` takes the projections of each world, which it may overwrite, and which
    directions they are. It returns (n_rows, n_directions).
    """
    room = check_positive(max_memory=max_memory) * 2**20
    n_threads = joblib.effective_n_jobs(n_jobs)
    if not worlds:
        return np.empty((0, len(directions)))
    # with masses: values before and after they are sorted, and their order
    cells = sum(
        len(world.points) * (1 if world.masses is None else 3)
        for world in worlds.values()
    )
    size = max(1, int(min(room / (8 * n_threads * cells), _DIRECTIONS)))

    def work(start: int, stop: int) -> list[Floats]:
        # as even as can be, for a small last block is projected slowly
        edges = _edges(start, stop, math.ceil((stop - start) / size))
        n_rows = -(-(stop - start) // max(1, len(edges) - 1))
        # used again for each block, as new memory takes time
        memory = {at: np.empty((n_rows, len(w.points))) for at, w in worlds.items()}
        tables = []
        for part in itertools.starmap(slice, itertools.pairwise(edges)):
            block = {
                at: _projected(world, directions[part], memory[at])
                for at, world in worlds.items()
            }
            tables.append(measure(block, part))
        return tables

    shares = _edges(0, len(directions), n_threads)
    tasks = (delayed(work)(*share) for share in itertools.pairwise(shares))
    shared = Parallel(n_jobs=n_threads, prefer="threads")(tasks)
    return np.concatenate(list(itertools.chain(*shared)), axis=1)


def _edges(start: int, stop: int, n_parts: int) -> list[int]:
    """Edges of that many parts of a range, whose lengths differ by one at most."""
    length = stop - start
    return [start + k * length // (n_parts or 1) for k in range(n_parts + 1)]


def _projected(world: Atoms, directions: Floats, memory: Floats) -> Floats:
    # each direction a row of adjacent numbers, which sorts fastest
    rows = memory[: len(directions)]
    with np.errstate(invalid="ignore", over="ignore"):
        np.matmul(directions, world.points.T, out=rows)
    # of which NaN is one, if there is any
    ends = np.array([rows.min(), rows.max()])
    if not np.all(np.abs(ends) <= _LARGEST):
        raise value_error("sliced.worlds_not_finite")
    return rows


# -- one pair ---------------------------------------------------------------------


class _Gaps:
    """Distances of wanted pairs, from projections of the worlds they are of."""

    def __init__(self, worlds: dict[int, Atoms], pairs: list[tuple[int, int]]) -> None:
        self.worlds = worlds
        self.pairs = pairs
        self.matches = [_match_of(worlds[i], worlds[j]) for i, j in pairs]
        self.n_points = max((len(world.points) for world in worlds.values()), default=1)
        # until some directions show that it is no gain
        self.in_buckets = (
            all(world.masses is None for world in worlds.values())
            and self.n_points >= _MANY
            and len(pairs) <= _FEW_PAIRS * len(worlds)
        )

    def measure(self, block: dict[int, Floats], part: slice) -> Floats:
        """Return an array of shape (n_pairs, n_directions)."""
        start, n_rows = 0, part.stop - part.start
        few = max(1, _CELLS // self.n_points)
        tables = []
        while self.in_buckets and start < n_rows:
            rows = {at: each[start : start + few] for at, each in block.items()}
            table = gaps_by_buckets(rows, self.pairs, self.matches)
            if table is None:
                self.in_buckets = False
            else:
                tables.append(table)
                start += few
        if start < n_rows:
            tables.append(
                self._by_sorts({at: each[start:] for at, each in block.items()})
            )
        return np.concatenate(tables, axis=1)

    def _by_sorts(self, rows: dict[int, Floats]) -> Floats:
        ordered = {at: Sorted.of(self.worlds[at], each) for at, each in rows.items()}
        gaps = []
        for (i, j), meeting in zip(self.pairs, self.matches, strict=True):
            u, v = self.worlds[i], self.worlds[j]
            if u.masses is None and v.masses is None:
                gaps.append(_largest_gaps(ordered[i], ordered[j], meeting))
            else:
                gaps.append(_largest_gaps_by_mass(u, v, ordered[i], ordered[j]))
        return np.array(gaps)


def _match_of(u: Atoms, v: Atoms) -> Match:
    """Which atoms meet where masses alone say so, hence on every slice the same."""
    weighted = u.masses is not None or v.masses is not None
    if weighted or len(u.points) == len(v.points):
        return None
    total = math.lcm(u.total, v.total)
    i, j, _ = match(u.levels_of(total), v.levels_of(total))
    return i, j


def _largest_gaps(x: Sorted, y: Sorted, meeting: Match) -> Floats:
    """Return the largest distance of atoms that meet, by row, by branch and bound.

    The ends of a stretch of sorted atoms bound every gap within it.
    """
    i, j = (None, None) if meeting is None else meeting
    x_low, x_high = x.ends if i is None else _ends(x.rows, i)
    y_low, y_high = y.ends if j is None else _ends(y.rows, j)
    largest: Floats = np.abs(x_high - y_high).max(axis=1)
    bounds = np.maximum(y_high - x_low, x_high - y_low)
    rows, at = np.nonzero(bounds > largest[:, None])
    if rows.size > _MANY_STRETCHES * bounds.size:
        # where all atoms are about as far apart: all at once
        gaps = x.rows if i is None else x.rows.take(i, axis=1)
        gaps = gaps - (y.rows if j is None else y.rows.take(j, axis=1))
        largest = np.maximum(gaps.max(axis=1), -gaps.min(axis=1))
        return largest
    if rows.size:
        first, last = _stretches(x.rows.shape[1] if i is None else len(i))
        # past the last atom of a stretch it is looked at again
        within = np.minimum(first[at, None] + np.arange(_STRETCH), last[at, None])
        gaps = x.rows[rows[:, None], within if i is None else i[within]]
        gaps -= y.rows[rows[:, None], within if j is None else j[within]]
        np.maximum.at(largest, rows, np.abs(gaps).max(axis=1))
    return largest


@lru_cache(maxsize=64)
def _stretches(n: int) -> tuple[Indices, Indices]:
    """Return first and last atom of each stretch of sorted atoms.

    Stretches are shorter at the ends, where atoms are far apart.
    """
    starts = [0]
    while starts[-1] < n:
        start = starts[-1]
        length = min(start, n - 1 - start) // _TAPER
        starts.append(start + min(max(length, 1), _STRETCH))
    first = np.array(starts[:-1])
    return first, np.append(first[1:], n) - 1


def _ends(rows: Floats, atoms: Indices | None = None) -> tuple[Floats, Floats]:
    """First and last of each stretch of atoms, each of shape (n_rows, n_stretches)."""
    first, last = _stretches(rows.shape[1] if atoms is None else len(atoms))
    if atoms is not None:
        first, last = atoms[first], atoms[last]
    return rows.take(first, axis=1), rows.take(last, axis=1)


def _largest_gaps_by_mass(u: Atoms, v: Atoms, x: Sorted, y: Sorted) -> Floats:
    """Return W_inf of each row between sorted atoms of any masses.

    It is attained at the end of some atom, where the other's quantile is looked up.
    """
    total = math.lcm(u.total, v.total)
    a, b = u.levels_of(total), v.levels_of(total)
    largest = np.empty(len(x.rows))
    for at, (p, q) in enumerate(zip(x.rows, y.rows, strict=True)):
        p_levels = np.cumsum(a if x.order is None else a[x.order[at]])
        q_levels = np.cumsum(b if y.order is None else b[y.order[at]])
        largest[at] = max(
            np.abs(p - q[np.searchsorted(q_levels, p_levels)]).max(),
            np.abs(q - p[np.searchsorted(p_levels, q_levels)]).max(),
        )
    return largest
