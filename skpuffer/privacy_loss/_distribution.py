"""The curve of many adaptive steps, each dominated by a pair of laws."""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from skpuffer.utils._checks import check_order, check_probability, check_real
from skpuffer.utils._solve import root_above

from ._conversions import renyi_to_approximate, renyi_to_delta
from ._grid import GridTooLargeError, Sum, excess, on_grid, reach
from ._renyi import renyi_of_pair

__all__ = ["Accounted", "PrivacyLossCurve", "Reversed"]

#: Orders at which Rényi costs are added where no grid is possible.
ORDERS = np.unique(
    np.concatenate([1 + np.geomspace(0.05, 1e4, 60), np.arange(2.0, 33.0)])
)

#: Bytes a composition takes for each point of its grid: the masses, their transform,
#: its power and what is read off them.
BYTES_PER_POINT = 140

#: Relative error of an epsilon, by which it may be too large, where losses are spread
#: smoothly; single masses that fall between the points of a grid may cost a bit more.
TOLERANCE = 5e-5

#: Part of delta that tails cut off each step's grid may take, over all steps.
_TAIL = 1e-6


class Accounted(NamedTuple):
    """Epsilon of composed pairs at some delta.

    Parameters
    ----------
    epsilon : float
        Not below the truth.
    lower : float
        Not above the truth for the pairs themselves, so for a mechanism only where
        they are attained.
    engine : {'exact', 'grid', 'renyi'}
    """

    epsilon: float
    lower: float
    engine: str


@dataclass(frozen=True)
class Reversed:
    """A pair of laws the other way around."""

    pair: object

    symmetric = False

    def delta(self, epsilon):
        """Return the hockey-stick divergence of the second law from the first."""
        return self.pair.reverse(epsilon)

    def reverse(self, epsilon):
        """Return the hockey-stick divergence of the first law from the second."""
        return self.pair.delta(epsilon)


@dataclass(frozen=True)
class PrivacyLossCurve:
    """The curve of adaptive steps whose privacy losses add up.

    Parameters
    ----------
    steps : tuple of (pair, int)
        Dominating pairs of laws, and how many steps each one dominates. A pair has
        `delta(epsilon)` and `reverse(epsilon)`, the hockey-stick divergences of the
        first law from the second and of the second from the first at arrays of
        ``epsilon >= 0``; `symmetric`, whether these two are the same; and
        `to_dict()`. It can be hashed. An exact `renyi(alpha)`, or
        `renyi_costs(orders)` for many at once, is used if there is one. Where it is
        not known which of several pairs it is, `directions` lists them instead, each in
        both orders.
    max_memory : float, default=500
        In MiB. Where a grid would take more, Rényi costs are added instead.

    Notes
    -----
    The two orders of the laws are kept apart: each is composed with itself, and the
    larger result counts. Mixing them, or keeping the larger at each step, would prove
    less or nothing (Lebeda, Regehr, Kamath and Steinke, 2024).

    References
    ----------
    Zhu, Dong and Wang (2022), Optimal accounting of differential privacy via
    characteristic function, Theorems 10 and 27 (dominating pairs and composition).
    """

    steps: tuple
    max_memory: float = 500.0

    gaussian_mu = None

    def __post_init__(self):
        counts = {}
        for pair, count in self.steps:
            counts[pair] = counts.get(pair, 0) + count
        object.__setattr__(self, "steps", tuple(counts.items()))

    @property
    def n_steps(self):
        """How many steps there are."""
        return sum(count for _, count in self.steps)

    # -- the curve ----------------------------------------------------------------

    def renyi(self, alpha):
        """Bound on the Rényi cost at order `alpha`, in nats."""
        return self.renyi_costs((check_order(alpha=alpha),))[0]

    def renyi_costs(self, orders):
        """Bounds on the Rényi cost at many orders.

        Parameters
        ----------
        orders : tuple of float
            In (1, inf].

        Returns
        -------
        costs : tuple of float
            In nats.
        """
        sums = [
            sum(count * np.asarray(_renyi(pair, orders)) for pair, count in steps)
            for steps in self._directions
        ]
        return tuple(np.max(sums, axis=0).tolist())

    @property
    def spread(self):
        """Rough standard deviation of the whole loss, in nats: for first guesses."""
        squares = [count * _spread(pair)[0] ** 2 for pair, count in self._directions[0]]
        return math.sqrt(sum(squares))

    def delta(self, epsilon):
        """Delta at `epsilon`, rounded up."""
        return _delta(self, check_real(epsilon=epsilon))

    def epsilon(self, delta):
        """Epsilon at `delta`, rounded up: by `TOLERANCE`, relatively."""
        return self.account(delta)[0]

    def account(self, delta, tolerance=TOLERANCE):
        """Return epsilon at `delta`, from both sides, and by what it was found.

        Parameters
        ----------
        delta : float
            In (0, 1).
        tolerance : float
            Relative error that epsilon may have, on the safe side.

        Returns
        -------
        accounted : Accounted
        """
        return _account(self, check_probability(delta=delta), tolerance)

    def to_dict(self):
        """Return plain data."""
        steps = [{**pair.to_dict(), "count": count} for pair, count in self.steps]
        return {"kind": "privacy_loss", "steps": steps}

    # -- the parts ----------------------------------------------------------------

    @property
    def _directions(self):
        """Dominating pairs, one list per direction."""
        directions = [_directions(pair) for pair, _ in self.steps]
        most = max(map(len, directions), default=1)
        # one direction for all, or what differs does so in the same one at each step
        directions = [
            pairs * most if len(pairs) == 1 else pairs for pairs in directions
        ]
        counts = [count for _, count in self.steps]
        return tuple(
            tuple(zip(pairs, counts, strict=True))
            for pairs in zip(*directions, strict=True)
        )

    @property
    def _max_points(self):
        return self.max_memory * 2**20 / BYTES_PER_POINT


