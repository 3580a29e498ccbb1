"""Bounds of kept bins by blocks of bins that have one factor in common."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len

from skpuffer.kernel.numbers import Floats
from skpuffer.privacy_loss.allocation._lattice import between, sum_of_terms

from ._bins import Bins, cyclic_lags, linear_lags
from ._chain import (
    ChainLaw,
    class_of_epsilon,
    class_of_noise,
    delta_of_law,
    laws_by_rungs,
)
from ._recursion import split

#: Exponent of the tilt at the largest sum of interest, and the window's length in such
#: sums: what lies beyond is folded back at exp(-24) of it, which only adds.
_TILT, _WINDOW = 6.0, 4

#: Nodes of a factor, and how far they reach in standard deviations.
_NODES, _COARSE_NODES = 96, 24
_LOW, _HIGH = -5.0, 6.8

#: Points of the lattice of the sum, up to the largest of interest: for each bin, the
#: least and the most; and where blocks are compared.
_POINTS, _LEAST_POINTS, _MOST_POINTS = 2**7, 2**12, 2**14
_COARSE_POINTS = 2**11

#: Part of a block's mass that is left out, and charged for.
_LEFT_OUT = 1e-30

#: Least deviation of a term about its factor: a smaller one is raised to it.
_NARROW = 1e-6

#: Sizes of blocks that are compared.
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


class Blocks(NamedTuple):
    """Independent blocks of bins, and a covariance no less than that within each.

    There are `number` blocks of `size` bins. Two bins of a block have the covariance
    `common`, and each has the variance `own` beyond that.
    """

    number: int
    size: int
    common: float
    own: float

    def over(self, variance: float) -> "Blocks":
        """Return the blocks in units of a variance, rounded up."""
        room = (1 + 1e-12) / variance
        return self._replace(common=self.common * room, own=self.own * room)


def blocks_of(gram: Floats) -> list[Blocks]:
    """Return ways to leave bins out until what is left falls into independent blocks.

    Each bounds all bins, as a set of bins does whose rotations have no more in common.
    The Gram matrix is not negative; the last way has all bins in one block.
    """
    bins, row, circle = len(gram), linear_lags(gram), cyclic_lags(gram)
    # bins that are further apart on the circle have nothing in common
    gap = len(np.trim_zeros(circle[: bins // 2 + 1], "b")) - 1
    found = []
    for size in _SIZES:
        number = bins // (size + max(gap, 0))
        if number > 1:
            common = float(circle[1:size].max(initial=0.0))
            found.append(_covered(number, size, common, float(circle[0])))
    return [*found, _covered(1, bins, float(row[1:].max(initial=0.0)), float(row[0]))]


def _covered(number: int, size: int, common: float, variance: float) -> Blocks:
    return Blocks(number, size, common, max(variance - common, 0.0))


@lru_cache(maxsize=128)
def block_law(blocks: Blocks, reach: float, nodes: int, points: int) -> ChainLaw:
    """Return the law of the mean likelihood ratio of bins in blocks, split upwards.

    `blocks`: in units of the noise's variance. `reach`: largest strike that is asked
    for. `nodes`, `points`: nodes of a block's common factor, and points of the lattice
    of the sum.

    Returns
    -------
    ChainLaw
        Of both directions, with the mean before the splits.

    Notes
    -----
    A block's sum is linear in its factor and in each of its terms, and a put option is
    convex, so that splits of either that preserve the mean raise it. The factor's mass
    above the last node is moved down, which a put option gains by, and terms above the
    lattice are left out: with them the sum exceeds every strike.
    """
    number, size, common, own = blocks
    end = number * size * reach
    step, length = end / points, next_fast_len(_WINDOW * points, real=True)
    sums, slope = step * np.arange(points + 1.0), _TILT / points * np.arange(points + 1)
    terms, logs = [], []
    for factor, weight in _split_factor(common, nodes):
        term = _split_term(factor, own, sums) * np.exp(-slope)
        total = float(term.sum())
        if total > 0:
            terms.append(term / total)
            logs.append(math.log(weight) + size * math.log(total))
    log_mass = float(np.logaddexp.reduce(logs))
    block, error = np.zeros(length), 0.0
    for term, part in zip(terms, np.exp(np.array(logs) - log_mass), strict=True):
        if part < _LEFT_OUT:
            error += part
            continue
        padded = np.concatenate([term, np.zeros(length - len(term))])
        masses, wrong = sum_of_terms([(padded, size)], length)
        block += part * np.maximum(masses, 0.0)
        error += part * wrong
    # a block's error is passed on by transforms that are at most one
    masses, wrong = sum_of_terms([(block, number)], length)
    back = np.exp(number * log_mass + slope)
    masses = np.maximum(masses[: points + 1], 0.0) * back
    place = sums / (number * size)
    rounding = np.finfo(float).eps * (points + number * size) * (1 + reach)
    payoff = float(np.linalg.norm((reach - place) * back))
    return ChainLaw(
        step / (number * size),
        reach,
        1.0,
        np.cumsum(masses),
        np.cumsum(masses * place),
        0.0,
        (wrong + number * error) * payoff + rounding,
    )


def _split_factor(common: float, nodes: int) -> list[tuple[float, float]]:
    """Values and masses of ``exp(sqrt(common) z - common / 2)``, its mean kept."""
    if common == 0:
        return [(1.0, 1.0)]
    root = math.sqrt(common)
    x = np.linspace(_LOW, _HIGH + root, nodes)
    values = np.concatenate([[0.0], np.exp(root * x - common / 2)])
    ends = np.concatenate([[-np.inf], x, [np.inf]])
    mass, held = between(ends), between(ends - root)
    right = (held[:-1] - values[:-1] * mass[:-1]) / np.diff(values)
    weights = split(mass[:-1], right)
    weights[-1] += mass[-1]
    kept = weights > 0
    return list(zip(values[kept].tolist(), weights[kept].tolist(), strict=True))


def _split_term(factor: float, own: float, sums: Floats) -> Floats:
    """Masses of ``factor exp(sqrt(own) z - own / 2)`` on the lattice, its mean kept."""
    if factor == 0:
        return np.eye(1, len(sums))[0]
    root = max(math.sqrt(own), _NARROW)
    with np.errstate(divide="ignore"):
        z = np.log(sums / factor) / root + root / 2
    mass, held = between(z), factor * between(z - root)
    return split(mass, (held - sums[:-1] * mass) / sums[1])


def block_delta(bins: Bins, variance: float, epsilon: Floats, adding: bool) -> Floats:
    """Bound the hockey-stick divergence in one direction by independent blocks.

    It takes no grid of states, and is looser than a Markov chain's bound. `variance` is
    that of the noise in clip norms squared.
    """

    def law_at(epsilon: Floats, rung: float) -> ChainLaw:
        at = class_of_epsilon(rung)
        blocks = block_plan(bins, class_of_noise(variance), at, adding)
        points = _POINTS * blocks.number * blocks.size
        points = min(max(points, _LEAST_POINTS), _MOST_POINTS)
        return block_law(
            blocks.over(variance), _reach(rung, adding), nodes=_NODES, points=points
        )

    return laws_by_rungs(bins, variance, epsilon, adding, law_at)


def _reach(rung: float, adding: bool) -> float:
    return math.exp(-rung if adding else rung)


@lru_cache(maxsize=256)
def block_plan(bins: Bins, variance: float, epsilon: float, adding: bool) -> Blocks:
    """Choose the size of blocks by the bounds that coarse lattices give.

    Every choice is a bound. It is tight near the given variance and epsilon.
    """
    at = np.array([epsilon])

    def roughly(blocks: Blocks) -> float:
        law = block_law(
            blocks.over(variance),
            _reach(epsilon, adding),
            nodes=_COARSE_NODES,
            points=_COARSE_POINTS,
        )
        return float(delta_of_law(law, at, adding)[0])

    return min(blocks_of(bins.gram), key=roughly)
