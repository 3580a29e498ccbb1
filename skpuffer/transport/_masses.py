"""Masses as integers on one common total, so that couplings are exact.

A sliver of mass that floats lose would under-state W_inf.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Indices, Integers
from skpuffer.utils._checks import check_masses

# Common denominators looked for in float weights. Far below 2**26, above which some
# fraction lies within round-off of every float and the search would mean nothing.
_LARGEST_DENOMINATOR = 10**7
# Sums of int64 masses stay clear of overflow below this total; above, Python integers.
_INT64_TOTAL = 2**62
# Bits of a float: integers of as many are added up exactly.
_MANTISSA = 53
# Weights handled at once: the temporaries stay in cache.
_BLOCK = 65536


@dataclass(frozen=True, eq=False)
class MeantMasses:
    """Masses of one distribution, each an integer in a unit of its own.

    `raw` holds integers, or floats meant at their exact binary value; None is one each.
    """

    n: int
    raw: Integers | Floats | None

    @property
    def adds_exactly(self) -> bool:
        """Whether `sums` are exact, as those of few enough bits are."""
        if self.raw is None:
            return True
        if self.raw.dtype == float:
            return True
        return self.raw.dtype != object and int(self.raw.sum()) < 2**_MANTISSA

    def of(self, atoms: Indices) -> Integers:
        """Masses of some atoms."""
        if self.raw is None:
            return np.ones(len(atoms), dtype=np.int64)
        some = self.raw[atoms]
        return _from_binary(some, self._exponents[0]) if some.dtype == float else some

    def lowest_terms(self) -> tuple[Integers, int]:
        """All masses without common factor, and their sum."""
        masses = self.of(np.arange(self.n))
        if self.raw is not None:
            # as the common total of two distributions is a multiple of both
            masses = masses // np.gcd.reduce(masses)
        return masses, int(masses.sum())

    def sums(self, group: Indices, size: int) -> Integers:
        """Return sums of the masses by `group` (n,), exact where `adds_exactly`."""
        if self.raw is not None and self.raw.dtype == float:
            return self._float_sums(self.raw, group, size)
        sums = np.zeros(size, dtype=np.int64)
        for part in self._blocks():
            weights = None if self.raw is None else self.raw[part]
            sums += np.bincount(group[part], weights, size).astype(np.int64)
        return sums

    def _float_sums(self, raw: Floats, group: Indices, size: int) -> Integers:
        # By digits, from the first on, of so few bits that floats hold sums of all.
        bits = _MANTISSA - self.n.bit_length()
        lowest, highest = self._exponents
        places = highest - lowest + _MANTISSA
        digits = np.zeros((-(-places // bits), size))
        for part in self._blocks():
            rest = np.ldexp(raw[part], -highest)
            for sums in digits:
                rest *= 2.0**bits
                digit = np.floor(rest)
                sums += np.bincount(group[part], digit, size)
                rest -= digit
        whole: Integers = np.zeros(size, dtype=object)
        for sums in digits:
            whole = (whole << bits) + sums.astype(np.int64).astype(object)
        return whole >> (len(digits) * bits - places)

    @cached_property
    def _exponents(self) -> tuple[int, int]:
        """Least and largest binary exponent of the floats above zero."""
        raw = np.asarray(self.raw)
        ends = raw.min(where=raw > 0, initial=1), raw.max()
        return math.frexp(ends[0])[1], math.frexp(ends[1])[1]

    def _blocks(self) -> Iterator[slice]:
        return (slice(k, k + _BLOCK) for k in range(0, self.n, _BLOCK))


def common_masses(
    n: int, u_weights: ArrayLike | None, m: int, v_weights: ArrayLike | None
) -> tuple[Integers, Integers]:
    """Return the masses of two distributions as integers that add up to the same total.

    `u_weights`, `v_weights` (n,) and (m,): None means a count of one for each atom;
    integers are counts; fractions must sum to one exactly; floats must sum to one to
    1e-9.

    Returns
    -------
    a, b : ndarray of shape (n,) and (m,), of int64 or of Python integers
        ``a / a.sum()`` and ``b / b.sum()`` are the masses. Python integers (dtype
        object) where int64 could overflow.

    Notes
    -----
    Floats are read as the fractions they were rounded from when one denominator of at
    most 10**7 reproduces all of them to 4 units of relative round-off. Otherwise each
    float is taken at its exact binary value and both distributions are normalised
    exactly; a sliver of mass can only enlarge W_inf.
    """
    return in_one_unit(
        read_masses(n, u_weights=u_weights), read_masses(m, v_weights=v_weights)
    )


def in_one_unit(a: MeantMasses, b: MeantMasses) -> tuple[Integers, Integers]:
    """Return the masses of two distributions as integers of one sum."""
    (ours, total_a), (theirs, total_b) = a.lowest_terms(), b.lowest_terms()
    total = math.lcm(total_a, total_b)
    return rescale(ours, total_a, total), rescale(theirs, total_b, total)


def rescale(masses: Integers, old_total: int, total: int) -> Integers:
    kind = np.int64 if total < _INT64_TOTAL else object
    return masses.astype(kind) * (total // old_total)


def integer_masses(n: int, **named: ArrayLike | None) -> tuple[Integers, int]:
    """Return the one named weights as integers without common factor, and their sum."""
    return read_masses(n, **named).lowest_terms()


def read_masses(n: int, **named: ArrayLike | None) -> MeantMasses:
    """Return what the one named weights mean."""
    ((name, raw),) = named.items()
    if raw is None:
        return MeantMasses(n, None)
    values = np.asarray(raw)
    if values.dtype == object and all(isinstance(w, Rational) for w in values.flat):
        return MeantMasses(n, _from_rationals(n, values, name))
    check_masses(n, **named)  # type: ignore[arg-type] # neither `tol` nor `counts`
    if np.issubdtype(values.dtype, np.integer):
        small = values.sum(dtype=float) < _INT64_TOTAL
        return MeantMasses(n, values.astype(np.int64 if small else object, copy=False))
    values = values.astype(float, copy=False)
    counts = _from_denominator(values)
    return MeantMasses(n, values if counts is None else counts)


def _from_rationals(n: int, values: NDArray[np.object_], name: str) -> Integers:
    if values.shape != (n,):
        raise value_error(
            "transport.masses_count_differs", name=name, n=n, shape=values.shape
        )
    if min(values) < 0 or not any(values):
        raise value_error("transport.masses_invalid", name=name)
    denominator = math.lcm(*(int(w.denominator) for w in values))
    # A sum of fractions is exact: no tolerance. Over a denominator of one they are
    # counts, as integers are.
    if denominator > 1 and sum(values) != 1:
        raise value_error("transport.masses_not_sum_one", name=name, total=sum(values))
    masses = np.empty(n, dtype=object)
    masses[:] = [int(w * denominator) for w in values]
    return masses


def _from_denominator(values: Floats) -> Indices | None:
    """Return counts with ``counts / counts.sum() == values`` to round-off, or None."""
    denominator = 1
    while (stray := _first_off(values, denominator)) is not None:
        # The first weight that is off says by which factor to refine.
        fraction = Fraction(stray).limit_denominator(_LARGEST_DENOMINATOR)
        finer = math.lcm(denominator, fraction.denominator)
        if finer == denominator or finer > _LARGEST_DENOMINATOR:
            return None
        denominator = finer
    counts = np.rint(values * denominator)
    counts = counts.astype(np.int64)
    # no such reading for weights whose counts would not make a distribution
    return counts if counts.sum() == denominator else None


def _first_off(values: Floats, denominator: int) -> float | None:
    """Return the first value that is no multiple of 1 / denominator to round-off."""
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        scaled = block * denominator
        counts = np.rint(scaled)
        off = np.abs(scaled - counts) > 4 * np.finfo(float).eps * counts
        if off.any():
            return float(block[off.argmax()])
    return None


def _from_binary(values: Floats, lowest: int) -> Integers:
    """Return the exact binary values of floats with exponents of at least `lowest`."""
    # value = (mantissa * 2^53) * 2^(exponent - 53), the first factor an integer.
    mantissa, exponent = np.frexp(values)
    exponent[values == 0] = lowest
    mantissa = np.ldexp(mantissa, _MANTISSA).astype(np.int64).astype(object)
    integers: Integers = mantissa << (exponent - lowest).astype(object)
    return integers


# -- the monotone coupling of masses on the line: the lowest meet the lowest -----------


def match(a: Integers, b: Integers) -> tuple[Indices, Indices, Integers]:
    """Couple integer masses of equal totals in order: indices i and j, and mass."""
    # North-west corner rule, all steps at once: along the common axis of cumulative
    # mass each atom occupies an interval, and between two successive ends of intervals
    # one atom of either distribution meets one of the other.
    ends = np.concatenate([np.cumsum(a), np.cumsum(b)])
    order = np.argsort(ends, kind="stable")  # merges two sorted runs in linear time
    ends = ends[order]
    last = np.append(ends[1:] != ends[:-1], True)
    mass = np.diff(ends[last], prepend=0)
    # The atom at the start of a share has as its index the number of atoms of the same
    # distribution that ended before; the two numbers add up to `ended`.
    ended = np.append(0, np.flatnonzero(last)[:-1] + 1)
    i = np.append(0, np.cumsum(order < len(a)))[ended]
    return i, ended - i, mass


# -- points with integer masses: checked, merged, rounded to a grid --------------------


def check_points(
    coordinate_scale: ArrayLike | None = None, **named: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the two named point sets as float arrays of rows, scaled.

    Scaled points may be moved, all by one vector: see :func:`moved_to_zero`.
    """
    checked = []
    for name, raw in named.items():
        points = np.asarray(raw, dtype=float)
        if points.ndim != 2 or 0 in points.shape:
            raise value_error(
                "transport.points_shape_invalid", name=name, shape=points.shape
            )
        if not np.isfinite(points).all():
            raise value_error("transport.values_not_finite", name=name)
        checked.append(points)
    first, second = checked
    if first.shape[1] != second.shape[1]:
        one, other = named
        raise value_error(
            "transport.points_column_counts_differ",
            first=one,
            second=other,
            n_first=first.shape[1],
            n_second=second.shape[1],
        )
    if coordinate_scale is None:
        return first, second
    scale = np.asarray(coordinate_scale, dtype=float)
    if scale.shape != first.shape[1:] or not np.all((scale > 0) & np.isfinite(scale)):
        raise value_error(
            "transport.coordinate_scale_invalid",
            shape=first.shape[1],
            coordinate_scale=coordinate_scale,
        )
    # scaled as they are, points far from zero would round by more than they are apart
    first, second, _ = moved_to_zero(first, second)
    return first / scale, second / scale


