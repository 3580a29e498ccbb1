"""The rule of additive noise: what covers how far a vector moves."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement, type_error, unsupported_error, value_error
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.facts import (
    Adjacency,
    CoupledSamples,
    Fact,
    OutputDistributions,
    OutputSensitivity,
    RecordDistributions,
)
from skpuffer.kernel.laplace import LaplaceNoise
from skpuffer.kernel.noise import GaussianNoise, Noise, Shift, ShiftCurve
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import check_extent, lengths_of
from skpuffer.kernel.queries import AdaptiveRelease, QueryRelease

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
    worst: tuple[object, ...] | None = None
    count: int = 1
    any_records: bool = False

    def __post_init__(self) -> None:
        # what is not zero must not be lost in the noise that covers it
        check_extent(sensitivity=self.radius)

    @property
    def has_coupling(self) -> bool:
        """Whether the bound holds for certain, under a coupling that has a name."""
        known = self.certified and self.delta == 0
        return known and self.coupling_id is not None


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
    raise type_error(
        "accountant.sensitivity_bound_unknown", fact_type=type(fact).__name__
    )


def _trusted_bound(
    fact: Fact, radius: float, norm: float, **known: object
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


def record_ceiling(
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
    **known: object,
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by the distance of distributions.

    Parameters
    ----------
    radius : float
        Largest move by a pair, without the release's `slack`.
    **known : dict
        Other fields of the bound, where they are not those of the fact.

    Returns
    -------
    SensitivityBound
        At most the sensitivity to replacing one arbitrary record.
    """
    ceiling = record_ceiling(fact, release, norm)
    # the smaller of two bounds that both hold
    if ceiling <= radius and ceiling < math.inf:
        # and that is certain, however little is known of the distributions
        radius = ceiling
        known |= {"relation": "replace", "assumptions": fact.assumptions} | _CERTAIN
    return _trusted_bound(fact, radius + release.total_slack(norm), norm, **known)


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
    one = release.record_move(fact.move, norm, fact.relation)
    # once, not once a record: the optimiser runs on the first table and on the last
    # alone
    slack = release.total_slack(norm)
    coupling = fact.coupling_id
    if fact.relabelled:
        label = _label_move(release, norm)
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
        coupling = fact.any_coupling()
    radius, each_as_far = _records_move(fact, release, norm, one)
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
            "coupling_id": fact.any_coupling("replace"),
            "arbitrary": True,
        } | _CERTAIN
    return _trusted_bound(fact, radius, norm, **known)


def _label_move(release: QueryRelease, norm: float) -> float:
    """How far the output moves with the target of one record, at most."""
    if release.sensitivity is None:
        return math.inf
    return release.sensitivity.value("relabel", norm, release.dim)


def _records_move(
    fact: Adjacency, release: QueryRelease, norm: float, one: float
) -> tuple[float, bool]:
    """How far the output moves with all records, and whether each moves as far."""
    # triangle inequality: one record after the other
    radius = fact.count * one
    if fact.moves is None:
        return radius, True
    values, times = np.unique(fact.moves, return_counts=True)
    moves = [release.record_move(v, norm, fact.relation) for v in values.tolist()]
    # records with bounds of their own: again one after the other
    total = float(times @ moves)
    return min(radius, total), total >= radius


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
    """Refuse noise of which no law of adaptive composition is known here."""
    # by exact type: a correlation, say, would be another noise
    if type(noise) in _OF_STAGES and noise.dim is None:
        return
    raise unsupported_error(
        "noise.stages_of_several_scales", name=release.name, noise=noise
    )


#: What a bound by distributions may be exchanged for.
_WITHOUT_EVENT = Statement("event.group_privacy_needs_none")


def delta_of_noise(
    delta: float,
    sensitivity: SensitivityBound,
    all_spent: Callable[[float, float], bool] | None = None,
) -> float:
    """Return the part of a delta that the event of a bound leaves to the noise.

    Parameters
    ----------
    all_spent : callable, default=None
        Takes the mass of the event and `delta`: whether nothing is to be left, and what
        is promised given the event is pure.
    """
    if all_spent is not None and all_spent(sensitivity.delta, delta):
        return 0.0
    # of records, rather than of distributions, all that is certain was gone through
    remedy = "" if sensitivity.relation is not None else _WITHOUT_EVENT
    return delta_left(delta, sensitivity.delta, remedy)


def delta_left(delta: float, event: float, remedy: Statement | str = "") -> float:
    """Return the part of a delta that the event of a fact leaves to the noise.

    Parameters
    ----------
    delta : float
        Delta of the promise.
    event : float
        Mass outside the event on which the fact holds.
    remedy : Statement or str, default=''
        Another remedy, for the message.
    """
    # outside of the event nothing is promised: no noise buys that part of delta back
    if event >= delta:
        raise value_error(
            "event.mass_above_delta", delta=delta, event=event, remedy=remedy
        )
    return float(delta) - event


