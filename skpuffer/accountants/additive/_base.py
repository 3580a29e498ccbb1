"""Base additive accountant, and the sensitivity bounds that follow from facts."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import lru_cache, partial, singledispatch
from typing import Any, ClassVar

import numpy as np

from skpuffer.accountants._base import (
    Account,
    Accountant,
    Found,
    accounts_for,
    check_pure,
)
from skpuffer.accountants._families import FAMILIES
from skpuffer.accountants._target import DEFAULT_ORDER, check_order_or_delta
from skpuffer.distributions._distributions import largest_distance
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.facts import Fact, arbitrary_coupling
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_extent,
    check_order,
    check_positive,
    lengths_of,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise, Noise, Shift
from skpuffer.releases import AdaptiveRelease, QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
    RecordDistributions,
)

#: What is read of a query: what bounds its sensitivity, its units, its assumptions.
QUERY_FIELDS: frozenset[str] = frozenset(
    {
        "assumptions",
        "ball",
        "context",
        "contribution",
        "dim",
        "factor",
        "is_integer",
        "is_sum",
        "linear",
        "modulus",
        "modulus_norm",
        "n_records",
        "name",
        "query",
        "sensitivity",
        "shift_ceiling",
        "slack",
        "units",
    }
)

#: What is read of several sums in turn.
STAGE_FIELDS: frozenset[str] = QUERY_FIELDS | {"norm", "relation", "stages"}


#: How much is known of a bound that holds for any rows, and needs no prior.
_CERTAIN: dict[str, Any] = {"certified": True, "delta": 0.0, "confidence": 1.0}


@dataclass(frozen=True)
class SensitivityBound:
    """A bound on the sensitivity of the output, in the units of the release.

    Parameters
    ----------
    radius : float
        Largest move of the output between neighbouring tables, under a coupling.
    norm : float
        Order of the norm of `radius`.
    certified : bool
    delta : float
    confidence : float
    assumptions : tuple of Statement
        As in :class:`Fact`.
    relation : str or None
        How neighbouring tables differ, where the bound is about tables.
    coupling_id : str or None
        Names the coupling, where it has a name.
    arbitrary : bool
        Whether the bound holds for any neighbouring tables (differential privacy).
    worst : tuple or None
        The (prior, secret, secret) that sets it, where one does.
    count : int
        How many records the secret is about.
    any_records : bool
        Whether these are any records, whatever they hold; see :class:`Adjacency`.
    """

    radius: float
    norm: float
    certified: bool = True
    delta: float = 0.0
    confidence: float = 1.0
    assumptions: tuple[Statement, ...] = ()
    relation: str | None = None
    coupling_id: str | None = None
    arbitrary: bool = False
    worst: tuple[Any, ...] | None = None
    count: int = 1
    any_records: bool = False

    def __post_init__(self) -> None:
        # what is not zero must not be lost in the noise that covers it
        check_extent(sensitivity=self.radius)


@singledispatch
def sensitivity_bound(
    fact: Fact, release: QueryRelease, norm: float
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by one fact.

    Parameters
    ----------
    fact : Fact
    release : QueryRelease
    norm : float
        Norm in which the noise needs the bound.

    Returns
    -------
    SensitivityBound

    References
    ----------
    Pierquin et al. (2024), Theorem 3.3, for output distributions (W_inf). For coupled
    samples and adjacency: any coupling bounds W_inf from above.
    """
    # a new kind of fact is refused until a bound by it is registered
    raise TypeError(
        Statement("accountant.sensitivity_bound_unknown", fact_type=type(fact).__name__)
    )


def _trusted_bound(
    fact: Fact, radius: float, norm: float, **known: Any
) -> SensitivityBound:
    """Return a bound with the certainty of its fact, except where `known` says more."""
    # `known` takes precedence: what is bounded without the prior is certain anyhow
    trust: dict[str, Any] = {
        "certified": fact.certified,
        "delta": fact.delta,
        "confidence": fact.confidence,
        "assumptions": fact.assumptions,
    } | known
    if fact.reads_private_rows:
        # whatever the bound is, which one was reached is read off the private rows
        trust |= {"certified": False, "arbitrary": False}
    return SensitivityBound(radius, norm, **trust)


