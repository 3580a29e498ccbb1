"""Strategy of any banded matrix, as somebody brings it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_finite, check_positive
from skpuffer.utils._types import Floats

from ._base import NoiseStrategy

__all__ = ["BandedRows"]


# Blocks of so many numbers pay for the calls; of more rows than these, the products
# that make them would cost more than they save.
_NUMBERS, _MOST_ROWS = 2**12, 128


def in_blocks(rows: Iterator[Floats], n_rows: int, least: int) -> Iterator[Floats]:
    """Yield rows in blocks, all of the same length but the last.

    Parameters
    ----------
    rows : iterator of ndarray of shape (dim,)
    n_rows : int
        How many are read.
    least : int
        How many rows the state holds anyway, which a block may hold as well.

    Yields
    ------
    ndarray of shape (size, dim)
        Of their own memory.
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

    Parameters
    ----------
    rows : iterator of ndarray of shape (dim,)
    n_rows : int
    past : int
        How many rows of the past are kept; at the start they are zero.
    weights : callable
        Given a number of rows, their weights of shape (n, past + n): the past first,
        oldest first. Those of fewer rows are its first ones.
    recursive : bool
        Whether the past is that of what is yielded, not of `rows`.

    Yields
    ------
    ndarray of shape (dim,)
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
        One for each step: entry j of row n is that of C in row n and column n - j, so
        that the diagonal, which must be positive, comes first. Entries left of the
        first column must be zero; others may be negative, and are accounted for by
        their absolute values.

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
            raise ValueError(Statement("strategy.rows_shape_wrong", shape=bands.shape))
        # of workable size: everything is divided by them
        check_positive(rows=float(bands[:, 0].min()))
        n_steps, width = bands.shape
        if np.any(bands[~_inside(n_steps, width)]):
            raise ValueError(Statement("strategy.rows_not_lower"))
        object.__setattr__(self, "rows", tuple(map(tuple, bands.tolist())))
        object.__setattr__(self, "_bands", bands)
        self._check_growth()

    def __repr__(self) -> str:
        # not thousands of numbers, wherever a run is named
        n_steps, width = len(self.rows), len(self.rows[0])
        return f"BandedRows(<{n_steps} rows of {width} diagonals>)"

    @classmethod
    def of_matrix(cls, matrix: ArrayLike) -> BandedRows:
        """Return the strategy of a dense matrix.

        Parameters
        ----------
        matrix : array-like of shape (n_steps, n_steps)
            Lower triangular.

        Returns
        -------
        BandedRows

        Raises
        ------
        ValueError
            If it is not square, or not zero above the diagonal.
        """
        dense = check_finite(matrix=matrix)
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size:
            raise ValueError(Statement("strategy.matrix_not_square", shape=dense.shape))
        if np.any(np.triu(dense, 1)):
            raise ValueError(Statement("strategy.matrix_not_lower_triangular"))
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
            raise ValueError(Statement("strategy.rows_noise_grows"))

    def check_run(self, n_steps: int) -> None:
        """Refuse a run of another number of steps than there are rows."""
        if n_steps != len(self.rows):
            raise ValueError(
                Statement(
                    "strategy.rows_steps_mismatch",
                    n_rows=len(self.rows),
                    n_steps=n_steps,
                )
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
        draws : iterator of ndarray of shape (dim,)
        n_steps : int

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
    inside: np.ndarray = np.arange(width) <= np.arange(n_steps)[:, np.newaxis]
    return inside
