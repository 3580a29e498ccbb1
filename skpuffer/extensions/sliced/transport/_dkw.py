"""Upper bounds on sliced W_inf from samples, by bands around distribution functions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Indices, check_finite, check_probability
from skpuffer.kernel.queries import Ball, _vector

from ._profile import SliceProfile
from ._sliced import (
    Atoms,
    centred,
    checked_pairs,
    directions_of,
    for_each,
    over_blocks,
    unordered,
)

#: What positions in a sample are raised by, so that round-off never lowers one.
_NUDGE = 1e-9


@dataclass(frozen=True)
class Box:
    """All points between two corners, as the range of a query.

    Parameters
    ----------
    lower, upper : float or array-like of shape (dim,)

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import Box
    >>> Box(lower=[0.0, -1.0], upper=1.0).holds(np.array([[0.5, -0.5]]))
    True
    """

    lower: ArrayLike
    upper: ArrayLike

    def __post_init__(self) -> None:
        lower, upper = check_finite(lower=self.lower), check_finite(upper=self.upper)
        if not np.all(lower <= upper):
            raise value_error("transport.box_lower_above_upper")

    def ranges(self, directions: Floats) -> tuple[Floats, Floats]:
        """Return least and largest projection, each of shape (n_directions,)."""
        dim = directions.shape[1]
        one = directions * _vector(dim, lower=self.lower)
        other = directions * _vector(dim, upper=self.upper)
        return np.minimum(one, other).sum(axis=1), np.maximum(one, other).sum(axis=1)

    def holds(self, points: Floats) -> bool:
        """Whether all points are within."""
        above = points >= np.asarray(self.lower, dtype=float)
        return bool(np.all(above & (points <= np.asarray(self.upper, dtype=float))))


def dkw_sliced_distances(
    worlds: Sequence[ArrayLike],
    profile: SliceProfile,
    *,
    support: Ball | Box | None,
    confidence: float,
    pairs: Iterable[tuple[int, int]] | None = None,
    coordinate_scale: ArrayLike | None = None,
    n_jobs: int | None = None,
    max_memory: float = 256.0,
) -> Floats:
    r"""Bound sliced W_inf of distributions known by independent draws.

    Each distribution function is within :math:`e = \sqrt{\log(2/\rho) / (2n)}` of that
    of its `n` draws, except with probability :math:`\rho`. With draws :math:`x_{(1)}
    \le \dots \le x_{(n)}` in the range :math:`[a, b]`, a quantile is

    .. math:: x_{(\lceil (t - e) n \rceil)} \le F^{-1}(t) \le x_{(\lceil (t+e) n\rceil)}

    where there is no such draw, `a` below and `b` above. The bound is the largest
    difference of an upper and a lower quantile, over all levels and in both orders.

    Parameters
    ----------
    worlds : sequence of array-like of shape (n_draws, dim)
        Independent draws of each distribution; their numbers may differ.
    profile : SliceProfile
        Finite, of as many coordinates.
    support : Ball or Box
        Range that all distributions stay in. Without one there is no bound.
    confidence : float
        Probability, in (0, 1), that all bounds hold at once.
    pairs : iterable of (int, int), default=None
        Positions of the distributions to compare. All pairs if None.
    coordinate_scale : array-like of shape (dim,), default=None
        Unit of each coordinate. The support is in the units of the points.
    n_jobs, max_memory : int, float
        Threads, as joblib counts them, and megabytes for projections.

    Returns
    -------
    bounds : ndarray of shape (n_pairs, n_slices)

    Raises
    ------
    ValueError
        If a draw is outside of the support.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, Section 4.3.2, whose
    estimate leaves out the tails and one of the two orders, and is no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import Box, SliceProfile, dkw_sliced_distances
    >>> x, line = np.arange(100).reshape(-1, 1) / 100, SliceProfile.basis(1)
    >>> worlds, support = [x, x + 0.5], Box(0, 1.5)
    >>> dkw_sliced_distances(worlds, line, support=support, confidence=0.95).round(6)
    array([[0.8]])
    """
    if not isinstance(support, Ball | Box):
        raise value_error("transport.support_not_ball_or_box")
    failure = 1 - check_probability(confidence=confidence)
    directions = directions_of(profile, coordinate_scale)
    points, origin = centred(worlds, profile.dim)
    compared = checked_pairs(pairs, len(points))
    low, high = support.ranges(directions)
    # held to it where they were given
    if not all(support.holds(np.asarray(world, dtype=float)) for world in worlds):
        raise value_error("transport.support_excludes_draws")
    moved = directions @ origin
    ends = np.stack([low - moved, high - moved])
    # each distribution function on each slice may fail as often
    each = failure / (len(points) * len(directions))
    bands = [math.sqrt(math.log(2 / each) / (2 * len(one))) for one in points]
    wanted = unordered(compared)
    orders = {
        (i, j): _upper_positions(len(points[i]), len(points[j]), bands[i] + bands[j])
        for pair in wanted
        for i, j in (pair, pair[::-1])
    }

    def measure(block: dict[int, Floats], part: slice) -> Floats:
        lowest, highest = ends[:, part, None]
        upper, lower = {}, {}
        for at, rows in block.items():
            rows.sort(axis=1)
            # no narrower than the draws, by round-off
            upper[at] = np.hstack([rows, np.maximum(highest, rows[:, -1:])])
            lower[at] = np.hstack([np.minimum(lowest, rows[:, :1]), rows])
        return np.array(
            [
                np.maximum(
                    _largest_excess(upper[i], lower[j], orders[i, j]),
                    _largest_excess(upper[j], lower[i], orders[j, i]),
                )
                for i, j in wanted
            ]
        )

    used = {at: Atoms(points[at]) for pair in wanted for at in pair}
    table = over_blocks(used, directions, measure, n_jobs, max_memory)
    return for_each(compared, wanted, table, len(directions))


def _upper_positions(n: int, m: int, band: float) -> Indices:
    """Return positions of upper quantiles of `n` draws for lower ones of `m` draws.

    Lower draw j serves levels up to ``j / m + e``; there the upper is
    ``ceil((j / m + e + e') n)``. Zero and beyond the last stand for the least and
    largest possible values.
    """
    levels = np.arange(m + 1) / m + band
    above = np.minimum(np.ceil(levels * n + _NUDGE), n + 1).astype(np.intp) - 1
    return above[: int(np.argmax(above == n)) + 1]


def _largest_excess(upper: Floats, lower: Floats, positions: Indices) -> Floats:
    excess = upper.take(positions, axis=1) - lower[:, : len(positions)]
    return excess.max(axis=1)
