"""Last steps of a run: how long the parameters should be, by slopes along them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression

if TYPE_CHECKING:
    from skpuffer.releases import Recalibration
    from skpuffer.utils._types import Booleans, Floats

__all__ = ["RecalibrationRun"]


class RecalibrationRun:
    """State of the last steps of a run, which find a factor of all parameters.

    Gradients are taken at multiples of the parameters, on a grid, and read along them
    alone, so that one direction of their noise matters. The loss along a line is
    convex and its slope rises: the slopes, smoothed so that they do, are zero at the
    factor that is returned. Labels stay what they are.

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

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Recalibration
    >>> from skpuffer.training._recalibration import RecalibrationRun
    >>> run = RecalibrationRun(
    ...     Recalibration(n_steps=3, clip_norm=1.0, shortest=0.5, longest=1.5),
    ...     np.array([2.0, 0.0]),
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
    ):
        rule = recalibration
        self._factors = np.linspace(rule.shortest, rule.longest, rule.n_steps)
        self._initial = initial
        squares = initial**2 if penalised is None else initial[penalised] ** 2
        self._penalty = l2 * float(np.sum(squares))
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
            At one of the two ends where no slope is of the other sign, and as they
            were where nothing is known.
        """
        slopes = np.array(self._slopes)
        # what overflowed is found at the end of the run
        if not len(slopes) or not np.all(np.isfinite(slopes)):
            return self._initial.copy()
        rising = isotonic_regression(slopes)
        # equal ones have their zero anywhere: in the middle, on a line that rises
        rising = rising + 1e-12 * np.max(np.abs(rising)) * np.arange(len(slopes))
        found: Floats = float(np.interp(0.0, rising, self._factors)) * self._initial
        return found
