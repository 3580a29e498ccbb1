"""Operator norm of a linear map from l2 to lp."""

import itertools

import numpy as np

from skpuffer.utils._lengths import lengths_of
from skpuffer.utils._types import Floats

__all__ = ["MOST_CORNERS", "half_the_signs", "operator_norm"]

#: Dimension up to which all corners of a cube are enumerated.
MOST_CORNERS = 12


def half_the_signs(dim: int) -> Floats:
    """Corners of the cube [-1, 1]^dim as rows, one of each two opposite ones."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
    return signs[: len(signs) // 2]


def operator_norm(matrix: Floats, norm: float) -> float:
    """Operator norm of a matrix from l2 to lp, or an upper bound of it.

    Parameters
    ----------
    matrix : ndarray of shape (dim, n_coordinates)
    norm : float
        Order p of the norm of the image, in [1, inf].

    Returns
    -------
    float
        The largest norm itself for the norms 2 and inf, for norm 1 up to `MOST_CORNERS`
        rows, and for a single row or column; otherwise a bound.
    """
    rows = lengths_of(matrix, 2)
    if norm == 1 and len(rows) <= MOST_CORNERS:
        # duality: max |A x|_1 over the l2 ball is max |A^T s|_2 over signs s, the
        # corners of the dual ball
        images = half_the_signs(len(rows)) @ matrix
        return float(lengths_of(images, 2).max())
    # two bounds: the lp norm of the rows' l2 norms (Cauchy-Schwarz row by row), and
    # ||y||_p <= dim^(1/p - 1/2) ||y||_2 for p < 2
    largest = float(np.linalg.norm(matrix, 2))
    widest: float = len(rows) ** max(0.0, 1 / norm - 0.5)
    return min(float(lengths_of(rows, norm)), largest * widest)
