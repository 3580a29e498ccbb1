"""Room for moves that are a little off: shapes that allow for it, and what it costs."""

import math

import numpy as np

from skpuffer.kernel.numbers import Floats

__all__ = ["longest_within", "with_room"]

#: Halvings of the bracket of a multiplier: any point of it gives a bound.
_HALVINGS = 60

#: Least distance of the multiplier from the largest eigenvalue, in parts of it.
_NEAREST = 1e-12

_MACHINE_EPS = float(np.finfo(float).eps)


def with_room(shape: Floats, room: float) -> Floats:
    """Return the shape that covers what a shape covers, and all within so much of it.

    Parameters
    ----------
    shape : ndarray of shape (dim, dim)
        S, which may be of lower rank, with S >= v v' for each move v.
    room : float
        Length t by which each move may be off, in any direction.

    Returns
    -------
    ndarray of shape (dim, dim)
        (1 + a) S + (1 + 1/a) t² I with a = t (dim / tr S)^(1/2). Its trace is
        ((tr S)^(1/2) + t dim^(1/2))², which is least where there is one move.

    Notes
    -----
    For vectors v and w and any a > 0, (v + w)(v + w)' <= (1 + a) v v' + (1 + 1/a) w w',
    and w w' <= t² I where the length of w is at most t.
    """
    if room == 0:
        return shape
    dim, trace = len(shape), float(np.trace(shape))
    if trace == 0:
        return room**2 * dim * np.eye(dim)
    a = room * math.sqrt(dim / trace)
    return np.asarray((1 + a) * shape + (1 + 1 / a) * room**2 * np.eye(dim))


def longest_within(moves: Floats, covariance: Floats, room: float) -> Floats:
    """Longest of the moves within a distance of each, in the norm of a noise.

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)
    covariance : ndarray of shape (dim, dim)
        Of the noise, in the same units.
    room : float
        Positive: how far off a move may be, in l2.

    Returns
    -------
    ndarray of shape (n_moves,)
        Bounds of max (v + w)' C^-1 (v + w) over w of a length of at most `room`, as
        lengths, rounded up. Infinite where the noise has no variance in some direction.

    Notes
    -----
    By Lagrangian duality, for every l above the largest eigenvalue of A = C^-1,

        max (v + w)' A (v + w) <= l room² + sum_j a_j v_j² l / (l - a_j)

    along the eigenvectors of A, with equality at the best l (the trust-region problem
    has no gap).
    """
    values, axes = np.linalg.eigh(covariance)
    # what rounding may have added to an eigenvalue is no variance
    values = values - 8 * len(values) * _MACHINE_EPS * np.abs(values).max()
    if values[0] <= 0:
        return np.full(len(moves), np.inf)
    a = 1 / values
    squares = (moves @ axes) ** 2
    # the multiplier is a[0] + t, and the derivative grows with t
    gaps = a[0] - a
    # no nearer to the eigenvalue than this: any multiplier gives a bound
    least = _NEAREST * a[0]
    high = np.maximum(np.sqrt(squares @ a**2) / room, least)
    low = np.full(len(moves), least)

    def falls(t: Floats) -> Floats:
        slopes = (a / (t[:, None] + gaps)) ** 2
        return np.asarray((squares * slopes).sum(axis=1) > room**2)

    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = falls(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    multiplier = a[0] + high
    terms = squares * a * (multiplier[:, None] / (high[:, None] + gaps))
    bound = multiplier * room**2 + terms.sum(axis=1)
    return np.asarray(np.sqrt(bound))
