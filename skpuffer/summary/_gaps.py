"""Contributions side by side, and beside them counts of records and of gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpuffer._template._elsewhere import Contribution, Part
from skpuffer.kernel.queries import NORMS, stacked_sensitivity
from skpuffer.releases import Sensitivity

from ._private_statistic import usable_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices


# Of no number at all.
_NOTHING = Sensitivity(
    add_remove=dict.fromkeys(NORMS, 0.0), replace=dict.fromkeys(NORMS, 0.0)
)
# Of a number that is one for each record: a replaced record changes nothing.
_CONSTANT = replace(_NOTHING, add_remove=dict.fromkeys(NORMS, 1.0))


@dataclass(frozen=True)
class Ones:
    """Contribution to a count: the same number for each record.

    Parameters
    ----------
    weight : float, default=1.0
        That number; see :func:`count_weight`.
    """

    weight: float = 1.0

    dim = 1

    @property
    def is_count(self) -> bool:
        """Whether contributions are ones."""
        return self.weight == 1.0

    @property
    def units(self) -> tuple[float, ...]:
        """In which contributions are counts."""
        return (1 / self.weight,)

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        return _CONSTANT.times(self.weight)

    @property
    def by_column(self) -> dict[None, Sensitivity]:
        """Sensitivity of the contributions, which are of no column."""
        return {None: self.sensitivity}

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, 1)."""
        return np.full((np.shape(X)[0], 1), self.weight)

    n_parts = 0

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Nothing but the number of records, which is counted anyway."""
        return []

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        return self.weight * counts

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        if cells is None:
            cells = np.zeros(len(X), dtype=np.intp)
        counts: Floats = np.bincount(cells, weights, n_cells)[:, None].astype(float)
        return self.weight * counts

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return np.zeros(len(gaps))


def count_weight(beside: Sensitivity, norm: float) -> float:
    """Weight at which a count of records beside sums does least harm to their ratio.

    Notes
    -----
    A record adds numbers of the norm S at most, and beside them the weight w. Noise in
    proportion to ``(S**p + w**p) ** (1 / p)`` gives the mean of a column, at r
    half-ranges from the middle of its bounds, an error in proportion to that times
    ``sqrt(1 + (r / w)**2)``, to the first order. It is least where ``w ** (p + 2) =
    r**2 S**p``, which is returned for r = 1/2, and S for the maximum norm. A norm that
    `beside` lacks is read as 2.

    Examples
    --------
    >>> from skpuffer.summary._gaps import count_weight
    >>> from skpuffer.summary._mean import _SENSITIVITY
    >>> round(count_weight(_SENSITIVITY[1], 2.0) ** 2, 3)
    0.5
    """
    if norm not in beside.add_remove:
        norm = 2.0
    most = beside.add_remove[norm]
    if math.isinf(norm):
        return most
    return float((most**norm / 4) ** (1 / (norm + 2)))


@dataclass(frozen=True)
class Gaps:
    """Contribution to counts of missing values: a weight for each that is missing.

    Parameters
    ----------
    positions : tuple of int
        Columns whose values may be missing.
    marks : tuple of int
        Columns that are one where these are missing, and zero elsewhere.
    weights : tuple of float
        By which contributions are larger than counts; see :func:`gap_weight`.
    """

    positions: tuple[int, ...]
    marks: tuple[int, ...]
    weights: tuple[float, ...]

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.positions)

    @property
    def is_count(self) -> bool:
        """Whether contributions are zeros and ones."""
        return set(self.weights) <= {1.0}

    @property
    def units(self) -> tuple[float, ...]:
        """In which contributions are counts."""
        return tuple(1 / weight for weight in self.weights)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return of_each_record(self, X)

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self.dim

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Whether a value is missing, for each column; see :meth:`Moments.parts`."""
        return [Part(columns[at] > 0, is_count=True) for at in self.marks]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        found: Floats = sums * np.asarray(self.weights)
        return found

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        if cells is None:
            cells = np.zeros(len(X), dtype=np.intp)
        share = 1.0 if weights is None else weights
        counts = [np.bincount(cells, X[:, at] * share, n_cells) for at in self.marks]
        columns: Floats = np.reshape(counts, (self.dim, n_cells)).T.astype(float)
        found: Floats = columns * np.asarray(self.weights)
        return found

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        moves = np.where(gaps[:, list(self.marks)] > 0, self.weights, 0.0)
        lengths: Floats = np.linalg.norm(moves, norm, axis=1)
        return lengths


