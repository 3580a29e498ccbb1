"""The monotone coupling of masses on the line: the lowest meet the lowest."""

import numpy as np

from skpuffer.kernel.numbers import Indices, Integers


def match(a: Integers, b: Integers) -> tuple[Indices, Indices, Integers]:
    """Couple integer masses of equal totals in order.

    Returns
    -------
    i, j : ndarray of shape (k,)
        Indices of the atoms that meet.
    mass : ndarray of shape (k,)
        What they share, above zero, in the integers of `a` and `b`.
    """
    # North-west corner rule, all steps at once: along the common axis of cumulative
    # mass each atom occupies an interval, and between two successive ends of intervals
    # one atom of either distribution meets one of the other.
    ends = np.concatenate([np.cumsum(a), np.cumsum(b)])
    order = np.argsort(ends, kind="stable")  # merges two sorted runs in linear time
    ends = ends[order]
    last = np.append(ends[1:] != ends[:-1], True)
    mass = np.diff(ends[last], prepend=0)
    # The atom at the start of a share has as its index the number of atoms of the same
    # distribution that ended before; the two numbers add up to `ended`.
    ended = np.append(0, np.flatnonzero(last)[:-1] + 1)
    i = np.append(0, np.cumsum(order < len(a)))[ended]
    return i, ended - i, mass
