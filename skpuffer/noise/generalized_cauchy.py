"""Generalised Cauchy noise: heavy tails, and still a pure-epsilon cost."""

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import betaln, logsumexp, stdtr

from skpuffer.exceptions import PrivacyWarning, Statement, value_error
from skpuffer.kernel.curves import log_delta_of_orders, mirrored
from skpuffer.kernel.noise import (
    Costs,
    Evidence,
    MagnitudeNoise,
    Shift,
    largest_argument,
    plain,
    smallest_argument,
)
from skpuffer.kernel.numbers import Floats, Indices, Numbers, check_positive

__all__ = ["GeneralizedCauchyNoise"]

#: Exponents below which quadrature would miss some of the mass in the tails.
LEAST_EXPONENT = 1.05

# Beyond this degree the polynomial has more terms than quadrature has nodes.
_LARGEST_DEGREE = 256
# Terms of the series, which is used where v <= 1 and n sqrt(v) <= 30: from the sixtieth
# on they shrink by the factor 3/4 at least.
_TERMS = 192
_SERIES_REACH = 30.0
# Double exponential quadrature: width, nodes to either side, and relative error, for
# k >= 2 and for heavier tails (k >= LEAST_EXPONENT).
_WIDTH, _NODES, _ROUND_OFF = 3.4, 80, 2e-13
_WIDE, _WIDE_NODES, _WIDE_ERROR = 6.0, 208, 4e-12
# Arguments computed at once, so few that the arrays of their nodes stay in cache, and
# number of arguments from which duplicates are sought.
_BLOCK = 256
_MANY = 512


def log_moment(n: Numbers, k: float, u: Numbers) -> Floats:
    r"""Return the log of G, moment of order n of the density ratio to the ``2 / k``.

    `k` is the exponent of the density and `u` the displacement in units of the scale.

    Notes
    -----
    For integer n, G is a polynomial in v of degree n with positive coefficients

    .. math:: c_m = \binom{n}{m} \frac{(n + k/2)_m ((k-1)/2)_m}{(k/2)_{2m}}

    and for other n the series with these coefficients, which converges for v < 4. The
    integral form is

    .. math:: G = \frac{1}{B(1/2, (k-1)/2)} \int_{-\pi/2}^{\pi/2}
              \big(e^{-w} + 2 \sinh w \sin^2(t - s)\big)^n \cos^{k-2} t \, dt

    with ``u = 2 sinh(w / 2)`` and ``tan s = u / 2 + sqrt(1 + u² / 4)``, in which
    nothing cancels. The power is least at s and largest at a right angle from there.
    Quadrature to some 1e-13 relative (1e-12 for k < 2) is rounded up by that.

    Derived here; for k = 2 it is the Legendre function of degree n at ``1 + v / 2``,
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Lemma D.1.
    """
    n, u = np.broadcast_arrays(np.asarray(n, float), np.asarray(u, float))
    shape, arguments = n.shape, np.stack([n.ravel(), u.ravel()])
    if arguments.shape[1] <= _MANY:
        return _log_moments(arguments[0], arguments[1], k).reshape(shape)
    arguments, where = np.unique(arguments, axis=1, return_inverse=True)
    starts = range(0, arguments.shape[1], _BLOCK)
    blocks = [arguments[:, i : i + _BLOCK] for i in starts]
    parts = [_log_moments(block[0], block[1], k) for block in blocks]
    return np.concatenate(parts)[where].reshape(shape)


def _log_moments(n: Floats, u: Floats, k: float) -> Floats:
    value = np.zeros(len(n))
    moves = u > 0
    # without a displacement the ratio of densities is one, and log G zero
    whole = moves & (n == np.rint(n)) & (n <= _LARGEST_DEGREE)
    near = moves & ~whole & (u <= 1) & (n * u <= _SERIES_REACH)
    rest = moves & ~whole & ~near
    if whole.any():
        value[whole] = _polynomial(n[whole], k, u[whole])
    if near.any():
        value[near] = _series(n[near], k, u[near])
    if rest.any():
        value[rest] = _quadrature(n[rest], k, u[rest])
    return value


def moment_slope(n: Floats, k: float) -> Floats:
    """Slope of log G in v at zero, the first coefficient c_1."""
    return n * (n + k / 2) * (k - 1) / 2 / (k / 2 * (k / 2 + 1))


def _polynomial(n: Floats, k: float, u: Floats) -> Floats:
    # a column for each degree: c_m is the product of the ratios c_{j+1} / c_j below it
    degrees = np.arange(int(n.max()))
    n, u = n[:, None], u[:, None]
    falling = n - degrees
    with np.errstate(divide="ignore"):
        ratio = np.log(np.maximum(falling, 0.0)) + _log_ratio(n, k, degrees)
    # coefficients of degrees above n are zero, and stay so
    terms = np.cumsum(ratio, axis=1) + 2 * (degrees + 1) * np.log(u)
    above_one = logsumexp(terms, axis=1)
    total: Floats = np.logaddexp(0.0, above_one)
    return total


