"""Bounds on the divergences of bins whose covariance is that of a Markov chain."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats

from ._bins import Bins, Cover, check_cover, geometric_covers
from ._recursion import Axis, State, axis, normal_mass, split, summed


class Accuracy(NamedTuple):
    """Sizes of the grids of a chain: every choice is a bound, finer ones a better one.

    Parameters
    ----------
    nodes, second : int
        Nodes of the faster autoregression, and of the slower one if there are two.
    points : int
        Points of the grid of the sum.
    tilt : float
        Exponent, over the grid, by which masses are tilted towards small sums.
    window : int
        Length of the transforms, in grids.
    reach : float
        Reach of the nodes beyond the loading in standard deviations.
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

    The cover is in units of the noise's variance.
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
    return 2 * np.sinh(np.linspace(*ends, count))


def _growth(part: Axis, size: int, sign: int) -> tuple[Floats, Floats, Floats]:
    """Return means, given a state, of what later ratios owe to the next state.

    With c_h = loading * decay**h: ``exp(sign c_h x - c_h²/2)``, (n + 1, size), the last
    row for the first state; exactly, of the exact law above the nodes, and as split.
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
    """Bound what it costs, in the mean over the bins, to move paths down to the last
    nodes.

    `signs` are the exponents' signs and weights: ``((1, 1.0),)`` for the ratio itself.
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
    step, reach : float
        Step of the grid of the mean, and the largest strike.
    mean : float
        Mean of the split law, with all that lies beyond the grid.
    below, moment : ndarray of shape (n_points + 1,)
        Sums of masses, and of these times their places.
    outside, error : float
        Amounts added for paths outside the nodes, and for rounding.
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

    Notes
    -----
    Given the noise, the likelihood ratio of bin j + h is c exp(a rho^h x) as a function
    of the state x at bin j. Here a is the loading, rho the decay and c > 0 of either of
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
    """Return masses of ``ratio exp(sqrt(own) z - own/2)`` on a grid from zero.

    Means are kept, and the masses above the grid left out.
    """
    width = grid[1]
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
    return split(mass, (held - grid[:-1] * mass) / width)


# -- bounds of kept bins by Markov chains: covers chosen, laws shared by epsilons ------


#: Epsilons at which a divergence is bounded where many are asked for.
_MARKS = np.concatenate([np.arange(0, 4, 0.25), np.arange(4, 8, 0.5), np.arange(8, 33)])


def by_marks(
    delta_at: Callable[[float], float], epsilon: Floats, least: float
) -> Floats:
    """Bound a divergence at epsilons, each of which takes long.

    One or two are found by `delta_at`. Many are read off the line between two bounds,
    as a function of exp(epsilon), in which the divergence is convex. Below the
    divergence `least` no further bound is found.
    """
    if np.any(epsilon < 0):
        raise value_error("allocation.epsilon_negative", least=epsilon.min())
    flat = np.minimum(epsilon.ravel(), _MARKS[-1])
    if flat.size <= 2:
        return np.array([delta_at(at) for at in flat.tolist()]).reshape(epsilon.shape)
    last = int(np.searchsorted(_MARKS, flat.max()))
    marks, heights = _MARKS[: last + 1], np.ones(last + 1)
    for i, at in enumerate(marks.tolist()):
        heights[i] = delta_at(at)
        # a divergence decreases: this serves the rest
        if heights[i] <= least:
            heights[i:] = heights[i]
            break
    heights = np.minimum.accumulate(heights)
    found: Floats = np.interp(np.exp(flat), np.exp(marks), heights)
    return found.reshape(epsilon.shape)


#: Exponent, over half the grid, by which masses are tilted towards large sums.
_TILT = 4.0

#: Length of the transforms, in grids: half of it on either side of zero.
_WINDOW = 4


class Replaced(NamedTuple):
    """Bound `delta` on a divergence, all charges included.

    `outside` and `error` are those for paths outside the grids and for rounding.
    """

    delta: float
    outside: float
    error: float


