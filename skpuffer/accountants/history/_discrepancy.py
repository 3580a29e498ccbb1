"""Discrepancy of a batch: how many of the records it drew differ, by sampling scheme.

Of a fixed pair of tables that differ in so many records. A record that is drawn twice
counts twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import binom, hypergeom

from skpuffer.releases import (
    FixedSizeSampling,
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    SamplingScheme,
    WithReplacementSampling,
)
from skpuffer.utils._types import Floats

__all__ = ["DISCREPANCIES", "Discrepancy", "dealt_squares", "discrepancy"]


@dataclass(frozen=True)
class Discrepancy:
    """Law of the discrepancy of one batch.

    Parameters
    ----------
    largest : int
        The most it can be.
    mean_square : float
        Mean of its square.
    log_weights : ndarray of shape (largest,)
        Log-probabilities of 1, 2, ..., `largest`; minus infinity where it cannot be.
    """

    largest: int
    mean_square: float
    log_weights: Floats = field(repr=False)

    @property
    def times(self) -> Floats:
        """The values 1, 2, ..., `largest`."""
        return np.arange(1.0, self.largest + 1)


def _of(law: Any, largest: int, mean_square: float) -> Discrepancy:
    with np.errstate(divide="ignore"):
        weights = np.asarray(law.logpmf(np.arange(1, largest + 1)), float)
    weights.flags.writeable = False  # shared by all who ask
    return Discrepancy(largest, mean_square, weights)


def _binomial(trials: int, chance: float) -> Discrepancy:
    mean = trials * chance
    square = mean * (1 - chance) + mean**2
    return _of(binom(trials, chance), trials if chance else 0, square)


def _full_batch(count: int, n: int, size: int, rate: float) -> Discrepancy:
    return _binomial(count, 1.0)


def _poisson(count: int, n: int, size: int, rate: float) -> Discrepancy:
    return _binomial(count, rate)


def _fixed_size(count: int, n: int, size: int, rate: float) -> Discrepancy:
    mean = size * count / n
    # the variance of a hypergeometric law; of a table of one record there is none
    spread = mean * (1 - count / n) * (n - size) / max(1, n - 1)
    return _of(hypergeom(n, count, size), min(count, size), mean**2 + spread)


def _with_replacement(count: int, n: int, size: int, rate: float) -> Discrepancy:
    # one record may be drawn at every draw
    return _binomial(size, count / n)


#: Laws by the exact type of the scheme; of the number of records that differ, of all
#: records, the batch size and the rate. Batches that are dealt have a law too, but not
#: one batch after the other: see :func:`dealt_squares`.
DISCREPANCIES: dict[
    type[SamplingScheme], Callable[[int, int, int, float], Discrepancy]
] = {
    FullBatchSampling: _full_batch,
    PoissonSampling: _poisson,
    FixedSizeSampling: _fixed_size,
    WithReplacementSampling: _with_replacement,
}


def discrepancy(release: GradientRelease, count: int) -> Discrepancy:
    """Return the law of a batch's discrepancy under a release's sampling scheme.

    Parameters
    ----------
    release : GradientRelease
        Under a scheme of `DISCREPANCIES`.
    count : int
        How many records differ, at most; all moments grow with it.

    Returns
    -------
    Discrepancy

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Proposition I.1 and Appendix
    D, with the fixed pair's hypergeometric law for subsets and the binomial one for
    draws with replacement.
    """
    n, size = release.n_records, release.batch_size
    assert size is not None  # the release has checked that
    rate = release.sampling_rate
    return _cached(type(release.sampling), min(count, n), n, size, rate)


# no data enters: public sizes only
@lru_cache(maxsize=512)
def _cached(
    kind: type[SamplingScheme], count: int, n: int, size: int, rate: float
) -> Discrepancy:
    return DISCREPANCIES[kind](count, n, size, rate)


def dealt_squares(count: int, size: int, weights: Floats) -> float:
    """Largest weighted sum of squared discrepancies over the batches of one epoch.

    Each record is in one batch, so that the discrepancies add up to `count` at most,
    and none is more than a batch holds. A weighted sum of squares is convex: it is
    largest where batches are filled one after the other, the heaviest first.

    Parameters
    ----------
    count : int
    size : int
        Of the largest batch.
    weights : ndarray of shape (n_batches,)
        Non-negative, one for each batch.

    Returns
    -------
    float
        At most ``max(weights) * count * min(count, size)``.
    """
    filled = np.clip(count - size * np.arange(len(weights)), 0, size)
    return float(np.sort(weights)[::-1] @ filled.astype(float) ** 2)