def _log_ratio(n: Floats, k: float, m: Indices) -> Floats:
    """Log of c_{m+1} / c_m, except for its factor n - m."""
    upper = (n + k / 2 + m) * ((k - 1) / 2 + m)
    ratio: Floats = np.log(upper / ((m + 1) * (k / 2 + 2 * m) * (k / 2 + 2 * m + 1)))
    return ratio


def _series(n: Floats, k: float, u: Floats) -> Floats:
    m = np.arange(_TERMS)
    n, v = n[:, None], u[:, None] ** 2
    # terms c_m v^m as running products of their ratios; beyond n they alternate
    ratio = (n - m) * np.exp(_log_ratio(n, k, m)) * v
    total: Floats = np.log1p(np.cumprod(ratio, axis=1).sum(axis=1))
    return total


def _nodes(k: float) -> tuple[Floats, Floats, Floats]:
    """Return the double exponential rule on (0, 1): distances from ends, and weights.

    Takahasi and Mori (1974): t = 1 / (1 + exp(-pi sinh(tau))), evenly spaced in tau.
    """
    width, count = (_WIDTH, _NODES) if k >= 2 else (_WIDE, _WIDE_NODES)
    tau = np.arange(-count, count + 1) * width / count
    bent = np.pi * np.sinh(tau)
    left, right = 1 / (1 + np.exp(-bent)), 1 / (1 + np.exp(bent))
    return left, right, np.pi * np.cosh(tau) * left * right * width / count


def _quadrature(n: Floats, k: float, u: Floats) -> Floats:
    left, right, weight = _nodes(k)
    n, u = n[:, None], u[:, None]
    psi = np.arctan2(2.0, u)  # twice the angle between s and pi / 2
    w = 2 * np.arcsinh(u / 2)
    # (length, square of sin(t - s), cos t) in distances from the ends of each panel
    long, half, short = np.pi / 2 - psi / 2, np.pi / 2, psi / 2
    panels: list[tuple[Numbers, Floats, Floats]] = [
        (long, np.cos(long * right) ** 2, np.sin(long * left)),
        (half, np.sin(half * left) ** 2, np.sin(short + half * left)),
        (short, np.sin(short * left) ** 2, np.sin(short * right)),
    ]
    # exp(-w) + 2 sinh(w) square = exp(w) (small + (1 - small) square)
    small = np.exp(-2 * w)
    powers = np.stack(
        [n * (w + np.log(small + (1 - small) * square)) for _, square, _ in panels],
        axis=1,
    )
    log_constant = betaln(0.5, (k - 1) / 2)
    logw = np.stack(
        [
            np.log(length * weight) + (k - 2) * np.log(cosine) - log_constant
            for length, _, cosine in panels
        ],
        axis=1,
    )
    # every second node is a rule of its own, with the root of the error of all of them,
    # as errors fall exponentially with the number of nodes
    fine, coarse = _log_sums(powers, logw, n * w)
    error = _ROUND_OFF if k >= 2 else _WIDE_ERROR
    # rounded up by both: the round-off, and the error that remains, the square of the
    # relative difference
    return fine * (1 + error) + (fine - coarse) ** 2 / fine


def _log_sums(powers: Floats, logw: Floats, largest: Floats) -> tuple[Floats, Floats]:
    """Return logs of the sum of exp(powers + logw), and of twice every second node."""
    terms = powers + logw
    top = terms.max(axis=(1, 2), keepdims=True)
    parts = np.exp(terms - top)
    fine, coarse = (
        top[:, 0, 0] + np.log(total.sum(axis=(1, 2)))
        for total in (parts, 2 * parts[..., ::2])
    )
    # near one, log1p of the sum of exp(logw) (exp(powers) - 1) keeps the digits
    low = largest[:, 0] <= 1
    if low.any():
        excess = np.expm1(powers[low]) * np.exp(logw[low])
        fine[low] = np.log1p(excess.sum(axis=(1, 2)))
        coarse[low] = np.log1p(2 * excess[..., ::2].sum(axis=(1, 2)))
    return fine, coarse


# Orders from which delta is converted for several coordinates.
_ORDERS = np.unique(
    np.concatenate([1 + 10 ** (np.arange(-20, 41) / 10), np.arange(2.0, 257.0)])
)


