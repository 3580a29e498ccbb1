"""Least divergence of two mixtures whose members are Gaussian to one another.

Cutting planes find how to split the masses of the members into pairs. Whatever split
they find bounds the divergence, so nothing rests on the solver.
"""

import math

import numpy as np
from scipy.special import ndtr

from skpuffer.utils._types import Floats, Indices

from ._cutting_planes import Cuts, deeper, programme
from ._splits import Split, largest_scale, worth

__all__ = ["PairSplitting"]

#: The search stops where the bound is this near to what some test attains.
GAP = 2e-3

# Rounds of cutting planes; few take twenty, and each bounds.
_ROUNDS = 40

# Quantiles beyond which normal masses are no floats.
_FARTHEST = 37.0

# Quantiles to start from; masses of normals beyond them are none.
_LEVELS = np.append(-np.geomspace(9.0, 0.05, 32), [0.0, 1.0, 2.0])

# How far quantiles may move in a round: at first, where a test is known, and at most.
_FIRST_BOX, _NEXT_BOX, _LAST_BOX = 1.0, 0.25, 4.0

# Masses too small to be split: all of a positive one is counted, none of a negative.
_NOTHING = 1e-17

# Divergences of normals are known to so much.
_EXACT = 1e-13

# Nearest partners of a member that the first round knows of.
_NEAREST = 3


