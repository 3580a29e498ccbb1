"""Promises about slices of an output: what follows from them, and what does not."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import CompositionError, Statement, UncertifiedError
from skpuffer.kernel.notions import SLICED, Notion

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["processed", "sliced_approximate"]


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

    Parameters
    ----------
    certificates : sequence of Certificate
        Not empty, at least one in such a notion.
    alpha, delta : float or None
        As in :func:`compose`.

    Returns
    -------
    Certificate

    Raises
    ------
    CompositionError
        If one of them is in another notion, of another order, under another coupling or
        slice profile, or may not be added at all; if another order or a delta is asked.

    References
    ----------
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
        n_releases=sum(c.n_releases for c in certificates),
    )


#: What a sliced Rényi notion converts to, at a delta.
_APPROXIMATE = {
    Notion.AVERAGED_SLICED_RENYI_PUFFERFISH: Notion.AVERAGED_SLICED_PUFFERFISH,
    Notion.JOINT_SLICED_RENYI_PUFFERFISH: Notion.JOINT_SLICED_PUFFERFISH,
}


def sliced_approximate(certificate: "Certificate", delta: float) -> "Certificate":
    """Return the (epsilon, delta) promise about slices that follows from a Rényi one.

    Parameters
    ----------
    certificate : Certificate
        A promise.
    delta : float
        In (0, 1).

    Returns
    -------
    Certificate

    Raises
    ------
    UncertifiedError
        If it holds no curve of slices.
    ValueError
        If it is in another notion.
    """
    notion = _APPROXIMATE.get(certificate.notion)
    if notion is None:
        raise ValueError(
            Statement("sliced.not_renyi_promise", title=certificate.notion.title)
        )
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
    """Return what is promised of whatever is computed from a release.

    Parameters
    ----------
    certificate : Certificate
        A promise.

    Returns
    -------
    Certificate

    Raises
    ------
    UncertifiedError
        If nothing is known of the whole output.
    """
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