@dataclass(frozen=True)
class GeneralizedCauchyNoise(MagnitudeNoise):
    r"""Independent noise with density proportional to a power of a Cauchy density.

    .. math:: \frac{1}{s\,B(1/2, (k-1)/2)} \big(1 + (x / s)^2\big)^{-k/2}

    with scale s and exponent k: the Cauchy distribution at k = 2, and in general
    ``s / sqrt(k - 1)`` times Student's t with ``k - 1`` degrees of freedom.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale s of the noise, in the unit of the output.
    exponent : float, default=2.0
        Exponent k, at least 1.05. Below two it warns and serves shifts of one
        coordinate only. The mean of ``|x|`` is finite for k > 2, the variance ``s² / (k
        - 3)`` for k > 3.

    Notes
    -----
    With ``n = k (alpha - 1) / 2`` one coordinate that moves by z costs
    ``log G(z² / s²) / (alpha - 1)``. G is a polynomial of degree n for integer n and an
    integral otherwise. The pure-epsilon cost is ``k asinh(z / (2 s))``.

    A shift of several coordinates is measured in the l2 norm. Its worst displacement is
    taken to have all coordinates equal, of cost ``d log G(z² / (d s²)) / (alpha - 1)``.
    That follows if log G is concave in its argument. It is for k = 2 and integer n, and
    for pure epsilon; else it was verified numerically (k from 2 to 100, orders from
    1.01 to 10001), not proved. **Below k = 2 it fails**, so such exponents are refused
    for several coordinates. If the dimension is unknown, the limit of infinitely many
    coordinates serves them all. Literature states d² for d in the formula for several
    coordinates, which understates the cost from three coordinates on.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Definition 4.6 and Corollary 4.1
    (corrected). Canonne, Kamath and Steinke (2020), The discrete Gaussian for
    differential privacy, Proposition 12 (conversion).

    Examples
    --------
    >>> from skpuffer.noise import GeneralizedCauchyNoise
    >>> noise = GeneralizedCauchyNoise(scale=1.0)
    >>> round(noise.renyi(2, 1.0), 6), round(noise.pure_epsilon(1.0), 6)
    (0.405465, 0.962424)
    """

    exponent: float = 2.0

    family = "generalized_cauchy"
    log_concave = False
    norm = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = check_positive(exponent=self.exponent)
        if exponent < LEAST_EXPONENT:
            raise value_error(
                "shaped.cauchy_exponent_too_small",
                least_exponent=LEAST_EXPONENT,
                exponent=self.exponent,
            )
        if exponent < 2:
            unusual = Statement(
                "shaped.cauchy_exponent_unusual", exponent=self.exponent
            )
            warnings.warn(PrivacyWarning(unusual), stacklevel=3)
        object.__setattr__(self, "exponent", exponent)

    @property
    def unit_variance(self) -> float:  # type: ignore[override] # read, never assigned
        """Variance of one coordinate at scale one; infinite up to exponent 3."""
        return 1 / (self.exponent - 3) if self.exponent > 3 else math.inf

    def _variance(self) -> Numbers:
        squares = np.square(self.scale)
        with np.errstate(invalid="ignore"):  # none at all where the scale is zero
            variance: Numbers = plain(
                np.where(squares > 0, self.unit_variance * squares, 0.0)
            )
        return variance

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        freedom = self.exponent - 1
        return rng.standard_t(freedom, size=shape) / math.sqrt(freedom)

    # -- one coordinate --------------------------------------------------------------

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        alpha, u = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(u, float))
        # the largest loss, k / 2 times log((1 + (x - u)²) / (1 + x²)) at its peak in x
        k = self.exponent
        pure = k * np.arcsinh(u / 2)
        finite = np.isfinite(alpha) & np.isfinite(u)
        rest = np.where(finite, alpha, 2.0) - 1
        moment = log_moment(k / 2 * rest, k, np.where(finite, u, 0.0))
        # costs grow with the order, up to the pure-epsilon cost
        return np.where(finite, np.minimum(moment / rest, pure), pure)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        epsilon, u = np.broadcast_arrays(
            np.asarray(epsilon, float), np.asarray(u, float)
        )
        size = np.abs(epsilon)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # no loss exceeds the pure-epsilon cost
            pure = self.exponent * np.arcsinh(u / 2)
            value = np.where(size >= pure, 0.0, self._above(size, u))
        return np.where(np.isinf(u), 1.0, mirrored(epsilon, value))

    def _above(self, epsilon: Floats, u: Floats) -> Floats:
        """Return the hockey-stick divergence at ``0 <= epsilon <= k asinh(u / 2)``.

        With ``r = exp(2 epsilon / k)`` the moved density is at least exp(epsilon) times
        the other where ``(r - 1) x² - 2 r u x + r (1 + u²) - 1 <= 0``.
        """
        # half the root of the discriminant is sqrt(r u² - (r - 1)²)
        k = self.exponent
        excess = np.expm1(2 * epsilon / k)
        ratio = 1 + excess
        root = np.sqrt(np.maximum(ratio * u**2 - excess**2, 0.0))
        # the smaller root is the product of both over the larger one, and so for roots
        # less u: nothing cancels
        largest = ratio * u + root
        low, high = (excess + ratio * u**2) / largest, largest / excess
        low_moved, high_moved = (excess - u * root) / largest, (u + root) / excess
        width = 2 * root / excess
        still = self._between(low, high, width)
        moved = self._between(low_moved, high_moved, width)
        return np.clip(moved - np.exp(epsilon) * still, 0.0, 1.0)

    def _between(self, low: Floats, high: Floats, width: Floats) -> Floats:
        """Probability of unit noise in [low, high], of the given width."""
        if self.exponent == 2:
            # arctan(high) - arctan(low) by the addition theorem: no cancellation
            angle = np.arctan2(width, 1 + low * high)
            return np.where(np.isinf(high), np.arctan2(1.0, low), angle) / np.pi
        freedom = self.exponent - 1
        root = math.sqrt(freedom)
        # in the lower tail, where probabilities keep their relative accuracy
        flip = low + high > 0
        low, high = np.where(flip, -high, low), np.where(flip, -low, high)
        mass: Floats = stdtr(freedom, high * root) - stdtr(freedom, low * root)
        return mass

    def _u_for(self, alpha: float, epsilon: float) -> float:
        if math.isinf(alpha):
            # k asinh(u / 2) = epsilon, solved for u
            return 2 * math.sinh(min(epsilon / self.exponent, 700.0))
        return largest_argument(partial(self._renyi, alpha), epsilon, start=epsilon)

    # -- several coordinates ---------------------------------------------------------

    def _resolved(self, shift: Shift | Floats) -> tuple[Costs, Numbers]:
        count, magnitude = self._count(shift), self._magnitude(shift)
        return (self if count == 1 else _SeveralCoordinates(self, count)), magnitude

    def _count(self, shift: Shift | Floats) -> float:
        """Number of coordinates that a shift may move; infinity if unknown."""
        if not isinstance(shift, Shift) or shift.structure == "scalar":
            return 1
        count = shift.common_dim(self.dim) or math.inf
        if count > 1 and self.exponent < 2:
            raise value_error(
                "shaped.cauchy_several_coordinates", exponent=self.exponent
            )
        return count


