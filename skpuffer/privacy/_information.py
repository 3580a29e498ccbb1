"""Composition of promises that bound a mutual information."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import CompositionError, Statement
from skpuffer.kernel.notions import Notion

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = [
    "INFORMATION",
    "NOT_ADAPTIVE",
    "capped",
    "mixed_information",
    "sum_of_information",
]

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

    Parameters
    ----------
    certificates : sequence of Certificate
        Not empty, at least one that bounds a mutual information.
    alpha, delta : float or None
        As in :func:`compose`.

    Returns
    -------
    Certificate
        At most the entropy of the table, where that is known and the table has a name:
        without one each release may be of a table of its own.

    Raises
    ------
    CompositionError
        If one bounds something else, is about single records or groups, or is under
        another scenario.

    References
    ----------
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
    r"""Return what several releases tell of single records or groups, at most.

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
        If one is an estimate, bounds something else, is under another scenario, or does
        not say what the whole table leaks.

    See Also
    --------
    compose : For budgets about the whole table, which add up.

    Notes
    -----
    By the chain rule, with noise that is independent and mechanisms that were not
    chosen by what earlier ones showed.

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
        accountant=" + ".join(dict.fromkeys(c.accountant for c in certificates)),
        n_releases=sum(c.n_releases for c in certificates),
    )
