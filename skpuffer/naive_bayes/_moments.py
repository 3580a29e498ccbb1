"""Moments of each class: the contribution of a record, and reading them back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.summary._cells import Ones, Stacked
from skpuffer.summary._moments import Moments

from ._by_class import ByClass
from ._shrinkage import shrunk, shrunk_counts

if TYPE_CHECKING:
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import Floats

__all__ = ["class_gaussians", "class_moments"]

#: Smallest variance of u in [-1, 1] that a class is given.
_LEAST_VARIANCE = 1e-6


def class_moments(bounds: Bounds, n_classes: int) -> ByClass:
    """Contribution ``(1, u, u**2 - 1/2)`` of a record, in the block of its class.

    With u the row in [-1, 1] by its bounds. In l2 a record that is added moves the sum
    by sqrt(1 + 5 d / 4), one that is replaced by max(2 sqrt(d), sqrt(2 + 5 d / 2)).

    Parameters
    ----------
    bounds : Bounds
        Of the d features.
    n_classes : int

    Returns
    -------
    ByClass
    """
    positions = tuple(range(len(bounds.low)))
    return ByClass(Stacked((Ones(), Moments(positions, bounds, order=2))), n_classes)


def class_gaussians(
    value: Floats, deviation: float, n_records: int, n_classes: int
) -> tuple[Floats, Floats, Floats]:
    """Sizes, means and variances of the classes from noisy moments.

    Post-processing of what is released, for u in [-1, 1]. What the classes share is
    known best, so each of their means and variances is shrunk to what all records have,
    as far as noise explains its distance to it. A class variance includes what noise
    leaves unknown of its mean.

    Parameters
    ----------
    value : ndarray of shape (n_classes * (1 + 2 * n_features),)
        Noisy sum of the contributions.
    deviation : float
        Standard deviation of the noise of each coordinate.
    n_records, n_classes : int
        Public.

    Returns
    -------
    counts : ndarray of shape (n_classes,)
        Positive, with sum `n_records`.
    means, variances : ndarray of shape (n_classes, n_features)
        Of u; variances are positive.
    """
    table = value.reshape(n_classes, -1)
    first, second = np.split(table[:, 1:], 2, axis=1)
    counts = shrunk_counts(table[:, 0], deviation, n_records)
    sizes, shares = counts[:, None], counts[:, None] / n_records
    # -- means: noise of their sums, over the sizes of the classes
    noise = np.square(deviation / sizes) * np.ones_like(first)
    whole = np.clip(first.sum(axis=0) / n_records, -1.0, 1.0)
    kept = shrunk(first / sizes, whole, noise, shares)
    means = np.clip(whole + kept * (first / sizes - whole), -1.0, 1.0)
    # -- variances: E u² - (E u)², pooled over the classes within them
    within = second.sum(axis=0) / n_records + 0.5 - (shares * means**2).sum(axis=0)
    least = max(deviation * math.sqrt(n_classes) / n_records, _LEAST_VARIANCE)
    within = np.clip(within, min(least, 1.0), 1.0)
    raw = second / sizes + 0.5 - means**2
    # of u² and, by the slope 2 m, of the squared mean
    noise_of = noise * (1 + 4 * means**2)
    part = shrunk(raw, within, noise_of, shares)
    floor = np.minimum(np.sqrt(part * noise_of), within)
    variances = np.clip(within + part * (raw - within), floor, 1.0)
    variances = np.maximum(variances, _LEAST_VARIANCE)
    # the mean is known up to what is left of its noise
    return counts, means, variances + kept * noise
