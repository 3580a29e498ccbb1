"""Covers of lags: covariances of Markov chains that are nowhere less."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_non_negative

__all__ = ["Cover", "check_cover", "geometric_covers"]

#: Room for rounding: covers are larger than they need be by this part.
_ROOM = 1e-12

_DECAYS = np.arange(0.05, 0.975, 0.01)


@dataclass(frozen=True)
class Cover:
    """Covariance ``sum_c scales[c] * decays[c] ** |i - j| + own * (i == j)``.

    It is that of a sum of independent stationary first-order autoregressions and of
    independent noise. A decay of one is a factor common to all bins.

    Parameters
    ----------
    scales : tuple of float
        Non-negative, at most two.
    decays : tuple of float
        In [0, 1], as many.
    own : float
        Non-negative.
    """

    scales: tuple[float, ...]
    decays: tuple[float, ...]
    own: float

    def __post_init__(self) -> None:
        for scale in (*self.scales, self.own):
            check_non_negative(cover=scale)
        if len(self.scales) != len(self.decays) or len(self.scales) not in (1, 2):
            raise ValueError(
                Statement(
                    "allocation.cover_scales_decays_mismatch",
                    scales=self.scales,
                    decays=self.decays,
                )
            )
        if not all(0 <= decay <= 1 for decay in self.decays):
            raise ValueError(
                Statement("allocation.cover_decays_out_of_range", decays=self.decays)
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
    """Return a cover that is nowhere less than the lags.

    Parameters
    ----------
    cover : Cover
    lags : ndarray of shape (size,)

    Returns
    -------
    Cover

    Raises
    ------
    ValueError
        If it is less somewhere: what is computed from it would be no bound.
    """
    short = np.flatnonzero(~(cover.lags(len(lags)) >= lags))
    if len(short):
        raise ValueError(
            Statement(
                "allocation.cover_below_lags",
                distance=short[0],
                covered=cover.lags(len(lags))[short[0]],
                lag=lags[short[0]],
            )
        )
    return cover


def _fitted(lags: Floats, common: float) -> tuple[Floats, Floats, Floats]:
    """Least scales, of each decay, that cover the lags beside what all have in common.

    Then what is left for single bins, and how good the covers look.
    """
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
    """Yield likely good covers of lags, each with the least scale it can have.

    Parameters
    ----------
    lags : ndarray of shape (size,)
        Non-negative; at index h, the largest covariance of two bins h apart.

    Yields
    ------
    score : float
        The smaller, the tighter a bound is likely to be.
    cover : Cover
        An autoregression, and one beside a factor common to all bins, which has some
        share of the first lag.
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
