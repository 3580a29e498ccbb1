"""Dominating pairs of groups in Poisson batches under Gaussian noise."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.pairs import (
    LOG_ROOT,
    TAIL,
    DominatingPair,
    mean_power_excess,
    participation,
    within_reach,
)

# Epsilons times components of a mixture that are treated at once: bounds the memory.
_BLOCK = 2**16


class _Mixture(NamedTuple):
    """Mixture of unit Gaussians: log of its weight at mean zero, and other components.

    The other components run along the last axis: arrays of shape (n, 1) meet them.
    """

    rest: float
    weights: Floats
    means: Floats

    def over_normal(self, x: Floats) -> tuple[Floats, Floats]:
        """Log of the mixture's density over N(0, 1)'s at x, and its derivative."""
        # log of N(m, 1)'s density over N(0, 1)'s at x is m (x - m / 2)
        ratios = self.means * (x - self.means / 2)
        parts = np.log(self.weights) + ratios
        top = np.maximum(self.rest, parts.max(axis=1, initial=-math.inf))[:, np.newaxis]
        parts = np.exp(parts - top)
        total = parts.sum(axis=1, keepdims=True) + np.exp(self.rest - top)
        value = top + np.log(total)
        # all weights sum to one: near a ratio of one, the log1p of what these add. Far
        # below one that would lose the weight at zero
        gain = (np.expm1(np.minimum(ratios, 1.0)) @ self.weights)[:, np.newaxis]
        low = ratios.max(axis=1, initial=-math.inf) < 1
        near = low[:, np.newaxis] & (gain > -0.5)
        value = np.where(near, np.log1p(np.where(near, gain, 0.0)), value)
        # derivative: the mean of the components' m, weighted by their parts
        return value, (parts @ self.means)[:, np.newaxis] / total


@lru_cache(maxsize=256)
def _mixture(count: int, rate: float, mean: float) -> _Mixture:
    """Distribution of a group's sum with unit noise, `mean` from each record in it."""
    times, weights = participation(count, rate)
    return _Mixture(count * math.log1p(-rate), weights, mean * times)


