"""Book of one ceiling: whether another release fits, without adding up all of them.

Costs grow with every release. So what is known to fit is any part of what was once
found to fit, and two cheap answers come before the exact one:

1. releases that are a part of a multiset which was composed and found to fit fit, and
   such a multiset is looked for well ahead of what was released;
2. where all Rényi costs together stay below the ceiling, so does the exact total.

Both accept less than the composition of all certificates does, and what neither of
them accepts is composed.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    NotComposableError,
    UncertifiedError,
)
from skpuffer.privacy import Certificate
from skpuffer.privacy_loss import PrivacyLossCurve, renyi_to_approximate
from skpuffer.privacy_loss.overlap import OverlapCurve, WorstOverlapCurve
from skpuffer.utils._types import Floats

from ._ceilings import Ceiling

__all__ = ["Book", "Kinds"]

#: Orders of the cheap bound: denser towards one, where a long sum is least.
_ORDERS = (*(1 + 2.0 ** np.arange(-6, 12.5, 0.5)).tolist(), math.inf)

#: Certificates of the releases in a ledger, by number; equal ones have one.
Kinds = Mapping[int, Certificate]


class Book:
    """The releases whose certificates promise the notion of a ceiling.

    Parameters
    ----------
    ceiling : Ceiling
    kinds : mapping of int to Certificate
        Those of the ledger; grows with it.
    """

    def __init__(self, ceiling: Ceiling, kinds: Kinds):
        self.ceiling, self._kinds = ceiling, kinds
        # what is known of each kind by itself
        self._reasons: dict[int, str | None] = {}
        self._costs: dict[int, Floats | None] = {}
        # by table: a multiset that fits, and one that does not
        self._fits: dict[str | None, Counter[int]] = {}
        self._too_much: dict[str | None, Counter[int]] = {}

    def why_not(self, kind: int) -> str | None:
        """Return why releases of a kind are not in the book, or None if they are."""
        if kind not in self._reasons:
            reason = None
            try:
                self.ceiling.total([self._kinds[kind]], [1])
            except (CompositionError, UncertifiedError, ValueError) as error:
                reason = str(error)
            self._reasons[kind] = reason
        return self._reasons[kind]

    def total(self, counts: Mapping[int, int]) -> Certificate | None:
        """Return what those of some releases that are in the book promise together.

        Parameters
        ----------
        counts : mapping of int to int
            How many there are of each kind.

        Returns
        -------
        Certificate or None
            None if there are none.

        Raises
        ------
        CompositionError, UncertifiedError, ValueError
            If they do not add up.
        """
        own = [kind for kind in counts if counts[kind] and self.why_not(kind) is None]
        if not own:
            return None
        certificates = [self._kinds[kind] for kind in own]
        return self.ceiling.total(certificates, [counts[kind] for kind in own])

    def check(self, table: str | None, counts: Counter[int], kind: int) -> None:
        """Refuse the last of some releases if all of them are above the ceiling.

        Parameters
        ----------
        table : str or None
            That they are about.
        counts : Counter
            How many there are of each kind, that one included.
        kind : int
            Of the last.

        Raises
        ------
        BudgetExceededError
            If they are.
        NotComposableError
            If they do not add up.
        """
        if self.why_not(kind) is not None:
            return
        own = Counter({k: n for k, n in counts.items() if self.why_not(k) is None})
        if own <= self._fits.get(table, Counter()):
            return
        if self._costs_fit(own):
            return
        total = self._composed(own)
        if self.ceiling.exceeded_by(total):
            self._too_much[table] = own
            raise BudgetExceededError(self._exceeded(table, own, kind, total))
        self._fits[table] = self._ahead(table, own, kind)

    def _composed(self, counts: Counter[int]) -> Certificate:
        try:
            total = self.total(counts)
        except (CompositionError, UncertifiedError, ValueError) as error:
            raise NotComposableError(
                f"The ledger refuses this release, which does not add up with the "
                f"{sum(counts.values()) - 1} before it. {error}"
            ) from None
        assert total is not None  # the last is in the book
        return total

    def _ahead(
        self, table: str | None, counts: Counter[int], kind: int
    ) -> Counter[int]:
        """As many more of one kind as fit, up to the number of all there are."""
        too_much = self._too_much.get(table)
        more = sum(counts.values())
        while more:
            tried = counts + Counter({kind: more})
            # what holds more than what does not fit does not fit
            if too_much is None or not too_much <= tried:
                if not self.ceiling.exceeded_by(self._composed(tried)):
                    return tried
                too_much = self._too_much[table] = tried
            more //= 2
        return counts

    def _costs_fit(self, counts: Counter[int]) -> bool:
        """Whether Rényi costs together prove that releases fit."""
        kinds = list(counts)
        if len({self._place(self._kinds[kind]) for kind in kinds}) > 1:
            return False
        costs = [self._cost(kind) for kind in kinds]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return False
        # costs of independent or adaptive mechanisms add, order by order
        times = np.array([counts[kind] for kind in kinds], dtype=float)
        total = times @ np.array(known)
        at = self.ceiling.at
        if "alpha" in at:
            # that of an order is at most that of the next one held
            held = np.searchsorted(_ORDERS, at["alpha"])
            return bool(held < len(_ORDERS) and total[held] <= self.ceiling.most)
        events = [self._kinds[kind].event_delta for kind in kinds]
        left = at["delta"] - float(times @ np.array(events))
        if left <= 0:
            return False
        return renyi_to_approximate(_ORDERS, total, left) <= self.ceiling.most

    def _cost(self, kind: int) -> Floats | None:
        """Rényi cost of one release at each order, where costs add up by themselves."""
        if kind not in self._costs:
            self._costs[kind] = _costs_of(self._kinds[kind], self.ceiling)
        return self._costs[kind]

    @staticmethod
    def _place(c: Certificate) -> tuple[Any, ...]:
        """What has to be the same of releases that add up without further ado."""
        of_table = None if c.table is None else (c.table, c.n_records, c.columns)
        return c.coupling_id, c.relation, of_table, c.notion.differential

    def _exceeded(
        self, table: str | None, counts: Counter[int], kind: int, total: Certificate
    ) -> str:
        before = counts - Counter({kind: 1})
        spent = self.ceiling.spent(self.total(before))
        about = "" if table is None else f" about the table {table!r}"
        return (
            f"The ledger refuses this release ({self._kinds[kind]!r}): with it the "
            f"{sum(counts.values())} releases{about} would come to "
            f"{self.ceiling.spent(total):.6g}, and the ceiling is {self.ceiling}; "
            f"{spent:.6g} is spent. Release less, ask for a smaller budget, or raise "
            "the ceiling by set_limits()."
        )


def _costs_of(c: Certificate, ceiling: Ceiling) -> Floats | None:
    plain = (
        c.composable
        and c.coupling_id is not None
        and c.curve is not None
        and c.notion.approximate is not None
        and not isinstance(c.curve, OverlapCurve | WorstOverlapCurve)
        and bool(ceiling.at)
    )
    if not plain:
        return None
    assert c.curve is not None  # one of the conditions above
    if isinstance(c.curve, PrivacyLossCurve):
        return np.array(c.curve.renyi_costs(_ORDERS))
    return np.array([float(c.curve.renyi(alpha)) for alpha in _ORDERS])
