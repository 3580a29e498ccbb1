"""Statistics from noisy counts: post-processing, which costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.utils._types import Floats

__all__ = ["grid_quantiles", "usable_counts"]


def usable_counts(counts: ArrayLike, noise_std: ArrayLike) -> Floats:
    """Noisy counts fit to divide by, and NaN for the others.

    A count is fit if it is at least one and at least twice the standard deviation of
    its own noise: below, a ratio would show the noise rather than the group. The rule
    reads noisy values and public scales only.

    Parameters
    ----------
    counts : ndarray
        Noisy counts, in records.
    noise_std : float or ndarray
        Standard deviation of their noise, in records.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from skpuffer.summary._statistics import usable_counts
    >>> usable_counts([40.0, 5.0, -1.0], 4.0)
    array([40., nan, nan])
    """
    # a division by a noisy count close to zero would be unbounded, whatever it divides
    counts = np.asarray(counts, dtype=float)
    least = np.maximum(1.0, 2 * np.asarray(noise_std))
    return np.where(counts >= least, counts, np.nan)


def grid_quantiles(
    counts: ArrayLike, total: float, edges: ArrayLike, quantiles: ArrayLike
) -> Floats:
    """Quantiles of a column from its noisy histogram on a public grid.

    The noisy distribution function is made monotone by isotonic regression within
    [0, 1] and interpolated linearly inside bins.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Noisy, maybe negative.
    total : float
        Number of records, in the unit of `counts`; NaN gives NaN.
    edges : array-like of shape (n_bins + 1,)
    quantiles : array-like of shape (n_quantiles,)
        In (0, 1).

    Returns
    -------
    ndarray of shape (n_quantiles,)
        Within the edges, non-decreasing in `quantiles`.

    Examples
    --------
    >>> from skpuffer.summary._statistics import grid_quantiles
    >>> grid_quantiles([1, 3, 0, 4], 8, [0, 1, 2, 3, 4], [0.5, 0.75])
    array([2. , 3.5])
    """
    edges, quantiles = np.asarray(edges, dtype=float), np.asarray(quantiles)
    if np.isnan(total):
        return np.full(quantiles.shape, np.nan)
    # Noisy bins may be negative, so their cumulative shares may fall. Take the monotone
    # ones nearest in least squares (pooling adjacent violators): they use all bins,
    # where a running maximum would keep the largest error.
    inner = np.cumsum(counts)[:-1] / total
    if inner.size:
        inner = isotonic_regression(inner, y_min=0.0, y_max=1.0)
    # known without noise: nothing lies below the first edge, all below the last
    levels = np.concatenate([[0.0], inner, [1.0]])
    # the first edge at which the level is reached; the bin below it has mass
    upper = np.clip(np.searchsorted(levels, quantiles), 1, len(levels) - 1)
    lower = upper - 1
    share = (quantiles - levels[lower]) / (levels[upper] - levels[lower])
    values: Floats = edges[lower] + share * (edges[upper] - edges[lower])
    return values
