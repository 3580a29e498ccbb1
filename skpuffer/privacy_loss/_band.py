"""Band limits: transforms of sums of many losses, where they are not negligible.

The transform of a sum is a product of many factors, each below one away from zero. Most
of its frequencies are too small to matter, which is proved here before any of them is
computed: what is left are a few hundred, however fine the grid.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len, rfft

from skpuffer.kernel.numbers import Complexes, Floats, Indices

__all__ = ["Band", "band_of", "low_frequencies"]

#: Transforms of a sum below it, relative to its mass, are left out.
_NEGLIGIBLE = 1e-18

#: Intervals of frequencies, each longer than the last by a factor, for which the
#: transform is bounded.
_INTERVALS = 400

#: Samples of a factor for each of its masses, and for how many in all no less are kept.
_SAMPLES, _MOST_SAMPLES = (4, 16), 2**18

#: Above what rounding takes off the square of a sample.
_ROUNDED = 1e-13


class Band(NamedTuple):
    """Frequencies beyond which a transform is small.

    Parameters
    ----------
    limit : float
        In radians for each point of the grid, in (0, pi).
    beyond : float
        Bound of the transform from there on.
    """

    limit: float
    beyond: float


def band_of(parts: Sequence[tuple[Floats, float, int]]) -> Band | None:
    """Band outside of which the transform of a sum of many terms is negligible.

    Parameters
    ----------
    parts : sequence of (ndarray, float, int)
        Masses of the terms, which sum to one, their variances in squared points of the
        grid, and how many of each there are.

    Returns
    -------
    Band or None
        None if the transform is negligible nowhere.
    """
    spread = math.sqrt(sum(count * variance for _, variance, count in parts))
    # the transform of a normal sum is 3e-4 there
    first = 4.0 / max(spread, 1e-300)
    if not first < math.pi / 2:
        return None
    edges = np.geomspace(first, math.pi, _INTERVALS + 1)
    bounds = np.zeros(_INTERVALS)
    for masses, _, count in parts:
        bounds += count * _log_bounds(masses, edges)
    # largest from each edge on
    bounds = np.maximum.accumulate(bounds[::-1])[::-1]
    small = np.flatnonzero(bounds <= math.log(_NEGLIGIBLE))
    if not len(small):
        return None
    return Band(float(edges[small[0]]), math.exp(bounds[small[0]]))


def _log_bounds(masses: Floats, edges: Floats) -> Floats:
    """Logs of bounds of the transform of one term, between each two edges.

    With X and X' independent terms, the square g of the absolute value is the mean of
    cos(f (X - X')) at the frequency f. So its second derivative is at most the mean of
    (X - X')², twice the variance v: between two samples d apart g is above the larger
    of the two by at most v d² / 4. And by Taylor's theorem it is at most
    1 - v f² + m f⁴ / 24, m the mean of (X - X')⁴.
    """
    # rounding leaves some masses a hair below zero: apart, at their full size
    negative = float(-masses[masses < 0].sum())
    masses = np.maximum(masses, 0.0)
    total = float(masses.sum())
    masses = masses / total
    at = np.arange(len(masses), dtype=float)
    at -= masses @ at
    variance, fourth = float(masses @ at**2), float(masses @ at**4)
    fourth = 2 * fourth + 6 * variance**2

    n = max(_SAMPLES[0] * len(masses), min(_SAMPLES[1] * len(masses), _MOST_SAMPLES))
    n = 2 * next_fast_len(n // 2 + 1, real=True)
    squares = np.abs(rfft(masses, n)) ** 2
    apart = 2 * math.pi / n
    # the largest sample of those that enclose an interval, both ends included
    low = np.floor(edges[:-1] / apart).astype(int)
    high = np.minimum(np.ceil(edges[1:] / apart).astype(int) + 1, len(squares))
    ranges = np.column_stack([np.minimum(low, high - 1), high]).ravel()
    largest = np.maximum.reduceat(np.append(squares, 0.0), ranges)[::2]
    sampled = largest + variance * apart**2 / 4
    # as a function of f² the second bound is convex, so the larger of its ends counts
    taylor = 1 - variance * edges**2 + fourth * edges**4 / 24
    taylor = np.maximum(taylor[:-1], taylor[1:])
    bound = np.minimum(np.minimum(sampled, taylor) + _ROUNDED, 1.0)
    return np.asarray(np.log(total * np.sqrt(bound) + negative))


def low_frequencies(masses: Floats, n: int, m: int) -> Complexes:
    """Transform of masses over `n` points at its first `m` frequencies.

    Parameters
    ----------
    masses : ndarray
        At the points 0, 1, ...
    n : int
    m : int

    Returns
    -------
    ndarray of complex of shape (m,)
        Summed up, so that the error is that of a sum of the masses: a convolution by a
        chirp would be as fast, but its error grows with the root of their number.
    """
    # exp(-i f (r b + j)) is a product, so that few exponentials are asked for
    b = math.isqrt(len(masses)) + 1
    table = np.pad(masses, (0, -len(masses) % b)).reshape(-1, b)
    k = np.arange(m, dtype=np.int64)
    within, rows = _phases(np.arange(b), k, n), _phases(b * np.arange(len(table)), k, n)
    inner = table @ within.real + 1j * (table @ within.imag)
    found: Complexes = (inner * rows).sum(axis=0)
    return found


def _phases(points: Indices, k: Indices, n: int) -> Complexes:
    """Factors exp(-2 pi i j k / n), exact in integers as far as the angle."""
    angles = np.multiply.outer(points, k) % n
    found: Complexes = np.exp(-2j * math.pi / n * angles)
    return found
