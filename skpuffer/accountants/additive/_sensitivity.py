"""The sensitivity of a query's output, bounded by each kind of fact."""

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from skpuffer.distributions._distributions import largest_distance
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.scenarios._facts import Fact, arbitrary_coupling

__all__ = ["SensitivityBound", "distribution_sensitivity", "sensitivity_bound"]


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
    assumptions : tuple of str
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
    assumptions: tuple[str, ...] = ()
    relation: str | None = None
    coupling_id: str | None = None
    arbitrary: bool = False
    worst: tuple[Any, ...] | None = None
    count: int = 1
    any_records: bool = False


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
    raise TypeError(f"No sensitivity bound is known for {type(fact).__name__}.")


def _trusted_bound(
    fact: Fact, radius: float, norm: float, **known: Any
) -> SensitivityBound:
    """Return a bound as certain as its fact, except for what is known better."""
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
    fact: OutputDistributions, release: QueryRelease, norm: float
) -> float:
    """Sensitivity to an arbitrary record, which bounds W_inf of one record's part."""
    if fact.common_part_removed and release.sensitivity is not None:
        return release.sensitivity.value("replace", norm, release.dim)
    return math.inf


def distribution_sensitivity(
    fact: OutputDistributions,
    radius: float,
    release: QueryRelease,
    norm: float,
    **known: Any,
) -> SensitivityBound:
    """Bound the sensitivity of a release's output by the distance of distributions.

    Parameters
    ----------
    fact : OutputDistributions
    radius : float
        Largest distance of a pair, without the release's `slack`.
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
    if ceiling <= radius and ceiling < math.inf:
        # and that is certain, however little is known of the distributions
        radius = ceiling
        known |= {"relation": "replace", "assumptions": fact.assumptions} | _CERTAIN
    return _trusted_bound(fact, radius + release.total_slack(norm), norm, **known)


@sensitivity_bound.register
def _(
    fact: OutputDistributions, release: QueryRelease, norm: float
) -> SensitivityBound:
    ceiling = _record_ceiling(fact, release, norm)
    pairs = list(fact.pairs_of_distributions())
    distance, at = largest_distance(
        [(u, v) for *_, u, v in pairs],
        norm,
        release.units,
        ceiling / fact.scale if fact.scale else math.inf,
    )
    radius = fact.scale * distance if fact.scale else 0.0
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    return distribution_sensitivity(fact, radius, release, norm, worst=worst)


@sensitivity_bound.register
def _(fact: CoupledSamples, release: QueryRelease, norm: float) -> SensitivityBound:
    distances = [
        (
            float(np.linalg.norm((u - v) / release.unit_array, ord=norm, axis=1).max()),
            (prior, fact.secrets[i], fact.secrets[j]),
        )
        for prior, i, j, u, v in fact.draws
    ]
    radius, worst = max(distances, key=lambda pair: pair[0])
    return _trusted_bound(fact, radius, norm, worst=worst)


@sensitivity_bound.register
def _(fact: OutputSensitivity, release: QueryRelease, norm: float) -> SensitivityBound:
    radius = fact.radius + release.total_slack(norm)
    return _trusted_bound(fact, radius, norm, coupling_id=fact.coupling_id)


@sensitivity_bound.register
def _(fact: Adjacency, release: QueryRelease, norm: float) -> SensitivityBound:
    slack = release.total_slack(norm)
    one = release.record_move(fact.move, norm, fact.relation)
    # triangle inequality: one record after the other
    radius, each_as_far = fact.count * one, True
    if fact.moves is not None:
        values, times = np.unique(fact.moves, return_counts=True)
        moves = [release.record_move(v, norm, fact.relation) for v in values.tolist()]
        total = float(times @ moves)
        each_as_far = total >= radius
        radius = min(radius, total)
    radius += slack
    known: dict[str, Any] = {
        "relation": fact.relation,
        "coupling_id": fact.coupling_id,
        "count": fact.count,
        "any_records": fact.any_records,
    }
    if not (fact.count_is_certain and each_as_far):
        # the bound rests on the prior, however far the first record moves
        return _trusted_bound(fact, radius, norm, **known)
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
    return None if math.isinf(value) else value
