"""Strategies whose matrix is the same along each diagonal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from skpuffer.utils._checks import check_positive, check_real
from skpuffer.utils._types import Floats

from ._base import NoiseStrategy

__all__ = ["BufferedToeplitz", "InverseToeplitz", "Toeplitz", "ToeplitzStrategy"]


class ToeplitzStrategy(NoiseStrategy):
    """Base of strategies of lower-triangular Toeplitz matrices."""

    @abstractmethod
    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""

    @abstractmethod
    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        return toeplitz(self.coefficients(n_steps), np.zeros(n_steps))

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        size = np.abs(self.coefficients(n_steps))
        # of the first batch, whose columns are each one epoch further down
        first = np.zeros(n_steps)
        for start in range(0, n_steps, n_batches):
            first[start:] += size[: n_steps - start]
        means = np.zeros((n_batches, n_steps))
        for batch in range(min(n_batches, n_steps)):
            means[batch, batch:] = first[: n_steps - batch]
        return means

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum; see the base class."""
        sums = np.cumsum(self.inverse_coefficients(n_steps))
        errors: Floats = np.sqrt(np.cumsum(sums**2))
        return errors


def _padded(coefficients: tuple[float, ...], n_steps: int) -> Floats:
    column = np.zeros(n_steps)
    given = np.asarray(coefficients[:n_steps])
    column[: len(given)] = given
    return column


def _inverted(column: Floats) -> Floats:
    """First column of the inverse of a lower-triangular Toeplitz matrix, from its own.

    A filter's response to an impulse: its denominator are the coefficients.
    """
    impulse = np.zeros(len(column))
    impulse[0] = 1.0
    inverse: Floats = lfilter([1.0], np.trim_zeros(column, "b"), impulse)
    return inverse


@dataclass(frozen=True)
class Toeplitz(ToeplitzStrategy, kind="toeplitz"):
    """Banded Toeplitz strategy, by the first coefficients of its matrix C.

    Parameters
    ----------
    column : tuple of float
        c_0, c_1, ..., of which the first is positive: the first column of C, and zero
        beyond. Their polynomial must have no zero in the unit disc.
    """

    column: tuple[float, ...]

    def __post_init__(self) -> None:
        column = tuple(check_real(column=c) for c in self.column)
        check_positive(column=column[0])
        object.__setattr__(self, "column", column)
        # noise that grows without end would leave no digit of the sums
        if np.any(np.abs(np.roots(column[::-1])) <= 1):
            raise ValueError(
                "The parameter 'column' has a polynomial with a zero in the unit disc, "
                "so that the noise would grow from step to step. Use positive "
                "coefficients that decrease."
            )

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
        return _inverted(self.coefficients(n_steps))

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        first, *others = self.column
        if not others:
            for draw in draws:
                yield draw / first
            return
        size = len(others)
        # row i of `rolled` meets the ring when step i of `size` is to be written in it
        backwards = np.array(others[::-1]) / first
        rolled = np.stack([np.roll(backwards, i) for i in range(size)])
        past: Floats | None = None
        for step, draw in enumerate(draws):
            if past is None:
                past = np.zeros((size, len(draw)))
            at = step % size
            past[at] = draw / first - rolled[at] @ past
            yield past[at]


@dataclass(frozen=True)
class InverseToeplitz(ToeplitzStrategy, kind="inverse_toeplitz"):
    """Toeplitz strategy whose inverse is banded, by the inverse's first coefficients.

    Parameters
    ----------
    column : tuple of float
        d_0, d_1, ..., of which the first is positive: the first column of C^-1, and
        zero beyond.
    """

    column: tuple[float, ...]

    def __post_init__(self) -> None:
        column = tuple(check_real(column=c) for c in self.column)
        check_positive(column=column[0])
        object.__setattr__(self, "column", column)

    @property
    def is_identity(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether noise is independent across steps, of the scale asked for."""
        return self.column[0] == 1 and not any(self.column[1:])

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        return _inverted(self.inverse_coefficients(n_steps))

    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""
        return _padded(self.column, n_steps)

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        size = len(self.column)
        backwards = np.array(self.column[::-1])
        # row i meets the ring when draw i of `size` has just been written in it
        rolled = np.stack([np.roll(backwards, i + 1) for i in range(size)])
        ring: Floats | None = None
        for step, draw in enumerate(draws):
            if ring is None:
                ring = np.zeros((size, len(draw)))
            at = step % size
            ring[at] = draw
            yield rolled[at] @ ring


@dataclass(frozen=True)
class BufferedToeplitz(ToeplitzStrategy, kind="buffered_toeplitz"):
    """Toeplitz strategy of few buffers: coefficients that are sums of geometric ones.

    With c_0 = 1 and ``c_t = sum_j weights[j] * decays[j] ** (t - 1)``.

    Parameters
    ----------
    decays : tuple of float
        In (0, 1), one for each buffer.
    weights : tuple of float
        Positive.

    References
    ----------
    McMahan, Pillutla, Steinke, Thakurta and Dvijotham (2024), Hassle-free: buffered
    linear Toeplitz matrices for differentially private learning.
    """

    decays: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        decays = tuple(check_positive(decays=d) for d in self.decays)
        weights = tuple(check_positive(weights=w) for w in self.weights)
        if len(decays) != len(weights) or not decays:
            raise ValueError(
                "The parameters 'decays' and 'weights' must have one number for each "
                f"buffer. Got {len(decays)} and {len(weights)}."
            )
        if max(decays) >= 1:
            raise ValueError(
                f"The parameter 'decays' must be in the range (0, 1). Got {decays!r}."
            )
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        powers = np.asarray(self.decays) ** np.arange(n_steps - 1)[:, np.newaxis]
        column: Floats = np.concatenate([[1.0], powers @ np.asarray(self.weights)])
        return column

    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""
        unit = np.zeros((n_steps, 1))
        unit[0] = 1.0
        return np.concatenate([row.copy() for row in self.stream(iter(unit), n_steps)])

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        decays = np.asarray(self.decays)[:, np.newaxis]
        weights = np.asarray(self.weights)
        buffers: Floats | None = None
        for draw in draws:
            if buffers is None:
                buffers = np.zeros((len(weights), len(draw)))
            noise = draw - weights @ buffers
            buffers *= decays
            buffers += noise
            yield noise
