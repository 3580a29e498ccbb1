"""Shrinkage of noisy counts and of noisy means towards what all records share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["shrunk", "shrunk_counts"]


def shrunk(values: Floats, centre: Floats, noise: Floats, shares: Floats) -> Floats:
    """Share of each value's distance to a common centre that is not noise.

    Empirical Bayes: the spread of the true values around the centre is estimated, and
    a value is kept by the ratio of that spread to spread and noise together.

    Parameters
    ----------
    values : ndarray of shape (n_classes, n_features)
    centre : ndarray of shape (n_features,)
    noise : ndarray of shape (n_classes, n_features)
        Variances of the noise.
    shares : ndarray of shape (n_classes, 1)
        Weights of the classes, with sum one.

    Returns
    -------
    kept : ndarray of shape (n_classes, n_features)
        In [0, 1]; one without noise.

    References
    ----------
    Efron and Morris (1973), Stein's estimation rule and its competitors.
    """
    # the mean square of distances is that of the truth, and the noise
    spread = np.maximum(
        0.0, (shares * (np.square(values - centre) - noise)).sum(axis=0)
    )
    whole = spread + noise
    # without noise there is nothing to shrink, even where all values are one
    kept: Floats = np.where(noise > 0, spread / np.where(whole > 0, whole, 1.0), 1.0)
    return kept


def shrunk_counts(counts: Floats, deviation: float, n_records: int) -> Floats:
    """Sizes of classes from noisy counts: positive, and with the public sum.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
    deviation : float
        Standard deviation of the noise of each.
    n_records : int

    Returns
    -------
    ndarray of shape (n_classes,)

    References
    ----------
    James and Stein (1961), Estimation with quadratic loss: towards equal classes.
    """
    n_classes = len(counts)
    # all of them sum to n, which spreads the error of their sum
    away = counts - counts.sum() / n_classes
    # the noise of that has a dimension less
    length = np.square(away).sum()
    noise = (n_classes - 1) * deviation**2
    kept = max(0.0, 1 - noise / length) if length > 0 else 0.0
    sizes = np.maximum(n_records / n_classes + kept * away, max(1.0, deviation))
    # a size below its own noise says nothing, and is divided by
    found: Floats = sizes * (n_records / sizes.sum())
    return found
