"""What a run makes of its noisy sums: post-processing, at no cost in privacy."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_non_negative,
    check_option,
    check_positive,
    check_real,
)

__all__ = ["SCHEDULES", "Optimiser", "Recalibration"]


#: Share of a run that warms up, under the schedule of that name.
_WARM_UP = 0.05


def _warm_up_and_cosine(step: int, n_steps: int) -> float:
    """Rise on a line for a twentieth of the run, then fall on half a cosine."""
    warm = int(_WARM_UP * n_steps)
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / (n_steps - warm))) / 2


#: Factor of the learning rate at a share ``t / n_steps`` of the run, or at step t, by
#: name.
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda step, n_steps: 1.0,
    "invscaling": lambda step, n_steps: 1 / math.sqrt(step + 1),
    "linear": lambda step, n_steps: 1 - step / n_steps,
    "cosine": lambda step, n_steps: (1 + math.cos(math.pi * step / n_steps)) / 2,
    "warmup_cosine": _warm_up_and_cosine,
}


@dataclass(frozen=True, kw_only=True)
class Recalibration:
    """Last steps of a run, which find how long its parameters should be.

    Gradients are clipped to another norm there, and with their noise multiplied by the
    ratio of the two, so that a record weighs as much against the noise as in any other
    step.

    Parameters
    ----------
    n_steps : int
        How many of the last steps they are: a grid of as many factors, 2 at least.
    clip_norm : float
        To which gradients are clipped there. Where none is as long, they are not
        biased.
    shortest : float, default=0.2
        In (0, 1): the least of the factors, of which the largest is one.

    Raises
    ------
    TypeError
        If a parameter is not a number.
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks, for one factor of all
    scores (temperature scaling).

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease, Optimiser, Recalibration
    >>> last = Recalibration(n_steps=4, clip_norm=2.0)
    >>> optimiser = Optimiser(learning_rate=0.5, recalibration=last)
    >>> run = GradientRelease(
    ...     n_records=1000, n_steps=20, sampling="full_batch", optimiser=optimiser
    ... )
    >>> run.n_steps, run.optimiser.recalibration.n_steps
    (20, 4)
    """

    n_steps: int
    clip_norm: float
    shortest: float = 0.2

    def __post_init__(self) -> None:
        if check_count(n_steps=self.n_steps) < 2:
            raise value_error(
                "training.recalibration_steps_too_few", n_steps=self.n_steps
            )
        check_positive(clip_norm=self.clip_norm)
        if not check_positive(shortest=self.shortest) < 1:
            raise value_error(
                "training.recalibration_shortest_out_of_range", shortest=self.shortest
            )


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """Stochastic gradient descent on noisy mean gradients.

    It sees released numbers only, so it may do with them what it likes at no cost;
    :func:`skpuffer.training.train` executes it.

    Parameters
    ----------
    learning_rate : float
        Positive.
    schedule : {'constant', 'invscaling', 'linear', 'cosine', 'warmup_cosine'}, \
