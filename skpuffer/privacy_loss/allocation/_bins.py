"""The bins a record may be in, and what their means have in common."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from skpuffer.utils._plain import Plain
from skpuffer.utils._types import Floats

from ._lags import Window, windows

__all__ = ["Bins", "Means"]

#: A mean's square, in units of the noise's variance, beyond which bins stand out.
_LOUDEST = 100.0


class Means(Protocol):
    """What is asked of a strategy of correlated noise."""

    def __hash__(self) -> int:
        """Equal strategies are accounted once."""

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds to the rows of ``C @ sums``, by its batch."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


@dataclass(frozen=True)
class Bins(Plain, kind="bins"):
    """The bins of a run, one of which a record is in, by chance and throughout.

    Parameters
    ----------
    strategy : NoiseStrategy
    n_batches : int
    n_steps : int
    """

    strategy: Means
    n_batches: int
    n_steps: int

    @property
    def means(self) -> Floats:
        """What a record adds to the rows of ``C @ sums``, by its bin."""
        return self.strategy.means(self.n_batches, self.n_steps)

    @property
    def gram(self) -> Floats:
        """Inner products of the bins' means, in clip norms squared."""
        return _gram(self)

    def stand_out(self, variance: float) -> bool:
        """Whether noise of a variance, in clip norms squared, is next to none.

        All bins are told apart anyway, and the masses of laws leave the range of
        floats.
        """
        return bool(self.gram.max() > _LOUDEST * variance)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows of bins, each of which bounds all of them."""
        return _windows(self)


@lru_cache(maxsize=32)
def _gram(bins: Bins) -> Floats:
    means = bins.means
    gram: Floats = means @ means.T
    # symmetric to the last digit, which a product need not be
    gram = np.maximum(gram, gram.T)
    gram.flags.writeable = False
    return gram


@lru_cache(maxsize=32)
def _windows(bins: Bins) -> tuple[Window, ...]:
    return tuple(windows(bins.gram))
