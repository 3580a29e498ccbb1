"""Markov quilts of a sequence: one record on each side, or on one side only."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.kernel.numbers import Booleans, Floats, Indices

from ._base import Influence, QuiltChoice, Quilts, measure_of

#: Full searches in one call, after which the bound at hand is returned.
_MAX_SEARCHES = 200

#: Relative difference of prices that is not worth a search.
_SAME = 1e-12

#: Lags that are searched to begin with.
_FIRST_LAG = 256

#: Lags up to which records near an end are told apart to begin with.
_FIRST_END = 64

#: Lags of a quilt, before the record and after it; None on a side without one.
_Lags = tuple[int | None, int | None]

#: In place of a lag: the earlier record is the first of all, however far away.
_FIRST = 0


class SideQuilts(Quilts):
    """Quilts {i - a, i + b}, {i - a}, {i + b} of a sequence, and the trivial one.

    Near are the records strictly between, and all beyond an end without a quilt. Both
    the influence and the number of near records are monotone in a and b, which makes
    the branch-and-bound search fast. Records whose laws have settled are alike.

    Parameters
    ----------
    protected : ndarray of int or None
        Positions of the protected records; None is all.
    """

    def __init__(self, n_records: int, protected: ArrayLike | None = None) -> None:
        self.n_records = n_records
        self._protected = np.ones(n_records, dtype=bool)
        if protected is not None:
            self._protected[:] = False
            self._protected[np.asarray(protected, dtype=int)] = True
        # quilts that were the best of some record
        self._known: dict[tuple[Influence, int], list[_Lags]] = {}
        # positions of the records that have something to hide
        self._secret: Indices | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}, "_secret": None}

    @property
    def smallest(self) -> float:
        """Size of the smallest near set: the protected record."""
        return 1.0

    @property
    def largest(self) -> float:
        """Size of the largest near set: all records."""
        return float(self.n_records)

    # -- what a chain supplies -------------------------------------------------------

    def _measure(self, order: float | str) -> Influence:
        """Measure of influence for an order."""
        return measure_of(order)

    @abstractmethod
    def _compared(self) -> Booleans:
        """Bool array of shape (n, k, k): the pairs of secrets of each record."""

    @abstractmethod
    def _after(self, measure: Influence, max_lag: int) -> Floats:
        """Tables of the record b later, for all lags b = 1, ..., max_lag at least."""

    @abstractmethod
    def _before(self, measure: Influence, i: int, max_lag: int) -> Floats:
        """Tables of the record a earlier than i, for lags a = 1, ..., max_lag."""

    @abstractmethod
    def _before_each(self, measure: Influence, a: int) -> Floats:
        """Tables of the record a earlier, for i = a, a + 1, ... until all are alike."""

    def _first(self, measure: Influence) -> Floats | None:
        """Tables of the first record, for i = 1, 2, ... as far as they are of use.

        A record of known value tells nothing of others, so that next to it each record
        has a quilt of its own: this one. None where the first record is like any other.
        """
        return None

    def _shares_first(self, measure: Influence, i: int) -> bool:
        """Whether tables of the first record are at hand for record `i`."""
        tables = self._first(measure)
        return tables is not None and i <= len(tables)

    @abstractmethod
    def _error(
        self, measure: Influence, i: int | Indices, steps: int | Indices
    ) -> float | Floats:
        """Bound of the numerical error, added to influences."""

    @property
    @abstractmethod
    def _settled(self) -> int:
        """Number of records after which all are alike: their laws, pairs and errors."""

    def _protected_records(self) -> Indices | None:
        """Positions of the protected records, or None if all are."""
        return None if self._protected.all() else np.flatnonzero(self._protected)

    def _concerned(self) -> Indices:
        """Positions of the protected records that have two values to keep apart."""
        if self._secret is None:
            some = np.asarray(self._compared().any(axis=(1, 2)))
            secret = self._protected.copy()
            # tables are listed until they settle; the last holds for all that follow
            secret[: len(some)] &= some[: self.n_records]
            secret[len(some) :] &= some[-1]
            self._secret = np.flatnonzero(secret)
        return self._secret

    # -- one quilt, all records ------------------------------------------------------

    def _of_quilt(
        self, measure: Influence, a: int | None, b: int | None
    ) -> _InfluenceOfEach:
        """Max-influences of the records on the quilt at lags (a, b)."""
        return MEMORY.found(
            (self,), ("of", measure, a, b), lambda: self._find(measure, a, b)
        )

    def _find(
        self, measure: Influence, a: int | None, b: int | None
    ) -> _InfluenceOfEach:
        """Max-influences of the quilt at lags (a, b), computed."""
        # records that have one a before them and one b after
        start = 0 if a is None else 1 if a == _FIRST else a
        stop = self.n_records if b is None else self.n_records - b
        before: Floats | None = None
        if a == _FIRST:
            before = self._first(measure)
            assert before is not None  # records share a first one where it has tables
            stop = min(stop, start + len(before))
        if start >= stop:
            return _InfluenceOfEach(start, start, np.array([math.inf]))
        if a is None:
            assert b is not None  # the trivial quilt has no influence
            one = measure.one(self._after(measure, b)[b - 1])[None]
        else:
            if before is None:
                before = self._before_each(measure, a)
            if b is None:
                one = measure.one(before)
            else:
                # given the record the two sides of a chain are independent
                one = measure.joint(before, self._after(measure, b)[b - 1][None])
        compared = self._compared()
        # beyond all of these nothing changes any more from record to record
        most = max(len(one), len(compared) - start, self._settled + 1 - start)
        distinct = np.arange(min(stop - start, most))
        one = one[np.minimum(distinct, len(one) - 1)]
        mask = compared[np.minimum(start + distinct, len(compared) - 1)]
        value = np.where(mask, one, -math.inf).max(axis=(1, 2))
        steps = np.maximum(start + distinct if a == _FIRST else a or 0, b or 0)
        value = value + self._error(measure, start + distinct, steps)
        return _InfluenceOfEach(start, stop, value)

    def influence(
        self, index: int, a: int | None, b: int | None, order: float | str = math.inf
    ) -> float:
        """Return the max-influence of a record on the quilt at lags (a, b), or inf."""
        if a is None and b is None:
            return 0.0
        return float(self._of_quilt(self._measure(order), a, b).at(index))

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

    def _search(
        self, measure: Influence, cost: _Remembered, i: int, limit: int, ceiling: float
    ) -> tuple[float, int | None, int | None]:
        """Cheapest quilt of one record: (price, a, b)."""
        n = self.n_records
        best: tuple[float, int | None, int | None]
        pair: _Lags
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
            # quilts further away have more near records than are worth their cost, or
            # an influence that is known no better
            beyond = self._error(measure, i, lag + 1) + cost(np.array([lag + 1]))[0]
            if lag >= far or beyond >= min(best[0] * (1 - _SAME), ceiling):
                return best
            lag = min(4 * lag, far)

    def _descend(
        self,
        measure: Influence,
        cost: _Remembered,
        i: int,
        mask: Booleans,
        sides: tuple[Floats, Floats],
        best: tuple[float, int | None, int | None],
        ceiling: float,
    ) -> tuple[float, int | None, int | None]:
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
        is above what some record is known to need is searched itself. Omissions from a
        search can only raise the price.
        """
        measure = self._measure(order)
        n = self.n_records
        remembered = _Remembered(cost, n)
        limit = n if max_distance is None else max_distance
        known = list(self._known.get((measure, limit), ()))
        # bounds of every record's price from above, by the quilts known so far
        prices = _Prices(self, measure, remembered, known)
        # the largest price that a search found some record to need
        needed = -math.inf
        # begin in the middle, whose quilt is good for most others
        secret = self._concerned()
        at = int(secret[len(secret) // 2])
        price, number = prices.of(at)
        for _ in range(_MAX_SEARCHES):
            if price > needed * (1 + _SAME):
                found, a, b = self._search(measure, remembered, at, limit, ceiling)
                needed = max(needed, min(found, price))
                # one that the records nearby have as well, if they may be so far away
                if a == at and max_distance is None and self._shares_first(measure, at):
                    a = _FIRST
                if found < price * (1 - _SAME) and (a, b) not in prices.known:
                    prices.add(a, b)
            # done once no record may need more than one is known to need
            at, price, number = prices.largest()
            if price <= needed * (1 + _SAME) or needed > ceiling:
                break
        self._known[measure, limit] = prices.known
        a, b = (None, None) if number is None else prices.known[number]
        influence = 0.0
        if number is not None:
            influence = float(self._of_quilt(measure, a, b).at(at))
        a = at if a == _FIRST else a
        quilt = [] if a is None else [at - a]
        quilt += [] if b is None else [at + b]
        return QuiltChoice(
            price, float(self.size(at, a, b)), influence, at, tuple(quilt)
        )


class _InfluenceOfEach(NamedTuple):
    """Max-influence of each record on a quilt, which all from `start` to `stop` have.

    The last of the values, which begin with that of the record `start`, holds for all
    that follow.
    """

    start: int
    stop: int
    values: Floats

    def at(self, index: Any) -> Any:
        """Max-influence of records; infinite where there is no such quilt."""
        place = np.clip(index - self.start, 0, len(self.values) - 1)
        inside = (index >= self.start) & (index < self.stop)
        return np.where(inside, self.values[place], math.inf)


class _Prices:
    """Bounds of the prices of a sequence's records by the quilts known."""

    def __init__(
        self,
        quilts: SideQuilts,
        measure: Influence,
        cost: _Remembered,
        known: list[_Lags],
    ) -> None:
        self.quilts, self.measure, self.cost = quilts, measure, cost
        self.known = known
        self.secret = quilts._concerned()
        # the trivial quilt bounds the price of every record
        self.whole = float(cost(np.array([quilts.n_records]))[0])
        self._list_ends(_FIRST_END)

    def _list_ends(self, reach: int) -> None:
        """List the records that quilts with lags up to `reach` tell from others."""
        n, secret = self.quilts.n_records, self.secret
        self.reach = max([reach, *(lag or 0 for pair in self.known for lag in pair)])
        self.first = int(np.searchsorted(secret, self.quilts._settled + self.reach))
        self.last = int(np.searchsorted(secret, n - self.reach))
        self.last = max(self.first, self.last)
        self.ends = np.concatenate([secret[: self.first], secret[self.last :]])
        # bounds of those at the ends, and the numbers of the quilts these are of
        self.prices = np.full(len(self.ends), self.whole)
        self.chosen = np.full(len(self.ends), -1)
        # of each quilt the influence of a record between, the part of its size that
        # does not depend on the record, and the part that does: 1, 0 or -1 times its
        # position
        self.between = np.empty((0, 3))
        for number in range(len(self.known)):
            self._meet(number)

    def _meet(self, number: int) -> None:
        """Lower the bounds at the ends by those of one quilt, and take note of it."""
        a, b = self.known[number]
        size, of_quilt = self.quilts.size, self.quilts._of_quilt(self.measure, a, b)
        influence = of_quilt.at(self.ends)
        on = np.flatnonzero(influence < self.prices)
        lag = self.ends if a == _FIRST else a
        sizes = np.broadcast_to(size(self.ends, lag, b), self.ends.shape)[on]
        prices = influence[on] + self.cost(sizes)
        better = prices < self.prices[on]
        self.prices[on[better]] = prices[better]
        self.chosen[on[better]] = number
        start, then = (size(index, index if a == _FIRST else a, b) for index in (0, 1))
        # between the ends the first record is too far away for a quilt of its own
        least = math.inf if a == _FIRST else float(of_quilt.values[-1])
        row = least, start, then - start
        self.between = np.vstack([self.between, row])

    def add(self, a: int | None, b: int | None) -> None:
        """Add the quilt at lags (a, b) to those known."""
        self.known.append((a, b))
        if max(a or 0, b or 0) > self.reach:
            self._list_ends(2 * max(a or 0, b or 0))
        else:
            self._meet(len(self.known) - 1)

    def of(self, index: int) -> tuple[float, int | None]:
        """Bound of one record's price, and the number of its quilt; None if trivial."""
        place = int(np.searchsorted(self.secret, index))
        if self.first <= place < self.last:
            prices = self._prices_between(place)
            number = int(np.argmin(prices)) if len(prices) else 0
            if len(prices) and prices[number] < self.whole:
                return float(prices[number]), number
            return self.whole, None
        if place >= self.last:
            place -= self.last - self.first
        number = int(self.chosen[place])
        return float(self.prices[place]), None if number < 0 else number

    def largest(self) -> tuple[int, float, int | None]:
        """First record with the largest bound, that bound and its quilt's number."""
        candidates = []
        if len(self.ends):
            candidates.append(int(self.ends[np.argmax(self.prices)]))
        if self.first < self.last:
            candidates.append(int(self.secret[self._dearest_between()]))
        found = [(*self.of(index), index) for index in sorted(candidates)]
        price, number, index = max(found, key=lambda one: one[0])
        return index, price, number

    def _prices_between(self, place: int) -> Floats:
        """Price of a record between the ends by each of the quilts known."""
        influence, start, slope = self.between.T
        sizes = (start + slope * self.secret[place]).astype(np.int64)
        return influence + self.cost(sizes)

    def _dearest_between(self) -> int:
        """First place, between the ends, of a record with the largest bound."""
        later = self.between[:, 2] > 0

        def parts(place: int) -> tuple[float, float]:
            # what grows from record to record, and what does not
            prices = self._prices_between(place)
            rest = prices[~later].min(initial=self.whole)
            return float(prices[later].min(initial=math.inf)), float(rest)

        def has_crossed(place: int) -> bool:
            growing, rest = parts(place)
            return growing >= rest

        # usually from the first of them on, as quilts of one side are for the ends
        if has_crossed(self.first):
            return self.first
        between = range(self.first, self.last)
        crossed = self.first + bisect_left(between, True, key=has_crossed)
        # the bound grows before, and falls from there on
        before = parts(crossed - 1)[0]
        if crossed < self.last and parts(crossed)[1] > before:
            return crossed
        between = range(self.first, crossed - 1)
        place = bisect_left(between, before, key=lambda place: parts(place)[0])
        return self.first + place


class _Remembered:
    """Cache of a cost over whole sizes up to n."""

    def __init__(self, cost: Callable[[Floats], Floats], n: int):
        self._cost = cost
        # zeros, of which the system hands out no more than is touched
        self._known = np.zeros(n + 1)
        self._asked = np.zeros(n + 1, dtype=bool)

    def __call__(self, sizes: Indices) -> Floats:
        new = ~self._asked[sizes]
        if new.any():
            # sorted, as a search for equal ones by hashes takes longer
            asked = np.sort(np.asarray(sizes)[new])
            asked = asked[np.diff(asked, prepend=-1) > 0]
            self._known[asked] = self._cost(asked.astype(float))
            self._asked[asked] = True
        return self._known[sizes]
