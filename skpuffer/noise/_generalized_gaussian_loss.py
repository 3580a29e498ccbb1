"""Privacy loss of unit generalised Gaussian noise, one coordinate shifted by u.

The loss |x - u|^beta - |x|^beta falls in x, so a loss above a value means an x below a
point; all divergences are incomplete gamma functions at that point.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np
from scipy.special import gamma, gammainc, gammaincc, gammainccinv

from skpuffer.kernel.curves import log_delta_of_orders, mirrored
from skpuffer.kernel.laplace import exp_remainder
from skpuffer.kernel.loss_grid import Sum, Tail, loss_range, on_grid, tail_quantile
from skpuffer.kernel.noise import gaussian_delta, root_above
from skpuffer.kernel.numbers import Floats, Numbers
from skpuffer.privacy_loss._divergences import Hull, hull

#: Relative accuracy of the points where a loss takes a value. A divergence is largest
#: there, so it has twice as many digits.
_POINT = 1e-9

#: Relative rounding error of an incomplete gamma function, at most.
_ROUNDING = 1e-14

#: From here on an incomplete gamma function is computed by its asymptotic series.
_FAR = 500.0

#: Below, a power is a denormal float and may have lost its digits.
_TINY = 1e-290


def fisher_information(beta: float) -> float:
    """Fisher information of the location of unit noise, E[(beta |x|^(beta-1))²]."""
    return beta**2 * float(gamma(2 - 1 / beta) / gamma(1 / beta))


def tail(t: Numbers, beta: float) -> Floats:
    """Two-sided tail P(|x| > t) of one coordinate of unit noise, for t >= 0."""
    with np.errstate(over="ignore"):
        mass: Floats = gammaincc(1 / beta, np.asarray(t, float) ** beta)
    return mass


def cdf(x: Numbers, beta: float) -> Floats:
    """Distribution function of one coordinate of unit noise."""
    x = np.asarray(x, float)
    # from the tail, small on the left: 1 - F would lose its digits there
    beyond = tail(np.abs(x), beta) / 2
    return np.where(x < 0, beyond, 1 - beyond)


def quantile(p: Numbers, beta: float) -> Floats:
    """Inverse of :func:`cdf`."""
    p = np.asarray(p, float)
    size = gammainccinv(1 / beta, 2 * np.minimum(p, 1 - p)) ** (1 / beta)
    x: Floats = np.where(p < 0.5, -size, size)
    return x


def loss(x: Numbers, u: Numbers, beta: float) -> Floats:
    """Privacy loss |x - u|^beta - |x|^beta at x, without its cancellation far out."""
    x, u = np.broadcast_arrays(np.asarray(x, float), np.asarray(u, float))
    # odd about u / 2, so that only x <= u / 2 is computed
    near = np.minimum(x, u - x)
    t = np.abs(near)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # for x < 0, (t + u)^beta (1 - (t / (t + u))^beta) with t = -x
        far = (t + u) ** beta * -np.expm1(-beta * np.log1p(u / t))
        size = np.where(near < 0, far, (u - near) ** beta - t**beta)
    return np.where(x <= u - x, size, -size)


def _newton(
    value: Floats,
    start: Floats,
    correct: Callable[[Floats, Floats], tuple[Floats, Floats]],
) -> Floats:
    """Run Newton's method for an array of roots, each until its own steps are small."""
    root, left = start, np.arange(start.size)
    for _ in range(60):
        step, root[left] = correct(root[left], value[..., left])
        left = left[np.abs(step) > _POINT * (1 + root[left])]
        if not left.size:
            break
    return root


def _inside(value: Floats, beta: float) -> Floats:
    """Return the root r in [0, 1/2] of (1 - r)^beta - r^beta = value in [0, 1].

    Newton's method converges from the side where it starts: the function is concave for
    beta < 2 and convex for beta > 2.
    """
    if beta <= 2:
        start = 0.5 - value * 2 ** (beta - 2) / beta
    else:
        start = 1 - (value + 2.0**-beta) ** (1 / beta)

    def correct(r: Floats, value: Floats) -> tuple[Floats, Floats]:
        # s^beta - r^beta and minus its derivative beta (s^(beta-1) + r^(beta-1))
        s = 1 - r
        low, high = r ** (beta - 1), s ** (beta - 1)
        step = (s * high - r * low - value) / (beta * (low + high))
        return step, np.clip(r + step, 0.0, 0.5)

    return _newton(value, np.clip(start, 0.0, 0.5), correct)


