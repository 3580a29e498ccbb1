"""Sequential composition of certificates, inside one coupling of the data."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from skpuffer.exceptions import CompositionError, Statement, value_error
from skpuffer.kernel.composed_curves import (
    RepeatedCurve,
    SymmetricPair,
    compose_curves,
)
from skpuffer.kernel.curves import ComposedPair, Events, PrivacyCurve
from skpuffer.kernel.noise import ShiftCurve
from skpuffer.kernel.notions import SLICED, Notion
from skpuffer.kernel.numbers import check_count, check_order
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.privacy_loss._overlap import (
    OverlapCurve,
    PairwiseOverlapCurve,
    WorstOverlapCurve,
    composed_pairs,
)

from ._certificate import Certificate
from ._information import (
    INFORMATION,
    NOT_ADAPTIVE,
    SUBSAMPLING_AVERAGES,
    capped,
    sum_of_averages,
    sum_of_information,
)
from ._robustness import arbitrary_count, plain_privacy

# The assumptions that say for whom a promise under a belief holds.
_OF_BELIEVERS = ("assume.belief_independent_of_rows",)


def on_one_coupling(certificates: Sequence[Certificate]) -> list[Certificate]:
    """Return certificates that all are about one coupling of neighbouring tables.

    A bound for k replaced records or for 2k added or removed ones holds under a
    coupling that changes no more than k. The first is of that coupling.
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

    Those under a belief count at their fallback. The curve amplifies all of them, if
    they rest on one belief about the same record and `amplify` holds; otherwise it is
    None.
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

    `total` is about the replaced records that the belief is about.
    """
    assert total.curve is not None  # composed of curves
    return replace(
        total,
        notion=Notion.APPROXIMATE_PUFFERFISH,
        # Gaussian runs together are one, by whose distances pairs are told apart
        curve=replace(belief, curve=total.curve),
        source=Statement("source.amplified_after_composition", source=total.source),
    )


_PURE = (Notion.PURE_DP, Notion.PURE_PUFFERFISH)


def compose(
    certificates: Iterable[Certificate],
    alpha: float | None = None,
    delta: float | None = None,
    *,
    counts: Iterable[int] | None = None,
) -> Certificate:
    """Return one certificate for several releases about the same people.

    Adding budgets is sound only inside one coupling of the neighbouring tables of a
    secret pair. Every certificate must be composable and name the same `coupling_id`. A
    scenario's own coupling names the table too, by its parameter `table` and the number
    of records. A promise for arbitrary neighbours needs no name, as under
    :class:`~skpuffer.scenarios.RecordScenario`. It also counts under a coupling of a
    named table that changes no more records. **Certificates that rest on a Wasserstein
    distance do not add up**: two mechanisms with no loss each can leak everything
    together.

    Promises under one belief about one named table are added as they are without it,
    and amplified once. Any other belief counts at its fallback, the differential
    privacy of one replaced record, and so do all in the Rényi notion.

    Bounds on the mutual information with the whole table add up under one scenario; for
    single records or groups see :func:`mixed_information`. Averages over subsamples add
    up with their own kind only, and promises about slices of an output with nothing.

    Parameters
    ----------
    certificates : sequence of Certificate
    alpha : float, default=None
        Rényi order of the result, for a promise in the Rényi notion. None takes the
        smallest among the parts, if they are in that notion too.
    delta : float, default=None
        For an (epsilon, delta) promise, read off the curve of all parts. None takes the
        largest among the parts, if any has one.
    counts : sequence of int, default=None
        How many releases each certificate stands for; None is one each.

    Returns
    -------
    Certificate
        Pure if all parts are. Otherwise it is an (epsilon, delta) promise if any part
        is one or `delta` is given, and else in the Rényi notion. Whole curves are
        added.

    Raises
    ------
    CompositionError
        If the parts may not be added; the message says why.
    ValueError
        If both `alpha` and `delta` are given, or a parameter is out of its range.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Proposition 1, with joint
    quasi-convexity. Pufferfish privacy has no sequential composition theorem in
    general.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.privacy import compose
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.mean(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 0.01}),
    ... )
    >>> accountant = GroupPrivacy(epsilon=1.0, delta=1e-5, noise="gaussian")
    >>> once = accountant.calibrate(release, RecordScenario()).certificate
    >>> both = compose([once, once])
    >>> round(both.epsilon, 3), both.delta
    (1.465, 1e-05)
    """
    certificates = list(certificates)
    if not certificates:
        raise CompositionError(Statement("compose.no_certificate"))
    for certificate in certificates:
        certificate._refuse_sum()
    if counts is not None:
        certificates = _counted(certificates, list(counts))
    if any(c.notion in INFORMATION for c in certificates):
        return sum_of_information(certificates, alpha, delta)
    if any(c.notion in SUBSAMPLING_AVERAGES for c in certificates):
        _refuse_other_tables(certificates)
        return sum_of_averages(certificates, alpha, delta)
    for certificate in certificates:
        if certificate.notion in SLICED:
            raise CompositionError(
                Statement("compose.slices_not_composable", certificate=certificate)
            )
        if not certificate.composable:
            raise CompositionError(
                Statement("compose.certificate_not_composable", certificate=certificate)
            )
    if len(certificates) == 1 and alpha is None and delta is None:
        (alone,) = certificates
        if not isinstance(alone.curve, RepeatedCurve):
            return alone
    if any(c.curve is None for c in certificates):
        raise CompositionError(Statement("compose.no_curve"))
    _refuse_other_tables(certificates)
    # no Rényi promise is amplified
    certificates, belief = beside_beliefs(certificates, amplify=alpha is None)
    certificates = on_one_coupling(certificates)
    # a belief that is told apart pair by pair names all columns that are read
    if not isinstance(belief, PairwiseOverlapCurve):
        _refuse_other_columns(certificates)
    total = _sum_of(certificates)
    if belief is not None:
        total = amplified(total, belief)
    return promise_of(total, certificates, alpha, delta)


def _counted(
    certificates: Sequence[Certificate], counts: Sequence[int]
) -> list[Certificate]:
    """Certificates that stand for so many releases each."""
    if len(counts) != len(certificates):
        raise value_error(
            "compose.counts_mismatch",
            n_counts=len(counts),
            n_certificates=len(certificates),
        )
    counts = [check_count(counts=count) for count in counts]
    parts = zip(certificates, counts, strict=True)
    # one that adds up with nothing is refused under its own name
    return [
        part
        for c, count in parts
        for part in (repeated(c, count) if c.composable or _adds(c) else count * [c])
    ]


def _adds(certificate: Certificate) -> bool:
    """Whether it adds up without being composable in a coupling."""
    return certificate.notion in INFORMATION


def _refuse_other_tables(certificates: Sequence[Certificate]) -> None:
    """Refuse tables of one name that cannot be the same."""
    sizes: dict[str, int | None] = {}
    for certificate in certificates:
        name, n = certificate.table, certificate.n_records
        if name is not None and sizes.setdefault(name, n) != n:
            raise CompositionError(
                Statement(
                    "compose.table_sizes_differ", sizes=sizes[name], n=n, name=name
                )
            )


def _refuse_other_columns(certificates: Sequence[Certificate]) -> None:
    """Refuse tables of one name of which neither has the columns of the other."""
    for name in {c.table for c in certificates} - {None}:
        known = [c.columns for c in certificates if c.table == name and c.columns]
        widest = max(known, key=len, default=())
        # a table may be read in part, and then all of it has the columns of every part
        other = next((c for c in known if not set(c) <= set(widest)), None)
        if other is not None:
            raise CompositionError(
                Statement(
                    "compose.table_columns_differ",
                    widest=list(widest),
                    other=list(other),
                    name=name,
                )
            )


def _sum_of(certificates: Sequence[Certificate]) -> Certificate:
    """Composed certificate, except for the numbers of its promise."""
    first = certificates[0]
    curve = compose_curves([c.curve for c in certificates if c.curve is not None])
    read = [c.columns for c in certificates if c.table == first.table and c.columns]
    return replace(
        first,
        # of one table, which has those of all; the widest first
        columns=tuple(dict.fromkeys(chain(*sorted(read, key=len, reverse=True))))
        or None,
        # each part may fail on an event of its own: union bound
        event_delta=sum(c.event_delta for c in certificates),
        # likewise over the public samples on which a part does not hold
        confidence=max(0.0, 1 - sum(1 - c.confidence for c in certificates)),
        # Under one coupling the neighbouring tables are drawn together, and given them
        # the releases are mechanisms on fixed tables, whose losses add. Averaging over
        # the draw does not raise a divergence (joint quasi-convexity).
        curve=curve,
        events=events_together(certificates, curve),
        epsilon_lower=None,
        assumptions=tuple(
            dict.fromkeys(a for c in certificates for a in c.assumptions)
        ),
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        noise_gain=None,
        source=Statement(
            "source.coupling_composition",
            sources=sorted({c.source for c in certificates}, key=str),
        ),
        accountant=" + ".join(dict.fromkeys(c.accountant for c in certificates)),
        choice=_choices(certificates),
        release=" + ".join(c.release for c in certificates),
        errors=tuple(e for c in certificates for e in c.errors),
        n_releases=sum(c.n_releases for c in certificates),
    )


def promise_of(
    total: Certificate,
    parts: Sequence[Certificate],
    alpha: float | None,
    delta: float | None,
) -> Certificate:
    """Composed certificate with its promise, read off the curve in the notion asked."""
    if alpha is not None and delta is not None:
        raise value_error("compose.alpha_and_delta_both_given")
    for part in parts:
        if part.notion.approximate is None:
            raise CompositionError(
                Statement("compose.notion_unknown", title=part.notion.title, part=part)
            )
    # about neighbouring tables only if every part is; otherwise about priors
    dp = total.record is None and all(c.notion.differential for c in parts)
    event = total.event_delta
    if alpha is None and delta is None:
        # Deltas of one composed curve need not be added: it is read at the largest
        # that some noise was calibrated for, and only the events add up.
        of_noise = [c.delta - c.event_delta for c in parts]
        delta = event + max(of_noise) if max(of_noise) > 0 else None
    if delta is not None:
        notion = Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH
        return replace(total, notion=notion).to_approximate(delta)
    pure = all(c.notion in _PURE for c in parts)
    if alpha is None:
        # pure promises compose as pure; else at the smallest order of a part
        orders = [c.alpha for c in parts if c.alpha is not None]
        alpha = math.inf if pure else min([a for a in orders if a < math.inf] or [2.0])
    alpha = check_order(alpha=alpha)
    if math.isinf(alpha) and not pure:
        raise CompositionError(Statement("compose.infinite_order_not_pure"))
    if math.isinf(alpha):
        notion = Notion.PURE_DP if dp else Notion.PURE_PUFFERFISH
    elif event:
        notion = Notion.APPROXIMATE_RENYI_PUFFERFISH
    else:
        notion = Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH
    assert total.curve is not None  # composed of curves
    epsilon = float(total.curve.renyi(alpha))
    # a value replaced is a removal and an addition, so not one step of "add_remove"
    rpp = math.inf if event or total.relation == "add_remove" else epsilon
    return replace(
        total, notion=notion, epsilon=epsilon, alpha=alpha, delta=event, rpp_epsilon=rpp
    )


def _choices(certificates: Sequence[Certificate]) -> Statement | str:
    """All that was chosen for the parts, each once."""
    found = list(dict.fromkeys(c.choice for c in certificates if c.choice))
    return (
        Statement("plain.listed", parts=found)
        if len(found) > 1
        else next(iter(found), "")
    )


# -- releases about disjoint blocks of independent records cost what one costs ---------


def parallel(certificates: Iterable[Certificate]) -> Certificate:
    """Return one certificate for releases that each read a block of their own.

    If the blocks are independent and every secret is about one of them, the weakest
    promise holds for all.

    Parameters
    ----------
    certificates : sequence of Certificate
        In one notion, and at one Rényi order.

    Returns
    -------
    Certificate
        Its assumptions state what blocks must be. It may not be composed further.

    Raises
    ------
    CompositionError
        For estimates or for different notions, orders or relations.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition E.1; McSherry (2009),
    Privacy integrated queries, Theorem 4.

    Examples
    --------
    >>> from skpuffer.privacy import Certificate, parallel
    >>> parts = [Certificate(notion="pure_dp", epsilon=e) for e in (0.5, 1.0)]
    >>> parallel(parts).epsilon
    1.0
    """
    certificates = list(certificates)
    if not certificates:
        raise CompositionError(Statement("parallel.no_certificate"))
    for certificate in certificates:
        if not certificate.certified or certificate.epsilon is None:
            raise CompositionError(
                Statement("parallel.no_epsilon_promised", certificate=certificate)
            )
        certificate._refuse_sum()
        # a notion that is new may not bound what each block tells by itself
        if certificate.notion.approximate is None:
            raise CompositionError(
                Statement(
                    "parallel.notion_unknown",
                    title=certificate.notion.title,
                    certificate=certificate,
                )
            )
    kinds = {(c.notion, c.alpha, c.relation) for c in certificates}
    if len(kinds) > 1:
        promises = [
            Statement(
                "parallel.listed_promise",
                title=notion.title,
                alpha=alpha,
                relation=relation,
            )
            for notion, alpha, relation in kinds
        ]
        raise CompositionError(
            Statement("parallel.promises_differ", promises=sorted(promises, key=str))
        )
    if len(certificates) == 1:
        return certificates[0]
    epsilons = [c.epsilon for c in certificates if c.epsilon is not None]
    # A secret lies in one block, and the output of that block's release is all that
    # tells of it. Which block that is may be any, so the largest of each number counts.
    worst = max(certificates, key=lambda c: (c.epsilon, c.delta))
    dp = worst.notion.differential
    assumptions = [
        Statement("assume.blocks_disjoint_and_public"),
        Statement("assume.secret_within_one_block"),
    ]
    # differential privacy fixes all other records, so it needs no independence
    if not dp:
        assumptions.insert(1, Statement("assume.blocks_independent"))
    parts = (text for c in certificates for text in c.assumptions)
    curve = _curve([c.curve for c in certificates])
    counts = {c.coupling_count for c in certificates}
    return replace(
        worst,
        epsilon=max(epsilons),
        delta=max(c.delta for c in certificates),
        event_delta=max(c.event_delta for c in certificates),
        # union bound over the events in which a part does not hold
        confidence=max(0.0, 1 - sum(1 - c.confidence for c in certificates)),
        curve=curve,
        # those of a curve that all share
        events=worst.events if curve is worst.curve else None,
        epsilon_lower=None,
        rpp_epsilon=max((c.rpp_epsilon for c in certificates), default=math.inf),
        coupling_id=None,
        # what holds of so many records in one block may not in another
        coupling_count=counts.pop() if len(counts) == 1 else None,
        record=None,
        composable=False,
        assumptions=tuple(dict.fromkeys((*assumptions, *parts))),
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        noise_gain=None,
        source=Statement(
            "source.parallel_composition",
            sources=sorted({c.source for c in certificates}, key=str),
        ),
        scenario="; ".join(dict.fromkeys(c.scenario for c in certificates)),
        accountant="; ".join(dict.fromkeys(c.accountant for c in certificates)),
        release=" | ".join(c.release for c in certificates),
        errors=tuple(e for c in certificates for e in c.errors),
        n_releases=sum(c.n_releases for c in certificates),
    )


def _curve(curves: Sequence[PrivacyCurve | None]) -> PrivacyCurve | None:
    """PrivacyCurve of whichever block a secret lies in, where one is kept."""
    # a curve that all share holds for any block
    if all(curve is curves[0] for curve in curves):
        return curves[0]
    # Under beliefs what holds without them is read off it. Of other curves the largest
    # is not kept.
    under = [c for c in curves if isinstance(c, OverlapCurve | WorstOverlapCurve)]
    return WorstOverlapCurve(tuple(under)) if len(under) == len(curves) else None


# -- several releases of one certificate, as one certificate ---------------------------


def repeated(certificate: "Certificate", times: int) -> "list[Certificate]":
    """Return certificates that compose to as much as so many copies of one.

    It is one alone, except under a declared belief, whose releases are told apart.
    """
    c = certificate
    if times == 1:
        return [c]
    # amplified together, by what each of them leaves to hide
    if isinstance(c.curve, OverlapCurve):
        return times * [c]
    counted = replace(
        c,
        # each copy may fail on an event of its own, or over a sample of its own
        delta=c.delta + (times - 1) * c.event_delta,
        event_delta=times * c.event_delta,
        confidence=max(0.0, 1 - times * (1 - c.confidence)),
        curve=None if c.curve is None else RepeatedCurve(c.curve, times),
        release=f"{c.release} (x {times})",
        n_releases=times * c.n_releases,
    )
    if c.notion in INFORMATION:
        return [_of_information(counted, times)]
    # what averages over subsamples add up by, which have no curve
    return [replace(counted, epsilon=None if c.epsilon is None else times * c.epsilon)]


def _of_information(c: "Certificate", times: int) -> "Certificate":
    """Return a bound for so many releases; see :func:`mixed_information`."""
    assert c.mutual_information is not None  # what such a notion is stated in
    whole = c.table_information
    if c.notion == Notion.MUTUAL_INFORMATION:
        own = capped(times * c.mutual_information, c)
    elif whole is not None:
        own, whole = c.mutual_information + (times - 1) * whole, times * whole
    else:
        own = math.inf  # refused where it is to be added
    return replace(
        c,
        mutual_information=own,
        table_information=whole,
        worst_leakage=None,
        assumptions=tuple(dict.fromkeys((*c.assumptions, NOT_ADAPTIVE))),
    )


# -- what leaves, and how often: the events that a curve of a certificate is made of ---


def events_together(
    certificates: "Sequence[Certificate]", curve: PrivacyCurve | None
) -> Events | None:
    """Return the (pair, int) events of several releases under one curve, or None.

    None where the curve of all together lists them itself or a part does not.
    """
    if curve is None or isinstance(curve, PrivacyLossCurve | ShiftCurve):
        return None
    found: list[tuple[ComposedPair, int]] = []
    for certificate in certificates:
        own = _events_of(certificate.curve, certificate.events)
        if own is None:
            return None
        found += own
    return tuple(found)


def _events_of(curve: PrivacyCurve | None, stated: Events | None) -> Events | None:
    if isinstance(curve, RepeatedCurve):
        once = _events_of(curve.curve, stated)
        return once and tuple((pair, curve.times * count) for pair, count in once)
    if isinstance(curve, PrivacyLossCurve):
        return curve.steps
    if isinstance(curve, ShiftCurve):
        return ((SymmetricPair(curve), 1),)
    return stated
