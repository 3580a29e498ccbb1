"""What moves along slices cost, taken together: the theorems of the mechanism.

Each kind makes the curve of noise of some variance along the slices, and brackets the
variance that a budget takes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from skpuffer.utils._types import Floats

from ._curves import (
    JointSlicedCurve,
    MeanSquareCurve,
    SampledSlicesCurve,
    ShiftedSphereCurve,
    SlicedCurve,
)

__all__ = [
    "AveragedSlices",
    "JointSlices",
    "SliceCosts",
    "UniformAverage",
    "UniformJoint",
    "WorstSlice",
]


class SliceCosts(ABC):
    """Base of costs of moves along slices, under Gaussian noise."""

    @abstractmethod
    def curve(self, variances: Floats) -> SlicedCurve:
        """Return the curve of noise of a variance along each slice.

        Parameters
        ----------
        variances : ndarray of shape (n_slices,) or (1,)

        Returns
        -------
        SlicedCurve
        """

    @abstractmethod
    def bracket(self, variances: Floats) -> Floats:
        """Return two mean squares between which that of the curve lies.

        Parameters
        ----------
        variances : ndarray of shape (n_slices,) or (1,)

        Returns
        -------
        ndarray of shape (2,)
            The divergence of order alpha is between alpha halves of these.
        """


@dataclass(frozen=True)
class WorstSlice(SliceCosts):
    """The worst slice for all: a joint promise in closed form (Theorem 4.6).

    Parameters
    ----------
    squares : float or ndarray of shape (n_slices,)
        Largest squared move along each slice.
    """

    squares: float | Floats

    @classmethod
    def along(cls, squares: Floats, *rest: object) -> Self:
        """Return the cost of moves along slices, whose weights do not matter."""
        return cls(squares.max(axis=0))

    def curve(self, variances: Floats) -> MeanSquareCurve:
        """Return the curve of noise of a variance along each slice."""
        return MeanSquareCurve(float(np.max(self.squares / variances)))

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean square itself, twice."""
        return np.full(2, self.curve(variances).square)


@dataclass(frozen=True)
class UniformAverage(SliceCosts):
    """One displacement, averaged over all directions.

    Parameters
    ----------
    square : float
        Squared length of the longest.
    dim : int
    """

    square: float
    dim: int

    def curve(self, variances: Floats) -> MeanSquareCurve:
        """Return the curve of noise of at least that variance."""
        # the mean of <v, U>^2 over the sphere
        return MeanSquareCurve(self.square / self.dim / float(np.min(variances)))

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean square itself, twice."""
        return np.full(2, self.curve(variances).square)


@dataclass(frozen=True)
class UniformJoint(UniformAverage):
    """One displacement, along one of all directions that is revealed."""

    def curve(self, variances: Floats) -> ShiftedSphereCurve:  # type: ignore[override]
        """Return the curve of noise of at least that variance."""
        return ShiftedSphereCurve(self.square / float(np.min(variances)), self.dim)

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean over directions and the largest (Proposition B.1)."""
        most = self.curve(variances).square
        return np.array([most / self.dim, most])


@dataclass(frozen=True)
class AveragedSlices(SliceCosts):
    """Moves along slices, averaged (Theorems 4.5 and 4.7).

    Parameters
    ----------
    squares : ndarray of shape (n_rows, n_slices)
        Squared moves, of each pair of secrets.
    weights : ndarray of shape (n_slices,)
    most : float
        Squared move of the whole output, no less than along any direction.
    shortfall : float
        By how much the mean over all directions of what is in [0, 1] may exceed that
        over those drawn; zero for a profile in its own right.
    """

    squares: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    most: float
    shortfall: float = 0.0

    def curve(self, variances: Floats) -> SlicedCurve:
        """Return the curve of noise of a variance along each slice."""
        return MeanSquareCurve(float(self._mean_square(variances)))

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean square itself, twice."""
        return np.full(2, self._mean_square(variances))

    def _mean_square(self, variances: Floats) -> float:
        mean = float(np.max((self.squares / variances) @ self.weights))
        if not self.shortfall:
            return mean
        # the worst direction alone bounds the mean, whatever was drawn
        most = self._most(variances)
        return min(mean + most * self.shortfall, most)

    def _most(self, variances: Floats) -> float:
        """Bound of the squared move along any direction, in units of the noise."""
        return self.most / float(np.min(variances))


@dataclass(frozen=True)
class JointSlices(AveragedSlices):
    """Moves along slices, of one that is revealed (Corollary 4.1, Theorem 4.8)."""

    def curve(self, variances: Floats) -> SlicedCurve:
        """Return the curve of noise of a variance along each slice."""
        squares = self.squares / variances
        if not self.shortfall:
            return JointSlicedCurve(squares, self.weights)
        return SampledSlicesCurve(
            squares,
            self.weights,
            most=np.array([self._most(variances)]),
            shortfall=self.shortfall,
        )

    def bracket(self, variances: Floats) -> Floats:
        """Return the mean over slices and the largest (Proposition B.1)."""
        squares = self.squares / variances
        mean = float(np.max(squares @ self.weights))
        most = self._most(variances) if self.shortfall else float(squares.max())
        return np.array([mean, most])
