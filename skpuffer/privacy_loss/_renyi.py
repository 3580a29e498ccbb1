"""Rényi divergence of a dominating pair, from its trade-off."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from skpuffer.kernel.numbers import Floats

from ._grid import excess, tail_quantile
from ._protocols import TradeOffs

__all__ = ["renyi_of_pair"]

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
