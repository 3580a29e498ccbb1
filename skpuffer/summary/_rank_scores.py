"""Scores of candidates for a quantile: how many records lie on the wrong side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from skpuffer.noise import GumbelNoise
    from skpuffer.utils._types import Floats, Indices

__all__ = ["RankScores"]

#: Candidates of a grid at most.
MOST = 2**24


@dataclass(frozen=True)
class RankScores:
    """Scores of the values of a column as its quantiles.

    With L records below a value and G above it, its score for the quantile at the
    level q is minus ``max((1 - q) L - q (n - L), q G - (1 - q) (n - G), 0)``, with n
    the records of the table at hand: how many it is away from the rank of the quantile.
    Values between two records share a score, and all of the range is a candidate;
    with a resolution, only its multiples from the lower bound are, and records are read
    as the nearest of these.

    Parameters
    ----------
    position : int
        Of the column.
    levels : tuple of float
        In (0, 1), one choice each.
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

    Examples
    --------
    >>> from skpuffer.summary._rank_scores import RankScores
    >>> RankScores(0, (0.5, 0.75), 0.0, 1.0).ranges("add_remove")
    (1.0, 1.5)
    """

    position: int
    levels: tuple[float, ...]
    low: float
    high: float
    resolution: float | None = None

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return how far scores move apart with one record, for each level."""
        # what is not known to cost less is a record that is replaced
        if relation == "add_remove":
            return tuple(2 * max(q, 1 - q) for q in self.levels)
        return (2.0,) * len(self.levels)

    def choose(self, X: Any, noise: GumbelNoise, rng: np.random.Generator) -> Floats:
        """Choose a value for each level, by scores with noise of their own."""
        x = np.clip(np.asarray(X)[:, self.position], self.low, self.high)
        if self.resolution is not None:
            return self._of_grid(x, self.resolution, noise, rng)
        edges = np.concatenate([[self.low], np.sort(x), [self.high]])
        widths = np.diff(edges)
        with np.errstate(divide="ignore"):
            # a value of an interval is as likely as any other of it
            measure = np.log(widths)
        below = np.arange(len(x) + 1)
        at = self._chosen(below, below, measure, noise, rng)
        inside = edges[at] + rng.random(len(at)) * widths[at]
        # rounding must not lead out of the interval
        return np.clip(inside, edges[at], edges[at + 1])

    def _of_grid(
        self, x: Floats, step: float, noise: GumbelNoise, rng: np.random.Generator
    ) -> Floats:
        size = grid_size(self.low, self.high, step)
        codes = np.rint((x - self.low) / step).astype(np.intp)
        counts = np.bincount(np.minimum(codes, size - 1), minlength=size)
        upto = np.cumsum(counts)
        at = self._chosen(upto - counts, upto, np.zeros(size), noise, rng)
        values: Floats = np.minimum(self.low + step * at, self.high)
        return values

    def _chosen(
        self,
        below: Indices,
        upto: Indices,
        measure: Floats,
        noise: GumbelNoise,
        rng: np.random.Generator,
    ) -> Indices:
        """Places of what is chosen, by the records below and up to each candidate."""
        n, chosen = int(upto[-1]), []
        for q in self.levels:
            # minus the distance of the rank of the quantile from those of a candidate
            score = -np.maximum(np.maximum(below - q * n, q * n - upto), 0.0)
            score /= noise.scale
            score += measure
            score += noise.sample(score.shape, rng) / noise.scale
            chosen.append(int(np.argmax(score)))
        return np.array(chosen)


def grid_size(low: float, high: float, resolution: float) -> int:
    """Number of multiples of a resolution within bounds, from the lower one."""
    # as written in decimals: a last one that rounding would put just outside
    return int(np.floor((high - low) / resolution * (1 + 1e-12))) + 1