def _outside(target: Floats, beta: float) -> Floats:
    """Return the root t >= 0 of log((1 + t)^beta - t^beta) = target, above zero.

    The function is log-concave in t, so Newton's method for its logarithm does not
    overshoot from below the root.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        below = np.expm1(target / beta)
        middle = np.exp((target - math.log(beta)) / (beta - 1)) - 0.5

        def correct(t: Floats, known: Floats) -> tuple[Floats, Floats]:
            target, below = known
            # (1 + t)^beta - t^beta = (1 + t)^beta left, and the derivative of its
            # logarithm is beta ((1 + t)^(beta-1) - t^(beta-1)) over that
            ratio = np.log1p(1 / t)
            left = -np.expm1(-beta * ratio)
            miss = target - beta * np.log1p(t) - np.log(left)
            step = miss * (1 + t) * left / (-beta * np.expm1((1 - beta) * ratio))
            # so far out that nothing is finite any more, the start is good enough
            step = np.where(np.isfinite(step), step, 0.0)
            return step, np.maximum(t + step, below)

        return _newton(np.stack([target, below]), np.maximum(middle, below), correct)


def _point(value: Floats, u: Floats, beta: float) -> Floats:
    """Point x / u where the loss takes a value >= 0, at most 1/2 (beta > 1)."""
    with np.errstate(divide="ignore"):
        # log(value / u^beta), as u^beta may be too small for a float
        part = np.asarray(np.log(value) - beta * np.log(u))
    # The loss is u^beta at x = 0. Up to that, in units of u, it is (1 - r)^beta -
    # r^beta with r = x / u in [0, 1/2]; beyond, x is negative.
    inside = part <= 0
    point = np.empty_like(part)
    if inside.any():
        point[inside] = _inside(np.exp(part[inside]), beta)
    if not inside.all():
        point[~inside] = -_outside(part[~inside], beta)
    return point


def loss_cdf(value: Numbers, u: Numbers, beta: float) -> Floats:
    """Distribution function of the loss |x - u|^beta - |x|^beta, for 0 < u < inf."""
    value, u = np.broadcast_arrays(np.asarray(value, float), np.asarray(u, float))
    if beta == 1:
        # P(loss <= y) = P(x >= (u - y) / 2)
        inside = tail(np.maximum(u - value, 0.0) / 2, 1.0) / 2
        return np.where(value < -u, 0.0, np.where(value >= u, 1.0, inside))
    # Under the noise the loss is at most `value` where x is at least the point, which
    # by symmetry has the probability of -point and below; the loss is odd about u / 2.
    point = u * _point(np.abs(value), u, beta)
    return cdf(-np.where(value < 0, u - point, point), beta)


def _scaled_tail(z: Floats, a: float) -> Floats:
    """Return exp(z) Q(a, z), Q the regularised upper incomplete gamma function."""
    far = z > _FAR
    near = np.where(far, 0.0, z)
    value: Floats = np.exp(near) * gammaincc(a, near)
    if np.any(far):
        z = np.where(far, z, _FAR)
        # Q(a, z) exp(z) ~ z^(a-1) / gamma(a) (1 + (a-1)/z + (a-1)(a-2)/z² + ...)
        series, term = np.ones_like(z), np.ones_like(z)
        for j in range(1, 9):
            term = term * (a - j) / z
            series = series + term
        value = np.where(far, z ** (a - 1) / gamma(a) * series, value)
    return value


def _lower(x: Floats, z: Floats, a: float) -> Floats:
    """Return P(a, z) = 1 - Q(a, z) for z = x^(1/a), however small."""
    mass: Floats = np.where(z < _TINY, x / gamma(1 + a), gammainc(a, z))
    return mass


def _outer(known: Floats, a: float) -> Floats:
    """Twice the divergence for a point x < 0: two tails, plus their rounding error."""
    x, _, z, size = known
    # F(x) = Q(a, z)/2 and exp(size) F(x - u) = exp(size) Q(a, z + size)/2, both with
    # exp(-z) taken out
    rest = np.where(z < _TINY, 1 - _lower(x, z, a), _scaled_tail(z, a))
    moved = _scaled_tail(z + size, a)
    twice: Floats = np.exp(-z) * (rest - moved + _ROUNDING * rest)
    return twice


def _near(known: Floats, a: float) -> Floats:
    """Twice the divergence for x >= 0, in a form that cancels less at small losses."""
    # (1 + P(a, z)) - exp(size) (1 - P(a, z + size)), the ones subtracted beforehand
    x, y, z, size = known
    twice: Floats = (
        _lower(x, z, a) + np.exp(size) * _lower(y, z + size, a) - np.expm1(size)
    )
    return twice


def _tails(known: Floats, a: float) -> Floats:
    """Twice the divergence for x >= 0, at large losses: exp(size) may overflow."""
    # (1 + P(a, z)) - exp(size) Q(a, z + size), with exp(size) in the scaled tail
    x, _, z, size = known
    twice: Floats = 1 + _lower(x, z, a) - np.exp(-z) * _scaled_tail(z + size, a)
    return twice


def hockey_stick(epsilon: Numbers, u: Numbers, beta: float) -> Floats:
    """Return the hockey-stick divergence of unit noise moved by u, for beta > 1.

    Arrays broadcast; epsilon has any sign, u is in [0, inf].

    Notes
    -----
    With x the point where the loss is epsilon >= 0 it is F(x) - exp(epsilon) F(x - u),
    F the distribution function. As |x - u|^beta = |x|^beta + epsilon, the factor
    exp(epsilon) goes into the second tail, and nothing overflows.
    """
    epsilon, u = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(u, float))
    a, size = 1 / beta, np.abs(epsilon)
    usual = (u > 0) & np.isfinite(u) & np.isfinite(size)
    size, shift = np.where(usual, size, 1.0), np.where(usual, u, 1.0)
    point = _point(size, shift, beta)
    with np.errstate(over="ignore", invalid="ignore"):
        x = shift * np.abs(point)
        # z = x^beta and z + size = |u - x|^beta, the exponents of both densities at x
        known = np.stack([x, shift - x, x**beta, size])
        value = np.empty_like(size)
        inner = point >= 0
        for formula, chosen in (
            (_outer, ~inner),
            (_near, inner & (size <= 0.5)),
            (_tails, inner & (size > 0.5)),
        ):
            if chosen.any():
                value[chosen] = formula(known[:, chosen], a) / 2
    value = np.clip(np.where(np.isnan(value), 0.0, value), 0.0, 1.0)
    # two equal distributions where u is zero
    value = mirrored(epsilon, np.where(usual, value, 0.0))
    value = np.where(np.isinf(u), 1.0, value)
    return np.where(epsilon == math.inf, 0.0, value)


def hockey_stick_epsilon(delta: float, u: float, beta: float) -> float:
    """Smallest epsilon >= 0 with :func:`hockey_stick` at most delta, rounded up."""

    def height(epsilon: float) -> float:
        return float(hockey_stick(epsilon, u, beta))

    if math.isinf(u):
        return math.inf
    if height(0.0) <= delta:
        return 0.0
    # P(loss > high) is delta, so that the divergence there is no more
    high = float(loss(quantile(delta, beta), u, beta))
    return root_above(height, delta, 0.0, high * (1 + 1e-9))


# -- rényi divergence of unit generalised Gaussian noise shifted by u ------------------


#: Relative amount by which costs are rounded up: a thousand times the quadrature error.
_HAIR = 1e-11

#: Nats below its peak at which an integrand is cut off.
_DROP = 60.0

#: Exponent from which on only the maximum of an integrand counts.
_PEAK_ALONE = 1e14

#: Elements integrated at once, which bounds the memory.
_CHUNK = 1000


@lru_cache(maxsize=8)
def _rule(density: int) -> tuple[Floats, Floats, Floats]:
    """Return the double exponential rule on [0, 1]: distances from ends, and weights.

    Takahasi and Mori (1974).
    """
    # x = 1 / (1 + exp(-pi sinh(t))) for evenly spaced t, up to where the weights
    # vanish; distances from the nearer end keep their digits
    last = int(3.2 * density)
    t = np.arange(-last, last + 1) / density
    s = np.pi / 2 * np.sinh(t)
    weights = np.pi / 2 * np.cosh(t) / (2 * np.cosh(s) ** 2) / density
    return 1 / (1 + np.exp(-2 * s)), 1 / (1 + np.exp(2 * s)), weights


def _density(beta: float) -> int:
    """Density of nodes that gives fourteen digits, for all orders and shifts."""
    # from comparisons with many more: the larger beta, the steeper are the tails
    return 20 if beta <= 2 else 40 if beta <= 12 else 80


def _integral(
    integrand: Callable[[Floats], Floats], marks: Floats, beta: float
) -> Floats:
    """Integrals over the segments between marks of shape (n, m), added up."""
    near, far, weights = _rule(_density(beta))
    low, width = marks[:, :-1, np.newaxis], np.diff(marks)[..., np.newaxis]
    high = marks[:, 1:, np.newaxis]
    x = np.where(near < far, low + width * near, high - width * far)
    values = integrand(x.reshape(len(marks), -1)).reshape(x.shape)
    integrals: Floats = ((values * weights).sum(axis=-1) * width[..., 0]).sum(axis=-1)
    return integrals


def _edges(
    height: Callable[[Floats], Floats], peak: Floats, size: Floats
) -> list[Floats]:
    """Return points to either side where a unimodal function is `_DROP` below its peak.

    At most a hundredth beyond, by bisection on the logarithm of the distance.
    """
    least = height(peak) - _DROP
    ends = []
    for sign in (-1.0, 1.0):
        low, high = np.full_like(peak, -60.0), np.full_like(peak, 60.0)
        # the logarithm of the distance, halved 14 times from [-60, 60] to within 1/100;
        # the end outside is returned, so nothing within the drop is cut off
        for _ in range(14):
            middle = (low + high) / 2
            above = height(peak + sign * size * np.exp(middle)) > least
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        ends.append(peak + sign * size * np.exp(high))
    return ends


def renyi(alpha: Numbers, u: Numbers, beta: float) -> Floats:
    """Return the Rényi divergence of shifted unit noise from the noise, rounded up.

    Orders and beta are above one. Arrays broadcast. It is infinite also where it is too
    large for a float.

    Notes
    -----
    For the density p of the noise and the loss L against shifted noise, the mean of
    exp((alpha - 1) L) is one more than the integral of p times r((alpha - 1) L) +
    (alpha - 1) r(-L). With r(x) = exp(x) - 1 - x these terms are positive and nothing
    cancels. Where it is large, the mean is integrated about the one peak of its
    integrand.
    """
    alpha, u = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(u, float))
    cost = np.where(u > 0, np.inf, 0.0)
    usual = (u > 0) & np.isfinite(u) & np.isfinite(alpha)
    rest, shift = alpha[usual] - 1, u[usual]
    found = [
        _costs(rest[i : i + _CHUNK], shift[i : i + _CHUNK], beta)
        for i in range(0, rest.size, _CHUNK)
    ]
    if found:
        cost[usual] = np.concatenate(found)
    return cost


def _weighted(exponent: Floats, x: Floats) -> Floats:
    """Return exp(exponent) (exp(x) - 1 - x), also where exp(x) is too large."""
    # for large x the exponents are added first: their sum may be small
    near = np.exp(exponent) * exp_remainder(np.minimum(x, 1.0))
    return np.where(x <= 1, near, np.exp(exponent + x) - np.exp(exponent) * (1 + x))


def _costs(rest: Floats, u: Floats, beta: float) -> Floats:
    """Rényi divergences at orders ``1 + rest``, all finite and u positive."""
    norm = 2 * gamma(1 + 1 / beta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        # the exponent rest (|x - u|^beta - |x|^beta) - |x|^beta is stationary where
        # ((u - x) / -x)^(beta - 1) = (1 + rest) / rest
        peak = -u / np.expm1(np.log1p(1 / rest) / (beta - 1))
        column, moved = rest[:, np.newaxis], u[:, np.newaxis]

        def exponent(x: Floats) -> Floats:
            return -(np.abs(x) ** beta) + rest * loss(x, u, beta)

        left, right = _edges(exponent, peak, 1.0 + u + np.abs(peak))
        top = exponent(peak)
        # segments between the peak, which is negative, and the kinks at 0 and u
        marks = np.stack([left, peak, 0 * u, u, right], axis=1)
        marks = np.clip(marks, left[:, np.newaxis], right[:, np.newaxis])

        def moment(x: Floats) -> Floats:
            rise = -(np.abs(x) ** beta) + column * loss(x, moved, beta)
            return np.exp(rise - top[:, np.newaxis])

        log_moment = np.log(_integral(moment, marks, beta) / norm) + top
        # from here on the width of the peak is lost in rounding, and less than `_HAIR`
        log_moment = np.where(top > _PEAK_ALONE, top, log_moment)

        # where the noise itself, unshifted or shifted, is `_DROP` below its peak; the
        # loss changes sign at u / 2
        end = _DROP ** (1 / beta)
        left, right = np.minimum(left, -end), np.maximum(right, u + end)
        marks = np.stack([left, 0 * u, u / 2, u, right], axis=1)
        marks = np.clip(marks, left[:, np.newaxis], right[:, np.newaxis])

        def remainder(x: Floats) -> Floats:
            size, fall = loss(x, moved, beta), -(np.abs(x) ** beta)
            return _weighted(fall, column * size) + column * _weighted(fall, -size)

        # mean of exp(rest L) - 1 as a sum of positive terms, where it is small
        small = log_moment < 0.5
        if small.any():
            rest_, u_ = rest[small], u[small]
            column, moved = rest_[:, np.newaxis], u_[:, np.newaxis]
            more = np.log1p(_integral(remainder, marks[small], beta) / norm)
            log_moment[small] = more
        cost = log_moment / rest * (1 + _HAIR)
    return np.where(np.isfinite(cost) & (cost > 0), cost, np.inf)


# -- costs of splitting a shift over many coordinates of generalised Gaussian noise ----
# The privacy losses of independent coordinates add up, so the cost of one displacement
# is exactly that of composing its one-coordinate shifts. What has no closed form is the
# worst displacement of a ball.


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

    Coordinates that move by v_i cost the sum of D(v_i), where the sum of v_i^beta is at
    most u^beta. That is at most u^beta times the largest D(v) / v^beta up to u.

    Notes
    -----
    (alpha - 1) D(v) is convex in v, as the logarithm of an integral of exp((alpha - 1)
    |x - v|^beta), whose exponent is convex in v at each x. So between two points D is
    below its chord. The largest ratio of chord and v^beta has a closed form. Intervals
    are divided until this bound is attained to `1e-9`. Near zero D(v) <= alpha I v^2 /
    2, I the Fisher information, which is also the bound for the whole: the l2 norm is
    at most the beta-norm.
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
    """Return the log trade-off of several coordinates that each move by u, rounded up.

    Composed under exponential tilts, each accurate at the losses it makes likely.
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
    tilt, (mean, variance) = 0.0, grid._moments(grid.tilted(0.0))
    while tilt * step < 5:
        # so small a step that the likely losses of successive tilts overlap
        spread = math.sqrt(variance)
        more = _OVERLAP / (math.sqrt(times) * spread)
        further, variance = grid._moments(grid.tilted(tilt + more))
        while math.sqrt(times) * (further - mean) > _OVERLAP * spread:
            more /= 1.5
            further, variance = grid._moments(grid.tilted(tilt + more))
        tilt, mean = tilt + more, further
        # each tilt gives an upper bound at every epsilon
        np.minimum(best, log_deltas(total.tail(tilt, math.inf), epsilons), out=best)
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

    For beta-norm u if 1 < beta < 2: every number of coordinates up to 24, and on while
    the largest is the worst somewhere. For l2 norm u if beta > 2: powers of two up to
    64, and the Gaussian limit of ever more coordinates.
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


def log_deltas(tail: Tail, epsilon: Floats) -> Floats:
    """Logarithms of delta at many epsilons, rounded up.

    Parameters
    ----------
    epsilon : ndarray of shape (n,)

    Returns
    -------
    log_deltas : ndarray of shape (n,)
        Zero below the window.
    """
    last = len(tail._height) - 2
    at = epsilon / tail.step - tail.low
    i = np.clip(np.floor(at), 0, last).astype(int)
    left, right = tail._height[i], tail._height[i + 1]
    # linear in exp(epsilon) between two points, and level beyond the window
    part = np.where(at >= last + 1, 0.0, np.clip(at - i, 0.0, 1.0))
    part = np.expm1(tail.step * part) / math.expm1(tail.step)
    height = left + (right - left) * part
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.minimum(0.0, np.log(height) + tail._unit)
        if tail.infinity:
            value = np.logaddexp(value, np.log(tail.infinity))
    return np.where(at < 0, 0.0, np.minimum(value, 0.0))
