"""Plan of the noisy rounds of an additive model, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["AVERAGE", "INTERCEPT", "RoundPlan", "n_rounds", "round_plan"]

#: Value of the constant column beside rows of mean squared norm one.
INTERCEPT = 0.25
#: Share of the rounds, counted from the last, whose iterates are averaged.
AVERAGE = 0.3
#: Deviation that the noise may give the score of a row of norm one.
REACH = 1.0

# Found on six tables of 426 to 75,000 records at budgets from 0.1 to 10; accuracy is
# flat around each of them.
_FEWEST, _MOST = 50, 100
_AFFORDABLE = 10**8  # cells read in all, beyond which more rounds are not worth it
_FURTHEST = 10.0  # steps in the long run, in units of what is stable
_CLIPS = (0.5, 0.75)  # within which the clip norm of residuals of classes lies
# of numbers: from the first one, as the root of n * mu over the steepest direction's
# share, where that is larger than this
_REGRESSION_CLIPS, _MUCH, _REGRESSION_REACH = (0.2, 0.5), 8000.0, 0.3
_MOST_MOMENTUM = 0.9


@dataclass(frozen=True)
class RoundPlan:
    """Hyperparameters of the rounds.

    Parameters
    ----------
    clip : float
        Norm to which a record's residual is clipped.
    step : float
        Step size for a sum of clipped residuals times rows.
    momentum : float
        Of the heavy ball.
    """

    clip: float
    step: float
    momentum: float


def n_rounds(n_records: int, n_features: int) -> int:
    """Number of rounds: more than 50 where a table is read quickly.

    Examples
    --------
    >>> from skpuffer.additive._plan import n_rounds
    >>> n_rounds(1000, 10), n_rounds(150_000, 10), n_rounds(1_000_000, 14)
    (100, 66, 50)
    """
    return int(np.clip(_AFFORDABLE // (n_records * n_features), _FEWEST, _MOST))


def round_plan(
    *,
    n_records: int,
    mu: float,
    rounds: int,
    steepest: float,
    smoothness: float,
    classification: bool,
) -> RoundPlan:
    """Plan rounds in which noise and signal are in balance.

    Parameters
    ----------
    n_records : int
    mu : float
        Largest shift, in standard deviations of the noise, that one record gives to the
        sums over the rounds.
    rounds : int
    steepest : float
        Largest curvature of rows, as of :class:`Basis`.
    smoothness : float
        Lipschitz constant of the loss's derivative.
    classification : bool

    Returns
    -------
    RoundPlan

    Notes
    -----
    As in :func:`skpuffer.training.run_defaults`: residuals that always point the same
    way carry the parameters by ``clip * rate * rounds``; meanwhile the noise alone
    gives the score of a row of norm one a deviation of that over ``n * mu``. The rule
    lets the two be about one.

    Examples
    --------
    >>> from skpuffer.additive._plan import round_plan
    >>> plan = round_plan(
    ...     n_records=10_000,
    ...     mu=0.1,
    ...     rounds=100,
    ...     steepest=0.1,
    ...     smoothness=0.25,
    ...     classification=True,
    ... )
    >>> plan.clip, plan.momentum
    (0.5, 0.0)
    """
    steepest = float(np.clip(steepest, 0.1, 1.0))
    stable = 2 / (smoothness * steepest)
    furthest = _FURTHEST * stable
    reach = REACH * n_records * mu * min(1.0, 0.5 / smoothness)
    if classification:
        clip = float(np.clip(reach / (rounds * furthest), *_CLIPS))
    else:
        # what is clipped pulls skewed targets to their median: less where it costs less
        least, most = _REGRESSION_CLIPS
        growth = math.sqrt(n_records * mu / (_MUCH * steepest))
        clip = float(np.clip(least * growth, least, most))
        reach = _REGRESSION_REACH * reach
    rate = min(reach / (clip * rounds), furthest)
    # steps longer than is stable are made of shorter ones that follow each other
    momentum = min(max(0.0, 1 - stable / rate), _MOST_MOMENTUM)
    step = (1 - momentum) * rate / n_records
    return RoundPlan(float(clip), float(step), float(momentum))