def moved_to_zero(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return two point sets without what all of them have in common, and that vector.

    Coordinates stay as they are where a difference might be rounded.
    """
    low = np.minimum(first.min(axis=0), second.min(axis=0))
    high = np.maximum(first.max(axis=0), second.max(axis=0))
    # exact within a factor of two (Sterbenz 1974, Floating-point computation)
    with np.errstate(over="ignore"):
        far = ((low > 0) & (high <= 2 * low)) | ((high < 0) & (low >= 2 * high))
    origin = np.where(far, low, 0.0)
    if not far.any():
        return first, second, origin
    return first - origin, second - origin, origin


def merge(points: Floats, masses: Integers) -> tuple[Floats, Integers]:
    """Return the distinct rows with mass above zero, and their masses added up."""
    points, masses = points[masses > 0], masses[masses > 0]
    order = np.lexsort(points.T)
    points, masses = points[order], masses[order]
    # In lexicographic order equal rows are neighbours.
    new = np.ones(len(points), dtype=bool)
    new[1:] = (points[1:] != points[:-1]).any(axis=1)
    return points[new], np.add.reduceat(masses, np.flatnonzero(new))


def finest_grid(
    first: Floats, second: Floats, max_cells: float
) -> tuple[Floats, float]:
    """Return corner (d,) and width of the finest grid within a budget of cells.

    The numbers of cells of the two sets have a product of at most `max_cells`. The
    width is the smallest that fits, to 5 percent.
    """
    corner = np.minimum(first.min(axis=0), second.min(axis=0))
    extent = np.maximum(first.max(axis=0), second.max(axis=0)) - corner
    # one cell holds everything, even after round-off
    fits = coarsest = float(extent.max()) * 1.001
    ratio = 0.5
    # cells finer than the round-off of the coordinates would tell nothing apart
    while ratio < 0.95 and fits > coarsest * 2.0**-50:
        width = fits * ratio
        cells = _count_cells(first, corner, width) * _count_cells(second, corner, width)
        # Halve while the cells fit; each time they do not, try a milder refinement,
        # down to one of 5 percent. More cells than allowed are never accepted.
        if cells <= max_cells:
            fits = width
        else:
            ratio = ratio**0.5
    return corner, fits


def _count_cells(points: Floats, corner: Floats, width: float) -> int:
    cells = np.floor((points - corner) / width).astype(np.int64).astype(np.uint64)
    # a hash of each row: to choose a width, a count that is right except collisions do
    weights = np.uint64(0x9E3779B97F4A7C15) ** np.arange(
        1, points.shape[1] + 1, dtype=np.uint64
    )
    return len(np.unique(cells @ weights))


def round_to_grid(points: Floats, corner: Floats, width: float) -> Floats:
    """Return the centres of the cells that hold the points, row by row."""
    return corner + (np.floor((points - corner) / width) + 0.5) * width
