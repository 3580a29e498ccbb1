"""Lags of a Gram matrix: the largest entries at each distance of two bins."""

from typing import NamedTuple

import numpy as np

from skpuffer.utils._types import Floats

__all__ = ["Window", "cyclic_lags", "linear_lags", "windows"]

#: Numbers of bins, less one, that a window leaves out: where lags decay slowly, more.
_LEFT_OUT = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47)


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
        sizes = {bins - left for left in (*_LEFT_OUT, gone) if left <= bins // 2}
        found += [Window(m, circle[:m]) for m in sorted(sizes, reverse=True)]
    return found
