"""Record as a point of the metric space in which its shift is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from skpuffer.exceptions import Statement
from skpuffer.kernel.releases import PUBLIC_TARGET

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["RecordPoint"]


@dataclass(frozen=True)
class RecordPoint:
    """Map from a record to a point: its features, with its target beside them.

    Parameters
    ----------
    target : {'none', 'numbers', 'labels'}
    n_classes : int, default=0
        For labels.
    label_distance : float, default=0.0
        How far apart records of different labels are at least.
    """

    target: str
    n_classes: int = 0
    label_distance: float = 0.0

    @property
    def needs_target(self) -> bool:
        """Whether there is a target."""
        return self.target != "none"

    @property
    def move_assumptions(self) -> tuple[Statement, ...]:
        """Assumptions of :meth:`move`."""
        return (PUBLIC_TARGET,) if self.needs_target else ()

    def __call__(self, X: Any, y: Any = None) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        rows: Floats = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        if self.target == "numbers":
            return np.hstack([rows, np.reshape(y, (len(rows), -1))])
        if self.target == "labels":
            labels = np.eye(self.n_classes)[np.asarray(y)]
            # two unit vectors are sqrt(2) apart, so different labels are
            # `label_distance` apart in l2, whatever the features
            return np.hstack([rows, labels * (self.label_distance / math.sqrt(2))])
        return rows

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points to moves of features, targets staying.

        Parameters
        ----------
        gaps : ndarray of shape (n_records, n_features)
        norm : float

        Returns
        -------
        ndarray of shape (n_records,)
        """
        # coordinates of the target do not move, as `move_assumptions` says
        moves: Floats = np.linalg.norm(gaps, norm, axis=1)
        return moves
