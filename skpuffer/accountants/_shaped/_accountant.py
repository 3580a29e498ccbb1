"""Shaped Wasserstein mechanism: Gaussian noise in the shape of the moves."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skpuffer.accountants._additive._base import _AdditiveAccountant
from skpuffer.accountants._additive._couplings import left_out_text
from skpuffer.accountants._base import Found
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from skpuffer.kernel.sums import SensitivityBound, record_sensitivity_bound, shift_of
from skpuffer.noise import CorrelatedGaussianNoise, DegenerateGaussianNoise, Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, CoupledSamples, OutputDistributions
from skpuffer.utils._checks import check_bool

from ._moves import EllipsoidCurve, OutputMoves, moves_of
from ._programme import (
    GAUSSIAN,
    LARGEST_GAP,
    Cover,
    covariance_in_units,
    cover,
    found_shape,
    least_shape,
    span_of,
    with_room,
)

#: Most coordinates: each round takes the eigenvalues of a matrix of so many rows.
_LARGEST_DIM = 2000

#: Largest condition of a covariance, in the units of the release.
_CONDITION = 1e12

_FITTED = Statement("assume.shape_fitted_to_draws")


class ShapedWasserstein(_AdditiveAccountant):
    """Gaussian noise of a covariance in the shape of the moves of a vector.

    The covariance is such that every move of a coupling lies in one ellipsoid of the
    noise, of the least total variance: W_inf is measured in the noise's own norm.
    Directions in which the secret moves the output little get little noise.

    A prior that is a little wrong costs far more than under round noise: `slack` pays
    for such priors; `floor` promises nothing about them.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Finite Rényi order, greater than 1; 2 if neither it nor `delta` is given. The
        noise keeps the Gaussian curve through it, at all orders.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly. Not
        together with `alpha`.
    slack : float, default=None
        Public l2 length, in units of the release, that each move may be off. The
        promise holds for every prior whose outputs given each secret are within W_inf
        ``slack / 2`` of a declared one. None is a `floor`.
    floor : float, default=0.1
        Least variance of every direction, in parts of the mean variance; ignored with a
        `slack`.
    rounds : int, default=8
        Most rounds, from each start, of finding couplings for a shape and a shape for
        the couplings.
    allow_degenerate : bool, default=False
        Whether directions in which nothing moves may be without any noise
        (``floor=0``).
    event_delta : float, default=None
        Mass left out for each pair of secrets, in (0, 1); a part of `delta`, if given.

    See Also
    --------
    GeneralWasserstein : Round noise, which forgives a wrong prior.
    ApproximateWasserstein : Other noise, with a mass left out.

    Notes
    -----
    With noise N(0, S) two outputs a move v apart cost alpha v' S^-1 v / 2 at each
    order, and the trade-off of two unit Gaussians that far apart. By joint convexity of
    either, the longest move of any coupling bounds the cost. The shape of least trace
    that covers given moves is a convex programme, solved to a certified gap. For point
    masses no Gaussian noise has less total variance; for other distributions couplings
    and shape are found in turn, which ends in a partial optimum.

    For a mean over moves use :class:`DistributionAwareWasserstein` with
    ``noise=CorrelatedGaussianNoise(covariance=...)``. The certificate's `sensitivity`
    is the longest l2 move of the couplings, which may be more than W_inf in l2.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 in the norm of the
    noise; Löwner and John's ellipsoid of least trace, by semidefinite duality.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein, ShapedWasserstein
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> u = Discrete([[0.0, 0.0], [0.8, -0.2]])
    >>> v = Discrete([[1.0, 0.0], [0.8, 0.8]])
    >>> release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=2)
    >>> scenario = LawsScenario([(u, v)])
    >>> for kind in (GeneralWasserstein, ShapedWasserstein):
    ...     noise = kind(epsilon=1.0, alpha=2).calibrate(release, scenario).noise
    ...     print(round(float(noise.variance(2).sum()), 3))
    2.0
    1.341
    """

    needs = (OutputDistributions, CoupledSamples)

    @property
    def _in_proportion(self) -> bool:
        return False

    _source = Statement("source.shaped_wasserstein")

    #: The mechanism's own; not parameters.
    noise: str = "gaussian"
    beta: None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        slack: float | None = None,
        floor: float = 0.1,
        rounds: int = 8,
        allow_degenerate: bool = False,
        event_delta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.slack = slack
        self.floor = floor
        self.rounds = rounds
        self.allow_degenerate = allow_degenerate
        self.event_delta = event_delta

    @classmethod
    def _candidate(cls) -> "ShapedWasserstein":
        # nearly all of the gain is in the first rounds, nearly all of the time is not
        return cls(rounds=2)

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        if self.slack is not None:
            check_positive(slack=self.slack)
        floor = check_non_negative(floor=self.floor, finite=True)
        check_count(rounds=self.rounds)
        check_bool(allow_degenerate=self.allow_degenerate)
        if floor == 0 and self.slack is None and not self.allow_degenerate:
            raise value_error("shaped.directions_without_noise_refused")
        if self.event_delta is not None:
            event = check_probability(event_delta=self.event_delta)
            if self.delta is not None and event >= self.delta:
                raise value_error(
                    "shaped.event_delta_not_below_delta", event=event, delta=self.delta
                )

    # -- the protocol -------------------------------------------------------------

    def _calibrate(
        self,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set shape and scale of noise to the least that keeps the promise."""
        outputs, whole = self._outputs(fact, release, bound)
        if whole.radius == 0:
            raise unsupported_error("shaped.secret_does_not_move", name=release.name)
        # a budget too small for the event is refused before any shape is sought
        target = self._target(fact)
        units = np.broadcast_to(release.unit_array, (outputs.dim,))
        noise = self._shaped(outputs, whole, release, units, target)
        # as it is certified: lengths are rounded up, and couplings found anew
        covered = self._covered(noise, outputs, whole, fact, release)
        while (spent := covered[0].mu) > target:
            scale = float(np.asarray(noise.scale)) * (spent / target) * (1 + 2**-50)
            noise = noise.with_scale(scale)
            covered = self._covered(noise, outputs, whole, fact, release)
        found = self._stated(noise, *covered, whole, outputs, fact, release, bound)
        # one coordinate has no shape, and its noise covers all alike
        brittle = outputs.least and outputs.dim > 1 and self.slack is None
        warnings = (_BRITTLE,) if brittle else ()
        return Found(noise, found, warnings)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        outputs, whole = self._outputs(fact, release, bound)
        if type(noise) not in GAUSSIAN:
            raise unsupported_error(
                "shaped.noise_not_gaussian",
                owner=type(self).__name__,
                family=noise.family,
            )
        if noise.dim not in (None, outputs.dim):
            raise value_error(
                "shaped.noise_dimension_mismatch",
                dim=outputs.dim,
                name=release.name,
                noise_dim=noise.dim,
            )
        covered = self._covered(noise, outputs, whole, fact, release)
        return self._stated(noise, *covered, whole, outputs, fact, release, bound)

    # -- the parts ----------------------------------------------------------------

    def _covered(
        self,
        noise: Noise,
        outputs: OutputMoves,
        whole: SensitivityBound,
        fact: Any,
        release: QueryRelease,
    ) -> tuple[Cover, SensitivityBound]:
        """Length of the longest move in the norm of a noise, and what it rests on."""
        units = np.broadcast_to(release.unit_array, (outputs.dim,))
        room = release.total_slack(2.0)
        ball = replace(
            shift_of(whole, release), radius=whole.radius + (self.slack or 0.0)
        )
        # a move that nothing covers is one of the ball as well
        widest = float(noise.curve(ball).magnitude)
        covered: Cover | None = None
        if outputs.complete:
            covered = cover(
                noise, outputs, units, self._event, room + (self.slack or 0.0)
            )
        if covered is None or covered.mu >= widest * (1 + 1e-9):
            nominal = float(noise.curve(shift_of(whole, release)).magnitude)
            moves = np.zeros((0, outputs.dim)) if covered is None else covered.moves
            return Cover(moves, nominal, widest), whole
        return covered, self._covered_sensitivity(fact, covered, room)

    @property
    def _event(self) -> float:
        return 0.0 if self.event_delta is None else float(self.event_delta)

    def _outputs(
        self, fact: Any, release: QueryRelease, bound: BoundScenario
    ) -> tuple[OutputMoves, SensitivityBound]:
        """Moves of the output, and the ball around them."""
        # infinite distances are refused in the words of the general mechanism
        whole = self._sensitivity_bound(fact, release, bound, 2.0)
        outputs = moves_of(fact, release)
        if outputs.dim > _LARGEST_DIM:
            raise unsupported_error(
                "shaped.too_many_coordinates",
                name=release.name,
                dim=outputs.dim,
                largest_dim=_LARGEST_DIM,
            )
        return outputs, whole

    def _target(self, fact: Any) -> float:
        """Length of a move, in standard deviations, that costs the budget."""
        if self.delta is None:
            return math.sqrt(2 * self.epsilon / self._order)
        event = SensitivityBound(0.0, 2.0, delta=fact.delta + self._event)
        return float(gaussian_mu(float(self.epsilon), self._noise_delta(event)))

    def _shaped(
        self,
        outputs: OutputMoves,
        whole: SensitivityBound,
        release: QueryRelease,
        units: Floats,
        target: float,
    ) -> CorrelatedGaussianNoise | DegenerateGaussianNoise:
        """Noise whose moves of length one cost the budget."""
        dim = outputs.dim
        slack = self.slack or 0.0
        round_shape = (whole.radius + slack) ** 2 * np.eye(dim)
        shape = round_shape
        if outputs.complete:
            floor = 0.0 if self.slack is not None else float(self.floor)
            found = found_shape(outputs, floor, self.rounds, self._event)
            sought = found.floored if floor else found.matrix
            sought = with_room(sought, release.total_slack(2.0) + slack)
            if np.trace(sought) < np.trace(round_shape):
                shape = sought
        # of mean variance one in units: the scale is the size of the noise
        size = math.sqrt(float(np.trace(shape)) / dim)
        shape = shape / size**2
        values = np.linalg.eigvalsh(shape)
        if values[0] * _CONDITION > values[-1]:
            covariance: Any = shape * np.outer(units, units)
            return CorrelatedGaussianNoise(size / target, covariance=covariance)
        return self._degenerate(shape, found.moves, units, size / target)

    def _degenerate(
        self, shape: Floats, moves: Floats, units: Floats, scale: float
    ) -> DegenerateGaussianNoise:
        """Noise on the span of the moves alone."""
        basis = span_of(moves)
        inside = basis.T @ shape @ basis
        values = np.linalg.eigvalsh(inside)
        if basis.shape[1] == len(shape) or values[0] * _CONDITION <= values[-1]:
            raise unsupported_error(
                "shaped.covariance_ill_conditioned", condition=_CONDITION
            )
        root = np.linalg.cholesky((inside + inside.T) / 2)
        factor: Any = units[:, None] * (basis @ root)
        return DegenerateGaussianNoise(scale, factor=factor)

    def _covered_sensitivity(
        self, fact: Any, covered: Cover, room: float
    ) -> SensitivityBound:
        """The bound that rests on couplings, as certain as the fact."""
        certified, assumptions = fact.certified, fact.assumptions
        if isinstance(fact, CoupledSamples) and fact.delta:
            certified, assumptions = False, (*assumptions, _FITTED)
        if self._event:
            assumptions = (*assumptions, left_out_text(self._event))
        return SensitivityBound(
            covered.radius + room,
            2.0,
            certified=certified,
            delta=fact.delta + self._event,
            confidence=fact.confidence,
            assumptions=assumptions,
        )

    def _stated(
        self,
        noise: Noise,
        covered: Cover,
        sensitivity: SensitivityBound,
        whole: SensitivityBound,
        outputs: OutputMoves,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        """Claim of a noise whose longest move is known in its own norm."""
        # notion, assumptions and identity; the curve there is that of a ball
        base = self._certificate(noise, sensitivity, release, bound)
        slack = 0.0 if self.slack is None else float(self.slack)
        curve = EllipsoidCurve(noise, shift_of(sensitivity, release), covered.mu, slack)
        if self.delta is None:
            epsilon = curve.renyi(self._order)
        else:
            epsilon = curve.epsilon(self._noise_delta(sensitivity))
        exact = self.delta is None and sensitivity.certified and sensitivity.delta == 0
        units = np.broadcast_to(release.unit_array, (outputs.dim,))
        covariance = covariance_in_units(noise, units)
        record = record_sensitivity_bound(release, 2.0)
        told = Told(
            covariance=covariance,
            mu=covered.mu,
            nominal=covered.nominal,
            outputs=outputs,
            moves=covered.moves,
            radius=whole.radius,
            slack=self.slack,
            floor=self.floor,
            room=slack + release.total_slack(2.0),
            alpha=None if self.delta is not None else float(self._order),
            event=self._event,
            # noise that private rows shaped is no differential privacy of them
            record=None if fact.reads_private_rows else record,
            names=_names(release, outputs.dim),
        )
        said = statements(told) if math.isfinite(covered.mu) else ()
        return replace(
            base,
            epsilon=epsilon,
            curve=curve,
            rpp_epsilon=epsilon if exact else math.inf,
            noise_gain=_gain(record, covariance, covered.mu),
            assumptions=(*base.assumptions, *said),
        )


_BRITTLE = Statement("shaped.brittle_without_slack")


def _names(release: QueryRelease, dim: int) -> tuple[str, ...] | None:
    """Names of the coordinates, where the vector has one for each column."""
    context = release.context
    names = None if context is None else context.feature_names
    return names if names is not None and len(names) == dim else None


def _gain(record: float | None, covariance: Floats, mu: float) -> float | None:
    """Root mean square of the noise for one arbitrary record over that used."""
    trace = float(np.trace(covariance))
    if record is None or not 0 < record < math.inf or not 0 < mu < math.inf:
        return None
    if trace == 0:
        return None
    return record / mu * math.sqrt(len(covariance) / trace)


# -- what a certificate of shaped noise says besides its numbers -----------------------


#: Directions of least noise that are named, and how much more than the least they have.
_NAMED = 3
_NEAR = 2.0

#: Coordinates of a direction that are named, and the least share of its length.
_PARTS = 4
_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Told:
    """Public facts about a noise and what it covers, in the units of the release.

    Parameters
    ----------
    covariance : ndarray of shape (dim, dim)
    mu : float
        That the promise is for.
    nominal : float
        The same for the priors themselves.
    moves : ndarray of shape (n_moves, dim)
        Moves of the couplings, without the room.
    radius : float
        Radius of a ball around all moves, as the general Wasserstein mechanism would
        cover.
    floor : float or None
        Where the noise was made by a floor, or by none.
    room : float
        Slack, and the tolerance of the release.
    record : float or None
        Sensitivity to one arbitrary record.
    names : sequence of str or None
        Names of the coordinates.
    """

    covariance: Floats = field(repr=False)
    mu: float
    nominal: float
    outputs: OutputMoves
    moves: Floats = field(repr=False)
    radius: float
    slack: float | None
    floor: float | None
    room: float
    alpha: float | None
    event: float
    record: float | None
    names: Sequence[str] | None = None

    @property
    def trace(self) -> float:
        """Total variance for a length of one: of the shape, whatever the budget."""
        return float(np.trace(self.covariance)) * self.mu**2


def statements(told: Told) -> tuple[Statement, ...]:
    """Return what the certificate says, in sentences."""
    return tuple(_statements(told))


def _statements(told: Told) -> Iterator[Statement]:
    values, axes = np.linalg.eigh(told.covariance)
    rounding = 1e-13 * max(values[-1], 0.0)
    bare = values <= rounding
    yield (Statement("assume.shape_protects_little_else"))
    if np.any(bare):
        yield (
            Statement(
                "assume.directions_without_noise",
                n_bare=int(bare.sum()),
                n_directions=len(values),
            )
        )
        yield (Statement("assume.rounding_not_hidden"))
    yield from _directions(told, values, axes, ~bare)
    yield from _shift(told)
    yield from _robustness(told, values[0] if not bare[0] else 0.0)
    yield from _comparison(told)
    yield from _group(told, 0.0 if bare[0] else float(values[0]))
    if told.outputs.n_secrets > 2:
        yield (Statement("assume.guess_more_often_right"))


def _directions(
    told: Told, values: Floats, axes: Floats, noisy: Booleans
) -> Iterator[Statement]:
    """Name the directions of least noise."""
    if not np.any(noisy):
        return
    least = values[noisy][0]
    condition = values[-1] / least
    # of one value any axes are as good as those found
    equal = noisy & (values <= least * (1 + 1e-6))
    if equal.sum() > 1:
        named: tuple[Statement, ...] = (
            Statement(
                "shaped.deviation_along",
                deviation=math.sqrt(least),
                direction=_space(axes, equal, told.names),
            ),
        )
    else:
        at = np.flatnonzero(noisy & (values <= _NEAR * least))[:_NAMED]
        named = tuple(
            Statement(
                "shaped.deviation_along",
                deviation=math.sqrt(values[i]),
                direction=_direction(axes[:, i], told.names),
            )
            for i in at
        )
    yield (
        Statement(
            "assume.least_noise_by_direction",
            named=named,
            least=least,
            condition=condition,
        )
    )


def _space(axes: Floats, inside: Booleans, names: Sequence[str] | None) -> Statement:
    """Axes of one and the same noise, by those at right angles to them if few."""
    n_inside, others = int(inside.sum()), axes[:, ~inside].T
    if not len(others):
        return Statement("shaped.all_directions")
    if len(others) > _NAMED:
        return Statement(
            "shaped.each_direction_of_space", n_inside=n_inside, n_axes=len(axes)
        )
    across = tuple(_direction(axis, names) for axis in others)
    return Statement("shaped.directions_at_right_angles", across=across)


def _direction(axis: Floats, names: Sequence[str] | None) -> Statement:
    """A direction by the coordinates that make most of it."""
    order = np.argsort(-np.abs(axis), kind="stable")
    parts = [i for i in order[:_PARTS] if abs(axis[i]) >= _SHARE]
    # one orientation: a direction has none
    sign = 1.0 if axis[parts[0]] > 0 else -1.0
    terms = []
    for i in parts:
        unnamed = Statement("shaped.coordinate", index=int(i))
        name = unnamed if names is None else names[i]
        terms.append(
            Statement("shaped.part_of_axis", part=float(sign * axis[i]), name=name)
        )
    return Statement("shaped.direction", parts=tuple(terms))


def _shift(told: Told) -> Iterator[Statement]:
    """Tell a shift beyond W_inf from it."""
    if not len(told.moves):
        return
    tolerance = told.room - (told.slack or 0.0)
    longest = float(np.linalg.norm(told.moves, axis=1).max()) + tolerance
    if longest > told.radius * (1 + 1e-9):
        yield (
            Statement(
                "assume.shift_covered_longest_move", longest=longest, radius=told.radius
            )
        )


def _robustness(told: Told, least: float) -> Iterator[Statement]:
    """For which other priors the promise is kept, and at what price."""
    if told.slack is not None:
        yield (
            Statement(
                "assume.slack_around_priors", distance=told.slack / 2, slack=told.slack
            )
        )
    elif told.floor:
        yield (Statement("assume.declared_priors_with_floor", floor=told.floor))
    if least <= 0:
        yield Statement("assume.priors_off_void_promise")
        return
    rate = 1 / math.sqrt(least)
    doubled = (math.sqrt(2) - 1) * told.nominal / rate
    if told.alpha is None:
        formula = Statement("shaped.formula_mu_of_t", nominal=told.nominal, rate=rate)
    else:
        root = math.sqrt(told.alpha / 2)
        formula = Statement(
            "shaped.formula_epsilon_of_t", nominal=root * told.nominal, rate=root * rate
        )
    yield (
        Statement(
            "assume.priors_within_t_keep",
            formula=formula,
            doubled=doubled,
            share=doubled / told.radius,
        )
    )


def _comparison(told: Told) -> Iterator[Statement]:
    """Total variance beside that of other shapes, and how near the least it is."""
    dim = told.outputs.dim
    widest = dim * (told.radius + (told.slack or 0.0)) ** 2
    # the room of others is no part of this comparison but in the round shape
    moves = told.moves[np.any(told.moves != 0, axis=1)]
    if not len(moves) or widest == 0:
        return
    diagonal = least_shape(moves, diagonal=True, gap=1e-6, enough=100)
    room = math.sqrt(dim) * told.room
    # for these couplings; round noise is diagonal as well, by its own
    best_diagonal = min((math.sqrt(diagonal.trace) + room) ** 2, widest)
    yield (
        Statement(
            "assume.variance_against_general",
            trace=told.trace / widest,
            best_diagonal=best_diagonal / widest,
        )
    )
    exact = told.outputs.least and not told.event
    least = least_shape(moves, gap=LARGEST_GAP if exact else 1e-3, enough=100)
    if exact:
        if told.room:
            return
        gap = max(told.trace / least.dual - 1, 0.0)
        if gap <= 2 * LARGEST_GAP:
            yield (
                Statement("assume.least_variance_certified", gap=max(gap, least.gap))
            )
        else:
            yield (
                Statement(
                    "assume.least_variance_without_floor",
                    share=1 / (1 + gap),
                    gap=least.gap,
                )
            )
        return
    lower = 0.0
    if not told.event:
        lower = float(np.sum(told.outputs.farthest**2))
        if np.any(told.outputs.means):
            lower = max(lower, least_shape(told.outputs.means, gap=1e-3).dual)
    yield (
        Statement(
            "assume.partial_optimum_in_turn", gap=least.gap, lower=lower / told.trace
        )
    )


def _group(told: Told, least: float) -> Iterator[Statement]:
    """Plain group privacy that the least variance alone gives."""
    if told.record is None or not 0 < told.record < math.inf:
        return
    count = math.floor(math.sqrt(least) * told.mu / told.record * (1 - 1e-9))
    if count >= 1:
        yield (Statement("assume.plain_group_privacy_too", count=count))
