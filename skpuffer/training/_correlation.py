"""Correlation of noise, as a user asks for it who does not know the run yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skpuffer.kernel.numbers import check_option

# its names load when a strategy is made
from skpuffer.noise import strategies as make
from skpuffer.kernel.sampling import FreshBinsSampling

if TYPE_CHECKING:
    from skpuffer.noise.strategies import NoiseStrategy
    from skpuffer.kernel.gradients import GradientRelease

__all__ = ["NOISE_CORRELATIONS", "strategy_of_run"]

# Diagonals of what is made by its name: of more of them there is less to gain than of
# the first ones, and accounting for them takes longer.
_BANDWIDTH = 4

#: Strategies by their names, each made for a number of steps, of batches of an epoch
#: and of diagonals.
NOISE_CORRELATIONS: dict[str, Callable[[int, int, int], NoiseStrategy]] = {
    "banded_square_root": lambda n, b, p: make.banded_square_root(p),
    "banded_inverse_square_root": lambda n, b, p: make.banded_inverse_square_root(p),
    "banded_matrix_factorization": (
        lambda n, b, p: make.banded_matrix_factorization(n, p, b)
    ),
    "banded_inverse_factorization": (
        lambda n, b, p: make.banded_inverse_factorization(n, p, b)
    ),
    "buffered_linear_toeplitz": (
        lambda n, b, p: make.buffered_linear_toeplitz(n, n_batches=b)
    ),
    "prefix_sum_tree": lambda n, b, p: make.prefix_sum_tree(n),
}


def strategy_of_run(asked: Any, release: GradientRelease) -> NoiseStrategy | None:
    """Return the strategy for a run, given it or its name.

    Parameters
    ----------
    asked : NoiseStrategy or str
        A strategy is taken as it is. Of those that are made by their names the banded
        ones have four diagonals, or as many as an epoch has steps.
    release : GradientRelease
        The run, complete but for the correlation of its noise.

    Returns
    -------
    NoiseStrategy or None
        None for independent noise; also where every step is an epoch, in which all
        records take part each time and nothing is gained.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if not isinstance(asked, str):
        strategy: NoiseStrategy = asked
        return strategy
    named = NOISE_CORRELATIONS[
        check_option(tuple(NOISE_CORRELATIONS), noise_correlation=asked)
    ]
    n_batches, n_steps = release.steps_per_epoch, release.n_steps
    if n_batches == 1:
        return None
    width = min(_BANDWIDTH, n_batches)
    # bins that are dealt anew must find noise that is independent of the last ones'
    if isinstance(release.sampling, FreshBinsSampling):
        return make.restarted(named(n_batches, n_batches, width), every=n_batches)
    return named(n_steps, n_batches, width)
