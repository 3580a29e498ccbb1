"""Releases about disjoint blocks of independent records cost what one costs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skpuffer.exceptions import CompositionError, Statement
from skpuffer.kernel.curves import PrivacyCurve
from skpuffer.privacy_loss.overlap import OverlapCurve, WorstOverlapCurve

from ._certificate import Certificate

__all__ = ["parallel"]


def parallel(certificates: Iterable[Certificate]) -> Certificate:
    """Return one certificate for releases that each read a block of their own.

    If the blocks are independent and every secret is about one of them, the releases
    from the other blocks say nothing of it, so the promises do not add up: the weakest
    holds for all.

    Parameters
    ----------
    certificates : sequence of Certificate
        In one notion, and at one Rényi order.

    Returns
    -------
    Certificate
        Its assumptions state what blocks must be. It may not be composed further: how
        the blocks of other releases lie is not known.

    Raises
    ------
    CompositionError
        Without certificates, with an estimate among them, or if they differ in notion,
        order or relation.

    See Also
    --------
    compose : For releases about the same records.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition E.1; McSherry (2009),
    Privacy integrated queries, Theorem 4.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.privacy import parallel
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.sum(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 1.0}),
    ... )
    >>> parts = [
    ...     GroupPrivacy(epsilon=e).calibrate(release, RecordScenario()).certificate
    ...     for e in (0.5, 1.0)
    ... ]
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
