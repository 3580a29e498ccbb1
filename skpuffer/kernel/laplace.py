"""Kinds of Laplace noise, and the noise of scores."""

import math
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from scipy.special import hyp1f1

from skpuffer.exceptions import unsupported_error, value_error
from skpuffer.kernel.noise import MagnitudeNoise, Noise, Shift, raise_until
from skpuffer.kernel.numbers import Floats, Numbers


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
            raise value_error("noise.discrete_laplace_several_scales", scale=self.scale)
        self._check_drawn()

    def _check_drawn(self) -> None:
        if self.scale > LARGEST_SCALE:
            raise value_error(
                "noise.discrete_laplace_scale_too_large", scale=self.scale
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


class _SelectionNoise(Noise):
    """Base of noise on scores: it is no noise of numbers, and hides no vector."""

    family = "selection"
    by_name: ClassVar[bool] = False
    norm = float("inf")

    @property
    def has_bounded_loss(self) -> bool:
        """Whether a large enough scale keeps a pure promise: about choices, it does."""
        return True

    def _resolved(self, shift: Shift | Floats) -> NoReturn:
        raise unsupported_error(
            "noise.selection_hides_no_vector", family=self.family.capitalize()
        )


@dataclass(frozen=True)
class GumbelNoise(_SelectionNoise):
    """Independent noise of scores of which only the place of the largest leaves.

    The largest of noisy scores is the exponential mechanism: each candidate is taken
    with probability proportional to ``exp(score / scale)``. As noise of a vector it is
    refused.

    Parameters
    ----------
    scale : float, default=1.0
        In the unit of the scores.

    See Also
    --------
    skpuffer.privacy_loss.BoundedRangePair : Cost of one selection.

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy.

    Examples
    --------
    >>> from skpuffer.noise import GumbelNoise
    >>> round(float(GumbelNoise(scale=2.0).std()), 6)
    2.5651
    """

    family = "gumbel"
    unit_variance: ClassVar[float] = np.pi**2 / 6

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.gumbel(size=shape)


@dataclass(frozen=True)
class ExponentialNoise(_SelectionNoise):
    """Independent one-sided noise of scores of which only the largest's place leaves.

    The largest of finitely many noisy scores is permute-and-flip: candidates are asked
    in random order, and each is taken with probability ``exp((score - best score) /
    scale)``. At the same scale no number of ranks is exceeded more often than by Gumbel
    noise.

    Parameters
    ----------
    scale : float, default=1.0
        In the unit of the scores.

    See Also
    --------
    skpuffer.privacy_loss.PurePair : Cost of one selection.

    Notes
    -----
    Given the noise of all others, a candidate is the largest if its own exceeds some
    level, which has probability ``exp(-max(level, 0) / scale)``. If scores move by
    amounts of a range of r, the level moves by r at most, and the probability by a
    factor of ``exp(r / scale)`` at most. That a loss is at most ``r / scale``, either
    way, is all that is proved.

    References
    ----------
    McKenna and Sheldon (2020), Permute-and-flip: a new mechanism for differentially
    private selection; Ding et al. (2021), The permute-and-flip mechanism is identical
    to report-noisy-max with exponential noise.

    Examples
    --------
    >>> from skpuffer.noise import ExponentialNoise
    >>> float(ExponentialNoise(scale=2.0).std())
    2.0
    """

    family = "exponential"
    unit_variance: ClassVar[float] = 1.0

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.exponential(size=shape)