def _directions(pair):
    """Pairs that two neighbouring tables may make of one, each in one direction."""
    if hasattr(pair, "directions"):
        return pair.directions
    return (pair,) if pair.symmetric else (pair, Reversed(pair))


# Functions of plain values, so that asking twice costs nothing.


@lru_cache(maxsize=4096)
def _renyi(pair, orders):
    if hasattr(pair, "renyi_costs"):
        return tuple(pair.renyi_costs(orders))
    if hasattr(pair, "renyi"):
        return tuple(pair.renyi(alpha) for alpha in orders)
    return tuple(renyi_of_pair(pair, orders))


@lru_cache(maxsize=1024)
def _spread(pair):
    """Rough standard deviation of a pair's loss, from its Pearson divergence."""
    ends = reach(pair.reverse, 1e-12), reach(pair.delta, 1e-12)
    if math.isinf(sum(ends)):
        return math.inf, math.inf
    marks = [np.geomspace(1e-6, 1.0, 200) * max(end, 1e-9) for end in ends]
    table = np.concatenate([-marks[0][::-1], [0.0], marks[1]])
    table = np.minimum(table, 300.0)
    density = np.exp(table) * excess(pair, table)
    pearson = 2 * np.trapezoid(density, table)
    return math.sqrt(math.log1p(max(pearson, 1e-300))), sum(ends)


@lru_cache(maxsize=1024)
def _largest_loss(pair):
    """Largest possible loss, beyond which a trade-off is zero in floating point."""
    return reach(pair.delta, 0.0, rounds=9)


def _first_step(steps, max_points):
    """A coarse grid's step: a good part of the smallest spread, if memory allows."""
    spreads = [_spread(pair) for pair, _ in steps]
    step = min(0.25 * spread for spread, _ in spreads)
    widest = max(ends for _, ends in spreads)
    if math.isinf(widest):
        raise GridTooLargeError
    step = min(max(step, widest / min(1e5, 0.2 * max_points)), widest / 64 + 1e-12)
    # a largest loss often has a mass of its own, which had best be met by a point
    largest = min(_largest_loss(pair) for pair, _ in steps)
    if 0 < largest < math.inf:
        step = largest / math.ceil(largest / step)
    return step


def _sum_on(steps, delta, step, max_points):
    """All losses added on one grid; delta says which masses are negligible."""
    n_steps = sum(count for _, count in steps)
    return Sum(
        [
            (on_grid(pair, step, _TAIL * delta / n_steps, max_points), count)
            for pair, count in steps
        ]
    )


def _epsilon_on(steps, delta, step, max_points):
    """Epsilon by one grid: rounded up, and down."""
    total = _sum_on(steps, delta, step, max_points)
    # the masses moved at the tails are far less than the second term allows for
    missed = 1e-2 * delta
    more = delta + missed + 10 * _TAIL * delta
    tilt = total.tilt_for_delta(delta)
    best, lower = math.inf, -math.inf
    for _ in range(40):
        tail = total.tail(tilt, max_points)
        epsilon, least = tail.epsilon(delta), tail.lower(delta)
        lower = max(lower, tail.lower(more))
        no_better = epsilon >= best < math.inf
        best = min(best, epsilon)
        if no_better or best - least <= 0.1 * TOLERANCE * abs(best):
            break
        # a Chernoff bound looks too high up where few losses are possible
        tilt /= 2
    return best, lower - _slip(step, total.count, missed)


def _slip(step, n_steps, chance):
    """How far connected dots move a sum upwards, except for a small chance.

    A loss between two points of the grid goes to either so that the mean of exp(-loss)
    stays. Its mean then rises by at most the first term, and by Hoeffding's lemma the
    sum of all moves exceeds the bound with a probability of at most `chance`.
    """
    growth = -math.expm1(-step)
    worst = math.log(step / growth)
    rise = step * -math.expm1(-worst) / growth - worst
    return n_steps * rise + step * math.sqrt(-math.log(chance) * n_steps / 2)


