"""Markov quilts of a sequence: one record on each side, or on one side only."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.utils._types import Floats, Indices

from ._base import QuiltChoice, Quilts
from ._influences import measure_of

__all__ = ["SideQuilts"]

#: Full searches in one call, after which the bound at hand is returned.
_MAX_SEARCHES = 200

#: Relative difference of prices that is not worth a search.
_SAME = 1e-12

#: Lags that are searched to begin with.
_FIRST_LAG = 256


class SideQuilts(Quilts):
    """Quilts {i - a, i + b}, {i - a}, {i + b} of a sequence, and the trivial one.

    Near are the records strictly between, and all beyond an end without a quilt. Both
    the influence and the number of near records are monotone in a and b, which makes
    the search fast: a branch-and-bound over blocks of (a, b) for one record, and
    records only as long as no quilt known is good enough for them.

    Parameters
    ----------
    n_records : int
    protected : ndarray of int or None
        Positions of the protected records; None is all.
    """

    def __init__(self, n_records: int, protected: ArrayLike | None = None) -> None:
        self.n_records = n_records
        self._protected = np.ones(n_records, dtype=bool)
        if protected is not None:
            self._protected[:] = False
            self._protected[np.asarray(protected, dtype=int)] = True
        self._known = {}  # quilts that were the best of some record

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    @property
    def smallest(self) -> float:
        """Size of the smallest near set: the protected record."""
        return 1.0

    @property
    def largest(self) -> float:
        """Size of the largest near set: all records."""
        return float(self.n_records)

    # -- what a chain supplies -------------------------------------------------------

    def _measure(self, order):
        """Measure of influence for an order."""
        return measure_of(order)

    @abstractmethod
    def _compared(self):
        """Bool array of shape (n, k, k): the pairs of secrets of each record."""

    @abstractmethod
    def _after(self, measure, max_lag):
        """Tables of the record b later, for all lags b = 1, ..., max_lag at least."""

    @abstractmethod
    def _before(self, measure, i, max_lag):
        """Tables of the record a earlier than i, for lags a = 1, ..., max_lag."""

    @abstractmethod
    def _before_each(self, measure, a):
        """Tables of the record a earlier, for i = a, a + 1, ... until all are alike."""

    @abstractmethod
    def _error(self, measure, i, steps):
        """Bound of the numerical error, added to influences."""

    def _concerned(self):
        """Mask of the protected records that have two values to keep apart."""
        some = self._compared().any(axis=(1, 2))
        # tables are listed until they settle; the last holds for all that follow
        at = np.minimum(np.arange(self.n_records), len(some) - 1)
        return self._protected & some[at]

    # -- one quilt, all records ------------------------------------------------------

    def _of_quilt(self, measure, a, b):
        """Max-influence of each record on the quilt at lags (a, b); inf if none."""
        return MEMORY.found(
            (self,), ("of", measure, a, b), lambda: self._find(measure, a, b)
        )

    def _find(self, measure, a, b):
        """Max-influences of the quilt at lags (a, b), computed."""
        n = self.n_records
        found = np.full(n, math.inf)
        # records that have one a before them and one b after
        start = 0 if a is None else a
        stop = n if b is None else n - b
        if start >= stop:
            return found
        if a is None:
            one = measure.one(self._after(measure, b)[b - 1])[None]
        else:
            before = self._before_each(measure, a)
            if b is None:
                one = measure.one(before)
            else:
                # given the record the two sides of a chain are independent
                one = measure.joint(before, self._after(measure, b)[b - 1][None])
        at = np.arange(start, stop)
        compared = self._compared()
        # beyond both of these nothing changes any more from record to record
        distinct = min(len(at), max(len(one), len(compared) - start))
        one = one[np.minimum(np.arange(distinct), len(one) - 1)]
        mask = compared[np.minimum(start + np.arange(distinct), len(compared) - 1)]
        value = np.where(mask, one, -math.inf).max(axis=(1, 2))
        value = value[np.minimum(np.arange(len(at)), distinct - 1)]
        found[at] = value + self._error(measure, at, max(a or 0, b or 0))
        return found

    def influence(
        self, index: int, a: int | None, b: int | None, order: float | str = math.inf
    ) -> float:
        """Return the max-influence of one record on the quilt at lags (a, b).

        Parameters
        ----------
        index : int
            Position of the record, from zero.
        a, b : int or None
            Distance of the earlier and the later record of the quilt.
        order : float or 'total_variation', default=inf

        Returns
        -------
        float
            Infinite if there is no such quilt.
        """
        if a is None and b is None:
            return 0.0
        return float(self._of_quilt(self._measure(order), a, b)[index])

    def size(self, index: Any, a: Any, b: Any) -> Any:
        """Return the number of near records, the protected one among them."""
        if a is None and b is None:
            return self.n_records
        # one side only: all records on the other are near
        if a is None:
            return index + b
        if b is None:
            return self.n_records - 1 - index + a
        return a + b - 1 + 0 * index

    # -- one record, all quilts ------------------------------------------------------

    def _search(self, measure, cost, i, limit, ceiling):
        """Cheapest quilt of one record: (price, a, b)."""
        n = self.n_records
        most_a, most_b = min(i, limit), min(n - 1 - i, limit)
        # lags up to `lag` are searched, and more only while they may pay
        far = max(most_a, most_b)
        lag = min(_FIRST_LAG, far)
        compared = self._compared()
        mask = compared[min(i, len(compared) - 1)]
        while True:
            # the trivial quilt, then those of one side, then those of both
            best = (float(cost(np.array([n]))[0]), None, None)
            tables = {}
            if most_a:
                tables["a"] = self._before(measure, i, min(most_a, lag))
            if most_b:
                tables["b"] = self._after(measure, lag)[: min(most_b, lag)]
            for side, table in tables.items():
                steps = np.arange(1, len(table) + 1)
                pairs = np.where(mask, measure.one(table), -math.inf)
                influence = pairs.max(axis=(1, 2)) + self._error(measure, i, steps)
                sizes = self.size(i, *((steps, None) if side == "a" else (None, steps)))
                prices = influence + cost(sizes)
                at = int(np.argmin(prices))
                if prices[at] < best[0]:
                    pair = (at + 1, None) if side == "a" else (None, at + 1)
                    best = (float(prices[at]), *pair)
            if len(tables) == 2:
                sides = tables["a"], tables["b"]
                best = self._descend(measure, cost, i, mask, sides, best, ceiling)
            # quilts further away have more near records than are worth their cost
            if lag >= far or cost(np.array([lag + 1]))[0] >= min(best[0], ceiling):
                return best
            lag = min(4 * lag, far)

    def _descend(self, measure, cost, i, mask, sides, best, ceiling):
        """Branch and bound over blocks of two-sided quilts."""
        before, after = sides
        n_a, n_b = len(before), len(after)
        # blocks of h by h lags, whose corner quilts are (a0 + 1, b0 + 1) and (a1, b1)
        h = 1 << (max(n_a, n_b) - 1).bit_length()
        a0 = b0 = np.zeros(1, dtype=int)
        while len(a0):
            # bounds of a block: the furthest quilt has the least influence, the nearest
            # the least cost
            a1, b1 = np.minimum(a0 + h, n_a), np.minimum(b0 + h, n_b)
            influence = measure.joint(before[a1 - 1], after[b1 - 1])
            influence = np.where(mask, influence, -math.inf).max(axis=(1, 2))
            sizes = self.size(i, a1, b1)
            error = self._error(measure, i, np.maximum(a1, b1))
            prices = influence + error + cost(sizes)
            at = int(np.argmin(prices))
            if prices[at] < best[0]:
                best = (float(prices[at]), int(a1[at]), int(b1[at]))
            if h == 1:
                break
            # a lower bound of every price in the block: least influence and least cost
            error = self._error(measure, i, np.maximum(a0, b0) + 1)
            least = influence + error + cost(self.size(i, a0 + 1, b0 + 1))
            on = least < min(best[0] * (1 - _SAME), ceiling)
            # the four quarters of the blocks that may still hold a cheaper quilt
            h //= 2
            a0 = np.concatenate([a0[on], a0[on] + h, a0[on], a0[on] + h])
            b0 = np.concatenate([b0[on], b0[on], b0[on] + h, b0[on] + h])
            inside = (a0 < n_a) & (b0 < n_b)
            a0, b0 = a0[inside], b0[inside]
        return best

    # -- the worst record ------------------------------------------------------------

    def worst(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        max_distance: int | None = None,
        ceiling: float = math.inf,
    ) -> QuiltChoice:
        """Largest price over the records; see :class:`Quilts`.

        The price of a record is bounded by the quilts found for others; only one that
        is above what some record is known to need is searched itself. Whatever is left
        out of a search can only raise the price.
        """
        measure = self._measure(order)
        n = self.n_records
        cost = _Remembered(cost, n)
        limit = n if max_distance is None else max_distance
        index = np.arange(n)
        # the trivial quilt bounds the price of every record
        whole = float(cost(np.array([n]))[0])
        concerned = self._concerned()
        prices = np.where(concerned, whole, -math.inf)
        chosen = np.full(n, -1)
        known = list(self._known.get((measure, limit), ()))

        def try_quilt(number):
            a, b = known[number]
            influence = self._of_quilt(measure, a, b)
            sizes = np.broadcast_to(self.size(index, a, b), (n,))
            on = np.flatnonzero(influence < prices)
            price = influence[on] + cost(sizes[on])
            better = price < prices[on]
            prices[on[better]] = price[better]
            chosen[on[better]] = number

        # `prices` bounds every record's price from above, by the quilts known so far;
        # `needed` is the largest price that a search found some record to need
        for number in range(len(known)):
            try_quilt(number)
        needed = -math.inf
        # begin in the middle, whose quilt is good for most others
        middle = np.flatnonzero(concerned)
        at = int(middle[len(middle) // 2])
        for _ in range(_MAX_SEARCHES):
            if prices[at] > needed * (1 + _SAME):
                price, a, b = self._search(measure, cost, at, limit, ceiling)
                needed = max(needed, min(price, float(prices[at])))
                if price < prices[at] * (1 - _SAME) and (a, b) not in known:
                    known.append((a, b))
                    try_quilt(len(known) - 1)
            # done once no record may need more than one is known to need
            at = int(np.argmax(prices))
            if prices[at] <= needed * (1 + _SAME) or needed > ceiling:
                break
        self._known[measure, limit] = known
        a, b = (None, None) if chosen[at] < 0 else known[chosen[at]]
        quilt = [] if a is None else [at - a]
        quilt += [] if b is None else [at + b]
        return QuiltChoice(
            float(prices[at]),
            float(self.size(at, a, b)),
            0.0 if not quilt else float(self._of_quilt(measure, a, b)[at]),
            at,
            tuple(quilt),
        )


class _Remembered:
    """Cache of a cost over whole sizes up to n."""

    def __init__(self, cost: Callable[[Floats], Floats], n: int):
        self._cost = cost
        self._known = np.full(n + 1, math.nan)

    def __call__(self, sizes: Indices) -> Floats:
        new = np.isnan(self._known[sizes])
        if new.any():
            asked = np.unique(np.asarray(sizes)[new])
            self._known[asked] = self._cost(asked.astype(float))
        return self._known[sizes]
