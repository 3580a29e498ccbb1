"""Published costs of sliced runs and of groups of records, to compare with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import (
    check_count,
    check_option,
    check_order,
    check_positive,
    check_probability,
    root_above,
)
from skpuffer.noise import GaussianNoise
from skpuffer.privacy_loss import GaussianPoissonPair
from skpuffer.utils._checks import check_masses

from .history._slices import layer_caps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["group_privacy_costs", "layer_caps", "sliced_variance"]


def sliced_variance(
    caps: ArrayLike,
    epsilon: float,
    alpha: float,
    *,
    slice_weights: ArrayLike | None = None,
    bound: str = "joint",
) -> float:
    """Return the variance of the noise that sliced Rényi Pufferfish privacy asks for.

    Parameters
    ----------
    caps : array-like of shape (n_steps, n_slices)
        Squared move of each step along each slice, at most.
    epsilon : float
        In nats.
    alpha : float
        Rényi order.
    slice_weights : array-like of shape (n_slices,), default=None
        Equal if None.
    bound : {'joint', 'averaged', 'exact'}, default='joint'
        The worst slice of each step; their weighted mean; or the joint divergence of
        the summed caps itself.

    Returns
    -------
    float
        As published. Where caps differ from slice to slice it holds for runs that do
        not read their own history, which no training run is: see
        :class:`~skpuffer.accountants.HistoryUniformCap`.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorem 5.6.

    Examples
    --------
    >>> from skpuffer.papers import sliced_variance
    >>> sliced_variance([[1, 4], [2, 2]], 2.0, 4.0)
    6.0
    """
    squares = np.asarray(caps, float)
    if squares.ndim != 2 or not squares.size or not np.all(squares >= 0):
        raise ValueError(Statement("papers.caps_shape_wrong", shape=squares.shape))
    epsilon, alpha = check_positive(epsilon=epsilon), check_order(alpha=alpha)
    weights = check_masses(squares.shape[1], slice_weights=slice_weights)
    check_option(("joint", "averaged", "exact"), bound=bound)
    # slices without weight are looked along by nobody
    squares, weights = squares[:, weights > 0], weights[weights > 0]
    per_epsilon = alpha / (2 * epsilon)
    if bound == "averaged":
        return float(per_epsilon * math.fsum(squares @ weights))
    joint = float(per_epsilon * math.fsum(squares.max(axis=1)))
    totals = squares.sum(axis=0)
    if bound == "joint" or not totals.max():
        return joint

    def cost(variance: float) -> float:
        divergences = alpha * totals / (2 * variance)
        return float(logsumexp((alpha - 1) * divergences, b=weights) / (alpha - 1))

    # no mean is below the plain one, nor above the largest
    low, high = per_epsilon * float(totals @ weights), per_epsilon * float(totals.max())
    # too near the smallest float to search from, the largest will do
    if low < 1e-280 or cost(low) <= epsilon:
        return high
    return root_above(cost, epsilon, low, high)


class GroupPrivacyCosts(NamedTuple):
    """Rényi costs of a group of records that come or go, by different accounts.

    Parameters
    ----------
    naive, subsampled, converted : float
    """

    naive: float
    subsampled: float
    converted: float


def group_privacy_costs(
    scale: float, rate: float, count: int, alpha: float, *, n_steps: int = 1
) -> GroupPrivacyCosts:
    """Return Rényi costs of a group that comes or goes, in Poisson batches.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise on a sum, in clip norms.
    rate : float
        Probability that a record is in a batch; in (0, 1).
    count : int
        Records that come, or that go. One that is replaced does both.
    alpha : float
        Rényi order, at least 2.
    n_steps : int, default=1

    Returns
    -------
    GroupPrivacyCosts
        A named tuple: `naive`, all of them in every batch; `subsampled`, as many as a
        batch draws, the larger of both directions; `converted`, that of one record at
        a higher order by the conversion to groups.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Proposition 2, for the conversion;
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix G, for the group
    as a baseline.

    Examples
    --------
    >>> from skpuffer.papers import group_privacy_costs
    >>> costs = group_privacy_costs(5.0, 0.2, 10, alpha=8.0)
    >>> round(costs.naive, 6), round(costs.subsampled, 6)
    (16.0, 1.487835)
    """
    scale, rate = check_positive(scale=scale), check_probability(rate=rate)
    count, n_steps = check_count(count=count), check_count(n_steps=n_steps)
    alpha = check_order(alpha=alpha)
    if not 2 <= alpha < math.inf:
        raise ValueError(Statement("papers.group_order_below_two", alpha=alpha))
    curve = GaussianNoise(scale).curve(1.0)

    def sampled(size: int, order: float) -> float:
        pairs = (
            GaussianPoissonPair(curve, rate, size, 0),
            GaussianPoissonPair(curve, rate, 0, size),
        )
        return max(pair.renyi_costs((order,))[0] for pair in pairs)

    # from each group to one of twice its size, at half the order
    doublings = math.ceil(math.log2(count))
    costs = (
        alpha * count**2 / (2 * scale**2),
        sampled(count, alpha),
        3**doublings * sampled(1, alpha * 2**doublings),
    )
    return GroupPrivacyCosts(*(n_steps * cost for cost in costs))
