"""Law of a sum along a Markov chain: splits on a grid, added by Fourier transforms."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, rfft
from scipy.special import gammaln, ndtr

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, check_finite


def normal_mass(low: Floats, high: Floats) -> Floats:
    """Return what a standard normal law has between two points, low <= high."""
    # by the upper tails where these are the small ones: no digits are lost there
    flip = low > 0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    return ndtr(last) - ndtr(first)


def split_normal(
    mean: Floats, deviation: float, nodes: Floats, exponent: float
) -> tuple[Floats, Floats, Floats]:
    """Split normal laws on nodes, cell by cell.

    The mass in a cell goes to its two ends so that the mean of exp(exponent * x) stays,
    and that of x itself if `exponent` is zero. The mean of a function that is convex in
    that variable on the cell then does not fall.

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
    return split(mass, right), ndtr(z[:, 0]), ndtr(-z[:, -1])


def split(mass: Floats, right: Floats) -> Floats:
    """Return masses on nodes, of masses of the cells between: `right` of it goes up."""
    right = np.clip(right, 0.0, mass)
    found = np.zeros((*mass.shape[:-1], mass.shape[-1] + 1))
    found[..., :-1] += mass - right
    found[..., 1:] += right
    return found


class Axis(NamedTuple):
    """One autoregression of a chain's state, on nodes.

    Parameters
    ----------
    loading : float
        The exponent of the likelihood ratio is `loading` times the state.
    nodes : ndarray of shape (n,)
    start, moves : ndarray of shape (1, n) and (n, n)
        Masses of the first state, and of the next state given that in the row.
    lost : ndarray of shape (n + 1,)
        Masses below the nodes whose paths are dropped: of each row, then of the start.
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
        Parameters of its covariance ``scale * decay ** h``.
    nodes : ndarray of shape (n,)
        In standard deviations.
    exponent : float
        Splits preserve the mean of exp(exponent * state), or that of the state if zero.
    drop : bool
        Whether paths below the nodes are dropped; else they move up.
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
        return np.add.outer(
            self.first.loading * self.first.nodes,
            self.second.loading * self.second.nodes,
        )

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
        return self.first.moves @ values @ self.second.moves.T

    def marginals(self, size: int) -> Floats:
        """Return masses of the states of all steps, (size, n_first, n_second)."""
        found: list[Floats] = [self.start]
        for _ in range(size - 1):
            found.append(self.forward(found[-1]))
        return np.array(found)


class Summed(NamedTuple):
    """Tilted masses of a sum, cyclic, and a bound on their error.

    `error` bounds the l2 norm of what rounding changed, to first order.
    """

    masses: Floats
    error: float


def summed(state: State, masses: Floats, size: int, window: int) -> Summed:
    """Return the law of the sum, over the steps of a chain, of a term given the state.

    `masses` (n_first, n_second, n_points): masses of a step's term on a grid given the
    state, perhaps tilted. `size`: number of steps. `window`: length of the transforms.
    Mass beyond is wrapped around.

    Notes
    -----
    All masses are non-negative, so that transforms are at most what they are at
    frequency zero. That bounds how errors of a step are passed on, and which
    frequencies may be left out for a charge. A transform's error is that of Higham
    (2002), Accuracy and Stability of Numerical Algorithms, Theorem 24.2, and that of a
    product of n terms n units of rounding, of the absolute values' product.
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


# -- sums over the counts of random bins, of which only near ones interact -------------
# A moment of whole order a of the mixture's density is a sum over a tuples of bins, and
# so over the counts t_0, ..., t_(b-1) of each bin in the tuple, of
#
#     a! prod_j 1 / t_j!  exp(sum_j G_jj t_j (t_j - 1) / 2 + sum_(i<j) G_ij t_i t_j).
#
# Everywhere here these weights come divided by ``a! exp(top a (a - 1) / 2)`` with `top`
# the largest entry of G. Then the factor that a bin brings in is never above one:
# nothing overflows, nothing cancels, and no logarithms are needed on the way.


# Numbers below the smallest float are lost. There are at most as many as tuples, and
# this is the log of far more than each of them lacks.
_LOST = math.log(1e-300)


class States(NamedTuple):
    """Counts of the last few bins, in a total of at most `order`.

    `counts` (n_states, n_last): the oldest bin first, empty bins in the first state.
    States that differ in the oldest bin's count only are neighbours. `starts`
    (n_groups,): where such groups start. `moves`: by the count of the next bin: groups
    with room for it, and states they move to.
    """

    order: int
    counts: Floats
    starts: np.ndarray
    moves: tuple[tuple[np.ndarray, np.ndarray], ...]

    def empty(self, n_tables: int) -> Floats:
        """Return tables (n_tables, order + 1, n_states) with no bin visited."""
        table = np.zeros((n_tables, self.order + 1, len(self.counts)))
        table[:, 0, 0] = 1.0
        return table

    def interactions(self, row: Floats, top: float, offset: Floats) -> Floats:
        """Return factors that one more record in the next bin brings in.

        `row` (n_last,) holds the entries of G of the next bin and the last ones,
        `offset` (n_tables,) further terms of zero or less. The shape is that of the
        tables.
        """
        total = np.arange(self.order + 1.0)[:, np.newaxis]
        exponent = offset[:, np.newaxis, np.newaxis] + (self.counts @ row - top * total)
        # states of more than the total have no weight, whatever their factor
        return np.exp(np.minimum(exponent, 0.0))

    def advanced(self, table: Floats, factors: Floats, alone: Floats) -> Floats:
        """Return tables (n_tables, order + 1, n_states) after one more bin.

        `factors` are those of :meth:`interactions`, `alone` the bin's weights by its
        count.
        """
        new = np.zeros_like(table)
        for count, (groups, states) in enumerate(self.moves):
            room = self.order + 1 - count
            if count:
                table = table[:, :room] * factors[:, :room]
            sums = np.add.reduceat(table, self.starts, axis=-1)
            new[:, count:, states] = sums[:, :, groups] * alone[count]
        return new


