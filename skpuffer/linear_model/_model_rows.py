"""Rows and records as a linear model reads them, and how far they move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.utils._clipping import clip_rows

from ._base_linear import TargetScale, with_intercept

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Matrix

__all__ = [
    "LabelledRecord",
    "ModelRecord",
    "ModelRows",
    "SignedRecord",
    "TargetRecord",
]


@dataclass(frozen=True)
class ModelRows:
    """Map from raw rows to model rows: clipped, with the intercept's column.

    Parameters
    ----------
    data_norm : float
        Bound of the l2 norm of a raw row.
    intercept : float
        Value of the intercept's column; zero for none.
    unit : float, default=1.0
        By which clipped rows are divided.
    """

    data_norm: float
    intercept: float
    unit: float = 1.0

    @property
    def radius(self) -> float:
        """Largest l2 norm of a model row."""
        return math.hypot(self.data_norm / self.unit, self.intercept)

    def move(self, gaps: Floats) -> Floats:
        """Sensitivity of model rows, in l2, to moves of their features."""
        # Clipping projects onto a ball, which moves no two rows apart, and two rows of
        # a ball are no further apart than it is wide. The intercept's column does not
        # move.
        moves = np.minimum(np.linalg.norm(gaps, axis=1), 2 * self.data_norm)
        scaled: Floats = moves / self.unit
        return scaled

    def __call__(self, X: Matrix) -> Matrix:
        rows = clip_rows(X, self.data_norm)
        if self.unit != 1:
            rows = rows / self.unit
        return with_intercept(rows, self.intercept)


@dataclass(frozen=True)
class ModelRecord(ABC):
    """Map from a record to the space in which its move is measured.

    Parameters
    ----------
    rows : ModelRows
    """

    rows: ModelRows

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    @abstractmethod
    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""

    def given(self, y: ArrayLike) -> Array:
        """Return targets as they are read: codes of classes, -1 for none."""
        return np.asarray(y)

    def targets(self, y: ArrayLike) -> Array:
        """Return the targets that the loss reads."""
        return np.asarray(y)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points to moves of the features, targets staying.

        Parameters
        ----------
        gaps : ndarray of shape (n_records, n_features)
            Largest move of each feature.
        norm : float
            At least 2.

        Returns
        -------
        ndarray of shape (n_records,)
        """
        return self.rows.move(gaps)


@dataclass(frozen=True)
class SignedRecord(ModelRecord):
    """A record of two classes as z = y x, with y = ±1: all that its margin reads."""

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        signed: Floats = np.asarray(self.rows(X)) * (2.0 * np.asarray(y) - 1.0)[:, None]
        return signed


@dataclass(frozen=True)
class LabelledRecord(ModelRecord):
    """A record of several classes: x, and its label as a block of coordinates.

    Parameters
    ----------
    n_classes : int
    label_distance : float
        How far apart records of different labels are at least.
    """

    n_classes: int
    label_distance: float

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        # two unit vectors are sqrt(2) apart
        labels = np.eye(self.n_classes)[np.asarray(y)]
        return np.hstack(
            [np.asarray(self.rows(X)), labels * (self.label_distance / 2**0.5)]
        )


@dataclass(frozen=True)
class TargetRecord(ModelRecord):
    """A record of a regression: x, and its scaled target beside it.

    Parameters
    ----------
    target : TargetScale
    """

    target: TargetScale

    def given(self, y: ArrayLike) -> Array:
        """Return targets as they are read: numbers, NaN for none."""
        return np.asarray(y, dtype=float)

    def targets(self, y: ArrayLike) -> Array:
        """Return the targets that the loss reads, in [-1, 1]."""
        return self.target(y)

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        return np.hstack([np.asarray(self.rows(X)), self.targets(y)[:, None]])
