"""Rounds of private k-means as they are executed, and what each leaves behind."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ._plan import Plan, public_centres

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import Floats

    from ._cells import CellSums

__all__ = ["noisy_centres", "noisy_mean"]


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
