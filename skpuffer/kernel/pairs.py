"""Dominating pairs: two distributions that tell more apart than a step does.

They need only the exact trade-off of the noise, whatever its family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom

from skpuffer.kernel.curves import HasDelta, NoiseCurve, TradeOffs
from skpuffer.kernel.loss_grid import excess, tail_quantile
from skpuffer.kernel.numbers import Booleans, Floats, Integers, check_positive
from skpuffer.kernel.plain import Plain

#: Width of an interval, times the order, below which weights are those of a series:
#: what that leaves out is of the order of the square.
_NARROW = 1e-6


def renyi_of_pair(pair: TradeOffs, alpha: ArrayLike) -> Floats:
    """Bound the Rényi divergence of a pair's first distribution from its second.

    Every f-divergence is an integral of the hockey-stick divergence delta. With the
    excess f(e) = delta(e) - max(0, 1 - exp(e)) the one of order alpha is
    log(1 + alpha (alpha - 1) ∫ exp((alpha - 1) e) f(e) de) / (alpha - 1). The integral
    is taken over the dots of delta connected as a function of exp(e), so from above,
    and it bounds the divergence of whatever the pair dominates.

    Parameters
    ----------
    pair : TradeOffs
        With `delta` and `reverse`, as for :func:`excess`.
    alpha : array-like of shape (n_orders,)
        Orders in (1, inf].

    Returns
    -------
    cost : ndarray of shape (n_orders,)
        In nats; infinity where the trade-off is too small for a float before the
        integrand begins to fall. Beyond that its logarithm is taken to be concave, as
        it is for noise of log-concave density.

    References
    ----------
    Sason and Verdú (2016), f-divergence inequalities, Proposition 3.
    """
    orders = np.asarray(alpha, float)[:, np.newaxis]
    epsilon = _table(pair)
    height = excess(pair, epsilon)
    width = np.diff(epsilon)
    rest = orders - 1
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # In x = exp(e) the integrand is x^(alpha-2) f(x) dx, and f is linear in x
        # between the dots. Over one interval, from 1 to r in units of its start,
        # whole = ∫ x^(alpha-2) dx and part = ∫ x^(alpha-2) (x-1)/(r-1) dx
        whole = np.expm1(rest * width) / rest
        part = (np.expm1(orders * width) / orders - whole) / np.expm1(width)
        # of a narrow interval the difference is lost, and its series is not
        narrow = whole * (0.5 + (orders - 2) * width / 12)
        part = np.where(orders * width < _NARROW, narrow, part)
        # the weights of the heights at the interval's two ends; the scale comes back
        # as start^(alpha-1)
        pieces = np.log(height[:-1] * (whole - part) + height[1:] * part)
        pieces = rest * epsilon[:-1] + pieces
        total = np.logaddexp(logsumexp(pieces, axis=1), _beyond(rest, epsilon, height))
        cost = np.logaddexp(0.0, np.log(orders * rest)[:, 0] + total) / rest[:, 0]
    # inf - inf: nothing is known, and infinity is the safe answer
    unknown = np.isnan(cost) | np.isinf(orders[:, 0])
    return np.where(unknown, math.inf, cost)


def _beyond(rest: Floats, epsilon: Floats, height: Floats) -> Floats:
    """Log of a bound on the integral beyond the table.

    It is that of the exponential through the last two points, as the logarithm of the
    integrand is concave.
    """
    ends = rest * epsilon[-2:] + np.log(height[-2:])
    # a concave function stays below the line through its last two points, and the
    # integral of exp(line) from there on is exp(end) / -slope
    slope = (ends[:, 1] - ends[:, 0]) / (epsilon[-1] - epsilon[-2])
    beyond = np.where(slope < 0, ends[:, 1] - np.log(-slope), math.inf)
    # a trade-off that has reached zero stays there
    return np.where(height[-1] > 0, beyond, -math.inf)


def _table(pair: TradeOffs) -> Floats:
    """Table of epsilons: geometric near zero, and even out to the far tail."""
    sides = []
    same = getattr(pair, "symmetric", False)  # one side stands for both
    for curve in (pair.delta,) if same else (pair.reverse, pair.delta):
        end = tail_quantile(curve, 1e-300)
        if end == 0:
            end = 1e-9
        # the far tail matters to large orders, which weigh it by exp((alpha - 1) e)
        near, end = min(tail_quantile(curve, 1e-40), 1e5), min(end, 1e5)
        marks = [
            np.geomspace(1e-7 * end, end, 300),
            np.linspace(0, near, 1200),
            np.linspace(near, end, 800),
        ]
        sides.append(np.unique(np.concatenate(marks)))
    return np.concatenate([-sides[0][:0:-1], sides[-1]])


#: Mass of a binomial tail that is not worth a term of its own.
_RARE = 1e-30


@lru_cache(maxsize=16)
def participation(trials: int, chance: float) -> tuple[Integers, Floats]:
    """Support and weights of Binomial(trials, chance), the tail lumped at `trials`.

    Parameters
    ----------
    chance : float
        Chance of each trial.

    Returns
    -------
    times : ndarray of int
        From one. The last stands for all further ones as well, and is the largest
        possible, which is the worst.
    weights : ndarray of float
        Positive.
    """
    distribution, last = binom(trials, chance), 8
    # Double until the tail beyond is rare. SciPy's `isf` would look up 1 - _RARE, which
    # is one in floating point.
    while last < trials and distribution.sf(last) > _RARE:
        last *= 2
    last = min(last, trials)
    times = np.arange(1, last + 1)
    weights = distribution.pmf(times)
    # The tail is put where divergences are largest: at all trials. Upper bounds stay
    # upper bounds.
    if last < trials:
        times, weights = (
            np.append(times, trials),
            np.append(weights, distribution.sf(last)),
        )
    times, weights = times[weights > 0], weights[weights > 0]
    for shared in (times, weights):
        shared.flags.writeable = False
    return times, weights


@lru_cache(maxsize=16)
def rare_participation(trials: int, chance: float) -> tuple[Integers, Floats]:
    """Support and log-weights of the tail that :func:`participation` lumps.

    Returns
    -------
    times : ndarray of int
        Empty if nothing is lumped.
    """
    times, _ = participation(trials, chance)
    # the last but one is the last that stands for itself
    if len(times) < 2 or times[-1] == times[-2] + 1:
        return np.arange(0), np.zeros(0)
    rare = np.arange(times[-2] + 1, trials + 1)
    return rare, binom(trials, chance).logpmf(rare)


@lru_cache(maxsize=16)
def participation_of_subset(
    n_records: int, count: int, batch_size: int
) -> tuple[Integers, Floats]:
    """Support from one, and weights, of how many of a group a random subset has.

    Parameters
    ----------
    count : int
        Size of the group.
    batch_size : int
        Size of the subset.

    Returns
    -------
    weights : ndarray of float
        Hypergeometric, positive.
    """
    times = np.arange(1, min(count, batch_size) + 1)
    weights = hypergeom(n_records, count, batch_size).pmf(times)
    times, weights = times[weights > 0], weights[weights > 0]
    for shared in (times, weights):
        shared.flags.writeable = False
    return times, weights


#: Below, the exponential of a loss is no float to fear for.
_LARGE = 300.0


def log_mixed(loss: Floats, q: float) -> Floats:
    """Log of 1 + q (exp(loss) - 1): the loss of a mixture with weight q.

    With 1 / q for q it is the inverse: the loss of what is mixed, given the mixture's.

    Parameters
    ----------
    loss : ndarray
        Not negative if q is above one.
    q : float
        Positive.
    """
    # log(1 + q (exp(loss) - 1)), and for large losses, with exp(loss) taken out,
    # loss + log(q) + log(1 + (1 / q - 1) exp(-loss))
    near = np.log1p(q * np.expm1(np.minimum(loss, _LARGE)))
    large = np.maximum(loss, _LARGE)
    far = large + np.log1p((1 / q - 1) * np.exp(-large)) + math.log(q)
    return np.where(loss < _LARGE, near, far)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

# An interval whose integrand is so far, in logarithms, below the largest adds
# nothing that a float could hold.
_NEGLIGIBLE = 40.0

#: A term so far, in logarithms, below a sum changes no digit that is looked at.
_NO_DIGIT = 25.0

#: Length, in deviations, of the intervals that are looked at first.
_INTERVAL = 4.0

#: What sixteen nodes an interval may miss, relatively; added, so that costs are rounded
#: up.
_MISSED = 1e-9

# Below this times its order, a loss is small: a Taylor series has all its digits.
_SMALL = 1e-2

#: Deviations beyond the last component at which a Gaussian tail is cut off.
TAIL = 15.0

#: Length, in deviations, up to which integrals are taken.
_LONGEST = 2000.0

#: Move of the whole group, in deviations, beyond which a cost is so large that nobody
#: asks for its digits.
_MOST_SHIFT = 40.0

#: Log of the root of 2 pi.
LOG_ROOT = math.log(2 * math.pi) / 2

# Points at which both mixtures are computed at once: bounds the memory.
_BLOCK = 2**13


def within_reach(orders: Floats, shift: float) -> Booleans:
    """Whether :func:`mean_power_excess` takes an order, by order.

    Parameters
    ----------
    orders : ndarray of shape (n_orders,)
    shift : float
        Largest mean of a component, in deviations; a power tilts it by the order.

    Returns
    -------
    ndarray of bool of shape (n_orders,)
    """
    return (orders * shift < _LONGEST) & (shift <= _MOST_SHIFT)


def seen_excess(orders: Floats, shifts: Floats, log_weights: Floats) -> Floats:
    """Log of the mean of exp((order - 1) cost) - 1 if the number of records is seen.

    Parameters
    ----------
    orders : ndarray of shape (n_orders,)
    shifts : ndarray of shape (n,)
        In deviations, by number of records.
    log_weights : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n_orders,)
        Upper bounds of what it is if the number stays hidden, by joint convexity.
    """
    if not len(shifts):
        return np.full(len(orders), -math.inf)
    exponent = np.outer(orders * (orders - 1) / 2, shifts**2)
    with np.errstate(divide="ignore"):
        # log(exp(x) - 1) = x + log(1 - exp(-x))
        logs = exponent + np.log(-np.expm1(-exponent)) + log_weights
    sums: Floats = logsumexp(logs, axis=1)
    return sums


def mixture_costs(
    orders: Floats,
    share: float,
    shifts: Floats,
    log_weights: Floats,
    rare_shifts: Floats,
    rare_log_weights: Floats,
) -> list[float]:
    """Rényi costs of a trade-off that is mixed of those of Gaussian noise.

    The trade-off is delta(log(1 + share (exp(e) - 1))) = sum of weight delta_shift(e).
    An f-divergence is an integral of it, so that of order alpha is, in the likelihood
    ratios r of Gaussians a shift apart, the sum of the weights times the mean of
    ``F(1 + share (r - 1)) / share`` over ``r > 1``, with
    ``F(u) = u^alpha - 1 - alpha (u - 1)`` and the same of 1 - alpha.

    Parameters
    ----------
    orders : ndarray of shape (n_orders,)
    shifts, log_weights : ndarray of shape (n,)
        Shifts in deviations.
    rare_shifts, rare_log_weights : ndarray of shape (n_rare,)
        So unlikely that they may as well be seen; see :func:`seen_excess`.

    Returns
    -------
    list of float
        In nats, rounded up.

    References
    ----------
    Sason and Verdú (2016), f-divergence inequalities, Proposition 3.
    """
    total = seen_excess(orders, rare_shifts, rare_log_weights)
    for shift, log_weight in zip(shifts, log_weights, strict=True):
        part = seen_excess(orders, np.array([shift]), np.array([log_weight]))
        # of batches that are seen that is exact, and what adds nothing may be larger
        matters = within_reach(orders, shift) & (part > total - _NO_DIGIT)
        if share < 1 and matters.any():

            def loss(x: Floats, mu: float = shift) -> tuple[Floats, Floats]:
                value = np.maximum(0.0, mu * (x - mu / 2))
                return log_mixed(value, share), -(x**2) / 2 - LOG_ROOT

            mean = mean_power_excess(orders[matters], loss, shift / 2, shift, both=True)
            hidden = mean + log_weight - math.log(share)
            part[matters] = np.minimum(part[matters], hidden)
        total = np.logaddexp(total, part)
    costs = np.logaddexp(0.0, total) / (orders - 1)
    # Gaussian noise has no largest loss
    costs[np.isinf(orders)] = math.inf
    return costs.tolist()  # type: ignore[no-any-return]


def mean_power_excess(
    orders: Floats,
    loss: Callable[[Floats], tuple[Floats, Floats]],
    low: float,
    shift: float,
    both: bool = False,
) -> Floats:
    """Log of the mean of u^order - 1 - order (u - 1) for the exponential u of a loss.

    The mean is over a density on a line that is smooth on the scale of a unit, as is
    the loss. Nothing cancels, however small the mean is, and nothing overflows.

    Parameters
    ----------
    orders : ndarray of shape (n_orders,)
        Above one.
    loss : callable
        Function of points of shape (n,); the loss, and the logarithm of the density.
    low : float
        Where the integral begins.
    shift : float
        Largest mean of a component, in deviations; see :func:`within_reach`.
    both : bool, default=False
        Whether to add the same of the order ``1 - order``.

    Returns
    -------
    ndarray of shape (n_orders,)
        Rounded up.
    """
    # First where to look: between the ends of an interval the integrand's logarithm is
    # above the chord by an eighth of the square of its length at most.
    edges = np.arange(low, orders.max() * shift + TAIL + _INTERVAL, _INTERVAL)
    at_edges = _in_blocks(loss, edges)
    kept = np.zeros((len(orders), len(edges) - 1), dtype=bool)
    for row, order in zip(kept, orders, strict=True):
        last = int(np.searchsorted(edges, order * shift + TAIL)) + 1
        value = _log_excess(order, at_edges[0][:last], both) + at_edges[1][:last]
        # at least that of numbers that are no zero: a loss may vanish in its square
        least = max(value.max() - _NEGLIGIBLE, -1e300)
        row[: len(value) - 1] = np.maximum(value[:-1], value[1:]) > least
    used = np.flatnonzero(kept.any(axis=0))
    if not len(used):
        return np.full(len(orders), -math.inf)
    # components that are far apart take over from each other within a short distance
    pieces = 3 * math.ceil(max(1.0, shift / 6))
    half = _INTERVAL / pieces / 2
    middles = half * (2 * np.arange(pieces) + 1)
    nodes = (middles[:, np.newaxis] + half * _NODES).ravel()
    nodes = edges[used, np.newaxis] + nodes
    losses, log_density = (
        part.reshape(nodes.shape) for part in _in_blocks(loss, nodes.ravel())
    )
    log_density = log_density + np.tile(np.log(half * _WEIGHTS), pieces)
    totals = [
        logsumexp(_log_excess(order, losses[rows], both) + log_density[rows])
        if rows.any()
        else -math.inf
        for order, rows in zip(orders, kept[:, used], strict=True)
    ]
    return np.array(totals, float) + math.log1p(_MISSED)


def _in_blocks(
    loss: Callable[[Floats], tuple[Floats, Floats]], x: Floats
) -> tuple[Floats, Floats]:
    parts = [loss(x[i : i + _BLOCK]) for i in range(0, len(x), _BLOCK)]
    losses, densities = zip(*parts, strict=True)
    return np.concatenate(losses), np.concatenate(densities)


def _log_excess(order: float, loss: Floats, both: bool) -> Floats:
    value = _log_power_excess(order, loss)
    return np.logaddexp(value, _log_power_excess(1 - order, loss)) if both else value


def _log_power_excess(order: float, loss: Floats) -> Floats:
    """Log of u^order - 1 - order (u - 1), for u the exponential of a loss.

    Minus infinity where the loss is zero; of a negative order, for losses that are not
    negative.
    """
    top = np.maximum(0.0, max(order, 1.0) * loss)
    with np.errstate(divide="ignore", under="ignore"):
        # in units of the largest of u^order, u and one
        one = np.exp(-top)
        value = np.exp(order * loss - top) - one - order * (np.exp(loss - top) - one)
        small = np.abs(loss) * max(abs(order), 1.0) < _SMALL
        if np.any(small):
            # the coefficient of loss^n is order (order^(n-1) - 1) / n!
            tiny = loss[small]
            series = np.zeros_like(tiny)
            for n in range(7, 1, -1):
                part = order * (order ** (n - 1) - 1) / math.factorial(n)
                series = (series + part) * tiny
            value[small], top[small] = series * tiny, 0.0
        logs: Floats = top + np.log(np.maximum(value, 0.0))
    return logs


@dataclass(frozen=True)
class DominatingPair(Plain):
    """Base of dominating pairs: of a step whose sum moves by at most a shift.

    No two tables that differ as the scenario says make the step's outputs more unlike
    each other than the pair's two distributions are. A subclass is a frozen dataclass
    with a method `delta`; where the divergences are not the same in both directions it
    says ``symmetric = False`` and has a method `reverse` of its own.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum.

    Examples
    --------
    A pair of one's own says what its divergences are at arrays of epsilon:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import DominatingPair
    >>> @dataclass(frozen=True)
    ... class TwiceShifted(DominatingPair):
    ...     def delta(self, epsilon):
    ...         return self.curve.times(2).delta(epsilon)
    >>> pair = TwiceShifted(GaussianNoise(scale=2.0).curve(1.0))
    >>> round(float(pair.delta(np.array(1.0))), 4)
    0.1269
    >>> bool(pair.reverse(np.array(1.0)) == pair.delta(np.array(1.0)))
    True
    """

    curve: NoiseCurve

    symmetric = True
    #: Whether some gradients attain it, so that no smaller pair dominates.
    tight = False
    #: Whether the divergences are those of a pair, and no bounds on them that need not
    #: be convex in exp(epsilon).
    convex = True

    def _one(self, epsilon: Floats, times: int = 1) -> Floats:
        """Hockey-stick divergence of the noise from itself, `times` the shift away."""
        curve = self.curve if times == 1 else self.curve.times(times)
        return curve.delta(epsilon)

    # of the pairs that are symmetric; the others have their own
    def reverse(self: HasDelta, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class ShiftPair(DominatingPair, kind="shift_pair"):
    """Dominating pair of a step that every record takes part in.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum.

    Examples
    --------
    >>> from skpuffer.noise import LaplaceNoise
    >>> from skpuffer.privacy_loss import PrivacyLossCurve, ShiftPair
    >>> pair = ShiftPair(LaplaceNoise(scale=10.0).curve(1.0))
    >>> pair.renyi_costs((float("inf"),))
    [0.1]
    >>> round(PrivacyLossCurve(((pair, 20),)).epsilon(delta=1e-5), 2)
    1.59
    """

    tight = True

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        return self._one(epsilon)

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, in nats."""
        costs: list[float] = self.curve.renyi(np.asarray(orders, dtype=float)).tolist()
        return costs


