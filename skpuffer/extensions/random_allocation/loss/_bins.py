"""The bins a record may be in, and what their means have in common."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.plain import Plain

__all__ = ["Bins", "Means"]


#: Numbers of bins, less one, that a window leaves out: where lags decay slowly, more.
_WINDOWS_LEFT_OUT = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47)


class Window(NamedTuple):
    """Consecutive bins that stand for all of them.

    Parameters
    ----------
    size : int
        Number of bins m.
    lags : ndarray of shape (size,)
        At index h, the largest entry of the Gram matrix between two bins h apart in any
        window of this size.
    """

    size: int
    lags: Floats


def linear_lags(gram: Floats) -> Floats:
    """Return the largest entries by distance, bins in a row.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)

    Returns
    -------
    ndarray of shape (n_bins,)
        At index h, the largest ``gram[i, i + h]``.
    """
    return np.array([np.diagonal(gram, h).max() for h in range(len(gram))])


def cyclic_lags(gram: Floats) -> Floats:
    """Return the largest entries by distance, bins in a circle.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)

    Returns
    -------
    ndarray of shape (n_bins,)
        At index h, the largest ``gram[i, (i + h) % n_bins]``.
    """
    lags = linear_lags(gram)
    # those of i + h >= n_bins are, by symmetry, n_bins - h apart in a row
    circle: Floats = np.maximum(lags, np.concatenate([lags[:1], lags[:0:-1]]))
    return circle


def windows(gram: Floats) -> list[Window]:
    """Return windows of consecutive bins, each of which bounds the whole.

    With a record equally likely in all bins the likelihood ratio is the mean over the
    bins, so also the mean, over all rotations of a window, of the mean over the window.
    By convexity a divergence is at most the largest over the rotations, and all of
    these have at most the lags of the circle.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)

    Returns
    -------
    list of Window
        The first has all bins, in a row: of it there is one rotation alone.
    """
    bins = len(gram)
    row, circle = linear_lags(gram), cyclic_lags(gram)
    found = [Window(bins, row)]
    # leaving bins out keeps the two ends of a window apart: of use where the first and
    # the last bin are as close as neighbours, as they are in runs of many epochs
    if row[-1] > row[bins // 2]:
        gone = len(np.trim_zeros(circle[: bins // 2 + 1], "b")) - 1
        sizes = {bins - left for left in (*_WINDOWS_LEFT_OUT, gone) if left <= bins // 2}
        found += [Window(m, circle[:m]) for m in sorted(sizes, reverse=True)]
    return found


#: A mean's square, in units of the noise's variance, beyond which bins stand out.
_LOUDEST = 100.0


class Means(Protocol):
    """What is asked of a strategy of correlated noise."""

    def __hash__(self) -> int:
        """Equal strategies are accounted once."""

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds to the rows of ``C @ sums``, by its batch."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


@dataclass(frozen=True)
class Bins(Plain, kind="bins"):
    """The bins of a run, one of which a record is in, by chance and throughout.

    Parameters
    ----------
    strategy : NoiseStrategy
    n_batches : int
    n_steps : int
    """

    strategy: Means
    n_batches: int
    n_steps: int

    @property
    def means(self) -> Floats:
        """What a record adds to the rows of ``C @ sums``, by its bin."""
        return self.strategy.means(self.n_batches, self.n_steps)

    @property
    def gram(self) -> Floats:
        """Inner products of the bins' means, in clip norms squared."""
        return _gram(self)

    def stand_out(self, variance: float) -> bool:
        """Whether noise of a variance, in clip norms squared, is next to none.

        All bins are told apart anyway, and the masses of laws leave the range of
        floats.
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
