"""Composition of promises that bound a mutual information."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import (
    CompositionError,
    Statement,
    UncertifiedError,
    value_error,
)
from skpuffer.kernel.notions import SLICED, Notion

if TYPE_CHECKING:
    from ._certificate import Certificate


#: Notions in which a mutual information is bounded, on average over one prior.
INFORMATION = (
    Notion.MUTUAL_INFORMATION,
    Notion.RECORD_MUTUAL_INFORMATION,
    Notion.GROUP_MUTUAL_INFORMATION,
)

#: What a sum takes for granted.
NOT_ADAPTIVE = Statement("assume.releases_not_adaptive")


def sum_of_information(
    certificates: "Sequence[Certificate]", alpha: float | None, delta: float | None
) -> "Certificate":
    """Return the sum of bounds on the mutual information with the whole table.

    It is at most the entropy of the table, where that is known and the table has a
    name.

    Zhang and Vorobeychik, Residual-PAC privacy, section 5.4: given the table the
    releases are independent.
    """
    _refuse_other_notions(certificates)
    if alpha is not None or delta is not None:
        raise CompositionError(Statement("compose.information_alpha_or_delta"))
    for certificate in certificates:
        if certificate.notion != Notion.MUTUAL_INFORMATION:
            raise CompositionError(
                Statement("compose.single_secret_information", certificate=certificate)
            )
    if len(certificates) == 1:
        return certificates[0]
    total = math.fsum(_stated(c.mutual_information) for c in certificates)
    return _together(certificates, total)


def mixed_information(certificates: "Iterable[Certificate]") -> "Certificate":
    r"""Return the bound on what several releases tell of single records or groups.

    .. math:: I(U; Y_1 \ldots Y_k) \le
        \min_j \Bigl( I(U; Y_j) + \sum_{l \ne j} I(X; Y_l) \Bigr)

    Parameters
    ----------
    certificates : sequence of Certificate
        Bounds on the mutual information with the same secrets under one scenario, each
        with its `table_information`; or with the whole table.

    Returns
    -------
    Certificate

    Raises
    ------
    CompositionError
        If one is an estimate or another notion, under another scenario, or does not
        bound the information about the whole table.

    Notes
    -----
    By the chain rule. The noise must be independent, and no mechanism chosen by what an
    earlier one showed.

    Examples
    --------
    >>> from skpuffer.privacy import Certificate, mixed_information
    >>> one = Certificate(
    ...     notion="record_mutual_information",
    ...     mutual_information=0.05,
    ...     table_information=0.2,
    ... )
    >>> mixed_information([one, one]).mutual_information
    0.25
    """
    certificates = list(certificates)
    if not certificates:
        raise CompositionError(Statement("compose.no_certificate"))
    for certificate in certificates:
        certificate._refuse_sum()
    _refuse_other_notions(certificates)
    about = {c.notion for c in certificates if c.notion != Notion.MUTUAL_INFORMATION}
    if len(about) != 1:
        raise CompositionError(Statement("compose.information_secret_kinds_differ"))
    if len(certificates) == 1:
        return certificates[0]
    own = [_stated(c.mutual_information) for c in certificates]
    whole = [
        _stated(
            c.mutual_information
            if c.notion == Notion.MUTUAL_INFORMATION
            else c.table_information
        )
        for c in certificates
    ]
    total = math.fsum(whole)
    least = min(one + total - table for one, table in zip(own, whole, strict=True))
    (notion,) = about
    mixed = _together(certificates, least)
    return replace(mixed, notion=notion, table_information=capped(total, mixed))


def _refuse_other_notions(certificates: "Sequence[Certificate]") -> None:
    first = certificates[0]
    for certificate in certificates:
        if certificate.notion not in INFORMATION:
            raise CompositionError(
                Statement(
                    "compose.information_with_other_notion", certificate=certificate
                )
            )
        if certificate.scenario != first.scenario or (
            certificate.table != first.table
            or certificate.n_records != first.n_records
            or certificate.entropy != first.entropy
        ):
            raise CompositionError(Statement("compose.information_scenarios_differ"))


def _stated(value: float | None) -> float:
    if value is None:
        raise CompositionError(Statement("compose.table_information_missing"))
    return value


def capped(total: float, certificate: "Certificate") -> float:
    """Return an information, at most the entropy of what is known to be one table."""
    # of two that are drawn by themselves, as subsets of a pool are, both may leak
    entropy = None if certificate.table is None else certificate.entropy
    return total if entropy is None else min(total, entropy)


def _together(certificates: "Sequence[Certificate]", total: float) -> "Certificate":
    """One certificate of several releases, that bounds as much."""
    first = certificates[0]
    assumptions = dict.fromkeys(a for c in certificates for a in c.assumptions)
    return replace(
        first,
        mutual_information=capped(total, first),
        # all bounds hold together but for the sum of the rates at which one may not
        confidence=max(0.0, 1 - math.fsum(1 - c.confidence for c in certificates)),
        assumptions=(*assumptions, NOT_ADAPTIVE),
        worst_leakage=None,
        sensitivity=None,
        record_sensitivity=None,
        release=" + ".join(c.release for c in certificates),
        errors=tuple(e for c in certificates for e in c.errors),
        accountant=" + ".join(dict.fromkeys(c.accountant for c in certificates)),
        n_releases=sum(c.n_releases for c in certificates),
    )


# -- promises about slices of an output: what follows from them, and what does not -----


#: Notions in which divergences are averaged over subsamples after they were taken.
SUBSAMPLING_AVERAGES = (
    Notion.SA_JOINT_SLICED_RENYI_PUFFERFISH,
    Notion.SA_AVERAGED_SLICED_RENYI_PUFFERFISH,
)


def sum_of_averages(
    certificates: "Sequence[Certificate]", alpha: float | None, delta: float | None
) -> "Certificate":
    """Return the sum of promises that are averages over subsamples.

    Given all batches the runs are mechanisms on fixed tables, whose costs along any
    direction add up, and so do their means over the batches.

    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorem 5.8, for a fixed set
    of records that differ and caps that are the same along all directions.
    """
    first = next(c for c in certificates if c.notion in SUBSAMPLING_AVERAGES)
    notions = {c.notion for c in certificates}
    if len(notions) > 1:
        others = ", ".join(sorted(n.title for n in notions - {first.notion}))
        raise CompositionError(
            Statement("sampling.average_with_other_notion", first=first, others=others)
        )
    if delta is not None or alpha not in (None, first.alpha):
        raise CompositionError(
            Statement(
                "sampling.average_order_not_convertible", title=first.notion.title
            )
        )
    if len(certificates) == 1:
        return first
    if not all(c.composable for c in certificates):
        raise CompositionError(Statement("sampling.average_caps_per_slice"))
    if len({c.alpha for c in certificates}) > 1:
        orders = sorted({c.alpha for c in certificates if c.alpha is not None})
        raise CompositionError(
            Statement("sampling.average_orders_differ", orders=orders)
        )
    if len({c.coupling_id for c in certificates}) > 1 or first.coupling_id is None:
        ids = ", ".join(sorted(str(c.coupling_id) for c in certificates))
        raise CompositionError(Statement("sampling.average_couplings_differ", ids=ids))
    return replace(
        first,
        epsilon=math.fsum(c.epsilon for c in certificates if c.epsilon is not None),
        # union bound over the public samples on which a part does not hold
        confidence=max(0.0, 1 - math.fsum(1 - c.confidence for c in certificates)),
        epsilon_lower=None,
        # nothing follows about what is released
        rpp_epsilon=math.inf,
        assumptions=tuple(
            dict.fromkeys(a for c in certificates for a in c.assumptions)
        ),
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        noise_gain=None,
        source=Statement("source.fixed_batch_sums_averaged", source=first.source),
        accountant=" + ".join(dict.fromkeys(c.accountant for c in certificates)),
        release=" + ".join(c.release for c in certificates),
        errors=tuple(e for c in certificates for e in c.errors),
        n_releases=sum(c.n_releases for c in certificates),
    )


#: What a sliced Rényi notion converts to, at a delta.
_APPROXIMATE = {
    Notion.AVERAGED_SLICED_RENYI_PUFFERFISH: Notion.AVERAGED_SLICED_PUFFERFISH,
    Notion.JOINT_SLICED_RENYI_PUFFERFISH: Notion.JOINT_SLICED_PUFFERFISH,
}


def sliced_approximate(certificate: "Certificate", delta: float) -> "Certificate":
    """Return the (epsilon, delta) promise about slices from a Rényi one."""
    notion = _APPROXIMATE.get(certificate.notion)
    if notion is None:
        raise value_error("sliced.not_renyi_promise", title=certificate.notion.title)
    curve = certificate.curve
    # curves of slices are those that may know the whole output's
    if curve is None or not hasattr(curve, "vector"):
        raise UncertifiedError(Statement("certificate.no_curve_to_convert"))
    # orders are of one noise: the curve is read at that of the certificate
    return replace(
        certificate,
        notion=notion,
        epsilon=float(curve.epsilon(delta)),
        alpha=None,
        delta=delta,
        rpp_epsilon=math.inf,
    )


def processed(certificate: "Certificate") -> "Certificate":
    """Return the promise for anything that is computed from a release."""
    if certificate.notion in SUBSAMPLING_AVERAGES:
        raise UncertifiedError(
            Statement("sliced.nothing_after_processing", title=certificate.notion.title)
        )
    if certificate.notion not in SLICED:
        return certificate
    curve = certificate.curve
    vector = getattr(curve, "vector", None)
    if vector is None:
        raise UncertifiedError(Statement("sliced.whole_output_unknown"))
    if certificate.alpha is None:
        notion, epsilon = (
            Notion.APPROXIMATE_PUFFERFISH,
            vector.epsilon(certificate.delta),
        )
    else:
        notion, epsilon = Notion.RENYI_PUFFERFISH, vector.renyi(certificate.alpha)
    rpp = math.inf if certificate.alpha is None else float(epsilon)
    return replace(
        certificate,
        notion=notion,
        epsilon=float(epsilon),
        rpp_epsilon=rpp,
        curve=vector,
        events=None,
        profile=None,
        source=Statement("source.wasserstein_whole_output"),
    )
