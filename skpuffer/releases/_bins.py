"""Sampling schemes under which each record draws its batch of an epoch by itself."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.gradients import GradientRelease
from skpuffer.kernel.numbers import Indices
from skpuffer.kernel.sampling import SCHEMES, SamplingScheme

__all__ = ["SAMPLING_SCHEMES", "BallsInBinsSampling", "FreshBinsSampling"]


class _BinsSampling(SamplingScheme):
    """Base of schemes under which each record draws one batch of an epoch by itself."""

    def divisor(self, n_records: int, batch_size: int) -> float:
        """Public number a step's sum is divided by: the expected size of a batch."""
        return n_records / self.steps_per_epoch(n_records, batch_size)

    @staticmethod
    def _epoch(release: GradientRelease, rng: np.random.Generator) -> list[Indices]:
        """Draw a bin for each record; return the rows in each bin."""
        n_bins = release.steps_per_epoch
        bins = rng.integers(n_bins, size=release.n_records)
        # stable, so that rows of one bin stay in their order
        order = np.argsort(bins, kind="stable")
        ends = np.cumsum(np.bincount(bins, minlength=n_bins))
        return np.split(order, ends[:-1])


@dataclass(frozen=True)
class FreshBinsSampling(_BinsSampling):
    """Random allocation: each record draws one batch of each epoch, anew.

    Records draw independently of each other and of other epochs, so that sizes of
    batches are random and a batch may be empty. There are
    ``ceil(n_records / batch_size)`` batches an epoch.

    References
    ----------
    Feldman and Shenfeld (2025), Privacy amplification by random allocation.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(
    ...     n_records=10, batch_size=5, n_steps=4, sampling="fresh_bins"
    ... )
    >>> a, b, c, d = run.sampling.batches(run, np.random.default_rng(0))
    >>> sorted([*a, *b]) == sorted([*c, *d]) == list(range(10))
    True
    >>> np.array_equal(a, c)  # the next epoch is dealt anew
    False
    """

    name = "fresh_bins"

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.epoch_fresh_bins", steps_per_epoch=release.steps_per_epoch
        )

    def _batches(
        self, release: GradientRelease, rng: np.random.Generator
    ) -> Iterator[Indices | None]:
        while True:
            yield from self._epoch(release, rng)


@dataclass(frozen=True)
class BallsInBinsSampling(_BinsSampling):
    """Balls in bins: each record draws one batch of an epoch, and keeps it.

    As :class:`FreshBinsSampling`, but every epoch has the same batches, which noise
    that is correlated across epochs needs. Independent noise hides less this way.

    References
    ----------
    Choquette-Choo, Ganesh, Haque, Steinke and Thakurta (2025), Near exact privacy
    amplification for matrix mechanisms; Chua et al. (2024), Balls-and-bins sampling for
    DP-SGD.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(
    ...     n_records=10, batch_size=5, n_steps=4, sampling="balls_in_bins"
    ... )
    >>> a, b, c, d = run.sampling.batches(run, np.random.default_rng(0))
    >>> sorted([*a, *b]) == list(range(10))
    True
    >>> np.array_equal(a, c) and np.array_equal(b, d)  # the same in every epoch
    True
    """

    name = "balls_in_bins"

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.epoch_balls_in_bins", steps_per_epoch=release.steps_per_epoch
        )

    def _batches(
        self, release: GradientRelease, rng: np.random.Generator
    ) -> Iterator[Indices | None]:
        epoch = self._epoch(release, rng)
        while True:
            # copies: whoever gets a batch may do with it as they like
            yield from (batch.copy() for batch in epoch)


SCHEMES |= {kind.name: kind() for kind in (FreshBinsSampling, BallsInBinsSampling)}

#: The schemes of this library, by the names that users give.
SAMPLING_SCHEMES = tuple(SCHEMES)
