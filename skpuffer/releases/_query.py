"""Query release: one vector computed from a table."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

# what is asked of it loads then, and most releases ask nothing
from skpuffer.exceptions import Statement, reason_of
from skpuffer.kernel.numbers import (
    Floats,
    check_all_positive,
    check_count,
    check_finite,
    check_positive,
)
from skpuffer.utils._elsewhere import TableElsewhere

from ._base import Release
from ._context import PublicContext
from ._sensitivity import Sensitivity, convert_norm

__all__ = ["QueryRelease"]

# Entries of contributions held at once while they are summed.
_BLOCK = 2**22

# What rounding may take off a distance.
_DIGITS = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryRelease(Release):
    """Query release: one vector computed from a table.

    Parameters
    ----------
    query : callable of (X, y), default=None
        Returns the vector of shape (dim,). May be None if `is_sum`; given with it, it
        is a faster way to the same sum, up to rounding.
    n_records : int
    dim : int or None
        Length of the vector; None if not known beforehand.
    name : str, default='query'
    contribution : callable of (X, y), default=None
        Maps records to an array of shape (n, m), each row from its own record alone
        and, if the query is a sum, in the units `units`. Hashable by value, so that
        distances under a prior are computed once. A method ``sums(X)``, if it has one,
        returns the sum of the rows without making them, up to rounding.
    is_sum : bool, default=False
        Whether the vector is `factor` times the sum of the contributions.
    factor : float, default=1.0
        Public factor of the sum, such as one over the number of records.
    modulus : callable of float, default=None
        If the query is not a sum, its modulus of continuity: how far the vector moves
        when one record's contribution moves by so much, both in `modulus_norm`.
    modulus_norm : float, default=2
    shift_ceiling : float, default=inf
        A move of one contribution beyond which nothing is gained: the vector may then
        move as for an arbitrary record. Distances need not be computed past it.
    sensitivity : Sensitivity, default=None
        Sensitivity of the vector to an arbitrary record, in `units`.
    units : tuple of float, default=None
        Public unit of each coordinate: the noise is proportional to it. None is one.
    slack : float, default=0.0
        Added once to every move, in `modulus_norm`: an optimiser's public tolerance.
    linear : ndarray of shape (dim, m), default=None
        The matrix of the query where it is linear in the stacked records.
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        What is taken as public or true, in sentences; written in the certificate.
    is_integer : bool, default=False
        Whether every coordinate of the vector is an integer whatever the table, as
        counts are: what noise on the integers needs.
    ball : pair (center, radius) or Ball, default=None
        Euclidean ball in which every vector lies, whatever the table: what `query`
        returns is projected to it. All that is said of the vector is said of the
        projected one. Not for sums.

    Examples
    --------
    A mean of values in [0, 1] of a table of a public number of records:

    >>> import numpy as np
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> mean = QueryRelease(
    ...     contribution=lambda X, y: X,
    ...     is_sum=True,
    ...     factor=1 / 4,
    ...     sensitivity=Sensitivity(add_remove={2: 1 / 4}),
    ...     n_records=4,
    ...     dim=1,
    ... )
    >>> mean.run(np.array([[0.0], [0.5], [0.5], [1.0]]))  # not to be released
    array([0.5])
    >>> mean.record_move(0.1, norm=2, relation="replace")
    0.025
    """

    is_one_output: ClassVar[bool] = True

    n_records: int
    # Callables say how to compute, and hold no rows: a release may be printed, kept and
    # asked about before any table is read.
    query: Callable[[Any, Any], ArrayLike] | None = None
    dim: int | None = None
    name: str = "query"
    contribution: Callable[[Any, Any], Any] | None = None
    is_sum: bool = False
    factor: float = 1.0
    modulus: Callable[[float], float] | None = None
    modulus_norm: float = 2.0
    shift_ceiling: float = math.inf
    sensitivity: Sensitivity | None = None
    units: tuple[float, ...] | None = None
    slack: float = 0.0
    linear: Floats | None = None
    context: PublicContext | None = None
    assumptions: tuple[Statement, ...] = ()
    is_integer: bool = False
    # a pair becomes a Ball
    ball: Any = None

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        # accounting takes the contributions, execution the query: a sum must have the
        # former
        if self.is_sum and self.contribution is None:
            raise ValueError(Statement("release.sum_contribution_missing"))
        if self.query is None and not self.is_sum:
            raise ValueError(Statement("release.query_missing"))
        # a projected sum is no sum of contributions, and no linear map
        if self.ball is not None and (self.is_sum or self.linear is not None):
            raise ValueError(Statement("release.ball_without_query"))
        if self.ball is not None:
            object.__setattr__(self, "ball", _ball(self.ball, self.dim))
        # positive, as each is divided by: a unit of zero would leave its coordinate
        # unnoised
        if self.units is not None:
            units = check_all_positive(units=map(float, self.units))
            object.__setattr__(self, "units", units)
        # without a sensitivity an arbitrary record may move the vector without end
        object.__setattr__(self, "is_bounded", self.sensitivity is not None)
        self._meet_context()

    def run(self, X: Any, y: Any = None) -> Floats:
        """Compute the exact vector from a table; it must not be released without noise.

        Parameters
        ----------
        X : {array-like of shape (n, n_features), TableElsewhere}
        y : array-like of shape (n,), default=None

        Returns
        -------
        ndarray of shape (dim,)
        """
        # a sum of contributions is the query, where only sums can be had
        elsewhere = self.is_sum and isinstance(X, TableElsewhere)
        # one vector of floats, whatever shape the callable returns
        if self.query is not None and not elsewhere:
            vector = np.asarray(self.query(X, y), dtype=float).ravel()
            if self.ball is None:
                return vector
            # how long it is may not have been known before
            _check_center(self.ball, vector.size)
            return np.asarray(self.ball.project(vector))
        # contributions are in the units, the vector is not
        total: Floats = self.factor * self._sum_of_contributions(X, y)
        if self.units is not None:
            total = total * np.asarray(self.units)
        return total

    def _sum_of_contributions(self, X: Any, y: Any) -> Any:
        """Sum over records, block by block: contributions may be wider than rows."""
        contribution = self.contribution
        assert contribution is not None  # a sum has one
        if isinstance(X, TableElsewhere):
            return X.sum(contribution)
        # the same without an array of each record's own, where it knows how
        if hasattr(contribution, "sums"):
            table = np.asarray(X)
            if table.dtype == object:
                table = table.astype(float)
            return contribution.sums(table).ravel()
        n, step = len(X), max(1, _BLOCK // (self.dim or _BLOCK))
        # data frames and sparse matrices are not sliced by position here
        if n <= step or not isinstance(X, np.ndarray):
            return contribution(X, y).sum(axis=0)
        return sum(
            contribution(X[i : i + step], None if y is None else y[i : i + step]).sum(
                axis=0
            )
            for i in range(0, n, step)
        )

    def record_move(self, shift: float, norm: float, relation: str) -> float:
        """Bound the sensitivity of the vector to one record, in `units`.

        Parameters
        ----------
        shift : float
            How far the record's contribution moves at most, in the norm that
            :meth:`shift_norm` names; infinity for an arbitrary record.
        norm : float
            Norm of the result.
        relation : {'add_remove', 'replace'}
            How the record changes if it is arbitrary.

        Returns
        -------
        float
            Without `slack`; infinite if nothing is known.
        """
        # A move is bounded in two ways, as of a record that may become any other and by
        # how far its contribution moves; both hold, so the smaller one does.
        arbitrary = math.inf
        if self.sensitivity is not None:
            arbitrary = self.sensitivity.value(relation, norm, self.dim)
        if math.isinf(shift):
            return arbitrary
        # the other contributions are the same in both tables, and cancel
        if self.is_sum:
            bound = abs(self.factor) * shift
        elif self.modulus is not None:
            bound = self.modulus(shift)
            bound = convert_norm(bound, self.modulus_norm, norm, self.dim)
        else:
            bound = math.inf
        return min(arbitrary, bound)

    def shift_norm(self, norm: float) -> float:
        """Norm in which contributions must be compared for a result in `norm`."""
        # a sum keeps the norm; a modulus of continuity was proved in one norm only
        return norm if self.is_sum else self.modulus_norm

    def total_slack(self, norm: float) -> float:
        """The optimiser's tolerance, in `norm`."""
        # so that an unknown dimension does not make infinity of nothing
        if self.slack == 0:
            return 0.0
        return convert_norm(self.slack, self.modulus_norm, norm, self.dim)

    def pair_costs(self, X: Any, y: Any, norm: float) -> Floats | None:
        """Return how far it moves by pairs; see :meth:`.VoteRelease.pair_costs`."""
        most = self.record_move(math.inf, norm, "replace") + self.total_slack(norm)
        if self.contribution is None or not self.moves_with_contributions:
            return None
        if not 0 < most < math.inf:
            return None
        if y is None and getattr(self.contribution, "needs_target", False):
            return None
        points = np.asarray(self.contribution(X, y), dtype=float)
        lengths = pdist(points, "minkowski", p=self.shift_norm(norm))
        if self.is_sum:
            moves = np.minimum(abs(self.factor) * lengths, most)
        else:
            moves = np.array([self.record_move(v, norm, "replace") for v in lengths])
            # nothing of a record is read but its contribution
            moves = np.where(lengths == 0, 0.0, moves + self.total_slack(norm))
        costs: Floats = squareform(np.minimum(moves / most * (1 + _DIGITS), 1.0))
        return costs