@dataclass(frozen=True)
class _SeveralCoordinates:
    """Costs of a shift of several coordinates: the worst splits it equally."""

    noise: GeneralizedCauchyNoise
    count: float

    _evidence: ClassVar[Evidence] = 2 * (
        (Statement("assume.cauchy_worst_shift_numerical"),),
    )

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Rényi cost of the magnitude u: that of one coordinate times their number."""
        # equal moves of an l2 norm u: u / sqrt(d) in each of d coordinates, costs add
        # up
        if math.isfinite(self.count):
            return self.count * self.noise._renyi(alpha, u / math.sqrt(self.count))
        # the limit of infinitely many coordinates: d log G(u² / d) tends to G'(0) u²
        alpha = np.asarray(alpha, float)
        k = self.noise.exponent
        rest = np.where(np.isinf(alpha), 1.0, alpha - 1)
        with np.errstate(over="ignore"):
            cost = moment_slope(k / 2 * rest, k) / rest * np.square(u)
        return np.where(np.isinf(alpha), math.inf if u > 0 else 0.0, cost)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Bound on the hockey-stick divergence by the Rényi costs at many orders."""
        epsilon = np.asarray(epsilon, float)
        size = np.abs(epsilon)
        pure = self._renyi(math.inf, u)
        if u == 0 or math.isinf(u):
            value = np.where(u > 0, np.ones(epsilon.shape), 0.0)
        else:
            costs = self._renyi(_ORDERS, u)
            value = np.exp(log_delta_of_orders(_ORDERS, costs, size))
            # no loss exceeds the pure-epsilon cost
            value = np.where(size >= pure, 0.0, value)
        return mirrored(epsilon, value)

    def _epsilon(self, delta: float, u: float) -> float:
        """Smallest epsilon with the bound at most delta, rounded up."""
        if math.isinf(u):
            return math.inf
        return smallest_argument(lambda epsilon: self._delta(epsilon, u), delta)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        """Largest u that costs at most epsilon, rounded down."""
        if math.isfinite(self.count):
            share = self.noise._u_for(alpha, epsilon / self.count)
            return math.sqrt(self.count) * share
        if math.isinf(alpha):
            raise value_error("shaped.cauchy_dimension_unknown")
        # the cost is quadratic in u
        return math.sqrt(epsilon / float(self._renyi(alpha, 1.0)))

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Largest u that obeys (epsilon, delta), rounded down."""
        return largest_argument(
            lambda u: float(self._delta(epsilon, u)), delta, start=epsilon
        )
