"""Law of a sum along a Markov chain: splits on a grid, added by Fourier transforms."""

import math
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, rfft
from scipy.special import ndtr

from skpuffer.kernel.numbers import Floats

__all__ = ["Axis", "State", "Summed", "axis", "normal_mass", "split_normal", "summed"]


def normal_mass(low: Floats, high: Floats) -> Floats:
    """Return what a standard normal law has between two points, low <= high."""
    # by the upper tails where these are the small ones: no digits are lost there
    flip = low > 0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    mass: Floats = ndtr(last) - ndtr(first)
    return mass


def split_normal(
    mean: Floats, deviation: float, nodes: Floats, exponent: float
) -> tuple[Floats, Floats, Floats]:
    """Split normal laws on nodes, cell by cell.

    The mass in a cell goes to its two ends so that the mean of exp(exponent * x) stays,
    and that of x itself if `exponent` is zero. Of a function that is convex in that
    variable on the cell the mean then does not fall.

    Parameters
    ----------
    mean : ndarray of shape (n_laws,)
    deviation : float
        Positive.
    nodes : ndarray of shape (n_nodes,)
        Increasing.
    exponent : float

    Returns
    -------
    weights : ndarray of shape (n_laws, n_nodes)
    below, above : ndarray of shape (n_laws,)
        Masses outside the nodes, which are not among the weights.
    """
    z = (nodes - mean[:, np.newaxis]) / deviation
    mass = normal_mass(z[:, :-1], z[:, 1:])
    width = np.diff(nodes)
    if exponent == 0:
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        centre = mean[:, np.newaxis] - nodes[:-1]
        # the mean, over the cell, of how far x is from its left end
        excess = centre * mass - deviation * np.diff(density, axis=1)
        right = excess / width
    else:
        # exp(exponent x) tilts a normal law to another; in units of the left end
        drift = exponent * deviation
        scale = np.exp(exponent * (mean[:, np.newaxis] - nodes[:-1]) + drift**2 / 2)
        tilted = normal_mass(z[:, :-1] - drift, z[:, 1:] - drift)
        right = (scale * tilted - mass) / np.expm1(exponent * width)
    right = np.clip(right, 0.0, mass)
    weights = np.zeros(z.shape)
    weights[:, :-1] += mass - right
    weights[:, 1:] += right
    return weights, ndtr(z[:, 0]), ndtr(-z[:, -1])


class Axis(NamedTuple):
    """One autoregression of a chain's state, on nodes.

    Parameters
    ----------
    loading : float
        The exponent of the likelihood ratio is `loading` times the state.
    decay : float
    nodes : ndarray of shape (n,)
    start : ndarray of shape (1, n)
        Masses of the first state.
    moves : ndarray of shape (n, n)
        Masses of the next state, given that in the row.
    lost : ndarray of shape (n + 1,)
        Masses below the nodes that a path is dropped for: of each row, and of the
        start at the end.
    """

    loading: float
    decay: float
    nodes: Floats
    start: Floats
    moves: Floats
    lost: Floats

    @property
    def means(self) -> Floats:
        """Means of the next state given each node, and of the first state."""
        return np.append(self.decay * self.nodes, 0.0)

    @property
    def deviations(self) -> Floats:
        """Standard deviations of the next state given each node, and of the first."""
        return np.append(
            np.full(len(self.nodes), math.sqrt(max(0.0, 1 - self.decay**2))), 1.0
        )


def axis(
    scale: float, decay: float, nodes: Floats, exponent: float, drop: bool
) -> Axis:
    """Return a stationary autoregression of a variance, split on nodes.

    Parameters
    ----------
    scale, decay : float
        Of its covariance ``scale * decay ** h``.
    nodes : ndarray of shape (n,)
        In standard deviations.
    exponent : float
        Splits preserve the mean of exp(exponent * state), or that of the state.
    drop : bool
        Whether paths below the nodes are dropped; else they move up.

    Returns
    -------
    Axis
    """
    loading = math.sqrt(scale)
    if scale == 0:
        one = np.ones((1, 1))
        return Axis(0.0, 0.0, np.zeros(1), one, one, np.zeros(2))
    start, below, above = split_normal(np.zeros(1), 1.0, nodes, exponent)
    if decay == 1:
        moves = np.eye(len(nodes))
        under = over = np.zeros(len(nodes))
    else:
        moves, under, over = split_normal(
            decay * nodes, math.sqrt(1 - decay**2), nodes, exponent
        )
    lost = np.append(under, below)
    start[0, -1] += above[0]
    moves[:, -1] += over
    if not drop:
        start[0, 0] += below[0]
        moves[:, 0] += under
        lost = np.zeros_like(lost)
    return Axis(loading, decay, nodes, start, moves, lost)


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