def gap_weight(
    present: Sensitivity,
    relation: str,
    norm: float | Sequence[float],
    least: float = 0.0,
) -> float:
    """Largest weight of a gap that adds nothing to the sensitivity of a column.

    A norm that `present` lacks is read as 2. A record has at least the share `least` of
    its value. :func:`with_gaps` is right for any weight.
    """
    if not isinstance(norm, float):
        return min(gap_weight(present, relation, one, least) for one in norm)
    if norm not in present.add_remove:
        norm = 2.0
    alone = whole = present.add_remove[norm]
    part = least * alone
    if relation == "replace" and present.replace is not None:
        whole = present.replace[norm]
        part = _across(alone, whole, least)
    if math.isinf(norm):
        return whole / (1 - least)
    rest = max(0.0, whole**norm - part**norm)
    return float(rest ** (1 / norm) / (1 - least)) or alone


def _across(alone: float, apart: float, least: float) -> float:
    """Distance, at most, of a whole value and the `least` share of another."""
    return least * apart + (1 - least) * alone


def with_count(present: Sensitivity, weight: float, lacks: bool) -> Sensitivity:
    """Sensitivity of what a record adds with its value: a count of such records.

    Each adds `weight` to the count. If it may lack its value it then adds nothing.
    """
    held = present.add_remove.items()
    alone = {n: float(np.linalg.norm([v, weight], n)) for n, v in held}
    gone = alone if lacks else dict.fromkeys(alone, 0.0)
    apart = {n: max(v, gone[n]) for n, v in (present.replace or {}).items()}
    return Sensitivity(alone, apart)


def with_gaps(present: Sensitivity, weight: float, least: float = 0.0) -> Sensitivity:
    """Sensitivity of what a record adds to one column: its value, or a gap's weight.

    A record's vector (v, g) is (v, 0) or (0, weight). With a and r the sensitivities of
    v to a record that is added or removed, and to one that is replaced:

    - *Added or removed*, the sum moves by max(a, weight) in any norm.
    - *Replaced*, two values are r apart at most; a value and a gap are
      ``(a**p + weight**p) ** (1 / p)`` apart in the norm of order p, and max(a, weight)
      in the maximum norm.

    Each bound is attained where a and r are. A record may also have a share s of its
    value and the rest of a gap, ``(s v, (1 - s) weight)`` with s between `least` and
    one. The gap is then ``(least v, (1 - least) weight)``. Norms are convex, so they
    are largest where both records have a share of one or of `least`; and v is
    ``least r + (1 - least) a`` from the `least` share of another at most, by the
    triangle inequality.

    Examples
    --------
    >>> from skpuffer.summary._gaps import with_gaps
    >>> from skpuffer.summary._mean import _SENSITIVITY
    >>> mean = with_gaps(_SENSITIVITY[1], 1.0)
    >>> mean.add_remove == _SENSITIVITY[1].add_remove
    True
    >>> mean.replace
    {1.0: 2.0, 2.0: 2.0, inf: 2.0}
    """
    alone, apart = present.add_remove, present.replace or {}
    gap = (1 - least) * weight

    def beside(part: float, norm: float) -> float:
        return float(np.linalg.norm([part, gap], norm))

    return Sensitivity(
        add_remove={n: max(alone[n], beside(least * alone[n], n)) for n in alone},
        replace={
            n: max(apart[n], beside(_across(alone[n], apart[n], least), n))
            for n in alone
        },
    )


