"""Norms of moves of any size."""

import numpy as np

from ._types import Floats

__all__ = ["lengths_of", "unit_near"]


def unit_near(numbers: Floats) -> float:
    """Power of two near the largest absolute number.

    Division by it is exact, and leaves numbers whose powers neither vanish nor
    overflow, except where they are nothing beside the largest.
    """
    return float(np.ldexp(1.0, np.frexp(np.abs(numbers).max(initial=0.0))[1] - 1))


def lengths_of(moves: Floats, norm: float) -> Floats:
    """Norms along the last axis, of which the largest is zero for no moves only.

    Parameters
    ----------
    moves : ndarray of shape (..., dim)
    norm : float
        Order, in [1, inf].

    Returns
    -------
    ndarray of shape (...)
    """
    # a length that vanished would be a move that no noise covers
    unit = unit_near(moves)
    return np.asarray(unit * np.linalg.norm(moves / unit, ord=norm, axis=-1))
