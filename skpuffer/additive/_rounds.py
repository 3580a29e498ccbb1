"""Noisy rounds of gradient descent over the coded rows of an additive model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.releases import Optimiser
from skpuffer.training import OptimiserRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer.kernel.numbers import Floats
    from skpuffer.training import Loss

    from ._basis import Basis
    from ._codes import CodedRows

__all__ = ["LARGEST_NORM", "ResidualSums", "run_rounds"]


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
    >>> from skpuffer.additive._rounds import n_rounds
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
    >>> from skpuffer.additive._rounds import round_plan
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


#: Norm to which the weight of a record cuts its row, the constant column included.
LARGEST_NORM = float(np.sqrt(1 + INTERCEPT**2))

#: Residuals are whole numbers of this many parts of their clip norm, so that sums of
#: them are exact, whatever their order.
_PARTS = 2.0**20

#: What floating point may add to the norm of a row, and more.
_SLACK = 1 + 1e-12


class ResidualSums:
    """Sums over records of weighted, clipped residuals times rows, at given scores.

    Parameters
    ----------
    rows : CodedRows
    y : ndarray of shape (n,)
        Class indices, or targets in [-1, 1]. Where there is none, -1 or NaN, a record
        adds nothing.
    basis : Basis
    loss : Loss
    n_outputs : int
    clip : float
        Norm to which the residuals of a record are clipped.

    Notes
    -----
    A record adds ``residual * (row, 0.25)`` over ``clip * LARGEST_NORM``, times the
    weight that cuts the norm of its row: a vector of norm at most one. The weight
    depends on the row alone, so that probabilities given a row are not bent.
    """

    def __init__(
        self,
        rows: CodedRows,
        y: Any,
        basis: Basis,
        loss: Loss,
        *,
        n_outputs: int,
        clip: float,
    ):
        self.rows, self.basis = rows, basis
        counted = y >= 0 if loss.classification else ~np.isnan(y)
        self.y = y if np.all(counted) else np.where(counted, y, 0)
        self.loss, self.n_outputs, self.clip = loss, n_outputs, clip
        self._weights = self._row_weights()
        self._weights *= counted

    @property
    def dim(self) -> int:
        """Number of parameters: those of the blocks, then the intercepts."""
        return (self.basis.dim + 1) * self.n_outputs

    def _row_weights(self) -> Floats:
        squares = [np.sum(t**2, axis=1, keepdims=True) for t in self.basis.tables]
        tables = self.rows.tables(squares)
        weights = np.empty(self.rows.n_rows)
        for chunk, cells in self.rows.chunks():
            norms = np.sqrt(self.rows.values(tables, cells)[0] + INTERCEPT**2)
            weights[chunk] = np.minimum(1.0, LARGEST_NORM / norms)
        return weights

    def __call__(self, parameters: Floats) -> Floats:
        """Sum at these parameters.

        Parameters
        ----------
        parameters : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
            One record moves it by at most one, in l2.
        """
        held = parameters.reshape(-1, self.n_outputs)
        functions = self.basis.functions(held[:-1])
        tables = self.rows.tables(functions)
        # within the tables of the first group: no addition for each row
        tables[0] += INTERCEPT * held[-1][:, None]
        sums = self.rows.empty(self.n_outputs)
        for chunk, cells in self.rows.chunks():
            scores = self.rows.values(tables, cells)
            self.rows.add(sums, self._parts(scores, chunk), cells)
        blocks = self.rows.blocks(sums)
        total = self.basis.project([block.T for block in blocks])
        # every block holds every record once
        constant = INTERCEPT * blocks[0].sum(axis=1)
        whole = np.concatenate([total, constant[None]]) / (
            _PARTS * LARGEST_NORM * _SLACK
        )
        return whole.ravel()

    def _parts(self, scores: Floats, chunk: slice) -> Floats:
        """Weighted, clipped residuals of some rows, as whole numbers of parts."""
        y, weights = self.y[chunk], self._weights[chunk]
        if self.n_outputs == 1:
            residuals = self.loss.derivative(scores[0], y)[None]
            # minus the derivative, in units of the clip norm
            residuals *= -1 / self.clip
            np.clip(residuals, -1.0, 1.0, out=residuals)
            residuals *= weights * _PARTS
        else:
            residuals = self.loss.derivative(scores.T, y).T
            residuals *= -1 / self.clip
            norms = np.sqrt(np.sum(residuals**2, axis=0))
            residuals *= weights * _PARTS / np.maximum(1.0, norms)
        # towards zero, so that no norm grows
        return np.trunc(residuals, out=residuals)


def run_rounds(
    sums: ResidualSums,
    plan: RoundPlan,
    n_rounds: int,
    noisy: Callable[[Floats], Floats],
) -> Floats:
    """Run the rounds and average the last iterates.

    Parameters
    ----------
    sums : ResidualSums
    plan : RoundPlan
    n_rounds : int
    noisy : callable
        Adds noise to one sum, of sensitivity one.

    Returns
    -------
    ndarray of shape (dim,)
        Parameters, made of noisy sums alone.
    """
    # a step for a sum of residuals times rows, where the sum is in units of its largest
    # addend
    rate = plan.step * plan.clip * LARGEST_NORM
    optimiser = Optimiser(learning_rate=rate, momentum=plan.momentum, average=AVERAGE)
    run = OptimiserRun(optimiser, np.zeros(sums.dim), n_rounds)
    for _ in range(n_rounds):
        # post-processing from here on: the optimiser sees nothing but noisy sums
        run.step(-noisy(sums(run.parameters)))
    return run.result()
