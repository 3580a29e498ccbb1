"""Splits of normal laws on a grid that raise the mean of every convex function."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skpuffer.kernel.numbers import Floats

__all__ = ["Axis", "axis", "normal_mass", "split_normal"]


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
