"""Rényi moments of generalised Cauchy noise in one dimension.

With noise of density proportional to ``(1 + x²)^(-k/2)``, displacement u and
``n = k (alpha - 1) / 2``, the exponential of ``alpha - 1`` times the Rényi divergence
is a function G of n, k and ``v = u²``. Its logarithm is computed here, in three ways:
as a polynomial for integer n, by its power series for small v, and by quadrature.
"""

import numpy as np
from scipy.special import betaln, logsumexp

from skpuffer.utils._types import Floats, Indices, Numbers

__all__ = ["LEAST_EXPONENT", "log_moment", "moment_slope"]

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
    r"""Log of the Rényi moment G: of order n, of the density ratio to the ``2 / k``.

    Parameters
    ----------
    n : float or ndarray
        Positive, finite.
    k : float
        Exponent of the density, at least `LEAST_EXPONENT`.
    u : float or ndarray
        Displacement in units of the scale, at least zero, finite.

    Returns
    -------
    value : ndarray
        At least zero, increasing in n and u; to some 1e-13 relative (1e-12 for k < 2),
        which quadrature is rounded up by.

    Notes
    -----
    For integer n, G is a polynomial in v of degree n with positive coefficients

    .. math:: c_m = \binom{n}{m} \frac{(n + k/2)_m ((k-1)/2)_m}{(k/2)_{2m}}

    and for other n the series with these coefficients, which converges for v < 4. The
    integral form is

    .. math:: G = \frac{1}{B(1/2, (k-1)/2)} \int_{-\pi/2}^{\pi/2}
              \big(e^{-w} + 2 \sinh w \sin^2(t - s)\big)^n \cos^{k-2} t \, dt

    with ``u = 2 sinh(w / 2)`` and ``tan s = u / 2 + sqrt(1 + u² / 4)``, in which
    nothing cancels. The power is least at s and largest at a right angle from there,
    where the integral is split.

    References
    ----------
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
    """Double exponential rule on (0, 1): nodes' distances from both ends, and weights.

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
    """Logs of the sum of exp(powers + logw), and of twice that over every second node.

    The exp(logw) add up to one.
    """
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
