"""Statistics from noisy counts: post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator
from sklearn.isotonic import isotonic_regression

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices

__all__ = [
    "grid_quantiles",
    "level_quantiles",
    "level_values",
    "monotone_levels",
    "usable_counts",
]

# Halvings of a bin, to the last digit.
_HALVINGS = 52


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


def monotone_levels(counts: ArrayLike, total: float) -> Floats:
    """Distribution function at the edges of a noisy histogram.

    Made monotone within [0, 1] by isotonic regression.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Noisy, maybe negative.
    total : float
        Number of records, in the unit of `counts`.

    Returns
    -------
    ndarray of shape (n_bins + 1,)
        From 0 to 1, non-decreasing.
    """
    # Noisy bins may be negative, so their cumulative shares may fall. Take the monotone
    # ones nearest in least squares (pooling adjacent violators): they use all bins,
    # where a running maximum would keep the largest error.
    inner = np.cumsum(counts)[:-1] / total
    if inner.size:
        inner = isotonic_regression(inner, y_min=0.0, y_max=1.0)
    # known without noise: nothing lies below the first edge, all below the last
    return np.concatenate([[0.0], inner, [1.0]])


def grid_quantiles(
    counts: ArrayLike, total: float, edges: ArrayLike, quantiles: ArrayLike
) -> Floats:
    """Quantiles of a column from its noisy histogram on a public grid.

    The noisy distribution function is made monotone and interpolated inside bins by
    monotone cubic polynomials, over each run of bins of which none is empty: next to
    one that is, values may begin at once.

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

    References
    ----------
    Fritsch and Butland (1984), A method for constructing local monotone piecewise
    cubic interpolants.

    Examples
    --------
    >>> from skpuffer.summary._statistics import grid_quantiles
    >>> grid_quantiles([2, 2, 0, 4], 8, [0, 1, 2, 3, 4], [0.25, 0.5])
    array([1., 2.])
    """
    if np.isnan(total):
        return np.full(np.shape(quantiles), np.nan)
    return level_quantiles(monotone_levels(counts, total), edges, quantiles)


def level_quantiles(levels: Floats, edges: ArrayLike, quantiles: ArrayLike) -> Floats:
    """Quantiles of a distribution function by its levels at edges.

    As :func:`grid_quantiles`, of `levels` as :func:`monotone_levels` returns them.

    Parameters
    ----------
    levels : ndarray of shape (n_bins + 1,)
    edges : array-like of shape (n_bins + 1,)
    quantiles : array-like of shape (n_quantiles,)

    Returns
    -------
    ndarray of shape (n_quantiles,)
    """
    edges, quantiles = np.asarray(edges, dtype=float), np.asarray(quantiles, float)
    # the first edge at which the level is reached; the bin below it has mass
    upper = np.clip(np.searchsorted(levels, quantiles), 1, len(levels) - 1)
    low, high = edges[upper - 1], edges[upper]
    for at, distribution in _runs(levels, edges, upper - 1):
        for _ in range(_HALVINGS):
            middle = (low[at] + high[at]) / 2
            below = distribution(middle) < quantiles[at]
            low[at] = np.where(below, middle, low[at])
            high[at] = np.where(below, high[at], middle)
    # the upper end, so that an edge stays what it is
    values: Floats = high
    return values


def level_values(levels: Floats, edges: ArrayLike, values: ArrayLike) -> Floats:
    """Distribution function at any values, by its levels at edges.

    The inverse of :func:`level_quantiles`.

    Parameters
    ----------
    levels : ndarray of shape (n_bins + 1,)
    edges : array-like of shape (n_bins + 1,)
    values : array-like of shape (n_values,)

    Returns
    -------
    ndarray of shape (n_values,)
        In [0, 1], non-decreasing in `values`.
    """
    edges = np.asarray(edges, dtype=float)
    x = np.clip(np.asarray(values, dtype=float), edges[0], edges[-1])
    bins = np.clip(np.searchsorted(edges, x), 1, len(edges) - 1) - 1
    # of a bin without mass, and else in between
    found: Floats = levels[bins].copy()
    for at, distribution in _runs(levels, edges, bins):
        low, high = levels[bins[at]], levels[bins[at] + 1]
        found[at] = np.clip(distribution(x[at]), low, high)
    # known at the ends, and not up to rounding
    found[x == edges[0]] = levels[0]
    found[x == edges[-1]] = levels[-1]
    return found


def _runs(
    levels: Floats, edges: Floats, bins: Indices
) -> Iterator[tuple[Indices, PchipInterpolator]]:
    """Places of what lies in one run of bins with mass, and the function over it."""
    flat = np.diff(levels) <= 0
    empty = np.flatnonzero(flat)
    begins, ends = np.append(-1, empty) + 1, np.append(empty, len(flat))
    run = np.where(flat[bins], -1, np.searchsorted(empty, bins))
    for one in np.unique(run[run >= 0]):
        (at,) = np.nonzero(run == one)
        of_run = slice(begins[one], ends[one] + 1)
        yield at, PchipInterpolator(edges[of_run], levels[of_run])
