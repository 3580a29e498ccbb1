"""Standard errors of shape functions, from the noise of the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._plan import AVERAGE
from ._probabilities import clipped_curvature
from ._rounds import LARGEST_NORM

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

    from ._basis import Basis
    from ._plan import RoundPlan

__all__ = ["mean_curvature", "standard_errors"]

#: Rows that are drawn from the released masses to find how curved the loss is.
_DRAWS = 1000


def mean_curvature(
    basis: Basis,
    functions: Sequence[Floats],
    intercept: Floats,
    clip: float,
    *,
    classification: bool,
) -> Floats:
    """Mean curvature of the loss of clipped residuals, by output.

    Over rows drawn from the released masses as if features were independent, with a
    fixed seed: of released numbers alone.

    Parameters
    ----------
    basis : Basis
    functions : sequence of ndarray of shape (n_cells, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    clip : float
    classification : bool

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if not classification:
        return np.ones(intercept.size)
    rng = np.random.default_rng(0)
    scores = np.tile(intercept, (_DRAWS, 1))
    for function, masses in zip(functions, basis.masses, strict=True):
        shares = np.maximum(masses, 0.0)
        scores += function[rng.choice(masses.size, _DRAWS, p=shares / shares.sum())]
    return clipped_curvature(scores, clip)


def standard_errors(
    basis: Basis,
    plan: RoundPlan,
    n_rounds: int,
    deviation: float,
    n_records: int,
    curvature: Floats,
) -> list[Floats]:
    """Standard deviation that the noise of the rounds gives each function.

    Parameters
    ----------
    basis : Basis
    plan : RoundPlan
    n_rounds : int
    deviation : float
        Of the noise of each coordinate of a round.
    n_records : int
    curvature : ndarray of shape (n_outputs,)

    Returns
    -------
    list of ndarray of shape (n_cells, n_outputs)

    Notes
    -----
    To first order a round moves parameter j by the noise and by minus ``n * curvature *
    s_j`` times what noise has made of it before, s_j the variance of its column under
    the masses. The answer to one unit of noise is the same whenever it comes, so the
    mean of the last iterates has a variance in closed form. Correlation between
    features is left out.
    """
    # noise in units of the sum of residuals times rows
    noise = deviation * plan.clip * LARGEST_NORM
    pairs = zip(basis.masses, basis.tables, strict=True)
    variances = np.concatenate([masses @ table**2 for masses, table in pairs])
    pull = n_records * np.multiply.outer(variances, curvature)
    spread = _spread_of_average(pull, plan.step, plan.momentum, n_rounds)
    parts = zip(basis.tables, basis.split(spread), strict=True)
    return [noise * np.sqrt(table**2 @ part) for table, part in parts]


def _spread_of_average(
    pull: Floats, step: float, momentum: float, n_rounds: int
) -> Floats:
    """Variance of the mean of the last iterates, for noise of variance one a round."""
    n_averaged = int(np.ceil(AVERAGE * n_rounds))
    velocity, moved = np.ones_like(pull), step * np.ones_like(pull)
    # sums of the answers up to each round after the noise
    sums = [np.zeros_like(pull), moved]
    for _ in range(n_rounds - 1):
        velocity = momentum * velocity - pull * moved
        moved = moved + step * velocity
        sums.append(sums[-1] + moved)
    total = np.zeros_like(pull)
    for left in range(1, n_rounds + 1):
        # noise that `left` iterates feel, of which the first are not averaged
        before = max(0, left - n_averaged)
        total += ((sums[left] - sums[before]) / n_averaged) ** 2
    return total
