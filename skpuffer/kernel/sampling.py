"""Sampling schemes: the choice of records for each step of a run, one class each.

A scheme has a cost only where an account is registered for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, repeat
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel import loaders
from skpuffer.kernel.numbers import Indices, check_count

if TYPE_CHECKING:
    from skpuffer.kernel.gradients import GradientRelease


# Expected number of records that are drawn at once for Poisson batches: enough to pay
# for the calls, and small beside the records themselves.
_POISSON_BLOCK = 2**14


#: Rows of each step; None stands for all rows.
Batches = Iterator[Indices | None]


@dataclass(frozen=True)
class SamplingScheme(ABC):
    """Base of sampling schemes: the choice of records for each step.

    Schemes have no parameters of their own: the number of records and the size of the
    batches are the release's.

    Attributes
    ----------
    name : str
        How a user spells it.

    Examples
    --------
    One of one's own says what it takes for granted and draws the batches. Accountants
    refuse it until they are told what its steps cost.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.releases import GradientRelease, SamplingScheme
    >>> @dataclass(frozen=True)
    ... class InTurnSampling(SamplingScheme):
    ...     name = "in_turn"
    ...
    ...     def statement(self, release):
    ...         return "every step takes the records after those of the last one"
    ...
    ...     def _batches(self, release, rng):
    ...         while True:
    ...             yield from np.arange(release.n_records).reshape(-1, 2)
    >>> run = GradientRelease(
    ...     n_records=4, n_steps=3, batch_size=2, sampling=InTurnSampling()
    ... )
    >>> [
    ...     batch.tolist()
    ...     for batch in run.sampling.batches(run, np.random.default_rng(0))
    ... ]
    [[0, 1], [2, 3], [0, 1]]
    """

    #: How a user spells it.
    name: ClassVar[str]

    def batch_size(self, n_records: float, asked: int | None) -> int:
        """Return the size of a batch, checked.

        Parameters
        ----------
        n_records : int
        asked : int or None
            As the release was given it.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If it is missing, or larger than the table allows.
        """
        # no default: the rate decides what a step costs, so somebody has to choose it
        if asked is None:
            raise value_error("sampling.batch_size_missing", name=self.name)
        size = check_count(batch_size=asked)
        if size > n_records:
            raise value_error(
                "sampling.batch_size_exceeds_records",
                batch_size=size,
                n_records=n_records,
            )
        return size

    def steps_per_epoch(self, n_records: int, batch_size: int) -> int:
        """Steps that visit as many records as there are, rounded up."""
        return math.ceil(n_records / batch_size)

    def divisor(self, n_records: int, batch_size: int) -> float:
        """Public number a step's sum is divided by: the expected size of a batch."""
        # The batch that was drawn is never counted: its size under Poisson sampling
        # tells of the table, and a divisor that depends on it would leak unnoised.
        return float(batch_size)

    def rate(self, n_records: int, batch_size: int) -> float:
        """Probability that a record is in a step's batch."""
        # exact where each record is as likely as any other to be in a batch
        return self.divisor(n_records, batch_size) / n_records

    @abstractmethod
    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""

    def batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        """Return an iterator over the batches of a run.

        Parameters
        ----------
        release : GradientRelease
            With this scheme.
        rng : numpy.random.Generator
            Used by nothing else while the iterator is read, so that a run can be
            replayed.

        Returns
        -------
        iterator of ndarray of shape (size,) or None
            Rows of each of the `n_steps` steps, in increasing order (they lie closer
            in memory so); a row drawn twice appears twice. A batch may be empty. None
            stands for all rows.
        """
        # an iterator without end, cut off: the number of steps is the release's, and
        # public
        return islice(self._batches(release, rng), release.n_steps)

    @abstractmethod
    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        """Draw one batch after the other, without end."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FullBatchSampling(SamplingScheme):
    """Full batches: all records at each step.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(n_records=1000, n_steps=2, sampling="full_batch")
    >>> print(run.batch_size, run.sampling.statement(run))
    1000 every step takes all 1000 records
    """

    name = "full_batch"

    def batch_size(self, n_records: float, asked: int | None) -> int:
        """Return the number of records, the only size there is."""
        if asked not in (None, n_records):
            raise value_error(
                "sampling.full_batch_size_wrong", n_records=n_records, asked=asked
            )
        return int(n_records)

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement("assume.step_takes_all_records", n_records=release.n_records)

    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        # nothing is drawn, so the generator stays as it is
        return repeat(None)


@dataclass(frozen=True)
class PoissonSampling(SamplingScheme):
    """Poisson sampling: each record independently with one probability.

    A batch may be empty.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(n_records=1000, batch_size=100, n_steps=2)
    >>> run.sampling.name, run.sampling_rate, run.divisor
    ('poisson', 0.1, 100.0)
    """

    name = "poisson"

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.step_poisson_sampled", sampling_rate=release.sampling_rate
        )

    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        n, rate = release.n_records, release.sampling_rate
        # whole steps to a block, and about as many to each
        n_blocks = math.ceil(release.n_steps * release.divisor / _POISSON_BLOCK)
        n_steps = math.ceil(release.n_steps / n_blocks)
        while True:
            # the trials of several steps, one after the other
            hits = _successes(n * n_steps, rate, rng)
            # trial number step * n + i is record i at that step
            ends = hits.searchsorted(n * np.arange(1, n_steps + 1))
            start = 0
            for step, end in enumerate(ends.tolist()):
                batch = hits[start:end]
                batch -= step * n
                yield batch
                start = end


def _successes(n_trials: int, probability: float, rng: np.random.Generator) -> Indices:
    """Draw the sorted positions of the successes among independent trials.

    The gaps between successes are geometric, so the cost is that of the successes and
    not of the trials. A geometric variable is, exactly, the integer part of
    ``log(u) / log(1 - probability)``, plus one, with `u` uniform in (0, 1]; drawn so,
    it costs less than half of `Generator.geometric`, which takes the second logarithm
    at each draw.
    """
    mean_gap = -1 / math.log1p(-probability) if probability < 1 else 0.0
    n_hits = n_trials * probability
    size = int(n_hits + 4 * n_hits**0.5) + 16  # nearly always enough; topped up if not
    last, parts = -1, []
    while last < n_trials:
        gaps = rng.random(size)
        np.subtract(1, gaps, out=gaps)  # never zero
        np.log(gaps, out=gaps)
        positions = np.empty(size, np.int64)
        np.multiply(gaps, -mean_gap, out=positions, casting="unsafe")  # rounds down
        positions += 1
        # gaps follow each other: positions are their sums, on from the last of the part
        # before
        positions[0] += last
        np.cumsum(positions, out=positions)
        last = positions[-1]
        parts.append(positions)
    hits = parts[0] if len(parts) == 1 else np.concatenate(parts)
    # the last part runs on beyond the trials
    return hits[: hits.searchsorted(n_trials)]


@dataclass(frozen=True)
class FixedSizeSampling(SamplingScheme):
    """Sampling without replacement: a uniform subset of fixed size at each step.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Privacy amplification by subsampling.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(
    ...     n_records=1000, batch_size=100, n_steps=2, sampling="fixed_size"
    ... )
    >>> run.sampling_rate
    0.1
    """

    name = "fixed_size"

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.step_fixed_size_subset",
            batch_size=release.batch_size,
            n_records=release.n_records,
        )

    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        n, size = release.n_records, release.batch_size
        while True:
            # sorted anyway, so no time is spent on an order
            yield np.sort(rng.choice(n, size, replace=False, shuffle=False))


@dataclass(frozen=True)
class WithReplacementSampling(SamplingScheme):
    """Sampling with replacement: a record may be drawn several times in a step.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Privacy amplification by subsampling.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(
    ...     n_records=10, batch_size=20, n_steps=2, sampling="with_replacement"
    ... )
    >>> round(run.sampling_rate, 3)  # that a record is drawn at all
    0.878
    """

    name = "with_replacement"

    def batch_size(self, n_records: float, asked: int | None) -> int:
        """Return the number of draws, which the table does not bound."""
        # so many that no table forbids them
        return super().batch_size(math.inf, asked)

    def rate(self, n_records: int, batch_size: int) -> float:
        """Probability that a record is in a step's batch, once or more often."""
        # log1p(-1) below would be minus infinity
        if n_records == 1:
            return 1.0
        # 1 - (1 - 1/n)^size, without the cancellation of a small rate
        return -math.expm1(batch_size * math.log1p(-1 / n_records))

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.step_drawn_with_replacement",
            batch_size=release.batch_size,
            n_records=release.n_records,
        )

    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        while True:
            yield np.sort(rng.integers(release.n_records, size=release.batch_size))


