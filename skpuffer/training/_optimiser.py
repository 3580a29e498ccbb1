"""Runs of an optimiser on noisy gradients: their defaults, and their steps.

The defaults follow from public facts, and the steps from noisy sums: both are
post-processing throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.kernel.gradients import SCHEDULES, Recalibration
from skpuffer.kernel.numbers import check_count, check_option, check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.kernel.gradients import Optimiser

__all__ = ["OptimiserRun", "RunDefaults", "run_defaults"]

#: Clip norm that is short enough for any noise.
LEAST_CLIP_NORM = 0.3

# Found on five data sets of 133 to 75,000 records and 2 to 10 classes, at budgets from
# 0.5 to 8; accuracy is flat around each of them.
_SCORE_NOISE = 1.2  # standard deviation that the noise may give a logistic score
_LARGEST_CLIP_NORM = 0.75
_FEWEST_STEPS, _MANY_STEPS, _MOST_STEPS = 50, 100, 200
_AFFORDABLE = 10**6  # records read in all, beyond which more steps are not worth it
_USUAL_MOMENTUM, _MOST_MOMENTUM = 0.5, 0.95
_AVERAGE = 0.3

# Of regressions, found on nine tables of 330 to 26,000 records and 5 to 58 columns, two
# with skewed targets, at budgets from 0.1 to 3.
_REGRESSION_NOISE, _FEW, _REGRESSION_GROWTH = 0.4, 50.0, 0.35
_SHORTEST_OF_REGRESSION, _MANY = 0.1, 1000.0

# Found on these and on eight tables more, of rare and overlapping classes among them:
# how many steps train for each that recalibrates, and how many times the noise of one
# sum records must be for them to be worth their own (over the root of the number of
# parameters too).
_TRAINING_FOR_ONE_MORE, _FEWEST_RECALIBRATING = 10, 4
_RECALIBRATED_FROM, _RECALIBRATED_BY_PARAMETER = 100.0, 25.0


def travel(n_records: int, multiplier: float, smoothness: float) -> float:
    """How far parameters may travel before noise weighs in scores.

    Parameters
    ----------
    n_records : int
    multiplier, smoothness : float
        As for :func:`run_defaults`, whose notes explain it.

    Returns
    -------
    float
    """
    return _SCORE_NOISE * min(1.0, 0.5 / smoothness) * n_records / multiplier


class OptimiserRun:
    """State of one run of stochastic gradient descent.

    Parameters
    ----------
    optimiser : Optimiser
        Of :mod:`skpuffer.releases`.
    initial : ndarray of shape (dim,)
        Starting parameters: public, or released before.
    n_steps : int
    penalised : ndarray of bool of shape (dim,), default=None
        Which parameters the optimiser's `l2` is for; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Optimiser
    >>> from skpuffer.training import OptimiserRun
    >>> run = OptimiserRun(Optimiser(learning_rate=0.5), np.zeros(1), n_steps=2)
    >>> run.step(np.array([-2.0])), run.step(np.array([1.0]))
    (array([1.]), array([0.5]))
    >>> run.result()
    array([0.5])
    """

    def __init__(
        self,
        optimiser: Optimiser,
        initial: ArrayLike,
        n_steps: int,
        penalised: Booleans | None = None,
    ):
        self._optimiser = optimiser
        self._done = 0
        #: Current iterate, of shape (dim,).
        # into the ball, as a start outside of it would count in an average
        self.parameters = self._project(np.array(initial, dtype=np.float64))
        self._velocity = np.zeros_like(self.parameters)
        weight = 1.0 if penalised is None else np.asarray(penalised, dtype=np.float64)
        restarts = optimiser.restart and optimiser.momentum > 0
        self._free = None if penalised is None or not restarts else ~penalised
        self._l2 = optimiser.l2 * weight
        # rounded up, so that any positive share averages one iterate at least
        n_averaged = math.ceil(float(optimiser.average) * n_steps)
        self._first_averaged = n_steps - n_averaged
        self._sum = np.zeros_like(self.parameters)
        self._rates = optimiser.step_sizes(n_steps)

    def step(self, gradient: Floats, noise: Floats | None = None) -> Floats:
        """Return the parameters after one more noisy mean gradient.

        Parameters
        ----------
        gradient : ndarray of shape (dim,)
            Not changed.
        noise : ndarray of shape (dim,), default=None
            Added to the updated parameters, where it is not in the gradient.

        Returns
        -------
        ndarray of shape (dim,)
            A new array.
        """
        optimiser = self._optimiser
        # Sutskever et al. (2013), with the velocity in units of gradients and not of
        # steps
        if optimiser.momentum:
            if self._free is not None:
                self._velocity[self._free & (self._velocity * gradient < 0)] = 0.0
            self._velocity = optimiser.momentum * self._velocity + gradient
            if optimiser.nesterov:
                gradient = gradient + optimiser.momentum * self._velocity
            else:
                gradient = self._velocity
        rate = self._rates[self._done]
        moved = self.parameters - rate * gradient
        if optimiser.l2:
            # implicitly, so that no penalty is too strong for the learning rate; over
            # 1 - momentum, as much as momentum makes of the other gradient
            moved = moved / (1 + rate / (1 - optimiser.momentum) * self._l2)
        # after the penalty, so that the iterate is in the ball whatever came before
        self.parameters = self._project(moved)
        # outside of it then, so that nothing but post-processing follows the noise
        if noise is not None:
            self.parameters = self.parameters + noise
        # added up as they come: no iterate has to be kept
        if self._done >= self._first_averaged:
            self._sum += self.parameters
        self._done += 1
        return self.parameters

    def result(self) -> Floats:
        """Return the last iterate, or the mean of the last ones."""
        n_averaged = self._done - self._first_averaged
        # asked before the average begins, or of a run that averages nothing
        if n_averaged <= 0:
            return self.parameters.copy()
        return self._sum / n_averaged

    def _project(self, parameters: Floats) -> Floats:
        """Project onto the l2 ball of the optimiser's radius, if it has one."""
        radius = self._optimiser.radius
        if radius is not None:
            length = np.linalg.norm(parameters)
            # scaled, not cut: the nearest point of the ball lies on the way to the
            # origin
            if length > radius:
                parameters = parameters * (radius / length)
        return parameters


