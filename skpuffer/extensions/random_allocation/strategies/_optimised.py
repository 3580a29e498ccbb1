"""Strategies that are optimised: least error of the prefix sums at unit sensitivity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from scipy.linalg import eigh, solve_triangular, toeplitz
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_all_positive,
    check_finite,
    check_positive,
)

from ._base import NoiseStrategy
from ._rows import in_blocks, windowed

# -- strategies whose matrix is the same along each diagonal ---------------------------


class ToeplitzStrategy(NoiseStrategy):
    """Base of strategies of lower-triangular Toeplitz matrices.

    A subclass gives the first columns of C and of its inverse, and yields the noise.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Toeplitz
    >>> Toeplitz((1.0, 0.5)).inverse_coefficients(4).tolist()
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
        return toeplitz(self.coefficients(n_steps), np.zeros(n_steps))

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
        return np.sqrt(np.cumsum(sums**2))


def participations(column: Floats, n_batches: int) -> Floats:
    """Return the sum of a column and of the same, shifted down by whole epochs."""
    n_steps = len(column)
    # row by row of epochs: what is shifted down stands below
    padded = np.zeros(-(-n_steps // n_batches) * n_batches)
    padded[:n_steps] = column
    return np.cumsum(padded.reshape(-1, n_batches), axis=0).ravel()[:n_steps]


def inverted(column: Floats) -> Floats:
    """Return the first column of the inverse of a lower-triangular Toeplitz matrix."""
    impulse = np.zeros(len(column))
    impulse[0] = 1.0
    return scipy.signal.lfilter([1.0], np.trim_zeros(column, "b"), impulse)


def _padded(coefficients: tuple[float, ...], n_steps: int) -> Floats:
    column = np.zeros(n_steps)
    given = np.asarray(coefficients[:n_steps])
    column[: len(given)] = given
    return column


def _checked(column: tuple[float, ...]) -> tuple[float, ...]:
    """Return coefficients as floats, the first of them positive."""
    numbers = check_finite(column=column)
    if numbers.ndim != 1 or not numbers.size:
        raise value_error("strategy.column_empty", column=column)
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
    return toeplitz(below, first)


@dataclass(frozen=True)
class _OfColumn(ToeplitzStrategy):
    """Base of strategies by a first column, which is zero beyond what is given."""

    column: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _checked(self.column))

    @property
    def is_identity(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether noise is independent across steps, of the scale asked for."""
        return self.column[0] == 1 and not any(self.column[1:])


@dataclass(frozen=True)
class Toeplitz(_OfColumn, kind="toeplitz"):
    """Banded Toeplitz strategy, by the first coefficients of its matrix C.

    Parameters
    ----------
    column : tuple of float
        c_0, c_1, ..., of which the first is positive: the first column of C, and zero
        beyond. Their polynomial must have no zero in the unit disc.

    Raises
    ------
    ValueError
        If the noise would grow from step to step, or a number is out of range.

    Examples
    --------
    >>> from skpuffer.noise.strategies import Toeplitz
    >>> Toeplitz((1.0, 0.5)).matrix(3).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # noise that grows without end would leave no digit of the sums
        if not _is_stable(self.column):
            raise value_error("strategy.column_noise_grows")

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
        return solve_triangular(bands[:, past:], right, lower=True)

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class."""
        past = min(len(self.column), n_steps) - 1
        cut = self if past + 1 == len(self.column) else Toeplitz(self.column[:n_steps])
        return windowed(draws, n_steps, past, cut._weights, recursive=True)


@dataclass(frozen=True)
class InverseToeplitz(_OfColumn, kind="inverse_toeplitz"):
    """Toeplitz strategy whose inverse is banded, by the inverse's first coefficients.

    Parameters
    ----------
    column : tuple of float
        d_0, d_1, ..., of which the first is positive: the first column of C^-1, and
        zero beyond. If their polynomial has a zero in the unit disc, C grows from step
        to step.

    Examples
    --------
    >>> from skpuffer.noise.strategies import InverseToeplitz
    >>> InverseToeplitz((1.0, -0.5)).matrix(3).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    """

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        column = inverted(self.inverse_coefficients(n_steps))
        # what a record adds would be infinite, or no number
        if not np.all(np.isfinite(column)):
            raise value_error("strategy.column_inverse_overflows", n_steps=n_steps)
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


# -- optimised -------------------------------------------------------------------------


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

    Raises
    ------
    ValueError
        If the noise would grow from step to step, or a number is out of range.

    Notes
    -----
    The noise needs one buffer for each decay, however long the run is.

    References
    ----------
    McMahan et al. (2024), Hassle-free: buffered linear Toeplitz matrices.

    Examples
    --------
    >>> from skpuffer.noise.strategies import BufferedToeplitz
    >>> BufferedToeplitz((0.5,), (0.5,)).coefficients(4)
    array([1.   , 0.5  , 0.25 , 0.125])
    """

    decays: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        decays = check_all_positive(decays=self.decays)
        weights = check_all_positive(weights=self.weights)
        if len(decays) != len(weights) or not decays:
            raise value_error(
                "strategy.buffers_count_mismatch",
                n_decays=len(decays),
                n_weights=len(weights),
            )
        if max(decays) >= 1:
            raise value_error("strategy.decays_out_of_range", decays=decays)
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)
        # none is above the largest decay
        if min(self._inverse()[0]) <= -1:
            raise value_error("strategy.buffer_weights_noise_grows")

    def _inverse(self) -> tuple[Floats, Floats]:
        return inverse_buffers(np.asarray(self.decays), np.asarray(self.weights))

    def coefficients(self, n_steps: int) -> Floats:
        """Return the first column of C."""
        return geometric(np.asarray(self.decays), np.asarray(self.weights), n_steps)

    def inverse_coefficients(self, n_steps: int) -> Floats:
        """Return the first column of the inverse of C."""
        decays, weights = self._inverse()
        return geometric(decays, -weights, n_steps)

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
        decays, weights = self._inverse()
        buffers = powers = own = np.zeros((0, 0))
        for block in in_blocks(draws, n_steps, len(decays)):
            size = len(block)
            # the first block is as long as any
            if not buffers.size:
                buffers = np.zeros((len(decays), block.shape[1]))
                powers = decays ** np.arange(size + 1)[:, np.newaxis]
                own = toeplitz(geometric(decays, -weights, size), np.zeros(size))
            noise = own[:size, :size] @ block - (weights * powers[:size]) @ buffers
            buffers *= powers[size][:, np.newaxis]
            buffers += powers[:size][::-1].T @ block
            yield from noise


def geometric(decays: Floats, weights: Floats, n_steps: int) -> Floats:
    """Return one, and then sums of geometric sequences, of shape (n_steps,)."""
    powers = decays ** np.arange(n_steps - 1)[:, np.newaxis]
    return np.concatenate([[1.0], powers @ weights])


def inverse_buffers(decays: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return decays and weights (n_buffers,) whose negative make the inverse matrix.

    The buffers b of a noise w follow ``w = z - weights @ b``, then ``b = decays * b +
    w``, which is ``b = (diag(decays) - 1 weights^T) b + z``. Divided by the roots of
    the weights that matrix is symmetric, and its eigenvectors decouple the buffers.
    """
    roots = np.sqrt(weights)
    values, vectors = eigh(np.diag(decays) - np.outer(roots, roots))
    return values, (roots @ vectors) ** 2


#: Value and gradient at some parameters.
_Cost = Callable[[Floats], tuple[float, Floats]]

# Decays are kept off one by this, and weights off zero: a float has no more.
_LEAST = 1e-12

# The first step of a search is of this length, which is within what is stable.
_FIRST = 0.05

# So many coefficients of the square root are fitted by the buffers at the start.
_FITTED = 200


def _later(n_steps: int, objective: str) -> Floats:
    """How much each coefficient of the sums of noise counts, over all steps."""
    if objective == "max":
        # errors grow from step to step: the last is the largest
        return np.ones(n_steps)
    # a coefficient is part of the sums of all steps after it
    return np.arange(n_steps, 0, -1) / n_steps


def _log_error(inverse: Floats, later: Floats) -> tuple[float, Floats]:
    """Log of the mean squared error of prefix sums, and its gradient."""
    sums = np.cumsum(inverse)
    weighted = later * sums
    error = weighted @ sums
    gradient = np.cumsum(weighted[::-1])[::-1]
    return float(np.log(error)), 2 * gradient / error


def _log_sensitivity(column: Floats, n_batches: int) -> tuple[float, Floats]:
    """Log of the squared l2 norm of what a record adds, and its gradient."""
    added = participations(np.abs(column), n_batches)
    size = added @ added
    gradient = np.sign(column) * participations(added[::-1], n_batches)[::-1]
    return float(np.log(size)), 2 * gradient / size


def _by_inverse(gradient: Floats, inverse: Floats) -> Floats:
    """Return the gradient by a column, given that by the column of the inverse matrix.

    The adjoint of convolving a change twice with the inverse's column.
    """
    for _ in range(2):
        whole = scipy.signal.fftconvolve(gradient[::-1], inverse)
        gradient = whole[: len(inverse)][::-1]
    return -gradient


def _minimised(cost: _Cost, start: Floats) -> Floats:
    """Return parameters of no larger cost than the start, by L-BFGS."""
    if not start.size:
        return start
    with np.errstate(all="ignore"):
        first = cost(start)[0]

    def bounded(steps: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, gradient = cost(start + _FIRST * steps)
        # Beyond what is stable the cost grows exponentially with the run. A line search
        # that gets there is turned back, by no more than it can interpolate.
        if value < first + 1 and np.all(np.isfinite(gradient)):
            return value, _FIRST * gradient
        return first + 1, np.zeros_like(steps)

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(
        bounded, np.zeros_like(start), jac=True, method="L-BFGS-B", options=options
    )
    return start + _FIRST * found.x if found.fun <= first else start


def banded_cost(n_steps: int, n_batches: int, objective: str) -> _Cost:
    """Return the cost of the coefficients of C after the first, which is one."""
    later = _later(n_steps, objective)

    def cost(x: Floats) -> tuple[float, Floats]:
        column = np.zeros(n_steps)
        column[0], column[1 : 1 + len(x)] = 1.0, x
        inverse = inverted(column)
        error, by_inverse = _log_error(inverse, later)
        size, gradient = _log_sensitivity(column, n_batches)
        gradient += _by_inverse(by_inverse, inverse)
        return error + size, gradient[1 : 1 + len(x)]

    return cost


def inverse_cost(n_steps: int, n_batches: int, objective: str) -> _Cost:
    """Return the cost of the logs of sums of the first coefficients of C^-1.

    Sums that are positive and decrease keep C bounded.
    """
    later = _later(n_steps, objective)

    def cost(x: Floats) -> tuple[float, Floats]:
        inverse, size = np.zeros(n_steps), len(x) + 1
        inverse[:size] = _of_sums(x)
        column = inverted(inverse)
        added, by_column = _log_sensitivity(column, n_batches)
        error, gradient = _log_error(inverse, later)
        gradient += _by_inverse(by_column, column)
        # of each sum: the coefficient that ends it, less the next
        by_sums = gradient[:size]
        by_sums[:-1] -= gradient[1:size]
        return error + added, by_sums[1:] * np.exp(x)

    return cost


def _of_sums(logs: Floats) -> Floats:
    """Coefficients, the first one, by the logs of their sums."""
    return np.diff(np.concatenate([[0.0, 1.0], np.exp(logs)]))


def buffered_cost(n_steps: int, n_batches: int, objective: str) -> _Cost:
    """Return the cost of the log odds of the decays and the logs of the weights."""
    later = _later(n_steps, objective)
    times = np.arange(n_steps - 1)[:, np.newaxis]

    def cost(x: Floats) -> tuple[float, Floats]:
        decays, weights = _buffers(x)
        column = geometric(decays, weights, n_steps)
        poles, shares = inverse_buffers(decays, weights)
        inverse = geometric(poles, -shares, n_steps)
        error, by_inverse = _log_error(inverse, later)
        size, gradient = _log_sensitivity(column, n_batches)
        gradient += _by_inverse(by_inverse, inverse)
        powers = decays**times
        by_weights = (gradient[1:] @ powers) * weights
        # theta d/dtheta of theta^t is t theta^t, and d theta = theta (1 - theta) d odds
        by_decays = (gradient[1:] @ (times * powers)) * weights * (1 - decays)
        return error + size, np.concatenate([by_decays, by_weights])

    return cost


def _buffers(x: Floats) -> tuple[Floats, Floats]:
    odds, logs = np.split(x, 2)
    # a buffer that is not wanted would go to zero for ever
    weights = np.exp(np.maximum(logs, np.log(_LEAST)))
    return np.clip(expit(odds), _LEAST, 1 - _LEAST), weights


def square_root(size: int) -> Floats:
    """Coefficients of (1 - x)^(-1/2): the square root of the prefix sums."""
    steps = np.arange(1, size)
    return np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])


def inverse_square_root(size: int) -> Floats:
    """Coefficients of (1 - x)^(1/2): the inverse of the former."""
    return np.concatenate([[1.0], np.diff(square_root(size))])


@lru_cache(maxsize=128)
def best_banded(
    n_steps: int, bandwidth: int, n_batches: int, objective: str
) -> Toeplitz:
    """Return the best banded Toeplitz strategy, of columns of length one."""
    cost = banded_cost(n_steps, n_batches, objective)
    start = square_root(bandwidth)[1:]
    column = np.concatenate([[1.0], _minimised(cost, start)])
    return Toeplitz(tuple((column / np.linalg.norm(column)).tolist()))


@lru_cache(maxsize=128)
def best_inverse(
    n_steps: int, bandwidth: int, n_batches: int, objective: str
) -> InverseToeplitz:
    """Return the best Toeplitz strategy of a banded inverse."""
    cost = inverse_cost(n_steps, n_batches, objective)
    # the sums of the inverse square root are the square root
    found = _minimised(cost, np.log(square_root(bandwidth)[1:]))
    return InverseToeplitz(tuple(_of_sums(found).tolist()))


@lru_cache(maxsize=128)
def best_buffered(
    n_steps: int, n_buffers: int, n_batches: int, objective: str
) -> BufferedToeplitz:
    """Return the best Toeplitz strategy of some buffers."""
    found = _buffered_start(n_steps, n_buffers)
    if n_steps > 1:
        found = _minimised(buffered_cost(n_steps, n_batches, objective), found)
    decays, weights = _buffers(found)
    return BufferedToeplitz(tuple(decays.tolist()), tuple(weights.tolist()))


def _buffered_start(n_steps: int, n_buffers: int) -> Floats:
    """Buffers whose coefficients are about those of the square root."""
    decays = 1 - np.geomspace(0.5, 0.5 / max(2, n_steps), n_buffers)
    times = np.unique(np.geomspace(1, max(2, n_steps), _FITTED).astype(int))
    # r_t is close to 1 / sqrt(pi t); all of them weigh alike
    wanted = 1 / np.sqrt(np.pi * times)
    fitted, _ = nnls(
        decays ** (times - 1)[:, np.newaxis] / wanted[:, np.newaxis],
        np.ones(len(times)),
    )
    return np.concatenate([logit(decays), np.log(np.maximum(fitted, 1e-3 / n_steps))])
