"""Bounds on the divergences of bins whose covariance is that of a Markov chain."""

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skpuffer.kernel.numbers import Floats

from ._cover import Cover
from ._recursion import Axis, State, axis, normal_mass, summed

__all__ = ["Accuracy", "ChainLaw", "chain_law", "chain_state", "outside"]


class Accuracy(NamedTuple):
    """Sizes of the grids of a chain: every choice is a bound, finer ones a better one.

    Parameters
    ----------
    nodes : int
        Of the faster autoregression.
    second : int
        Of the slower one, where there are two.
    points : int
        Of the grid of the sum.
    tilt : float
        Exponent, over the grid, by which masses are tilted towards small sums.
    window : int
        Length of the transforms, in grids.
    reach : float
        What the nodes reach beyond the loading, in standard deviations.
    """

    nodes: int = 160
    second: int = 16
    points: int = 2048
    tilt: float = 8.0
    window: int = 3
    reach: float = 7.2


#: Multiples of the loading: the exponents of the variables in which laws are split.
_EXPONENTS = {"remove": 0.0, "add": 1.0, "replace": -1.0}


def chain_state(cover: Cover, direction: str, accuracy: Accuracy) -> State:
    """Return a chain's state, split so that the bound of a direction is one.

    Parameters
    ----------
    cover : Cover
        In units of the noise's variance.
    direction : {'remove', 'add', 'replace'}
    accuracy : Accuracy
    """
    axes = []
    grids = (
        partial(np.linspace, num=accuracy.nodes),
        partial(_dense_within, count=accuracy.second),
    )
    adding = direction == "add"
    for scale, decay, grid in zip(cover.scales, cover.decays, grids, strict=False):
        loading = math.sqrt(scale)
        low = -3.6 if direction == "remove" else -accuracy.reach
        high = 4.5 if adding else accuracy.reach + loading
        exponent = _EXPONENTS[direction] * loading
        axes.append(axis(scale, decay, grid(low, high), exponent, adding))
    if len(axes) == 1:
        axes.append(axis(0.0, 0.0, np.zeros(1), 0.0, False))
    return State(*axes)


def _dense_within(low: float, high: float, count: int) -> Floats:
    """Nodes that are denser about zero than far out."""
    ends = math.asinh(low / 2), math.asinh(high / 2)
    nodes: Floats = 2 * np.sinh(np.linspace(*ends, count))
    return nodes


