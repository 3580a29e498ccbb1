"""Where a search of noise starts, and how an augmented Lagrangian goes on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Booleans, Floats

from ._atoms import Atoms
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


#: Kinds of starting shapes.
STARTS = ("waterfill", "iso", "inverse", "collapsed")

#: Variance of a direction that is given up, as a share of what it would get.
_COLLAPSED = 1e-6


def starting_shapes(
    kinds: Sequence[str],
    filled: Floats,
    basis: Floats,
    priors: Sequence[Atoms],
    budget: float,
) -> Iterator[tuple[str, Floats]]:
    """Yield shapes of noise by name.

    Parameters
    ----------
    kinds : sequence of str
        Of `STARTS`.
    filled : ndarray of shape (d, d)
        The water-filling noise.
    basis : ndarray of shape (d, d)
        Eigenvectors of the outputs' covariance, the largest variance first.
    priors : sequence of Atoms
    budget : float
        In nats.

    Yields
    ------
    name : str
    shape : ndarray of shape (d, d)
    """
    variances = np.einsum("ij,ik,kj->j", basis, filled, basis)
    if "waterfill" in kinds:
        yield "waterfill", filled
    if "iso" in kinds:
        yield "iso", np.eye(len(filled)) * variances.mean()
    if "inverse" in kinds and len(variances) > 1:
        yield "inverse", (basis * variances[::-1]) @ basis.T
    if "collapsed" in kinds:
        for name, chosen in _affordable(basis, priors, budget):
            kept = np.where(chosen, _COLLAPSED, 1.0)
            yield f"collapsed {name}", (basis * (variances * kept)) @ basis.T


def _affordable(
    basis: Floats, priors: Sequence[Atoms], budget: float
) -> Iterator[tuple[str, Booleans]]:
    """Sets of directions whose exact release costs less than the budget.

    Single directions, the leading ones and the trailing ones. A set that holds one too
    dear is too dear itself.
    """
    d = len(basis)

    def cost_of(chosen: Booleans) -> float:
        return max(a.projected_entropy(basis[:, chosen]) for a in priors)

    seen = set()
    ranks = np.arange(d)
    single = [ranks == i for i in range(d)]
    for name, ends in (
        ("leading", [ranks < k for k in range(1, d)]),
        ("trailing", [ranks >= d - k for k in range(1, d)]),
        ("single", single if d > 2 else []),
    ):
        for chosen in ends:
            key, cost = chosen.tobytes(), cost_of(chosen)
            if cost >= budget:
                if name == "single":
                    continue
                # more of them cost more
                break
            # directions that do not vary are no gain
            if key not in seen and cost > 0:
                seen.add(key)
                yield f"{name} {np.flatnonzero(chosen).tolist()}", chosen
