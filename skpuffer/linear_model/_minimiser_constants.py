"""How far one record moves the minimiser of a regularised sum of losses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.training import SmoothLoss

__all__ = [
    "LogisticConstants",
    "MarginConstants",
    "MinimiserConstants",
    "MultinomialConstants",
    "RegressionConstants",
]


@dataclass(frozen=True, kw_only=True)
class MinimiserConstants(ABC):
    """Constants of the objective ``C * sum of losses + |w|**2 / 2``.

    It is 1-strongly convex: a change of its gradient by g, at the old minimiser, moves
    the minimiser by at most g, so all that follows is about one record's gradient
    there. A subclass says how far that moves.

    Parameters
    ----------
    loss : SmoothLoss
    n_records : int
    radius : float
        Bound R of the l2 norm of a row, the intercept's column included.
    C : float
        Inverse regularisation strength.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011), Differentially private empirical risk
    minimization, Lemma 7, for the move of the minimiser under a change of records.
    """

    loss: SmoothLoss
    n_records: int
    radius: float
    C: float

    #: Scores of a record: blocks of weights.
    n_outputs = 1

    @property
    def lipschitz(self) -> float:
        """Largest gradient norm of one record's loss."""
        return self.radius * self.loss.lipschitz

    #: How far apart two targets are at most, in what `label_slope` is per unit of.
    target_span = 1.0

    @property
    def label_move(self) -> float:
        """Largest move of one record's gradient when its target alone changes."""
        # multiples of one row, by derivatives at the same scores
        slope = self.target_span * self.loss.label_slope
        return self.radius * min(slope, 2 * self.loss.lipschitz)

    @property
    def smoothness(self) -> float:
        """Largest curvature of the objective, all records and the penalty included."""
        # the Hessian of one loss is at most (smoothness of the loss in the scores) x x'
        curvature = self.radius**2 * self.loss.smoothness
        return 1.0 + self.C * self.n_records * curvature

    @property
    def _loss_at_zero(self) -> float:
        """Largest loss of a record whose scores are zero."""
        return float(self.loss.value(np.zeros(1), np.zeros(1))[0])

    @property
    def weight_norm(self) -> float:
        """Largest norm D of the minimiser: its objective is no worse than that of 0."""
        # |w|^2 / 2 <= objective(w) <= objective(0) = C n (loss at zero)
        return math.sqrt(2 * self._loss_at_zero * self.n_records * self.C)

    @property
    def largest_score(self) -> float:
        """Largest score X = R D of a record at the minimiser."""
        return self.radius * self.weight_norm

    @property
    def gradient_lipschitz(self) -> float:
        """Lipschitz constant L, in the record's point, of its gradient there."""
        # The gradient of a record's loss is l'(scores) x: by the product rule it moves
        # by |l'| for each unit that x moves, and by |x| times what l' moves, of scores
        # that move by |w| each.
        return self.loss.lipschitz + self.largest_score * self.loss.smoothness

    @property
    @abstractmethod
    def shift_ceiling(self) -> float:
        """Move from which on a record costs as much as one replaced by any other."""

    def _corner(self, shift: float) -> float:
        """Bound on the move of a record's gradient, wherever it is computed."""
        return math.inf

    def move(self, shift: float) -> float:
        """Sensitivity of the minimiser to one record whose point moves by `shift`."""
        # An infinite constant times no move is none.
        if not shift:
            return 0.0
        by_shift = min(self.gradient_lipschitz * shift, self._corner(shift))
        # two gradients are no further apart than both are long
        return self.C * min(2 * self.lipschitz, by_shift)


#: In norms of a row: how far records of either sign are told from any two.
_NEARLY_ANY = 1.5


