"""Strategies of given rows: any banded matrix, and the binary tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_finite,
    check_positive,
)

from ._base import NoiseStrategy


@dataclass(frozen=True)
class PrefixSumTree(NoiseStrategy, kind="prefix_sum_tree"):
    """Strategy of the binary tree over the steps of a run.

    A node of level l is a sum of ``2**l`` consecutive steps, with noise of its own; C
    has a row for each node that the run completes. For each node the estimate of least
    variance from the nodes below it is taken.

    Parameters
    ----------
    n_steps : int
        Length of the run. The state grows with its number of binary digits.

    References
    ----------
    Honaker (2015), Efficient use of differentially private binary trees.

    Examples
    --------
    >>> from skpuffer.noise.strategies import PrefixSumTree
    >>> PrefixSumTree(3).matrix(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    n_steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_steps", check_count(n_steps=self.n_steps))

    def check_run(self, n_steps: int) -> None:
        """Refuse a run of another number of steps."""
        if n_steps != self.n_steps:
            raise value_error(
                "strategy.tree_steps_mismatch", tree_steps=self.n_steps, n_steps=n_steps
            )

    def n_rows(self, n_steps: int) -> int:
        """Return how many nodes the steps complete."""
        return 2 * n_steps - n_steps.bit_count()

    def _nodes(self, n_steps: int) -> tuple[Indices, Indices]:
        """First step of each node, and the one after its last, in order of the rows."""
        levels = [
            np.arange(1, n_steps // size + 1) * size
            for size in 2 ** np.arange(n_steps.bit_length())
        ]
        ends = np.concatenate(levels)
        sizes = np.repeat(2 ** np.arange(len(levels)), [len(each) for each in levels])
        # by the step that completes them, lower levels first
        order = np.lexsort([sizes, ends])
        return (ends - sizes)[order], ends[order]

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        starts, ends = self._nodes(n_steps)
        batches = np.arange(n_batches)[:, np.newaxis]
        # steps of a batch before the end of a node, less those before its start
        means: Floats = ((ends - batches - 1) // n_batches).astype(np.float64)
        means -= (starts - batches - 1) // n_batches
        return means

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
        variances = _variances(n_steps.bit_length())
        # nodes of the prefix, the largest first, each with the sum of those up to it
        nodes: list[tuple[Floats, Floats]] = []
        before: Floats | float = 0.0
        for step in range(1, n_steps + 1):
            node = next(draws)
            # as one is added to a binary number: two of a level make one of the next
            for level in range((step & -step).bit_length() - 1):
                left, _ = nodes.pop()
                # by inverse variances: that of a draw is one
                share = variances[level + 1]
                node = share * next(draws) + (1 - share) * (left + node)
            total = node + (nodes[-1][1] if nodes else 0.0)
            nodes.append((node, total))
            yield total - before
            before = total

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        starts, ends = self._nodes(n_steps)
        steps = np.arange(n_steps)
        inside = (starts[:, np.newaxis] <= steps) & (steps < ends[:, np.newaxis])
        return inside.astype(np.float64)

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum; see the base class."""
        lengths = np.arange(1, n_steps + 1)[:, np.newaxis]
        variances = _variances(n_steps.bit_length())
        digits = (lengths >> np.arange(len(variances))) & 1
        return np.sqrt(digits @ variances)


def _variances(n_levels: int) -> Floats:
    """Variance of the best estimate of a node of each level, by it and those below."""
    variances = [1.0]
    for _ in range(n_levels):
        below = 2 * variances[-1]
        # of a draw of variance one, and of the sum of the two nodes below
        variances.append(below / (1 + below))
    return np.array(variances)


# Blocks of so many numbers pay for the calls; of more rows than these, the products
# that make them would cost more than they save.
_NUMBERS, _MOST_ROWS = 2**12, 128


def in_blocks(rows: Iterator[Floats], n_rows: int, least: int) -> Iterator[Floats]:
    """Yield rows in blocks (size, dim) of their own memory, of one length but the last.

    `least` is how many rows the state holds anyway.
    """
    rest = islice(rows, n_rows)
    first = next(rest, None)
    if first is None:
        return
    size = min(max(_NUMBERS // max(1, len(first)), least, 1), _MOST_ROWS)
    block = np.array([first, *islice(rest, size - 1)])
    while len(block):
        yield block
        block = np.array(list(islice(rest, size)))


def windowed(
    rows: Iterator[Floats],
    n_rows: int,
    past: int,
    weights: Callable[[int], Floats],
    recursive: bool,
) -> Iterator[Floats]:
    """Yield sums of each row and of the past before it, with the same weights.

    `past`: how many rows of the past are kept; at the start they are zero. `weights`:
    given a number of rows, their weights of shape (n, past + n), oldest first. Those of
    fewer rows are its first ones. `recursive`: whether the past is that of what is
    yielded, not of `rows`.
    """
    matrix = window = np.zeros((0, 0))
    for block in in_blocks(rows, n_rows, past):
        size = len(block)
        # the first block is as long as any
        if not window.size:
            matrix = weights(size)
            window = np.zeros((past + size, block.shape[1]))
        window[past : past + size] = block
        sums = matrix[:size, : past + size] @ window[: past + size]
        if recursive:
            window[past : past + size] = sums
        # numpy moves overlapping memory as if it had been copied first
        window[:past] = window[size : size + past]
        yield from sums


# Noise that is so many times its draws has lost half of the digits.
_LARGEST_GROWTH = 1e8


@dataclass(frozen=True)
class BandedRows(NoiseStrategy, kind="banded_rows"):
    """Strategy of a banded lower-triangular matrix, row by row.

    Parameters
    ----------
    rows : tuple of tuple of float
        One for each step: entry j of row n is that of C in row n and column n - j. The
        diagonal must be positive. Entries left of the first column must be zero; others
        may be negative, and are accounted for by their absolute values.

    Raises
    ------
    ValueError
        If the numbers are not of the kind, or the noise would grow beyond all bounds.

    Examples
    --------
    >>> from skpuffer.noise.strategies import BandedRows
    >>> BandedRows.of_matrix([[1.0, 0.0], [0.5, 1.0]]).rows
    ((1.0, 0.0), (1.0, 0.5))
    """

    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        bands = check_finite(rows=self.rows)
        if bands.ndim != 2 or not bands.size:
            raise value_error("strategy.rows_shape_wrong", shape=bands.shape)
        # of workable size: everything is divided by them
        check_positive(rows=float(bands[:, 0].min()))
        n_steps, width = bands.shape
        if np.any(bands[~_inside(n_steps, width)]):
            raise value_error("strategy.rows_not_lower")
        object.__setattr__(self, "rows", tuple(map(tuple, bands.tolist())))
        object.__setattr__(self, "_bands", bands)
        self._check_growth()

    def __repr__(self) -> str:
        # not thousands of numbers, wherever a run is named
        n_steps, width = len(self.rows), len(self.rows[0])
        return f"BandedRows(<{n_steps} rows of {width} diagonals>)"

    @classmethod
    def of_matrix(cls, matrix: ArrayLike) -> BandedRows:
        """Return the strategy of a dense lower-triangular matrix (n_steps, n_steps)."""
        dense = check_finite(matrix=matrix)
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size:
            raise value_error("strategy.matrix_not_square", shape=dense.shape)
        if np.any(np.triu(dense, 1)):
            raise value_error("strategy.matrix_not_lower_triangular")
        n_steps = len(dense)
        steps, columns = np.nonzero(dense)
        width = int(np.max(steps - columns, initial=0)) + 1
        bands = np.zeros((n_steps, width))
        bands[steps, steps - columns] = dense[steps, columns]
        return cls(tuple(map(tuple, bands.tolist())))

    def _check_growth(self) -> None:
        """Refuse a matrix whose inverse is so large that the noise has no digits."""
        # any draws will do: what grows does so whatever it begins with
        n_steps, width = self._bands.shape  # type: ignore[attr-defined]
        if width == 1:
            return
        draws = np.random.default_rng(0).normal(size=(n_steps, 4))
        with np.errstate(over="ignore", invalid="ignore"):
            largest = max(
                np.abs(noise).max() for noise in self.stream(iter(draws), n_steps)
            )
        # NaN fails the comparison as well
        if not largest * self._bands[:, 0].min() < _LARGEST_GROWTH:  # type: ignore[attr-defined]
            raise value_error("strategy.rows_noise_grows")

    def check_run(self, n_steps: int) -> None:
        """Refuse a run of another number of steps than there are rows."""
        if n_steps != len(self.rows):
            raise value_error(
                "strategy.rows_steps_mismatch", n_rows=len(self.rows), n_steps=n_steps
            )

    @property
    def bandwidth(self) -> int:
        """Number of diagonals of C that are not zero."""
        return len(self.rows[0])

    def _of_steps(self, n_steps: int) -> Floats:
        bands: Floats = self._bands[:n_steps]  # type: ignore[attr-defined]
        if len(bands) < n_steps:
            self.check_run(n_steps)
        return bands

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        bands = self._of_steps(n_steps)
        means = np.zeros((n_batches, n_steps))
        steps = np.arange(n_steps)
        for lag in range(min(bands.shape[1], n_steps)):
            # the batch of step n - lag is in row n
            later = steps[lag:]
            # a step is in one batch: no two of a lag fall together
            means[(later - lag) % n_batches, later] += np.abs(bands[lag:, lag])
        return means

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
        bands = self._of_steps(n_steps)
        past = bands.shape[1] - 1
        window = np.zeros((0, 0))
        start = 0
        for block in in_blocks(draws, n_steps, past):
            size = len(block)
            if not window.size:
                window = np.zeros((past + size, block.shape[1]))
            # entry j of a row meets the window j rows above its own
            rows = np.zeros((size, past + size))
            at = np.arange(size)[:, np.newaxis]
            rows[at, past + at - np.arange(past + 1)] = bands[start : start + size]
            right = block - rows[:, :past] @ window[:past]
            noise = solve_triangular(
                rows[:, past:], right, lower=True, check_finite=False
            )
            window[past : past + size] = noise
            window[:past] = window[size : size + past]
            start += size
            yield from noise

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        bands = self._of_steps(n_steps)
        steps, lags = np.nonzero(bands)
        dense = np.zeros((n_steps, n_steps))
        dense[steps, steps - lags] = bands[steps, lags]
        return dense


def _inside(n_steps: int, width: int) -> np.ndarray:
    """Which entries of bands are of columns that there are."""
    return np.arange(width) <= np.arange(n_steps)[:, np.newaxis]