class PairSplitting:
    """Bounds on ``sum_a plus_a p_a - sum_b minus_b p_b`` over all tests of a mechanism.

    A test rejects with probability p at each member, and the trade-off of two members
    is that of unit normals `mu` apart. Splitting the masses into pairs, x_ab of a with
    y_ab of b, the difference is no more than the sum over pairs of ``x h(y / x)``, with
    h the hockey-stick divergence of these normals, as no pair's own is. Cutting planes
    find splits and tests, until their values meet; the least bound is all that follows
    from trade-offs of pairs.

    Splits and tests are kept from call to call: masses and distances that change little
    then ask for little.

    Parameters
    ----------
    metric : ndarray of shape (n_members, n_members)
        Distances of a member's positive and a member's negative part in units of a
        scale; a metric but for its diagonal.

    Notes
    -----
    The linear programme is over tests, ``p_a <= h(g) + g p_b`` at tangents of slope g
    for some pairs, in a box about the best test known. Its dual weights w make the
    split ``x = w, y = g w``, whose sums are then made those of the masses, exactly.
    """

    def __init__(self, metric: Floats) -> None:
        self._metric = metric
        # quantiles of the best test known; infinite where there is none
        self._levels = np.full(len(metric), math.inf)
        self._box = _FIRST_BOX
        none = np.zeros(0, int)
        self._cuts: Cuts = (none, none, np.zeros(0))

    def bound(
        self,
        plus: Floats,
        minus: Floats,
        scale: float,
        *,
        near: float | None = None,
        enough: float = 0.0,
        rounds: int = _ROUNDS,
    ) -> float:
        """Return the bound at a scale, up to rounding.

        Parameters
        ----------
        plus, minus : ndarray of shape (n_members,)
            Masses, not negative, of which the latter have the larger sum.
        scale : float
            Positive.
        near : float, default=None
            What the bound is compared with: the further it is from this, the less near
            it needs to be to the least one.
        enough : float, default=0.0
            A bound below which it does not matter how low it is.
        rounds : int, default=40
            Most linear programmes to solve.

        Returns
        -------
        float
        """
        return self._search(plus, minus, scale, near, None, enough, rounds)[1]

    def largest_scale(
        self,
        plus: Floats,
        minus: Floats,
        target: float,
        most: float,
        *,
        rounds: int = _ROUNDS,
    ) -> float:
        """Return nearly the largest scale in (0, most] at which a bound is a target.

        Parameters
        ----------
        plus, minus : ndarray of shape (n_members,)
            As for :meth:`bound`.
        target : float
            Positive.
        most : float
            Positive.
        rounds : int, default=40
            Most linear programmes to solve.

        Returns
        -------
        float
        """
        return self._search(plus, minus, 0.0, target, most, 0.0, rounds)[0]

    def _search(
        self,
        plus: Floats,
        minus: Floats,
        scale: float,
        near: float | None,
        most: float | None,
        enough: float,
        rounds: int,
    ) -> tuple[float, float]:
        """Return scale and bound; the scale is raised, where `most` is given."""
        rows, columns = (np.flatnonzero(mass > _NOTHING) for mass in (plus, minus))
        up, down = plus[rows], minus[columns]
        over = float(plus[plus <= _NOTHING].sum())
        if len(rows) == 0:
            return most or scale, over
        if len(columns) == 0:
            return scale, float(plus.sum())
        metric = self._metric[np.ix_(rows, columns)]

        def raised(split: Split, scale: float) -> float:
            if most is None or near is None or scale == most:
                return scale
            return largest_scale(split, metric, near, scale, most)

        # every mass split in proportion to all others
        split = np.outer(up, down / down.sum()), np.outer(up / up.sum(), down)
        scale = raised(split, scale)
        best = worth(split, scale * metric)
        low, high, least = self._start(up, down, scale * metric, columns)
        cuts, box = self._kept(rows, columns, low, high, scale * metric), self._box
        binding = np.zeros(0, bool)
        for _ in range(rounds):
            # away from what it is compared with a bound need not be near the least one
            away = 0.0 if near is None else max(least - near, near - best) / 4
            if (
                best - least <= max(GAP * best, away)
                or best <= max(enough, _EXACT)
                or scale == most
            ):
                break
            mu = scale * metric
            solved = programme(up, down, mu, cuts, low, high, box)
            if solved is None:
                break
            found, p_high, p_low, binding = solved
            best = min(best, worth(found, mu))
            test = _feasible(p_low, mu)
            cuts = deeper(cuts, mu, p_high, (p_low, test[0]))
            higher = raised(found, scale)
            if higher > scale:
                scale = higher
                best = worth(found, scale * metric)
                low, high = _feasible(low, scale * metric)
                least = _difference(up, down, low, high)
                test = _feasible(p_low, scale * metric)
            value = _difference(up, down, *test)
            if value > least:
                least, (low, high) = value, test
                box = min(_LAST_BOX, 2 * box)
            else:
                box /= 2
        self._levels[:] = math.inf
        self._levels[columns] = low
        self._box = _NEXT_BOX
        a, b, at = cuts
        kept = np.flatnonzero(binding)
        self._cuts = rows[a[kept]], columns[b[kept]], at[kept]
        return scale, best + over

    def _start(
        self, up: Floats, down: Floats, mu: Floats, columns: Indices
    ) -> tuple[Floats, Floats, float]:
        """Return the best of some tests, as quantiles, and its value."""
        tried = [self._levels[columns]] if np.any(self._levels < math.inf) else []
        # one quantile for all, that as many as pairs differ by is then added to
        tried += [np.full(len(down), level) for level in _LEVELS]
        tests = [_feasible(levels, mu) for levels in tried if levels.min() < math.inf]
        values = [_difference(up, down, *test) for test in tests]
        first = int(np.argmax(values))
        return *tests[first], values[first]

    def _kept(
        self, rows: Indices, columns: Indices, low: Floats, high: Floats, mu: Floats
    ) -> Cuts:
        """Return the last cuts of members that still count, and those of near pairs."""
        place = np.full((2, len(self._levels)), -1)
        place[0, rows], place[1, columns] = (
            np.arange(len(rows)),
            np.arange(len(columns)),
        )
        a, b = place[0, self._cuts[0]], place[1, self._cuts[1]]
        still = (a >= 0) & (b >= 0)
        near_b = np.argsort(mu - high[:, None] + low, axis=1)[:, :_NEAREST]
        near_a = np.argsort(mu - high[:, None] + low, axis=0)[:_NEAREST].T
        more_a = np.concatenate(
            [np.repeat(np.arange(len(rows)), near_b.shape[1]), near_a.ravel()]
        )
        more_b = np.concatenate(
            [near_b.ravel(), np.repeat(np.arange(len(columns)), near_a.shape[1])]
        )
        return (
            np.concatenate([a[still], more_a]),
            np.concatenate([b[still], more_b]),
            np.concatenate([self._cuts[2][still], low[more_b]]),
        )


def _difference(up: Floats, down: Floats, low: Floats, high: Floats) -> float:
    return float(up @ ndtr(high) - down @ ndtr(low))


def _feasible(levels: Floats, mu: Floats) -> tuple[Floats, Floats]:
    """Quantiles of a test that the trade-offs allow, low and high."""
    high = np.minimum((levels + mu).min(axis=1), _FARTHEST)
    # a metric: those of the same side keep within their distances as well
    low = np.maximum((high[:, None] - mu).max(axis=0), -_FARTHEST)
    return low, high
