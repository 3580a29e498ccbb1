"""Laplace noise: its cost depends on the l1 norm of a displacement."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import hyp1f1

from skpuffer.kernel.numbers import Floats, Numbers
from skpuffer.utils._solve import raise_until

from ._base import MagnitudeNoise


@dataclass(frozen=True)
class LaplaceNoise(MagnitudeNoise):
    """Independent noise with density ``exp(-|x| / scale) / (2 scale)``.

    A shift is measured in the l1 norm. One that is bounded in another norm is
    converted, which costs a power of the dimension: using an l2 bound as it stands
    would promise too much.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale of the noise, in the unit of the output; the standard deviation is
        ``sqrt(2) * scale``.

    Notes
    -----
    In R^d no displacement of l1 norm u costs more than the same u in one coordinate,
    for the Rényi divergence by Pierquin et al. (2024), Lemma B.1 and Corollary 3.1.
    It holds for every hockey-stick divergence too. Write D(e; u) for the divergence
    of one coordinate at exp(e). For shifts a <= b of two coordinates it is the mean of
    D(e - L; b) over the privacy loss L of the first, which has mass 1/2 at a, mass
    exp(-a)/2 at -a, and density exp((l - a)/2)/4 between. For 0 <= e < a + b and
    q = exp((e - a - b)/2) the integral is 1 - q - q (a + b - e)/4 if e > b - a, and
    1 - q - q a/2 otherwise: either is at most 1 - q = D(e; a + b). By the symmetry of
    the noise D(e; u) = 1 - exp(e) + exp(e) D(-e; u), which settles e < 0. Further
    coordinates only average the inequality over their losses, one after the other.

    Examples
    --------
    >>> from skpuffer.noise import LaplaceNoise
    >>> noise = LaplaceNoise(scale=2.0)
    >>> noise.pure_epsilon(1.0)
    0.5
    >>> round(noise.renyi(2, 1.0), 6)
    0.200304
    """

    family = "laplace"
    _exact_trade_off = True
    norm = 1.0
    unit_variance = 2.0

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.laplace(size=shape)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Rényi divergence by Pierquin et al. (2024), Corollary 3.1, rearranged.

        The formula log(a e^{(α-1)u} + b e^{-αu}) / (α-1), with a = α/(2α-1) and
        b = (α-1)/(2α-1), is about αu²/2 for small u: the orders zero and one cancel.
        As a + b = 1 and a(α-1) = bα they can be taken out beforehand, which leaves a
        sum of positive terms. For large (α-1)u the growing factor is taken out instead.
        """
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        pure = np.isinf(alpha) | np.isinf(u)
        alpha = np.minimum(alpha, 1e300)  # 2 alpha must not overflow
        with np.errstate(over="ignore", invalid="ignore"):
            rest = alpha - 1
            a, b = alpha / (alpha + rest), rest / (alpha + rest)
            # a exp(rest u) + b exp(-alpha u) - 1: the linear terms cancel
            small = a * exp_remainder(rest * u) + b * exp_remainder(-alpha * u)
            cost = np.where(
                rest * u <= 1,
                np.log1p(small) / rest,
                # exp(rest u) taken out: it would overflow
                u + np.log(a + b * np.exp(-(alpha + rest) * u)) / rest,
            )
        # the order inf costs u itself, and no order costs more
        return np.where(pure, u, np.minimum(cost, u))

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Hockey-stick divergence: P(L > e) - exp(e) Q(L > e), in closed form.

        The privacy loss L lies in [-u, u]. For e inside, P(L > e) is
        1 - exp((e - u)/2)/2 and Q(L > e) is exp(-(e + u)/2)/2, so the difference is
        1 - exp((e - u)/2). For e >= u it is zero, and for e <= -u it is 1 - exp(e).
        """
        epsilon, u = np.asarray(epsilon, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = -np.expm1((epsilon - u) / 2)
            # below the smallest loss every output counts: 1 - exp(epsilon)
            value = np.where(epsilon <= -u, -np.expm1(epsilon), inside)
        value = np.where(epsilon >= u, 0.0, value)
        # without noise the two distributions are disjoint
        return np.where(np.isinf(u), 1.0, value)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        # the pure-epsilon cost of u is u itself
        return epsilon if math.isinf(alpha) else super()._u_for(alpha, epsilon)

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        # 1 - exp((epsilon - u) / 2) = delta, solved for u
        return epsilon - 2 * math.log1p(-delta)

    def _interval_width(self, level: float) -> float:
        # P(|x| > t) = exp(-t) at scale one, of variance 2
        return -math.log1p(-level) / math.sqrt(2)

    def _epsilon(self, delta: float, u: float) -> float:
        # 1 - exp((epsilon - u) / 2) = delta, solved for epsilon
        epsilon = u + 2 * math.log1p(-delta)
        if epsilon <= 0 or math.isinf(u):
            return max(0.0, epsilon)
        return raise_until(lambda e: self._delta(e, u) <= delta, epsilon)


def exp_remainder(x: Numbers) -> Floats:
    """Return exp(x) - 1 - x to full relative accuracy.

    Near zero by its Taylor series, x²/2 times Kummer's function M(1, 3, x).
    """
    # outside [-1, 1] the difference keeps its digits
    near = np.clip(x, -1, 1)
    return np.where(x == near, near**2 / 2 * hyp1f1(1, 3, near), np.expm1(x) - x)