def shift_of(sensitivity: SensitivityBound, release: QueryRelease) -> Shift:
    """Return the shift that noise has to cover, for a sensitivity bound."""
    # weighted by the units: each coordinate's noise is in proportion to its unit, and
    # the radius is in these units
    return Shift(
        sensitivity.radius,
        norm=sensitivity.norm,
        dim=release.dim,
        weights=release.units,
    )


def _notion(
    sensitivity: SensitivityBound, alpha: float | None, delta: float | None
) -> Notion:
    if not sensitivity.certified:
        return Notion.ESTIMATED
    # a bound for any neighbouring tables needs no prior: differential privacy
    dp = sensitivity.arbitrary
    if delta is not None:
        # the event's mass is part of this delta already
        return Notion.APPROXIMATE_DP if dp else Notion.APPROXIMATE_PUFFERFISH
    # an order holds on an event only: neither a Rényi nor a pure promise follows
    if sensitivity.delta:
        return Notion.APPROXIMATE_RENYI_PUFFERFISH
    if alpha == math.inf:
        return Notion.PURE_DP if dp else Notion.PURE_PUFFERFISH
    return Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH


def _cost(
    curve: ShiftCurve,
    sensitivity: SensitivityBound,
    alpha: float | None,
    delta: float | None,
    noise_delta: float | None,
) -> tuple[float, tuple[Statement, ...]]:
    """Return the epsilon of a noise, and the assumptions that it rests on."""
    unproved = curve.evidence(renyi=delta is None)
    if alpha is not None:
        return float(curve.renyi(alpha)), unproved
    assert delta is not None and noise_delta is not None  # one of the two is given
    # what the event takes of delta no noise gives back, whoever says otherwise
    left = min(noise_delta, max(0.0, delta - sensitivity.delta))
    return float(curve.epsilon(left)), unproved


def _value_epsilon(
    noise: Noise,
    sensitivity: SensitivityBound,
    release: QueryRelease,
    alpha: float | None,
) -> float:
    """Rényi-Pufferfish epsilon for secrets about records' values, or infinity."""
    # follows from what holds for certain only
    if alpha is None or not sensitivity.certified or sensitivity.delta:
        return math.inf
    if sensitivity.relation == "add_remove":
        # a value replaced is a removal and an addition, by the triangle inequality
        sensitivity = replace(sensitivity, radius=2 * sensitivity.radius)
    return float(noise.curve(shift_of(sensitivity, release)).renyi(alpha))


def claim_of_bound(
    noise: Noise,
    sensitivity: SensitivityBound,
    release: QueryRelease,
    *,
    alpha: float | None,
    delta: float | None,
    noise_delta: float | None,
    composable: bool,
    source: Statement,
) -> Claim:
    """Claim what noise on a vector promises that moves no further than a bound.

    Parameters
    ----------
    alpha : float or None
        Rényi order of the promise; None for one with a delta.
    noise_delta : float or None
        The part of `delta` that the event of the bound leaves to the noise.
    composable : bool
        Whether the bound is one of two whole tables under a coupling.

    References
    ----------
    Pierquin et al. (2024), Theorem 3.3 and Corollary 3.1; with a delta, joint convexity
    of the hockey-stick divergence and Balle and Wang (2018).
    """
    notion = _notion(sensitivity, alpha, delta)
    value_epsilon = _value_epsilon(noise, sensitivity, release, alpha)
    composable = composable and sensitivity.has_coupling
    curve = noise.curve(shift_of(sensitivity, release))
    # one record against one record; a secret of many is another promise
    compared = sensitivity.count == 1 and not sensitivity.any_records
    norm = float(sensitivity.norm)
    epsilon, unproved = _cost(curve, sensitivity, alpha, delta, noise_delta)
    return Claim(
        notion=notion,
        epsilon=epsilon,
        alpha=alpha,
        delta=sensitivity.delta if delta is None else delta,
        event_delta=sensitivity.delta,
        confidence=sensitivity.confidence,
        relation=sensitivity.relation,
        curve=curve,
        rpp_epsilon=value_epsilon,
        coupling_id=sensitivity.coupling_id,
        # of facts that do not speak of records it is not known
        coupling_count=None if sensitivity.relation is None else sensitivity.count,
        composable=composable,
        assumptions=(*sensitivity.assumptions, *unproved, *release.assumptions),
        sensitivity=sensitivity.radius,
        norm=norm,
        record_sensitivity=record_sensitivity_bound(release, norm)
        if compared
        else None,
        source=source,
    )
