"""Rounds of private k-means as they are executed, and what each leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._plan import Plan, public_centres
from ._steps import Centres, merged, moved

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._types import Floats

__all__ = ["noisy_centres", "noisy_mean"]


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
    are known: all.
    """
    box, n, k = plan.box, plan.n_records, plan.n_clusters
    place = box.middle[None]
    for at, sums in enumerate(plan.sums):
        several = plan.n_initial if at < plan.rounds[0] else k
        exact = sums(rows, np.repeat(place, several, axis=0))
        noisy = release.noisy(at, exact, noise, rng)[:1]
        deviation = release.deviation(at, noise)
        place = moved(
            noisy, place, sums, deviation=deviation, n_records=n, box=box
        ).places
    counts = np.zeros(k)
    counts[0] = n
    return Centres(np.repeat(place, k, axis=0), counts)