@dataclass(frozen=True)
class Stacked:
    """Contributions side by side."""

    blocks: tuple[Any, ...]

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return sum(block.dim for block in self.blocks)

    @property
    def is_count(self) -> bool:
        """Whether all contributions are zeros and ones that count something."""
        # noise on the integers is for whole numbers only
        return all(block.is_count for block in self.blocks)

    @property
    def units(self) -> tuple[float, ...]:
        """Units of all blocks, in order."""
        return tuple(unit for block in self.blocks for unit in block.units)

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        # Coordinates are put together by column, of which a record is in all: what it
        # adds to one is its value's, in all blocks, or its gap's.
        columns: dict[Any, list[Sensitivity]] = {}
        weights: dict[int, float] = {}
        for block in self.blocks:
            if isinstance(block, Gaps):
                weights |= zip(block.positions, block.weights, strict=True)
                continue
            for position, sensitivity in block.by_column.items():
                columns.setdefault(position, []).append(sensitivity)
        for position in weights:
            columns.setdefault(position, [_NOTHING])
        found = {at: stacked_sensitivity(parts) for at, parts in columns.items()}
        return stacked_sensitivity(
            with_gaps(held, weights[at]) if at in weights else held
            for at, held in found.items()
        )

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return np.hstack([block(X) for block in self.blocks])

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Those of all blocks, in order; see :meth:`Moments.parts`."""
        return [part for block in self.blocks for part in block.parts(columns)]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        found, begin = [], 0
        for block in self.blocks:
            end = begin + block.n_parts
            found.append(block.from_parts(sums[:, begin:end], counts))
            begin = end
        return np.hstack(found)

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        return np.hstack([b.sums(X, cells, n_cells, weights) for b in self.blocks])

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        parts = [block.move(gaps, norm) for block in self.blocks]
        moves: Floats = np.linalg.norm(parts, norm, axis=0)
        # a value and a gap are never moved both as far as they can be
        return np.minimum(moves, self.sensitivity.value("replace", norm, None))


# -- moments of columns whose values may be missing ------------------------------------


class ReadMoments(NamedTuple):
    """Moments of columns over the records that have a value, with noise.

    Parameters
    ----------
    first, second : ndarray of shape (n_columns,)
        Means of u in [-1, 1] and of ``u**2 - 1/2``, of which the latter may be None;
        NaN where hardly any value is there.
    first_std, second_std : ndarray of shape (n_columns,)
        Standard deviations that the noise gives them, those of ratios by the delta
        method.
    below, origin : ndarray of shape (n_columns,)
        Deviation of the divisor of `first` as a share of it, zero where it is public;
        and the value of `first` where the number divided is zero.
    """

    first: Floats
    second: Floats | None
    first_std: Floats
    second_std: Floats | None
    below: Floats
    origin: Floats

    def select(self, places: Sequence[int]) -> ReadMoments:
        """Return the moments of some columns."""
        return ReadMoments(*(p if p is None else p[list(places)] for p in self))  # type: ignore[arg-type] # as they were


def ratio_std(ratio: Floats, above: Floats, below: Floats, size: Floats) -> Floats:
    """Standard deviation of a ratio of two noisy numbers, by the delta method.

    `above` and `below` are the deviations of the independent numerator and denominator,
    and `size` is the denominator. It is right to the first order in the noise.
    """
    found: Floats = np.hypot(above, ratio * below) / size
    return found


def ratio_interval(
    ratio: Floats, above: Floats, below: Floats, sample: Floats, width: float
) -> tuple[Floats, Floats]:
    """Ends of intervals around ratios of two noisy numbers; NaN where nothing is known.

    `above` and `below` are the independent deviations of both, in units of the
    denominator, and `sample` is half the width of what else moves the ratio.

    For a ratio r of deviations t and d, they are the numbers m with
    ``(r - m)**2 <= width**2 (t**2 + m**2 d**2)`` (Fieller 1954), which hold as often as
    said however noisy the denominator is.
    """
    lead = 1 - (width * below) ** 2
    rest = ratio**2 - (width * above) ** 2 - sample**2
    root = np.sqrt(np.maximum(ratio**2 - lead * rest, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (
            np.where(lead > 0, (ratio + s * root) / lead, np.nan) for s in (-1, 1)
        )
    return low, high


@dataclass(frozen=True)
class MomentsWithGaps(Stacked):
    """Contribution to the moments of all columns of a table, some with gaps.

    Parameters
    ----------
    blocks : tuple
        Moments of columns that have no gaps, if any, of those that have, and `Gaps`;
        then `Ones`, where the number of records is private.
    """

    def total(self, value: Floats, noise_std: Floats) -> tuple[Floats, Floats]:
        """Return the mean weight of records and its deviation: one, or as counted."""
        if isinstance(self.blocks[-1], Ones):
            return value[-1], noise_std[-1]
        return np.ones(()), np.zeros(())

    def read(
        self,
        value: Floats,
        noise_std: Floats,
        n_records: int,
        total: tuple[Floats, Floats] | None = None,
    ) -> ReadMoments:
        """Return the moments of each column off the noisy vector."""
        blocks: tuple[Any, ...] = self.blocks
        counted = isinstance(blocks[-1], Ones)
        *moments, gaps = blocks[:-1] if counted else blocks
        all_of, all_std = self.total(value, noise_std) if total is None else total
        varies = counted or total is not None
        ends = np.cumsum([block.dim for block in blocks])[:-1]
        held, noise = (
            np.split(each / np.asarray(self.units), ends) for each in (value, noise_std)
        )
        order, d = moments[0].order, sum(len(m.positions) for m in moments) + gaps.dim
        found, spread = np.full((2, d), 0.5), np.zeros((2, d))
        below, origin = np.zeros((2, d))
        missing = np.asarray(gaps.units) * held[len(moments)]
        missing_std = np.asarray(gaps.units) * noise[len(moments)]
        for block, means, stds in zip(moments, held, noise, strict=False):
            at = list(block.positions)
            means, stds = means.reshape(order, -1), stds.reshape(order, -1)
            if block.marks or varies:
                n = n_records
                gone, gone_std = (missing, missing_std) if block.marks else (0.0, 0.0)
                spread_of = np.hypot(all_std, gone_std)
                size = usable_counts(n * (all_of - gone), n * spread_of) / n
                means = means / size
                stds = ratio_std(means, stds, spread_of, size)
                below[at] = spread_of / size
            found[:order, at], spread[:order, at] = means, stds
        # of zeros and ones, whose squares about the middle are all the same
        at = list(gaps.marks)
        if varies:
            size = usable_counts(n_records * all_of, n_records * all_std) / n_records
            missing = missing / size
            missing_std = ratio_std(missing, missing_std, all_std, size)
            below[at] = all_std / size
        found[0, at], spread[0, at] = 2 * missing - 1, 2 * missing_std
        spread[1, at] = 2 * spread[0, at]
        origin[at] = -1.0
        if order == 1:
            return ReadMoments(found[0], None, spread[0], None, below, origin)
        return ReadMoments(found[0], found[1], spread[0], spread[1], below, origin)


def of_each_record(contribution: Contribution, X: ArrayLike) -> Floats:
    """Return the contributions of the records of an array, from their parts.

    Parameters
    ----------
    contribution : object
        With the methods `parts` and `from_parts`: see :class:`TableElsewhere`.
    X : array-like of shape (n, n_features)

    Returns
    -------
    ndarray of shape (n, dim)
    """
    X = np.asarray(X)
    # what overflows is far outside of all bounds, and clipped to them
    with np.errstate(over="ignore"):
        parts = contribution.parts(list(X.T))
    # a record is a sum of one
    values = [np.asarray(part.values) for part in parts]
    alone = np.reshape(values, (len(parts), len(X))).T.astype(float)
    sums: Floats = contribution.from_parts(alone, np.ones((len(X), 1)))
    return sums
