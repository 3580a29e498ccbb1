"""Strategy that begins anew every so many steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_count

from ._base import NoiseStrategy

__all__ = ["Restarted"]


@dataclass(frozen=True)
class Restarted(NoiseStrategy, kind="restarted"):
    """Strategy that begins anew every so many steps: C in blocks along the diagonal.

    Noise of one block is independent of that of any other, so that batches may be dealt
    anew at each.

    Parameters
    ----------
    strategy : NoiseStrategy
        Of each block; of the last one its beginning, if the run ends within it.
    every : int
        Number of steps of a block.

    Raises
    ------
    TypeError
        If it is no strategy.
    ValueError
        If it is none of so many steps.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Restarted, Toeplitz
    >>> strategy = Restarted(Toeplitz((1.0, 0.5)), every=2)
    >>> strategy.matrix(4)
    array([[1. , 0. , 0. , 0. ],
           [0.5, 1. , 0. , 0. ],
           [0. , 0. , 1. , 0. ],
           [0. , 0. , 0.5, 1. ]])
    """

    strategy: NoiseStrategy
    every: int

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, NoiseStrategy):
            raise TypeError(
                Statement("strategy.restarted_wrong_type", strategy=self.strategy)
            )
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
        draws : iterator of ndarray of shape (dim,)
        n_steps : int

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
        errors: Floats = np.sqrt(
            np.concatenate([b + part for b, part in zip(before, parts, strict=True)])
        )
        return errors
