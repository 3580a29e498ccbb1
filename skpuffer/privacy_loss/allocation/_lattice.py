"""Laws of sums of log-normal likelihood ratios on a lattice: bounds of put options.

For S = (Y_1 + ... + Y_b) / b, Y_i = exp(a_i x - a_i² / 2), of a record in one of b bins
the mean of (gamma - S)₊ gives the divergences of both directions.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from skpuffer.kernel.composed import worst_delta
from skpuffer.kernel.curves import TradeOffs
from skpuffer.kernel.numbers import Floats, Integers
from skpuffer.utils._types import Array

from ._sampled import sampled_delta

#: Unit of rounding of a transform, of which log2(length) are charged: Higham (2002),
#: Accuracy and stability of numerical algorithms, Theorem 24.2.
_ROUNDED = 6 * 2.0**-53


def sum_of_terms(
    parts: Sequence[tuple[Array, int]], length: int
) -> tuple[Floats, float]:
    """Return the law (length,) of a sum of independent terms on a cycle, and an error.

    `parts` are laws of terms, of mass one, and their numbers. The error bounds the root
    of the sum of squares of the rounding errors.
    """
    transforms = [(rfft(law), count) for law, count in parts]
    # An error of one of several equal factors changes their product by as much times
    # the rest, and the masses' root of the sum of squares is that of the transforms
    # over the root of the length, by Parseval.
    powers = [_power(each, count - 1) for each, count in transforms]
    whole = math.prod(
        rest * each for rest, (each, _) in zip(powers, transforms, strict=True)
    )
    change = np.abs(whole)
    for i, (_, count) in enumerate(transforms):
        others = (_power(*other) for j, other in enumerate(transforms) if j != i)
        change = change + count * np.abs(math.prod(others, start=powers[i]))
    spread = math.sqrt(2 * float(change @ change) / length)
    return irfft(whole, length), _ROUNDED * math.log2(length) * spread


def _power(transform: Array, count: int) -> Array:
    """Power by repeated squaring: many times as fast as by logarithms."""
    power = np.ones_like(transform)
    while count:
        if count % 2:
            power = power * transform
        count //= 2
        if count:
            transform = transform * transform
    return power


#: Lattice step, in deviations of one term: raises their variance by its square / 6.
_STEP = 0.04

#: Lattice step, in roots of the number of terms, as a part of the range of sums.
_COARSE = 7.5e-4

#: Deviations of a sum below its mean that count as its range.
_RANGE = 9.0

#: Most points that the interesting part of a window may have.
_MOST_POINTS = 2**17

#: Most points of a window, but for twice those of its interesting part.
_MOST_LENGTH = 2**20

#: Exponent of the tilt at the largest sum of interest.
_TILT = 4.0

#: Sums beyond the window that are folded back into it count exp(-exponent) times, and
#: with the logarithm of their mass it comes to this one, but for the least.
_FOLDED, _LEAST_FOLDED = 28.0, 16.0

#: Logarithm of masses that are left out and charged for.
_LEFT_OUT = 41.0

#: Unit roundoff of float64.
_UNIT = 2.0**-53


class Group(NamedTuple):
    """Terms of one distribution: exp(a x - a² / 2), x normal, a the `shift`."""

    size: int
    shift: float


class PutLaw:
    """Upper bounds of the mean of (gamma - S)₊ for all gamma up to a largest.

    Each term is moved to the points of a lattice so that its mean stays. That raises
    the mean of every convex function. Powers of one Fourier transform add the terms.
    Sums beyond the window are folded back into it, which only adds to the mean; those
    before it are charged for, as are rounding errors.
    """

    def __init__(self, groups: tuple[Group, ...], largest: float) -> None:
        n = sum(group.size for group in groups)
        self._n, self.largest = n, largest
        end = n * largest
        step = self._lattice_step(groups, end)
        split = [_Split(group, step, end, n) for group in groups]
        start, steepest = self._start(split, step)
        points = max(2, math.ceil(end / step) - start + 2)
        # no steeper than where it would magnify the sums before the window
        tilt = min(_TILT / (points * step), steepest)
        length = math.ceil(self._folded(groups) / (tilt * step))
        # of a shorter window more sums are folded back, a safe error
        length = max(min(length, _MOST_LENGTH), 2 * points)
        length = next_fast_len(length, real=True)
        # log of the tilted mass, and the product of the normalised transforms
        log_mass, laws = 0.0, []
        for part in split:
            weights = part.masses * np.exp(-tilt * step * part.index)
            total = weights.sum()
            log_mass += part.count * math.log(total)
            folded: Floats = np.zeros(length)
            np.add.at(folded, part.index % length, weights / total)
            laws.append((folded, part.count))
        masses, error = sum_of_terms(laws, length)
        masses = np.roll(masses, -(start % length))[:points]
        sums = step * (start + np.arange(points))
        back = np.exp(log_mass + tilt * sums)
        self._sums = sums
        masses = np.maximum(masses, 0.0) * back
        self._mass = np.concatenate([[0.0], _running_sum(masses)])
        self._moment = np.concatenate([[0.0], _running_sum(masses * sums)])
        # Both are sums of numbers above zero, each the end of no more additions than
        # this; exponents of `back` are rounded three times, and the rest a few.
        exponent = abs(log_mass) + tilt * max(abs(sums[0]), abs(sums[-1]))
        self._relative = _UNIT * (2 * math.sqrt(points) + 4 * exponent + 16)
        # Chernoff's bound of the mass of all terms but one below each point
        least = min(part.masses @ np.exp(-tilt * step * part.index) for part in split)
        self._others = np.minimum(np.concatenate([[0.0], back]) / least, 1.0)
        # the root of the sum of squares of `back` up to each point
        self._root = np.sqrt(np.concatenate([[0.0], np.cumsum(back**2)])) * error
        # sums before the window and terms that were left out: gamma times these
        self._missed = 2 * math.exp(-_LEFT_OUT)

    def _folded(self, groups: tuple[Group, ...]) -> float:
        # Chebyshev's inequality, for sums as far off as the least exponent lets come
        # back; all of them only add to the mean, so that it need not be exact
        far = _LEAST_FOLDED / _TILT * self.largest - 1
        squares = sum(c * math.expm1(min(a * a, 700.0)) for c, a in groups) + 1e-300
        if far <= 0:
            return _FOLDED
        rare = math.log(squares) - 2 * math.log(self._n * far)
        return max(_FOLDED + min(rare, 0.0), _LEAST_FOLDED)

    @staticmethod
    def _lattice_step(groups: tuple[Group, ...], end: float) -> float:
        n = sum(group.size for group in groups)
        # variance of a term that is cut off at the end
        variance = 0.0
        for count, a in groups:
            z = math.log(end) / a + a / 2
            second = math.exp(min(a * a + float(log_ndtr(z - 2 * a)), 700.0))
            variance += count / n * max(second - float(ndtr(z - a)) ** 2, 0.0)
        # of sums far below their mean all terms are small
        most = max(a for _, a in groups)
        typical = min(math.sqrt(variance), end / n * min(most, 1.0))
        squares = sum(c * math.expm1(min(a * a, 700.0)) for c, a in groups)
        spread = min(end, max(end - n, 0.0) + _RANGE * math.sqrt(squares))
        return max(
            _STEP * typical,
            _COARSE * spread / math.sqrt(n),
            spread / _MOST_POINTS,
            end / _MOST_LENGTH,
        )

    @staticmethod
    def _start(split: "list[_Split]", step: float) -> tuple[int, float]:
        """Start of the window, before which nearly nothing lies, and its tilt."""
        # a Chernoff bound: P(sum < start) <= exp(t start) E exp(-t sum)
        second = sum(
            part.count * float(part.masses @ (step * part.index) ** 2) for part in split
        )
        means = [step * float(part.masses @ part.index) for part in split]
        variance = second - sum(
            p.count * m**2 for p, m in zip(split, means, strict=True)
        )
        best, steepest = 0.0, math.inf
        # of sums far below their mean, and of those that are nearly normal
        tilts = [f * math.sqrt(2 * _LEFT_OUT / second) for f in (0.3, 1.0, 3.0)]
        if variance > 1e-9 * second:
            tilts.append(math.sqrt(2 * _LEFT_OUT / variance))
        for t in tilts:
            cumulant = sum(
                part.count * math.log(part.masses @ np.exp(-t * step * part.index))
                for part in split
            )
            start = (-_LEFT_OUT - cumulant) / t
            if start > best:
                best, steepest = start, t
        return math.floor(best / step), steepest

    def put(self, gamma: Floats) -> Floats:
        """Return bounds of the mean of (gamma - S)₊, for gamma up to `largest`."""
        end = self._n * gamma
        below = np.searchsorted(self._sums, end)
        value = gamma * self._mass[below] - self._moment[below] / self._n
        # payoffs of the points below, of which none is larger than that at the first
        most = np.maximum(gamma - self._sums[0] / self._n, 0.0)
        total: Floats = value + self._root[below] * most + gamma * self._missed
        total += self._relative * (
            gamma * self._mass[below] + self._moment[below] / self._n
        )
        # Normal probabilities have errors of few units, and add up: a payoff's mean
        # changes by as much times its largest slope, n times one of the n terms.
        total += 16 * _UNIT * self._others[below]
        return total


class _Split:
    """One term, moved to a lattice with its mean."""

    def __init__(self, group: Group, step: float, end: float, n: int) -> None:
        self.count, a = group
        # beyond these lies less than exp(-_LEFT_OUT) / n
        z = -ndtri(math.exp(-_LEFT_OUT) / n)
        low, high = (math.exp(min(700.0, a * x - a * a / 2)) for x in (-z, z))
        first = max(1, math.floor(low / step))
        last = max(first + 1, math.ceil(min(high, end) / step))
        self.index: Integers = np.concatenate([[0], np.arange(first, last + 1)])
        points = step * self.index
        with np.errstate(divide="ignore"):
            x = np.log(points) / a + a / 2
        mass, part = between(x), between(x - a)
        right = np.clip((part - points[:-1] * mass) / np.diff(points), 0.0, mass)
        self.masses = np.zeros(len(points))
        self.masses[:-1] = mass - right
        self.masses[1:] += right


def _running_sum(values: Floats) -> Floats:
    """Sums up to each value, of rows and then within, so that few errors add up."""
    width = max(1, math.isqrt(len(values)))
    rows = np.pad(values, (0, -len(values) % width)).reshape(-1, width).cumsum(axis=1)
    rows[1:] += rows[:-1, -1].cumsum()[:, np.newaxis]
    found: Floats = rows.ravel()[: len(values)]
    return found


def between(x: Floats) -> Floats:
    """Normal probabilities of the intervals between increasing points."""
    # of the nearer tail, which keeps its digits
    tail, above = ndtr(-np.abs(x)), x > 0
    mass: Floats = np.abs(np.diff(tail))
    across = above[1:] & ~above[:-1]
    mass[across] = 1 - tail[:-1][across] - tail[1:][across]
    return mass


# -- where to look for an epsilon or a scale, if each divergence takes long to bound ---
# First by few samples, which tell where it is and prove nothing; then, near there, by
# the bounds themselves, on the side that is safe.


#: Relative accuracies of a scale and of an epsilon, on the safe side: one law serves
#: many epsilons.
_FINE, _FINEST = 2e-5, 1e-11

#: The same of a scale of bounds that take long and are far above the truth.
_COARSE_SCALE = 2e-4

#: Logarithms of the first step away from where to look, near the truth and far above.
_NEAR_STEP, _FAR_STEP = 0.03, 0.3

#: Draws times bins of the samples that tell where to look, and the least of draws.
_DRAWN, _LEAST = 4e5, 200

#: What a bound exceeds the truth by, about, in logarithms of epsilons and of scales.
_ABOVE = 0.03

# Any will do: no promise rests on these.
_SEED = 20250601


class BinsPair(TradeOffs, Protocol):
    """The interface of a pair of a record in bins."""

    @property
    def replaced(self) -> bool:
        """Whether one record is replaced by another."""

    @property
    def is_rough(self) -> bool:
        """Whether its bounds take long and are far above the truth."""

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same divergences."""

    @property
    def scaled_gram(self) -> Floats:
        """Gram matrix of the bins' means, in units of the noise's variance."""