def _ball(given: Any, dim: int | None) -> "Ball":
    """Return a ball from a pair of center and radius, or the ball given."""
    if not isinstance(given, Ball):
        try:
            center, radius = given
        except (TypeError, ValueError):
            raise TypeError(Statement("release.ball_not_a_pair", given=given)) from None
        try:
            given = Ball(radius, center)
        except (TypeError, ValueError) as error:
            raise type(error)(
                Statement("release.ball_invalid", reason=reason_of(error))
            ) from None
    ball: Ball = given
    _check_center(ball, dim)
    return ball


def _check_center(ball: "Ball", dim: int | None) -> None:
    """Refuse a ball around a point that is no vector of this length."""
    size = np.size(ball.center)
    if np.ndim(ball.center) > 1 or (dim is not None and size not in (1, dim)):
        coordinates = (
            "coordinate"
            if dim is None
            else Statement("release.coordinates_of_vector", dim=dim)
        )
        raise ValueError(
            Statement(
                "release.ball_center_shape_wrong",
                coordinates=coordinates,
                shape=np.shape(ball.center),
            )
        )


#: Relative room for round-off when samples are held to their declared support.
_ROOM = 1e-9


@dataclass(frozen=True)
class Ball:
    """All points within a distance of a centre, as the range of a query.

    Parameters
    ----------
    radius : float
    center : float or array-like of shape (dim,), default=0.0

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import Ball
    >>> ball = Ball(radius=1.0)
    >>> ball.holds(np.array([[0.6, 0.8], [0.0, 0.0]]))
    True
    >>> ball.project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    radius: float
    center: ArrayLike = 0.0

    def __post_init__(self) -> None:
        check_positive(radius=self.radius)
        check_finite(center=self.center)

    def ranges(self, directions: Floats) -> tuple[Floats, Floats]:
        """Return least and largest projection, each of shape (n_directions,)."""
        middle = directions @ _vector(directions.shape[1], center=self.center)
        reach = self.radius * np.linalg.norm(directions, axis=1)
        return middle - reach, middle + reach

    def holds(self, points: Floats) -> bool:
        """Whether all points are within, to round-off."""
        center = np.asarray(self.center, dtype=float)
        lengths = np.linalg.norm(points - center, axis=1)
        room = _ROOM * (self.radius + float(np.abs(center).max()))
        return bool(np.all(lengths <= self.radius + room))

    def project(self, points: Floats) -> Floats:
        """Return the nearest point within, for each of the points.

        Parameters
        ----------
        points : ndarray of shape (dim,) or (n_points, dim)

        Returns
        -------
        ndarray of the same shape
            Points that are within stay as they are, to the last digit.
        """
        center = _vector(points.shape[-1], center=self.center)
        away = points - center
        # one that is infinitely far has no direction, and stays what it is: not finite
        with np.errstate(invalid="ignore", over="ignore"):
            lengths = np.linalg.norm(away, axis=-1, keepdims=True)
            nearer = center + away * (self.radius / np.maximum(lengths, self.radius))
        return np.asarray(np.where(lengths <= self.radius, points, nearer))


def _vector(dim: int, **named: ArrayLike) -> Floats:
    """Return the one named value, a number or one for each coordinate, as a vector."""
    ((name, raw),) = named.items()
    array = np.asarray(raw, dtype=float)
    if array.shape not in ((), (1,), (dim,)):
        raise ValueError(
            Statement(
                "transport.vector_shape_invalid", name=name, dim=dim, shape=array.shape
            )
        )
    return np.broadcast_to(array, (dim,))