@lru_cache(maxsize=512)
def chain_replaced(
    cover: Cover, size: int, epsilon: float, accuracy: Accuracy, spread: float = 3.0
) -> Replaced:
    """Bound the divergence of the mixture of means from that of their negatives.

    `cover`: covariance of the logarithms of the bins' likelihood ratios. `size`: number
    of bins. `spread`: largest reach of the grid of a term, in means of the sum.

    Notes
    -----
    The divergence is the mean of ``(sum_i A_i - exp(epsilon) B_i)₊ / size``, where A_i
    = exp(y_i - v/2) and B_i = exp(-y_i - v/2) for y_i of covariance `cover` and
    variance v. Given the noise, those of bin j + h are c w^(-rho^h) and c' w^(rho^h) as
    functions of w = exp(-a x), with x the state at bin j: the first is convex in w. The
    second enters by a negative multiple and is concave. So the divergence is convex in
    w, and splits preserve the mean of w. To split in x, or in exp(a x), would be no
    bound. As the function increases in x, what lies below the nodes may be moved up;
    what lies above them is moved down, and the most that this takes away charged.
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
    masses, above = _split_step(state, cover.own, variance, factor, grid)

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


def _split_step(
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
    masses = split(mass, (held - grid[:-1] * mass) / (grid[1] - grid[0]))
    masses[:, :, 0] += ndtr(z[:, :, 0])
    # moved down to the end, which costs what it exceeds it by
    last = z[:, :, -1]
    masses[:, :, -1] += ndtr(-last)
    over = ahead[:, :, 0] * ndtr(deviation - last)
    over -= behind[:, :, 0] * ndtr(-deviation - last) + grid[-1] * ndtr(-last)
    # where rounding left less than nothing, what is moved up is more than enough
    return masses, np.maximum(over, 0.0)


def _tail(state: State, masses: Floats, grid: Floats, size: int, end: float) -> float:
    """Bound the mean, over bins, of sums beyond the window's end by a Chernoff bound.

    Beyond w, s <= w exp(t (s - w)) for t w >= 1.
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


#: Epsilons up to which a law serves: closely spaced where a single one is asked for,
#: again and again in its neighbourhood, and widely where many are.
_CLOSE = np.concatenate(
    [
        np.arange(0, 2, 0.125),
        np.arange(2, 4, 0.25),
        np.arange(4, 8, 0.5),
        np.arange(8, 33.0),
    ]
)
_WIDE = np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])

#: A divergence less than so many times what is charged for rounding is not certified:
#: the charge is a bound to first order.
_TRUSTED = 10.0

#: A divergence of which the charge for paths outside the nodes may be this part.
_OUTSIDE = 0.01

#: A divergence for less than which no further law is made.
_LEAST = 1e-9

_FINE = Accuracy()
_REACHING = _FINE._replace(reach=8.5)
#: Nodes and points by which covers are compared.
_COARSE = Accuracy(nodes=64, second=12, points=512)

#: Covers that are compared, of those that look best.
_TRIED = 6

#: Width of the classes of noise, by its variance's log, in which a cover is chosen.
_NOISE = 0.3


class Plan(NamedTuple):
    """A window of bins and a cover of its lags in clip norms squared."""

    size: int
    cover: Cover


def _tilted(accuracy: Accuracy, reach: float, adding: bool) -> Accuracy:
    """Return the tilt for a reach: larger wraps less around, smaller rounds less.

    Rounding grows like exp(tilt (1 - 1 / reach)).
    """
    if adding:
        return accuracy._replace(tilt=11.5, window=2)
    tilt = 8.0 if reach < 1.4 else 4.0 if reach < 4 else 2.0
    return accuracy._replace(tilt=tilt, window=3)


def delta_of_law(law: ChainLaw, epsilon: Floats, adding: bool) -> Floats:
    """Bound the hockey-stick divergence by a law that serves these epsilons.

    Never less than ten times the charge for rounding.
    """
    factor = np.exp(epsilon)
    if adding:
        value = factor * (law.put(1 / factor) + law.error)
        least = _TRUSTED * factor * law.error
    else:
        value = law.mean - factor + law.put(factor) + law.error
        least = np.full_like(factor, _TRUSTED * law.error)
    value = np.maximum(value + law.outside, least)
    return np.minimum(value, 1.0)