@dataclass(frozen=True)
class GaussianPoissonPair(DominatingPair, kind="gaussian_poisson_pair"):
    """Dominating pair of a Poisson batch, one group of records replaced by another.

    The noise is Gaussian. The first distribution is sum_j w_j N(j a, 1), with a the
    shift of one record in standard deviations and w the weights of
    Binomial(`first`, `rate`); the second is sum_j v_j N(-j a, 1), with those of
    Binomial(`second`, `rate`).

    Parameters
    ----------
    curve : ShiftCurve
        Curve of Gaussian noise against the move of a step's sum by one record.
    rate : float
        In (0, 1).
    first, second : int
        Numbers of records that are in the first table only and in the second only.

    Notes
    -----
    Why no gradients are worse: given who else is in the batch, these are mixtures
    of N(u_i, I) and of N(v_j, I), one term for each subset of the group, with the norms
    of u_i and v_j at most a times its size. With X_i = <u_i, z> and Y_j = <v_j, z> for
    a standard normal z, the divergence is the mean of (A - exp(epsilon) B)₊, where A
    and B are the weighted sums of exp(X_i - var(X_i)/2) and of exp(Y_j - var(Y_j)/2).
    Interpolate between the covariances of these variables and those that collinear
    u_i = ``|u_i|`` e and v_j = ``-|v_j|`` e of the largest norms have. By Gaussian
    integration by parts, as in Kahane's convexity inequality, the mean changes by the
    sum of half of each covariance's change times the mean of a second derivative. No
    covariance of two X or of two Y falls, where the second derivatives are not
    negative, and none of an X and a Y grows, where they are not positive. So the mean
    does not fall.

    References
    ----------
    Kahane (1986), Une inégalité du type de Slepian et Gordon sur les processus
    gaussiens. For the same pairs of distributions: Ganesh (2024), Tight group-level DP
    guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms; Schuchardt,
    Stoian, Kosmala and Günnemann (2024), Unified mechanism-specific amplification by
    subsampling and group privacy amplification.
    """

    rate: float
    first: int
    second: int

    tight = True

    @property
    def symmetric(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether both directions have the same divergences."""
        return self.first == self.second

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        return self._divergence(epsilon, self.first, self.second)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self._divergence(epsilon, self.second, self.first)

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, in nats, rounded up."""
        # A quadrature of the densities: a trade-off is too small for a float long
        # before high orders are done with it.
        mean = cast(float, self.curve.gaussian_mu)  # the noise is Gaussian
        alpha, most = np.asarray(orders, float), (self.first + self.second) * mean
        if not most:
            return [0.0] * len(orders)
        # no batch moves the sum further than one that holds the whole group
        costs = alpha * most**2 / 2
        p, q = (_mixture(size, self.rate, mean) for size in (self.first, self.second))
        largest = max(0.0, *p.means, *q.means)
        near = within_reach(alpha, largest)
        if not near.any():
            return costs.tolist()  # type: ignore[no-any-return]
        alpha = alpha[near]

        def loss(x: Floats) -> tuple[Floats, Floats]:
            x = x[:, np.newaxis]
            (ahead, _), (behind, _) = p.over_normal(x), q.over_normal(-x)
            return (ahead - behind)[:, 0], (behind - x**2 / 2)[:, 0] - LOG_ROOT

        total = mean_power_excess(alpha, loss, -largest - TAIL, largest)
        found = np.logaddexp(0.0, total) / (alpha - 1)
        costs[near] = np.minimum(costs[near], found)
        return costs.tolist()  # type: ignore[no-any-return]

    def _divergence(self, epsilon: Floats, ahead: int, behind: int) -> Floats:
        """Hockey-stick divergence of the mixtures of two groups, by their sizes."""
        mean = cast(float, self.curve.gaussian_mu)  # the noise is Gaussian
        p, q = (_mixture(size, self.rate, mean) for size in (ahead, behind))
        epsilon = np.asarray(epsilon, float)
        # without noise all but the components at zero tell the two tables apart
        if math.isinf(mean):
            same = np.exp(p.rest) - np.exp(np.minimum(epsilon + q.rest, 1.0))
            value: Floats = -math.expm1(p.rest) + np.maximum(0.0, same)
            return value
        value = np.zeros_like(epsilon)
        # with no record in the first group, no loss exceeds minus the log of the weight
        # at zero
        inside = np.flatnonzero(epsilon < (math.inf if ahead else -q.rest))
        size = max(1, _BLOCK // max(1, len(p.means), len(q.means)))
        for start in range(0, len(inside), size):
            part = slice(start, start + size)
            at = inside[part]
            value[at] = _mixed_delta(epsilon[at, np.newaxis], p, q)
        return value


def _mixed_delta(epsilon: Floats, p: _Mixture, q: _Mixture) -> Floats:
    """Hockey-stick divergence of p from the mirror image of q, of shape (n,).

    At the x where the loss is `epsilon` both densities, the second times exp(epsilon),
    are the same. So they may be subtracted from either distribution, and what is left
    of each of its components is a trade-off of two Gaussians: nothing cancels.
    """
    x = _threshold(epsilon, p, q)
    # Component m of p leaves P(N(m, 1) > x) - exp(m (x - m / 2)) P(N(0, 1) > x), and
    # component -m of the mirror image of q, which lies behind, exp(epsilon - loss)
    # times P(N(0, 1) > x) - exp(loss) P(N(-m, 1) > x), with loss = m (x + m / 2).
    ahead = gaussian_delta(p.means * (x - p.means / 2), p.means)
    loss = q.means * (x + q.means / 2)
    behind = gaussian_delta(loss, q.means)
    with np.errstate(over="ignore", invalid="ignore"):
        behind = np.where(behind > 0, np.exp(epsilon - loss) * behind, 0.0)
    return np.minimum(ahead @ p.weights + behind @ q.weights, 1.0)


def _threshold(epsilon: Floats, p: _Mixture, q: _Mixture) -> Floats:
    """Point x where log(p(x) / q(-x)) is epsilon, by Newton steps in a bracket."""
    # The loss increases in x: its slope is that of p at x plus that of q at -x.
    low, high = _bracket(epsilon, p, q)
    x = _guess(epsilon, p, q).clip(low, high)
    for _ in range(200):
        value, slope = p.over_normal(x)
        other, back = q.over_normal(-x)
        miss = value - other - epsilon
        high, low = np.where(miss >= 0, x, high), np.where(miss <= 0, x, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = x - miss / (slope + back)
        # a step out of the bracket, or not a number, is replaced by a bisection
        step = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        moved, x = np.abs(step - x), step
        if np.all(moved <= 1e-13 * (1 + np.abs(x))):
            break
    return x


def _bracket(epsilon: Floats, p: _Mixture, q: _Mixture) -> tuple[Floats, Floats]:
    """Bracket of the point: no component of a mixture exceeds the whole."""
    if not len(p.means):
        ends = (epsilon + np.log(q.weights) - q.means**2 / 2) / q.means
        return ends.max(axis=1, keepdims=True), _guess(epsilon, p, q)
    # At x >= 0 the mirror image of q is no denser than N(0, 1), so that a component
    # w N(m, 1) of p alone makes the loss at least log(w) + m (x - m / 2): the point
    # lies below where that is epsilon. At x <= 0 the same with p and q exchanged.
    ends = (epsilon - np.log(p.weights) + p.means**2 / 2) / p.means
    high = np.maximum(0.0, ends.min(axis=1, keepdims=True))
    if not len(q.means):
        return np.zeros_like(high), high
    end = epsilon + np.log(q.weights[0]) - q.means[0] ** 2 / 2
    return np.minimum(0.0, end / q.means[0]), high


def _guess(epsilon: Floats, p: _Mixture, q: _Mixture) -> Floats:
    """Point x if each mixture had, beside the component at zero, only the next one.

    Where only the second group has records the point itself is at most this.
    """
    if not (len(p.means) and len(q.means)):
        sign, group = (1, p) if len(p.means) else (-1, q)
        rest, mean = group.rest, group.means[0]
        # exp(rest) + (1 - exp(rest)) exp(mean (x - mean / 2)) = exp(epsilon), solved
        # for x; with records in the second group only, its mirror image
        above = sign * epsilon - rest
        next_to = above + np.log(-np.expm1(-above)) + rest - np.log(-np.expm1(rest))
        guess: Floats = sign * (next_to / mean + mean / 2)
        return guess
    # with y = exp(mean x - epsilon), b y² - 2 h y - exp(-epsilon) b = 0, where
    # 2 h = rest (1 - exp(-epsilon)) / (1 - rest) and b = exp(-mean²/2)
    rest, mean = max(p.rest, q.rest), p.means[0]
    odds = rest - np.log(-2 * np.expm1(rest))
    with np.errstate(divide="ignore"):
        half = odds + mean**2 / 2 + np.log(-np.expm1(-epsilon))
    y = np.logaddexp(half, np.logaddexp(2 * half, -epsilon) / 2)
    guess = (epsilon + y) / mean
    return guess


@dataclass(frozen=True)
class GaussianPoissonGroup(DominatingPair, kind="gaussian_poisson_group"):
    """Dominating pairs of a Poisson batch, `count` records being added or removed.

    The noise is Gaussian. How many of them are added and how many removed is not known,
    only that the numbers are the same at each step.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of Gaussian noise against the move of a step's sum by one record.
    rate : float
        In (0, 1).
    count : int
    """

    rate: float
    count: int

    tight = True

    @property
    def directions(self) -> tuple[GaussianPoissonPair, ...]:
        """Dominating pairs, one of which dominates all steps of a run."""
        return tuple(
            GaussianPoissonPair(self.curve, self.rate, self.count - gone, gone)
            for gone in range(self.count + 1)
        )
