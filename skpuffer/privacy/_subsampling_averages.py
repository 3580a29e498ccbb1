"""Composition of promises that are averages over subsamples, with their own kind."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import CompositionError, Statement

from ._notions import Notion

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["SUBSAMPLING_AVERAGES", "sum_of_averages"]

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
