"""Nearest points of the simplex of shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats

__all__ = ["project_on_simplex"]


def project_on_simplex(values: ArrayLike) -> Floats:
    """Project vectors on the simplex of shares, in the l2 norm.

    Parameters
    ----------
    values : array-like of shape (..., n)

    Returns
    -------
    ndarray of shape (..., n)
        Not negative, with sum one along the last axis.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra (2008), Efficient projections onto the
    l1-ball, Figure 1.

    Examples
    --------
    >>> from skpuffer.utils._simplex import project_on_simplex
    >>> project_on_simplex([1.0, 0.5, -3.0])
    array([0.75, 0.25, 0.  ])
    """
    values = np.asarray(values, dtype=np.float64)
    # The projection subtracts one number from all coordinates and cuts at zero. With
    # the largest `last + 1` ones kept positive that number is (their sum - 1) / (last +
    # 1).
    ordered = -np.sort(-values, axis=-1)
    ranks = np.arange(1, values.shape[-1] + 1)
    excess = (np.cumsum(ordered, axis=-1) - 1) / ranks
    last = np.sum(ordered > excess, axis=-1, keepdims=True) - 1
    shares: Floats = np.maximum(values - np.take_along_axis(excess, last, -1), 0.0)
    return shares
