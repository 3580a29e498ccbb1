"""The ball of parameters in which a run of gradients takes least noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import Adjacency, RecordBelief
from skpuffer.training._optimiser import LEAST_CLIP_NORM, travel

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant
    from skpuffer.scenarios import BoundScenario
    from skpuffer.training import Loss, RecordGradient

__all__ = ["Look", "least_clip_norm", "least_noise", "refuse_corner"]

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
        Of a single step.
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

    Parameters
    ----------
    probe : GradientRelease
        Of a single step, at any clip norm.
    record : RecordGradient
    accountant : Accountant
    bound : BoundScenario
        Of what it says of records, not of the data.
    start : float
        How far the start is from zero. No ball is asked for that leaves it out.
    clip_norm, radius : float or None
        What was decided already; None is by the rule.

    Returns
    -------
    Look
        Its release has the `record`, and an optimiser where the parameters are to be
        kept in a ball.
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
    """Return the clip norm below which an accountant takes no such gradients.

    Parameters
    ----------
    record : RecordGradient
    accountant : Accountant

    Returns
    -------
    float
        Zero where any will do.
    """
    # scores of several classes are not to be clipped where steps have to contract
    if accountant.last_iterate_only and record.loss.indexed:
        return record.unclipped_norm
    return 0.0


def refuse_corner(loss: Loss) -> None:
    """Refuse a radius where no ball bounds how far gradients move.

    Raises
    ------
    ValueError
    """
    if math.isinf(loss.smoothness):
        raise ValueError(Statement("linear.radius_loss_has_corner", loss=loss))


def _reads_moves(bound: BoundScenario, release: GradientRelease) -> bool:
    """Whether a scenario says of a release's records how far they move."""
    provided = bound.provides(release)
    # beliefs compare the records they hold pair by pair
    if RecordBelief in provided or Adjacency not in provided:
        return True
    return math.isfinite(bound.fact(Adjacency, release).move)
