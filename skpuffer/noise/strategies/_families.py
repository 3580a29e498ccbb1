"""The families of strategies, by the names that users give."""

from __future__ import annotations

import numpy as np

from skpuffer.utils._checks import check_count

from ._base import NoiseStrategy
from ._restarted import Restarted
from ._toeplitz import InverseToeplitz, Toeplitz
from ._tree import PrefixSumTree

__all__ = ["banded_inverse_square_root", "banded_square_root", "identity"]


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


def _square_root(size: int) -> np.ndarray:
    """Coefficients of (1 - x)^(-1/2): the square root of the prefix sums."""
    steps = np.arange(1, size)
    return np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])


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
    return Toeplitz(tuple(_square_root(size).tolist()))


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
    roots = _square_root(size)
    return InverseToeplitz((1.0, *np.diff(roots).tolist()))


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