default='constant'
        How the learning rate falls: not at all, as one over the square root of the
        number of steps, on a line to zero at the end of the run, or on half a cosine,
        with or without a rise over the first twentieth of the run.
    momentum : float, default=0.0
        In [0, 1): share of the last direction that is kept, ``v = momentum v + g``.
    nesterov : bool, default=False
        Whether to step along ``g + momentum v`` instead of v.
    average : float, default=0.0
        In [0, 1]: the mean of the iterates of so large a share of the run, counted
        from its end, is returned. Zero (or False) returns the last one.
    l2 : float, default=0.0
        Coefficient of half the squared norm of the parameters, added to the objective.
        Its step is an implicit one, which is stable for any coefficient.
    penalise_all : bool, default=False
        Whether `l2` is for every parameter, intercepts and biases included.
    radius : float, default=None
        Parameters are projected onto the l2 ball of this radius after each step.
    restart : bool, default=False
        Whether the direction of a parameter that is not penalised, such as an
        intercept, is forgotten when the gradient turns against it. Momentum then takes
        it no further past where it should stay.
    recalibration : Recalibration, default=None
        The last steps of a run, if they are others. The schedule and the averages are
        of those before.

    Raises
    ------
    TypeError
        If a parameter is not a real number where one is asked for.
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Sutskever et al. (2013), On the importance of initialization and momentum in deep
    learning; Rakhlin, Shamir, Sridharan (2012), Making gradient descent optimal for
    strongly convex stochastic optimization, for averages of the end of a run;
    O'Donoghue and Candès (2015), Adaptive restart for accelerated gradient schemes.

    Examples
    --------
    >>> from skpuffer.releases import Optimiser
    >>> optimiser = Optimiser(learning_rate=0.5, schedule="linear")
    >>> optimiser.step_sizes(4)
    [0.5, 0.375, 0.25, 0.125]
    """

    learning_rate: float
    schedule: str = "constant"
    momentum: float = 0.0
    nesterov: bool = False
    average: float = 0.0
    l2: float = 0.0
    penalise_all: bool = False
    radius: float | None = None
    restart: bool = False
    recalibration: Recalibration | None = None

    def __post_init__(self) -> None:
        # of any size: training itself says when a step overflows
        if not 0 < check_real(learning_rate=self.learning_rate) < math.inf:
            raise value_error(
                "training.learning_rate_out_of_range", learning_rate=self.learning_rate
            )
        check_option(tuple(SCHEDULES), schedule=self.schedule)
        # at one, no gradient would ever be forgotten
        if not 0 <= check_real(momentum=self.momentum) < 1:
            raise value_error("training.momentum_out_of_range", momentum=self.momentum)
        if not 0 <= check_real(average=float(self.average)) <= 1:
            raise value_error("training.average_out_of_range", average=self.average)
        # a negative penalty divides by zero at some step size, or turns the step around
        check_non_negative(l2=self.l2)
        if self.radius is not None:
            check_positive(radius=self.radius)
        if not isinstance(self.recalibration, Recalibration | None):
            raise type_error(
                "training.recalibration_wrong_type", recalibration=self.recalibration
            )
        if self.recalibration is not None and self.radius is not None:
            raise value_error("training.recalibration_with_radius")

    def step_sizes(self, n_steps: int) -> list[float]:
        """Return the learning rate at each step of a run, by the schedule."""
        # by the step's number alone, never by a loss: the data has no say in it
        schedule = SCHEDULES[self.schedule]
        return [self.learning_rate * schedule(step, n_steps) for step in range(n_steps)]

    def contractions(
        self, n_steps: int, smoothness: float, *, all_penalised: bool = True
    ) -> list[float]:
        """Return a Lipschitz constant of each step of a run in the iterate.

        For a step against the exact gradient of a convex mean loss, the penalty and the
        projection included: two runs that see the same gradients' noise come no further
        apart in it than by this factor.

        Parameters
        ----------
        n_steps : int
        smoothness : float
            Lipschitz constant of the gradient of the mean loss in the parameters;
            infinity if it has none.
        all_penalised : bool, default=True
            Whether `l2` is for all parameters: one that is not penalised, such as an
            intercept, need not contract.

        Returns
        -------
        list of float
            At most one where the step is no longer than ``2 / smoothness``. Infinite
            with momentum, which carries more than the iterate.

        Raises
        ------
        ValueError
            If `smoothness` is negative or not a number.

        References
        ----------
        Hardt, Recht and Singer (2016), Train faster, generalize better, Lemma 3.7: the
        step of a convex smooth loss; that a proximal step divides by 1 + step * l2.
        """
        smoothness = check_non_negative(smoothness=smoothness)
        if self.momentum:
            return [math.inf] * n_steps
        penalty = self.l2 if all_penalised else 0.0
        # the curvature is anywhere from zero to the smoothness; a projection is
        # 1-Lipschitz
        return [
            max(1.0, step * smoothness - 1) / (1 + step * penalty)
            for step in self.step_sizes(n_steps)
        ]
