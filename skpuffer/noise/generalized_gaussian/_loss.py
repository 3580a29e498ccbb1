"""Privacy loss of unit generalised Gaussian noise, one coordinate shifted by u.

The density is proportional to exp(-|x|^beta). The privacy loss against the noise moved
by u is |x - u|^beta - |x|^beta, which falls in x as the density is log-concave, so that
a loss above a value means an x below a point. The distribution of the loss and every
hockey-stick divergence are incomplete gamma functions at that point.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gamma, gammainc, gammaincc, gammainccinv

from skpuffer.kernel.curves import mirrored
from skpuffer.kernel.numbers import Floats, Numbers, root_above

__all__ = [
    "cdf",
    "fisher_information",
    "hockey_stick",
    "hockey_stick_epsilon",
    "loss",
    "loss_cdf",
    "quantile",
    "tail",
]

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
    """Newton's method for an array of roots, each until its own steps are small.

    A root that has converged is not iterated further, so that it does not depend on the
    others in the array.
    """
    root, left = start, np.arange(start.size)
    for _ in range(60):
        step, root[left] = correct(root[left], value[..., left])
        left = left[np.abs(step) > _POINT * (1 + root[left])]
        if not left.size:
            break
    return root


def _inside(value: Floats, beta: float) -> Floats:
    """Root r in [0, 1/2] of (1 - r)^beta - r^beta = value, for values in [0, 1].

    Newton's method converges from one side: the function is concave for beta < 2,
    convex for beta > 2, and the start is on the side where it stays.
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
    """Root t >= 0 of log((1 + t)^beta - t^beta) = target, for positive targets.

    (1 + t)^beta - t^beta is the integral of beta s^(beta - 1) over [t, t + 1]. It is
    log-concave in t, as integrals of a log-concave function over a sliding interval
    are, so Newton's method for its logarithm does not overshoot from below the root,
    where its first step leads. It starts where the middle of the interval has the
    value, and a point below is where the first term alone has it.
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
    """Hockey-stick divergence of unit noise moved by u, at exp(epsilon), for beta > 1.

    Parameters
    ----------
    epsilon : float or ndarray
        In nats, of any sign.
    u : float or ndarray
        In [0, inf]. Arrays broadcast.
    beta : float
        Above one.

    Returns
    -------
    delta : ndarray

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
