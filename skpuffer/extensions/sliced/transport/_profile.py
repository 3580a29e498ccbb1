"""Slice profiles: directions along which vectors are looked at, and their weights."""

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self, TypeAlias

import joblib
import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import PrivacyWarning, Statement, value_error
from skpuffer.kernel.numbers import Floats, Indices, Integers, check_count
from skpuffer.utils._checks import check_masses

#: How far a direction's length may be from one.
_UNIT = 1e-8

#: Least eigenvalue of the frame, times the dimension, below which a profile looks along
#: some direction much less than along others.
_UNEVEN = 0.1


@dataclass(frozen=True, eq=False)
class SliceProfile:
    """Directions along which a vector is projected, and their weights.

    Make one by a constructor. Profiles of the same directions and weights are equal.

    Parameters
    ----------
    dim : int
        Number of coordinates.
    directions : ndarray of shape (n_slices, dim) or None
        Unit vectors of positive weight; None is all directions, uniformly.
    weights : ndarray of shape (n_slices,) or None
        Positive, summing to one.

    Examples
    --------
    >>> from skpuffer.transport import SliceProfile
    >>> profile = SliceProfile.finite([[1, 0], [0, 1], [0.6, 0.8]])
    >>> profile.n_slices, profile.rank
    (3, 2)
    >>> SliceProfile.uniform(5)
    SliceProfile.uniform(dim=5)
    """

    dim: int
    directions: Floats | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # its name, by which profiles are told apart, is worked out once
        for array in (self.directions, self.weights):
            if array is not None:
                array.setflags(write=False)

    # -- constructors -------------------------------------------------------------

    @classmethod
    def finite(
        cls,
        slices: ArrayLike,
        slice_weights: ArrayLike | None = None,
        *,
        normalize: bool = False,
        allow_degenerate: bool = False,
    ) -> Self:
        """Return the profile of some directions.

        Parameters
        ----------
        slices : array-like of shape (n_slices, dim)
            Unit vectors, one a row.
        slice_weights : array-like of shape (n_slices,), default=None
            Equal if None. Directions without weight are left out.
        normalize : bool, default=False
            Whether to divide each direction by its length first.
        allow_degenerate : bool, default=False
            Whether the directions may leave some direction out, with no promise along
            it.

        Returns
        -------
        SliceProfile

        Raises
        ------
        ValueError
            If the directions are no unit vectors or do not span the space.
        """
        given = np.asarray(slices)
        if given.ndim != 2 or not given.size or given.dtype.kind not in "iuf":
            raise value_error("sliced.slices_shape_invalid", shape=given.shape)
        given = given.astype(float) + 0.0  # of two zeros the one without a sign
        lengths = np.linalg.norm(given, axis=1)
        if normalize:
            if not np.all(np.isfinite(lengths) & (lengths > 0)):
                raise value_error("sliced.slices_zero_or_infinite")
            given = given / lengths[:, None]
        # a NaN has no length of one either
        elif not np.all(np.abs(lengths - 1) <= _UNIT):
            raise value_error("sliced.slices_not_unit")
        masses = check_masses(len(given), slice_weights=slice_weights)
        counted = masses > 0
        profile = cls(given.shape[1], given[counted], masses[counted])
        if profile.rank < profile.dim and not allow_degenerate:
            raise value_error(
                "sliced.slices_not_spanning", rank=profile.rank, dim=profile.dim
            )
        if profile.rank == profile.dim and (
            profile.least_share * profile.dim < _UNEVEN
        ):
            uneven = Statement(
                "sliced.slices_nearly_degenerate",
                least_share=profile.least_share,
                even_share=1 / profile.dim,
            )
            warnings.warn(PrivacyWarning(uneven), stacklevel=2)
        return profile

    @classmethod
    def basis(cls, dim: int) -> Self:
        """Return the profile of the coordinate axes, with equal weights."""
        return cls.finite(np.eye(check_count(dim=dim)))

    @classmethod
    def sampled(cls, dim: int, n_slices: int = 200, *, random_state: int = 0) -> Self:
        """Return a profile of directions drawn uniformly, with equal weights.

        Parameters
        ----------
        dim : int
        n_slices : int, default=200
            At least `dim`.
        random_state : int, default=0
            Public seed.

        Returns
        -------
        SliceProfile
            A promise on it is not one on the uniform profile.
        """
        dim = check_count(dim=dim)
        n_slices = check_count(least=dim, n_slices=n_slices)
        seed = check_count(least=0, random_state=random_state)
        rng = np.random.default_rng(seed)
        return cls.finite(rng.normal(size=(n_slices, dim)), normalize=True)

    @classmethod
    def uniform(cls, dim: int) -> Self:
        """Return the profile of all directions, uniformly on the sphere."""
        return cls(check_count(dim=dim))

    # -- what it is ---------------------------------------------------------------

    @property
    def is_finite(self) -> bool:
        """Whether it has finitely many directions."""
        return self.directions is not None

    @property
    def n_slices(self) -> int | None:
        """Number of directions; None is infinitely many."""
        return None if self.directions is None else len(self.directions)

    @cached_property
    def frame(self) -> Floats:
        """Frame operator, the weighted mean of ``u u'``, of shape (dim, dim)."""
        if self.directions is None:
            return np.eye(self.dim) / self.dim
        assert self.weights is not None
        return self.directions.T @ (self.weights[:, None] * self.directions)

    @cached_property
    def rank(self) -> int:
        """Dimension of what the directions span."""
        if self.directions is None:
            return self.dim
        return int(np.linalg.matrix_rank(self.directions))

    @cached_property
    def least_share(self) -> float:
        """Least eigenvalue of the frame: zero if some direction is left out."""
        if self.rank < self.dim:
            return 0.0
        return max(float(np.linalg.eigvalsh(self.frame)[0]), 0.0)

    @cached_property
    def name(self) -> str:
        """Identifier that equal profiles share, and no others."""
        if self.directions is None:
            return f"uniform:{self.dim}"
        assert self.weights is not None
        parts = self.directions.tolist(), self.weights.tolist()
        return f"{self.n_slices}x{self.dim}:{joblib.hash(parts)[:16]}"

    def __sklearn_clone__(self) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SliceProfile) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        if self.directions is None:
            return f"SliceProfile.uniform(dim={self.dim})"
        return f"SliceProfile(n_slices={self.n_slices}, dim={self.dim})"


# -- largest gaps of sorted projections, of which only few are sorted ------------------
# How many projections of a direction fall into each of equal buckets says in which
# bucket each of the sorted projections is. The buckets that meet furthest apart hold
# the largest gap, as on the line (see `_buckets`), and only what they hold is sorted. A
# distribution is counted once for all pairs.


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
    """Return W_inf of pairs along each direction, or None if sorting is as quick.

    `rows` (n_directions, n_points): finite projections of each distribution. They are
    overwritten if gaps are returned. `pairs`: each distribution is in one at least.
    `matches`: for each pair.

    Returns
    -------
    gaps : ndarray of shape (n_pairs, n_directions) or None
        To the last bit what sorts of all rows would give.
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

    Atoms of buckets i and j differ by |i - j| - 1 to |i - j| + 1 buckets; round-off is
    less.
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
