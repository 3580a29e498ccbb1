"""Releases of one vector, and of several sums in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, reason_of, type_error, value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_all_positive,
    check_count,
    check_extent,
    check_finite,
    check_option,
    check_positive,
)
from skpuffer.kernel.releases import PublicContext, Release
from skpuffer.kernel.run import add_noise

if TYPE_CHECKING:
    from skpuffer.kernel.noise import Noise


# what is asked of it loads then, and most releases ask nothing


# Entries of contributions held at once while they are summed.
_BLOCK = 2**22


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
        and, if the query is a sum, in the units `units`. Hashable by value. A method
        ``sums(X)``, if it has one, returns the sum of the rows without making them, up
        to rounding.
    is_sum : bool, default=False
        Whether the vector is `factor` times the sum of the contributions.
    factor : float, default=1.0
        Public factor of the sum, such as one over the number of records.
    modulus : callable of float, default=None
        If the query is not a sum: how far the vector moves when one record's
        contribution moves by so much, both in `modulus_norm`.
    modulus_norm : float, default=2
    shift_ceiling : float, default=inf
        Beyond this move of one contribution the vector moves as for an arbitrary
        record.
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
        Facts taken as public or true; written in the certificate.
    is_integer : bool, default=False
        Whether every coordinate is an integer whatever the table, as counts are.
    ball : pair (center, radius) or Ball, default=None
        Euclidean ball to which the vector is projected. All that is said of the vector
        is said of the projected one. Not for sums.

    Examples
    --------
    A mean of values in [0, 1] of a table of a public number of records:

    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> mean = QueryRelease(
    ...     contribution=lambda X, y: X,
    ...     is_sum=True,
    ...     factor=1 / 4,
    ...     sensitivity=Sensitivity(add_remove={2: 1 / 4}),
    ...     n_records=4,
    ...     dim=1,
    ... )
    >>> mean.record_move(0.1, norm=2, relation="replace")
    0.025
    """

    #: What a certificate says of its last digits, where it is drawn on a grid.
    last_digits: ClassVar[str] = "assume.noise_exact_on_grid"

    is_one_output: ClassVar[bool] = True

    n_records: int
    # Callables say how to compute, and hold no rows: a release may be printed, kept and
    # asked about before any table is read.
    query: Callable[..., ArrayLike] | None = None
    dim: int | None = None
    name: str = "query"
    contribution: Callable[..., Floats] | None = None
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
            raise value_error("release.sum_contribution_missing")
        if self.query is None and not self.is_sum:
            raise value_error("release.query_missing")
        # a projected sum is no sum of contributions, and no linear map
        if self.ball is not None and (self.is_sum or self.linear is not None):
            raise value_error("release.ball_without_query")
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

    def run(self, X: object, y: object = None) -> Floats:
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
        elsewhere = self.is_sum and getattr(X, "is_elsewhere", False)
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
        if getattr(X, "is_elsewhere", False):
            return X.sum(contribution)
        # the same without an array of each record's own, where it knows how
        if hasattr(contribution, "sums"):
            table = np.asarray(X)
            if table.dtype == object:
                table = table.astype(float)
            return contribution.sums(table).ravel()
        return _sum_in_blocks(
            contribution, X, y, max(1, _BLOCK // (self.dim or _BLOCK))
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


def _sum_in_blocks(
    contribution: Callable[..., Floats], X: Any, y: Any, step: int
) -> Floats:
    # data frames and sparse matrices are not sliced by position here
    if len(X) <= step or not isinstance(X, np.ndarray):
        return contribution(X, y).sum(axis=0)  # type: ignore[no-any-return]
    total: Floats = sum(
        contribution(X[i : i + step], None if y is None else y[i : i + step]).sum(
            axis=0
        )
        for i in range(0, len(X), step)
    )
    return total


def _ball(given: Any, dim: int | None) -> Ball:
    """Return a ball from a pair of center and radius, or the ball given."""
    if not isinstance(given, Ball):
        try:
            center, radius = given
        except (TypeError, ValueError):
            raise type_error("release.ball_not_a_pair", given=given) from None
        try:
            given = Ball(radius, center)
        except (TypeError, ValueError) as error:
            raise type(error)(
                Statement("release.ball_invalid", reason=reason_of(error))
            ) from None
    ball: Ball = given
    _check_center(ball, dim)
    return ball


def _check_center(ball: Ball, dim: int | None) -> None:
    """Refuse a ball around a point that is no vector of this length."""
    size = np.size(ball.center)
    if np.ndim(ball.center) > 1 or (dim is not None and size not in (1, dim)):
        coordinates = (
            "coordinate"
            if dim is None
            else Statement("release.coordinates_of_vector", dim=dim)
        )
        raise value_error(
            "release.ball_center_shape_wrong",
            coordinates=coordinates,
            shape=np.shape(ball.center),
        )


#: Relative room for round-off when samples are held to their declared support.
_ROOM = 1e-9


@dataclass(frozen=True)
class Ball:
    """All points within a distance of a centre, as the range of a query.

    Parameters
    ----------
    center : float or array-like of shape (dim,), default=0.0
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
        raise value_error(
            "transport.vector_shape_invalid", name=name, dim=dim, shape=array.shape
        )
    return np.broadcast_to(array, (dim,))


#: Norms in which shares can be laid out: those of Gaussian and of Laplace noise.
_LAYOUTS = (2.0, 1.0)

#: Relations of neighbouring tables in which shares can be laid out.
_RELATIONS = ("add_remove", "replace")

#: What rounding may leave of the sum of the shares.
_SHARE_DIGITS = 1e-9


@dataclass(frozen=True)
class Stage:
    """One sum over records of an adaptive release, or several of one kind.

    Parameters
    ----------
    name : str
    dim : int
        Length of the vector.
    sensitivity : Sensitivity
        Sensitivity of one vector to one arbitrary record, whatever has been released
        before: a bound for every sum that the noisy vectors of earlier stages may lead
        to.
    share : float
        Part of the whole release's privacy, in (0, 1], of all repetitions together: of
        mu squared where shares are laid out in l2 (Gaussian noise), of epsilon where
        they are in l1 (Laplace noise).
    times : int, default=1
        How many such vectors are released.

    Examples
    --------
    >>> from skpuffer.releases import AdaptiveRelease, Sensitivity, Stage
    >>> one = Sensitivity(add_remove={2: 1.0})
    >>> sums, counts = Stage("sums", 2, one, 0.75), Stage("counts", 1, one, 0.25)
    >>> release = AdaptiveRelease(n_records=100, stages=(sums, counts))
    >>> [round(stage.unit("add_remove", norm=2), 3) for stage in release.stages]
    [1.155, 2.0]
    """

    name: str
    dim: int
    sensitivity: Sensitivity
    share: float
    times: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Sensitivity):
            raise type_error(
                "release.stage_sensitivity_wrong_type", sensitivity=self.sensitivity
            )
        checked = {
            "dim": check_count(dim=self.dim),
            "times": check_count(times=self.times),
            "share": check_positive(share=self.share),
        }
        # a frozen dataclass: plain numbers, so that stages hash and compare by value
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def unit(self, relation: str, norm: float) -> float:
        """Return the unit in which the stage spends its share of one.

        Parameters
        ----------
        relation : {'add_remove', 'replace'}
        norm : {1.0, 2.0}

        Returns
        -------
        float
            ``sensitivity * (times / share) ** (1 / norm)``.
        """
        one = self.sensitivity.value(relation, norm, self.dim)
        # nothing to hide would be released exactly, whatever relation is asked later
        if not 0 < one < math.inf:
            raise value_error(
                "release.stage_sensitivity_not_positive",
                name=self.name,
                norm=norm,
                sensitivity=one,
            )
        return check_positive(unit=one * (self.times / self.share) ** (1 / norm))


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveRelease(QueryRelease):
    """Several sums over records, each after the noisy ones before it, as one release.

    The sum of a stage may depend on all that was released before. It is accounted for
    once, as a single vector would be: every promise that Gaussian or Laplace noise
    makes of a vector follows for the whole. An estimator releases stage by stage, by
    :meth:`noisy`.

    Parameters
    ----------
    n_records : int
    stages : sequence of Stage
        Their shares sum to one.
    relation : {'add_remove', 'replace'}, default='replace'
        Relation of neighbouring tables by which shares are laid out. The promise holds
        under the other one too, of which the whole has another sensitivity.
    norm : {2.0, 1.0}, default=2.0
        Norm in which they are: 2 suits Gaussian noise, 1 Laplace noise.
    name : str, default='query'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        Facts taken as public or true; written in the certificate.
    query, dim, contribution, is_sum, is_integer, factor, units : optional
    modulus, modulus_norm, shift_ceiling, sensitivity, slack, linear, ball : optional
        Facts about one vector, see :class:`QueryRelease`; refused here.

    Attributes
    ----------
    dim : int
        Number of all coordinates that are released.
    sensitivity : Sensitivity
        Sensitivity of all stages side by side, each in its unit.

    Notes
    -----
    In units of the stages, stage i moves by at most ``r_i = sensitivity_i / unit_i``
    given whatever was released before. The pair of noisy vectors of a stage is
    dominated by one of fixed distributions: Gaussians r_i apart in l2, or Laplace
    distributions of one coordinate r_i apart in l1. Their product dominates the whole
    adaptive sequence (Dong, Roth and Su 2022, Gaussian differential privacy, Theorem
    3.2; Zhu, Dong and Wang 2022, Optimal accounting of differential privacy via
    characteristic function, Theorem 10). The product of the Gaussians is one Gaussian
    pair at the distance ``sqrt(sum(r_i**2))``; that of Laplace distributions is
    dominated by one pair at ``sum(r_i)``, see :class:`~skpuffer.noise.LaplaceNoise`. If
    k records differ, every r_i is k times as large. For other families no such law is
    known here, and accountants refuse them.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.releases import AdaptiveRelease, Sensitivity, Stage
    >>> from skpuffer.scenarios import RecordScenario
    >>> one = Sensitivity(add_remove={2: 1.0})
    >>> stages = [Stage("counts", 8, one, share=0.2), Stage("sums", 3, one, 0.8, 4)]
    >>> release = AdaptiveRelease(n_records=100, stages=stages, relation="add_remove")
    >>> noise = PrivacyLoss(1.0).calibrate(release, RecordScenario()).noise
    >>> [round(release.deviation(stage, noise), 2) for stage in range(2)]
    [8.34, 8.34]
    """

    #: What a certificate says of its last digits, where it is drawn on a grid.
    last_digits: ClassVar[str] = "assume.noise_exact_on_grid"

    # what a stage computes depends on noise
    is_one_output: ClassVar[bool] = False

    stages: tuple[Stage, ...]
    relation: str = "replace"
    norm: float = 2.0
    # there is no contribution that a record could move
    shift_ceiling: float = 0.0

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        check_option(_RELATIONS, relation=self.relation)
        norm = check_option(_LAYOUTS, norm=check_positive(norm=self.norm))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "stages", self._checked_stages())
        # what a single vector may have besides, and the stages have not
        mine = {"dim": self._total_dim(), "sensitivity": self._whole()}
        for field, default in _OF_ONE_VECTOR.items():
            given = getattr(self, field)
            # `dataclasses.replace` gives back what was found before; a matrix has no
            # single truth value, and is none of the defaults
            usual = not isinstance(given, np.ndarray) and given in (
                default,
                mine.get(field),
            )
            if not usual:
                raise value_error("release.adaptive_field_not_allowed", field=field)
        for field, value in mine.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "is_bounded", True)
        self._meet_context()

    def _checked_stages(self) -> tuple[Stage, ...]:
        stages = tuple(self.stages)
        for stage in stages:
            if not isinstance(stage, Stage):
                raise type_error("release.stages_wrong_type", stage=stage)
        total = math.fsum(stage.share for stage in stages)
        if not math.isclose(total, 1.0, rel_tol=0, abs_tol=_SHARE_DIGITS):
            raise value_error("release.stage_shares_sum", total=total)
        return stages

    def _total_dim(self) -> int:
        return sum(stage.dim * stage.times for stage in self.stages)

    def _whole(self) -> Sensitivity:
        """Sensitivity of all vectors side by side, each in units of its stage."""
        units = [stage.unit(self.relation, self.norm) for stage in self.stages]
        moves = {
            relation: {
                norm: _side_by_side(
                    (
                        stage.sensitivity.value(relation, norm, stage.dim) / unit
                        for stage, unit in zip(self.stages, units, strict=True)
                    ),
                    [stage.times for stage in self.stages],
                    norm,
                )
                for norm in NORMS
            }
            for relation in (*_RELATIONS, "relabel")
        }
        return Sensitivity(**moves)

    def unit(self, stage: int) -> float:
        """Return the unit of a stage: its noise is in proportion to it.

        Parameters
        ----------
        stage : int
            Position in `stages`.

        Returns
        -------
        float
        """
        return self.stages[stage].unit(self.relation, self.norm)

    def noisy(
        self, stage: int, exact: ArrayLike, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        """Return one vector of a stage with the noise that was calibrated.

        It is to be called for each stage at most `times` times, which is what was
        accounted for.

        Parameters
        ----------
        stage : int
            Position in `stages`.
        exact : ndarray of `dim` numbers, of any shape
        noise : Noise
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of the shape of `exact`
        """
        exact = np.asarray(exact, dtype=float)
        of = self.stages[stage]
        if exact.size != of.dim:
            raise value_error(
                "release.stage_dimension_mismatch",
                name=of.name,
                dim=of.dim,
                size=exact.size,
            )
        if not np.all(np.isfinite(exact)):
            raise value_error("release.stage_not_finite", name=of.name)
        # in units of the stage, as the noise is: what it is multiplied by is public
        unit = self.unit(stage)
        return unit * add_noise(exact / unit, noise, rng, n_records=self.n_records)

    def deviation(self, stage: int, noise: Noise) -> float:
        """Return the standard deviation of the noise of a stage's coordinates.

        Parameters
        ----------
        stage : int
            Position in `stages`.
        noise : Noise
            As calibrated.

        Returns
        -------
        float
        """
        return self.unit(stage) * float(np.max(noise.std(1)))

    def run(self, X: object, y: object = None) -> NoReturn:
        """Refuse: there is no exact vector before the noisy ones are known."""
        raise type_error("release.adaptive_not_run_whole", name=self.name)


#: Fields of a single vector, with their defaults.
_OF_ONE_VECTOR = {
    field.name: field.default
    for field in fields(QueryRelease)
    if field.name
    not in ("n_records", "name", "context", "assumptions", "shift_ceiling")
}


def _side_by_side(moves: Iterable[float], times: list[int], norm: float) -> float:
    """Norm of moves in blocks of their own, each of which comes several times."""
    return float(np.linalg.norm(np.repeat(list(moves), times), norm))


# -- how far one record moves an output, in several norms ------------------------------


#: Norms in which sensitivities are put together.
NORMS = (1.0, 2.0, math.inf)


def convert_norm(
    value: float, from_norm: float, to_norm: float, dim: int | None
) -> float:
    """Bound a vector's norm by another norm of it.

    Parameters
    ----------
    value : float
        Bound of the norm of order `from_norm`.
    from_norm, to_norm : float
        Orders in [1, inf].
    dim : int or None
        Number of coordinates.

    Returns
    -------
    bound : float
        Bound of the norm of order `to_norm`; infinite if it depends on an unknown
        `dim`.
    """
    # norms do not grow with their order
    if value == 0 or to_norm >= from_norm or dim == 1:
        return value
    # no factor holds in every dimension
    if dim is None:
        return math.inf
    # ||x||_p <= d^(1/p - 1/q) ||x||_q for p < q, with equality where all entries are
    # equal
    inverse = 0.0 if math.isinf(from_norm) else 1 / from_norm
    factor: float = dim ** (1 / to_norm - inverse)
    return value * factor


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a query to one arbitrary record, by relation and norm.

    Parameters
    ----------
    add_remove : dict of {norm: float}
        Largest move when a record is added or removed and every public divisor stays.
    replace : dict of {norm: float}, default=None
        Largest move when a record is replaced. None means twice `add_remove`: the
        replaced record leaves and another comes.
    relabel : dict of {norm: float}, default=None
        Largest move when the target of a record changes and its features stay. None
        means `replace`.

    Examples
    --------
    >>> from skpuffer.releases import Sensitivity
    >>> Sensitivity(add_remove={2: 0.5}).value("replace", norm=2, dim=3)
    1.0
    """

    add_remove: dict[float, float]
    replace: dict[float, float] | None = None
    relabel: dict[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("add_remove", "replace", "relabel"):
            given = getattr(self, name)
            if given is not None:
                # by floats, so that 2 and 2.0 are one key and values hash alike
                held = {float(n): check_extent(sensitivity=v) for n, v in given.items()}
                object.__setattr__(self, name, held)

    def __hash__(self) -> int:
        # written out, as dicts have no hash; equal where the fields are equal
        return hash(
            tuple(
                None if held is None else tuple(sorted(held.items()))
                for held in (self.add_remove, self.replace, self.relabel)
            )
        )

    def value(self, relation: str, norm: float, dim: int | None) -> float:
        """Return the sensitivity in `norm` under `relation`."""
        # a relation that is misspelt must not be read as the cheaper one
        check_option(("add_remove", "replace", "relabel"), relation=relation)

        def best(held: dict[float, float]) -> float:
            # each norm that is held gives a bound in the one asked for; the least is
            # taken
            bounds = [convert_norm(v, n, float(norm), dim) for n, v in held.items()]
            return min(bounds, default=math.inf)

        added = best(self.add_remove)
        if relation == "add_remove":
            return added
        # removing one record and adding another: two steps by the triangle inequality
        replaced = min(2 * added, best(self.replace or {}))
        if relation == "replace":
            return replaced
        # a target that changes is a record that is replaced
        return min(replaced, best(self.relabel or {}))

    def times(self, factor: float) -> Sensitivity:
        """Return the sensitivity of `factor` times the query."""

        def scaled(held: dict[float, float]) -> dict[float, float]:
            return {norm: factor * value for norm, value in held.items()}

        # None stays None: twice the scaled move is the scaled double
        replace, relabel = (
            None if held is None else scaled(held)
            for held in (self.replace, self.relabel)
        )
        return Sensitivity(scaled(self.add_remove), replace, relabel)


def stacked_sensitivity(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Sensitivity of sums over records that are put side by side.

    The norm of a stacked vector is the norm of the vector of its blocks' norms. It is
    attained if each block's supremum can be, independently of the others.

    Parameters
    ----------
    sensitivities : iterable of Sensitivity
        For both relations, in each of `NORMS`.
    """
    blocks = list(sensitivities)
    return Sensitivity(
        # one record moves all blocks at once, at worst each by its own largest move
        add_remove=_stacked_side_by_side([block.add_remove for block in blocks]),
        replace=_stacked_side_by_side([block.replace or {} for block in blocks]),
    )


def _stacked_side_by_side(blocks: list[dict[float, float]]) -> dict[float, float]:
    return {
        norm: float(np.linalg.norm([held[norm] for held in blocks], norm))
        for norm in NORMS
    }
