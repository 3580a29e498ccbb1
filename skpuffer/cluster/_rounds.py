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