def counts_within(n_bins: int, order: int) -> np.ndarray:
    """Return all sorted counts (n, n_bins) of bins in a total of at most `order`."""
    found = np.zeros((1, 0), int)
    for _ in range(n_bins):
        choices = order + 1 - found.sum(axis=1)
        first = np.cumsum(choices) - choices
        last = np.arange(choices.sum()) - np.repeat(first, choices)
        found = np.column_stack([np.repeat(found, choices, axis=0), last])
    return found


@lru_cache(maxsize=256)
def states(n_last: int, order: int) -> States:
    """Return the states of at least one last bin."""
    # sorted by the younger bins, the oldest one last: groups stand side by side
    rolled = counts_within(n_last, order)
    powers = (order + 1) ** np.arange(n_last - 1, -1, -1)
    codes = rolled @ powers
    starts = np.flatnonzero(rolled[:, -1] == 0)
    younger = rolled[starts, :-1]
    room = order - younger.sum(axis=1)
    moves = []
    for count in range(order + 1):
        groups = np.flatnonzero(room >= count)
        # the oldest of the younger bins becomes the oldest
        moved = np.column_stack([younger[groups], np.full(len(groups), count)])
        moved = np.roll(moved, -1, axis=1)
        moves.append((groups, np.searchsorted(codes, moved @ powers)))
    counts = np.roll(rolled, 1, axis=1).astype(float)
    return States(order, counts, starts, tuple(moves))


def own_weights(entry: float, top: float, order: int) -> Floats:
    """Return the weights of a single bin, by its count from 0 to `order`."""
    count = np.arange(order + 1.0)
    return np.exp((entry - top) * count * (count - 1) / 2 - gammaln(count + 1))


@lru_cache(maxsize=64)
def _totals(order: int) -> np.ndarray:
    count = np.arange(order + 1)
    return np.add.outer(count, count).ravel()


def products(first: Floats, second: Floats, top: float) -> Floats:
    """Sum over pairs of parts (n_pairs, order + 1) that do not interact, by count."""
    count = np.arange(first.shape[1])
    weights = (first.T @ second) * np.exp(-top * np.multiply.outer(count, count))
    order = len(count) - 1
    return np.bincount(_totals(order), weights.ravel())[: order + 1].astype(float)


def divergences(weights: Floats, top: float, shared: float, n_bins: int) -> Floats:
    """Return the Rényi divergences of whole orders, from the sums over counts.

    `weights` (order + 1,): sums over the counts, by their total. `top`: the weights'
    unit, see the module. `shared`: amount taken from all entries of G.

    Returns
    -------
    ndarray of shape (order - 1,)
        In nats at the orders 2, 3, ...; rounded up.
    """
    order = np.arange(2.0, len(weights))
    with np.errstate(divide="ignore"):
        total = np.log(weights[2:])
    every = order * math.log(n_bins)
    total = np.logaddexp(total, every - gammaln(order + 1) + _LOST)
    raised, factorial = top * order * (order - 1) / 2, gammaln(order + 1)
    found = total + raised + factorial - every
    # every bin and every exponent brings in some rounding, always relative
    found += 1e-15 * (np.abs(total) + raised + factorial + every + 4 * n_bins + 1e3)
    found += 1e-15 * shared * order * (order - 1)
    # not a number: beyond the range of floats, and nothing is known
    found = np.where(np.isnan(found), math.inf, found)
    return np.maximum(found / (order - 1), 0.0) + shared * order / 2


def largest_order(orders: object) -> tuple[Floats, int]:
    """Return orders as floats, and the whole order up to which they are asked for."""
    values = check_finite(orders=orders)
    if values.size == 0 or np.any(values <= 1):
        raise value_error("allocation.orders_empty_or_small", orders=orders)
    return values, max(2, math.ceil(values.max()))


def interpolated(costs: Floats, orders: Floats) -> Floats:
    """Return bounds at any orders above one from those at the orders 2, 3, ...

    With R the divergence, (order - 1) R is convex in the order and zero at one, so it
    lies below its chords. Beyond the last order it is infinite.
    """
    whole = np.arange(1.0, len(costs) + 2)
    convex = np.concatenate([[0.0], costs * (whole[1:] - 1)])
    low = np.clip(np.floor(orders).astype(int) - 1, 0, len(convex) - 1)
    high = np.minimum(low + 1, len(convex) - 1)
    part = orders - whole[low]
    with np.errstate(invalid="ignore"):
        found = np.where(
            part == 0, convex[low], (1 - part) * convex[low] + part * convex[high]
        )
    found = np.where(np.isnan(found) | (orders > whole[-1]), math.inf, found)
    return found / (orders - 1)
