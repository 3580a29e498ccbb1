"""How far a query's output can move, read off each kind of fact."""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from skpuffer.distributions._distributions import largest_distance
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.scenarios._facts import arbitrary_coupling

__all__ = ["SensitivityBound", "distribution_sensitivity", "sensitivity_bound"]


#: What holds of any rows needs no prior.
_CERTAIN = {"certified": True, "delta": 0.0, "confidence": 1.0}


@dataclass(frozen=True)
class SensitivityBound:
    """A bound on the output's move in the units of the release.

    Parameters
    ----------
    radius : float
    norm : float
    certified : bool
    delta : float
    confidence : float
    assumptions : tuple of str
    relation : str or None
    coupling_id : str or None
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
    assumptions: tuple = ()
    relation: str | None = None
    coupling_id: str | None = None
    arbitrary: bool = False
    worst: tuple | None = None
    count: int = 1
    any_records: bool = False


@singledispatch
def sensitivity_bound(fact, release, norm):
    """Bound the move of a release's output from one fact.

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
    Pierquin et al. (2024), Theorem 3.3 for laws (W_inf). For draws and record shifts:
    any coupling bounds W_inf from above.
    """
    raise TypeError(f"No displacement is known for {type(fact).__name__}.")


def _moved(fact, radius, norm, **known):
    """A displacement as certain as its fact, except for what is known better."""
    trust = {
        "certified": fact.certified,
        "delta": fact.delta,
        "confidence": fact.confidence,
        "assumptions": fact.assumptions,
    } | known
    if fact.reads_private_rows:
        # whatever the bound is, that it was reached is read off the private rows
        trust |= {"certified": False, "arbitrary": False}
    return SensitivityBound(radius, norm, **trust)


def _record_ceiling(fact, release, norm):
    """How far laws can be apart at most: as far as an arbitrary record moves."""
    if fact.common_part_removed and release.sensitivity is not None:
        return release.sensitivity.value("replace", norm, release.dim)
    return math.inf


def distribution_sensitivity(fact, radius, release, norm, **known):
    """Bound the move of a release's output by a bound on that of its laws.

    Parameters
    ----------
    fact : OutputDistributions
    radius : float
        How far the laws move, without the release's `slack`.
    release : QueryRelease
    norm : float
    **known : dict
        Other fields of the displacement, where they are not those of the fact.

    Returns
    -------
    SensitivityBound
        No further than replacing one arbitrary record moves it.
    """
    ceiling = _record_ceiling(fact, release, norm)
    if ceiling <= radius and ceiling < math.inf:
        # and that is certain, however little is known of the laws
        radius = ceiling
        known |= {"relation": "replace", "assumptions": fact.assumptions} | _CERTAIN
    return _moved(fact, radius + release.total_slack(norm), norm, **known)


@sensitivity_bound.register
def _(fact: OutputDistributions, release, norm):
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
def _(fact: CoupledSamples, release, norm):
    distances = [
        (
            float(np.linalg.norm((u - v) / release.unit_array, ord=norm, axis=1).max()),
            (prior, fact.secrets[i], fact.secrets[j]),
        )
        for prior, i, j, u, v in fact.draws
    ]
    radius, worst = max(distances, key=lambda pair: pair[0])
    return _moved(fact, radius, norm, worst=worst)


@sensitivity_bound.register
def _(fact: OutputSensitivity, release, norm):
    radius = fact.radius + release.total_slack(norm)
    return _moved(fact, radius, norm, coupling_id=fact.coupling_id)


@sensitivity_bound.register
def _(fact: Adjacency, release, norm):
    one = release.record_move(fact.move, norm, fact.relation)
    radius, each_as_far = fact.count * one, True
    if fact.moves is not None:
        values, times = np.unique(fact.moves, return_counts=True)
        moves = [release.record_move(v, norm, fact.relation) for v in values.tolist()]
        total = float(times @ moves)
        each_as_far = total >= radius
        radius = min(radius, total)
    radius += release.total_slack(norm)
    known = {
        "relation": fact.relation,
        "coupling_id": fact.coupling_id,
        "count": fact.count,
        "any_records": fact.any_records,
    }
    if not (fact.count_is_certain and each_as_far):
        # the bound rests on the prior, however far the first record moves
        return _moved(fact, radius, norm, **known)
    if math.isinf(fact.move):
        return _moved(fact, radius, norm, arbitrary=fact.certified, **known)
    if one >= release.record_move(math.inf, norm, "replace"):
        # as far as any record moves at all: no prior is needed to be certain of that
        known |= {
            "relation": "replace",
            "coupling_id": arbitrary_coupling("replace", fact.count),
            "arbitrary": True,
        } | _CERTAIN
    return _moved(fact, radius, norm, **known)


def record_sensitivity_bound(release, norm):
    """What replacing one arbitrary record moves, or None if not known."""
    if release.sensitivity is None:
        return None
    value = release.sensitivity.value("replace", norm, release.dim)
    value += release.total_slack(norm)
    return None if math.isinf(value) else value
