"""Laws of a random subset of a pool."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, gammaln

from skpuffer.kernel.numbers import Floats, Indices

__all__ = ["IndependentRecords", "Masks", "SubsetLaw", "UniformSubset", "shares"]

#: Subsets, one a row: whether each record of the pool is in it.
Masks = NDArray[np.bool_]


@dataclass(frozen=True)
class UniformSubset:
    """So many records of each stratum, every choice of them as likely.

    Parameters
    ----------
    strata : tuple of (ndarray of int, int)
        Positions in the pool, and how many of them are drawn.
    n_pool : int
    """

    strata: tuple[tuple[Indices, int], ...] = field(repr=False)
    n_pool: int

    @property
    def log_count(self) -> float:
        """Logarithm of the number of subsets there are."""
        return math.fsum(
            float(gammaln(len(at) + 1) - gammaln(n + 1) - gammaln(len(at) - n + 1))
            for at, n in self.strata
        )

    @property
    def entropy(self) -> float:
        """Shannon entropy of the subset, in nats."""
        return self.log_count

    def draw(self, n: int, rng: np.random.Generator) -> Masks:
        """Return `n` subsets, drawn one after the other."""
        masks: Masks = np.zeros((n, self.n_pool), dtype=bool)
        for mask in masks:
            for at, size in self.strata:
                mask[rng.choice(at, size, replace=False, shuffle=False)] = True
        return masks

    def all(self) -> tuple[Masks, Floats]:
        """Return all subsets, and the probability of each."""
        choices = itertools.product(
            *(itertools.combinations(at.tolist(), size) for at, size in self.strata)
        )
        count = math.prod(math.comb(len(at), n) for at, n in self.strata)
        masks: Masks = np.zeros((count, self.n_pool), dtype=bool)
        for mask, chosen in zip(masks, choices, strict=True):
            mask[list(itertools.chain(*chosen))] = True
        return masks, np.full(len(masks), 1 / len(masks))


@dataclass(frozen=True)
class IndependentRecords:
    """Each record by itself, with one probability.

    Parameters
    ----------
    rate : float
    n_pool : int
    """

    rate: float
    n_pool: int

    @property
    def log_count(self) -> float:
        """Logarithm of the number of subsets, the empty one and the pool among them."""
        return self.n_pool * math.log(2)

    @property
    def entropy(self) -> float:
        """Shannon entropy of the subset, in nats."""
        return self.n_pool * float(entr(self.rate) + entr(1 - self.rate))

    def draw(self, n: int, rng: np.random.Generator) -> Masks:
        """Return `n` subsets, drawn one after the other."""
        masks: Masks = np.empty((n, self.n_pool), dtype=bool)
        for mask in masks:
            mask[:] = rng.random(self.n_pool) < self.rate
        return masks

    def all(self) -> tuple[Masks, Floats]:
        """Return all subsets, and the probability of each."""
        bits = np.arange(2**self.n_pool)[:, None] >> np.arange(self.n_pool)
        masks: Masks = (bits & 1).astype(bool)
        sizes = masks.sum(axis=1)
        weights = self.rate**sizes * (1 - self.rate) ** (self.n_pool - sizes)
        return masks, weights / weights.sum()


SubsetLaw = UniformSubset | IndependentRecords


def shares(sizes: Indices, n: int) -> Indices:
    """Return how many of `n` fall to each class, in the shares that classes have.

    By largest remainders, the first of equal ones, so that none is off by one or more.

    Parameters
    ----------
    sizes : ndarray of int of shape (n_classes,)
    n : int
        At most their sum.

    Returns
    -------
    ndarray of int of shape (n_classes,)
        Sums to `n`, and none exceeds its size.
    """
    # in integers: remainders of floats are off by a rounding
    counts, left = np.divmod(sizes.astype(np.int64) * n, int(sizes.sum()))
    largest = np.argsort(-left, kind="stable")[: n - int(counts.sum())]
    counts[largest] += 1
    found: Indices = counts
    return found
