"""Ways to bound the interactions of bins, so that their counts can be summed over."""

import math
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaln

from skpuffer.utils._types import Floats

from ._counts import (
    counts_within,
    divergences,
    own_weights,
    products,
    states,
)
from ._renewal import circulant_divergences, cluster_cost, envelope

__all__ = ["Band", "Renewal", "Way"]


class Way(Protocol):
    """A way to bound the Rényi divergences in the direction "remove"."""

    @property
    def shared(self) -> float:
        """Largest entry that is not kept apart: none is bounded where it is zero."""

    def cost(self, order: int) -> float:
        """Return how many operations the orders up to `order` take."""

    def divergences(self, order: int) -> Floats:
        """Return bounds at the orders 2, 3, ..., `order`, in nats."""


class Band(NamedTuple):
    """Part of a Gram matrix near its diagonal, and a bound on the rest.

    Parameters
    ----------
    band : ndarray of shape (n_bins, n_bins)
        What exceeds `shared`, zero further than `width` from the diagonal.
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
        """Sums over the counts of all other bins, of a total of at most `order`.

        Parameters
        ----------
        fixed : ndarray of shape (n, n_first)
            Counts of the first bins, of one common total.
        order : int
        top : float

        Returns
        -------
        ndarray of shape (order + 1,)
        """
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
        total: Floats = table.sum(axis=(0, 2))
        return total

    def _fixed_weights(self, fixed: Floats, top: float) -> Floats:
        """Weights of the first bins alone; of shape (n,)."""
        n_first, placed = fixed.shape[1], fixed[0].sum()
        part = self.band[:n_first, :n_first]
        # ordered pairs of different records in the tuple, twice over
        pairs = np.einsum("ni,ij,nj->n", fixed, part, fixed) - fixed @ np.diag(part)
        exponent = (pairs - top * placed * (placed - 1)) / 2
        weights: Floats = np.exp(
            np.minimum(exponent, 0.0) - gammaln(fixed + 1).sum(axis=1)
        )
        return weights


class Renewal:
    """Upper bounds of a Gram matrix that are the same along each diagonal.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)
    width : int
        Number of diagonals that are kept apart from the rest.
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
