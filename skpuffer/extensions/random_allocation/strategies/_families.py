"""The families of strategies, by the names that users give."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import solve_banded
from scipy.optimize import minimize

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, check_count, check_option

from ._base import NoiseStrategy, Restarted
from ._optimised import (
    BufferedToeplitz,
    InverseToeplitz,
    Toeplitz,
    best_banded,
    best_buffered,
    best_inverse,
    inverse_square_root,
    square_root,
)
from ._rows import BandedRows, PrefixSumTree

# So many columns of the inverse are held at once.
_COLUMNS = 128

# Steps of the search: each takes the time of solving for all columns twice.
_MOST_STEPS = 200


def columns_cost(x: Floats) -> tuple[float, Floats]:
    """Return the log of the mean squared error of prefix sums, and its gradient.

    Entry l of column j of `x` (bandwidth, n_steps) is that of C in row j + l, before
    the column is scaled to length one.
    """
    size, n_steps = x.shape
    lower, lengths = _normalised(x)
    # the transpose in the layout that solvers of banded systems read
    upper = np.zeros_like(lower)
    for lag in range(size):
        upper[size - 1 - lag, lag:] = lower[lag, : n_steps - lag]
    error, gradient = 0.0, np.zeros_like(x)
    for start in range(0, n_steps, _COLUMNS):
        units = np.zeros((n_steps, min(_COLUMNS, n_steps - start)))
        np.fill_diagonal(units[start:], 1.0)
        inverse = solve_banded((size - 1, 0), lower, units)
        sums = np.cumsum(inverse, axis=0)
        error += np.sum(sums**2)
        later = np.cumsum(sums[::-1], axis=0)[::-1]
        back = solve_banded((0, size - 1), upper, later)
        # - Y^T Y C^-T for Y = E C^-1, in the band alone
        for lag in range(size):
            gradient[lag, : n_steps - lag] -= np.einsum(
                "ij,ij->i", back[lag:], inverse[: n_steps - lag]
            )
    gradient *= 2 / error
    # of columns before they are made of length one: across them alone
    gradient -= lower * np.sum(gradient * lower, axis=0)
    return float(np.log(error / n_steps)), gradient / lengths


@lru_cache(maxsize=16)
def best_columns(n_steps: int, bandwidth: int) -> BandedRows:
    """Return the banded strategy of columns of length one, of little mean error."""
    column = best_banded(n_steps, bandwidth, n_steps, "mean").column
    # Columns at the end, which are cut off, are made of length one as well: no record
    # pays more for them.
    start = np.repeat(np.array(column)[:, np.newaxis], n_steps, axis=1)
    if n_steps == 1:
        return BandedRows(((1.0,),))  # there is no other column

    def cost(x: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, gradient = columns_cost(x.reshape(start.shape))
        if value < first + 1 and np.all(np.isfinite(gradient)):
            return value, gradient.ravel()
        return first + 1, np.zeros_like(x)

    first = columns_cost(start)[0]
    options = {"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-8}
    found = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    best = found.x if found.fun <= first else start.ravel()
    columns, _ = _normalised(best.reshape(start.shape))
    rows = np.zeros((n_steps, bandwidth))
    for lag, entries in enumerate(columns):
        rows[lag:, lag] = entries[: n_steps - lag]
    return BandedRows(tuple(map(tuple, rows.tolist())))


def _normalised(x: Floats) -> tuple[Floats, Floats]:
    """Columns of length one, zero below the last row, and what they were divided by."""
    size, n_steps = x.shape
    inside = np.arange(size)[:, np.newaxis] + np.arange(n_steps) < n_steps
    lengths: Floats = np.sqrt(np.sum(x**2, axis=0, where=inside))
    return np.where(inside, x / lengths, 0.0), lengths


def identity() -> Toeplitz:
    """Return the strategy of independent noise.

    Returns
    -------
    Toeplitz

    Examples
    --------
    >>> from skpuffer.noise.strategies import identity
    >>> identity().is_identity
    True
    """
    return Toeplitz((1.0,))


def banded_square_root(bandwidth: int) -> Toeplitz:
    """Return the square root of the prefix sums, cut off after some diagonals.

    Parameters
    ----------
    bandwidth : int
        Number of diagonals that are kept.

    Returns
    -------
    Toeplitz

    References
    ----------
    Kalinin and Lampert (2024), Banded square root matrix factorization for
    differentially private model training.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_square_root
    >>> banded_square_root(4).column
    (1.0, 0.5, 0.375, 0.3125)
    """
    size = check_count(bandwidth=bandwidth)
    return Toeplitz(tuple(square_root(size).tolist()))


def banded_inverse_square_root(bandwidth: int) -> InverseToeplitz:
    """Return the strategy whose inverse is that of the square root, cut off.

    Parameters
    ----------
    bandwidth : int
        Number of diagonals of the inverse that are kept.

    Returns
    -------
    InverseToeplitz

    References
    ----------
    Kalinin, McKenna, Upadhyay and Lampert (2025), Back to square roots.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_inverse_square_root
    >>> banded_inverse_square_root(4).column
    (1.0, -0.5, -0.125, -0.0625)
    """
    size = check_count(bandwidth=bandwidth)
    return InverseToeplitz(tuple(inverse_square_root(size).tolist()))


def banded_matrix_factorization(
    n_steps: int,
    bandwidth: int,
    n_batches: int | None = None,
    objective: str = "mean",
    toeplitz: bool = True,
) -> Toeplitz | BandedRows:
    """Return the banded strategy of least error at its sensitivity.

    Parameters
    ----------
    n_steps : int
        Length of the run that it is the best one for. It may be used for others.
    bandwidth : int
        Number of diagonals of C.
    n_batches : int, default=None
        Steps between two participations of a record; None is a single one.
    objective : {'mean', 'max'}, default='mean'
        Minimised error of the prefix sums: the root mean square, or the largest.
    toeplitz : bool, default=True
        Whether all columns of C are the same. If not, it is for runs of `n_steps`
        alone, for the mean and for participations that do not meet. The error is little
        smaller, and the time grows with the square of the steps.

    Returns
    -------
    Toeplitz or BandedRows
        With columns of length one.

    Raises
    ------
    ValueError
        If columns that differ are asked for and the run is not one for them.

    References
    ----------
    McKenna (2025), Scaling up the banded matrix factorization mechanism.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_matrix_factorization
    >>> strategy = banded_matrix_factorization(100, 8)
    >>> round(strategy.mean_error(100) * strategy.sensitivity(100, 100), 3)
    3.125
    """
    n_steps, n_batches = _run(n_steps, n_batches, objective)
    size = min(check_count(bandwidth=bandwidth), n_steps)
    if toeplitz:
        return best_banded(n_steps, size, n_batches, objective)
    if objective != "mean" or n_batches < size:
        raise value_error(
            "strategy.non_toeplitz_unsupported",
            objective=objective,
            n_batches=n_batches,
            size=size,
        )
    return best_columns(n_steps, size)


def banded_inverse_factorization(
    n_steps: int, bandwidth: int, n_batches: int | None = None, objective: str = "mean"
) -> InverseToeplitz:
    """Return the Toeplitz strategy of banded inverse of least error.

    Parameters
    ----------
    n_steps, bandwidth : int
        Length of the best run, and number of diagonals of the inverse of C.
    n_batches : int, default=None
    objective : {'mean', 'max'}, default='mean'
        As for :func:`banded_matrix_factorization`.

    Returns
    -------
    InverseToeplitz
        With ones on the diagonal.

    References
    ----------
    Kalinin, McKenna, Upadhyay and Lampert (2025), Back to square roots.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_inverse_factorization
    >>> strategy = banded_inverse_factorization(100, 8)
    >>> round(strategy.mean_error(100) * strategy.sensitivity(100, 100), 2)
    2.36
    """
    n_steps, n_batches = _run(n_steps, n_batches, objective)
    size = min(check_count(bandwidth=bandwidth), n_steps)
    return best_inverse(n_steps, size, n_batches, objective)


def buffered_linear_toeplitz(
    n_steps: int,
    n_buffers: int = 4,
    n_batches: int | None = None,
    objective: str = "mean",
) -> BufferedToeplitz:
    """Return a Toeplitz strategy of few buffers, of little error.

    Parameters
    ----------
    n_steps : int
        Length of the run that it is made for. It may be used for others.
    n_buffers : int, default=4
        Number of vectors of noise that are kept.
    n_batches : int, default=None
    objective : {'mean', 'max'}, default='mean'
        As for :func:`banded_matrix_factorization`.

    Returns
    -------
    BufferedToeplitz
        With ones on the diagonal. It is a local optimum.

    References
    ----------
    McMahan et al. (2024), Hassle-free: buffered linear Toeplitz matrices.

    Examples
    --------
    >>> from skpuffer.noise.strategies import buffered_linear_toeplitz
    >>> strategy = buffered_linear_toeplitz(100)
    >>> round(strategy.mean_error(100) * strategy.sensitivity(100, 100), 2)
    2.32
    """
    n_steps, n_batches = _run(n_steps, n_batches, objective)
    size = check_count(n_buffers=n_buffers)
    return best_buffered(n_steps, size, n_batches, objective)


def _run(n_steps: int, n_batches: int | None, objective: str) -> tuple[int, int]:
    """Check a run that a strategy is optimised for, with the batches of an epoch."""
    steps = check_count(n_steps=n_steps)
    check_option(("mean", "max"), objective=objective)
    if n_batches is None:
        return steps, steps
    return steps, min(check_count(n_batches=n_batches), steps)


def prefix_sum_tree(n_steps: int) -> PrefixSumTree:
    """Return the binary tree over the steps of a run.

    Parameters
    ----------
    n_steps : int
        Length of the run.

    Returns
    -------
    PrefixSumTree

    References
    ----------
    Kairouz et al. (2021), Practical and private (deep) learning without sampling or
    shuffling.

    Examples
    --------
    >>> from skpuffer.noise.strategies import prefix_sum_tree
    >>> tree = prefix_sum_tree(1000)
    >>> tree.n_rows(1000), round(tree.max_error(1000), 2)
    (1994, 2.3)
    """
    return PrefixSumTree(n_steps)


def restarted(strategy: NoiseStrategy, every: int) -> Restarted:
    """Return the strategy whose noise begins anew every so many steps.

    Parameters
    ----------
    strategy : NoiseStrategy
    every : int
        Number of steps after which it does, such as those of an epoch.

    Returns
    -------
    Restarted

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_square_root, restarted
    >>> restarted(banded_square_root(2), every=2).matrix(3).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return Restarted(strategy, every)
