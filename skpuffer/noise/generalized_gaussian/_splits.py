"""Costs of splitting a shift over many coordinates of generalised Gaussian noise.

The privacy losses of independent coordinates add up, so the cost of one displacement is
exactly that of composing its one-coordinate shifts. What has no closed form is the
worst displacement of a ball.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from skpuffer.kernel.curves import log_delta_of_orders
from skpuffer.kernel.gaussian import gaussian_delta
from skpuffer.kernel.loss_grid import Sum, loss_range, on_grid, tail_quantile
from skpuffer.kernel.numbers import Floats
from skpuffer.privacy_loss._envelopes import Hull, hull

from ._loss import fisher_information, hockey_stick
from ._renyi import renyi

__all__ = ["euclidean_trade_off", "split_renyi", "split_trade_off"]

#: Log of the delta below which a trade-off is only bounded by way of Rényi orders.
_DEEP = math.log(1e-30)

#: Logarithm of the smallest delta at which a trade-off has a corner.
_DEEPEST = -700.0

#: Standard deviations between the means under two successive tilts.
_OVERLAP = 4.0

#: Grid points per standard deviation of one coordinate's loss. The standard deviation
#: falls with the number of coordinates, so rounding costs their sum the same for all.
_FINENESS = 300

#: Corners of a trade-off per standard deviation of the loss.
_CORNERS = 500

#: Largest number of grid points of one coordinate's loss.
_MAX_POINTS = 1e5

#: Largest number of corners of a trade-off before its far tail.
_MAX_CORNERS = 2e4

#: Losses, in nats, beyond which there is no privacy to speak of: Rényi orders will do.
_MAX_LOSS = 1e3

_ORDERS = 1 + np.geomspace(1e-3, 1e7, 400)


@lru_cache(maxsize=65536)
def split_renyi(alpha: float, u: float, beta: float) -> float:
    """Bound on the Rényi divergence of displacements of beta-norm u, 1 < beta < 2.

    Coordinates that move by v_i cost the sum of D(v_i), where the sum of v_i^beta is
    at most u^beta: no more than u^beta times the largest D(v) / v^beta up to u.

    Notes
    -----
    (alpha - 1) D(v) is convex in v, as the logarithm of an integral of
    exp((alpha - 1) |x - v|^beta), whose exponent is convex in v at each x. So between
    two points D is below its chord, and the largest ratio of chord and v^beta has a
    closed form; intervals are divided until this bound is attained to `1e-9`. Near zero
    D(v) <= alpha I v^2 / 2, I the Fisher information, which is also the bound for the
    whole: the l2 norm is at most the beta-norm.
    """
    limit = alpha * fisher_information(beta) / 2
    whole = limit * u**2
    if u == 0 or not math.isfinite(whole):
        return whole
    # `best` is the largest ratio attained, a lower bound; `done` one that no ratio
    # exceeds on the intervals that are settled, an upper bound
    best = float(renyi(alpha, u, beta)) / u**beta
    # below this not even the bound near zero exceeds what is attained at u
    start = (best / limit) ** (1 / (2 - beta))
    start = max(start, 1e-12 * u)
    if start > 0.999999 * u:
        return whole
    near_zero = limit * start ** (2 - beta)
    marks = np.geomspace(start, u, 33)
    costs = renyi(alpha, marks, beta)
    low, high, at_low, at_high = marks[:-1], marks[1:], costs[:-1], costs[1:]
    done = max(best, near_zero)
    while low.size:
        best = max(best, float(np.max(at_high / high**beta)))
        # The chord is slope v - lost (D(0) = 0 and convexity make lost >= 0). Its ratio
        # to v^beta is stationary where slope v = beta (slope v - lost).
        slope = (at_high - at_low) / (high - low)
        lost = np.maximum(slope * low - at_low, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = beta * lost / ((beta - 1) * slope)
        turn = np.clip(np.where(np.isfinite(turn), turn, low), low, high)
        # chord / v^beta has one stationary point, its largest: there, or at an end
        bound = (at_low + slope * (turn - low)) / turn**beta
        bound = np.where(np.isfinite(bound), bound, np.inf)
        settled = bound <= best * (1 + 1e-9)
        if settled.any():
            done = max(done, float(bound[settled].max()))
        low, high = low[~settled], high[~settled]
        if not low.size:
            break
        # the other intervals in eight parts each
        marks = low + (high - low) * np.linspace(0, 1, 9)[:, np.newaxis]
        costs = renyi(alpha, marks, beta)
        low, high = marks[:-1].T.ravel(), marks[1:].T.ravel()
        at_low, at_high = costs[:-1].T.ravel(), costs[1:].T.ravel()
    return min(whole, float(done * u**beta))


@dataclass(frozen=True)
class _OneCoordinate:
    """Dominating pair of one coordinate that moves by u."""

    u: float
    beta: float

    symmetric = True

    def delta(self, epsilon: Floats) -> Floats:
        return hockey_stick(epsilon, self.u, self.beta)

    reverse = delta


def _equal_split(u: float, times: int, beta: float, epsilons: Floats) -> Floats:
    """Log of the trade-off of several coordinates that each move by u, rounded up.

    Composed under a sequence of exponential tilts, each of which is accurate at the
    losses that it makes likely.
    """
    if times == 1:
        with np.errstate(divide="ignore"):
            return np.log(hockey_stick(epsilons, u, beta))
    pair, tail = _OneCoordinate(u, beta), math.exp(_DEEP - 7) / times
    # the loss has a standard deviation of about sqrt(I) u for small u
    step = math.sqrt(fisher_information(beta)) * u / _FINENESS
    step = max(min(step, 0.02), sum(loss_range(pair, tail)) / _MAX_POINTS)
    # close to beta = 1 there is almost a point mass at u^beta: let a grid point meet it
    most = u**beta
    if most > step:
        step = most / math.ceil(most / step)
    grid = on_grid(pair, step, tail, math.inf)
    total = Sum([(grid, times)])
    best = np.zeros(len(epsilons))
    tilt, (mean, variance) = 0.0, grid.moments(0.0)
    while tilt * step < 5:
        # so small a step that the likely losses of successive tilts overlap
        spread = math.sqrt(variance)
        more = _OVERLAP / (math.sqrt(times) * spread)
        further, variance = grid.moments(tilt + more)
        while math.sqrt(times) * (further - mean) > _OVERLAP * spread:
            more /= 1.5
            further, variance = grid.moments(tilt + more)
        tilt, mean = tilt + more, further
        # each tilt gives an upper bound at every epsilon
        np.minimum(best, total.tail(tilt, math.inf).log_deltas(epsilons), out=best)
        if not math.isfinite(mean):
            break
        # until the sum's likely loss is beyond the last epsilon, or delta negligible
        # there
        likely = np.searchsorted(epsilons, times * mean)
        if likely == len(epsilons) or best[likely] < _DEEP:
            break
    return best


@lru_cache(maxsize=64)
def split_trade_off(u: float, beta: float) -> Hull:
    """Return the envelope of the trade-offs of equal splits over coordinates.

    Of beta-norm u if 1 < beta < 2: every number of coordinates up to 24, and on while
    the largest is the worst somewhere. Of l2 norm u if beta > 2: powers of two up to
    64, and the Gaussian limit of ever more coordinates.

    Parameters
    ----------
    u : float
        In (0, inf).
    beta : float

    Returns
    -------
    Hull
    """
    order = min(beta, 2.0)
    rho = fisher_information(beta) * u**2 / 2
    spread = math.sqrt(2 * rho)
    if beta < 2:
        # rho-zCDP bounds the tail: delta <= exp(-(epsilon - rho)² / (4 rho))
        end = rho + 2 * math.sqrt(-_DEEP * rho)
    else:
        end = tail_quantile(_OneCoordinate(u, beta).delta, math.exp(_DEEP))
        end = max(end, rho + 2 * math.sqrt(-_DEEP * rho))
    alphas = _ORDERS
    costs = alphas * rho if beta < 2 else renyi(alphas, u, beta)
    # so much loss that only Rényi orders are used
    if not end <= _MAX_LOSS:
        end = min(end, 1e5)
        epsilons = np.geomspace(1e-3 * end, end, 1000)
        epsilons = np.concatenate([np.linspace(0, epsilons[0], 1000)[:-1], epsilons])
        return _with_tail(
            epsilons, log_delta_of_orders(alphas, costs, epsilons), alphas, costs
        )
    step = max(min(spread / _CORNERS, 0.02), end / _MAX_CORNERS)
    epsilons = np.arange(0, end, step)
    best = np.full(len(epsilons), -np.inf)
    if beta > 2:
        with np.errstate(divide="ignore"):
            # the limit of ever more coordinates: mu² = 2 rho
            best = np.log(gaussian_delta(epsilons, spread))
    # equal parts of a shift of l_order norm u over `times` coordinates
    for times in (2**j for j in range(7)) if beta > 2 else count(1):
        log_deltas = _equal_split(u / times ** (1 / order), times, beta, epsilons)
        worst = np.any((log_deltas > best) & (log_deltas > _DEEP))
        best = np.maximum(best, log_deltas)
        if beta < 2 and times >= 24 and not worst:
            break
    return _with_tail(epsilons, best, alphas, costs)


def _with_tail(
    epsilons: Floats, log_deltas: Floats, alphas: Floats, costs: Floats
) -> Hull:
    """Hull of bounds on a trade-off, whose far tail is what Rényi costs imply."""
    # corners up to the first negligible delta, then those from Rényi costs, up to one
    # at the smallest float
    useful = np.append(log_deltas > _DEEP - 7, False)
    end = int(np.argmin(useful))
    epsilons, log_deltas = epsilons[:end], log_deltas[:end]
    beyond = epsilons[-1] * np.geomspace(1, 64, 400)[1:]
    implied = log_delta_of_orders(alphas, costs, beyond)
    deep = np.flatnonzero(implied < _DEEPEST)
    if len(deep):
        beyond, implied = beyond[: deep[0] + 1], implied[: deep[0] + 1]
    # rounded up to that
    implied = np.maximum(implied, _DEEPEST)
    return hull(
        np.concatenate([epsilons, beyond]), np.concatenate([log_deltas, implied])
    )


@lru_cache(maxsize=64)
def euclidean_trade_off(u: float, beta: float) -> Hull:
    """Return a bound on the trade-off of a displacement of l2 norm u, 1 < beta < 2.

    By rho-zero-concentrated differential privacy with rho = I u² / 2, I the Fisher
    information.
    """
    rho = fisher_information(beta) * u**2 / 2
    end = rho + 2 * math.sqrt(-_DEEP * rho)
    epsilons = np.linspace(0, end, 4000)
    alphas = _ORDERS
    log_deltas = log_delta_of_orders(alphas, alphas * rho, epsilons)
    return _with_tail(epsilons, log_deltas, alphas, alphas * rho)
