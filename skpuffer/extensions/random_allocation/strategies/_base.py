"""Base of strategies: how the noise of a run's steps is correlated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import type_error
from skpuffer.kernel.numbers import Floats, check_count
from skpuffer.kernel.plain import Plain

# So many numbers of the inverse of C are held at once where its errors are added up.
_NUMBERS = 2**20


class NoiseStrategy(Plain):
    """Base of strategies: how the noise of a run's steps is correlated.

    With C the strategy matrix, a row for each draw of noise, the sums of all steps are
    released with the noise ``B Z``, the rows of Z independent draws of the noise and B
    a left inverse of C. That is post-processing of ``C @ sums + Z``, which is accounted
    for. C is never rescaled: noise of scale s under C is that of scale ``a s`` under
    ``a C``. A strategy is frozen and hashable.

    Notes
    -----
    Each row of C is complete, and drawn, no later than the next. Additions of a step
    may then depend on all noise that was released before.

    References
    ----------
    Denisov et al. (2022), Improved differential privacy for SGD.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_square_root, identity
    >>> for strategy in (identity(), banded_square_root(4)):
    ...     error = strategy.mean_error(100) * strategy.sensitivity(100, 100)
    ...     print(strategy.bandwidth, round(error, 2))
    1 7.11
    4 4.1
    """

    #: Whether noise is independent across steps, of the scale asked for.
    is_identity: ClassVar[bool] = False

    def check_run(self, n_steps: int) -> None:
        """Raise ValueError if the strategy is for another number of steps."""

    def n_rows(self, n_steps: int) -> int:
        """Return how many independent draws the noise of a run takes: rows of C."""
        return n_steps

    @property
    def bandwidth(self) -> int | None:
        """Number of diagonals of C that are not zero; None if that grows with a run."""
        return None

    @abstractmethod
    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds to the rows of ``C @ sums`` at most, by its batch.

        Parameters
        ----------
        n_batches : int
            A record of batch i takes part in the steps i, i + n_batches, ...
        n_steps : int

        Returns
        -------
        ndarray of shape (n_batches, n_rows)
            Sums of the absolute values of those columns of C, in clip norms.
        """

    @abstractmethod
    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise (dim,) of each step: rows of ``B Z``, from draws of Z."""

    @abstractmethod
    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense, of shape (n_rows, n_steps), for figures and tests only."""

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return deviations (n_steps,) of the noise in prefix sums, in scales of Z."""
        n_rows = self.n_rows(n_steps)
        variances = np.zeros(n_steps)
        size = max(1, _NUMBERS // n_rows)
        # by what is executed: the part of the noise that each draw leaves in the sums
        for start in range(0, n_rows, size):
            units = np.zeros((n_rows, min(size, n_rows - start)))
            np.fill_diagonal(units[start:], 1.0)
            total = np.zeros(units.shape[1])
            for step, noise in enumerate(self.stream(iter(units), n_steps)):
                total += noise
                variances[step] += total @ total
        return np.sqrt(variances)

    def sensitivity(self, n_batches: int, n_steps: int) -> float:
        """Return how far a record of any one batch moves ``C @ sums`` at most.

        The smaller its errors times this, the better a strategy.

        Parameters
        ----------
        n_batches, n_steps : int
            As in :meth:`means`.

        Returns
        -------
        float
            In clip norms, l2.
        """
        return float(np.linalg.norm(self.means(n_batches, n_steps), axis=1).max())

    def mean_error(self, n_steps: int) -> float:
        """Return the root mean square of :meth:`prefix_errors`."""
        return float(np.sqrt(np.mean(self.prefix_errors(n_steps) ** 2)))

    def max_error(self, n_steps: int) -> float:
        """Return the largest of :meth:`prefix_errors`."""
        return float(np.max(self.prefix_errors(n_steps)))


# -- strategy that begins anew every so many steps -------------------------------------


@dataclass(frozen=True)
class Restarted(NoiseStrategy, kind="restarted"):
    """Strategy that begins anew every so many steps: C in blocks along the diagonal.

    Noise of different blocks is independent, so batches may be dealt anew at each.

    Parameters
    ----------
    strategy : NoiseStrategy
        Strategy of each block; the last one may be cut short.
    every : int
        Number of steps of a block.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Restarted, Toeplitz
    >>> Restarted(Toeplitz((1.0, 0.5)), every=2).matrix(3).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    strategy: NoiseStrategy
    every: int

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, NoiseStrategy):
            raise type_error("strategy.restarted_wrong_type", strategy=self.strategy)
        object.__setattr__(self, "every", check_count(every=self.every))
        self.strategy.check_run(self.every)

    @property
    def is_identity(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether noise is independent across steps, of the scale asked for."""
        return self.strategy.is_identity

    @property
    def bandwidth(self) -> int:
        """Number of diagonals of C that are not zero, or the length of a block."""
        width = self.strategy.bandwidth
        return self.every if width is None else min(width, self.every)

    def _lengths(self, n_steps: int) -> list[int]:
        whole, rest = divmod(n_steps, self.every)
        return [self.every] * whole + [rest] * (rest > 0)

    def n_rows(self, n_steps: int) -> int:
        """Return how many independent draws the noise of a run takes: rows of C."""
        return sum(map(self.strategy.n_rows, self._lengths(n_steps)))

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        blocks, start, known = [], 0, {}
        batches = np.arange(n_batches)
        for length in self._lengths(n_steps):
            if length not in known:
                known[length] = self.strategy.means(n_batches, length)
            # which batch the first step of a block is of changes if blocks are no
            # epochs
            blocks.append(known[length][(batches - start) % n_batches])
            start += length
        return np.hstack(blocks)

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class.

        Parameters
        ----------
        draws, n_steps : iterator of ndarray, int

        Yields
        ------
        ndarray of shape (dim,)
            Not to be changed: it may be part of the state.
        """
        for length in self._lengths(n_steps):
            rows = islice(draws, self.strategy.n_rows(length))
            yield from self.strategy.stream(rows, length)

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        dense = np.zeros((self.n_rows(n_steps), n_steps))
        row = column = 0
        for length in self._lengths(n_steps):
            block = self.strategy.matrix(length)
            dense[row : row + len(block), column : column + length] = block
            row, column = row + len(block), column + length
        return dense

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum; see the base class."""
        lengths = self._lengths(n_steps)
        known = {n: self.strategy.prefix_errors(n) ** 2 for n in set(lengths)}
        parts = [known[length] for length in lengths]
        # blocks are independent, and whole ones before count in full
        before = np.cumsum([0.0, *(part[-1] for part in parts[:-1])])
        return np.sqrt(
            np.concatenate([b + part for b, part in zip(before, parts, strict=True)])
        )
