"""From noisy gradients to parameters: post-processing throughout."""

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.utils._checks import (
    check_non_negative,
    check_option,
    check_positive,
    check_real,
)

__all__ = ["SCHEDULES", "Optimiser"]

#: Factor of the learning rate at a share ``t / n_steps`` of the run, or at step t, by
#: name.
SCHEDULES = {
    "constant": lambda step, n_steps: 1.0,
    "invscaling": lambda step, n_steps: 1 / math.sqrt(step + 1),
    "linear": lambda step, n_steps: 1 - step / n_steps,
    "cosine": lambda step, n_steps: (1 + math.cos(math.pi * step / n_steps)) / 2,
}


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """Stochastic gradient descent on noisy mean gradients.

    It sees released numbers only, so it may do with them what it likes at no cost.

    Parameters
    ----------
    learning_rate : float
        Positive.
    schedule : {'constant', 'invscaling', 'linear', 'cosine'}, default='constant'
        How the learning rate falls: not at all, as one over the square root of the
        number of steps, on a line to zero at the end of the run, or on half a cosine.
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
    radius : float, default=None
        Parameters are projected onto the l2 ball of this radius after each step.

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
    strongly convex stochastic optimization, for averages of the end of a run.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Optimiser
    >>> run = Optimiser(learning_rate=0.5).start(np.zeros(1), n_steps=2)
    >>> run.step(np.array([-2.0])), run.step(np.array([1.0]))
    (array([1.]), array([0.5]))
    >>> run.result()
    array([0.5])
    """

    learning_rate: float
    schedule: str = "constant"
    momentum: float = 0.0
    nesterov: bool = False
    average: float = 0.0
    l2: float = 0.0
    radius: float | None = None

    def __post_init__(self):
        # of any size: training itself says when a step overflows
        if not 0 < check_real(learning_rate=self.learning_rate) < math.inf:
            raise ValueError(
                "The parameter 'learning_rate' must be in the range (0, inf). "
                f"Got {self.learning_rate!r}."
            )
        check_option(tuple(SCHEDULES), schedule=self.schedule)
        if not 0 <= check_real(momentum=self.momentum) < 1:
            raise ValueError(
                "The parameter 'momentum' must be in the range [0, 1). "
                f"Got {self.momentum!r}."
            )
        if not 0 <= check_real(average=float(self.average)) <= 1:
            raise ValueError(
                "The parameter 'average' must be in the range [0, 1]: a share of the "
                f"run. Got {self.average!r}."
            )
        check_non_negative(l2=self.l2)
        if self.radius is not None:
            check_positive(radius=self.radius)

    def start(self, initial, n_steps, penalised=None):
        """Begin a run.

        Parameters
        ----------
        initial : ndarray of shape (dim,)
            Starting parameters: public, or released before.
        n_steps : int
        penalised : ndarray of bool of shape (dim,), default=None
            Which parameters `l2` is for; None for all.

        Returns
        -------
        run : OptimiserRun
            With ``step(gradient)``, that returns the next parameters, and ``result()``.
        """
        return OptimiserRun(self, initial, n_steps, penalised)


class OptimiserRun:
    """State of one run of an :class:`Optimiser`; see its method `start`."""

    def __init__(self, optimiser, initial, n_steps, penalised):
        self._optimiser = optimiser
        self._n_steps = n_steps
        self._done = 0
        self._parameters = self._project(np.array(initial, dtype=np.float64))
        self._velocity = np.zeros_like(self._parameters)
        weight = 1.0 if penalised is None else np.asarray(penalised, dtype=np.float64)
        self._l2 = optimiser.l2 * weight
        n_averaged = math.ceil(float(optimiser.average) * n_steps)
        self._first_averaged = n_steps - n_averaged
        self._sum = np.zeros_like(self._parameters)

    @property
    def parameters(self):
        """Parameters reached so far, of shape (dim,)."""
        return self._parameters

    def step(self, gradient):
        """Return the parameters after one more noisy mean gradient.

        Parameters
        ----------
        gradient : ndarray of shape (dim,)
            Not changed.

        Returns
        -------
        ndarray of shape (dim,)
            A new array.
        """
        optimiser = self._optimiser
        if optimiser.momentum:
            self._velocity = optimiser.momentum * self._velocity + gradient
            if optimiser.nesterov:
                gradient = gradient + optimiser.momentum * self._velocity
            else:
                gradient = self._velocity
        rate = optimiser.learning_rate * SCHEDULES[optimiser.schedule](
            self._done, self._n_steps
        )
        moved = self._parameters - rate * gradient
        if optimiser.l2:
            # implicitly, so that no penalty is too strong for the learning rate; over
            # 1 - momentum, as much as momentum makes of the other gradient
            moved = moved / (1 + rate / (1 - optimiser.momentum) * self._l2)
        self._parameters = self._project(moved)
        if self._done >= self._first_averaged:
            self._sum += self._parameters
        self._done += 1
        return self._parameters

    def result(self):
        """Return the last parameters, or the mean of the last ones."""
        n_averaged = self._done - self._first_averaged
        if n_averaged <= 0:
            return self._parameters.copy()
        return self._sum / n_averaged

    def _project(self, parameters):
        radius = self._optimiser.radius
        if radius is not None:
            length = np.linalg.norm(parameters)
            if length > radius:
                parameters = parameters * (radius / length)
        return parameters
