"""Last steps of a run: how long the parameters should be, by slopes along them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.releases import Recalibration
    from skpuffer.utils._types import Booleans, Floats

__all__ = ["RecalibrationRun"]

#: So many standard deviations of its noise a gain must be above, to be one. Found on
#: four drawn tables of 600 to 8,000 records, at budgets from 0.3 to 3.
_SURE = 1.0


class RecalibrationRun:
    """State of the last steps of a run, which find a factor of all parameters.

    Gradients are taken at multiples of the parameters, on a grid up to one, and read
    along them alone, so that one direction of their noise matters. Labels stay what
    they are.

    Parameters
    ----------
    recalibration : Recalibration
        Of :mod:`skpuffer.releases`.
    initial : ndarray of shape (dim,)
        Parameters that only noisy gradients made.
    penalised : ndarray of bool of shape (dim,), default=None
        Which of them `l2` is for; None for all.
    l2 : float, default=0.0
        Coefficient of half their squared length.
    deviation : float, default=0.0
        Standard deviation of a coordinate of the noisy mean gradients.

    Notes
    -----
    The sum of the slopes between a factor and one, by the trapezoidal rule, is how much
    the loss falls. Its noise is known, and grows with the way; returned is the factor
    of which the loss falls most when one standard deviation is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Recalibration
    >>> from skpuffer.training._recalibration import RecalibrationRun
    >>> run = RecalibrationRun(
    ...     Recalibration(n_steps=3, clip_norm=1.0, shortest=0.5), np.array([2.0, 0.0])
    ... )
    >>> for _ in range(3):
    ...     run.step(run.parameters - np.array([1.5, 9.0]))
    >>> run.result()
    array([1.5, 0. ])
    """

    def __init__(
        self,
        recalibration: Recalibration,
        initial: Floats,
        penalised: Booleans | None = None,
        l2: float = 0.0,
        deviation: float = 0.0,
    ):
        rule = recalibration
        # from one down, which is where the parameters are
        self._factors = np.linspace(1.0, rule.shortest, rule.n_steps)
        self._initial = initial
        squares = initial**2 if penalised is None else initial[penalised] ** 2
        self._penalty = l2 * float(np.sum(squares))
        self._deviation = deviation * float(np.linalg.norm(initial))
        self._slopes: list[float] = []

    @property
    def parameters(self) -> Floats:
        """Where the next gradient is taken, of shape (dim,)."""
        at = min(len(self._slopes), len(self._factors) - 1)
        found: Floats = self._factors[at] * self._initial
        return found

    def step(self, gradient: Floats) -> None:
        """Take the slope along the parameters of one more noisy mean gradient.

        Parameters
        ----------
        gradient : ndarray of shape (dim,)
        """
        factor = self._factors[len(self._slopes)]
        self._slopes.append(float(gradient @ self._initial) + factor * self._penalty)

    def result(self) -> Floats:
        """Return the parameters at the factor that was found.

        Returns
        -------
        ndarray of shape (dim,)
            As they were where no other factor is better for sure.
        """
        slopes = np.array(self._slopes)
        # what overflowed is found at the end of the run
        if len(slopes) < 2 or not np.all(np.isfinite(slopes)):
            return self._initial.copy()
        step = self._factors[0] - self._factors[1]
        falls = step * np.cumsum((slopes[1:] + slopes[:-1]) / 2)
        # an end of the way counts half, and all between whole
        noise = step * self._deviation * np.sqrt(np.arange(1, len(slopes)) - 0.5)
        sure = np.concatenate([[0.0], falls - _SURE * noise])
        found: Floats = self._factors[int(np.argmax(sure))] * self._initial
        return found
