"""Rényi divergences of mixtures of Gaussians, by quadrature in logarithms."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from skpuffer.kernel.numbers import Booleans, Floats

from ._participation import log_mixed

__all__ = [
    "LOG_ROOT",
    "TAIL",
    "mean_power_excess",
    "mixture_costs",
    "seen_excess",
    "within_reach",
]

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
    share : float
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
        Of points of shape (n,); the loss, and the logarithm of the density.
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
