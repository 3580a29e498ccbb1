"""How far a query's output can move, read off each kind of fact."""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from skpuffer.scenarios import OutputShift, PairedDraws, QueryLaws, RecordShifts
from skpuffer.scenarios._facts import arbitrary_coupling
from skpuffer.scenarios._laws import largest_distance

__all__ = ["Displacement", "displacement"]


@dataclass(frozen=True)
class Displacement:
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


@singledispatch
def displacement(fact, release, norm):
    """Bound the move of a release's output from one fact.

    Parameters
    ----------
    fact : Fact
    release : QueryRelease
    norm : float
        Norm in which the noise needs the bound.

    Returns
    -------
    Displacement

    References
    ----------
    Pierquin et al. (2024), Theorem 3.3 for laws (W_inf). For draws and record shifts:
    any coupling bounds W_inf from above.
    """
    raise TypeError(f"No displacement is known for {type(fact).__name__}.")


def _common(fact):
    return {
        "certified": fact.certified,
        "delta": fact.delta,
        "confidence": fact.confidence,
        "assumptions": fact.assumptions,
    }


@displacement.register
def _(fact: QueryLaws, release, norm):
    ceiling = math.inf
    if fact.common_part_removed and release.sensitivity is not None:
        # no law of one record moves further than an arbitrary record does
        ceiling = release.sensitivity.value("replace", norm, release.dim)
    pairs = list(fact.pairs_of_laws())
    distance, at = largest_distance(
        [(u, v) for *_, u, v in pairs],
        norm,
        release.units,
        ceiling / fact.scale if fact.scale else math.inf,
    )
    radius = fact.scale * distance if fact.scale else 0.0
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    slack = release.total_slack(norm)
    if ceiling <= radius and ceiling < math.inf:
        # and that is certain, however little is known of the laws
        return Displacement(
            ceiling + slack,
            norm,
            assumptions=fact.assumptions,
            relation="replace",
            worst=worst,
        )
    return Displacement(radius + slack, norm, worst=worst, **_common(fact))


@displacement.register
def _(fact: PairedDraws, release, norm):
    units = 1.0 if release.units is None else np.asarray(release.units)
    distances = [
        (
            float(np.linalg.norm((u - v) / units, ord=norm, axis=1).max()),
            (prior, fact.secrets[i], fact.secrets[j]),
        )
        for prior, i, j, u, v in fact.draws
    ]
    radius, worst = max(distances, key=lambda pair: pair[0])
    return Displacement(radius, norm, worst=worst, **_common(fact))


@displacement.register
def _(fact: OutputShift, release, norm):
    radius = fact.radius + release.total_slack(norm)
    return Displacement(radius, norm, coupling_id=fact.coupling_id, **_common(fact))


@displacement.register
def _(fact: RecordShifts, release, norm):
    one = release.record_move(fact.shift, norm, fact.relation)
    radius, each_as_far = fact.count * one, True
    if fact.shifts is not None:
        values, times = np.unique(fact.shifts, return_counts=True)
        moves = [release.record_move(v, norm, fact.relation) for v in values.tolist()]
        total = float(times @ moves)
        each_as_far = total >= radius
        radius = min(radius, total)
    radius += release.total_slack(norm)
    bound = {"relation": fact.relation, "coupling_id": fact.coupling_id}
    common = _common(fact)
    if not (fact.count_is_certain and each_as_far):
        # the bound rests on the prior, however far the first record moves
        return Displacement(radius, norm, count=fact.count, **bound, **common)
    arbitrary = math.isinf(fact.shift)
    if not arbitrary and one >= release.record_move(math.inf, norm, "replace"):
        # as far as any record moves at all: no prior is needed to be certain of that
        arbitrary = True
        bound = {
            "relation": "replace",
            "coupling_id": arbitrary_coupling("replace", fact.count),
        }
        common |= {"certified": True, "delta": 0.0, "confidence": 1.0}
    return Displacement(
        radius,
        norm,
        arbitrary=arbitrary and common["certified"],
        count=fact.count,
        **bound,
        **common,
    )


def record_displacement(release, norm):
    """What replacing one arbitrary record moves, or None if not known."""
    if release.sensitivity is None:
        return None
    value = release.sensitivity.value("replace", norm, release.dim)
    value += release.total_slack(norm)
    return None if math.isinf(value) else value
