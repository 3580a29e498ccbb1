"""Last steps of a run: the length of the weights and what is not penalised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.releases import Recalibration
    from skpuffer.utils._types import Booleans, Floats

__all__ = ["RecalibrationRun"]


class RecalibrationRun:
    """State of the last steps of a run, in which weights keep their direction.

    A noisy gradient is read in few directions only, so that little of its noise is:
    along the weights, and by each intercept.

    Parameters
    ----------
    recalibration : Recalibration
        Of :mod:`skpuffer.releases`.
    initial : ndarray of shape (dim,)
        Released parameters, or such as only noisy gradients made.
    penalised : ndarray of bool of shape (dim,)
        Which of them are weights.
    n_outputs : int
        Number of scores: weights are a matrix with a column for each.
    l2 : float, default=0.0
        Coefficient of half the squared length of the weights.

    Notes
    -----
    The curvature of a loss in the length is at most its own times the squared spectral
    norm of the direction, a matrix of Frobenius norm one; the step is so much longer.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Recalibration
    >>> from skpuffer.training._recalibration import RecalibrationRun
    >>> run = RecalibrationRun(
    ...     Recalibration(n_steps=1, clip_norm=1.0, learning_rate=0.5),
    ...     np.array([3.0, 4.0, 1.0]),
    ...     np.array([True, True, False]),
    ...     n_outputs=1,
    ... )
    >>> run.step(np.array([10.0, 0.0, 2.0]))
    array([1.2, 1.6, 0. ])
    """

    def __init__(
        self,
        recalibration: Recalibration,
        initial: Floats,
        penalised: Booleans,
        *,
        n_outputs: int,
        l2: float = 0.0,
    ):
        self._rule = recalibration
        self._penalised = penalised
        weights = initial[penalised]
        length = float(np.linalg.norm(weights))
        self._direction, self._stretch = weights, np.ones(1 + int(np.sum(~penalised)))
        # without a direction there is nothing to move along; what overflowed is found
        # at the end of the run
        if 0 < length < np.inf:
            self._direction = weights / length
            spectral = np.linalg.norm(self._direction.reshape(-1, n_outputs), ord=2)
            self._stretch[0] = 1 / spectral**2
        # the length first
        self._state = np.concatenate([[length], initial[~penalised]])
        self._velocity = np.zeros_like(self._state)
        self._l2 = l2
        self._sum = np.zeros_like(self._state)
        self._done = self._averaged = 0

    @property
    def parameters(self) -> Floats:
        """Current iterate, of shape (dim,)."""
        return self._whole(self._state)

    def step(self, gradient: Floats) -> Floats:
        """Return the parameters after one more noisy mean gradient.

        Parameters
        ----------
        gradient : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (dim,)
        """
        rule, free = self._rule, ~self._penalised
        along = self._direction @ gradient[self._penalised]
        slopes = np.concatenate([[along], gradient[free]])
        self._velocity[self._velocity * slopes < 0] = 0.0
        self._velocity = rule.momentum * self._velocity + slopes
        rates = (1 - rule.momentum) * rule.learning_rate * self._stretch
        self._state = self._state - rates * self._velocity
        # implicitly, as in the steps before; a direction does not turn around
        shrunk = self._state[0] / (1 + rule.learning_rate * self._l2)
        self._state[0] = max(0.0, shrunk)
        self._done += 1
        # the first half is the way there
        if 2 * self._done > rule.n_steps:
            self._sum += self._state
            self._averaged += 1
        return self.parameters

    def result(self) -> Floats:
        """Return the mean iterate of the second half."""
        if not self._averaged:
            return self.parameters
        return self._whole(self._sum / self._averaged)

    def _whole(self, state: Floats) -> Floats:
        found = np.empty(len(self._penalised))
        found[self._penalised] = state[0] * self._direction
        found[~self._penalised] = state[1:]
        return found
