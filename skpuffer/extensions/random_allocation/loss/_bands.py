"""Ways to bound the interactions of bins, so that their counts can be summed over."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, check_count, check_finite

from ._recursion import (
    counts_within,
    divergences,
    interpolated,
    largest_order,
    own_weights,
    products,
    states,
)


def renyi_circulant(
    lags: Any, n_batches: int, orders: Any, cyclic: bool = True
) -> Floats:
    """Return the Rényi divergence in the direction "remove", from a banded Gram matrix.

    Clusters of bins between gaps of n_lags - 1 empty ones do not interact, so sums over
    counts renew themselves after each.

    Parameters
    ----------
    lags : array-like of shape (n_lags,)
        Entries ``gram[i, i + h]`` by h, or upper bounds on them. They are in units of
        the noise's variance and zero beyond.
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
        If the bins are cyclic and too few to leave gaps between clusters.
    """
    lags = check_finite(lags=lags)
    if lags.ndim != 1 or not lags.size or np.any(lags < 0):
        raise value_error("allocation.lags_empty_or_negative", lags=lags)
    n_batches = check_count(n_batches=n_batches)
    orders, order = largest_order(orders)
    if cyclic and order * (len(lags) - 1) >= n_batches:
        raise value_error(
            "allocation.orders_too_large_for_lags",
            n_batches=n_batches,
            n_lags=len(lags) - 1,
            largest=orders.max(),
        )
    return interpolated(circulant_divergences(lags, n_batches, order, cyclic), orders)


def circulant_divergences(
    lags: Floats, n_bins: int, order: int, cyclic: bool
) -> Floats:
    """Return the divergences at the orders 2, 3, ..., `order`; see the function above.

    `order` is below n_bins / (n_lags - 1) where the bins are cyclic.
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

    Returns
    -------
    lags : ndarray of shape (n_lags,)
        Excess over `shared`.
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


