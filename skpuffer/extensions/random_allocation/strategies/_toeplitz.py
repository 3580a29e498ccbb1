"""Strategies whose matrix is the same along each diagonal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.linalg import solve_triangular, toeplitz

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_finite, check_positive

from ._base import NoiseStrategy
from ._rows import windowed

__all__ = [
    "InverseToeplitz",
    "Toeplitz",
    "ToeplitzStrategy",
    "inverted",
    "participations",
]


class ToeplitzStrategy(NoiseStrategy):
    """Base of strategies of lower-triangular Toeplitz matrices.

    A subclass says what the first columns of C and of its inverse are, and yields the
    noise of a run.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Toeplitz
    >>> strategy = Toeplitz((1.0, 0.5))
    >>> strategy.coefficients(4).tolist()
    [1.0, 0.5, 0.0, 0.0]
    >>> strategy.inverse_coefficients(4).tolist()
    [1.0, -0.5, 0.25, -0.125]
    """

    @abstractmethod
    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""

    @abstractmethod
    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        dense: Floats = toeplitz(self.coefficients(n_steps), np.zeros(n_steps))
        return dense

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        # of the first batch, whose columns are each one epoch further down
        first = participations(np.abs(self.coefficients(n_steps)), n_batches)
        means = np.zeros((n_batches, n_steps))
        for batch in range(min(n_batches, n_steps)):
            means[batch, batch:] = first[: n_steps - batch]
        return means

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum; see the base class."""
        sums = np.cumsum(self.inverse_coefficients(n_steps))
        errors: Floats = np.sqrt(np.cumsum(sums**2))
        return errors


def participations(column: Floats, n_batches: int) -> Floats:
    """Return the sum of a column and of the same, shifted down by whole epochs."""
    n_steps = len(column)
    # row by row of epochs: what is shifted down stands below
    padded = np.zeros(-(-n_steps // n_batches) * n_batches)
    padded[:n_steps] = column
    sums: Floats = np.cumsum(padded.reshape(-1, n_batches), axis=0).ravel()[:n_steps]
    return sums


def inverted(column: Floats) -> Floats:
    """Return the first column of the inverse of a lower-triangular Toeplitz matrix.

    A filter's response to an impulse, whose denominator are the coefficients.
    """
    impulse = np.zeros(len(column))
    impulse[0] = 1.0
    inverse: Floats = scipy.signal.lfilter([1.0], np.trim_zeros(column, "b"), impulse)
    return inverse


def _padded(coefficients: tuple[float, ...], n_steps: int) -> Floats:
    column = np.zeros(n_steps)
    given = np.asarray(coefficients[:n_steps])
    column[: len(given)] = given
    return column


def _checked(column: tuple[float, ...]) -> tuple[float, ...]:
    """Return coefficients as floats, the first of them positive."""
    numbers = check_finite(column=column)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(Statement("strategy.column_empty", column=column))
    # of workable size: everything is divided by it
    check_positive(column=float(numbers[0]))
    return tuple(numbers.tolist())


def _is_stable(column: tuple[float, ...]) -> bool:
    """Whether the polynomial of some coefficients has no zero in the unit disc."""
    numbers = np.asarray(column) / column[0]
    # Eneström and Kakeya: enough for the families that are used
    if np.all(np.diff(numbers) <= 0) and numbers[-1] >= 0 and (numbers[1:2] < 1).all():
        return True
    # Schur and Cohn: lower degree by degree, each step of which must keep the first
    # coefficient ahead of the last
    while len(numbers) > 1:
        last = numbers[-1]
        if not abs(last) < 1:
            return False
        numbers = (numbers - last * numbers[::-1])[:-1] / (1 - last**2)
    return True


def _bands(coefficients: tuple[float, ...], n_rows: int) -> Floats:
    """Rows of a banded Toeplitz matrix, with the columns of the past before them."""
    past = len(coefficients) - 1
    first = np.zeros(past + n_rows)
    first[: past + 1] = coefficients[::-1]
    below = np.zeros(n_rows)
    below[0] = first[0]
    bands: Floats = toeplitz(below, first)
    return bands


@dataclass(frozen=True)
class Toeplitz(ToeplitzStrategy, kind="toeplitz"):
    """Banded Toeplitz strategy, by the first coefficients of its matrix C.

    Parameters
    ----------
    column : tuple of float
        c_0, c_1, ..., of which the first is positive: the first column of C, and zero
        beyond. Their polynomial must have no zero in the unit disc.

    Raises
    ------
    ValueError
        If the noise would grow from step to step, or the numbers are not of the kind.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Toeplitz
    >>> Toeplitz((1.0, 0.5)).matrix(3)
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [0. , 0.5, 1. ]])
    """

    column: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _checked(self.column))
        # noise that grows without end would leave no digit of the sums
        if not _is_stable(self.column):
            raise ValueError(Statement("strategy.column_noise_grows"))

    @property
    def is_identity(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether noise is independent across steps, of the scale asked for."""
        return self.column[0] == 1 and not any(self.column[1:])

    @property
    def bandwidth(self) -> int:
        """Number of diagonals of C that are not zero."""
        return len(self.column)

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        return _padded(self.column, n_steps)

    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""
        return inverted(self.coefficients(n_steps))

    def _weights(self, n_rows: int) -> Floats:
        """Noise of some steps, by the noise before them and by their draws."""
        past = len(self.column) - 1
        bands = _bands(self.column, n_rows)
        # C [past; noise] = draws, solved for the noise
        right = np.hstack([-bands[:, :past], np.eye(n_rows)])
        weights: Floats = solve_triangular(bands[:, past:], right, lower=True)
        return weights

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        past = min(len(self.column), n_steps) - 1
        cut = self if past + 1 == len(self.column) else Toeplitz(self.column[:n_steps])
        return windowed(draws, n_steps, past, cut._weights, recursive=True)


@dataclass(frozen=True)
class InverseToeplitz(ToeplitzStrategy, kind="inverse_toeplitz"):
    """Toeplitz strategy whose inverse is banded, by the inverse's first coefficients.

    Parameters
    ----------
    column : tuple of float
        d_0, d_1, ..., of which the first is positive: the first column of C^-1, and
        zero beyond. Where their polynomial has a zero in the unit disc C grows from
        step to step, and with it what a record adds.

    Raises
    ------
    ValueError
        If the numbers are not of the kind.

    Examples
    --------
    >>> from skpuffer.noise.strategies import InverseToeplitz
    >>> InverseToeplitz((1.0, -0.5)).matrix(3)
    array([[1.  , 0.  , 0.  ],
           [0.5 , 1.  , 0.  ],
           [0.25, 0.5 , 1.  ]])
    """

    column: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _checked(self.column))

    @property
    def is_identity(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether noise is independent across steps, of the scale asked for."""
        return self.column[0] == 1 and not any(self.column[1:])

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        column = inverted(self.inverse_coefficients(n_steps))
        # what a record adds would be infinite, or no number
        if not np.all(np.isfinite(column)):
            raise ValueError(
                Statement("strategy.column_inverse_overflows", n_steps=n_steps)
            )
        return column

    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""
        return _padded(self.column, n_steps)

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        column = self.column[:n_steps]
        return windowed(
            draws,
            n_steps,
            len(column) - 1,
            lambda n: _bands(column, n),
            recursive=False,
        )
