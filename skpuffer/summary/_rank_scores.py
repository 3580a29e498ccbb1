"""Scores of candidates for a quantile: how many records lie on the wrong side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.utils._types import Floats, Indices

__all__ = ["RankScores", "grid_size", "halvings"]

#: Candidates of a grid at most.
MOST = 2**24

# Cells of the public grid within the bounds where no resolution is given, and in one
# step of a resolution.
_FINE, _IN_STEP = 2**52, 2**20

# Within which a value is a multiple of the resolution, in steps: those that are written
# in decimals are rounded.
_SAME = 1e-8


class Halving(NamedTuple):
    """Choice of one quantile among the records between two that were chosen before.

    Parameters
    ----------
    place : int
        Of its level, in order.
    level : float
        Of the quantile among these records, in (0, 1).
    left, right : int
        Places of the two; -1 and the number of levels stand for the bounds.
    """

    place: int
    level: float
    left: int
    right: int


def halvings(levels: tuple[float, ...]) -> list[list[Halving]]:
    """Return which quantiles are chosen in which round, so that each halves the rest.

    Parameters
    ----------
    levels : tuple of float
        In (0, 1), increasing.

    Returns
    -------
    list of list of Halving
        The logarithm of the number of levels, to the base of two, rounded up.
    """
    ends = [0.0, *levels, 1.0]  # of the place p the one at p + 1
    rounds, open_ranges = [], [(-1, len(levels))]
    while open_ranges:
        chosen, inside = [], []
        for left, right in open_ranges:
            place = (left + right) // 2
            low, high = ends[left + 1], ends[right + 1]
            level = (ends[place + 1] - low) / (high - low)
            chosen.append(Halving(place, level, left, right))
            inside += [(left, place), (place, right)]
        rounds.append(chosen)
        open_ranges = [(a, b) for a, b in inside if b - a > 1]
    return rounds


@dataclass(frozen=True)
class RankScores:
    """Scores of the values of a column as its quantiles.

    With L records below a value and G above it, its score for the quantile at the
    level q is minus ``max((1 - q) L - q (n - L), q G - (1 - q) (n - G), 0)``, with n
    the records of the table at hand: how many it is away from the rank of the quantile.
    Values between two records share a score. The candidates are the middles of 2**52
    equal cells within the bounds, and records are rounded to the ends of these cells.
    So what is chosen is a public number, whose last digits say nothing of a record.
    With a resolution, only its multiples from the lower bound are candidates.

    Of several quantiles the middle one is chosen first, and those on either side of it
    in later rounds, each among the records between two that were chosen before.

    Parameters
    ----------
    position : int
        Of the column.
    levels : tuple of float
        In (0, 1), increasing, one choice each.
    low, high : float
        Public bounds: what lies outside is read as the nearer one.
    resolution : float or None

    Notes
    -----
    A record that is added or removed moves ``(1 - q) L - q (n - L)`` by 1 - q or -q,
    and ``q G - (1 - q) (n - G)`` by q or -(1 - q). So no score moves by more than
    max(q, 1 - q), and the range is at most twice that; it is attained by a record on
    the far side of the quantile from the longer tail. For the median it is one: what
    scores lose on one side of the record they gain on the other. If a record is
    replaced, either moves by one at most, and the range is at most two. The number of
    records need not be known, nor public, for any of this.

    Given the choices of earlier rounds, those of one are made on disjoint records: one
    that is added or removed is among those of one choice only. One that is replaced may
    be taken from those of one and added to those of another, and then both move.

    With several levels and a resolution, records of a multiple are spread evenly over
    the cell about it, and what is chosen between records is read as the nearest
    multiple: so records of one value may lie on both sides of a quantile.

    References
    ----------
    Kaplan, Schnapp and Stemmer (2022), Differentially private approximate quantiles,
    for choices that halve the rest, and records spread to tell them apart.

    Examples
    --------
    >>> from skpuffer.summary._rank_scores import RankScores
    >>> RankScores(0, (0.25,), 0.0, 1.0).ranges("add_remove")
    (1.5,)
    >>> RankScores(0, (0.25, 0.5, 0.75), 0.0, 1.0).ranges("add_remove")
    (1.0, 1.0)
    """

    position: int
    levels: tuple[float, ...]
    low: float
    high: float
    resolution: float | None = None

    @property
    def dim(self) -> int:
        """Number of choices."""
        return len(self.levels)

    @property
    def is_finite(self) -> bool:
        """Whether a grid of values is chosen from, by their scores alone."""
        return self.resolution is not None and self.dim == 1

    #: Cells and multiples are public.
    on_grid: ClassVar[bool] = True

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return how far scores move apart with one record, for each round."""
        found = []
        for chosen in halvings(self.levels):
            alone = sorted(2 * max(one.level, 1 - one.level) for one in chosen)
            # what is not known to cost less is a record that is replaced: among the
            # records of one choice, or from those of one to those of another
            across = sum(alone[-2:]) if len(alone) > 1 else 0.0
            found.append(alone[-1] if relation == "add_remove" else max(2.0, across))
        return tuple(found)

    def choose(self, X: Any, noise: Noise, rng: np.random.Generator) -> Floats:
        """Choose a value for each level, by scores with noise of their own."""
        # a map that changed since it was read may hold NaN: as any other number
        x = np.nan_to_num(np.asarray(X)[:, self.position], nan=self.high)
        x = np.clip(x, self.low, self.high)
        if self.resolution is None:
            width = self.high - self.low
            ends = np.rint((x - self.low) / width * _FINE).astype(np.int64)
            found = self._between(np.sort(ends), _FINE, noise, rng)
            return np.clip(
                self.low + width * ((found + 0.5) / _FINE), self.low, self.high
            )
        # in steps from the lower bound; as written in decimals, a multiple may be off
        step, size = self.resolution, grid_size(self.low, self.high, self.resolution)
        steps = (x - self.low) / step
        nearest = np.rint(steps)
        steps = np.where(np.abs(steps - nearest) < _SAME, nearest, steps)
        if self.is_finite:
            below = np.cumsum(np.bincount(np.floor(steps).astype(int), minlength=size))
            upto = np.cumsum(np.bincount(np.ceil(steps).astype(int), minlength=size))
            below = np.concatenate([[0], below[: size - 1]])
            level = self.levels[0]
            at = _chosen(below, upto[:size], level, len(x), 0.0, noise, rng)
            found = np.array([at])
        else:
            # a multiple is the middle of a step
            half = _IN_STEP // 2
            ends = np.rint(steps * _IN_STEP).astype(np.int64) + half
            tied = steps == nearest
            ends[tied] += rng.integers(-half, half, np.count_nonzero(tied))
            inside = self._between(np.sort(ends), size * _IN_STEP, noise, rng)
            found = inside // _IN_STEP
        values: Floats = np.minimum(self.low + step * found, self.high)
        return values

    def _between(
        self, ends: Indices, size: int, noise: Noise, rng: np.random.Generator
    ) -> Indices:
        """Choose cells of a grid, by sorted records at the ends of cells."""
        # by place, from the lower bound to the upper one: a cell, and the records
        # below it
        cells = np.zeros(self.dim + 2, dtype=np.int64)
        cells[-1] = size - 1
        below = np.zeros(self.dim + 2, dtype=np.intp)
        below[-1] = len(ends)
        for chosen in halvings(self.levels):
            for one in chosen:
                left, right = one.left + 1, one.right + 1
                first = below[left]
                inside = ends[first : below[right]]
                edges = np.concatenate([[cells[left]], inside, [cells[right] + 1]])
                widths = np.diff(edges)
                with np.errstate(divide="ignore"):
                    # a cell between two records is as likely as any other of these
                    measure = np.log(widths)
                ranks = np.arange(len(inside) + 1)
                n = len(inside)
                at = _chosen(ranks, ranks, one.level, n, measure, noise, rng)
                cells[one.place + 1] = edges[at] + rng.integers(widths[at])
                below[one.place + 1] = first + at
        return cells[1:-1]


def _chosen(
    below: Indices,
    upto: Indices,
    level: float,
    n: int,
    measure: Floats | float,
    noise: Noise,
    rng: np.random.Generator,
) -> int:
    """Place of what is chosen, by the records below and up to each candidate."""
    rank = level * n
    # minus the distance of the rank of the quantile from those of a candidate
    score = -np.maximum(np.maximum(below - rank, rank - upto), 0.0)
    score /= noise.scale
    score += measure
    score += noise.sample(score.shape, rng) / noise.scale
    return int(np.argmax(score))


def grid_size(low: float, high: float, resolution: float) -> int:
    """Number of multiples of a resolution within bounds, from the lower one."""
    # as written in decimals: a last one that rounding would put just outside
    return int(np.floor((high - low) / resolution * (1 + 1e-12))) + 1
