"""The families of strategies, by the names that users give."""

from __future__ import annotations

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_count, check_option

from ._base import NoiseStrategy
from ._buffered import BufferedToeplitz
from ._columns import best_columns
from ._optimised import (
    best_banded,
    best_buffered,
    best_inverse,
    inverse_square_root,
    square_root,
)
from ._restarted import Restarted
from ._rows import BandedRows
from ._toeplitz import InverseToeplitz, Toeplitz
from ._tree import PrefixSumTree

__all__ = [
    "banded_inverse_factorization",
    "banded_inverse_square_root",
    "banded_matrix_factorization",
    "banded_square_root",
    "buffered_linear_toeplitz",
    "identity",
    "prefix_sum_tree",
    "restarted",
]


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
    Kalinin, McKenna, Upadhyay and Lampert (2025), Back to square roots: an optimal
    bound on the matrix factorization error for multi-epoch differentially private SGD.

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
        Of the run that it is the best one for. It may be used for any other.
    bandwidth : int
        Number of diagonals of C.
    n_batches : int, default=None
        Steps between two participations of a record; None is a single one. It makes no
        difference from `bandwidth` on, as participations do not meet then.
    objective : {'mean', 'max'}, default='mean'
        Which error of the prefix sums is the least: the root mean square over the
        steps, or the largest.
    toeplitz : bool, default=True
        Whether all columns of C are the same. If not, it is for runs of `n_steps`
        alone, for the mean and for participations that do not meet; the error is less
        by two percent at most in runs that were tried. It takes seconds for a thousand
        steps, and more with their square.

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
    McKenna (2025), Scaling up the banded matrix factorization mechanism for large scale
    differentially private ML. Choquette-Choo et al. (2023), (Amplified) banded matrix
    factorization: a unified approach to private training.

    Examples
    --------
    >>> from skpuffer.noise.strategies import (
    ...     banded_matrix_factorization,
    ...     banded_square_root,
    ... )
    >>> for strategy in banded_matrix_factorization(100, 8), banded_square_root(8):
    ...     error = strategy.mean_error(100) * strategy.sensitivity(100, 100)
    ...     print(round(error, 3))
    3.125
    3.245
    """
    n_steps, n_batches = _run(n_steps, n_batches, objective)
    size = min(check_count(bandwidth=bandwidth), n_steps)
    if toeplitz:
        return best_banded(n_steps, size, n_batches, objective)
    if objective != "mean" or n_batches < size:
        raise ValueError(
            Statement(
                "strategy.non_toeplitz_unsupported",
                objective=objective,
                n_batches=n_batches,
                size=size,
            )
        )
    return best_columns(n_steps, size)


def banded_inverse_factorization(
    n_steps: int,
    bandwidth: int,
    n_batches: int | None = None,
    objective: str = "mean",
) -> InverseToeplitz:
    """Return the Toeplitz strategy of banded inverse of least error.

    Parameters
    ----------
    n_steps : int
        Of the run that it is the best one for. It may be used for any other.
    bandwidth : int
        Number of diagonals of the inverse of C.
    n_batches : int, default=None
        Steps between two participations of a record; None is a single one.
    objective : {'mean', 'max'}, default='mean'
        Which error of the prefix sums is the least: the root mean square over the
        steps, or the largest.

    Returns
    -------
    InverseToeplitz
        With ones on the diagonal.

    References
    ----------
    Kalinin, McKenna, Upadhyay and Lampert (2025), Back to square roots: an optimal
    bound on the matrix factorization error for multi-epoch differentially private SGD.

    Examples
    --------
    >>> from skpuffer.noise.strategies import banded_inverse_factorization
    >>> strategy = banded_inverse_factorization(100, 8)
    >>> error = strategy.mean_error(100) * strategy.sensitivity(100, 100)
    >>> round(error, 2)
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
        Of the run that it is made for. It may be used for any other.
    n_buffers : int, default=4
        As many vectors of noise are kept.
    n_batches : int, default=None
        Steps between two participations of a record; None is a single one.
    objective : {'mean', 'max'}, default='mean'
        Which error of the prefix sums is little: the root mean square over the steps,
        or the largest.

    Returns
    -------
    BufferedToeplitz
        With ones on the diagonal. At the parameters the error has no slope, but there
        may be others at which it is less.

    References
    ----------
    McMahan, Pillutla, Steinke, Thakurta and Dvijotham (2024), Hassle-free: buffered
    linear Toeplitz matrices for differentially private learning.

    Examples
    --------
    >>> from skpuffer.noise.strategies import buffered_linear_toeplitz
    >>> strategy = buffered_linear_toeplitz(100)
    >>> error = strategy.mean_error(100) * strategy.sensitivity(100, 100)
    >>> round(error, 2)
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
        Of the run.

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
    >>> restarted(banded_square_root(2), every=2).matrix(4)
    array([[1. , 0. , 0. , 0. ],
           [0.5, 1. , 0. , 0. ],
           [0. , 0. , 1. , 0. ],
           [0. , 0. , 0.5, 1. ]])
    """
    return Restarted(strategy, every)
