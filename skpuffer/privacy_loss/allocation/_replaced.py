"""Divergence of a record in a bin from another in its place: bounds of call options.

With Y and Z the likelihood ratios of a bin with either record, against none, the
divergence at exp(epsilon) = K is the mean of (T_1 + ... + T_b)₊ / b with T = Y - K Z.
These T have the laws of exp(a x - a²/2) - K exp(-a x - a²/2) for standard normal x.
"""

import math

import numpy as np
from scipy.fft import next_fast_len
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from skpuffer.kernel.numbers import Floats, Integers

from ._lattice import Group, between, sum_of_terms

__all__ = ["replaced_delta"]

#: Lattice step in deviations of one term, and in roots of the number of terms as a part
#: of how far the sum's mean lies below zero.
_STEP, _COARSE = 0.04, 1e-2

#: Most points of a lattice.
_MOST_POINTS = 2**15

#: Most points of a window: what lies before it comes back from above, a safe error.
_MOST_LENGTH = 2**17

#: Points of a lattice on either side that are next to each other; beyond, their
#: distance is this part of their size.
_DENSE = 500

#: Exponents, at the length of the window, by which sums beyond its ends count.
_FOLDED = 50.0

#: Unit roundoff of float64.
_UNIT = 2.0**-53

#: Tilted mass that the largest term may have: more would lie beyond any window.
_AT_TOP = 0.01


def replaced_delta(groups: tuple[Group, ...], epsilon: float, left_out: float) -> float:
    """Return an upper bound of the divergence at one epsilon.

    Parameters
    ----------
    groups : tuple of Group
        Bins by the shift of a record in them, in deviations of the noise.
    epsilon : float
        At least zero.
    left_out : float
        Probability of large losses that may be taken for infinite ones, in (0, 1).

    Returns
    -------
    float
    """
    n, ratio = sum(group.size for group in groups), math.exp(epsilon)
    moved = [group for group in groups if group.shift]
    # without a visit the likelihood ratios are one
    offset = (n - sum(group.size for group in moved)) * (1 - ratio)
    # of the record's own loss, which is normal and as large as the noise's alone, so
    # much is taken for infinite: the term is cut off at its largest there
    beyond = -float(ndtri(left_out))
    top = max(_term(a + beyond, a, ratio) for _, a in moved)
    spread = math.sqrt(
        sum(c * _variance(a, ratio, beyond) for c, a in moved)
        / sum(c for c, _ in moved)
    )
    step = max(_STEP * spread, _COARSE * math.sqrt(n) * (ratio - 1), top / _MOST_POINTS)
    terms = [_Term(group, ratio, step, top) for group in moved]
    charge = sum(term.count * term.beyond for term in terms) / n
    rare = sum(c * float(ndtr(-a - beyond)) for c, a in moved)
    steepest = max(4.0, math.log(_AT_TOP / rare)) / top
    tilt, log_mass = _tilt(terms, offset, steepest)
    # a window whose ends leave little of the tilted sum, which is centred near zero
    slack = math.sqrt(2 * _FOLDED) * math.sqrt(sum(t.variance(tilt) for t in terms))
    high = _least_end(terms, offset, left_out * n) if top else slack
    mean = offset + sum(term.mean(tilt) for term in terms)
    high = max(high, mean + slack, step)
    # sums before it come back from above, where they count exp(-tilt length) times
    enough = (10 - math.log(left_out)) / tilt if tilt else math.inf
    low = min(mean - slack, -step, high - min(enough, (1 + ratio) * high))
    low = max(low, high - _MOST_LENGTH * step)
    if low >= 0:
        # nothing is known
        return 1.0
    length = next_fast_len(math.ceil((high - low) / step) + 2, real=True)
    first = math.ceil((high - offset) / step) - length + 1
    laws = [
        (np.bincount(t.index % length, t.tilted(tilt), minlength=length), t.count)
        for t in terms
    ]
    masses, error = sum_of_terms(laws, length)
    masses = np.roll(masses, -(first % length))
    sums = offset + step * (first + np.arange(length))
    above = sums > 0
    back = np.exp(log_mass - tilt * sums[above]) * sums[above]
    value = float(np.maximum(masses[above], 0.0) @ back)
    value += error * float(np.sqrt(back @ back))
    # sums beyond the window
    value += _tail(terms, offset, float(sums[-1]))
    # A product of numbers above zero has a relative error of as many units as it has
    # terms, and their exponents are rounded thrice. Normal probabilities have errors of
    # few units, and add up: the mean of a function of slopes in [0, 1] of each term
    # changes by as much times the means of its parts, which are 1 and the ratio.
    exponent = abs(log_mass) + tilt * max(abs(sums[0]), abs(sums[-1]))
    relative = _UNIT * (length + 4 * exponent + 16)
    found = (value / n + charge) * (1 + relative) + 16 * _UNIT * (1 + ratio)
    return min(1.0, float(found))


def _term(x: float, a: float, ratio: float) -> float:
    return math.exp(min(a * x - a * a / 2, 600.0)) - ratio * math.exp(
        -a * x - a * a / 2
    )


