"""What a search of Gaussian noise is about: the cost, the budget, and how they meet."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.utils._types import Floats

from ._laws import GaussianLaw
from ._leakage import Leakage

#: Most steps of a root search. After some by Newton's method it halves its bracket, for
#: the leakage of a sample, whose slope is not known as well. Without one it strides.
_STEPS, _NEWTON = 100, 8

#: Logarithm of the largest scale tried.
_FARTHEST = 200.0

#: Longest step of the logarithm of the scale.
_STRIDE = 3.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """Noise on the budget.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
    cost : float
    leakage : float
    mmse : callable
        The matrix that the gradient of the leakage is made of.
    at_floor : bool
        Whether less noise would keep the budget too, for all that was tried.
    """

    covariance: Floats
    cost: float
    leakage: float
    mmse: Callable[[], Floats] | None
    at_floor: bool


@dataclass(frozen=True, eq=False)
class Objective:
    """Least tr(C Σ) with a leakage of at most a budget.

    Parameters
    ----------
    leakage : Leakage
    budget : float
    weight : ndarray of shape (d, d)
        The cost C, positive definite.
    least_variance : float
        Added to every variance.
    least_cost : float
        Noise of lower cost is not tried.
    """

    leakage: Leakage
    budget: float
    weight: Floats
    least_variance: float = 0.0
    least_cost: float = 0.0

    def cost(self, covariance: Floats) -> float:
        """Return tr(C Σ)."""
        return float(np.sum(self.weight * covariance))

    def covariance(self, shape: Floats, log_scale: float = 0.0) -> Floats:
        """Return a multiple of a shape, with the least variance added."""
        return math.exp(log_scale) * shape + self.least_variance * np.eye(len(shape))

    def scaled(self, shape: Floats, tolerance: float) -> Candidate:
        """Return the multiple of a shape whose leakage is the budget.

        Leakage falls as the noise is scaled up: more of the same noise is a release
        with less, made worse. Newton's method on logarithms, within a bracket.

        Parameters
        ----------
        shape : ndarray of shape (d, d)
        tolerance : float
            How far the leakage may stay below the budget, as a share of it.

        Raises
        ------
        ValueError
            If nothing was found that keeps the budget.
        """
        return self._at_budget(shape, tolerance, self._leak, self.budget)

    def limited(self, shape: Floats, most: float) -> Candidate:
        """Return the multiple of a shape at which no value of the secret leaks more.

        Parameters
        ----------
        shape : ndarray of shape (d, d)
            Noise with which one does.
        most : float
            In nats.
        """

        def worst(covariance: Floats) -> tuple[float, Callable[[], Floats] | None]:
            return self.leakage.worst_value(GaussianLaw(covariance)), None

        found = self._at_budget(shape, 1e-4, worst, most)
        # what was searched is not what is reported
        value, mmse = self._leak(found.covariance)
        return replace(found, leakage=value, mmse=mmse)

    def _leak(self, covariance: Floats) -> tuple[float, Callable[[], Floats] | None]:
        return self.leakage(GaussianLaw(covariance))

    def _at_budget(
        self,
        shape: Floats,
        tolerance: float,
        leakage: Callable[[Floats], tuple[float, Callable[[], Floats] | None]],
        budget: float,
    ) -> Candidate:
        """The multiple of a shape at which some leakage is some budget."""
        lowest = -_FARTHEST
        if self.least_cost:
            lowest = math.log(self.least_cost / self.cost(shape))
        # what breaks the budget, and what keeps it
        low, high, here = -math.inf, math.inf, max(0.0, lowest)
        best: Candidate | None = None
        for count in range(_STEPS):
            covariance = self.covariance(shape, here)
            value, mmse = leakage(covariance)
            excess = math.log(max(value, 1e-300) / budget)
            if excess <= 0:
                high, floored = here, excess < -tolerance and here <= lowest
                cost = self.cost(covariance)
                best = Candidate(covariance, cost, value, mmse, floored)
                if excess >= -tolerance or floored:
                    break
            else:
                low = here
            # where the estimator changes, leakage may jump across the budget
            if high - low < tolerance or here > _FARTHEST:
                break
            # towards the middle of what is tolerated
            step = (excess + tolerance / 2) / self._slope(covariance, mmse, value)
            there = here + min(max(step, -_STRIDE), _STRIDE)
            bracketed = high - low < math.inf
            if bracketed and (count >= _NEWTON or not low < there < high):
                there = (low + high) / 2
            elif count >= _NEWTON or not low < there < high:
                # where leakage is flat, what it lacks says nothing of how far to go
                there = here + math.copysign(_STRIDE, excess)
            here = max(there, lowest)
        if best is None:
            raise ValueError(Statement("pac.no_noise_keeps_budget"))
        return best

    def _slope(
        self, covariance: Floats, mmse: Callable[[], Floats] | None, value: float
    ) -> float:
        """How fast the logarithm of the leakage falls with that of the scale."""
        # as fast as it can for small leakage, if nothing is known
        if mmse is None:
            return 1.0
        inverse = np.linalg.inv(covariance)
        scaled = covariance - self.least_variance * np.eye(len(covariance))
        trace = float(np.sum(inverse @ mmse() @ inverse * scaled))
        return max(trace / 2 / max(value, 1e-300), 1e-9)

    @cached_property
    def _roots(self) -> tuple[Floats, Floats]:
        """Square root of the cost matrix, and its inverse."""
        values, vectors = np.linalg.eigh(self.weight)
        roots = np.sqrt(values)
        return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T

    def stationary(self, mmse: Floats) -> Floats:
        """Return the shape that would be the best if the error were this one.

        Parameters
        ----------
        mmse : ndarray of shape (d, d)

        Returns
        -------
        ndarray of shape (d, d)
            C^-½ (C^½ E C^½)^½ C^-½.
        """
        root, inverse = self._roots
        values, vectors = np.linalg.eigh(root @ mmse @ root)
        middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(inverse @ middle @ inverse)