def sampled_crossing(
    gram_at: Callable[[float], Floats],
    epsilon_at: Callable[[float], float],
    delta: float,
    replaced: bool,
) -> float:
    """Return about where a divergence is delta, by few samples and never as a promise.

    Gram matrix and epsilon are functions of a number with which the divergence falls.
    """
    direction = "replace" if replaced else "remove"

    def miss(log: float) -> float:
        gram = gram_at(math.exp(log))
        draws = max(_LEAST, int(_DRAWN / len(gram)))
        rng = np.random.default_rng(_SEED)
        epsilon = epsilon_at(math.exp(log))
        found = sampled_delta(gram, epsilon, direction, n_samples=draws, rng=rng)
        # none that was drawn told anything: less than any delta
        if not found.estimate > 0:
            return -1.0
        return math.log(found.estimate) - math.log(delta)

    low = high = 0.0
    while miss(high) > 0 and high < 25:
        low, high = high, high + 0.7
    while miss(low) <= 0 and low > -10:
        low, high = low - 0.7, low
    if low <= -10 or high >= 25:
        return math.exp(high)
    found: float = brentq(miss, low, high, xtol=5e-3)
    return math.exp(found + _ABOVE)


def least_scale(
    pair_at: Callable[[float], BinsPair], epsilon: float, delta: float, size: float
) -> float:
    """Return nearly the least scale of noise that keeps an epsilon at a delta.

    `pair_at` gives the pair of a record in bins at a scale, and `size` is a scale of
    the right order. Both directions keep it at the scale returned; infinite if there is
    none.
    """
    first = pair_at(size)
    guess = sampled_crossing(
        lambda part: pair_at(size * part).scaled_gram,
        lambda _: epsilon,
        delta,
        first.replaced,
    )
    fine, step = (_COARSE_SCALE, _FAR_STEP) if first.is_rough else (_FINE, _NEAR_STEP)
    return crossing(
        lambda scale: worst_delta(pair_at(scale), epsilon),
        delta,
        size * guess,
        fine,
        step,
    )


