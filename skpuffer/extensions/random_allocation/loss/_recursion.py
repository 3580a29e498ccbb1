"""Law of a sum along a Markov chain, by Fourier transforms."""

import math
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, rfft

from skpuffer.utils._types import Floats

from ._split import Axis

__all__ = ["State", "Summed", "summed"]

#: Unit round-off, and the constant of an FFT's error.
_UNIT = np.finfo(float).eps / 2
_FFT = 6.0

#: Part of the FFT's error that frequencies left out may add.
_NEGLECTED = 1e-2


class State(NamedTuple):
    """State of a chain: two independent autoregressions."""

    first: Axis
    second: Axis

    @property
    def loads(self) -> Floats:
        """Loading times state at each pair of nodes, of shape (n_first, n_second)."""
        load: Floats = np.add.outer(
            self.first.loading * self.first.nodes,
            self.second.loading * self.second.nodes,
        )
        return load

    @property
    def start(self) -> Floats:
        """Masses of the first state."""
        return np.outer(self.first.start, self.second.start)

    def forward(self, masses: Floats) -> Floats:
        """Move masses by one step; trailing axes are carried along."""
        n_first, n_second = len(self.first.nodes), len(self.second.nodes)
        # a complex array is two real ones: its product with a real matrix is one GEMM
        flat: Floats = masses.reshape(n_first, -1)
        if flat.dtype == complex:
            flat = flat.view(float)
        moved: Floats = self.first.moves.T @ flat
        moved = moved.reshape((n_first, n_second, flat.shape[1] // n_second))
        if n_second > 1 and self.second.decay < 1:
            moved = np.matmul(self.second.moves.T, moved)
        if masses.dtype == complex:
            return moved.reshape(n_first, -1).view(complex).reshape(masses.shape)
        return moved.reshape(masses.shape)

    def backward(self, values: Floats) -> Floats:
        """Return the mean of values of the next state, given this one."""
        mean: Floats = self.first.moves @ values @ self.second.moves.T
        return mean

    def marginals(self, size: int) -> Floats:
        """Return masses of the states of all steps, (size, n_first, n_second)."""
        found: list[Floats] = [self.start]
        for _ in range(size - 1):
            found.append(self.forward(found[-1]))
        return np.array(found)


class Summed(NamedTuple):
    """Tilted masses of a sum, and a bound on their error.

    Parameters
    ----------
    masses : ndarray of shape (n_window,)
        Cyclic.
    error : float
        Bound on the l2 norm of what rounding changed, to first order.
    """

    masses: Floats
    error: float


def summed(state: State, masses: Floats, size: int, window: int) -> Summed:
    """Return the law of the sum, over the steps of a chain, of a term given the state.

    Parameters
    ----------
    state : State
    masses : ndarray of shape (n_first, n_second, n_points)
        Masses of a step's term, given the state, on a grid. They may be tilted, by an
        exponential, which the sum's masses then are as well.
    size : int
        Number of steps.
    window : int
        Length of the transforms. What lies beyond is wrapped around.

    Returns
    -------
    Summed

    Notes
    -----
    All masses are non-negative, so that transforms are at most what they are at
    frequency zero. That bounds how errors of a step are passed on, by masses before and
    after it, and which frequencies cannot matter any more: they are left out, and their
    bound is added to the error. A transform's error is that of Higham (2002), Accuracy
    and Stability of Numerical Algorithms, Theorem 24.2, and that of a product of n
    terms n units of rounding, of the absolute values' product.
    """
    total = masses.sum(axis=-1)
    # after[j]: tilted mass of all steps after step j, given its state
    after = [np.ones_like(total)]
    for _ in range(size - 1):
        after.append(state.backward(total * after[-1]))
    after.reverse()
    # each step's transform is off, in l2, by a part of its own norm
    norm, part = np.linalg.norm(masses, axis=-1), _FFT * _UNIT * math.log2(window)
    before, error = state.start, 0.0
    for later in after:
        error += part * float(np.sum(before * norm * later))
        before = state.forward(before * total)
    neglect = _NEGLECTED * error / size
    terms = len(state.first.nodes) + len(state.second.nodes) + 4

    transforms = rfft(masses, window)
    current = state.start[:, :, np.newaxis] * transforms
    ends = 1 / math.sqrt(window)
    kept, lasting = transforms.shape[-1], 0.0
    for step, later in enumerate(after):
        if step:
            current = state.forward(current)
            current *= transforms[:, :, :kept]
        if step < 4 or step % 3 == 0:
            # bound on the final transform, which no later step raises
            bound = np.einsum("ij,ijw->w", later, np.abs(current))
            lasting = math.sqrt(2) * ends * float(np.linalg.norm(bound))
            large = np.flatnonzero(bound > neglect)
            needed = int(large[-1]) + 1 if len(large) else 1
            if needed < 0.9 * kept:
                gone = float(np.linalg.norm(bound[needed:]))
                error += math.sqrt(2) * ends * gone
                current = np.ascontiguousarray(current[:, :, :needed])
                kept = needed
        # products of this step, and the last transform in the end
        error += terms * _UNIT * lasting
    error += part * lasting
    final = np.zeros(window // 2 + 1, complex)
    final[:kept] = current.sum(axis=(0, 1))
    return Summed(irfft(final, window), error)
