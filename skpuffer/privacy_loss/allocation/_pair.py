"""Dominating pair of a record that is in one of several bins, under Gaussian noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
from scipy.fft import next_fast_len
from scipy.optimize import brentq, isotonic_regression
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr, ndtri

from skpuffer.kernel.curves import Pair
from skpuffer.kernel.distribution import Reversed
from skpuffer.kernel.loss_grid import tail_quantile
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Floats, Integers
from skpuffer.kernel.pairs import DominatingPair, renyi_of_pair

from ._lattice import (
    Group,
    PutLaw,
    between,
    sum_of_terms,
)

#: Losses beyond which, on either side, nothing is read: slopes in their exponential
#: would leave the range of floats.
_FARTHEST = 600.0


class Hull:
    """Trade-off of a pair of distributions, linear in exp(loss) between points.

    A true trade-off is convex in exp(loss). If it lies below all heights given, it lies
    below their convex hull, which is the trade-off of a dominating pair. Both
    directions are read off the one hull, so that they belong to one pair.

    `losses` (n,): increasing, zero among them. Beyond the last height the trade-off
    stays; before the first it falls in proportion. Losses beyond 600 are left out,
    which only raises it. `heights` (n,): bounds of the trade-off, less max(0, 1 -
    exp(loss)).
    """

    def __init__(self, losses: Floats, heights: Floats) -> None:
        near = np.abs(losses) <= _FARTHEST
        losses, heights = losses[near], heights[near]
        self._losses, self._heights = losses, _convex(losses, heights)

    def excess(self, loss: Floats) -> Floats:
        """Return the trade-off at losses, less max(0, 1 - exp(loss))."""
        x, y = self._losses, self._heights
        loss = np.asarray(loss, float)
        right = np.clip(np.searchsorted(x, loss), 1, len(x) - 1)
        left = right - 1
        inside = np.clip(loss, x[0], x[-1])
        part = np.expm1(inside - x[left]) / np.expm1(x[right] - x[left])
        value = (1 - part) * y[left] + part * y[right]
        # a line through the origin, where the trade-off is one
        found: Floats = value * np.exp(np.minimum(loss - x[0], 0.0))
        return found


def _convex(losses: Floats, heights: Floats) -> Floats:
    zero = int(np.searchsorted(losses, 0.0))
    # widths in exp(loss), in units of its value at the left end
    growth = np.expm1(np.diff(losses))
    width = growth * np.exp(losses[:-1])
    slopes = np.diff(heights) / width
    # either side from its own end, where heights are small and no digit may be lost
    before = _monotone(slopes[:zero], width[:zero])
    after = _monotone(slopes[zero:], width[zero:])
    if zero and len(after) and before[-1] - 1 > after[0]:
        equal = np.arange(len(slopes)) < zero
        slopes = _monotone(slopes - equal, width) + equal
    else:
        slopes = np.concatenate([before, after])
    rise = slopes * width
    convex = heights.copy()
    convex[1:zero] = heights[0] + np.cumsum(rise[: zero - 1]) if zero else 0.0
    convex[zero:-1] = heights[-1] - np.cumsum(rise[zero:][::-1])[::-1]
    # rounding takes none of them above what was given, or below zero
    return np.clip(convex, 0.0, heights)


def _monotone(slopes: Floats, width: Floats) -> Floats:
    if np.all(np.diff(slopes) >= 0):
        return slopes
    rising: Floats = isotonic_regression(slopes, weights=width).x
    return rising


#: Largest order of which the exact cost is found.
MAX_ORDER = 128


@lru_cache(maxsize=256)
def remove_cumulants(groups: tuple[Group, ...], n_orders: int) -> Floats:
    """Return logs of the means of S^order for the orders 0 to `n_orders`, rounded up.

    S is the likelihood ratio of the record's presence. Its powers are the coefficients
    of a product of power series, one for each bin: Schuchardt and Kalinin (2026),
    Sampling-free privacy accounting, Lemma 3.2.
    """
    t = np.arange(n_orders + 1.0)
    total = np.where(t == 0, 0.0, -math.inf)
    for count, shift in groups:
        series = shift**2 * t * (t - 1) / 2 - gammaln(t + 1)
        total = _times(total, _power(series, count))
    n = sum(group.size for group in groups)
    found: Floats = total + gammaln(t + 1) - t * math.log(n)
    # rounding of each product of two series, of which there are 2 log2(count) at most
    return np.maximum(found, 0.0) + 1e-13 * (1 + t)


def _times(a: Floats, b: Floats) -> Floats:
    """Logs of the coefficients of the product of two power series, by theirs."""
    n = len(a)
    index = np.arange(n)[:, np.newaxis] - np.arange(n)
    terms = np.where(index >= 0, a + b[np.maximum(index, 0)], -math.inf)
    product: Floats = logsumexp(terms, axis=1)
    return product


def _power(series: Floats, count: int) -> Floats:
    power = np.where(np.arange(len(series)) == 0, 0.0, -math.inf)
    while count:
        if count % 2:
            power = _times(power, series)
        count //= 2
        if count:
            series = _times(series, series)
    return power


#: Losses at which a trade-off is computed, on either side.
_POINTS = 2000

#: Losses in the far tails, where unamplified noise bounds the trade-off.
_FAR_POINTS = 300

#: Bound of a trade-off beyond which its law is not looked up.
_NEGLIGIBLE = 1e-14

#: One law serves losses from its largest down to this much less.
_REACH = math.log(4)

#: Distance of losses of replaced records, in which a trade-off falls by the factor e.
_APART = 0.15

#: Most losses of replaced records at which a trade-off is computed.
_MOST_LOSSES = 250

#: Trade-offs of replaced records that rounding errors may hide.
_SMALL = 1e-9

#: Part of a trade-off of replaced records that is charged for large losses.
_FIRST = 1e-4

#: Largest loss at which a law has digits left: a difference is taken of exp(loss).
_LARGEST = 16.0

#: Shift, in deviations, from which on a bin may as well be seen.
_LARGEST_SHIFT = 8.0

#: Rounding errors of that difference, of which a law bounds its own: one of exp(loss),
#: whose put less itself falls by no more than it rises, and two of the difference.
_ROUNDED = 4 * 2.0**-53


@dataclass(frozen=True)
class AllocationPair(DominatingPair, kind="allocation_pair"):
    """Dominating pair of a record in one of several bins, kept for a number of steps.

    Step t takes the records of bin t modulo `n_batches`, and a record draws its bin
    uniformly. The noise is Gaussian and independent. Let ``a`` be the shift of one step
    in standard deviations and k_i the number of steps of bin i. The first distribution
    is the mean over the bins of N(a sqrt(k_i) e_i, I). The second is N(0, I), or the
    same mean of N(-a sqrt(k_i) e_i, I) where the record is `replaced`.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of Gaussian noise against the move of a step's sum by one record.
    n_batches : int
        Number of bins.
    n_steps : int
        Steps for which bins are kept; the last epoch may be partial.
    replaced : bool, default=False
        Whether the record is replaced by another, rather than added or removed.

    Notes
    -----
    Both directions are read off one convex curve. Near its middle that is the exact
    trade-off but for upward errors of a lattice and of rounding. In far tails it is the
    least of Rényi costs and of unamplified noise.

    Adaptive gradients that are vectors are no worse by Kahane's inequality. Given the
    past, the mean of a convex function of the likelihood ratio has second derivatives
    of one sign. No covariance of two of its exponents exceeds that of aligned gradients
    of full length.

    References
    ----------
    Kahane (1986), Une inégalité du type de Slepian et Gordon sur les processus
    gaussiens. Feldman and Shenfeld (2025), Privacy amplification by random allocation.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PrivacyLossCurve
    >>> from skpuffer.privacy_loss.allocation import AllocationPair
    >>> one = GaussianNoise(scale=1.0).curve(1.0)
    >>> pair = AllocationPair(one, n_batches=100, n_steps=300)
    >>> round(PrivacyLossCurve(((pair, 1),)).epsilon(delta=1e-5), 2)
    3.8
    """

    n_batches: int
    n_steps: int
    replaced: bool = False

    # attained, but known by upper bounds only
    tight = False

    @property
    def symmetric(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether both directions have the same divergences."""
        return self.replaced or self.n_batches == 1

    @property
    def directions(self) -> tuple[Pair, ...]:
        """The pair in each of its directions."""
        return (self,) if self.symmetric else (self, _Added(self))

    def delta(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output with the record from that without."""
        epsilon = np.asarray(epsilon, float)
        if math.isinf(self._shift):
            return np.full_like(epsilon, self._visited)
        if not self._shift:
            return np.zeros_like(epsilon)
        if self.n_batches == 1:
            return _unamplified(self._groups, self._together, epsilon)
        return np.minimum(self._trade_off.excess(epsilon), 1.0)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output without the record from that with."""
        if self.symmetric:
            return self.delta(epsilon)
        epsilon = np.asarray(epsilon, float)
        if math.isinf(self._shift):
            # without noise all bins that are not visited look alike
            return np.maximum(
                0.0, 1 - np.exp(np.minimum(epsilon, 700.0)) * (1 - self._visited)
            )
        if not self._shift:
            return np.zeros_like(epsilon)
        low = np.minimum(epsilon, 700.0)
        return np.minimum(np.exp(low) * self._trade_off.excess(-low), 1.0)

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return bounds on the Rényi costs at many orders, in nats.

        Parameters
        ----------
        orders : ndarray
            If a record is added or removed, costs are exact at integers up to 128.

        Returns
        -------
        ndarray
        """
        alpha = np.asarray(orders, float)
        costs = self._unamplified_costs(alpha)
        if self.n_batches == 1 or not 0 < self._shift < math.inf:
            return costs.tolist()  # type: ignore[no-any-return]
        if self.replaced:
            found = renyi_of_pair(self, alpha)
        else:
            exact = remove_cumulants(self._groups, MAX_ORDER)[1:]
            exact[0] = 0.0
            whole = np.arange(1.0, MAX_ORDER + 1)
            cumulants = np.interp(alpha, whole, exact, right=math.inf)
            with np.errstate(invalid="ignore"):
                found = cumulants / (alpha - 1)
            found[np.isnan(found)] = math.inf
        return np.minimum(costs, found).tolist()  # type: ignore[no-any-return]

    def _unamplified_costs(self, alpha: Floats) -> Floats:
        # the bins that are visited most often
        most = max((group.shift for group in self._groups), default=0.0)
        return (
            alpha * (self._together * most) ** 2 / 2
            if most
            else 0.0 * np.ones_like(alpha)
        )

    # -- the parts ----------------------------------------------------------------

    @property
    def _shift(self) -> float:
        if not self.n_steps:
            return 0.0
        return cast(float, self.curve.gaussian_mu)  # the noise is Gaussian

    @property
    def _together(self) -> int:
        return 2 if self.replaced else 1

    @property
    def _visited(self) -> float:
        return min(1.0, self.n_steps / self.n_batches)

    @property
    def _groups(self) -> tuple[Group, ...]:
        """Bins that are visited, by how often: in deviations of the noise."""
        times, more = divmod(self.n_steps, self.n_batches)
        groups = ((more, times + 1), (self.n_batches - more, times))
        return tuple(
            Group(count, self._shift * math.sqrt(k)) for count, k in groups if count
        )

    @property
    def _trade_off(self) -> Hull:
        return (_replaced if self.replaced else _added)(self._groups)


@dataclass(frozen=True)
class _Added(Reversed):
    """The pair without the record first."""

    pair: AllocationPair

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return bounds on the Rényi costs at many orders, in nats."""
        pair, alpha = self.pair, np.asarray(orders, float)
        costs = pair._unamplified_costs(alpha)
        if not 0 < pair._shift < math.inf:
            return costs.tolist()  # type: ignore[no-any-return]
        # the mean of logarithms is below the logarithm of the mean: the loss is at most
        # a normal one
        mean, variance = _geometric(pair._groups)
        costs = np.minimum(costs, mean + (alpha - 1) * variance / 2)
        return np.minimum(costs, renyi_of_pair(self, alpha)).tolist()  # type: ignore[no-any-return]


def _geometric(groups: tuple[Group, ...]) -> tuple[float, float]:
    """Mean and variance of minus the mean over the bins of log likelihood ratios."""
    n = sum(group.size for group in groups)
    squares = sum(count * shift**2 for count, shift in groups)
    return squares / (2 * n), squares / n**2


def _unamplified(groups: tuple[Group, ...], together: int, epsilon: Floats) -> Floats:
    """Divergence if the bin is seen, which is joint convexity's bound."""
    n = sum(group.size for group in groups)
    total: Floats = np.zeros_like(epsilon)
    for count, shift in groups:
        total += count / n * gaussian_delta(epsilon, together * shift)
    return total


def _remove_cap(groups: tuple[Group, ...], epsilon: Floats) -> Floats:
    """Least bound by Rényi costs and by bins that are seen, with the record first."""
    orders = np.arange(2.0, MAX_ORDER + 1)
    cumulants = remove_cumulants(groups, MAX_ORDER)[2:]
    # exp(K - (order - 1) epsilon) (1 - 1/order)^(order - 1) / order
    least = np.full_like(epsilon, math.inf)
    for order, cumulant in zip(orders, cumulants, strict=True):
        part = cumulant + (order - 1) * math.log1p(-1 / order) - math.log(order)
        least = np.minimum(least, part - (order - 1) * epsilon)
    return np.minimum(np.exp(np.minimum(least, 0.0)), _unamplified(groups, 1, epsilon))


def _add_cap(groups: tuple[Group, ...], epsilon: Floats) -> Floats:
    """Least bound by geometric means and by bins that are seen, the record last."""
    mean, variance = _geometric(groups)
    deviation = math.sqrt(variance)
    x = (mean - epsilon) / deviation
    # P(loss > epsilon) - exp(epsilon) E exp(-loss) of it, for a normal loss
    first = log_ndtr(x)
    second = epsilon - mean + variance / 2 + log_ndtr(x - deviation)
    normal = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    found: Floats = np.minimum(normal, _unamplified(groups, 1, epsilon))
    return found


def _nodes(cap: Callable[[Floats], Floats]) -> Floats:
    """Losses from zero at which to look, denser where a cap is no small number."""
    near, far = (min(tail_quantile(cap, tail, 2), 1e5) for tail in (_NEGLIGIBLE, 0.0))
    even = np.linspace(0.0, max(near, 1e-9), _POINTS)
    return np.concatenate(
        [even, np.linspace(even[-1], max(far, 2 * even[-1]), _FAR_POINTS)[1:]]
    )


@lru_cache(maxsize=256)
def _added(groups: tuple[Group, ...]) -> Hull:
    """Trade-off of a record that is in the table against one that is not."""

    def remove_cap(epsilon: Floats) -> Floats:
        return _remove_cap(groups, epsilon)

    def add_cap(epsilon: Floats) -> Floats:
        return _add_cap(groups, epsilon)

    after, before = _nodes(remove_cap), _nodes(add_cap)
    losses = np.concatenate([-before[:0:-1], after])
    zero = len(before) - 1
    ahead, behind = remove_cap(losses[zero:]), add_cap(-losses[:zero])
    with np.errstate(under="ignore"):
        heights = np.concatenate([np.exp(losses[:zero]) * behind, ahead])
    # laws from the largest loss at which there is anything to gain downwards
    if max(shift for _, shift in groups) > _LARGEST_SHIFT:
        return Hull(losses, heights)
    top = min(losses[zero + _POINTS - 1], _LARGEST)
    bottom = max(losses[zero - _POINTS + 1], -300.0)
    while top > bottom:
        at = (losses <= top) & (losses >= max(top - _REACH, bottom))
        gamma = np.exp(losses[at])
        put = _put(groups, gamma)
        rest = np.minimum(1 - gamma, 0.0)
        rounded = _ROUNDED * np.where(losses[at] > 0, gamma, 0.0)
        heights[at] = np.minimum(heights[at], put + rest + rounded)
        top -= _REACH
    return Hull(losses, heights)


def _put(groups: tuple[Group, ...], gamma: Floats) -> Floats:
    """Bounds of the mean of (gamma - S)₊."""
    moved = tuple(group for group in groups if group.shift)
    part = sum(group.size for group in moved) / sum(group.size for group in groups)
    # bins that are not visited have likelihood ratio one
    left = (gamma - (1 - part)) / part
    value = np.zeros_like(gamma)
    inside = left > 0
    if inside.any():
        value[inside] = part * PutLaw(moved, float(left[inside].max())).put(
            left[inside]
        )
    return value


@lru_cache(maxsize=64)
def _replaced(groups: tuple[Group, ...]) -> Hull:
    """Trade-off of a record against another in its place."""

    def cap(epsilon: Floats) -> Floats:
        return _unamplified(groups, 2, epsilon)

    # Each loss has a law of its own, so they are as few as the curve allows: the
    # distance follows its slope in logarithms.
    losses, heights = [0.0], [float(cap(np.zeros(1))[0])]
    bare = 2 * max(shift for _, shift in groups) > _LARGEST_SHIFT
    if not bare:
        heights = [replaced_delta(groups, 0.0, _FIRST)]
    distance = first = _APART * 2 * heights[0]
    while not bare and heights[-1] > _NEGLIGIBLE and len(losses) < _MOST_LOSSES:
        loss = losses[-1] + distance
        if loss > _LARGEST:
            break
        guess = heights[-1] * math.exp(-2 * _APART)
        height = replaced_delta(groups, loss, max(_FIRST * guess, 1e-16))
        losses.append(loss)
        heights.append(height)
        fall = math.log(heights[-2] / max(height, 1e-300))
        # as far down as its own errors allow
        if fall <= 0 and height < _SMALL:
            break
        distance *= min(2.0, _APART / max(fall, 1e-9))
        # where a bound falls off all at once, its errors do
        distance = max(distance, 0.1 * first)
    near = np.array(losses)
    end = max(tail_quantile(cap, 0.0, 2), 2 * near[-1])
    far = np.linspace(near[-1], min(end, max(1e5, 2 * near[-1])), _FAR_POINTS)[1:]
    after = np.concatenate([near, far])
    ahead = cap(after)
    ahead[: len(near)] = np.minimum(ahead[: len(near)], heights)
    # the same in the other direction
    with np.errstate(under="ignore"):
        behind = np.exp(-after[:0:-1]) * ahead[:0:-1]
    return Hull(np.concatenate([-after[:0:-1], after]), np.concatenate([behind, ahead]))


# -- divergence of a record in a bin from another in its place -------------------------
# Divergence of a record in a bin from another in its place: bounds of call options.
#
# With Y and Z the likelihood ratios of a bin with either record, against none, the
# divergence at exp(epsilon) = K is the mean of (T_1 + ... + T_b)₊ / b with T = Y - K Z.
# These T have the laws of exp(a x - a²/2) - K exp(-a x - a²/2) for standard normal x.


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
    """Return an upper bound of the divergence at one epsilon of at least zero.

    `groups` are the bins by the shift of a record in them, in deviations of the noise.
    A probability `left_out` of large losses may be taken for infinite ones.
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
