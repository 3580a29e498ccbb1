"""Noisy argmax of vote counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.releases._votes import noisy_counts
from skpuffer.utils._checks import noise_generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.noise import Noise
    from skpuffer.utils._types import Indices, RandomState

__all__ = ["noisy_argmax"]


def noisy_argmax(
    votes: ArrayLike, noise: Noise, random_state: RandomState = None
) -> Indices:
    """Return the class that leads in each row once noise is added to every count.

    Counts of classes without a vote get noise as well. Nothing is accounted for here;
    see :class:`PATEAggregator`.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Finite counts, of at least 2 classes.
    noise : Noise
        Of one scale, in votes.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy.

    Returns
    -------
    labels : ndarray of int of shape (n_queries,)
        Indices of classes.

    Raises
    ------
    ValueError
        If the counts are not finite, are negative or are of fewer than 2 classes, or
        the noise has no positive scale.

    References
    ----------
    Papernot et al. (2018), Scalable private learning with PATE (Gaussian noise); with
    other noise the same, and the same promise as a release of the noisy counts.

    Examples
    --------
    >>> from skpuffer.ensemble import noisy_argmax
    >>> from skpuffer.noise import LaplaceNoise
    >>> noisy_argmax([[90, 5, 5], [0, 1, 99]], LaplaceNoise(1.0))
    array([0, 2])
    """
    votes = np.asarray(votes, dtype=float)
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise ValueError(Statement("pate.votes_of_wrong_shape", shape=votes.shape))
    if not np.all(np.isfinite(votes)) or np.any(votes < 0):
        raise ValueError(Statement("pate.votes_negative_or_infinite"))
    if noise.is_zero:
        raise ValueError(Statement("pate.noise_scale_not_positive"))
    # The argmax is post-processing of the noisy counts. With noise on the classes that
    # got a vote only, it would tell which these are.
    rng, _ = noise_generator(random_state)
    winners: Indices = np.argmax(noisy_counts(votes, noise, rng), axis=1)
    return winners
