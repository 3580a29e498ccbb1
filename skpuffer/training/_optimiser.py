"""Run of an optimiser on noisy gradients: post-processing throughout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.releases import Optimiser
    from skpuffer.utils._types import Booleans, Floats

__all__ = ["OptimiserRun"]


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
        self._n_steps = n_steps
        self._done = 0
        #: Current iterate, of shape (dim,).
        self.parameters = self._project(np.array(initial, dtype=np.float64))
        self._velocity = np.zeros_like(self.parameters)
        weight = 1.0 if penalised is None else np.asarray(penalised, dtype=np.float64)
        self._l2 = optimiser.l2 * weight
        n_averaged = math.ceil(float(optimiser.average) * n_steps)
        self._first_averaged = n_steps - n_averaged
        self._sum = np.zeros_like(self.parameters)

    def step(self, gradient: Floats) -> Floats:
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
        rate = optimiser.step_size(self._done, self._n_steps)
        moved = self.parameters - rate * gradient
        if optimiser.l2:
            # implicitly, so that no penalty is too strong for the learning rate; over
            # 1 - momentum, as much as momentum makes of the other gradient
            moved = moved / (1 + rate / (1 - optimiser.momentum) * self._l2)
        self.parameters = self._project(moved)
        if self._done >= self._first_averaged:
            self._sum += self.parameters
        self._done += 1
        return self.parameters

    def result(self) -> Floats:
        """Return the last iterate, or the mean of the last ones."""
        n_averaged = self._done - self._first_averaged
        if n_averaged <= 0:
            return self.parameters.copy()
        return self._sum / n_averaged

    def _project(self, parameters):
        """Project onto the l2 ball of the optimiser's radius, if it has one."""
        radius = self._optimiser.radius
        if radius is not None:
            length = np.linalg.norm(parameters)
            if length > radius:
                parameters = parameters * (radius / length)
        return parameters
