"""The families of strategies, by the names that users give."""

from __future__ import annotations

import numpy as np

from skpuffer.utils._checks import check_count

from ._toeplitz import InverseToeplitz, Toeplitz

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
