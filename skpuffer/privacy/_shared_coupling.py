"""The one coupling, or the one belief, under which certificates may be added."""

from collections.abc import Sequence
from dataclasses import replace

from skpuffer.exceptions import CompositionError, Statement
from skpuffer.privacy_loss.overlap import (
    OverlapCurve,
    PairwiseOverlapCurve,
    composed_pairs,
)

from ._certificate import Certificate
from ._neighbours import arbitrary_count, plain_privacy
from ._notions import Notion

__all__ = ["amplified", "beside_beliefs", "on_one_coupling"]

# The assumptions that say for whom a promise under a belief holds.
_OF_BELIEVERS = ("assume.belief_independent_of_rows",)


def on_one_coupling(certificates: Sequence[Certificate]) -> list[Certificate]:
    """Return certificates that all speak of one coupling of neighbouring tables.

    What holds for any tables that differ in k replaced records, or in 2k that come or
    go, holds for each pair of tables that a coupling draws, if it changes no more than
    k of them.

    Parameters
    ----------
    certificates : sequence of Certificate

    Returns
    -------
    list of Certificate
        The first is of that coupling.

    Raises
    ------
    CompositionError
        If there is none.
    """
    ids = {c.coupling_id for c in certificates}
    if len(ids) == 1 and None not in ids:
        return list(certificates)
    named = [c for c in certificates if arbitrary_count(c) is None]
    if not named:
        return _among_arbitrary(certificates)
    own = named[0]
    others = [c for c in certificates if c not in named]
    one = {c.coupling_id for c in named} == {own.coupling_id} != {None}
    changed = own.coupling_count
    # a table without a name may be another one
    same = len({(c.table, c.n_records) for c in certificates}) == 1 and own.table
    if not one or not same or changed is None:
        raise _different(certificates)
    if any(_replaced(c) < changed for c in others):
        raise _different(certificates)
    text = Statement(
        "assume.counted_under_table_coupling", changed=changed, table=own.table
    )
    # the relation of the coupling: nothing is known beyond the tables it draws
    counted = [replace(c, relation=own.relation).assuming(text) for c in others]
    return [*named, *counted]


def _among_arbitrary(certificates: Sequence[Certificate]) -> list[Certificate]:
    """Certificates for any neighbouring tables: the narrowest relation counts."""
    relations = {c.relation for c in certificates}
    # of one relation all speak of fewer records too
    if len(relations) == 1:
        return sorted(certificates, key=lambda c: arbitrary_count(c) or 0)
    narrowest = min(certificates, key=_replaced)
    if _replaced(narrowest) < 1:
        raise _different(certificates)
    # a replaced record is one that goes and one that comes
    count = _replaced(narrowest)
    return [
        replace(
            c,
            relation="replace",
            coupling_id=f"replace:{count}",
            coupling_count=count,
        )
        for c in (narrowest, *(c for c in certificates if c is not narrowest))
    ]


def _replaced(c: Certificate) -> int:
    """How many records may be replaced by any others, under a certificate."""
    count = arbitrary_count(c) or 0
    return count // 2 if c.relation == "add_remove" else count


def _different(certificates: Sequence[Certificate]) -> CompositionError:
    ids = {c.coupling_id for c in certificates}
    return CompositionError(
        Statement(
            "compose.couplings_differ", ids=", ".join(sorted(str(i) for i in ids))
        )
    )


def beside_beliefs(
    certificates: Sequence[Certificate], *, amplify: bool = True
) -> tuple[list[Certificate], OverlapCurve | None]:
    """Return certificates as they count without a belief, and what amplifies them.

    Parameters
    ----------
    certificates : sequence of Certificate
    amplify : bool, default=True
        Whether what is asked of them together is what a belief amplifies.

    Returns
    -------
    certificates : list of Certificate
        Those under a belief at their fallback.
    belief : OverlapCurve or None
        That amplifies all of them, if they rest on one belief about the same record.
    """
    curves = [c.curve for c in certificates if isinstance(c.curve, OverlapCurve)]
    if not curves:
        return list(certificates), None
    together = (
        amplify
        and len(curves) == len(certificates)
        and len({(c.record, c.table) for c in certificates}) == 1
        and None not in (certificates[0].record, certificates[0].table)
    )
    plain = [_without_belief(c, together) for c in certificates]
    return plain, _joint(curves) if together else None


def _joint(curves: Sequence[OverlapCurve]) -> OverlapCurve:
    """Curve of one belief: pair by pair where all releases are known so."""
    pairs = [curve for curve in curves if isinstance(curve, PairwiseOverlapCurve)]
    if len(pairs) == len(curves):
        overlap = composed_pairs(pairs)
        if overlap is not None:
            return replace(pairs[0], overlap=overlap)
    # of equal beliefs any bound on what is left to hide will do
    first = curves[0]
    return OverlapCurve(first.curve, first.overlap, first.wider)


def _without_belief(c: Certificate, together: bool) -> Certificate:
    """Certificate of what holds whatever is believed: replaced records."""
    if not isinstance(c.curve, OverlapCurve):
        return c
    plain = replace(
        c,
        notion=Notion.APPROXIMATE_DP,
        epsilon=float(c.curve.curve.epsilon(c.delta - c.event_delta)),
        curve=c.curve.curve,
        noise_gain=None,
    )
    if together:
        return plain
    # at the fallback it holds for everyone
    rest = tuple(text for text in c.assumptions if text.code not in _OF_BELIEVERS)
    return replace(plain, record=None, confidence=1.0, assumptions=rest).assuming(
        Statement(
            "assume.release_counts_at_fallback",
            release=c.release,
            plain_privacy=plain_privacy(c),
        )
    )


def amplified(total: Certificate, belief: OverlapCurve) -> Certificate:
    """Return the sum of releases under one belief, amplified once.

    Parameters
    ----------
    total : Certificate
        Of the records replaced that the belief speaks of.
    belief : OverlapCurve

    Returns
    -------
    Certificate
    """
    assert total.curve is not None  # composed of curves
    return replace(
        total,
        notion=Notion.APPROXIMATE_PUFFERFISH,
        # Gaussian runs together are one, by whose distances pairs are told apart
        curve=replace(belief, curve=total.curve),
        source=Statement("source.amplified_after_composition", source=total.source),
    )
