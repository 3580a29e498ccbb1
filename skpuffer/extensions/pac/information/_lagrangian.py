"""Stochastic search of noise by an augmented Lagrangian."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats

from ._banks import Bank
from ._laws import GaussianLaw
from ._objective import Objective

#: Steps, and over how many of the last ones the noise is averaged.
_STEPS, _AVERAGED = 600, 200

#: Step length, as a share of the standard deviation of the noise, and its decay.
_RATE, _DECAY = 0.05, 0.01

#: Draws of one step.
_DRAWS = 2000


def augmented_lagrangian(
    objective: Objective,
    shape: Floats,
    rng: np.random.Generator,
    kept: Callable[[Floats], Floats],
) -> Floats:
    """Return a shape of little cost, by Adam on the Cholesky factor.

    Fresh draws in every step. The multiplier rises as long as the budget is broken, so
    that no finite penalty is traded against it.

    Parameters
    ----------
    objective : Objective
    shape : ndarray of shape (d, d)
        Where to start.
    rng : numpy.random.Generator
    kept : callable
        What of a matrix the family of noise knows.

    Returns
    -------
    ndarray of shape (d, d)
        To be scaled to the budget.
    """
    unit = objective.cost(shape)
    factor = np.linalg.cholesky(shape)
    multiplier, penalty = 0.0, 5.0 / objective.budget
    first, second = np.zeros_like(factor), np.zeros_like(factor)
    average = np.zeros_like(factor)
    size = np.sqrt(np.trace(shape) / len(shape))
    for step in range(1, _STEPS + 1):
        covariance = kept(factor @ factor.T)
        banks = [
            Bank.stratified(a, _DRAWS, rng, per_atom=0)
            for a in objective.leakage.priors
        ]
        leakage = replace(objective.leakage, banks=banks)
        value, mmse = leakage(GaussianLaw(covariance))
        # in budgets, and the cost in that of the start: no unit matters
        excess = (value - objective.budget) / objective.budget
        force = max(0.0, multiplier + 2 * penalty * objective.budget * excess)
        if mmse is None:
            raise ValueError(Statement("pac.solver_gradient_unknown"))
        half = np.linalg.solve(covariance, kept(mmse()))
        pull = np.linalg.solve(covariance, half.T)
        gradient = 2 * objective.weight @ factor / unit
        gradient -= force / objective.budget * pull @ factor
        gradient = np.tril(gradient)
        # Adam (Kingma and Ba, 2015)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        rate = _RATE * size / (1 + _DECAY * step)
        moments = first / (1 - 0.9**step), second / (1 - 0.99**step)
        factor = factor - rate * moments[0] / (np.sqrt(moments[1]) + 1e-12)
        multiplier = max(0.0, multiplier + 0.5 * excess)
        if step > _STEPS - _AVERAGED:
            average += covariance / _AVERAGED
    return average
