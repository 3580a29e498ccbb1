"""Plan of private k-means: public centres to start from, and rounds with shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.cluster import KMeans

from skpuffer.releases import Stage

from ._cells import CellSums

if TYPE_CHECKING:
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import Floats

__all__ = ["AUTO_ROUNDS", "Plan", "public_centres"]

#: Part of the budget of the rounds on the many centres.
INITIAL_SHARE = 0.5

#: Clip radii of the first rounds of either kind, in units of the box; the last of each
#: is that of all rounds after them.
INITIAL_RADII = (0.4, 0.25)
FINAL_RADII = (0.2, 0.15)

#: The same under a pure promise, of which fewer rounds can be paid.
PURE_INITIAL_RADII = (0.3, 0.2)

#: Rounds on the many centres and on the final ones, by norm of the noise.
AUTO_ROUNDS = {2.0: (2, 3), 1.0: (1, 2)}

#: Points of the box for each public centre, at least so many in all.
_POINTS, _LEAST_POINTS = 50, 2000

#: How much nearer the middle every second point is: data is rarer near the corners.
_SHRUNK = 0.6

#: Standard deviations of a count that an average cell of the many centres must hold:
#: where it holds less, noise forbids learning where clusters are.
LEAST_COUNT = 0.06


@dataclass(frozen=True)
class Plan:
    """Rounds of private k-means, from public facts alone.

    Parameters
    ----------
    n_records : int
    n_clusters : int
    n_initial : int
        Public centres to start from, at least `n_clusters`.
    box : Bounds
        Of the rows as they are clustered.
    rounds : (int, int)
        Numbers of rounds on the many centres, and on the final ones.
    norm : {2.0, 1.0}
        2 for Gaussian noise, 1 for Laplace noise.
    """

    n_records: int
    n_clusters: int
    n_initial: int
    box: Bounds
    rounds: tuple[int, int]
    norm: float

    @cached_property
    def sums(self) -> tuple[CellSums, ...]:
        """What each round sums."""
        d = len(self.box.low)
        # length of the half-diagonal of the box
        half = float(np.linalg.norm(self.box.half, self.norm))
        initial = INITIAL_RADII if self.norm == 2 else PURE_INITIAL_RADII
        radii = [
            known[min(at, len(known) - 1)]
            for known, times in zip((initial, FINAL_RADII), self.rounds, strict=True)
            for at in range(times)
        ]
        return tuple(CellSums(radius * half, d, self.norm) for radius in radii)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The rounds as stages of a release."""
        first, last = self.rounds
        sizes = [self.n_initial] * first + [self.n_clusters] * last
        shares = [INITIAL_SHARE / first] * first + [(1 - INITIAL_SHARE) / last] * last
        return tuple(
            Stage(f"round {at}", k * (1 + sums.n_columns), sums.sensitivity, share)
            for at, (k, sums, share) in enumerate(
                zip(sizes, self.sums, shares, strict=True), start=1
            )
        )

    def can_learn(self, deviation: float) -> bool:
        """Whether the noise of the first round leaves the place of clusters visible.

        Parameters
        ----------
        deviation : float
            Standard deviation of the first round's noise.
        """
        count = deviation / self.sums[0].weight
        return self.n_records >= LEAST_COUNT * self.n_initial * count


# no data enters: the box and the number are public
@lru_cache(maxsize=64)
def public_centres(k: int, box: Bounds) -> Floats:
    """Return centres spread over a box, the same ones always.

    Parameters
    ----------
    k : int
    box : Bounds

    Returns
    -------
    ndarray of shape (k, d)
        Read-only.
    """
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(max(_LEAST_POINTS, _POINTS * k), len(box.low)))
    points[::2] *= _SHRUNK
    found = KMeans(k, n_init=1, random_state=0).fit(points).cluster_centers_
    centres: Floats = box.middle + found * box.half
    centres.flags.writeable = False
    return centres