class Band(NamedTuple):
    """Part of a Gram matrix near its diagonal, and a bound on the rest.

    Parameters
    ----------
    band : ndarray of shape (n_bins, n_bins)
        Excess over `shared`, zero further than `width` from the diagonal.
    width : int
        Number of diagonals, the main one included.
    shared : float
        Largest entry beyond.
    cyclic : bool
        Whether the corners of `band` are not zero.
    """

    band: Floats
    width: int
    shared: float
    cyclic: bool

    @classmethod
    def of(cls, gram: Floats, width: int) -> "Band":
        """Cut a band out, a linear one wherever the corners would not help."""
        n_bins = len(gram)
        bins = np.arange(n_bins)
        linear = np.abs(bins - bins[:, np.newaxis])
        cyclic = np.minimum(linear, n_bins - linear)
        # no two bins on a circle are further than half of it from each other
        around = min(width, n_bins // 2 + 1)
        shared = gram[cyclic >= around].max(initial=0.0)
        corners = gram[linear >= width].max(initial=0.0) > shared
        distance, width = (cyclic, around) if corners else (linear, min(width, n_bins))
        band = np.where(distance < width, np.maximum(gram - shared, 0.0), 0.0)
        return cls(band, width, float(shared), bool(corners))

    def cost(self, order: int) -> float:
        """Return how many operations a pass takes."""
        n_bins = len(self.band)
        if self.width == 1:
            return n_bins * order**2
        last = 2 * self.width if self.cyclic else self.width + 1
        return float(n_bins * math.comb(order + last, last))

    def divergences(self, order: int) -> Floats:
        """Return bounds at the orders 2, 3, ..., `order`, from one pass."""
        top = float(self.band.max())
        sums = self._independent if self.width == 1 else self._passed
        return divergences(sums(order, top), top, self.shared, len(self.band))

    def _independent(self, order: int, top: float) -> Floats:
        """Sums over the counts if no two bins interact: a product of polynomials."""
        total = np.zeros(order + 1)
        total[0] = 1.0
        for entry, times in zip(
            *np.unique(np.diag(self.band), return_counts=True), strict=True
        ):
            factor = own_weights(entry, top, order)[np.newaxis]
            while times:
                if times % 2:
                    total = products(total[np.newaxis], factor, top)
                factor = products(factor, factor, top)[np.newaxis]
                times //= 2
        return total

    def _passed(self, order: int, top: float) -> Floats:
        """Sums over the counts, bin by bin."""
        # On a circle, the counts of the first bins meet the last ones: they are held
        # fixed, for all that make up the same total at once.
        n_first = self.width - 1 if self.cyclic else 0
        first = counts_within(n_first, order)
        total = np.zeros(order + 1)
        for placed in range(order + 1 if self.cyclic else 1):
            fixed = first[first.sum(axis=1) == placed]
            total[placed:] += self._rest(fixed.astype(float), order - placed, top)
        return total

    def _rest(self, fixed: Floats, order: int, top: float) -> Floats:
        """Sums over the counts of all other bins, of a total of at most `order`."""
        n_first, n_last = fixed.shape[1], self.width - 1
        last = states(n_last, order)
        placed = fixed[0].sum()
        table = last.empty(len(fixed))
        table *= self._fixed_weights(fixed, top)[:, np.newaxis, np.newaxis]
        n_bins = len(self.band)
        padded = np.pad(self.band, ((0, 0), (n_last, 0)))
        for k in range(n_first, n_bins):
            # whatever bins of the first ones are near: on either side, and only once,
            # as they are not among the last ones remembered
            near = self.band[k, :n_first]
            offset = fixed @ near - top * placed if near.any() else -top * placed
            factors = last.interactions(
                padded[k, k : k + n_last], top, np.atleast_1d(offset)
            )
            alone = own_weights(self.band[k, k], top, order)
            table = last.advanced(table, factors, alone)
        return table.sum(axis=(0, 2))

    def _fixed_weights(self, fixed: Floats, top: float) -> Floats:
        """Weights of the first bins alone; of shape (n,)."""
        n_first, placed = fixed.shape[1], fixed[0].sum()
        part = self.band[:n_first, :n_first]
        # ordered pairs of different records in the tuple, twice over
        pairs = np.einsum("ni,ij,nj->n", fixed, part, fixed) - fixed @ np.diag(part)
        exponent = (pairs - top * placed * (placed - 1)) / 2
        return np.exp(np.minimum(exponent, 0.0) - gammaln(fixed + 1).sum(axis=1))


class Renewal:
    """Upper bounds of a Gram matrix that are the same along each diagonal.

    `width` diagonals are kept apart from the rest.
    """

    def __init__(self, gram: Floats, width: int) -> None:
        band = Band.of(gram, width)
        self.n_bins, self.width, self.cyclic = len(gram), band.width, band.cyclic
        self.lags, self.shared = envelope(gram, band.width, band.cyclic)

    def cost(self, order: int) -> float:
        """Return how many operations the orders up to `order` take."""
        if self.width > self.n_bins // 2 and self.cyclic:
            return math.inf
        return cluster_cost(self.width, order)

    def divergences(self, order: int) -> Floats:
        """Return bounds at the orders 2, 3, ..., `order`."""
        if not self.cyclic:
            return self._bounds(order, self.n_bins, False)
        # Tuples of higher orders may leave no gap anywhere. The mixture is the mean of
        # those of all windows on the circle, and the divergence convex: the worst
        # window's bounds it, whose ends are too far apart to interact.
        found = self._bounds(order, self.n_bins - self.width + 1, False)
        most = min(order, (self.n_bins - 1) // (self.width - 1))
        if most >= 2:
            around = self._bounds(most, self.n_bins, True)
            found[: most - 1] = np.minimum(found[: most - 1], around)
        return found

    def _bounds(self, order: int, n_bins: int, cyclic: bool) -> Floats:
        found = circulant_divergences(self.lags, n_bins, order, cyclic)
        return found + self.shared * np.arange(2, order + 1) / 2
