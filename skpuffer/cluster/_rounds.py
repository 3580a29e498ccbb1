"""Rounds of private k-means as they are executed, and what each leaves behind."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from skpuffer.releases import Stage

from ._cells import CellSums

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._bounds import Bounds

    from ._cells import CellSums

__all__ = ["noisy_centres", "noisy_mean"]


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


#: Standard deviations of its noise that the count of a centre must exceed to be kept.
_KEPT = 1.5

#: Standard deviations that are taken off the count of a kept centre where centres are
#: merged, down to a tenth of one: what noise alone makes weighs nothing beside others.
_TAKEN_OFF, _LEAST_WEIGHT = 2.0, 0.1

#: Restarts of the clustering of noisy centres.
_RESTARTS = 10


class Centres(NamedTuple):
    """Centres, and the noisy counts of their cells.

    Parameters
    ----------
    places : ndarray of shape (k, d)
    counts : ndarray of shape (k,)
        They sum to the number of records; one may be below zero.
    """

    places: Floats
    counts: Floats


def moved(
    noisy: Floats,
    places: Floats,
    sums: CellSums,
    *,
    deviation: float,
    n_records: int,
    box: Bounds,
) -> Centres:
    """Return centres moved to the noisy means of their cells.

    Parameters
    ----------
    noisy : ndarray of shape (k, 1 + d)
        Noisy sums of a round.
    places : ndarray of shape (k, d)
        The centres it was about.
    sums : CellSums
    deviation : float
        Standard deviation of the noise.
    n_records : int
        Public, so the counts are made to sum to it.
    box : Bounds

    Returns
    -------
    Centres

    Notes
    -----
    Every step is shrunk by the factor of James and Stein (1961), positive part, and is
    no longer than the radius that differences were clipped to, as no mean is.
    """
    k, d = places.shape
    counts = noisy[:, 0] / sums.weight
    counts = counts + (n_records - counts.sum()) / k
    # a count below its own noise says nothing, and must not be divided by
    floored = np.maximum(counts, deviation / sums.weight)[:, None]
    step = noisy[:, 1:] / floored
    length = np.linalg.norm(step, axis=1, keepdims=True)
    # of a step of zero nothing is left in any case
    length = np.maximum(length, np.finfo(float).tiny)
    noise = (deviation / floored) ** 2
    shrunk = np.maximum(0.0, 1 - max(0, d - 2) * noise / length**2)
    step = step * np.minimum(shrunk, sums.radius / length)
    return Centres(np.clip(places + step, box.low, box.high), counts)


def merged(centres: Centres, k: int, deviation: float) -> Floats:
    """Return k centres of the many that have more records than noise makes.

    Parameters
    ----------
    centres : Centres
    k : int
    deviation : float
        Standard deviation of a count.

    Returns
    -------
    ndarray of shape (k, d)
    """
    places, counts = centres
    kept = np.flatnonzero(counts > _KEPT * deviation)
    if len(kept) < k:
        kept = np.argsort(-counts, kind="stable")[:k]
    weights = np.maximum(
        counts[kept] - _TAKEN_OFF * deviation, _LEAST_WEIGHT * deviation
    )
    # a fixed seed: noisy values and public facts are all that goes in
    found = KMeans(k, n_init=_RESTARTS, random_state=0)
    with warnings.catch_warnings():
        # noise may have brought several of them to one corner of the box
        warnings.simplefilter("ignore", ConvergenceWarning)
        found.fit(places[kept], sample_weight=weights)
    clustered: Floats = found.cluster_centers_
    return clustered


#: Standard deviation of a mean about the middle of its bounds, in half-ranges, as far
#: as is known beforehand.
_PRIOR = 0.2


def noisy_centres(
    rows: Floats,
    plan: Plan,
    release: AdaptiveRelease,
    noise: Noise,
    rng: np.random.Generator,
) -> Centres:
    """Execute the rounds of a plan.

    Parameters
    ----------
    rows : ndarray of shape (n_records, d)
        Within the box of the plan.
    plan : Plan
    release : AdaptiveRelease
        Of the stages of the plan.
    noise : Noise
        As calibrated for the release.
    rng : numpy.random.Generator

    Returns
    -------
    Centres
    """
    box, n = plan.box, plan.n_records
    found = Centres(public_centres(plan.n_initial, box), np.zeros(plan.n_initial))
    for at, sums in enumerate(plan.sums):
        deviation = release.deviation(at, noise)
        noisy = release.noisy(at, sums(rows, found.places), noise, rng)
        found = moved(
            noisy, found.places, sums, deviation=deviation, n_records=n, box=box
        )
        if at + 1 == plan.rounds[0]:
            places = merged(found, plan.n_clusters, deviation / sums.weight)
            found = Centres(places, np.zeros(plan.n_clusters))
    return found


def noisy_mean(
    rows: Floats,
    plan: Plan,
    release: AdaptiveRelease,
    noise: Noise,
    rng: np.random.Generator,
) -> Centres:
    """Execute the same rounds with all centres in one place; see `noisy_centres`.

    Equally near centres leave every record to the first, and the records that this has
    are known: all. Each round observes the mean with noise of a known variance, which
    the Kalman filter puts together, beginning from the middle of the box.
    """
    n, k = plan.n_records, plan.n_clusters
    place, variance = plan.box.middle[None], (_PRIOR * plan.box.half) ** 2
    for at, sums in enumerate(plan.sums):
        several = plan.n_initial if at < plan.rounds[0] else k
        exact = sums(rows, np.repeat(place, several, axis=0))
        step = release.noisy(at, exact, noise, rng)[0, 1:] / n
        gain = variance / (variance + (release.deviation(at, noise) / n) ** 2)
        place = np.clip(place + gain * step, plan.box.low, plan.box.high)
        variance = (1 - gain) * variance
    counts = np.zeros(k)
    counts[0] = n
    return Centres(np.repeat(place, k, axis=0), counts)
