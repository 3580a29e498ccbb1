"""Least divergence of two mixtures whose members are Gaussian to one another.

Cutting planes split the masses into pairs. Any split bounds the divergence.
"""

import math

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Booleans, Floats, Indices

#: Masses of pairs, of the one member and of the other.
Split = tuple[Floats, Floats]


def worth(split: Split, mu: Floats) -> float:
    """Sum of the divergences of the pairs of a split."""
    x, y = split
    used = x > 0
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.log(y[used] / x[used])
    return float(x[used] @ gaussian_delta(ratio, mu[used]))


def largest_scale(
    split: Split, metric: Floats, target: float, scale: float, most: float
) -> float:
    """Largest scale up to `most` at which a split is worth no more than a target."""
    used = split[0] > 0
    split, metric = (split[0][used], split[1][used]), metric[used]
    if worth(split, scale * metric) > target:
        return scale
    if worth(split, most * metric) <= target:
        return most
    # from what a pair as far apart as any would allow, in decades
    low, high = scale, scale or 1e-6
    while worth(split, high * metric) <= target:
        low, high = high, min(most, 2 * high)
    if low == 0:
        return low
    found: float = brentq(
        lambda s: math.log(max(worth(split, s * metric), 1e-300) / target),
        low,
        high,
        xtol=1e-7 * low,
        rtol=1e-7,
    )
    return max(low, found * (1 - 1e-6))


# Cuts along which the one probability hardly moves with the other are left out.
_FLAT = 1e-6

# Quantiles beyond which steps are shorter.
_FAR = 5.0

#: A pair of members, and the quantile at which it is cut.
Cuts = tuple[Indices, Indices, Floats]


def programme(
    up: Floats,
    down: Floats,
    mu: Floats,
    cuts: Cuts,
    low: Floats,
    high: Floats,
    box: float,
) -> tuple[Split, Floats, Floats, Booleans] | None:
    """Solve the linear programme; return split, quantiles, and which cuts bind."""
    a, b, at = cuts
    n_high = len(high)
    level = np.concatenate([high, low])
    p = ndtr(level)
    # Variables are changes of the best test known, in units of how a probability moves
    # with its quantile: numbers near one, and none of them changed keeps to all cuts.
    unit = np.exp(-(level**2) / 2)
    # far out a quantile means a larger factor
    width = box / np.maximum(1.0, np.abs(level) / _FAR)
    least, most = (ndtr(level - width) - p) / unit, (ndtr(level + width) - p) / unit
    far = at + mu[a, b]
    log_slope = (at**2 - far**2) / 2
    slope = np.exp(log_slope)
    steep = slope * unit[n_high + b] / unit[a]
    room = gaussian_delta(log_slope, mu[a, b]) + slope * p[n_high + b] - p[a]
    room = np.maximum(room / unit[a], 0.0)
    # those that nothing in the box can reach only blur the numbers
    near = room < most[a] - steep * least[n_high + b]
    kept = np.flatnonzero(near & (steep > _FLAT) & (steep < 1 / _FLAT))
    gain = np.concatenate([up, -down]) * unit
    scale = np.abs(gain).max()
    if not (len(kept) and scale > 0 and np.all(np.isfinite(most))):
        return None
    every = np.arange(len(kept))
    table = csr_array(
        (
            np.concatenate([np.ones(len(kept)), -steep[kept]]),
            (
                np.concatenate([every, every]),
                np.concatenate([a[kept], n_high + b[kept]]),
            ),
        ),
        shape=(len(kept), len(level)),
    )
    found = linprog(
        -gain / scale,
        A_ub=table,
        b_ub=room[kept],
        bounds=np.stack([least, most], axis=1),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    weight = np.zeros(len(a))
    weight[kept] = np.maximum(-found.ineqlin.marginals, 0.0)
    split = _split(a, b, weight * scale / unit[a], slope, up, down, mu)
    level = ndtri(np.clip(p + found.x * unit, 1e-300, 1 - 1e-16))
    return split, level[:n_high], level[n_high:], weight > 0


def _split(
    a: Indices,
    b: Indices,
    weight: Floats,
    slope: Floats,
    up: Floats,
    down: Floats,
    mu: Floats,
) -> Split:
    """Return the split that weights of cuts make, with the masses for its sums."""
    x, y = np.zeros(mu.shape), np.zeros(mu.shape)
    np.add.at(x, (a, b), weight)
    np.add.at(y, (a, b), weight * slope)
    # what the solver left out goes to the nearest
    alone = np.flatnonzero(x.sum(axis=1) <= 0)
    x[alone, mu[alone].argmin(axis=1)] = up[alone]
    x *= (up / x.sum(axis=1))[:, None]
    used = y.sum(axis=0)
    y *= np.divide(down, used, out=np.zeros_like(used), where=used > 0)
    return x, y


def deeper(cuts: Cuts, mu: Floats, high: Floats, levels: tuple[Floats, ...]) -> Cuts:
    """Add cuts where a solution exceeds most what the pairs allow."""
    parts = [cuts]
    for at in levels:
        excess = high[:, None] - at - mu
        for axis in (0, 1):
            worst = excess.argmax(axis=axis)
            every = np.arange(len(worst))
            a, b = (worst, every) if axis == 0 else (every, worst)
            over = excess[a, b] > 1e-9
            parts.append((a[over], b[over], at[b[over]]))
    a, b, at = (np.concatenate(part) for part in zip(*parts, strict=True))
    return a, b, at


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
    is that of unit normals `mu` apart. If the masses are split into pairs (x_ab of a
    with y_ab of b), the difference is at most the sum over pairs of ``x h(y / x)``.
    Here h is the hockey-stick divergence of these normals. Cutting planes find splits
    and tests, until their values meet. They are kept from call to call.

    `metric` (n_members, n_members): distances of a member's positive and a member's
    negative part in units of a scale; a metric but for its diagonal.

    Notes
    -----
    The linear programme is over tests in a box about the best known one. It has
    ``p_a <= h(g) + g p_b`` at tangents of slope g for some pairs. Its dual weights w
    make the split ``x = w, y = g w``, whose sums are then made those of the masses,
    exactly.
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
            Value to compare with: the bound may be looser far from it.
        enough : float, default=0.0
            A bound below which it does not matter how low it is.
        rounds : int, default=40
            Most linear programmes to solve.
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

        The masses and `rounds` are as for :meth:`bound`.
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
