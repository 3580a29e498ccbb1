"""What each pair of records costs, beside how much their distributions overlap.

Beside how much the two distributions of a record have in common it counts how far each
pair of its values moves what is released. That is known of Gaussian noise on sums of
all records: a full batch, a query, a vote.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.spatial.distance import squareform

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Indices

from ._kinds import FiniteOverlap, Overlap
from ._rounding import ROUNDING

__all__ = ["ROOM_OF_PAIRS", "PairwiseOverlap", "pairwise_overlap"]

#: Values beyond so many are merged.
MOST_GROUPS = 200


#: Share of the longest move that is added to each positive one for the rounding of an
#: output to a grid.
ROOM_OF_PAIRS = 2.0**-16


@dataclass(frozen=True)
class PairwiseOverlap(Overlap, kind="pairwise_overlap"):
    """Pairs of distributions of one record, and how far its values are apart.

    Parameters
    ----------
    overlaps : tuple of FiniteOverlap
        Pairs of distributions on the same values: of secrets, and beliefs.
    costs : tuple of tuple of float
        How far the output moves at most when the record is of one group and becomes of
        another, as a share of how far any record may move it: symmetric, in [0, 1]. On
        the diagonal, for two records of one group: zero where its values, and all else
        of the record, are read as one and the same.
    groups : tuple of int, default=None
        Group of each value. None where each value is a group.

    Notes
    -----
    What an overlap's odds leave open of a record, given its value, is of the value's
    group too, so that its diagonal and the costs beside it are the largest over all
    else: of records with the one value and the other, whatever their rest.

    Of a group the positive and the negative part of P - e^ε Q are kept apart. Each is a
    mixture of records, and the trade-off of two mixtures is no worse than the worst of
    their members', so they are as far apart as the group's diagonal says, and from
    those of other groups as its costs. More of both parts diverges no less: at the best
    test the positive part of a group is rejected no less often than its negative part,
    where costs are a metric. They are made one: trade-offs of unit normals add up their
    distances along a chain of records.

    Examples
    --------
    Values 0 and 1 of a record move the output by half as much as any two records:

    >>> from skpuffer.privacy_loss.overlap import FiniteOverlap, PairwiseOverlap
    >>> overlap = PairwiseOverlap(
    ...     overlaps=(FiniteOverlap(first=(0.5, 0.5), second=(0.25, 0.75)),),
    ...     costs=((0.0, 0.5), (0.5, 0.0)),
    ... )
    >>> [round(eta, 3) for eta in overlap.etas(0.5)]
    [0.088, 0.0]
    """

    overlaps: tuple[FiniteOverlap, ...]
    costs: tuple[tuple[float, ...], ...]
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        costs = np.array(self.costs, float)
        if costs.ndim != 2 or len(costs) != len(costs.T) or not len(costs):
            raise ValueError(Statement("belief.costs_not_square", shape=costs.shape))
        # a unit in the last place is from dividing by the largest
        if not np.all((costs >= 0) & (costs <= 1 + ROUNDING)):
            raise ValueError(Statement("belief.costs_out_of_range"))
        if not np.array_equal(costs, costs.T):
            raise ValueError(Statement("belief.costs_not_symmetric"))
        n_values = {len(part.first) for part in self.overlaps}
        n_values |= {len(part.second) for part in self.overlaps}
        groups = range(len(costs)) if self.groups is None else self.groups
        if n_values != {len(groups)} or not set(groups) <= set(range(len(costs))):
            raise ValueError(Statement("belief.overlaps_values_mismatch"))
        # no fields: found once
        self._group: Indices
        self._metric: Floats
        object.__setattr__(self, "_group", np.array(groups))
        object.__setattr__(self, "_metric", _metric(np.minimum(costs, 1.0)))

    def _etas(self, epsilon: float) -> tuple[float, float]:
        first, second = zip(
            *(part._etas(epsilon) for part in self.overlaps), strict=True
        )
        return max(first), max(second)

    def masses(self, epsilon: float) -> list[tuple[Floats, Floats]]:
        """Return positive and negative masses of each group, for all overlaps' orders.

        Parameters
        ----------
        epsilon : float
            At least zero.

        Returns
        -------
        list of (ndarray, ndarray) of shape (n_groups,)
            Rounded to the side of the larger divergence.
        """
        found = []
        grown = math.exp(epsilon)
        for part in self.overlaps:
            p, q = np.asarray(part.first), np.asarray(part.second)
            for plus, u, v in zip(part.shares(epsilon), (p, q), (q, p), strict=True):
                # what is added to the one part is added to the other
                minus = np.maximum(plus - (u * (1 + ROUNDING) - grown * v), 0.0)
                sums = [self._by_group(mass) for mass in (plus, minus)]
                # records that are read as one and the same are one
                same = np.where(np.diag(self._metric) == 0, np.minimum(*sums), 0.0)
                found.append((sums[0] - same, sums[1] - same))
        return found

    def _by_group(self, mass: Floats) -> Floats:
        sums: Floats = np.bincount(self._group, mass, len(self._metric)).astype(float)
        return sums

    @property
    def metric(self) -> Floats:
        """Costs along the shortest chains of records, of shape (n_groups, n_groups)."""
        return self._metric


def _metric(costs: Floats) -> Floats:
    """Shortest chains; on the diagonal those of two different records of a group."""
    own = np.diag(costs).copy()
    metric = costs.copy()
    np.fill_diagonal(metric, 0.0)
    for between in range(len(metric)):
        by = metric[:, between, None] + metric[between]
        np.minimum(metric, by, out=metric)
    others = metric + np.diag(np.full(len(metric), math.inf))
    np.fill_diagonal(metric, np.minimum(own, 2 * others.min(axis=1)))
    return metric


def pairwise_overlap(
    overlaps: Iterable[FiniteOverlap], costs: Floats, *, most_groups: int = MOST_GROUPS
) -> PairwiseOverlap:
    """Return distributions of a record with the costs of its values, few or merged.

    Parameters
    ----------
    overlaps : iterable of FiniteOverlap
        On the same values.
    costs : ndarray of shape (n_values, n_values)
        As of :class:`PairwiseOverlap`, one group a value.
    most_groups : int, default=200
        More values are merged into so many groups of near ones.

    Returns
    -------
    PairwiseOverlap
    """
    costs, groups = np.asarray(costs, float), None
    if len(costs) > most_groups:
        apart = np.where(np.eye(len(costs), dtype=bool), 0.0, costs)
        hierarchy = scipy.cluster.hierarchy
        tree = hierarchy.linkage(squareform(apart, checks=False), "complete")
        groups = hierarchy.fcluster(tree, most_groups, "maxclust") - 1
        # of any member with any other, itself included where it has a cost
        merged = np.zeros((groups.max() + 1,) * 2)
        np.maximum.at(merged, (groups[:, None], groups[None]), costs)
        costs, groups = merged, tuple(groups.tolist())
    return PairwiseOverlap(tuple(overlaps), tuple(map(tuple, costs.tolist())), groups)
