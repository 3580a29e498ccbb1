"""What noise against a shift costs, from its density, by another path.

Here a cost is an integral, or the classical closed form, of a single coordinate that
moves by as many scales as the shift is long.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats


class NoiseShift(ABC):
    """Noise of scale one against a move of one coordinate, `u` long."""

    #: Whether further moves along other coordinates have been taken into account.
    def __init__(self, u: float) -> None:
        self.u = u

    @property
    def mu(self) -> float | None:
        """The distance in standard deviations, of Gaussian noise."""
        return None

    @abstractmethod
    def delta(self, epsilon: Floats) -> Floats:
        """Hockey-stick divergence at exp(epsilon), for an array."""

    @abstractmethod
    def renyi(self, alpha: float) -> float:
        """Rényi divergence of an order, in nats."""

    def times(self, factor: float) -> NoiseShift:
        """Return the same noise against a multiple of the move."""
        return type(self)(self.u * factor)


class GaussianShift(NoiseShift):
    """N(u, 1) against N(0, 1)."""

    @property
    def mu(self) -> float:
        """The move."""
        return self.u

    def delta(self, epsilon: Floats) -> Floats:
        """Probability of the loss beyond epsilon, and what the other law has of it."""
        e = np.asarray(epsilon, float)
        if self.u == 0:
            none: Floats = np.maximum(0.0, -np.expm1(e))
            return none
        # the loss at x is u (x - u / 2), so it exceeds epsilon from here on
        x = e / self.u + self.u / 2
        first, second = special.log_ndtr(self.u - x), e + special.log_ndtr(-x)
        value: Floats = -np.exp(first) * np.expm1(np.minimum(second - first, 0.0))
        return value

    def renyi(self, alpha: float) -> float:
        """Order times half the squared distance (van Erven and Harremoës 2014)."""
        if self.u == 0:
            return 0.0
        return alpha * self.u**2 / 2


class LaplaceShift(NoiseShift):
    """Two Laplace distributions of scale one at a distance."""

    def delta(self, epsilon: Floats) -> Floats:
        """``1 - exp((epsilon - u) / 2)`` between -u and u."""
        e = np.asarray(epsilon, float)
        inside = -np.expm1(np.minimum(e - self.u, 0.0) / 2)
        value: Floats = np.where(e < -self.u, -np.expm1(e), inside)
        return value

    def renyi(self, alpha: float) -> float:
        """Mironov (2017), Proposition 6."""
        u = self.u
        if math.isinf(alpha):
            return u
        rising = math.log(alpha / (2 * alpha - 1)) + (alpha - 1) * u
        falling = math.log((alpha - 1) / (2 * alpha - 1)) - alpha * u
        return float(np.logaddexp(rising, falling)) / (alpha - 1)


class RandomisedResponse(NoiseShift):
    """Two answers of odds exp(u), which tell all that a pure promise of u may."""

    def delta(self, epsilon: Floats) -> Floats:
        """The larger mass less exp(epsilon) times the smaller."""
        e = np.asarray(epsilon, float)
        most = 1 / (1 + math.exp(-self.u))
        value: Floats = np.maximum(
            0.0, most - np.exp(np.minimum(e, 700.0)) * (1 - most)
        )
        least: Floats = np.maximum(value, -np.expm1(np.minimum(e, 0.0)))
        return least

    def renyi(self, alpha: float) -> float:
        """From the two masses."""
        if math.isinf(alpha) or self.u == 0:
            return self.u
        p, q = -np.logaddexp(0, -self.u), -np.logaddexp(0, self.u)
        both = np.logaddexp(alpha * p + (1 - alpha) * q, alpha * q + (1 - alpha) * p)
        return float(both) / (alpha - 1)


class DiscreteLaplaceShift(NoiseShift):
    """Two-sided geometric distributions `u` integers apart."""

    def __init__(self, u: float, scale: float) -> None:
        super().__init__(u)
        self.scale = scale
        reach = int(45 * scale) + 2
        if reach > 10**6 or u > 10**6:
            raise NotRecomputableError("so many integers are not summed up here")
        x = np.arange(-reach, int(u) + reach + 1)
        self._loss = (np.abs(x) - np.abs(x - u)) / scale
        weight = np.exp(-np.abs(x) / scale)
        self._first = np.exp(-np.abs(x - u) / scale) / weight.sum()
        self._second = weight / weight.sum()

    def times(self, factor: float) -> NoiseShift:
        """Return the same noise against a multiple of the move."""
        return DiscreteLaplaceShift(self.u * factor, self.scale)

    def delta(self, epsilon: Floats) -> Floats:
        """Summed up over the integers where the loss, which rises, is beyond it."""
        e = np.asarray(epsilon, float)
        at = np.searchsorted(self._loss, e, side="right")
        first, second = (
            np.append(np.cumsum(masses[::-1])[::-1], 0.0)[at]
            for masses in (self._first, self._second)
        )
        value: Floats = np.maximum(first - np.exp(np.minimum(e, 700.0)) * second, 0.0)
        return value

    def renyi(self, alpha: float) -> float:
        """Summed up over the integers."""
        if math.isinf(alpha):
            return self.u / self.scale
        total = np.sum(self._second * np.exp(alpha * self._loss))
        return float(np.log(total)) / (alpha - 1)


class DensityShift(NoiseShift):
    """Noise of a density whose loss rises, at a distance: by quadrature."""

    @abstractmethod
    def log_density(self, x: Any) -> Any:
        """Logarithm of the density of noise of scale one."""

    @property
    @abstractmethod
    def law(self) -> Any:
        """The same as a distribution of SciPy."""

    def loss(self, x: Any) -> Any:
        """Privacy loss at x."""
        return self.log_density(x - self.u) - self.log_density(x)

    def renyi(self, alpha: float) -> float:
        """Mean of a power of the ratio, over pieces between which it is smooth."""
        u = self.u
        if u == 0:
            return 0.0
        if math.isinf(alpha):
            return self._largest_loss()

        def exponent(x: Any) -> Any:
            first, second = self.log_density(x - u), self.log_density(x)
            return alpha * first + (1 - alpha) * second

        # where most of it is, found first
        grid = np.concatenate(
            [np.linspace(-60, 60, 4001), u + np.linspace(-60, 60, 4001)]
        )
        heights = exponent(grid)
        top, at = float(np.max(heights)), float(grid[int(np.argmax(heights))])
        marks = sorted(
            {-400.0, -40.0, 0.0, u / 2, u, at - 3, at, at + 3, u + 40, u + 400}
        )
        total = sum(
            integrate.quad(
                lambda x: math.exp(exponent(x) - top),
                a,
                b,
                epsabs=0,
                epsrel=1e-11,
                limit=400,
            )[0]
            for a, b in zip(marks, marks[1:], strict=False)
        )
        total += self._tails(exponent, top, marks[0], marks[-1])
        return (math.log(total) + top) / (alpha - 1)

    def _tails(
        self, exponent: Callable[[float], float], top: float, low: float, high: float
    ) -> float:
        def height(x: float) -> float:
            return math.exp(exponent(x) - top)

        left = integrate.quad(height, -math.inf, low)[0]
        right = integrate.quad(height, high, math.inf)[0]
        return float(left + right)

    def _largest_loss(self) -> float:
        return math.inf


class GeneralizedGaussianShift(DensityShift):
    """Density proportional to ``exp(-|x|^beta)``."""

    def __init__(self, u: float, beta: float) -> None:
        super().__init__(u)
        self.beta = beta

    def times(self, factor: float) -> NoiseShift:
        """Return the same noise against a multiple of the move."""
        return GeneralizedGaussianShift(self.u * factor, self.beta)

    @property
    def law(self) -> Any:
        """The generalised normal distribution."""
        return stats.gennorm(self.beta)

    def log_density(self, x: Any) -> Any:
        """Logarithm of the density."""
        return -(np.abs(x) ** self.beta) - math.log(2 * math.gamma(1 + 1 / self.beta))

    def delta(self, epsilon: Floats) -> Floats:
        """Beyond the one point where the loss, which rises, is epsilon."""
        e = np.asarray(epsilon, float)
        if self.u == 0:
            none: Floats = np.maximum(0.0, -np.expm1(e))
            return none
        low, high = np.full(e.shape, -1.0), np.full(e.shape, self.u + 1.0)
        # the loss grows without bound on either side, as beta is above one
        for _ in range(200):
            low = np.where(self.loss(low) > e, 2 * low, low)
            high = np.where(self.loss(high) < e, 2 * high, high)
        for _ in range(70):
            middle = (low + high) / 2
            above = self.loss(middle) > e
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        first, second = self.law.sf(high - self.u), self.law.sf(high)
        value: Floats = np.maximum(0.0, first - np.exp(np.minimum(e, 700.0)) * second)
        return value


class GeneralizedCauchyShift(DensityShift):
    """Density proportional to ``(1 + x^2)^(-k / 2)``."""

    def __init__(self, u: float, exponent: float) -> None:
        super().__init__(u)
        self.exponent = exponent

    def times(self, factor: float) -> NoiseShift:
        """Return the same noise against a multiple of the move."""
        return GeneralizedCauchyShift(self.u * factor, self.exponent)

    @property
    def law(self) -> Any:
        """A multiple of Student's t."""
        freedom = self.exponent - 1
        return stats.t(freedom, scale=1 / math.sqrt(freedom))

    def log_density(self, x: Any) -> Any:
        """Logarithm of the density."""
        k = self.exponent
        constant = math.lgamma(0.5) + math.lgamma((k - 1) / 2) - math.lgamma(k / 2)
        return -k / 2 * np.log1p(np.square(x)) - constant

    def delta(self, epsilon: Floats) -> Floats:
        """Between the two points where the loss is epsilon."""
        e = np.asarray(epsilon, float)
        # 1 + x² >= c (1 + (x - u)²) for c = exp(2 epsilon / k), solved for x
        c, u = np.exp(2 * e / self.exponent), self.u
        c = np.where(np.abs(c - 1) < 1e-12, 1 + 1e-12, c)
        square = c * (u * u - (c - 1) ** 2 / c)
        root = np.sqrt(np.maximum(square, 0.0))
        ends = (c * u - root) / (c - 1), (c * u + root) / (c - 1)
        low, high = np.minimum(*ends), np.maximum(*ends)
        first = self.law.cdf(high - u) - self.law.cdf(low - u)
        second = self.law.cdf(high) - self.law.cdf(low)
        inside = np.where(square > 0, first - np.exp(e) * second, 0.0)
        # below zero it is outside of the two points that the loss exceeds epsilon
        value: Floats = np.where(c > 1, inside, -np.expm1(e) - inside)
        return value

    def _largest_loss(self) -> float:
        found = optimize.minimize_scalar(
            lambda x: -float(self.loss(x)),
            bounds=(0, 2 * self.u + 2),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(-found.fun)


def noise_shift(noise: dict[str, Any], shift: dict[str, Any]) -> NoiseShift:
    """Return the noise of a certificate against a shift, as one coordinate's move."""
    family = noise["family"]
    if family == "gaussian":
        return GaussianShift(_length(noise, shift, 2.0))
    if family == "laplace":
        return LaplaceShift(_length(noise, shift, 1.0))
    if family == "l2_laplace":
        return RandomisedResponse(_length(noise, shift, 2.0))
    if family == "discrete_laplace":
        move = _length({"scale": 1.0}, shift, 1.0)
        # displacements are whole numbers
        return DiscreteLaplaceShift(
            math.ceil(move - 1e-9 * move), number(noise["scale"])
        )
    if family == "generalized_gaussian":
        return _generalized_gaussian(noise, shift)
    if family == "generalized_cauchy":
        _one_coordinate(shift, noise)
        return GeneralizedCauchyShift(_length(noise, shift, 2.0), noise["exponent"])
    if family == "correlated_gaussian" and number(shift["norm"]) == 2:
        return GaussianShift(_across(noise, shift))
    raise NotRecomputableError(
        f"the worst direction of {family} noise is found by a search of its own"
    )


def _generalized_gaussian(noise: dict[str, Any], shift: dict[str, Any]) -> NoiseShift:
    beta = float(noise["beta"])
    if beta == 1:
        return LaplaceShift(_length(noise, shift, 1.0))
    if beta == 2:
        return GaussianShift(math.sqrt(2) * _length(noise, shift, 2.0))
    # log-concave: by its l1 norm a shift costs no more than along one coordinate
    if number(shift["norm"]) > 1:
        _one_coordinate(shift, noise)
    return GeneralizedGaussianShift(_length(noise, shift, 1.0), beta)


def _across(noise: dict[str, Any], shift: dict[str, Any]) -> float:
    """Longest move of an l2 ball along the axis in which the noise varies least."""
    if shift["weights"] is not None or shift["structure"] != "vector":
        raise NotRecomputableError("the worst direction of weighted moves is a search")
    variances = np.linalg.eigvalsh(np.array(noise["covariance"], float))
    # beside a covariance there is one scale, and of several the least counts
    least = float(np.min(variances)) * float(np.min(noise["scale"])) ** 2
    return number(shift["radius"]) / math.sqrt(least) if least > 0 else math.inf


def _one_coordinate(shift: dict[str, Any], noise: dict[str, Any]) -> None:
    if shift["dim"] != 1 and shift["structure"] != "scalar":
        raise NotRecomputableError(
            f"of several coordinates the worst direction of {noise['family']} noise is "
            "found by a search of its own"
        )


def _length(noise: dict[str, Any], shift: dict[str, Any], norm: float) -> float:
    """Longest move of the shift in a norm, in scales of the noise."""
    radius, own = number(shift["radius"]), number(shift["norm"])
    scale = np.asarray(noise["scale"], float)
    weights = np.asarray(shift["weights"] or 1.0, float)
    if radius == 0:
        return 0.0
    if not np.all(scale > 0):
        return math.inf
    dim = shift["dim"]
    if scale.ndim and weights.ndim and len(scale) != len(weights):
        raise NotRecomputableError("scales and weights are of different dimensions")
    ratio = weights / scale
    if shift["structure"] == "scalar" or own <= norm:
        return radius * float(np.max(ratio))
    if ratio.ndim == 0:
        if dim is None:
            raise NotRecomputableError("the dimension of the shift is not stated")
        if dim > 10**7:
            raise NotRecomputableError("the dimension of the shift is too large")
        ratio = np.full(int(dim), float(ratio))
    # The longest vector in one norm of those bounded in another lies where each
    # coordinate is a power of its weight (equality in Hölder's inequality).
    power = 1 / (own / norm - 1) if math.isfinite(own) else 0.0
    direction = ratio**power if power else np.ones_like(ratio)
    direction = direction / np.linalg.norm(direction, own)
    return radius * float(np.linalg.norm(direction * ratio, norm))


# -- numbers of a certificate's data, and what is not recomputed of them ---------------


Floats = NDArray[np.float64]

#: Beyond it no epsilon is looked for.
_FARTHEST = 1e6


class NotRecomputableError(Exception):
    """A number does not follow from the file by any path there is here; why not."""


def number(value: Any) -> float:
    """Return a number of the schema, in which infinity is a text."""
    return float(value)


def smallest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the smallest ``epsilon >= 0`` at which a trade-off is at most delta."""
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
        if high > _FARTHEST:
            return math.inf
    found = optimize.brentq(lambda e: delta_at(e) - delta, 0.0, high, xtol=1e-13)
    return float(found)
