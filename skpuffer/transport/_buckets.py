"""W_inf on the line by counting: only atoms that may be furthest apart are sorted."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skpuffer.kernel.numbers import Floats, Indices, Integers

from ._masses import MeantMasses, match

# Below as many atoms two sorts take no longer: of values alone, and with masses.
_FEW = 500_000
_FEW_WITH_MASSES = 10_000
# Values handled at once: the temporaries stay in cache.
_BLOCK = 65536
# Buckets for each root of the number of atoms: few gaps of two samples are as close to
# the largest as one bucket is wide, and the counts fit into cache.
_FINENESS = 16
# Numbers of buckets fit into 16 bits.
_MOST = 2**16
# Atoms of either law that are looked at first.
_GLANCE = 1000
# With a larger share of the atoms to be sorted, a sort of all is as quick.
_WORTH_SORTING = 0.2


def gap_by_buckets(
    x: Floats, a: MeantMasses, y: Floats, b: MeantMasses
) -> float | None:
    """Return W_inf between atoms in any order, or None if a sort of all is as quick.

    `a` and `b` are the masses of the finite values `x` (n,) and `y` (m,).
    """
    n_atoms = len(x) + len(y)
    counted = a.raw is None and b.raw is None
    few = n_atoms < (_FEW if counted else _FEW_WITH_MASSES)
    if few or not (a.adds_exactly and b.adds_exactly):
        return None
    low = min(float(x.min()), float(y.min()))
    extent = max(float(x.max()), float(y.max())) - low
    size = min(_MOST, int(_FINENESS * math.sqrt(n_atoms)))
    scale = (size - 1) / extent if extent > 0 else math.inf
    if not 0 < scale < math.inf:
        return None
    tied, alike = _glance(x, y, 2 / scale)
    if alike or (tied and counted):
        return None
    u, v = (_Buckets.of(*law, low, scale, size) for law in ((x, a), (y, b)))
    # each law's masses in units of the other's total: one total for both
    total_u, total_v = u.total, v.total
    shared = math.gcd(total_u, total_v)
    u.rescale(total_v // shared)
    v.rescale(total_u // shared)
    i, j, shared_mass = match(u.masses, v.masses)
    # empty buckets below all atoms meet without mass
    i, j = i[shared_mass > 0], j[shared_mass > 0]
    if tied:
        first, second = u.only_values(), v.only_values()
        if first is not None and second is not None:
            return float(np.abs(first[i] - second[j]).max())
    # Atoms of buckets i and j are more than |i - j| - 1 and less than |i - j| + 1
    # buckets apart; round-off moves no atom by as much as 2**-30 of a bucket.
    apart = np.abs(i - j)
    furthest = apart >= apart.max() - 2
    near, far = u.chosen(i[furthest]), v.chosen(j[furthest])
    if len(near) + len(far) > _WORTH_SORTING * n_atoms:
        return None
    return _largest_gap(*u.intervals(near), *v.intervals(far))


def _glance(x: Floats, y: Floats, width: float) -> tuple[bool, bool]:
    """Whether atoms repeat, and whether they seem to meet about equally far apart."""
    some = np.arange(min(_GLANCE, len(x), len(y)))
    first, second = (
        np.sort(law[some * len(law) // len(some)].astype(float)) for law in (x, y)
    )
    tied = bool(np.count_nonzero(np.diff(first)) < len(first) / 2)
    gaps = np.abs(first - second)
    return tied, bool(np.median(gaps) > gaps.max() - width)


@dataclass
class _Buckets:
    """One law by buckets."""

    values: Floats
    meant: MeantMasses
    index: Indices
    masses: Integers
    unit: int = 1

    @classmethod
    def of(
        cls, values: Floats, meant: MeantMasses, low: float, scale: float, size: int
    ) -> Self:
        index = np.empty(len(values), dtype=np.uint16)
        scaled = np.empty(_BLOCK)
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            part = scaled[: len(block)]
            np.subtract(block, low, out=part, dtype=float)
            np.multiply(part, scale, out=part)
            index[start : start + _BLOCK] = part  # rounded down
        return cls(values, meant, index, meant.sums(index, size))

    @property
    def total(self) -> int:
        return int(self.masses.sum())

    def rescale(self, unit: int) -> None:
        """Count masses in finer units, as Python integers if need be."""
        self.unit = unit
        if unit * self.total >= 2**62:
            self.masses = self.masses.astype(object)
        self.masses = self.masses * unit

    def chosen(self, buckets: Indices) -> Indices:
        """Atoms of some buckets."""
        some = np.zeros(len(self.masses), dtype=bool)
        some[buckets] = True
        # in blocks, as so few are found
        return np.concatenate(
            [
                start + np.flatnonzero(some[self.index[start : start + _BLOCK]])
                for start in range(0, len(self.index), _BLOCK)
            ]
        )

    def only_values(self) -> Floats | None:
        """Value of each bucket, or None if some bucket holds two."""
        values = np.zeros(len(self.masses))
        values[self.index] = self.values
        for start in range(0, len(self.values), _BLOCK):
            part = slice(start, start + _BLOCK)
            if (values[self.index[part]] != self.values[part]).any():
                return None
        return values

    def intervals(self, atoms: Indices) -> tuple[Floats, Integers, Integers]:
        """Values of all the atoms of some buckets, sorted, and which mass is theirs."""
        values = self.values[atoms].astype(float, copy=False)
        order = np.argsort(values)
        values, atoms = values[order], atoms[order]
        masses = self.meant.of(atoms).astype(self.masses.dtype) * self.unit
        index = self.index[atoms]
        # what lies below in the buckets that were left out
        chosen = np.zeros_like(self.masses)
        chosen[index] = self.masses[index]
        left_out = np.cumsum(self.masses - chosen)[index]
        ends = np.cumsum(masses) + left_out
        held = masses > 0
        return values[held], (ends - masses)[held], ends[held]


def _largest_gap(
    x: Floats,
    x_starts: Integers,
    x_ends: Integers,
    y: Floats,
    y_starts: Integers,
    y_ends: Integers,
) -> float:
    """Largest gap of sorted atoms that share mass, given as intervals of it."""
    # first and last of the atoms that each one meets, if any is here
    first = np.searchsorted(y_ends, x_starts, side="right")
    last = np.searchsorted(y_starts, x_ends, side="left") - 1
    met = first <= last
    x, lowest, highest = x[met], y[first[met]], y[last[met]]
    return float(np.maximum(np.abs(x - lowest), np.abs(x - highest)).max())
