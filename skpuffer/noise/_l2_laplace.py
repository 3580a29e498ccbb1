"""Laplace noise whose length, and not each coordinate, has a Laplace-like law."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import MagnitudeNoise, largest_argument
from skpuffer.kernel.numbers import Floats, Numbers, check_count

__all__ = ["L2LaplaceNoise"]


@dataclass(frozen=True)
class L2LaplaceNoise(MagnitudeNoise):
    """Noise with density proportional to ``exp(-|x|_2 / scale)``.

    One draw is the noise of one whole vector: its direction is uniform and its length
    has a gamma distribution. A shift is measured in l2, which takes less noise wherever
    the l1 norm of a record is far above its l2 norm.

    Parameters
    ----------
    scale : float or array-like of shape (dim,), default=1.0
        Scale of the noise, in the unit of the output. The standard deviation of a
        coordinate of d is ``sqrt(d + 1) * scale``.

    Notes
    -----
    A displacement of length u in units of the scale changes the density by a factor of
    at most ``exp(u)``. Orders and deltas above zero are those of randomised response of
    u: upper bounds that are not attained (Kairouz et al. 2015, Theorem 8).

    It is for releases of one vector, by :class:`~skpuffer.accountants.GroupPrivacy` and
    :class:`~skpuffer.accountants.GeneralWasserstein`; other accountants refuse it.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011), Differentially private empirical risk
    minimization, Algorithm 1; Kairouz, Oh and Viswanath (2015), The composition theorem
    for differential privacy.

    Examples
    --------
    >>> from skpuffer.noise import L2LaplaceNoise, Shift
    >>> noise = L2LaplaceNoise(scale=2.0)
    >>> noise.pure_epsilon(Shift(1.0, norm=2, dim=100)), float(noise.std(99)[0])
    (0.5, 20.0)
    """

    family = "l2_laplace"
    norm = 2.0
    joint: ClassVar[bool] = True
    by_name: ClassVar[bool] = False

    @property
    def unit_variance(self) -> float:  # type: ignore[override] # read, never assigned
        """Variance of a coordinate at scale one, which depends on how many there are.

        Raises
        ------
        ValueError
            If the noise has no dimension; `variance` can be told one.
        """
        if self.dim is None:
            raise value_error("noise.l2_laplace_dimension_needed")
        return self.dim + 1.0

    def variance(self, dim: int | None = None) -> Numbers:
        """Return the variance of each coordinate; see :class:`Noise`."""
        if dim is None or self.dim is not None:
            return super().variance(dim)
        # the mean squared length d (d + 1) in equal parts
        dim = check_count(dim=dim)
        return np.full(dim, (dim + 1.0) * float(np.square(self.scale)))

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        # a number alone is a vector of one coordinate
        whole = shape or (1,)
        direction = rng.normal(size=whole)
        length = np.linalg.norm(direction, axis=-1, keepdims=True)
        radius = rng.gamma(whole[-1], size=(*whole[:-1], 1)) if whole[-1] else 0.0
        draws: Floats = direction / length * radius
        return draws.reshape(shape)

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi divergence of randomised response that keeps u.

        log cosh((α-½)u) / cosh(u/2) over α-1, as 1 + 2 sinh(αu/2) sinh((α-1)u/2) /
        cosh(u/2) for small u; for large (α-1)u the growing factor is taken out.
        """
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        pure = np.isinf(alpha) | np.isinf(u)
        alpha = np.minimum(alpha, 1e300)
        with np.errstate(over="ignore", invalid="ignore"):
            rest = alpha - 1
            grown = 2 * np.sinh(alpha * u / 2) * np.sinh(rest * u / 2) / np.cosh(u / 2)
            tail = np.log1p(np.exp(-(alpha + rest) * u)) - np.log1p(np.exp(-u))
            cost = np.where(alpha * u <= 10, np.log1p(grown) / rest, u + tail / rest)
        return np.where(pure, u, np.minimum(cost, u))

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Hockey-stick divergence of randomised response: p - exp(e) q for |e| <= u."""
        epsilon, u = np.asarray(epsilon, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = -np.expm1(epsilon - u) / (1 + np.exp(-u))
            value = np.where(epsilon <= -u, -np.expm1(epsilon), inside)
        value = np.where(epsilon >= u, 0.0, value)
        return np.where(np.isinf(u), 1.0, value)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        # the pure-epsilon cost of u is u itself
        if math.isinf(alpha):
            return epsilon
        return largest_argument(partial(self._renyi, alpha), epsilon, start=epsilon)
