"""Toeplitz strategy of few buffers: sums of geometric sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, toeplitz

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_all_positive
from skpuffer.utils._types import Floats

from ._blocks import in_blocks
from ._toeplitz import ToeplitzStrategy

__all__ = ["BufferedToeplitz", "geometric", "inverse_buffers"]


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
        If the noise would grow from step to step, or the numbers are not of the kind.

    Notes
    -----
    The noise needs as many buffers as there are decays, however long the run is. Its
    own coefficients are geometric sums as well, see `inverse_buffers`.

    References
    ----------
    McMahan, Pillutla, Steinke, Thakurta and Dvijotham (2024), Hassle-free: buffered
    linear Toeplitz matrices for differentially private learning.

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
            raise ValueError(
                Statement(
                    "strategy.buffers_count_mismatch",
                    n_decays=len(decays),
                    n_weights=len(weights),
                )
            )
        if max(decays) >= 1:
            raise ValueError(Statement("strategy.decays_out_of_range", decays=decays))
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)
        # none is above the largest decay
        if min(self._inverse()[0]) <= -1:
            raise ValueError(Statement("strategy.buffer_weights_noise_grows"))

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
        draws : iterator of ndarray of shape (dim,)
        n_steps : int

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
    """Return one, and then sums of geometric sequences.

    Parameters
    ----------
    decays, weights : ndarray of shape (n_buffers,)
    n_steps : int

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    powers = decays ** np.arange(n_steps - 1)[:, np.newaxis]
    column: Floats = np.concatenate([[1.0], powers @ weights])
    return column


def inverse_buffers(decays: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return decays and weights whose negative make the inverse matrix.

    Parameters
    ----------
    decays, weights : ndarray of shape (n_buffers,)
        Positive weights.

    Returns
    -------
    decays, weights : ndarray of shape (n_buffers,)

    Notes
    -----
    The buffers b of a noise w follow ``w = z - weights @ b``, then ``b = decays * b +
    w``, which is ``b = (diag(decays) - 1 weights^T) b + z``. Divided by the roots of
    the weights that matrix is symmetric, and its eigenvectors decouple the buffers.
    """
    roots = np.sqrt(weights)
    values, vectors = eigh(np.diag(decays) - np.outer(roots, roots))
    return values, (roots @ vectors) ** 2
