"""Discrete Laplace noise: integer noise for integer queries."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Numbers
from skpuffer.utils._solve import largest_argument

from ._base import Costs, Evidence, MagnitudeNoise, Shift

# Relative excess over an integer at which a radius is still taken for that integer: it
# is round-off, as displacements within the radius are integers themselves.
_ROUND_OFF = 1e-9

#: Largest scale that is drawn. A geometric draw is made from an exponential one, which
#: is known to 2**-50, so each integer keeps its mass to a relative 2**-18, and to much
#: less as two draws are subtracted. Beyond, low bits would tell values apart.
LARGEST_SCALE = 2.0**32


@dataclass(frozen=True)
class DiscreteLaplaceNoise(MagnitudeNoise):
    r"""Independent noise on the integers, with a two-sided geometric distribution.

    .. math:: P(x) = \frac{1 - t}{1 + t}\, t^{|x|}, \qquad t = e^{-1 / \rho}

    with scale rho. The query must return integers, as counts do (`integer` says so);
    then what is released is an integer too, and no low bits of it give a value away.

    Parameters
    ----------
    scale : float, default=1.0
        Scale rho of the noise, in the unit of the output: one number for all
        coordinates, at most ``2**32``, beyond which draws would skip integers. The
        variance is ``2 t / (1 - t)²``, at most ``2 rho²``.

    Notes
    -----
    Displacements are integers. A shift is measured in the l1 norm, and its radius is
    rounded up to an integer z. One coordinate that moves by z costs, at order alpha,
    ``log(a exp((alpha - 1) z / rho) + (1 - a) exp(-alpha z / rho)) / (alpha - 1)``
    with ``a = (1 - t) / (1 + t) * (1 / (1 - t) + 1 / (t**(1 - 2 alpha) - 1))``: the
    sum over the integers is geometric. The pure-epsilon cost is ``z / rho``.

    No displacement of l1 norm z over several coordinates costs more than z in one, for
    every divergence. Count in a privacy loss of ``(z - 2 i) / rho`` the number i from 0
    to z. One coordinate has it with probability ``1 / (1 + t)`` at i = 0,
    ``t**z / (1 + t)`` at i = z, and ``t**i (1 - t) / (1 + t)`` between. Two coordinates
    with shifts a and b = z - a lose the same values, at both ends with probabilities
    smaller by ``1 + t``, and at 0 < i < z with larger ones: ``t**i / (1 + t)**2`` times
    at least ``2 (1 - t) + (min(i, a, b, z - i) - 1) (1 - t)**2``, which is above
    ``(1 - t) (1 + t)``. The likelihood ratio has mean one in either case. Two
    distributions of equal mean whose masses differ with signs + - + are ordered in the
    convex order, which is the claim; further coordinates follow one by one.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing privacy
    mechanisms. Shaked and Shanthikumar (2007), Stochastic Orders, Theorem 3.A.44.

    Examples
    --------
    >>> from skpuffer.noise import DiscreteLaplaceNoise
    >>> noise = DiscreteLaplaceNoise(scale=2.0)
    >>> noise.pure_epsilon(3)
    1.5
    >>> round(noise.renyi(2, 3), 6)
    1.137906
    >>> noise.sample(5, 0).tolist()
    [-2.0, -1.0, -2.0, -1.0, -2.0]
    """

    scale: float = 1.0

    family = "discrete_laplace"
    norm = 1.0
    integer: ClassVar[bool] = True
    _exact_trade_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.scale):
            raise ValueError(
                Statement("noise.discrete_laplace_several_scales", scale=self.scale)
            )
        self._check_drawn()

    def _check_drawn(self) -> None:
        if self.scale > LARGEST_SCALE:
            raise ValueError(
                Statement("noise.discrete_laplace_scale_too_large", scale=self.scale)
            )

    @property
    def unit_variance(self) -> float:  # type: ignore[override] # read, never assigned
        """Variance at scale one; at others it is not in proportion to their square."""
        return self.with_scale(1.0)._variance()

    def _variance(self) -> float:
        if not self.scale:
            return 0.0
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        self._check_drawn()  # also if unpickled, which constructs nothing
        # drawn at this scale at once: scaled draws of scale one would be no integers
        if not self.scale:
            return np.zeros(shape)
        # the difference of two geometric variables with success probability 1 - t
        rate = -math.expm1(-1 / self.scale)
        return (rng.geometric(rate, shape) - rng.geometric(rate, shape)).astype(float)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return self._sample_unit(shape, rng)

    def _interval_width(self, level: float) -> float:
        # P(|x| > k) = 2 t^(k+1) / (1 + t), at whole numbers k alone
        t = math.exp(-1 / self.scale)
        tail = math.log((1 - level) * (1 + t) / 2) * -self.scale
        whole = max(0, math.ceil(tail * (1 - 1e-12)) - 1)
        return whole / math.sqrt(self._variance())

    # -- the magnitude is the displacement itself, an integer z (inf without noise) ----

    def _magnitude(self, shift: Shift | Floats) -> Numbers:
        """Smallest integer radius that covers a shift, or each one of an array."""
        moves = shift.magnitude(1.0, self.norm) if isinstance(shift, Shift) else shift
        spare = np.minimum(_ROUND_OFF * np.maximum(moves, 1.0), 0.5)
        whole = np.ceil(np.maximum(moves - spare, 0.0))
        # a positive radius within the round-off of zero still allows a move by one
        whole = np.where(np.greater(moves, 0), np.maximum(whole, 1.0), 0.0)
        return np.where(whole > 0, math.inf if self.is_zero else whole, 0.0)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Rényi divergence, the geometric series summed; see the class.

        What cancels for small shifts is taken out beforehand.

        With ``b = alpha - 1/2``, w the pure-epsilon cost and the ratio r of the
        hyperbolic tangents of ``1 / (2 rho)`` and ``b / rho``, the moment is
        ``exp(-w/2) (cosh(b w) + r sinh(b w))``.
        """
        alpha, z = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(u, float))
        scale = np.asarray(self.scale)  # its zero divides in silence
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            w = np.where(z > 0, z / scale, 0.0)
            pure = np.isinf(alpha) | np.isinf(w)
            rest = np.minimum(alpha, 1e300) - 1
            b = rest + 0.5
            ratio = np.tanh(0.5 / scale) / np.tanh(b / scale)
            # exp(w/2) (moment - 1) = cosh(b w) - cosh(w/2) + r sinh(b w) - sinh(w/2),
            # the first difference as 2 sinh((b + 1/2) w/2) sinh((b - 1/2) w/2)
            small = 2 * np.sinh((rest + 1) * w / 2) * np.sinh(rest * w / 2)
            small += ratio * np.sinh(b * w) - np.sinh(w / 2)
            # rounded up by what the last difference may have lost
            small = np.exp(-w / 2) * (small + 1e-15 * b * w)
            # exp(rest w) taken out of the moment: (1 + r)/2 + (1 - r)/2 exp(-2 b w) is
            # left
            large = (
                np.log1p(ratio)
                - math.log(2)
                + np.log1p((1 - ratio) / (1 + ratio) * np.exp(-2 * b * w))
            )
            cost = np.where(b * w <= 1, np.log1p(small) / rest, w + large / rest)
        # the order inf costs w itself, and no order costs more
        return np.where(z == 0, 0.0, np.where(pure, w, np.minimum(cost, w)))

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Hockey-stick divergence: P(L > e) - exp(e) Q(L > e), in closed form.

        The privacy loss L takes the values ``(2 m - z) / rho``; with the least m whose
        loss exceeds epsilon, both probabilities are geometric sums.
        """
        epsilon, z = np.broadcast_arrays(
            np.asarray(epsilon, float), np.asarray(u, float)
        )
        scale = np.asarray(self.scale)  # its zero divides in silence
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            w = np.where(z > 0, z / scale, 0.0)
            t = np.exp(-1 / scale)
            m = np.clip(np.floor((epsilon * scale + z) / 2) + 1, 1, None)
            inside = -np.expm1(epsilon - m / scale)
            inside -= t * np.expm1(-(z - m) / scale)
            value = np.where(epsilon <= -w, -np.expm1(epsilon), inside / (1 + t))
        value = np.where(epsilon >= w, 0.0, value)
        return np.where(np.isinf(w), 1.0, value)

    def _resolved(self, shift: Shift | Floats) -> tuple[Costs, Numbers]:
        z = self._magnitude(shift)
        # z is an array for many shifts, of which nobody asks for a scale
        return _IntegerCosts(self, z), z  # type: ignore[arg-type]


@dataclass(frozen=True)
class _IntegerCosts:
    """Costs of a displacement by z, which depend on z and on the scale rho apart.

    A search for a scale is one for the ratio ``z / rho``, at this z.

    Parameters
    ----------
    noise : DiscreteLaplaceNoise
    z : float or ndarray
    """

    noise: DiscreteLaplaceNoise
    z: float

    # all of it is proved, for Rényi costs and for trade-offs
    _evidence: ClassVar[Evidence] = ((), ())

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        return self.noise._renyi(alpha, u)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        return self.noise._delta(epsilon, u)

    def _epsilon(self, delta: float, u: float) -> float:
        return self.noise._epsilon(delta, u)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        """Largest ``z / rho`` that costs at most epsilon, rounded down."""
        if math.isinf(alpha):
            return epsilon
        return self._largest_ratio(epsilon, lambda noise: noise._renyi(alpha, self.z))

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Largest ``z / rho`` that obeys (epsilon, delta), rounded down."""
        return self._largest_ratio(
            delta, lambda noise: noise._delta(epsilon, self.z), start=epsilon
        )

    def _largest_ratio(
        self,
        target: float,
        cost: Callable[[DiscreteLaplaceNoise], Floats],
        start: float | None = None,
    ) -> float:
        z, family = self.z, self.noise
        if z == 0 or math.isinf(z):
            return 1.0  # no scale needed, or none enough, whatever the ratio
        least = z / LARGEST_SCALE
        if cost(family.with_scale(LARGEST_SCALE)) > target:
            # leads to a scale beyond the largest, which is refused with the reason
            return least * (1 - _ROUND_OFF)
        # the search may ask below, where no scale is allowed: the largest stands in
        return largest_argument(
            lambda ratio: float(cost(family.with_scale(z / max(ratio, least)))),
            target,
            start=target if start is None else start,
        )
