"""Counts that are not negative and agree with their totals: post-processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["Parts", "nearest_counts"]

#: Halvings of a bracket: to the last digit.
_HALVINGS = 60


class Parts(NamedTuple):
    """Noisy counts of the parts that each group is cut into.

    Parameters
    ----------
    counts : ndarray of shape (n_groups, n_parts)
    complete : bool
        Whether every record of a group is in one of its parts.
    """

    counts: Floats
    complete: bool


def nearest_counts(
    sizes: Floats | None,
    parts: Sequence[Parts],
    total: float,
    complete: bool,
) -> tuple[Floats, list[Floats]]:
    """Nearest counts to noisy ones that could be those of a table.

    That is: none is negative, those of the parts of a group sum up to its size, and the
    sizes of the groups to the number of records; or to no more, where records may be in
    none. They minimise the sum of squares of the changes. True counts are such counts,
    and these form a convex set: so, whatever the noise, they are no further from the
    true ones, all together, than the noisy ones are.

    Parameters
    ----------
    sizes : ndarray of shape (n_groups,) or None
        Noisy; None where none were released.
    parts : sequence of Parts
        Of each column, for the same groups, with noise of the same variance.
    total : float
        Number of records, without noise.
    complete : bool
        Whether every record is in a group.

    Returns
    -------
    sizes : ndarray of shape (n_groups,)
    parts : list of ndarray of shape (n_groups, n_parts)

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary._consistency import Parts, nearest_counts
    >>> bins = Parts(np.array([[6.0, 3.0, -1.0]]), True)
    >>> nearest_counts(np.array([10.0]), [bins], 10.0, True)[1]
    [array([[6.5, 3.5, 0. ]])]
    """
    # The parts of one group are max(counts - t, 0) for a threshold t each, by which
    # they sum up to a size; and a size is lowered by the price of the total. Both sums
    # fall as the threshold, or the price, rises.
    sorted_parts = [_Sorted(p) for p in parts]
    n_groups = len(parts[0].counts) if sizes is None else len(sizes)

    def sizes_at(price: float) -> Floats:
        def excess(size: Floats) -> Floats:
            slope = np.full(n_groups, price)
            if sizes is not None:
                slope = slope + size - sizes
            for p in sorted_parts:
                slope = slope - p.threshold(size)
            return slope

        zero = np.zeros(n_groups)
        return _root(excess, zero, np.full(n_groups, total))

    free = sizes_at(0.0)
    if complete or free.sum() > total:
        # a price that no size is worth, or that would make each of them the total
        noisy = [p.counts for p in parts] + ([] if sizes is None else [sizes])
        high = float(sum(np.abs(each).sum() + total for each in noisy)) + 1
        low = -high if complete else 0.0
        price = _root(
            lambda price: total - sizes_at(float(price[0])).sum(keepdims=True),
            np.array([low]),
            np.array([high]),
        )
        free = sizes_at(float(price[0]))
        # to the last digit of the price, which leaves some of the sum
        free = free * (total / free.sum()) if free.sum() > 0 else free
    return free, [p.summing_to(free) for p in sorted_parts]


class _Sorted:
    """Parts in decreasing order, by which thresholds are found at once."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.down = -np.sort(-parts.counts, axis=1)
        self.sums = np.cumsum(self.down, axis=1)

    def threshold(self, size: Floats) -> Floats:
        """Threshold at which what is above it sums up to a size, by group."""
        k = np.arange(1, self.down.shape[1] + 1)
        each = (self.sums - size[:, None]) / k
        # the largest: of the parts that stay above their own threshold
        found: Floats = each.max(axis=1)
        if not self.parts.complete:
            # what is in no part takes up the rest
            found = np.maximum(found, 0.0)
        return found

    def summing_to(self, size: Floats) -> Floats:
        """Nearest parts that sum up to a size, or to no more."""
        return np.maximum(self.parts.counts - self.threshold(size)[:, None], 0.0)


def _root(rising: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Root of a function that rises in each coordinate, or the end it lies beyond."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = rising(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2
