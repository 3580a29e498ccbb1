"""Rényi divergences of a pair of laws, from its trade-off."""

import math

import numpy as np
from scipy.special import logsumexp

from ._loss_grid import excess, reach

__all__ = ["renyi_of_pair"]

#: How far below its peak an integrand must have fallen where a table of it ends.
_FALLEN = 40.0


def renyi_of_pair(pair, alpha):
    """Bound the Rényi divergence of a pair's first law from its second.

    Every f-divergence is an integral of the hockey-stick divergence delta. With the
    excess f(e) = delta(e) - max(0, 1 - exp(e)) the one of order alpha is
    log(1 + alpha (alpha - 1) ∫ exp((alpha - 1) e) f(e) de) / (alpha - 1). The integral
    is taken over the dots of delta connected as a function of exp(e), so from above,
    and it bounds the divergence of whatever the pair dominates.

    Parameters
    ----------
    pair : object
        With `delta` and `reverse`, as for :func:`excess`.
    alpha : array-like of shape (n_orders,)
        Orders in (1, inf].

    Returns
    -------
    cost : ndarray of shape (n_orders,)
        In nats; infinity where the table of the trade-off ends too early to tell.

    References
    ----------
    Sason and Verdú (2016), f-divergence inequalities, Proposition 3.
    """
    alpha = np.asarray(alpha, float)[:, np.newaxis]
    epsilon = _table(pair)
    height = excess(pair, epsilon)
    width = np.diff(epsilon)
    rest = alpha - 1
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # over one interval, in units of its start: ∫ x^(alpha-2) (1 and (x-1)/(end-1))
        whole = np.expm1(rest * width) / rest
        part = (np.expm1(alpha * width) / alpha - whole) / np.expm1(width)
        pieces = np.log(height[:-1] * (whole - part) + height[1:] * part)
        pieces = rest * epsilon[:-1] + pieces
        total = logsumexp(pieces, axis=1)
        cost = np.logaddexp(0.0, np.log(alpha * rest)[:, 0] + total) / rest[:, 0]
    ended = (height[-1] > 0) & (pieces[:, -1] > np.max(pieces, axis=1) - _FALLEN)
    cost = np.where(ended | np.isnan(cost), math.inf, cost)
    return np.where(np.isinf(alpha[:, 0]), math.inf, cost)


def _table(pair):
    """Epsilons that are dense both near zero and evenly out to the far tail."""
    sides = []
    for curve in (pair.reverse, pair.delta):
        end = reach(curve, 1e-300)
        if end == 0:
            end = 1e-9
        near, end = min(reach(curve, 1e-40), 1e5), min(end, 1e5)
        marks = [
            np.geomspace(1e-7 * end, end, 300),
            np.linspace(0, near, 1200),
            np.linspace(near, end, 800),
        ]
        sides.append(np.unique(np.concatenate(marks)))
    return np.concatenate([-sides[0][:0:-1], sides[1]])