def _variance(a: float, ratio: float, beyond: float) -> float:
    # of terms that are not cut off but in their tails
    ahead = math.exp(min(a * a, 600.0)) * float(ndtr(beyond - a))
    return (
        max(ahead - 1, 0.0)
        + ratio**2 * math.expm1(min(a * a, 600.0)) * float(ndtr(beyond - a))
        + 2 * ratio * -math.expm1(-a * a)
    )


class _Term:
    """One term, moved to a lattice with its mean."""

    def __init__(self, group: Group, ratio: float, step: float, top: float) -> None:
        self.count, a = group
        self._step = step
        # below this lies next to nothing, and moving it up is safe
        low = _term(float(ndtri(1e-18)), a, ratio)
        low = max(low, -_MOST_POINTS * step)
        first, last = math.floor(low / step), max(1, math.ceil(top / step))
        self.index = _sparse(first, last)
        points = step * self.index
        # exp(a x) for the x of a point: the positive root of a quadratic equation
        scaled = points * math.exp(min(a * a / 2, 600.0))
        root = np.sqrt(scaled**2 + 4 * ratio)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.where(
                scaled > 0, (scaled + root) / 2, 2 * ratio / (root - scaled)
            )
        x = np.log(power) / a
        mass = between(x)
        part = between(x - a) - ratio * between(x + a)
        right = np.clip((part - points[:-1] * mass) / np.diff(points), 0.0, mass)
        self._masses = np.zeros(len(points))
        self._masses[:-1] = mass - right
        self._masses[1:] += right
        self._masses[0] += ndtr(x[0])
        # what is beyond is moved down to the last point, which costs E (T - last)₊
        self._masses[-1] += ndtr(-x[-1])
        self.beyond = float(ndtr(a - x[-1]))

    def log_moment(self, tilt: float) -> float:
        """Log of the mean of exp(tilt T)."""
        exponent = tilt * self._step * self.index
        top = float(exponent.max())
        return top + math.log(self._masses @ np.exp(exponent - top))

    def tilted(self, tilt: float) -> Floats:
        """Masses times exp(tilt T), normalised."""
        exponent = tilt * self._step * self.index
        return self._masses * np.exp(exponent - self.log_moment(tilt))

    def mean(self, tilt: float) -> float:
        """Mean of all tilted terms."""
        return self.count * self._step * float(self.tilted(tilt) @ self.index)

    def variance(self, tilt: float) -> float:
        """Variance of all tilted terms."""
        law = self.tilted(tilt)
        mean = law @ self.index
        return self.count * self._step**2 * float(law @ (self.index - mean) ** 2)


def _sparse(first: int, last: int) -> Integers:
    """Indices from `first` to `last`, further apart where they are large."""
    dense = np.arange(max(first, -_DENSE), min(last, _DENSE) + 1)
    ends = []
    for end in (first, last):
        times = math.log(max(abs(end) / _DENSE, 1.0))
        far = _DENSE * np.exp(np.linspace(0.0, times, math.ceil(times * _DENSE) + 1))
        ends.append(np.rint(math.copysign(1.0, end) * far).astype(int))
    inside = np.concatenate([*ends, dense, [first, last]])
    return np.unique(inside[(inside >= first) & (inside <= last)])


def _log_moment(terms: list[_Term], offset: float, tilt: float) -> float:
    return offset * tilt + sum(t.count * t.log_moment(tilt) for t in terms)


def _tilt(terms: list[_Term], offset: float, steepest: float) -> tuple[float, float]:
    """Tilt under which the sum is near zero, and the log of the mass there."""

    def mean(tilt: float) -> float:
        return offset + sum(term.mean(tilt) for term in terms)

    tilt = steepest
    if mean(0.0) >= 0:
        tilt = 0.0
    elif mean(steepest) > 0:
        # any tilt will do: a few digits
        tilt = float(brentq(mean, 0.0, steepest, rtol=1e-2, xtol=1e-3 * steepest))
    return tilt, _log_moment(terms, offset, tilt)


def _tail(terms: list[_Term], offset: float, end: float) -> float:
    """Bound of the mean of a sum where it exceeds `end`, by Chernoff's inequality."""
    # s <= end exp(t (s - end)) for s >= end where t end >= 1
    top = max(float(t.index[-1]) * t._step for t in terms)
    best = math.inf
    for factor in (4.0, 8.0, 12.0, 20.0, 30.0):
        t = factor / top
        if t * end >= 1:
            best = min(best, _log_moment(terms, offset, t) - t * end)
    return end * math.exp(min(best, 0.0)) if best < math.inf else math.inf


def _least_end(terms: list[_Term], offset: float, level: float) -> float:
    """End beyond which sums add less than a level."""
    top = max(float(t.index[-1]) * t._step for t in terms)
    ends = []
    for factor in (4.0, 8.0, 12.0, 20.0, 30.0):
        t = factor / top
        moment = _log_moment(terms, offset, t)
        end = 1 / t
        for _ in range(20):
            end = max(1 / t, (moment + math.log(end) - math.log(level)) / t)
        ends.append(end)
    return min(ends)