def _delta_on(steps, epsilon, roughly, step, max_points):
    """Delta by one grid, rounded up, given its rough size."""
    total = _sum_on(steps, roughly, step, max_points)
    tilt = total.tilt_for_epsilon(epsilon)
    best = 1.0
    for _ in range(40):
        delta = total.tail(tilt, max_points).delta(epsilon)
        settled = 0.999999 * best < delta < 1
        best = min(best, delta)
        if settled:
            break
        tilt /= 2
    return best, 0.0


class _Refined:
    """A number found from above, and from below, on ever finer grids.

    The error of connected dots goes with the square of the grid's step, so two grids
    tell how far off the finer one is.
    """

    def __init__(self, ask, step):
        self.ask, self.step = ask, step
        self.value, self.lower = self._coarsely()
        self.error, self.exhausted = math.inf, False

    def _coarsely(self):
        for _ in range(5):
            try:
                return self.ask(self.step)
            except GridTooLargeError:
                self.step *= 4
        return self.ask(self.step)

    def refine(self, tolerance):
        """Take the step that the error so far suggests."""
        parts = 2
        if math.isfinite(self.error):
            want = tolerance * abs(self.value) / max(self.error, 1e-300)
            parts = max(2, min(10, math.ceil(1.15 / math.sqrt(want + 1e-300))))
        # whole parts: what fell on a point of the grid does so again
        factor = 1 / parts
        try:
            finer, lower = self.ask(factor * self.step)
        except GridTooLargeError:
            self.exhausted = True
            return
        self.error = abs(self.value - finer) / (parts**2 - 1)
        self.step *= factor
        self.value, self.lower = min(self.value, finer), max(self.lower, lower)

    def good(self, tolerance):
        """Whether the value is as exact as asked for, or cannot be made so."""
        return self.exhausted or self.error <= tolerance * max(abs(self.value), 1e-9)


def _larger(curve, ask, tolerance):
    """The larger of both directions' numbers, a lower bound, and if it is exact.

    Raises
    ------
    GridTooLargeError
        If not even a coarse grid is possible.
    """
    points = curve._max_points
    directions = [
        _Refined(partial(ask, steps, max_points=points), _first_step(steps, points))
        for steps in curve._directions
    ]
    while True:
        # the other direction's number is an upper bound already
        worst = max(directions, key=lambda found: found.value)
        if worst.value <= 0:
            # an upper bound, and no number asked for here is less than zero
            return 0.0, 0.0, True
        if worst.good(tolerance) or worst.value == math.inf:
            exact = worst.value < math.inf and not worst.exhausted
            return worst.value, max(found.lower for found in directions), exact
        worst.refine(tolerance)


def _renyi_epsilon(curve, delta):
    orders = tuple(ORDERS)
    return renyi_to_approximate(orders, curve.renyi_costs(orders), delta)


@lru_cache(maxsize=4096)
def _account(curve, delta, tolerance):
    if curve.n_steps == 1:
        ((pair, _),) = curve.steps
        epsilon = max(_single_epsilon(each, delta) for each in _directions(pair))
        return Accounted(epsilon, epsilon * (1 - 1e-9), "exact")

    def ask(steps, step, max_points):
        return _epsilon_on(steps, delta, step, max_points)

    try:
        epsilon, lower, exact = _larger(curve, ask, tolerance)
    except GridTooLargeError:
        epsilon, lower, exact = math.inf, 0.0, False
    fallback = math.inf if exact else _renyi_epsilon(curve, delta)
    if fallback < epsilon:
        return Accounted(fallback, max(0.0, float(lower)), "renyi")
    return Accounted(max(0.0, float(epsilon)), max(0.0, float(lower)), "grid")


def _single_epsilon(pair, delta):
    """Exact epsilon of one step, rounded up."""

    def height(epsilon):
        return float(pair.delta(np.array([epsilon]))[0])

    if height(0.0) <= delta:
        return 0.0
    high = reach(pair.delta, delta)
    if math.isinf(high):
        return math.inf
    return root_above(height, delta, 0.0, high)


@lru_cache(maxsize=4096)
def _delta(curve, epsilon):
    if curve.n_steps == 1:
        ((pair, _),) = curve.steps
        at = np.array([epsilon])
        beyond = max(0.0, -math.expm1(min(epsilon, 0.0)))
        return max(float(excess(each, at)[0]) for each in _directions(pair)) + beyond
    orders = tuple(ORDERS)
    value = renyi_to_delta(orders, curve.renyi_costs(orders), epsilon)

    def ask(steps, step, max_points):
        return _delta_on(steps, epsilon, value, step, max_points)

    try:
        return min(value, _larger(curve, ask, TOLERANCE)[0])
    except GridTooLargeError:
        return value