def _record_ceiling(
    fact: OutputDistributions | RecordDistributions, release: QueryRelease, norm: float
) -> float:
    """Sensitivity to an arbitrary record, which bounds W_inf of one record's part."""
    # The other records cancel where they are independent of the secret, so what is left
    # moves by no more than replacing this record by any other would move it.
    if fact.common_part_removed and release.sensitivity is not None:
        return release.sensitivity.value("replace", norm, release.dim)
    return math.inf


def distribution_sensitivity(
    fact: OutputDistributions | RecordDistributions,
    radius: float,
    release: QueryRelease,
    norm: float,
    **known: Any,
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by the distance of distributions.

    Parameters
    ----------
    fact : OutputDistributions or RecordDistributions
    radius : float
        Largest move by a pair, without the release's `slack`.
    release : QueryRelease
    norm : float
    **known : dict
        Other fields of the bound, where they are not those of the fact.

    Returns
    -------
    SensitivityBound
        At most the sensitivity to replacing one arbitrary record.
    """
    ceiling = _record_ceiling(fact, release, norm)
    # the smaller of two bounds that both hold
    if ceiling <= radius and ceiling < math.inf:
        # and that is certain, however little is known of the distributions
        radius = ceiling
        known |= {"relation": "replace", "assumptions": fact.assumptions} | _CERTAIN
    return _trusted_bound(fact, radius + release.total_slack(norm), norm, **known)


@sensitivity_bound.register
def _(
    fact: OutputDistributions | RecordDistributions, release: QueryRelease, norm: float
) -> SensitivityBound:
    ceiling = _record_ceiling(fact, release, norm)
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


@sensitivity_bound.register
def _(fact: CoupledSamples, release: QueryRelease, norm: float) -> SensitivityBound:
    distances = [
        (
            float(lengths_of((u - v) / release.unit_array, norm).max()),
            (prior, fact.secrets[i], fact.secrets[j]),
        )
        for prior, i, j, u, v in fact.draws
    ]
    # Any coupling bounds W_inf from above by its largest displacement. No slack: the
    # samples are outputs of the query as it is run, its optimiser included.
    radius, worst = max(distances, key=lambda pair: pair[0])
    return _trusted_bound(fact, radius, norm, worst=worst)


@sensitivity_bound.register
def _(fact: OutputSensitivity, release: QueryRelease, norm: float) -> SensitivityBound:
    # the radius is of exact minimisers, the slack of what the optimiser may leave
    radius = fact.radius + release.total_slack(norm)
    return _trusted_bound(fact, radius, norm, coupling_id=fact.coupling_id)


@sensitivity_bound.register
def _(fact: Adjacency, release: QueryRelease, norm: float) -> SensitivityBound:
    slack = release.total_slack(norm)
    one = release.record_move(fact.move, norm, fact.relation)
    coupling = fact.coupling_id
    if fact.relabelled:
        label = math.inf
        if release.sensitivity is not None:
            label = release.sensitivity.value("relabel", norm, release.dim)
        # a target alone, which is less than a record: no differential privacy of those
        if label < one:
            return _trusted_bound(
                fact,
                fact.count * label + slack,
                norm,
                relation=fact.relation,
                coupling_id=coupling,
                count=fact.count,
            )
        # what holds for any records needs no coupling that knows of targets
        coupling = arbitrary_coupling(fact.relation, fact.count)
    # triangle inequality: one record after the other
    radius, each_as_far = fact.count * one, True
    if fact.moves is not None:
        values, times = np.unique(fact.moves, return_counts=True)
        moves = [release.record_move(v, norm, fact.relation) for v in values.tolist()]
        # records with bounds of their own: again one after the other
        total = float(times @ moves)
        each_as_far = total >= radius
        radius = min(radius, total)
    # once, not once a record: the optimiser runs on the first table and on the last
    # alone
    radius += slack
    known: dict[str, Any] = {
        "relation": fact.relation,
        "coupling_id": coupling,
        "count": fact.count,
        "any_records": fact.any_records,
    }
    if not (fact.count_is_certain and each_as_far):
        # the bound rests on the prior, however far the first record moves
        return _trusted_bound(fact, radius, norm, **known)
    # arbitrary records in any tables: differential privacy, if nothing else is
    # uncertain
    if math.isinf(fact.move):
        return _trusted_bound(fact, radius, norm, arbitrary=fact.certified, **known)
    if one >= release.record_move(math.inf, norm, "replace"):
        # the sensitivity to arbitrary records: no prior is needed to be certain of that
        known |= {
            "relation": "replace",
            "coupling_id": arbitrary_coupling("replace", fact.count),
            "arbitrary": True,
        } | _CERTAIN
    return _trusted_bound(fact, radius, norm, **known)


def record_sensitivity_bound(release: QueryRelease, norm: float) -> float | None:
    """Sensitivity to replacing one arbitrary record, or None if not known."""
    if release.sensitivity is None:
        return None
    value = release.sensitivity.value("replace", norm, release.dim)
    value += release.total_slack(norm)
    # nothing to compare with where plain differential privacy has no finite noise
    return None if math.isinf(value) else value


#: Families whose adaptive composition is one shift of the same family, at most; see
#: `AdaptiveRelease`.
_OF_STAGES = (GaussianNoise, LaplaceNoise)


def check_stage_noise(noise: Noise, release: AdaptiveRelease) -> None:
    """Refuse noise of which no law of adaptive composition is known here.

    Parameters
    ----------
    noise : Noise
    release : AdaptiveRelease

    Raises
    ------
    UnsupportedError
        If it is neither Gaussian nor Laplace noise, or has more than one scale.
    """
    # by exact type: a correlation, say, would be another noise
    if type(noise) in _OF_STAGES and noise.dim is None:
        return
    raise UnsupportedError(
        Statement("noise.stages_of_several_scales", name=release.name, noise=noise)
    )


def _composed(certificate: Claim) -> Claim:
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


#: What a bound by distributions may be exchanged for.
_WITHOUT_EVENT = Statement("event.group_privacy_needs_none")


def delta_left(delta: float, event: float, remedy: Statement | str = "") -> float:
    """Return the part of a delta that the event of a fact leaves to the noise.

    Parameters
    ----------
    delta : float
        Of the promise.
    event : float
        Mass outside the event on which the fact holds.
    remedy : Statement or str, default=''
        What else would do, for the message.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If nothing is left.
    """
    # outside of the event nothing is promised: no noise buys that part of delta back
    if event >= delta:
        raise ValueError(
            Statement("event.mass_above_delta", delta=delta, event=event, remedy=remedy)
        )
    return float(delta) - event


def _least_scale(
    noise: Noise, alpha: float | None, epsilon: float, delta: float | None, shift: Shift
) -> float | Floats:
    """Scale of the least noise that covers a shift, at an order or with a delta."""
    if delta is None:
        assert alpha is not None  # the order, where there is no delta
        return noise.scale_for(alpha, epsilon, shift)
    return noise.scale_for_delta(epsilon, delta, shift)


# by value: model selection, and the choice of a family, ask again and again
_remembered_scale = lru_cache(maxsize=1024)(_least_scale)


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
            raise UnsupportedError(
                Statement(
                    "accountant.stages_without_adjacency",
                    owner=type(self).__name__,
                    name=release.name,
                    fact_type=type(fact).__name__,
                )
            )
        account = self._account_of_query(fact, release, bound)

        def calibrate(noise: Noise, rng: Any) -> Found:
            check_stage_noise(noise, release)
            found = account.calibrate(noise, rng)
            return replace_fields(found, claim=_composed(found.claim))

        def certify(noise: Noise) -> Claim:
            check_stage_noise(noise, release)
            return _composed(account.claim(noise))

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
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        # no noise at all only for what is known: in a sample, rare moves are missing
        if sensitivity.radius == 0 and not sensitivity.certified:
            raise UnsupportedError(
                Statement("noise.samples_do_not_move", name=release.name)
            )
        # a budget too small for the event is refused before any scale is searched for
        delta = None if self.delta is None else self._noise_delta(sensitivity)
        shift = self._shift(sensitivity, release)
        # proportions first: calibration multiplies them all by one factor
        if release.units is not None:
            noise = noise.in_units(release.units)
        scale: float | Floats
        if sensitivity.radius == 0:
            scale = 0.0
        else:
            # what is only estimated may have been read off private rows: not kept
            plain = sensitivity.certified and type(noise) in FAMILIES.values()
            search = _remembered_scale if plain else _least_scale
            order = self._order if delta is None else None
            scale = search(noise, order, float(self.epsilon), delta, shift)
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

    def _shift(self, sensitivity: SensitivityBound, release: QueryRelease) -> Shift:
        """Shift that the noise has to cover, from the sensitivity bound."""
        # weighted by the units: each coordinate's noise is in proportion to its unit,
        # and the radius is in these units
        return Shift(
            sensitivity.radius,
            norm=sensitivity.norm,
            dim=release.dim,
            weights=release.units,
        )

    def _noise_delta(self, sensitivity: SensitivityBound) -> float:
        """Return the part of delta that the fact's event leaves to the noise."""
        assert self.delta is not None
        # of records, rather than of distributions, all that is certain was gone through
        remedy = "" if sensitivity.relation is not None else _WITHOUT_EVENT
        return delta_left(self.delta, sensitivity.delta, remedy)

    def _notion(self, sensitivity: SensitivityBound) -> Notion:
        if not sensitivity.certified:
            return Notion.ESTIMATED
        # a bound for any neighbouring tables needs no prior: differential privacy
        dp = sensitivity.arbitrary
        if self.delta is not None:
            # the event's mass is part of this delta already
            return Notion.APPROXIMATE_DP if dp else Notion.APPROXIMATE_PUFFERFISH
        # an order holds on an event only: neither a Rényi nor a pure promise follows
        if sensitivity.delta:
            return Notion.APPROXIMATE_RENYI_PUFFERFISH
        if math.isinf(self._order):
            return Notion.PURE_DP if dp else Notion.PURE_PUFFERFISH
        return Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH

    def _value_epsilon(
        self, noise: Noise, sensitivity: SensitivityBound, release: QueryRelease
    ) -> float:
        """Rényi-Pufferfish epsilon for secrets about records' values, or infinity."""
        # follows from what holds for certain only
        if not sensitivity.certified or sensitivity.delta:
            return math.inf
        if sensitivity.relation == "add_remove":
            # a value replaced is a removal and an addition, by the triangle inequality
            sensitivity = replace_fields(sensitivity, radius=2 * sensitivity.radius)
        return float(noise.curve(self._shift(sensitivity, release)).renyi(self._order))

    def _certificate(
        self,
        noise: Noise,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        notion, shift = self._notion(sensitivity), self._shift(sensitivity, release)
        curve = noise.curve(shift)
        unproved = curve.evidence(renyi=self.delta is None)
        alpha: float | None
        if self.delta is None:
            alpha, delta = float(self._order), sensitivity.delta
            epsilon = float(curve.renyi(alpha))
            rpp = self._value_epsilon(noise, sensitivity, release)
        else:
            alpha, delta, rpp = None, float(self.delta), math.inf
            epsilon = float(curve.epsilon(self._noise_delta(sensitivity)))
        # one record against one record; a secret of many is another promise
        compared = sensitivity.count == 1 and not sensitivity.any_records
        composable = (
            self._composable
            and sensitivity.certified
            and sensitivity.delta == 0
            and sensitivity.coupling_id is not None
        )
        return Claim(
            notion=notion,
            epsilon=epsilon,
            alpha=alpha,
            delta=delta,
            event_delta=sensitivity.delta,
            confidence=sensitivity.confidence,
            relation=sensitivity.relation,
            curve=curve,
            rpp_epsilon=rpp,
            coupling_id=sensitivity.coupling_id,
            # of facts that do not speak of records it is not known
            coupling_count=None if sensitivity.relation is None else sensitivity.count,
            composable=bool(composable),
            assumptions=(
                *sensitivity.assumptions,
                *unproved,
                *release.assumptions,
            ),
            sensitivity=sensitivity.radius,
            norm=float(sensitivity.norm),
            record_sensitivity=(
                record_sensitivity_bound(release, sensitivity.norm)
                if compared
                else None
            ),
            source=self._source,
        )