@dataclass(frozen=True)
class ShuffledEpochsSampling(SamplingScheme):
    """Shuffled epochs: all records are dealt to batches, in a new order each epoch.

    Sizes of batches differ by at most one. A record takes part once in each epoch; that
    nobody knows when is not counted on.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> run = GradientRelease(
    ...     n_records=10, batch_size=4, n_steps=6, sampling="shuffled_epochs"
    ... )
    >>> run.steps_per_epoch, run.n_epochs
    (3, 2)
    """

    name = "shuffled_epochs"

    def divisor(self, n_records: int, batch_size: int) -> float:
        """Public number a step's sum is divided by: the mean size of a batch."""
        # sizes differ by at most one, and which batch has which is public
        return n_records / self.steps_per_epoch(n_records, batch_size)

    def statement(self, release: GradientRelease) -> Statement:
        """Assumption that the scheme makes of a release, in a sentence."""
        return Statement(
            "assume.epoch_shuffled_not_amplified", n_records=release.n_records
        )

    def _batches(self, release: GradientRelease, rng: np.random.Generator) -> Batches:
        while True:
            # a new order each epoch, so that a step's records do not stay together
            order = rng.permutation(release.n_records)
            for batch in np.array_split(order, release.steps_per_epoch):
                yield np.sort(batch)


#: Schemes by the names that users give; another room adds those of bins.
SCHEMES: dict[str, SamplingScheme] = {
    kind.name: kind()
    for kind in (
        FullBatchSampling,
        PoissonSampling,
        FixedSizeSampling,
        WithReplacementSampling,
        ShuffledEpochsSampling,
    )
}


def sampling_scheme(sampling: str | SamplingScheme) -> SamplingScheme:
    """Return a sampling scheme, given it or its name."""
    # any scheme is executed; whether it can be accounted for, accountants say
    if isinstance(sampling, SamplingScheme):
        return sampling
    # an array, say, has no hash
    with suppress(KeyError, TypeError):
        return SCHEMES[sampling]
    for load in loaders:
        load()
    with suppress(KeyError, TypeError):
        return SCHEMES[sampling]
    names = tuple(map(repr, SCHEMES))
    raise value_error("sampling.sampling_not_valid", names=names, sampling=sampling)