def _accuracy(plan: Plan, accuracy: Accuracy) -> Accuracy:
    """Sizes of grids: fewer nodes where there are two autoregressions of them."""
    if len(plan.cover.scales) == 1:
        return accuracy
    return accuracy._replace(nodes=accuracy.nodes // 2)


def _law(
    plan: Plan, variance: float, rung: float, adding: bool, accuracy: Accuracy
) -> ChainLaw:
    """Law for epsilons up to a rung, or from it if `adding`."""
    reach = math.exp(-rung if adding else rung)
    accuracy = _tilted(_accuracy(plan, accuracy), reach, adding)
    return chain_law(plan.cover.over(variance), plan.size, reach, adding, accuracy)


def chain_delta(bins: Bins, variance: float, epsilon: Floats, adding: bool) -> Floats:
    """Bound the hockey-stick divergence in one direction by a Markov chain.

    `variance` is that of the noise in clip norms squared.
    """

    def law_at(epsilon: Floats, rung: float) -> ChainLaw:
        return _rung_law(bins, variance, epsilon, rung, adding)

    return laws_by_rungs(bins, variance, epsilon, adding, law_at)


def laws_by_rungs(
    bins: Bins,
    variance: float,
    epsilon: Floats,
    adding: bool,
    law_at: Callable[[Floats, float], ChainLaw],
) -> Floats:
    """Bound the hockey-stick divergence by laws each of which serves many epsilons.

    `law_at` gives the law for epsilons not above a rung, or not below it if `adding`.
    """
    if np.any(epsilon < 0):
        raise value_error("allocation.epsilon_negative", least=epsilon.min())
    if bins.stand_out(variance):
        return np.ones(epsilon.shape)
    flat = np.minimum(epsilon.ravel(), _WIDE[-1])
    found = np.ones(flat.shape)
    table = _CLOSE if flat.size == 1 else _WIDE
    # laws serve epsilons below their rung, and if a record is added those above it
    if adding:
        rungs = np.searchsorted(table, flat, side="right") - 1
    else:
        rungs = np.searchsorted(table, flat)
    for rung in np.unique(rungs):
        at = rungs == rung
        law = law_at(flat[at], float(table[rung]))
        found[at] = np.minimum(found[at], delta_of_law(law, flat[at], adding))
        # a divergence decreases: where nothing less is certified, this serves the rest
        least = float(found[at].min())
        found[rungs > rung] = least
        if least <= max(_LEAST, 1.01 * _TRUSTED * law.error):
            break
    return np.minimum(found, 1.0).reshape(epsilon.shape)


def chain_replaced_delta(bins: Bins, variance: float, epsilon: Floats) -> Floats:
    """Bound the hockey-stick divergence where a record is replaced, by a Markov chain.

    Many epsilons are bounded by few; see :func:`by_marks`.
    """
    if bins.stand_out(variance):
        return np.ones(epsilon.shape)
    return by_marks(partial(_replaced, bins, variance), epsilon, _LEAST)


def _replaced(bins: Bins, variance: float, epsilon: float) -> float:
    noise, near = class_of_noise(variance), class_of_epsilon(epsilon)
    plan = chain_plan(bins, noise, near, "replace")
    return _replaced_by(plan, variance, epsilon, _FINE)


def _replaced_by(
    plan: Plan, variance: float, epsilon: float, accuracy: Accuracy
) -> float:
    found = chain_replaced(
        plan.cover.over(variance), plan.size, epsilon, _accuracy(plan, accuracy)
    )
    return max(found.delta, _TRUSTED * found.error)


def _rung_law(
    bins: Bins, variance: float, epsilon: Floats, rung: float, adding: bool
) -> ChainLaw:
    """Law for epsilons next to a rung, with nodes that reach far enough for them."""
    noise, near = class_of_noise(variance), class_of_epsilon(rung)
    plan = chain_plan(bins, noise, near, "add" if adding else "remove")
    law = _law(plan, variance, rung, adding, _FINE)
    if law.outside > _OUTSIDE * delta_of_law(law, epsilon, adding).min():
        law = _law(plan, variance, rung, adding, _REACHING)
    return law


def class_of_epsilon(epsilon: float) -> float:
    """Lower end of a class of epsilons, where divergences are not yet tiny."""
    return 2.0 ** min(2, math.floor(math.log2(max(epsilon, 0.125))))


def class_of_noise(variance: float) -> float:
    """Variance in the middle of a class of them."""
    return math.exp(_NOISE * round(math.log(variance) / _NOISE))


@lru_cache(maxsize=256)
def chain_plan(
    bins: Bins, variance: float, epsilon: float, direction: str = "remove"
) -> Plan:
    """Choose window and cover by the bounds that coarse grids give.

    Every choice is a bound, so a rough one costs tightness only. The best cover depends
    on the direction. It is verified, entry by entry, against the window's lags.
    """
    tried = sorted(
        (
            (score, window.size, cover, window.lags)
            for window in bins.windows
            for score, cover in geometric_covers(window.lags)
        ),
        key=lambda each: each[0],
    )[:_TRIED]
    found = []
    for _, size, cover, lags in tried:
        check_cover(cover, lags)
        plan = Plan(size, cover)
        found.append((_roughly(plan, variance, epsilon, direction), plan))
    return min(found, key=lambda each: each[0])[1]


def _roughly(plan: Plan, variance: float, epsilon: float, direction: str) -> float:
    """Bound of one direction on coarse grids."""
    if direction == "replace":
        return _replaced_by(plan, variance, epsilon, _COARSE)
    adding = direction == "add"
    law = _law(plan, variance, epsilon, adding, _COARSE)
    return float(delta_of_law(law, np.array([epsilon]), adding)[0])
