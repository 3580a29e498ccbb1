"""How far one record moves the minimiser of a regularised sum of losses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import value_error
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import Adjacency, RecordBelief
from skpuffer.training._engine import LEAST_CLIP_NORM, travel

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant
    from skpuffer.scenarios import BoundScenario
    from skpuffer.training import Loss, RecordGradient, SmoothLoss


@dataclass(frozen=True, kw_only=True)
class MinimiserConstants(ABC):
    """Constants of the objective ``C * sum of losses + |w|**2 / 2``.

    It is 1-strongly convex: a change of its gradient by g, at the old minimiser, moves
    the minimiser by at most g (Chaudhuri, Monteleoni and Sarwate, 2011, Lemma 7). A
    subclass says how far one record's gradient moves there.

    Parameters
    ----------
    radius : float
        Bound R of the l2 norm of a row, the intercept's column included.
    C : float
        Inverse regularisation strength.
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


# -- the ball of parameters in which a run of gradients takes least noise --------------


# The largest score in each of the balls to choose from, times the curvature of the
# loss; and how many times its radius the noise must let parameters travel. Found on
# breast cancer and diabetes, where 1 to 300 of 300 records move.
_CLASSIFICATION = (3.8, 1.9, 0.95, 0.475), 15.0
# A regression's scores need not go far beyond its targets, which end at one, and all of
# their noise counts, not only what turns a sign. Found on diabetes, grades of students
# and hours of work, where 1 to 100 of 300 to 400 records move.
_REGRESSION = (3.2, 2.2, 1.5, 1.0), 100.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """One sum of all gradients, and the noise that the budget asks for it.

    Parameters
    ----------
    release : GradientRelease
        Release of a single step.
    deviation : float
        Largest standard deviation of its noise.
    """

    release: GradientRelease
    deviation: float


def least_noise(
    probe: GradientRelease,
    record: RecordGradient,
    accountant: Accountant,
    bound: BoundScenario,
    *,
    start: float,
    clip_norm: float | None,
    radius: float | None,
) -> Look:
    """Return the look that takes least noise, in a ball of parameters or in none.

    A ball must not leave out the start, and a given `clip_norm` or `radius` is kept.
    """
    loss = record.loss
    usual = probe.optimiser or Optimiser(learning_rate=1.0)

    def look(default: float, ball: float | None) -> Look:
        optimiser = probe.optimiser
        if ball is not None:
            optimiser = replace(usual, radius=ball)
        norm = default if clip_norm is None else float(clip_norm)
        release = replace(probe, record=record, clip_norm=norm, optimiser=optimiser)
        noise = accountant.calibrate(release, bound).noise
        return Look(release=release, deviation=float(np.max(noise.std())))

    def in_ball(ball: float) -> Look:
        # the noise follows the record's own move, whatever is clipped, so nothing has
        # to be
        return look(max(least, record.longest(ball)), ball)

    least = least_clip_norm(record, accountant)
    if radius is not None:
        return in_ball(float(radius))
    best = look(max(least, LEAST_CLIP_NORM), None)
    scores, room = _CLASSIFICATION if loss.classification else _REGRESSION
    # no ball bounds how far gradients move at a corner
    if math.isinf(loss.smoothness):
        return best
    unit = 1 / (loss.smoothness * record.row_norm)
    radii = [score * unit for score in scores if score * unit >= start] or [start]
    # a ball that spares no noise is not asked for: calibration may take seconds
    ball = replace(usual, radius=radii[0])
    if not _reads_moves(bound, replace(best.release, optimiser=ball)):
        return best
    for ball_radius in radii:
        found = in_ball(ball_radius)
        if found.deviation < best.deviation:
            best = found
        # of gradients as long as those at zero
        multiplier = found.deviation / record.longest(0.0)
        far = travel(probe.n_records, multiplier, loss.smoothness)
        if far >= room * ball_radius:
            break
    return best


def least_clip_norm(record: RecordGradient, accountant: Accountant) -> float:
    """Return the clip norm below which an accountant takes no such gradients."""
    # scores of several classes are not to be clipped where steps have to contract
    if accountant.last_iterate_only and record.loss.indexed:
        return record.unclipped_norm
    return 0.0


def refuse_corner(loss: Loss) -> None:
    """Refuse a radius where no ball bounds how far gradients move."""
    if math.isinf(loss.smoothness):
        raise value_error("linear.radius_loss_has_corner", loss=loss)


def _reads_moves(bound: BoundScenario, release: GradientRelease) -> bool:
    """Whether a scenario says of a release's records how far they move."""
    provided = bound.provides(release)
    # beliefs compare the records they hold pair by pair
    if RecordBelief in provided or Adjacency not in provided:
        return True
    return math.isfinite(bound.fact(Adjacency, release).move)