@dataclass(frozen=True, kw_only=True)
class MarginConstants(MinimiserConstants):
    """Constants of a loss of the margin w z, z = y x, whose slope is in [-1, 0].

    One record's gradient is ``-t z`` with t in [0, 1]. A move by b in z moves it by at
    most ``min(max(R, min(b, 2 R)), L b)``, with ``L = 1 + R D`` times the curvature.
    """

    def _corner(self, shift: float) -> float:
        # |t z - t' z'| is convex in (t, t'), so it is largest at a corner of [0, 1]^2:
        # |z|, |z'| or |z - z'|.
        return max(self.radius, min(shift, 2 * self.radius))

    @property
    def shift_ceiling(self) -> float:
        """Move from which on a record is charged for as one replaced by any other."""
        # Beyond it less than a third is left to gain, and distances of records
        # that are nearly as far apart as any take long to find.
        return _NEARLY_ANY * self.radius


@dataclass(frozen=True, kw_only=True)
class LogisticConstants(MarginConstants):
    """Constants of the logistic loss of two classes."""

    @property
    def gradient_lipschitz(self) -> float:
        """Lipschitz constant in z: (1 + X)^2 / (4 X), or 1 for X below 1."""
        # The derivative of -t z by z, for t = expit(-w z), is -t I + t (1 - t) z w', of
        # norm t + X t (1 - t) at most: largest at t = (1 + X) / (2 X), if that is in
        # (0, 1), else at t = 1.
        score = self.largest_score
        return 1.0 if score <= 1 else (1 + score) ** 2 / (4 * score)


@dataclass(frozen=True, kw_only=True)
class MultinomialConstants(MinimiserConstants):
    """Constants of the multinomial logistic loss, for moves in x at one label.

    One record's gradient is the outer product of ``p - e_y``, no longer than sqrt(2),
    and x. A move by b moves it by at most ``min(L b, 2 R + sqrt(2) b)``, with ``L =
    sqrt(2) + R D / 2``.

    Parameters
    ----------
    n_classes : int
    """

    n_classes: int

    @property
    def n_outputs(self) -> int:  # type: ignore[override] # read, never assigned
        """Scores of a record: blocks of weights."""
        return self.n_classes

    @property
    def _loss_at_zero(self) -> float:
        return math.log(self.n_classes)

    def _corner(self, shift: float) -> float:
        # At one label, a = p - e_y and a' = p' - e_y have a product that is not
        # negative, so |a - a'|^2 <= |a|^2 + |a'|^2 <= 4. Gradients move by (a - a') x,
        # no longer than 2 R, and a' (x - x'), no longer than sqrt(2) b.
        return 2 * self.radius + math.sqrt(2) * shift

    @property
    def shift_ceiling(self) -> float:
        """Move from which on a record costs as much as one replaced by any other."""
        # where the later of the two bounds meets that of any two gradients
        corner = (2 - math.sqrt(2)) * self.radius
        return max(corner, 2 * self.lipschitz / self.gradient_lipschitz)


@dataclass(frozen=True, kw_only=True)
class RegressionConstants(MinimiserConstants):
    """Constants of a loss of the residual w x - y, for moves of (x, y), |y| <= 1.

    A move by b moves one record's gradient by at most ``min(2 k R, (k + R sqrt(D^2 +
    1)) b)`` for a slope of at most k and a curvature of one.
    """

    target_span = 2.0

    @property
    def _loss_at_zero(self) -> float:
        return float(self.loss.value(np.zeros(1), np.ones(1))[0])

    @property
    def gradient_lipschitz(self) -> float:
        """Lipschitz constant, in (x, y), of one record's gradient there."""
        # The residual is the product of (w, -1) and (x, y), the gradient l'(residual)
        # x: the product rule as for scores, with a vector one coordinate longer.
        steepness = math.hypot(self.weight_norm, 1.0) * self.loss.smoothness
        return self.loss.lipschitz + self.radius * steepness

    @property
    def shift_ceiling(self) -> float:
        """Move from which on a record costs as much as one replaced by any other."""
        return 2 * self.lipschitz / self.gradient_lipschitz
