"""The bins a record may be in, and what their means have in common."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, check_non_negative
from skpuffer.kernel.plain import Plain

from ..strategies._base import NoiseStrategy

#: Numbers of bins, less one, that a window leaves out: where lags decay slowly, more.
_WINDOWS_LEFT_OUT = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47)


class Window(NamedTuple):
    """Consecutive bins that stand for all of them.

    `size`: number of bins m. `lags` (size,): entry h is the largest of the Gram matrix
    between two bins h apart in any window.
    """

    size: int
    lags: Floats


def linear_lags(gram: Floats) -> Floats:
    """Return the largest entries ``gram[i, i + h]`` by h, bins in a row."""
    return np.array([np.diagonal(gram, h).max() for h in range(len(gram))])


def cyclic_lags(gram: Floats) -> Floats:
    """Return the largest entries ``gram[i, (i + h) % n_bins]`` by h, in a circle."""
    lags = linear_lags(gram)
    # those of i + h >= n_bins are, by symmetry, n_bins - h apart in a row
    return np.maximum(lags, np.concatenate([lags[:1], lags[:0:-1]]))


def windows(gram: Floats) -> list[Window]:
    """Return windows of consecutive bins, all bins first; each bounds the whole.

    The likelihood ratio is the mean over all rotations of a window of the mean over it.
    By convexity a divergence is at most the largest over the rotations, and all of
    these have at most the lags of the circle.
    """
    bins = len(gram)
    row, circle = linear_lags(gram), cyclic_lags(gram)
    found = [Window(bins, row)]
    # leaving bins out keeps the two ends of a window apart: of use where the first and
    # the last bin are as close as neighbours, as they are in runs of many epochs
    if row[-1] > row[bins // 2]:
        gone = len(np.trim_zeros(circle[: bins // 2 + 1], "b")) - 1
        sizes = {
            bins - left for left in (*_WINDOWS_LEFT_OUT, gone) if left <= bins // 2
        }
        found += [Window(m, circle[:m]) for m in sorted(sizes, reverse=True)]
    return found


#: A mean's square, in units of the noise's variance, beyond which bins stand out.
_LOUDEST = 100.0


@dataclass(frozen=True)
class Bins(Plain, kind="bins"):
    """The bins of a run, one of which a record is in, by chance and throughout."""

    strategy: NoiseStrategy
    n_batches: int
    n_steps: int

    @property
    def means(self) -> Floats:
        """Contributions of a record to the rows of ``C @ sums``, by its bin."""
        return self.strategy.means(self.n_batches, self.n_steps)

    @property
    def gram(self) -> Floats:
        """Inner products of the bins' means in clip norms squared."""
        return _gram(self)

    def stand_out(self, variance: float) -> bool:
        """Whether noise of a variance is so little that all bins are told apart anyway.

        Masses of laws would then leave the range of floats.
        """
        return bool(self.gram.max() > _LOUDEST * variance)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows of bins, each of which bounds all of them."""
        return _windows(self)


@lru_cache(maxsize=32)
def _gram(bins: Bins) -> Floats:
    means = bins.means
    gram: Floats = means @ means.T
    # symmetric to the last digit, which a product need not be
    gram = np.maximum(gram, gram.T)
    gram.flags.writeable = False
    return gram


@lru_cache(maxsize=32)
def _windows(bins: Bins) -> tuple[Window, ...]:
    return tuple(windows(bins.gram))


# -- covers of lags: covariances of Markov chains that are nowhere less ----------------


#: Room for rounding: covers are larger than they need be by this part.
_ROOM = 1e-12

_DECAYS = np.arange(0.05, 0.975, 0.01)


@dataclass(frozen=True)
class Cover:
    """Covariance ``sum_c scales[c] * decays[c] ** |i - j| + own * (i == j)``.

    It is that of a sum of independent stationary first-order autoregressions and of
    independent noise. At most two scales and `own` are not negative, decays in [0, 1].
    """

    scales: tuple[float, ...]
    decays: tuple[float, ...]
    own: float

    def __post_init__(self) -> None:
        for scale in (*self.scales, self.own):
            check_non_negative(cover=scale)
        if len(self.scales) != len(self.decays) or len(self.scales) not in (1, 2):
            raise value_error(
                "allocation.cover_scales_decays_mismatch",
                scales=self.scales,
                decays=self.decays,
            )
        if not all(0 <= decay <= 1 for decay in self.decays):
            raise value_error(
                "allocation.cover_decays_out_of_range", decays=self.decays
            )

    @property
    def variance(self) -> float:
        """The covariance's diagonal."""
        return sum(self.scales) + self.own

    def lags(self, size: int) -> Floats:
        """Return the covariance by distance, of shape (size,)."""
        distance = np.arange(size)
        lags: Floats = sum(
            (
                scale * np.power(decay, distance, dtype=float)
                for scale, decay in zip(self.scales, self.decays, strict=True)
            ),
            start=np.zeros(size),
        )
        lags[0] += self.own
        return lags

    def over(self, variance: float) -> "Cover":
        """Return the cover in units of a variance."""
        # rounded up: a quotient may be a hair less than what is to be covered
        scales = tuple(scale / variance * (1 + _ROOM) for scale in self.scales)
        return replace(self, scales=scales, own=self.own / variance * (1 + _ROOM))


def check_cover(cover: Cover, lags: Floats) -> Cover:
    """Return a cover that is nowhere less than the lags."""
    short = np.flatnonzero(~(cover.lags(len(lags)) >= lags))
    if len(short):
        raise value_error(
            "allocation.cover_below_lags",
            distance=short[0],
            covered=cover.lags(len(lags))[short[0]],
            lag=lags[short[0]],
        )
    return cover


def _fitted(lags: Floats, common: float) -> tuple[Floats, Floats, Floats]:
    """Return, by decay, least scales beside a common factor, the rest, and a score."""
    left = np.maximum(lags - common, 0.0)
    far = np.flatnonzero(left[1:]) + 1
    scales = np.zeros_like(_DECAYS)
    if len(far):
        with np.errstate(over="ignore"):
            logs = np.log(left[far]) - far * np.log(_DECAYS)[:, np.newaxis]
            scales = np.exp(logs.max(axis=1)) * (1 + _ROOM)
    own = np.maximum(lags[0] - common - scales, 0.0) * (1 + _ROOM)
    # how spread the sum over all bins is, by its variance, and how heavy its tail: a
    # guide in choosing among covers that are all valid
    spread = 2 * scales * _DECAYS / (1 - _DECAYS)
    return scales, own, spread + 3 * np.maximum(lags[0] - common, scales)


def geometric_covers(lags: Floats) -> Iterator[tuple[float, Cover]]:
    """Yield likely good covers of lags (size,), each with the least scale it can have.

    The smaller the score, the tighter a bound is likely to be. Covers are an
    autoregression, and one beside a factor common to all bins.
    """
    size = len(lags)
    if not lags[1:].any():
        yield 3 * float(lags[0]) / size, Cover((0.0,), (0.0,), float(lags[0]))
        return
    for share in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6):
        common = share * float(lags[1])
        scales, own, cost = _fitted(lags, common)
        at = int(np.argmin(cost))
        score = float(cost[at] + common * (2 * size + 1)) / size
        scale, decay = float(scales[at]), float(_DECAYS[at])
        if share:
            yield score, Cover((scale, common), (decay, 1.0), float(own[at]))
        else:
            yield score, Cover((scale,), (decay,), float(own[at]))
