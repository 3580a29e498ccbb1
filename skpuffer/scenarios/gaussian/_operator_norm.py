"""How far a linear map moves the points of a Euclidean ball."""

import itertools

import numpy as np

__all__ = ["MOST_CORNERS", "half_the_signs", "operator_norm"]

#: Coordinates of which all corners are gone through one by one.
MOST_CORNERS = 12


def half_the_signs(dim):
    """One of each two opposite corners of the cube [-1, 1]^dim, one a row."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
    return signs[: len(signs) // 2]


def operator_norm(matrix, norm):
    """Bound the norm of the image of the Euclidean unit ball.

    Parameters
    ----------
    matrix : ndarray of shape (dim, n_coordinates)
    norm : float
        Of the image, in [1, inf].

    Returns
    -------
    float
        The largest norm itself for the norms 2 and inf, for norm 1 up to `MOST_CORNERS`
        rows, and for a single row or column; otherwise a bound.
    """
    rows = np.linalg.norm(matrix, axis=1)
    if norm == 1 and len(rows) <= MOST_CORNERS:
        # dual to the maximum norm, whose unit ball is spanned by the corners
        images = half_the_signs(len(rows)) @ matrix
        return float(np.linalg.norm(images, axis=1).max())
    # of the image's norms: one from each row alone, one from the Euclidean norm
    largest = float(np.linalg.norm(matrix, 2))
    return min(
        float(np.linalg.norm(rows, norm)),
        largest * len(rows) ** max(0.0, 1 / norm - 0.5),
    )
