"""Base additive accountant, and the sensitivity bounds that follow from facts."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace as replace_fields
from functools import lru_cache, partial, singledispatch
from typing import Any, ClassVar

import numpy as np

from skpuffer.accountants._base import (
    DEFAULT_ORDER,
    Account,
    Accountant,
    Found,
    accounts_for,
    check_order_or_delta,
    check_pure,
)
from skpuffer.accountants._fields import QUERY_FIELDS, SELECTION_FIELDS, STAGE_FIELDS
from skpuffer.distributions._distributions import (
    largest_distance,
)
from skpuffer.exceptions import (
    InfiniteDistanceError,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.answers import selection_curve
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.laplace import (
    LARGEST_SCALE,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GumbelNoise,
    LaplaceNoise,
)
from skpuffer.kernel.noise import (
    GaussianNoise,
    Shift,
    ShiftCurve,
    gaussian_mu,
    largest_argument,
    raise_until,
)
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_order,
    check_positive,
    check_probability,
    check_real,
)
from skpuffer.kernel.sums import (
    SensitivityBound,
    check_stage_noise,
    claim_of_bound,
    delta_of_noise,
    distribution_sensitivity,
    record_ceiling,
    sensitivity_bound,
    shift_of,
)
from skpuffer.noise import Noise
from skpuffer.noise.generalized_gaussian import Twin
from skpuffer.releases import AdaptiveRelease, QueryRelease, SelectionRelease
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
    RecordDistributions,
)


def composed_stages(certificate: Claim) -> Claim:
    """Claim that names the theorem by which stages are one vector."""
    return replace_fields(
        certificate,
        source=Statement("source.adaptive_stages", source=certificate.source),
    )


def lacks_length(sensitivity: SensitivityBound, release: QueryRelease) -> bool:
    """Whether a bound is infinite because nobody said how long the output is.

    Parameters
    ----------
    sensitivity : SensitivityBound
    release : QueryRelease

    Returns
    -------
    bool
        What is known in l2 is worth something in another norm by the length alone.
    """
    unknown = release.dim is None and sensitivity.norm != 2
    return unknown and math.isinf(sensitivity.radius)


def selection_noises(
    noise: Noise, release: SelectionRelease
) -> tuple[type[Noise], ...]:
    """Return the families that may choose, the one that errs least at a scale first.

    Parameters
    ----------
    noise : Noise
        The noise asked for: its family, if it is one of scores; any other stands for
        all of them.
    """
    if type(noise) in (ExponentialNoise, GumbelNoise):
        return (type(noise),)
    return (ExponentialNoise, GumbelNoise) if release.is_finite else (GumbelNoise,)


@sensitivity_bound.register
def _of_distributions(
    fact: OutputDistributions | RecordDistributions, release: QueryRelease, norm: float
) -> SensitivityBound:
    ceiling = record_ceiling(fact, release, norm)
    pairs = list(fact.pairs_of_distributions())
    # in the distributions' own coordinates, as is the ceiling beyond which no search
    # pays
    distance, at = largest_distance(
        [(u, v) for *_, u, v in pairs],
        *fact.compared_in(release, norm),
        fact.shift_ceiling(release, ceiling),
    )
    radius = fact.output_move(distance, release, norm)
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    return distribution_sensitivity(fact, radius, release, norm, worst=worst)


# -- which scale is enough: a search, whose answer is certified from the noise ---------


def scale_for(
    noise: Noise, alpha: float, epsilon: float, shift: Shift | float
) -> float | Floats:
    """Return the smallest scale at which the shift costs at most epsilon.

    Parameters
    ----------
    noise : Noise
        Its scales, if there are several, are proportions.
    alpha : float
        Rényi order, in (1, inf].
    epsilon : float
        Target in nats, in (0, inf).
    shift : Shift or float
        As in `Noise.renyi`.

    Returns
    -------
    scale : float or ndarray of shape (dim,)
        In the proportions of the noise, so that ``noise.with_scale(scale)`` meets
        the target; rounded up, so that it does so in floating point. Zero for a
        zero shift.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no scale of this family will do.
    InfiniteDistanceError
        If the shift is infinite.

    Examples
    --------
    >>> from skpuffer.accountants import scale_for
    >>> from skpuffer.noise import LaplaceNoise
    >>> scale_for(LaplaceNoise(), float("inf"), epsilon=0.5, shift=1.0)
    2.0
    """
    return _at_order(_proportions(noise).curve(shift), alpha, epsilon)


def _at_order(curve: ShiftCurve, alpha: float, epsilon: float) -> float | Floats:
    """Smallest scale at which the shift of a curve costs at most epsilon."""
    alpha, epsilon = check_order(alpha=alpha), check_positive(epsilon=epsilon)
    return _least_scale(
        curve,
        partial(largest_move, curve._costs, alpha, epsilon, curve.magnitude),
        lambda one: one.renyi(alpha) <= epsilon,
    )


def scale_for_delta(
    noise: Noise, epsilon: float, delta: float, shift: Shift | float
) -> float | Floats:
    """Return the smallest scale at which the shift obeys (epsilon, delta).

    Parameters
    ----------
    noise : Noise
        Its scales, if there are several, are proportions.
    epsilon : float
        In nats, in (0, inf).
    delta : float
        In [0, 1); zero asks for the pure cost, as ``scale_for(noise, inf, ...)`` does.
    shift : Shift or float
        As in `Noise.renyi`.

    Returns
    -------
    scale : float or ndarray of shape (dim,)
        As in `scale_for`. From the trade-off itself, not by way of Rényi orders.

    Examples
    --------
    >>> from skpuffer.accountants import scale_for_delta
    >>> from skpuffer.noise import GaussianNoise
    >>> round(scale_for_delta(GaussianNoise(), epsilon=1.0, delta=1e-5, shift=1.0), 3)
    3.731
    """
    return _with_delta(_proportions(noise).curve(shift), epsilon, delta)


def _with_delta(curve: ShiftCurve, epsilon: float, delta: float) -> float | Floats:
    """Smallest scale at which the shift of a curve obeys (epsilon, delta)."""
    epsilon = check_positive(epsilon=epsilon)
    # no event is left out, so this is a pure promise
    if check_real(delta=delta) == 0:
        return _at_order(curve, math.inf, epsilon)
    delta = check_probability(delta=delta)
    return _least_scale(
        curve,
        partial(largest_move_at_delta, curve._costs, epsilon, delta, curve.magnitude),
        lambda one: one.delta(epsilon) <= delta,
    )


def _proportions(noise: Noise) -> Noise:
    """Noise at scale one; scales by coordinate are kept, as proportions."""
    return noise if isinstance(noise.scale, tuple) else noise.with_scale(1.0)


def _least_scale(
    curve: ShiftCurve, u: Callable[[], float], enough: Callable[[ShiftCurve], bool]
) -> float | Floats:
    """Smallest scale at which the shift of a curve meets a target, rounded up.

    The magnitude goes with the inverse of the scale, so the scale is the magnitude at
    scale one over the largest u that meets the target, raised by units in the last
    place until it does so in floating point.
    """
    noise = curve.noise
    # a zero proportion is zero at every scale: that coordinate would leave exactly
    proportions = np.asarray(noise.scale) if isinstance(noise.scale, tuple) else 1.0
    if np.any(proportions == 0):
        raise value_error("noise.scale_proportions_not_positive", scale=noise.scale)
    # asked for before the shift is looked at, so that a promise which the family
    # can never keep is refused for a zero shift as well
    largest = u()
    if curve.magnitude == 0:
        return 0.0 * proportions
    if math.isinf(curve.magnitude):
        raise InfiniteDistanceError(Statement("noise.shift_infinite"))

    # The cost is evaluated once more at the very scale that is returned, as a
    # certificate will do it: a promise must hold as it is computed, last digit
    # included.
    def is_enough(c: float) -> bool:
        return math.isfinite(c) and enough(
            noise.with_scale(c * proportions).curve(curve.shift)
        )

    return raise_until(is_enough, curve.magnitude / largest) * proportions


def largest_move(costs: Any, alpha: float, epsilon: float, u: float) -> float:
    """Largest magnitude that costs at most epsilon at an order, rounded down.

    Costs with a formula of their own have it as a method `_u_for`. The magnitude `u` of
    the shift counts where moves are integers.
    """
    own = getattr(costs, "_u_for", None)
    return (
        _move(costs, alpha, epsilon, u) if own is None else float(own(alpha, epsilon))
    )


def largest_move_at_delta(costs: Any, epsilon: float, delta: float, u: float) -> float:
    """Largest magnitude that obeys (epsilon, delta), rounded down."""
    own = getattr(costs, "_u_for_delta", None)
    if own is None:
        return _move_at_delta(costs, epsilon, delta, u)
    return float(own(epsilon, delta))


@singledispatch
def _move(costs: Any, alpha: float, epsilon: float, u: float) -> float:
    # any positive start would do; for Laplace noise at the order inf this one is the
    # answer
    return largest_argument(partial(costs._renyi, alpha), epsilon, start=epsilon)


@singledispatch
def _move_at_delta(costs: Any, epsilon: float, delta: float, u: float) -> float:
    return largest_argument(partial(costs._delta, epsilon), delta, start=epsilon)


@_move.register
def _(costs: GaussianNoise, alpha: float, epsilon: float, u: float) -> float:
    # the loss is linear in the noise, hence unbounded
    if math.isinf(alpha):
        raise value_error("gaussian.no_pure_epsilon")
    # alpha u² / 2 = epsilon; the last digit is seen to where a scale is made of it
    return math.sqrt(2 * epsilon / alpha)


@_move_at_delta.register
def _(costs: GaussianNoise, epsilon: float, delta: float, u: float) -> float:
    return gaussian_mu(epsilon, delta)


@_move.register
def _(costs: LaplaceNoise, alpha: float, epsilon: float, u: float) -> float:
    # the pure-epsilon cost of u is u itself
    if math.isinf(alpha):
        return epsilon
    return largest_argument(partial(costs._renyi, alpha), epsilon, start=epsilon)


@_move_at_delta.register
def _(costs: LaplaceNoise, epsilon: float, delta: float, u: float) -> float:
    # 1 - exp((epsilon - u) / 2) = delta, solved for u
    return epsilon - 2 * math.log1p(-delta)


@_move.register
def _(costs: Twin, alpha: float, epsilon: float, u: float) -> float:
    return _move(costs.noise, alpha, epsilon, u) / costs.factor


@_move_at_delta.register
def _(costs: Twin, epsilon: float, delta: float, u: float) -> float:
    return _move_at_delta(costs.noise, epsilon, delta, u) / costs.factor


@_move.register
def _(costs: DiscreteLaplaceNoise, alpha: float, epsilon: float, u: float) -> float:
    if math.isinf(alpha):
        return epsilon
    return _largest_ratio(costs, u, epsilon, lambda one: one._renyi(alpha, u), epsilon)


@_move_at_delta.register
def _(costs: DiscreteLaplaceNoise, epsilon: float, delta: float, u: float) -> float:
    return _largest_ratio(costs, u, delta, lambda one: one._delta(epsilon, u), epsilon)


#: Below the least ratio by so much, relatively: no scale that is allowed.
_ROUND_OFF = 1e-9


def _largest_ratio(
    family: DiscreteLaplaceNoise,
    z: float,
    target: float,
    cost: Callable[[DiscreteLaplaceNoise], Floats],
    start: float,
) -> float:
    """Largest ratio of the move z over the scale that keeps a cost within a target.

    The cost depends on z and on the scale apart, as z is an integer.
    """
    if z == 0 or math.isinf(z):
        return 1.0  # no scale needed, or none enough, whatever the ratio
    least = z / LARGEST_SCALE
    if cost(family.with_scale(LARGEST_SCALE)) > target:
        # leads to a scale beyond the largest, which is refused with the reason
        return least * (1 - _ROUND_OFF)
    # the search may ask below, where no scale is allowed: the largest stands in
    return largest_argument(
        lambda ratio: float(cost(family.with_scale(z / max(ratio, least)))),
        target,
        start=start,
    )


# by value: model selection, and the choice of a family, ask again and again
_scale_at_order = lru_cache(maxsize=1024)(_at_order)
_scale_with_delta = lru_cache(maxsize=1024)(_with_delta)


def _is_ours(noise: Noise) -> bool:
    """Whether a noise is of this library, whose equal noises cost the same."""
    library = __name__.partition(".")[0]
    return type(noise).__module__.partition(".")[0] == library


class _AdditiveAccountant(Accountant):
    """Base additive accountant: noise that covers the sensitivity of the output.

    A subclass says which facts it works from and what the promise is worth; the
    target, the noise and the certificate are the same for all.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.noise = noise
        self.beta = beta

    @property
    @abstractmethod
    def _source(self) -> Statement:
        """Source of the proof, for the certificate."""

    reads: ClassVar[dict[type, frozenset[str]]] = {QueryRelease: QUERY_FIELDS}

    #: Whether an event of a mass takes all of a delta, so that a pure promise is left.
    _all_spent: ClassVar[Any] = None

    #: Whether certificates may be added up under one coupling.
    _composable = False

    @property
    def _in_proportion(self) -> bool:
        """Whether all depends on one sensitivity over one scale; see `Account`."""
        return True

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        if check_order_or_delta(self.alpha, self.delta) == math.inf:
            check_pure(noise)

    @property
    def _order(self) -> float:
        """The Rényi order asked for, checked."""
        return DEFAULT_ORDER if self.alpha is None else check_order(alpha=self.alpha)

    # -- the protocol -------------------------------------------------------------

    @accounts_for(QueryRelease)
    def _account_of_query(
        self, fact: Any, release: QueryRelease, bound: BoundScenario
    ) -> Account:
        return Account(
            partial(self._calibrate, fact, release, bound),
            partial(self._certify, fact, release, bound),
            by_sensitivity=self._in_proportion,
        )

    # marked here for all, and read by those alone that work from adjacency
    @accounts_for(AdaptiveRelease)
    def _account_of_stages(
        self, fact: Any, release: AdaptiveRelease, bound: BoundScenario
    ) -> Account:
        # one output's distributions say nothing of a query that is chosen by another
        if type(fact) is not Adjacency:
            raise unsupported_error(
                "accountant.stages_without_adjacency",
                owner=type(self).__name__,
                name=release.name,
                fact_type=type(fact).__name__,
            )
        account = self._account_of_query(fact, release, bound)

        def calibrate(noise: Noise, rng: Any) -> Found:
            check_stage_noise(noise, release)
            found = account.calibrate(noise, rng)
            return replace_fields(found, claim=composed_stages(found.claim))

        def certify(noise: Noise) -> Claim:
            check_stage_noise(noise, release)
            return composed_stages(account.claim(noise))

        check = partial(check_stage_noise, release=release)
        return Account(calibrate, certify, check, account.by_sensitivity)

    def _calibrate(
        self,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        ours = _is_ours(noise)
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        # no noise at all only for what is known: in a sample, rare moves are missing
        if sensitivity.radius == 0 and not sensitivity.certified:
            raise unsupported_error("noise.samples_do_not_move", name=release.name)
        # a budget too small for the event is refused before any scale is searched for
        delta = None
        if self.delta is not None:
            delta = delta_of_noise(self.delta, sensitivity, self._all_spent)
        shift = shift_of(sensitivity, release)
        # proportions first: calibration multiplies them all by one factor
        if release.units is not None:
            noise = noise.in_units(release.units)
        scale: float | Floats
        if sensitivity.radius == 0:
            scale = 0.0
        else:
            # what is only estimated may have been read off private rows: not kept,
            # nor is what others define: noise that is equal by mistake would be found
            plain = sensitivity.certified and ours
            epsilon = float(self.epsilon)
            unit = noise if isinstance(noise.scale, tuple) else noise.with_scale(1.0)
            curve = unit.curve(shift)
            if delta is None:
                at_order = _scale_at_order if plain else _at_order
                scale = at_order(curve, self._order, epsilon)
            else:
                with_delta = _scale_with_delta if plain else _with_delta
                scale = with_delta(curve, epsilon, delta)
        noise = noise.with_scale(scale)
        # read off the noise as it is, not off the target: they cannot differ unnoticed
        certificate = self._certificate(noise, sensitivity, release, bound)
        return Found(noise, certificate)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        return self._certificate(noise, sensitivity, release, bound)

    # -- the parts ----------------------------------------------------------------

    def _sensitivity_bound(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        """Bound the sensitivity of the output; an infinite one is refused."""
        sensitivity = sensitivity_bound(fact, release, norm)
        # refused with words of its own, before a family finds that no scale will do
        if math.isinf(sensitivity.radius):
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        return sensitivity

    def _infinite(
        self,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Statement:
        """Say why the sensitivity is infinite, and what would do."""
        what = Statement("release.subject_named", name=release.name)
        # known in another norm, but the factor between the two depends on the dimension
        known = release.sensitivity is not None
        if known and (sensitivity.worst is None or lacks_length(sensitivity, release)):
            return Statement(
                "release.vector_length_unknown", what=what, norm=sensitivity.norm
            )
        if sensitivity.worst is None:
            return Statement("release.sensitivity_unbounded", what=what)
        _, secret, other = sensitivity.worst
        return Statement(
            "transport.distance_infinite",
            what=what,
            secret=secret,
            other=other,
            owner=type(self).__name__,
        )

    def _noise_delta(self, sensitivity: SensitivityBound) -> float:
        """Return the part of delta that the fact's event leaves to the noise."""
        assert self.delta is not None
        return delta_of_noise(self.delta, sensitivity, self._all_spent)

    def _certificate(
        self,
        noise: Noise,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        exact = None
        if self.delta is not None:
            exact = delta_of_noise(self.delta, sensitivity, self._all_spent)
        return claim_of_bound(
            noise,
            sensitivity,
            release,
            alpha=float(self._order) if self.delta is None else None,
            delta=None if self.delta is None else float(self.delta),
            noise_delta=exact,
            composable=self._composable,
            source=self._source,
        )


# -- group privacy: sensitivity to one record, times the records that differ -----------


# By which rounding may fall short of a scale.
_DIGITS = 1e-12


def pure_account(
    accountant: Any, fact: Adjacency, release: SelectionRelease, bound: BoundScenario
) -> Account:
    """Return the account of a selection by an accountant of pure promises."""
    name = type(accountant).__name__
    if accountant.delta is not None or not math.isinf(accountant._order):
        raise unsupported_error(
            "selection.pure_promises_alone", owner=name, name=release.name
        )
    if not fact.count_is_certain:
        raise unsupported_error(
            "selection.pure_count_uncertain", owner=name, name=release.name
        )
    count, relation = int(fact.count), fact.relation

    def certify(noise: Noise) -> Claim:
        curve, shift, source, statement = selection_curve(
            noise, release, relation, count
        )
        coupling = fact.coupling_id
        # any records may differ: how far each of them moves gains nothing
        if not math.isinf(fact.move) or fact.relabelled:
            coupling = fact.any_coupling(relation)
        compared = count == 1 and not fact.any_records
        return Claim(
            notion=Notion.PURE_DP if fact.certified else Notion.ESTIMATED,
            epsilon=float(curve.renyi(math.inf)),
            alpha=math.inf,
            delta=0.0,
            relation=relation,
            curve=curve,
            coupling_id=coupling,
            coupling_count=count,
            composable=fact.certified and coupling is not None,
            assumptions=(*fact.assumptions, statement, *release.assumptions),
            sensitivity=float(shift.radius),
            norm=float(shift.norm),
            record_sensitivity=float(shift.radius) if compared else None,
            source=source,
        )

    def calibrate(noise: Noise, rng: Any) -> Found:
        # both families cost the same, and the first errs less
        family = selection_noises(noise, release)[0]
        total = count * sum(release.ranges(relation))
        chosen = family(total / float(accountant.epsilon) * (1 + _DIGITS))
        return Found(chosen, certify(chosen))

    return Account(calibrate, certify)


class GroupPrivacy(_AdditiveAccountant):
    """Noise that covers the records that differ between neighbouring tables.

    It works from adjacency: how many records differ and how far each moves, under one
    coupling of the two tables. Under :class:`~skpuffer.scenarios.RecordScenario` it is
    the Gaussian or Laplace mechanism. Certificates of one coupling compose.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep (choices by scores can).
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly. Not
        together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (for sums in turn Gaussian, or Laplace for a pure
        promise). Gaussian and generalised Cauchy noise measure shifts in l2, Laplace
        noise in l1, and generalised Gaussian noise in the norm of order min(beta, 2).
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    GeneralWasserstein : Compares output distributions; less noise where it applies.

    References
    ----------
    Dwork and Roth (2014), Theorem 2.2 (groups); Pierquin et al. (2024), Corollary 3.1.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> GroupPrivacy(epsilon=0.5, delta=1e-5)
    GroupPrivacy(delta=1e-05, epsilon=0.5)
    """

    needs = (Adjacency,)
    _takes_joint_noise = True
    reads: ClassVar = _AdditiveAccountant.reads | {
        AdaptiveRelease: STAGE_FIELDS,
        SelectionRelease: SELECTION_FIELDS,
    }
    # Adjacency is about two whole tables under one coupling, so what a second release
    # reveals is bounded pair of tables by pair of tables, and costs add up. A distance
    # of output distributions is about each output alone.
    _composable = True
    _source = Statement("source.group_privacy_one_coupling")

    @accounts_for(SelectionRelease)
    def _account_of_selection(
        self, fact: Adjacency, release: SelectionRelease, bound: BoundScenario
    ) -> Account:
        return pure_account(self, fact, release, bound)


# -- general Wasserstein mechanism: noise that covers W_inf ----------------------------


class GeneralWasserstein(_AdditiveAccountant):
    """Noise that covers the W_inf distance between output distributions of secrets.

    The distance is that of one output, by a coupling of its own. The costs of two
    releases must not be added up: together they may reveal what neither does alone.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly. Not
        together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Gaussian noise where the prior is only sampled). Norms
        of shifts are those of :class:`GroupPrivacy`.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    GroupPrivacy : Works from adjacency; its certificates compose.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 and Corollary 3.1;
    Balle and Wang (2018), and joint convexity of the hockey-stick divergence.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [0.2, 0.225, 0.5, 0.075])
    >>> infected = Discrete([1, 2, 3, 4], [0.075, 0.5, 0.225, 0.2])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> accountant = GeneralWasserstein(epsilon=0.5, alpha=8, noise="gaussian")
    >>> calibration = accountant.calibrate(release, LawsScenario([(healthy, infected)]))
    >>> calibration.certificate.sensitivity
    2.0
    >>> round(calibration.noise.scale, 6)
    5.656854
    """

    # In order of preference: the first that the scenario offers. Any coupling bounds
    # W_inf from above, so the later ones are valid too, and need more noise.
    needs = (OutputDistributions, CoupledSamples, OutputSensitivity, Adjacency)
    _takes_joint_noise = True
    _source = Statement("source.general_wasserstein")
