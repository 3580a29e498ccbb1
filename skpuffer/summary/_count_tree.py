"""Counts of bins, of runs of bins, and so on: a tree, read back consistently."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpuffer._template._elsewhere import Part
from skpuffer.releases import Sensitivity

from ._cells import Bins, one_hot, stepwise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Array


# Children of a node, nearly: of 512 bins the mean standard deviation of a cumulative
# count is 3.2 times that of a plain count by Gaussian noise, and 5.5 times by Laplace
# noise. Two children take 3.1 and 9.3, twenty-three 3.8 and 5.4; no square matrix takes
# fewer than 2.9 by Gaussian noise.
_FAN_OUT = 8


def tree_shape(n_leaves: int) -> tuple[int, int]:
    """Return the number of levels without the root, and the children of each node."""
    n_levels = max(1, round(math.log(n_leaves, _FAN_OUT)))
    fan_out = math.ceil(n_leaves ** (1 / n_levels) - 1e-9)
    return n_levels, fan_out


@dataclass(frozen=True)
class CountTree:
    """Contribution to counts of bins and of runs of bins, from the top of a tree down.

    A node of a level counts `fan_out` nodes of the one below, the last one fewer; the
    lowest level are the bins. The root is left out: it is the number of records.

    Parameters
    ----------
    edges : tuple of float
        Increasing; see :class:`Bins`, also for `mark`.
        Unit by which counts are divided, so that their noise is so much larger.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013), Understanding
    hierarchical methods for differentially private histograms, for the fan-out.
    """

    position: int
    edges: tuple[float, ...]
    unit: float = 1.0
    mark: int | None = None

    @property
    def n_leaves(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def depth(self) -> int:
        """Number of levels."""
        return len(self.spans)

    @property
    def spans(self) -> tuple[int, ...]:
        """Bins that a node counts, by level from the top down."""
        n_levels, fan_out = tree_shape(self.n_leaves)
        return tuple(fan_out**k for k in reversed(range(n_levels)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes by level from the top down."""
        return tuple(-(-self.n_leaves // span) for span in self.spans)

    @property
    def dim(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    @property
    def units(self) -> tuple[float, ...]:
        """The unit, for each node."""
        return (self.unit,) * self.dim

    @property
    def is_count(self) -> bool:
        """Whether contributions are zeros and ones."""
        return self.unit == 1

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`: a record is in one node of each level."""
        h = self.depth
        # one that is replaced may leave all of its nodes and enter as many others
        return Sensitivity(
            add_remove={1.0: h, 2.0: math.sqrt(h), math.inf: 1.0},
            replace={1.0: 2 * h, 2.0: math.sqrt(2 * h), math.inf: 1.0},
        ).times(1 / self.unit)

    @property
    def by_column(self) -> dict[int, Sensitivity]:
        """Sensitivity of the contributions of its column, by its position."""
        return {self.position: self.sensitivity}

    @property
    def _bins(self) -> Bins:
        return Bins(self.position, self.edges, self.mark)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        codes = self._bins.codes(np.asarray(X))
        levels = [
            one_hot(codes // span, size)
            for span, size in zip(self.spans, self.sizes, strict=True)
        ]
        contributions: Floats = np.hstack(levels) / self.unit
        return contributions

    def sums(
        self,
        X: Array,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        return self._nodes(self._bins.sums(X, cells, n_cells, weights))

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self._bins.n_parts

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Those of the bins; see :meth:`Moments.parts`."""
        return self._bins.parts(columns)

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        return self._nodes(self._bins.from_parts(sums, counts))

    def _nodes(self, leaves: Floats) -> Floats:
        """Counts of all nodes from those of the bins, by cell."""
        levels = [
            np.add.reduceat(leaves, np.arange(0, self.n_leaves, span), axis=1)
            for span in self.spans
        ]
        sums: Floats = np.hstack(levels) / self.unit
        return sums

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return stepwise(gaps, self._bins.reads, self.sensitivity, norm)


def consistent_leaves(
    tree: CountTree, nodes: Floats, total: Floats | None = None
) -> Floats:
    """Counts of bins that agree best with the noisy counts of all nodes.

    The least-squares estimate, given that each node is the sum of its children. From
    the bottom up, a node is the mean of its own count and of its children's sum,
    weighted by inverse variances. From the top down, what children lack of their parent
    is added in proportion to their variances (Hay et al., 2010, Theorem 3). The result
    is linear in `nodes` and `total`, and unbiased if these are.
    """
    levels = np.split(nodes, np.cumsum(tree.sizes)[:-1], axis=1)
    spans = tree.spans
    # in nodes of a level: where the children of each one above begin
    begins = [
        np.arange(0, size, above // below)
        for size, above, below in zip(
            tree.sizes[1:], spans[:-1], spans[1:], strict=True
        )
    ]
    # from the bottom up: estimates by what lies below, and their variances
    estimates = [levels[-1]]
    variances = [np.ones(levels[-1].shape[1])]
    for level, begin in zip(levels[-2::-1], begins[::-1], strict=True):
        below = np.add.reduceat(estimates[-1], begin, axis=1)
        variance = np.add.reduceat(variances[-1], begin)
        # of two estimates of variances 1 and `variance`
        estimates.append((level * variance + below) / (1 + variance))
        variances.append(variance / (1 + variance))
    # from the top down
    found = estimates.pop()
    variance = variances.pop()
    if total is not None:
        lacking = np.asarray(total) - found.sum(axis=1)
        found = found + lacking[:, None] * (variance / variance.sum())
    for begin in begins:
        below, variance = estimates.pop(), variances.pop()
        lacking = found - np.add.reduceat(below, begin, axis=1)
        share = lacking / np.add.reduceat(variance, begin)
        counts = np.diff(np.append(begin, below.shape[1]))
        found = below + np.repeat(share, counts, axis=1) * variance
    return found


# -- counts that are not negative and agree with their totals: post-processing ---------


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

    None is negative, the parts of a group sum up to its size, and sizes to `total` (or
    to no more, unless `complete`). They minimise the sum of squares of the changes.
    True counts form a convex set of such counts, so the result is no further from them.

    Parameters
    ----------
    sizes : ndarray of shape (n_groups,) or None
        Noisy; None where none were released.
    parts : sequence of Parts
        Parts of each column, for the same groups, with noise of the same variance.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary._count_tree import Parts, nearest_counts
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