@dataclass(frozen=True, kw_only=True)
class RunDefaults:
    """Hyperparameters of a training run on rows of norm one.

    Parameters
    ----------
    n_steps : int
        Number of noisy gradient sums, each of all records.
    clip_norm : float
        Norm to which an example's gradient is scaled down.
    learning_rate : float
        Step size for the mean of clipped gradients.
    momentum, average : float
        As in :class:`~skpuffer.releases.Optimiser`.
    recalibration : Recalibration or None
        The last ones of the steps, if they are others.

    Examples
    --------
    >>> from skpuffer.training import run_defaults
    >>> defaults = run_defaults(n_records=400, multiplier=4.0, smoothness=0.25)
    >>> defaults.n_steps, round(defaults.clip_norm, 3), round(defaults.learning_rate, 3)
    (50, 0.3, 8.0)
    """

    n_steps: int
    clip_norm: float
    learning_rate: float
    momentum: float
    average: float
    recalibration: Recalibration | None = None


def run_defaults(
    n_records: int,
    multiplier: float,
    smoothness: float,
    *,
    n_steps: int | None = None,
    clip_norm: float | None = None,
    schedule: str | None = None,
    longest_step: float | None = None,
    unclipped_norm: float | None = None,
    n_parameters: int = 1,
    regression: bool = False,
) -> RunDefaults:
    """Hyperparameters from public facts, so that noise and signal are in balance.

    Parameters
    ----------
    n_records : int
    multiplier : float
        Standard deviation, in units of the clip norm, of the noise that one sum of all
        gradients would take if it were all that is released: what the budget buys.
        Several sums take sqrt(n_steps) times as much each.
    smoothness : float
        Lipschitz constant of the loss's derivative; infinity counts as one.
    n_steps, clip_norm : optional
        Values that were decided already; the rest is fitted to them.
    schedule : str, default=None
        As in :class:`~skpuffer.releases.Optimiser`; None is 'constant'.
    longest_step : float, default=None
        Of a run without momentum and averages, of which only the last iterate leaves;
        None is any other run.
    unclipped_norm : float, default=None
        Clip norm that scales no gradient down, of a run that may end in steps of
        recalibration; None is one that may not.
    n_parameters : int, default=1
        Read for that choice alone.
    regression : bool, default=False
        Whether scores are numbers in units of half the range of a target.

    Returns
    -------
    RunDefaults

    Notes
    -----
    *Distance.* If every record's gradient always pointed the same way with the clip
    norm C, the parameters would travel ``R = C * rate * n_steps`` in all. Meanwhile the
    noise alone gives the score of a row of norm one a standard deviation of
    ``R * multiplier / n_records``, whatever the number of steps. The rule chooses R so
    that this noise is about one, the scale on which a logistic score matters (less for
    more sharply curved losses): a shorter distance wastes signal and a longer one buys
    noise. R follows from the number of records and the budget alone; features and
    classes need not be known.

    *Clip norm.* The ratio of noise to clip norm is set by the budget, so a small C
    turns down well-fitted and badly fitted records alike until only directions count,
    as for a hinge loss; 0.3 is a good one. With many records the distance asks for more
    than stable steps can make in few epochs; then C grows, up to 0.75, where it hardly
    biases any more.

    *Steps.* A step of ``2 / smoothness`` is stable on any rows of norm one, and
    momentum makes it longer. Between 50 and 100 steps are taken, or 200 where they read
    no more than a million records, as many as keep the momentum at 0.5; where that many
    do not, it may grow to 0.95. The number of steps costs no privacy, as that of full
    batches is exact. The mean of the last third of the iterates is released. Where only
    the last one may be, 200 short steps do as well.

    *Recalibration.* Clipping biases scores towards the more certain side, and classes
    that are rare or overlap are then believed with too much confidence. Where the
    records are more than 100 times the noise of one sum, and than 25 times with the
    root of the number of parameters, a step in eleven is one after the others in which
    nothing is clipped, and which all together find one factor of all parameters (see
    :class:`~skpuffer.releases.Recalibration`): scores become log-odds, and labels stay.

    *Regression.* Errors are smaller than the range of the target, and a prediction that
    is as noisy as the target varies is worth nothing. So R is 0.4 of that, growing with
    the records over the noise of one sum to 1.2, and the clip norm 0.3 where they are
    1000 times as many: shorter where they are fewer, and longer where they are more, as
    short ones lead to a median and not to the mean.

    *Schedule.* Where steps are shorter than the longest one for a part of the run, that
    one is made longer, so that they go as far together; but not beyond what is stable
    with a momentum of 0.95.

    Examples
    --------
    >>> from skpuffer.training import run_defaults
    >>> run_defaults(n_records=400, multiplier=4.0, smoothness=0.25).n_steps
    50
    >>> run_defaults(n_records=100_000, multiplier=4.0, smoothness=0.25).n_steps
    100
    """
    check_count(n_records=n_records)
    check_count(n_parameters=n_parameters)
    if unclipped_norm is not None:
        check_positive(unclipped_norm=unclipped_norm)
    check_positive(multiplier=multiplier)
    # nothing counts as more curved than the squared loss: a corner, which is sharp at
    # one score alone, says little of steps that go far
    smoothness = min(check_positive(smoothness=min(smoothness, 1.0)), 1.0)
    # R of the notes, solved for the noise that a score may have
    distance = travel(n_records, multiplier, smoothness)
    shortest = LEAST_CLIP_NORM
    if regression:
        many = n_records / multiplier
        noise = _REGRESSION_NOISE * (many / _FEW) ** _REGRESSION_GROWTH
        distance *= min(1.0, noise / _SCORE_NOISE)
        # as the root, so that noise and bias fall alike
        shortest = LEAST_CLIP_NORM * math.sqrt(many / _MANY)
        shortest = min(_LARGEST_CLIP_NORM, max(_SHORTEST_OF_REGRESSION, shortest))
    # momentum m makes steps 1 / (1 - m) times as long in the long run
    stable = 2 / smoothness
    usual, longest = stable / (1 - _USUAL_MOMENTUM), stable / (1 - _MOST_MOMENTUM)
    average, fewest = _AVERAGE, _FEWEST_STEPS
    if longest_step is not None:
        stable = usual = longest = min(stable, longest_step)
        # short steps take the place of the average: what one adds, the next ones calm
        average, fewest = 0.0, _MOST_STEPS
    least = _RECALIBRATED_BY_PARAMETER * math.sqrt(n_parameters)
    if min(1.0, 0.5 / smoothness) * n_records / multiplier < max(
        _RECALIBRATED_FROM, least
    ):
        unclipped_norm = None
    n_last = 0
    if n_steps is not None and unclipped_norm is not None:
        n_last = n_steps // (_TRAINING_FOR_ONE_MORE + 1)
        if n_last < _FEWEST_RECALIBRATING:
            n_last = 0
        n_steps -= n_last
    if n_steps is None:
        # no further in more steps than in few: more only make each a calmer one
        distance = min(distance, _LARGEST_CLIP_NORM * longest * _MANY_STEPS)
        most = max(_MANY_STEPS, min(_AFFORDABLE // n_records, _MOST_STEPS))
        wanted = min(distance / (LEAST_CLIP_NORM * usual), most)
        n_steps = max(fewest, math.ceil(wanted))
        if unclipped_norm is not None:
            n_last = n_steps // _TRAINING_FOR_ONE_MORE
    # what the distance needs at the longest step, within the two norms of the notes
    if clip_norm is None:
        least = max(shortest, distance / (n_steps * longest))
        clip_norm = min(_LARGEST_CLIP_NORM, least)
    # R = C * rate * n_steps of the notes, solved for the rate
    rate = distance / (clip_norm * n_steps)
    if schedule is not None:
        factor = SCHEDULES[check_option(tuple(SCHEDULES), schedule=schedule)]
        # with the mean step of the run in the place of the rate
        rate /= sum(factor(step, n_steps) for step in range(n_steps)) / n_steps
    rate = min(rate, longest)
    # steps longer than is stable are made of shorter ones that follow each other
    momentum = max(0.0, 1 - stable / rate)
    total, recalibration = n_steps + n_last, None
    if n_last:
        recalibration = Recalibration(n_steps=n_last, clip_norm=unclipped_norm)  # type: ignore[arg-type] # not None
    return RunDefaults(
        n_steps=total,
        clip_norm=clip_norm,
        learning_rate=(1 - momentum) * rate,
        momentum=momentum,
        average=average,
        recalibration=recalibration,
    )
