"""Random number of runs, of which the best one leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_real
from skpuffer.kernel.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skpuffer.kernel.numbers import Floats

__all__ = ["LEAST_MEAN", "MOST_RUNS", "MOST_SHAPE", "RandomRuns"]

#: Means and shapes that are taken: beyond them rounding is all there is, or time.
LEAST_MEAN, MOST_RUNS, MOST_SHAPE = 1 + 1e-6, 1_000_000, 1000

#: Logarithms of powers of the parameter that are nearer to zero count as zero.
_FLAT = 1e-12

#: Logarithms of masses below this are those of numbers that are never drawn.
_NEVER = -700.0


@dataclass(frozen=True)
class RandomRuns(Plain, kind="random_runs"):
    """Distribution of the number of runs of a mechanism, of which the best one leaves.

    A negative binomial or Poisson distribution, given that it is not zero.

    Parameters
    ----------
    mean : float
        Expected number of runs, above 1 (by a millionth at least) and at most a
        million.
    shape : float
        Of the negative binomial distribution, in [0, 1000], or infinite. 0 is the
        logarithmic distribution, 1 the geometric one and infinity the Poisson
        distribution. The number varies less with a larger one.

    Notes
    -----
    With f the probability generating function, the best of K independent runs has the
    quantile u of one run with density ``f'(u)``, which is all that is needed of the
    distribution to account for it; see :class:`BestRunCurve`. It is ``f'(1 - p) = mean
    (stop / (stop + (1 - stop) p))**(shape + 1)``, where `stop` is the parameter of the
    negative binomial distribution, and for the Poisson one of the parameter `rate`
    ``f'(1 - p) = mean exp(-rate p)``.

    References
    ----------
    Papernot and Steinke (2022), Hyperparameter tuning with Rényi differential privacy,
    Definition 1.

    Examples
    --------
    >>> from skpuffer.privacy_loss import RandomRuns
    >>> runs = RandomRuns(mean=10.0, shape=1.0)
    >>> round(runs.stop, 6), round(runs.chance_of_missing(0.1), 6)
    (0.1, 0.473684)
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        mean = check_real(mean=self.mean)
        if not LEAST_MEAN <= mean <= MOST_RUNS:
            raise ValueError(Statement("search.runs_mean_out_of_range", mean=self.mean))
        shape = float(self.shape)
        if not (0 <= shape <= MOST_SHAPE or shape == math.inf):
            raise ValueError(
                Statement(
                    "search.runs_shape_out_of_range",
                    most_shape=MOST_SHAPE,
                    shape=self.shape,
                )
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "shape", shape)

    @property
    def is_poisson(self) -> bool:
        """Whether it is the Poisson distribution."""
        return math.isinf(self.shape)

    @cached_property
    def stop(self) -> float:
        """Parameter in (0, 1) of the negative binomial distribution; 0 of Poisson."""
        if self.is_poisson:
            return 0.0
        # the mean falls to one as it grows, and is at least one over it where it is
        # small, but for a logarithm
        root: float = brentq(
            lambda log: math.log(_mean(math.exp(log), self.shape) / self.mean),
            math.log(1e-2 / self.mean**2),
            math.log1p(-1e-12),
            xtol=1e-14,
            rtol=1e-14,
        )
        return math.exp(root)

    @cached_property
    def rate(self) -> float:
        """Parameter of the Poisson distribution before zero is ruled out; else inf."""
        if not self.is_poisson:
            return math.inf
        root: float = brentq(
            lambda rate: rate / -math.expm1(-rate) - self.mean,
            1e-12,
            self.mean,
            xtol=1e-14,
            rtol=1e-14,
        )
        return root

    def log_slope(self, p: Floats) -> Floats:
        """Return the logarithm of the density of the best one's quantile.

        Parameters
        ----------
        p : ndarray
            In [0, 1], the probability that one run is better.

        Returns
        -------
        ndarray
            ``log(f'(1 - p))``, falling in p from the logarithm of the mean.
        """
        p = np.asarray(p, dtype=float)
        if self.is_poisson:
            return math.log(self.mean) - self.rate * p
        fallen: Floats = np.log1p((1 - self.stop) / self.stop * p)
        return math.log(self.mean) - (self.shape + 1) * fallen

    def chance_of_missing(self, share: float) -> float:
        """Return the probability that no run is one of a share of all candidates.

        Parameters
        ----------
        share : float
            In [0, 1], of candidates that are drawn uniformly, with replacement.

        Returns
        -------
        float
            The probability generating function at ``1 - share``.
        """
        share = float(share)
        if self.is_poisson:
            # (exp(rate (1 - share)) - 1) / (exp(rate) - 1)
            whole = -math.expm1(-self.rate)
            rest = -math.expm1(-self.rate * (1 - share))
            return math.exp(-self.rate * share) * rest / whole
        first = math.log1p(-(1 - self.stop) * (1 - share))
        last = math.log(self.stop)
        if self.shape * last > -_FLAT:
            return first / last
        # (1 - (1 - stop) x)^-shape - 1 over stop^-shape - 1
        return math.exp(self.shape * (last - first)) * (
            math.expm1(self.shape * first) / math.expm1(self.shape * last)
        )

    def masses(self, covered: float) -> Floats:
        """Return the probabilities of 1, 2, ... runs, up to a total.

        Parameters
        ----------
        covered : float
            Below 1.

        Returns
        -------
        ndarray
        """
        found: list[float] = []
        total = 0.0
        for mass in self._each_mass():
            if total >= covered:
                break
            found.append(mass)
            total += mass
        return np.array(found)

    def _each_mass(self) -> Iterator[float]:
        """Yield the probabilities of 1, 2, ... runs until they are next to nothing."""
        # in logarithms, as the first ones may be less than a float can hold
        log_mass, k = float(self.log_slope(np.array(1.0))), 1
        while log_mass > _NEVER or k < self.mean:
            yield math.exp(log_mass)
            log_mass += math.log(self._ratio(k))
            k += 1

    def _ratio(self, k: int) -> float:
        """Probability of k + 1 runs over that of k."""
        if self.is_poisson:
            return self.rate / (k + 1)
        return (1 - self.stop) * (k + self.shape) / (k + 1)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a number of runs.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        int
            At least 1.
        """
        left, k = float(rng.random()), 0
        for mass in self._each_mass():
            k += 1
            if left < mass:
                break
            left -= mass
        return k


def _mean(stop: float, shape: float) -> float:
    """Mean of a negative binomial distribution, given that it is not zero."""
    least = shape * math.log(stop)
    # shape (1 - stop) / (stop (1 - stop^shape)), without its cancellations
    spread = -math.log(stop) if least > -_FLAT else -math.expm1(least) / shape
    return (1 - stop) / stop / spread