def least_epsilon(pair: BinsPair, delta: float) -> float:
    """Return nearly the least epsilon at which a pair's bounds are at most delta.

    Both directions were found to be; infinite if there is none.
    """
    if worst_delta(pair, 0.0) <= delta:
        return 0.0
    gram = pair.scaled_gram
    if not np.all(np.isfinite(gram)):
        return math.inf
    guess = sampled_crossing(lambda _: gram, lambda e: e, delta, pair.replaced)
    return crossing(lambda e: worst_delta(pair, e), delta, guess, _FINEST)


def crossing(
    function: Callable[[float], float],
    target: float,
    guess: float,
    fine: float = _FINE,
    step: float = _NEAR_STEP,
) -> float:
    """Return nearly the least positive number at which a function is at most a target.

    It decreases, but for errors of grids. Infinite if there is none. The search begins
    at `guess` with a first logarithmic `step`, to the relative accuracy `fine`.
    """

    def miss(log: float) -> float:
        return math.log(max(function(math.exp(log)), 1e-300) / target)

    at = math.log(guess)
    first = miss(at)
    if first == 0:
        return guess
    # away from the guess, ever further
    sign = 1.0 if first > 0 else -1.0
    near, far = at, at + sign * step
    while sign * miss(far) > 0:
        step *= 1.7
        near, far = far, far + sign * step
        if abs(far) > 60:
            return math.inf if sign > 0 else math.exp(near)
    low, high = min(near, far), max(near, far)
    root = brentq(miss, low, high, xtol=fine, rtol=1e-12)
    # grids make it rough: up until it holds, no further than where it is known to
    step = fine
    while root < high and miss(root) > 0:
        root += step
        step *= 1.5
    return math.exp(min(root, high))