@dataclass(frozen=True)
class PoissonPair(DominatingPair, kind="poisson_pair"):
    """Dominating pair of a Poisson batch, adjacent by adding or removing a record.

    With P and Q the noise at distance one shift, the pair is (1 - q) Q + q P, the
    output with the record in the table, and Q, the output without it.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum.
    rate : float
        Probability q that a record is in the batch.

    References
    ----------
    Li, Qardaji and Su (2012); Balle, Barthe and Gaboardi (2018), Theorem 8; Zhu, Dong
    and Wang (2022), Proposition 30 (both directions).

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PoissonPair
    >>> pair = PoissonPair(GaussianNoise().curve(1.0), rate=0.5)
    >>> at = np.array([0.0, 0.5, 1.0])
    >>> pair.delta(at).round(4).tolist()
    [0.1915, 0.0799, 0.0289]
    >>> pair.reverse(at).round(4).tolist()  # no loss is above log(2) in this direction
    [0.1915, 0.0092, 0.0]
    """

    rate: float

    symmetric = False
    tight = True

    def delta(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output with the record from that without."""
        # q P + (1 - q) Q - e^ε Q = q (P - e^ε' Q) for e^ε = 1 + q (e^ε' - 1)
        return self.rate * self._one(log_mixed(epsilon, 1 / self.rate))

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output without the record from that with."""
        # Q - e^ε (q P + (1 - q) Q) = l (Q - e^ε' P) for l = 1 - (1 - q) e^ε and
        # e^ε' = q e^ε / l; nothing is left where l <= 0
        q = self.rate
        epsilon = np.asarray(epsilon, float)
        value = np.zeros_like(epsilon)
        out = math.log1p(-q) if q < 1 else -math.inf  # how likely it is left out
        inside = epsilon < -out
        epsilon = epsilon[inside]
        # 1 - (1 - q) exp(epsilon), without its cancellation
        left = -np.expm1(epsilon + out)
        value[inside] = left * self._one(math.log(q) + epsilon - np.log(left))
        return value


@dataclass(frozen=True)
class SubsetPair(PoissonPair, kind="subset_pair"):
    """Dominating pair of a random subset of fixed size, adjacent by replacement.

    With either content of the record the output is a mixture, of the same weights, of
    a component in which the record is not drawn and one in which it is. The two
    components in which it is drawn are a shift away from the one they share, and from
    each other. That bounds both directions by the same curve. To compose the two
    directions of :class:`PoissonPair` apart would be false here (Lebeda, Regehr,
    Kamath and Steinke, 2024).

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum.
    rate : float
        Probability that a record is in the batch.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 9; Zhu, Dong and Wang (2022),
    Section 4.2.
    """

    # `delta` is that of the Poisson pair: q delta(e') by advanced joint convexity.
    symmetric = True
    tight = False

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class _MixedPair(DominatingPair):
    """Base of pairs of a step in which records take part at random, several times.

    With weight w_j the sum moves by j times the shift, and with w_0 not at all. For
    Q = 1 - w_0, delta(log(1 + Q (exp(e) - 1))) = sum over j >= 1 of w_j delta_j(e).
    """

    @property
    def _share(self) -> float:
        """Q, the probability that any of them takes part; one if batches are seen."""
        raise NotImplementedError

    def _times(self) -> tuple[Integers, Floats]:
        """Numbers of times from one, and their weights: upper bounds, tails lumped."""
        raise NotImplementedError

    def _rare(self) -> tuple[Integers, Floats]:
        """Numbers of times that :meth:`_times` lumps, and logs of their weights."""
        return np.arange(0), np.zeros(0)

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        at = log_mixed(epsilon, 1 / self._share)
        # advanced joint convexity about the shared component w_0 N, and convexity over
        # the numbers of times j
        parts = zip(*(part.tolist() for part in self._times()), strict=True)
        total: Floats = sum(weight * self._one(at, j) for j, weight in parts)
        return total

    def renyi_costs(self, orders: tuple[float, ...]) -> Sequence[float]:
        """Return bounds on the Rényi costs at many orders, in nats."""
        mu = self.curve.gaussian_mu
        # of other noise no density is known here, only the trade-off
        if mu is None:
            return renyi_of_pair(self, orders).tolist()  # type: ignore[no-any-return]
        times, weights = self._times()
        rare, log_weights = self._rare()
        if len(rare):
            times, weights = times[:-1], weights[:-1]
        return mixture_costs(
            np.asarray(orders, float),
            self._share,
            mu * times,
            np.log(weights),
            mu * rare,
            log_weights,
        )


@dataclass(frozen=True)
class MixturePair(_MixedPair, kind="mixture_pair"):
    """Dominating pair of a step in which records take part at random, several times.

    With weight w_j the sum moves by j times the shift, and with w_0 not at all. For
    Q = 1 - w_0, delta(log(1 + Q (exp(e) - 1))) = sum over j >= 1 of w_j delta_j(e).
    For draws with replacement, j is how often a record of the group was drawn; for
    Poisson batches, how many of the group are in the batch.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum.
    chance : float
        The number of times is Binomial(trials, chance).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 10. A group takes part like one
    record: in each draw that hits it an unchanged record may be drawn instead.
    """

    trials: int
    chance: float

    @property
    def _share(self) -> float:
        # 1 - (1 - chance)^trials
        return -math.expm1(self.trials * math.log1p(-self.chance))

    def _times(self) -> tuple[Integers, Floats]:
        return participation(self.trials, self.chance)

    def _rare(self) -> tuple[Integers, Floats]:
        return rare_participation(self.trials, self.chance)


@dataclass(frozen=True)
class SubsetGroupPair(_MixedPair, kind="subset_group_pair"):
    """Dominating pair of a random subset of fixed size, a group being replaced.

    As many of the group as are drawn move the sum. Where there are enough other
    records, those drawn may be exchanged for some of these, so that a batch without any
    of the group is shared by both tables. Where there are not, the bound is that of
    batches that are seen.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum by one replaced record.
    count : int
        Size of the group, at most `n_records`.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2.
    """

    n_records: int
    batch_size: int
    count: int

    @property
    def _share(self) -> float:
        if self.batch_size > self.n_records - self.count:
            return 1.0
        return min(1.0, float(self._times()[1].sum()))

    def _times(self) -> tuple[Integers, Floats]:
        return participation_of_subset(self.n_records, self.count, self.batch_size)


#: Shares of the batches without the record by which a bound is looked for.
_SHARES = (0.0, 1e-3, 0.01, 0.05, 0.2, 1.0)


@dataclass(frozen=True)
class MovedPair(DominatingPair, kind="moved_pair"):
    """Dominating pair of random batches in which a record's gradient moves a little.

    With weight w_j a batch holds the record j times (or j records of a group); against
    the batches of weight w_0 without it the sum moves by j times one shift, and against
    those with its other content by j times another. For Q = 1 - w_0, any e between e'
    and ``log(1 + (exp(e') - 1) / Q)`` and b = exp(e' - e), delta(e') is at most the sum
    over j >= 1 of ``w_j ((1 - b) delta_j(e) + b moved_j(e))``; the least is taken.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move from one content of the record to the other.
    joined : ShiftCurve
        Curve of the noise against the move of a step's sum by a record that joins.
    chance : float
        The number of times is Binomial(trials, chance).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2. At the largest e it is applied to the
    whole mixture; at a smaller one to a share of its part without the record, as what
    is left of that is in both mixtures, and its divergence is none.
    """

    joined: NoiseCurve
    trials: int
    chance: float

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        epsilon = np.asarray(epsilon, float)
        rate = -math.expm1(self.trials * math.log1p(-self.chance))
        furthest = log_mixed(epsilon, 1 / rate)
        times, weights = participation(self.trials, self.chance)
        least = np.full_like(epsilon, math.inf)
        for share in _SHARES:
            at = epsilon + share * (furthest - epsilon)
            both = np.exp(epsilon - at)
            total = np.zeros_like(epsilon)
            for weight, j in zip(weights, times.tolist(), strict=True):
                joined = self.joined if j == 1 else self.joined.times(j)
                total += weight * (
                    (1 - both) * joined.delta(at) + both * self._one(at, j)
                )
            least = np.minimum(least, total)
        return least


@dataclass(frozen=True)
class ReplacePoissonPair(DominatingPair, kind="replace_poisson_pair"):
    """Dominating pair of a Poisson batch, adjacent by replacement.

    With b = exp(e' - e), where e' = log(1 + q (exp(e) - 1)), advanced joint convexity
    gives delta(e') = q ((1 - b) delta_1(e) + b delta_2(e)), where delta_2 is for twice
    the shift: from one content to the other.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of the noise against the move of a step's sum by one record.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2.
    """

    rate: float

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        # e' is `epsilon`, e is `at`, and b is `both`: the weight, in what is compared
        # with, of the batch that holds the record's other content
        at = log_mixed(epsilon, 1 / self.rate)
        both = np.exp(epsilon - at)
        mean = (1 - both) * self._one(at) + both * self._one(at, 2)
        return self.rate * mean


# What rounding may take off a cost, in units of the range.
_DIGITS = 1e-14


@dataclass(frozen=True)
class BoundedRangePair(Plain, kind="bounded_range_pair"):
    """Dominating pair of a mechanism whose privacy loss lies in a bounded range.

    Between any two neighbouring tables the losses of all outputs lie in an interval of
    length `eta`, which may lie anywhere. That is so of the exponential mechanism where
    the scores of all candidates move by amounts of a range of `eta` in units of the
    scale. It is eta-differentially private, and costs less than that in any other form.

    Parameters
    ----------
    eta : float
        Length of the interval, in nats.

    Notes
    -----
    A loss L in [t - eta, t] has a mean of exp(L) of one under the second distribution,
    and divergences are means of convex functions of exp(L): they are largest where L
    takes the two ends only. At exp(e) the mean is ``(1 - exp(t - eta)) (1 - exp(e - t))
    / (1 - exp(-eta))``, which is largest at t = (eta + e) / 2. At the order a it is
    largest where exp(t) is ``(a - 1) (exp(eta) - exp(-(a - 1) eta)) / (a (1 - exp(-(a -
    1) eta)))``. The largest of convex functions is one, so some pair has these
    divergences and dominates; the interval may lie the other way round as well.

    References
    ----------
    Durfee and Rogers (2019), Practical differentially private top-k selection with
    pay-what-you-get composition; Dong, Durfee and Rogers (2020), Optimal differential
    privacy composition for exponential mechanisms, Lemma 3.2.

    Examples
    --------
    >>> from skpuffer.privacy_loss import BoundedRangePair
    >>> pair = BoundedRangePair(1.0)
    >>> float(pair.delta(1.0)), round(float(pair.delta(0.0)), 6)
    (0.0, 0.244919)
    """

    eta: float

    symmetric = True
    #: Some mechanism of such a range attains each divergence, but no one attains all.
    tight = False
    convex = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", check_positive(eta=self.eta))

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence at ``epsilon >= 0``."""
        left = np.minimum(np.asarray(epsilon, dtype=float) - self.eta, 0.0)
        value: Floats = np.expm1(left / 2) ** 2 / -np.expm1(-self.eta)
        return value

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order, in nats."""
        return self.renyi_costs((alpha,))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, in nats."""
        eta, alpha = self.eta, np.asarray(orders, dtype=float)
        pure = np.isinf(alpha)
        rest = np.where(pure, 1.0, alpha) - 1 + pure  # any order will do there
        end = np.log(rest / (rest + 1)) + eta
        end += np.log(np.expm1(-(rest + 1) * eta) / np.expm1(-rest * eta))
        end = np.clip(end, 0.0, eta)
        # the mass at the lower end: (exp(t) - 1) / (exp(eta) - 1)
        low = np.exp(end - eta) * np.expm1(-end) / np.expm1(-eta)
        with np.errstate(divide="ignore"):
            cost = end + np.log1p(low * np.expm1(-rest * eta)) / rest
        cost = np.where(pure, eta, np.minimum(cost + _DIGITS * eta, eta))
        # a range of eta costs no more than alpha eta**2 / 8 (Hoeffding's lemma)
        least = np.minimum(cost, np.where(pure, np.inf, alpha * eta**2 / 8))
        costs: list[float] = least.tolist()
        return costs


# What rounding may take off a cost, in units of epsilon.
_DIGITS = 1e-14


@dataclass(frozen=True)
class PurePair(Plain, kind="pure_pair"):
    """Dominating pair of a mechanism of which a pure promise is known: two answers.

    Any epsilon-differentially private mechanism is post-processing of randomised
    response with the truth told at odds of exp(epsilon), for each pair of tables.

    Parameters
    ----------
    epsilon : float
        Largest privacy loss, either way, in nats.

    See Also
    --------
    BoundedRangePair : Costs less, where losses lie in an interval of that length.

    References
    ----------
    Kairouz, Oh and Viswanath (2015), The composition theorem for differential privacy,
    Theorem 2.5.

    Examples
    --------
    >>> from skpuffer.privacy_loss import PurePair
    >>> pair = PurePair(1.0)
    >>> float(pair.delta(1.0)), round(float(pair.delta(0.0)), 6)
    (0.0, 0.462117)
    """

    epsilon: float

    symmetric = True
    #: Randomised response attains it, but it is not what is run.
    tight = False
    convex = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(epsilon=self.epsilon))

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence at ``epsilon >= 0``."""
        # (exp(e0) - exp(e)) / (1 + exp(e0)), by its smaller exponents
        left = np.minimum(np.asarray(epsilon, dtype=float) - self.epsilon, 0.0)
        value: Floats = -np.expm1(left) / (1 + np.exp(-self.epsilon))
        return value

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order, in nats."""
        return self.renyi_costs((alpha,))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders.

        Parameters
        ----------
        orders : tuple of float
            In (1, inf].

        Returns
        -------
        costs : list of float
            In nats: ``log(cosh((alpha - 1/2) e) / cosh(e / 2)) / (alpha - 1)``, with e
            for epsilon.
        """
        e, alpha = self.epsilon, np.asarray(orders, dtype=float)
        pure = np.isinf(alpha)
        alpha = np.where(pure, 2.0, alpha)  # any order will do there
        # where it is not read it may overflow, also to no number
        with np.errstate(over="ignore", invalid="ignore"):
            # as a product of sines, which keeps the digits of small costs
            excess = 2 * np.sinh(alpha * e / 2) * np.sinh((alpha - 1) * e / 2)
            small = np.log1p(excess / np.cosh(e / 2))
        large = np.logaddexp(alpha * e, (1 - alpha) * e) - np.logaddexp(0, e)
        cost = np.where(alpha * e < 1, small, large) / (alpha - 1)
        costs: list[float] = np.where(
            pure, e, np.minimum(cost + _DIGITS * e, e)
        ).tolist()
        return costs
