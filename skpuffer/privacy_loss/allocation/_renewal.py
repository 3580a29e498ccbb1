"""Rényi divergence of random bins whose Gram matrix is the same along each diagonal."""

import math
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_count, check_finite
from skpuffer.utils._types import Floats

from ._counts import (
    divergences,
    interpolated,
    largest_order,
    own_weights,
    products,
    states,
)

__all__ = [
    "circulant_divergences",
    "cluster_cost",
    "envelope",
    "renyi_circulant",
]


def renyi_circulant(
    lags: Any, n_batches: int, orders: Any, cyclic: bool = True
) -> Floats:
    """Rényi divergence in the direction "remove", from the entries of a Gram matrix.

    A bin is empty, or in a cluster: that starts with the first bin of some count after
    n_lags - 1 empty ones and ends with the next n_lags - 1 empty ones. Clusters do not
    interact, so sums over counts renew themselves after each.

    Parameters
    ----------
    lags : array-like of shape (n_lags,)
        Entries ``gram[i, i + h]`` for h = 0, 1, ..., and zero beyond, in units of the
        noise's variance; or upper bounds on them.
    n_batches : int
        Number of bins.
    orders : float or array-like
        Above one. At whole orders the divergence is exact up to rounding up, at others
        interpolated from above.
    cyclic : bool, default=True
        Whether the first bin is next to the last.

    Returns
    -------
    ndarray of the shape of `orders`
        In nats.

    Raises
    ------
    ValueError
        If the bins are cyclic and so few that some tuple of `order` bins leaves no gap
        of n_lags - 1 empty ones: such tuples would not be counted.
    """
    lags = check_finite(lags=lags)
    if lags.ndim != 1 or not lags.size or np.any(lags < 0):
        raise ValueError(Statement("allocation.lags_empty_or_negative", lags=lags))
    n_batches = check_count(n_batches=n_batches)
    orders, order = largest_order(orders)
    if cyclic and order * (len(lags) - 1) >= n_batches:
        raise ValueError(
            Statement(
                "allocation.orders_too_large_for_lags",
                n_batches=n_batches,
                n_lags=len(lags) - 1,
                largest=orders.max(),
            )
        )
    return interpolated(circulant_divergences(lags, n_batches, order, cyclic), orders)


def circulant_divergences(
    lags: Floats, n_bins: int, order: int, cyclic: bool
) -> Floats:
    """Return the divergences at the orders 2, 3, ..., `order`; see the function above.

    Parameters
    ----------
    lags : ndarray of shape (n_lags,)
    n_bins : int
    order : int
        Below n_bins / (n_lags - 1) where the bins are cyclic.
    cyclic : bool

    Returns
    -------
    ndarray of shape (order - 1,)
    """
    top = float(lags.max())
    clusters = _clusters(lags, order, top)
    # the last cluster on a line may end beyond the last bin
    size = n_bins if cyclic else n_bins + len(lags) - 1
    sums = np.zeros((size + 1, order + 1))
    sums[0, 0] = 1.0
    for n in range(1, size + 1):
        length = min(n, len(clusters) - 1)
        blocks, rest = clusters[1 : length + 1], sums[n - length : n][::-1]
        if cyclic and n == size:
            # the block over the first bin may have begun at as many as it is long
            blocks = np.arange(1, length + 1.0)[:, np.newaxis] * blocks
        sums[n] = products(blocks, rest, top)
    return divergences(sums[size], top, 0.0, n_bins)


def cluster_cost(n_lags: int, order: int) -> float:
    """Return how many operations the clusters take, up to an order."""
    return float(((n_lags - 1) * order + 1) * math.comb(order + n_lags + 1, n_lags + 1))


def _clusters(lags: Floats, order: int, top: float) -> Floats:
    """Weights of a block of bins by its length and count; of shape (n, order + 1)."""
    alone = own_weights(float(lags[0]), top, order)
    found = np.zeros(((len(lags) - 1) * order + 2, order + 1))
    # a bin that is empty, after empty ones, is a block of its own
    found[1, 0] = 1.0
    if len(lags) == 1:
        found[1] = alone
        return found
    last = states(len(lags) - 1, order)
    # the first bin's count is not zero
    table = last.advanced(last.empty(1), np.ones((1, order + 1, 1)), alone)
    table[:, 0, 0] = 0.0
    factors = last.interactions(lags[:0:-1], top, np.zeros(1))
    for length in range(2, len(found)):
        table = last.advanced(table, factors, alone)
        # as many empty bins as lags: the cluster has ended
        found[length] = table[0, :, 0]
        table[0, :, 0] = 0.0
    return found


def envelope(gram: Floats, n_lags: int, cyclic: bool) -> tuple[Floats, float]:
    """Return upper bounds of a Gram matrix, the same along each diagonal.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)
    n_lags : int
    cyclic : bool
        Whether the first bin is next to the last.

    Returns
    -------
    lags : ndarray of shape (n_lags,)
        What exceeds the second one.
    shared : float
        The largest entry beyond the lags.
    """
    n_bins = len(gram)
    bins = np.arange(n_bins)
    if cyclic:
        lags = gram[bins, (bins + bins[:, np.newaxis]) % n_bins].max(axis=1)
    else:
        lags = np.array([np.diagonal(gram, h).max() for h in bins])
    beyond = lags[n_lags : n_bins - n_lags + 1] if cyclic else lags[n_lags:]
    shared = float(beyond.max(initial=0.0))
    return np.maximum(lags[:n_lags] - shared, 0.0), shared
