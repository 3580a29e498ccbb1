"""Bounds on the divergence of bins on a Markov chain, a record being replaced."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skpuffer.utils._types import Floats

from ._chain import Accuracy, chain_state, outside
from ._cover import Cover
from ._recursion import State, summed
from ._split import normal_mass

__all__ = ["Replaced", "chain_replaced"]

#: Exponent, over half the grid, by which masses are tilted towards large sums.
_TILT = 4.0

#: Length of the transforms, in grids: half of it on either side of zero.
_WINDOW = 4


class Replaced(NamedTuple):
    """Bound on a divergence, and what of it was charged.

    Parameters
    ----------
    delta : float
        All charges included.
    outside, error : float
        For paths outside the grids, and for rounding.
    """

    delta: float
    outside: float
    error: float


@lru_cache(maxsize=512)
def chain_replaced(
    cover: Cover, size: int, epsilon: float, accuracy: Accuracy, spread: float = 3.0
) -> Replaced:
    """Bound the divergence of the mixture of means from that of their negatives.

    Parameters
    ----------
    cover : Cover
        Covariance of the logarithms of the bins' likelihood ratios.
    size : int
        Number of bins.
    epsilon : float
    accuracy : Accuracy
    spread : float, default=3.0
        How far the grid of a term reaches, in means of the sum at most.

    Returns
    -------
    Replaced

    Notes
    -----
    The divergence is the mean of ``(sum_i A_i - exp(epsilon) B_i)₊ / size``, where
    A_i = exp(y_i - v/2) and B_i = exp(-y_i - v/2) for y_i of covariance `cover` and
    variance v. Given the noise, those of bin j + h are c w^(-rho^h) and c' w^(rho^h) as
    functions of w = exp(-a x), with x the state at bin j: the first is convex in w and
    the second, of which there is a negative multiple, concave. So the divergence is
    convex in w, and splits preserve the mean of w. To split in x, or in exp(a x), would
    be no bound. As the function increases in x, what lies below the nodes may be moved
    up; what lies above them is moved down, and the most that this takes away charged.
    """
    factor = math.exp(epsilon)
    if cover.own == 0:
        # a law without a density would fall on the grid by rounding
        cover = replace(cover, own=max(1e-6 * cover.variance, 1e-12))
    state = chain_state(cover, "replace", accuracy)
    variance, points = cover.variance, accuracy.points
    lags = cover.lags(size)
    correlated = 1 + 2 * lags[1:].sum() / lags[0]
    second = math.expm1(variance) * (1 + factor**2) * correlated
    half = spread * size * (factor - 1) + 6 * math.sqrt(size * second) + 4
    grid = np.linspace(-half, half, points + 1)
    masses, above = _split_terms(state, cover.own, variance, factor, grid)

    tilted = masses * np.exp(_TILT / half * grid)
    sums = summed(state, tilted, size, _WINDOW * points)
    # at index i the sum is i steps above its least, size * grid[0]
    place = np.arange(_WINDOW * points // 2) * (grid[1] - grid[0])
    at = (np.arange(len(place)) + size * points // 2) % (_WINDOW * points)
    payoff = place * np.exp(-_TILT / half * place) / size
    value = float(sums.masses[at] @ payoff)

    # sums beyond the window are wrapped around to where they have no payoff
    beyond = _tail(state, masses, grid, size, _WINDOW * half)
    marginals = state.marginals(size)
    charged = outside(state, size, ((1, 1.0), (-1, factor))) + beyond
    charged += float(np.sum(marginals.sum(axis=0) * above)) / size
    nodes = len(state.first.nodes) + len(state.second.nodes)
    error = float(sums.error * np.linalg.norm(payoff))
    error += 2 * size * nodes * np.finfo(float).eps * value
    return Replaced(min(1.0, value + charged + error), charged, error)


def _split_terms(
    state: State, own: float, variance: float, factor: float, grid: Floats
) -> tuple[Floats, Floats]:
    """Masses of a step's term, given the state, and what lies beyond the grid's end."""
    # e^y solves e^-v/2 (e^y - factor e^-y) = t
    level = grid * math.exp(variance / 2)
    root = np.sqrt(level**2 + 4 * factor)
    with np.errstate(divide="ignore"):
        upper = np.where(level > 0, (level + root) / 2, 2 * factor / (root - level))
    deviation = math.sqrt(own)
    loads = state.loads[:, :, np.newaxis]
    z = (np.log(upper) - loads) / deviation
    ahead = np.exp(loads + (own - variance) / 2)
    behind = factor * np.exp(-loads + (own - variance) / 2)

    mass = normal_mass(z[:, :, :-1], z[:, :, 1:])
    held = ahead * normal_mass(z[:, :, :-1] - deviation, z[:, :, 1:] - deviation)
    held -= behind * normal_mass(z[:, :, :-1] + deviation, z[:, :, 1:] + deviation)
    right = np.clip((held - grid[:-1] * mass) / (grid[1] - grid[0]), 0.0, mass)
    masses = np.zeros(z.shape)
    masses[:, :, :-1] += mass - right
    masses[:, :, 1:] += right
    masses[:, :, 0] += ndtr(z[:, :, 0])
    # moved down to the end, which costs what it exceeds it by
    last = z[:, :, -1]
    masses[:, :, -1] += ndtr(-last)
    over = ahead[:, :, 0] * ndtr(deviation - last)
    over -= behind[:, :, 0] * ndtr(-deviation - last) + grid[-1] * ndtr(-last)
    # where rounding left less than nothing, what is moved up is more than enough
    return masses, np.maximum(over, 0.0)


def _tail(state: State, masses: Floats, grid: Floats, size: int, end: float) -> float:
    """Bound on the mean, over bins, of sums beyond the window's end.

    By a Chernoff bound: beyond w, s <= w exp(t (s - w)) for t w >= 1.
    """
    best = math.inf
    for power in range(9):
        rate = 2.0**power / end
        total = np.sum(masses * np.exp(rate * grid), axis=-1)
        current = state.start * total
        scale = -rate * end
        for _ in range(size - 1):
            current = state.forward(current) * total
            most = float(current.max())
            current, scale = current / most, scale + math.log(most)
        tail = scale + math.log(float(current.sum())) + math.log(end / size)
        best = min(best, tail)
    return math.exp(min(best, 0.0))