def _growth(part: Axis, size: int, sign: int) -> tuple[Floats, Floats, Floats]:
    """Means, given a state, of what later likelihood ratios owe to the next state.

    With c_h = loading * decay**h that is ``exp(sign c_h x - c_h²/2)``; of shapes
    (n + 1, size), given each node, and in the last row for the first state: exactly,
    of the part of the exact law above the nodes, and of the law split on the nodes.
    """
    load = part.loading * np.power(part.decay, np.arange(size), dtype=float)
    if part.loading == 0:
        one = np.ones((2, size))
        return one, 0 * one, one
    mean, deviation = part.means[:, np.newaxis], part.deviations[:, np.newaxis]
    exact = np.exp(sign * load * mean + load**2 * (deviation**2 - 1) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        if sign > 0:
            beyond = (part.nodes[-1] - mean - load * deviation**2) / deviation
            above = exact * ndtr(-beyond)
        else:
            # what the state is moved down to is more than what it was
            beyond = (part.nodes[-1] - mean) / deviation
            level = np.exp(-load * part.nodes[-1] - load**2 / 2)
            above = level * ndtr(-beyond)
    # a common factor stays where it is
    above = np.where(deviation > 0, above, 0.0)
    masses = np.vstack([part.moves, part.start])
    split = masses @ np.exp(sign * np.outer(part.nodes, load) - load**2 / 2)
    return exact, above, split


def outside(state: State, size: int, signs: tuple[tuple[int, float], ...]) -> float:
    """Bound on what it costs to move paths down to the last nodes.

    Parameters
    ----------
    state : State
    size : int
    signs : tuple of (int, float)
        Signs of the exponents, and weights: ``((1, 1.0),)`` for the likelihood ratio.

    Returns
    -------
    float
        Of the mean over the bins.
    """
    later = np.zeros(1)
    for sign, weight in signs:
        exact, above, split = _growth(state.first, size, sign)
        exact_second, above_second, _ = _growth(state.second, size, sign)
        # the first autoregression moves while the second is exact, which moves then
        both = exact_second[np.newaxis] * above[:, np.newaxis]
        both = both + above_second[np.newaxis] * split[:, np.newaxis]
        later = later + weight * np.cumsum(both, axis=2)
    total = float(later[-1, -1, -1])
    if size > 1:
        masses = state.marginals(size - 1)
        ahead = later[:-1, :-1, size - 2 :: -1]
        total += float(np.einsum("jkl,klj->", masses, ahead))
    return total / size


def _dropped(state: State, size: int) -> float:
    """Bound on the probability of paths that left the nodes below."""
    first, second = state.first.lost, state.second.lost
    either = np.add.outer(first, second)
    total = float(either[-1, -1])
    if size > 1:
        masses = state.marginals(size - 1).sum(axis=0)
        total += float(np.sum(masses * either[:-1, :-1]))
    return total


class ChainLaw(NamedTuple):
    """Law of the mean likelihood ratio of bins, split upwards on a grid.

    Parameters
    ----------
    step : float
        Of the grid of the mean.
    reach : float
        Largest strike.
    mean : float
        Of the split law, with all that lies beyond the grid.
    below, moment : ndarray of shape (n_points + 1,)
        Sums of masses, and of these times their places.
    outside : float
        What is added for paths outside the nodes.
    error : float
        What is added for rounding.
    """

    step: float
    reach: float
    mean: float
    below: Floats
    moment: Floats
    outside: float
    error: float

    def put(self, strike: Floats) -> Floats:
        """Return the mean of (strike - ratio)₊, for strikes up to the reach."""
        at = np.clip(strike / self.step, 0, len(self.below) - 1).astype(int)
        value: Floats = strike * self.below[at] - self.moment[at]
        return np.maximum(value, 0.0)


@lru_cache(maxsize=512)
def chain_law(
    cover: Cover, size: int, reach: float, adding: bool, accuracy: Accuracy
) -> ChainLaw:
    """Return the law of the mean likelihood ratio of bins, for one direction.

    Parameters
    ----------
    cover : Cover
        Covariance of the logarithms of the bins' likelihood ratios.
    size : int
        Number of bins.
    reach : float
        Largest strike that is asked for: exp(epsilon), or exp(-epsilon) if `adding`.
    adding : bool
        Whether the bound is one for the direction in which the record is added.
    accuracy : Accuracy

    Returns
    -------
    ChainLaw

    Notes
    -----
    Given the noise, the likelihood ratio of bin j + h is c exp(a rho^h x) as a function
    of the state x at bin j, with a the loading, rho the decay and c > 0, of either of
    the two autoregressions while the other is given.

    Where the record is removed the divergence is the mean of a convex non-decreasing
    function of the sum, so convex in x: splits that preserve the mean of x raise it.
    Where it is added the function is convex and non-increasing, and the terms are
    concave in v = exp(a x), as powers v^(rho^h) with exponents of at most one: so it is
    convex in v, and splits preserve the mean of v. To split it in x would be no bound.
    Laws are replaced one at a time, at each of which the function of what is still
    exact is convex, so the order of replacements proves the whole. The terms
    themselves are split on the grid of the sum, in which everything is convex.
    """
    state = chain_state(cover, "add" if adding else "remove", accuracy)
    total = sum(cover.scales)
    ratio = np.exp(state.loads - total / 2)[:, :, np.newaxis]
    points, width = accuracy.points, size * reach / accuracy.points
    grid = width * np.arange(points + 1, dtype=float)
    masses = _split_terms(ratio, cover.own, grid)
    slope = accuracy.tilt / points
    weights = np.exp(-slope * np.arange(points + 1))
    masses *= weights
    # what lies above the grid makes the sum exceed every strike: its payoff is none
    sums = summed(state, masses, size, accuracy.window * points)
    untilted = sums.masses[: points + 1] / weights
    place = grid / size
    payoff = np.linalg.norm((reach - place) / weights)
    nodes = len(state.first.nodes) + len(state.second.nodes)
    mean = float(np.sum(state.marginals(size) * ratio[:, :, 0])) / size
    rounding = size * nodes * np.finfo(float).eps * (mean + reach)
    beyond = _dropped(state, size) if adding else outside(state, size, ((1, 1.0),))
    return ChainLaw(
        width / size,
        reach,
        mean,
        np.cumsum(untilted),
        np.cumsum(untilted * place),
        beyond,
        float(sums.error * payoff + rounding),
    )


def _split_terms(ratio: Floats, own: float, grid: Floats) -> Floats:
    """Masses of ``ratio exp(sqrt(own) z - own/2)`` on a grid from zero, means kept.

    What lies above the grid is left out.
    """
    width = grid[1]
    masses = np.zeros((*ratio.shape[:2], len(grid)))
    with np.errstate(divide="ignore"):
        level = np.log(grid / ratio)
    if own == 0:
        inside = (level[:, :, :-1] <= 0) & (level[:, :, 1:] > 0)
        mass = inside.astype(float)
        held = mass * ratio
    else:
        root = math.sqrt(own)
        z = level / root + root / 2
        mass = normal_mass(z[:, :, :-1], z[:, :, 1:])
        held = ratio * normal_mass(z[:, :, :-1] - root, z[:, :, 1:] - root)
    right = np.clip((held - grid[:-1] * mass) / width, 0.0, mass)
    masses[:, :, :-1] += mass - right
    masses[:, :, 1:] += right
    return masses
