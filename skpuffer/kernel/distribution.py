"""Composition: the curve of adaptive steps, each dominated by a pair."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from skpuffer.kernel.curves import (
    ComposedPair,
    Pair,
    TradeOffs,
    renyi_to_approximate,
    renyi_to_delta,
)
from skpuffer.kernel.loss_grid import (
    GridTooLargeError,
    LossGrid,
    Sum,
    excess,
    loss_range,
    on_grid,
    tail_quantile,
)
from skpuffer.kernel.noise import root_above
from skpuffer.kernel.numbers import Floats, check_order, check_probability, check_real
from skpuffer.kernel.pairs import renyi_of_pair
from skpuffer.kernel.plain import Plain

#: Pairs in one direction, and how many steps each one dominates.
Steps = tuple[tuple[Pair, int], ...]

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

#: Relative error of an epsilon from which on it is said to be loose.
LOOSE = 2e-4

#: Part of delta that tails cut off each step's grid may take, over all steps.
_TAIL = 1e-6


@dataclass(frozen=True)
class Reversed:
    """A dominating pair with its two distributions exchanged."""

    pair: TradeOffs

    symmetric = False

    @property
    def convex(self) -> bool:
        """Whether the divergences are those of a pair, and no bounds on them."""
        return getattr(self.pair, "convex", True)

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.pair.reverse(epsilon)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        return self.pair.delta(epsilon)


@dataclass(frozen=True)
class PrivacyLossCurve(Plain, kind="privacy_loss"):
    """The curve of adaptive steps whose privacy losses add up.

    Parameters
    ----------
    steps : tuple of (pair, int)
        Dominating pairs, and how many steps each one dominates. A pair has
        `delta(epsilon)` and `reverse(epsilon)`, the hockey-stick divergences of its
        first distribution from its second and of the second from the first at arrays of
        ``epsilon >= 0``; `symmetric`, whether these two are the same; and
        `to_dict()`. It can be hashed. One whose divergences are bounds that need not
        be convex in exp(epsilon) says so by `convex`. An exact `renyi(alpha)`, or
        `renyi_costs(orders)` for many at once, is used if there is one. Where it is
        not known which of several pairs dominates, `directions` lists them instead,
        each in both directions.
    max_memory : float, default=500
        In MiB. Where a grid would take more, Rényi costs are added instead.

    Notes
    -----
    The two directions of a pair are kept apart: each is composed with itself, and the
    larger result counts. Mixing them, or keeping the larger at each step, would prove
    less or nothing (Lebeda, Regehr, Kamath and Steinke, 2024).

    References
    ----------
    Zhu, Dong and Wang (2022), Optimal accounting of differential privacy via
    characteristic function, Theorems 10 and 27 (dominating pairs and composition).

    Examples
    --------
    A thousand steps that each see a record with probability 0.01:

    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PoissonPair, PrivacyLossCurve
    >>> step = PoissonPair(GaussianNoise(scale=2.0).curve(1.0), rate=0.01)
    >>> curve = PrivacyLossCurve(((step, 1000),))
    >>> curve.n_steps, round(curve.epsilon(delta=1e-5), 2)
    (1000, 0.62)
    """

    steps: tuple[tuple[ComposedPair, int], ...]
    max_memory: float = 500.0

    gaussian_mu: ClassVar[None] = None

    def __post_init__(self) -> None:
        # equal pairs together: they are composed by a single power of one transform
        counts: dict[ComposedPair, int] = {}
        for pair, count in self.steps:
            counts[pair] = counts.get(pair, 0) + count
        object.__setattr__(self, "steps", tuple(counts.items()))

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return sum(count for _, count in self.steps)

    # -- the curve ----------------------------------------------------------------

    def renyi(self, alpha: float) -> float:
        """Bound on the Rényi cost at order `alpha`, in nats."""
        return self.renyi_costs((check_order(alpha=alpha),))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> tuple[float, ...]:
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
        # costs of adaptive steps add within a direction, and the worst direction counts
        sums = [
            sum(
                (count * np.asarray(_renyi(pair, orders)) for pair, count in steps),
                start=np.zeros(len(orders)),
            )
            for steps in self._directions
        ]
        return tuple(np.max(sums, axis=0).tolist())

    @property
    def spread(self) -> float:
        """Rough standard deviation of the whole loss, in nats: for first guesses."""
        # variances of independent losses add
        squares = [count * _spread(pair)[0] ** 2 for pair, count in self._directions[0]]
        return math.sqrt(sum(squares))

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, rounded up."""
        return _delta(self, check_real(epsilon=epsilon))

    def epsilon(self, delta: float, tolerance: float = TOLERANCE) -> float:
        """Epsilon at `delta`, rounded up: by a relative `tolerance`."""
        return _upper(self, check_probability(delta=delta), tolerance)[0]

    def upper(self, delta: float) -> tuple[float, str]:
        """Return epsilon at `delta`, rounded up, and by which engine it was found.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        epsilon : float
        engine : {'exact', 'grid', 'coarse_grid', 'renyi'}
            A grid is coarse if memory allows none as fine as asked for, and epsilon may
            be above the truth by more than `LOOSE`, relatively.
        """
        return _upper(self, check_probability(delta=delta), TOLERANCE)[:2]

    # -- the parts ----------------------------------------------------------------

    @property
    def _directions(self) -> tuple[Steps, ...]:
        """Dominating pairs, one list per direction."""
        directions = [_directions(pair) for pair, _ in self.steps]
        most = max(map(len, directions), default=1)
        # A symmetric pair is the same in every direction. Pairs that differ are taken
        # in the same direction at each step: which table is which does not change
        # within a run.
        directions = [
            pairs * most if len(pairs) == 1 else pairs for pairs in directions
        ]
        counts = [count for _, count in self.steps]
        return tuple(
            tuple(zip(pairs, counts, strict=True))
            for pairs in zip(*directions, strict=True)
        )

    @property
    def _max_points(self) -> float:
        return self.max_memory * 2**20 / BYTES_PER_POINT


def _directions(pair: ComposedPair) -> tuple[Pair, ...]:
    """Directions of a step: pairs whose `delta` alone counts, each composed apart."""
    if hasattr(pair, "directions"):
        return pair.directions
    return (pair,) if pair.symmetric else (pair, Reversed(pair))


# Functions of hashable values, so that asking twice costs nothing.


@lru_cache(maxsize=4096)
def _renyi(pair: Pair, orders: tuple[float, ...]) -> tuple[float, ...]:
    if hasattr(pair, "renyi_costs"):
        return tuple(pair.renyi_costs(orders))
    if hasattr(pair, "renyi"):
        return tuple(pair.renyi(alpha) for alpha in orders)
    return tuple(renyi_of_pair(pair, orders))


@lru_cache(maxsize=1024)
def _spread(pair: Pair) -> tuple[float, float]:
    """Rough standard deviation of a pair's loss, and the length of its likely range.

    The Pearson divergence is 2 ∫ exp(e) f(e) de, f the :func:`excess`, as every
    f-divergence is an integral of the hockey-stick one (Sason and Verdú, 2016). That
    of two Gaussians at distance mu is exp(mu²) - 1, which is solved for mu.
    """
    # the loss rarely falls below minus the first end or rises above the second
    ends = loss_range(pair, 1e-12)
    if math.isinf(sum(ends)):
        return math.inf, math.inf
    marks = [np.geomspace(1e-6, 1.0, 200) * max(end, 1e-9) for end in ends]
    table = np.concatenate([-marks[0][::-1], [0.0], marks[1]])
    table = np.minimum(table, 300.0)
    density = np.exp(table) * excess(pair, table)
    pearson = 2 * np.trapezoid(density, table)
    return math.sqrt(math.log1p(max(pearson, 1e-300))), sum(ends)


@lru_cache(maxsize=1024)
def _largest_loss(pair: Pair) -> float:
    """Largest privacy loss, beyond which the trade-off is zero in floating point."""
    return tail_quantile(pair.delta, 0.0, rounds=9)


def _first_step(steps: Steps, max_points: float) -> float:
    """Step of a coarse grid, if memory allows: a quarter of the spread of equal steps.

    Rounding adds a variance of about the square of the grid's step to a loss of larger
    spread, and of the step times the spread to one of a smaller. Of different losses
    the sum counts, so it is this that is a sixteenth of the variance of the sum.
    """
    known = [_spread(pair) for pair, _ in steps]
    widest = max(ends for _, ends in known)
    if math.isinf(widest):
        raise GridTooLargeError
    counts = np.array([count for _, count in steps], dtype=float)
    spreads = np.array([spread for spread, _ in known])
    tries = np.geomspace(spreads.min(), spreads.max(), 64) / 4
    added = np.minimum(tries, spreads[:, np.newaxis]).T @ counts * tries
    # the first adds no more than it may, except for rounding
    enough = added <= (1 + 1e-9) / 16 * (counts @ spreads**2)
    step = float(tries[enough].max(initial=tries[0]))
    # at most 1e5 points, or a fifth of those that memory holds, and at least 64
    step = min(max(step, widest / min(1e5, 0.2 * max_points)), widest / 64 + 1e-12)
    # a largest loss often has a mass of its own, which had best be met by a point
    largest = min(_largest_loss(pair) for pair, _ in steps)
    if 0 < largest < math.inf:
        step = largest / math.ceil(largest / step)
    return step


def _sum_on(
    steps: Steps,
    delta: float,
    step: float,
    max_points: float,
    grid: Callable[..., LossGrid] = on_grid,
) -> Sum:
    """Sum of the losses of all steps on one grid, the tails cut in view of delta."""
    # each step may cut off an equal part of the mass that all of them may
    n_steps = sum(count for _, count in steps)
    return Sum(
        [
            (grid(pair, step, _TAIL * delta / n_steps, max_points), count)
            for pair, count in steps
        ]
    )


def _epsilon_on(steps: Steps, delta: float, step: float, max_points: float) -> float:
    """Epsilon by one grid, rounded up."""
    total = _sum_on(steps, delta, step, max_points)
    tilt = total.tilt_for_delta(delta)
    # Every tilt gives valid bounds; they are tight where its mass lies, so several are
    # tried, from the Chernoff bound's downwards, while they improve.
    best = math.inf
    for _ in range(40):
        tail = total.tail(tilt, max_points)
        epsilon, least = tail.epsilon(delta), tail.lower(delta)
        no_better = epsilon >= best < math.inf
        best = min(best, epsilon)
        if no_better or best - least <= 0.1 * TOLERANCE * abs(best):
            break
        # a Chernoff bound looks too high up where few losses are possible
        tilt /= 2
    return best


def _delta_on(
    steps: Steps, epsilon: float, roughly: float, step: float, max_points: float
) -> float:
    """Delta by one grid, rounded up, given its rough size."""
    # as for an epsilon: any tilt gives an upper bound
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
    return best


class _Refined:
    """Bounds on a number from above, on ever finer grids.

    The error of connected dots is of second order in the grid's step: with a step
    smaller by the factor k it falls by k², so that two values v and v' have a
    difference of k² - 1 times the error of the finer (Richardson's extrapolation).
    """

    def __init__(self, ask: Callable[[float], float], step: float) -> None:
        self.ask, self.step = ask, step
        self.value = self._coarsely()
        self.error, self.exhausted = math.inf, False

    def _coarsely(self) -> float:
        # any step gives sound bounds: a coarser grid where memory does not hold this
        # one
        for _ in range(5):
            try:
                return self.ask(self.step)
            except GridTooLargeError:
                self.step *= 4
        return self.ask(self.step)

    def refine(self, tolerance: float) -> None:
        """Refine the grid by the factor that the estimated error asks for."""
        # The error falls with the square of the step: refine by the root of the factor
        # by which it is too large, and 15 % more, by 2 at least and 10 at most.
        parts = 2
        if math.isfinite(self.error):
            want = tolerance * abs(self.value) / max(self.error, 1e-300)
            parts = max(2, min(10, math.ceil(1.15 / math.sqrt(want + 1e-300))))
        # whole parts: what fell on a point of the grid does so again
        factor = 1 / parts
        try:
            finer = self.ask(factor * self.step)
        except GridTooLargeError:
            self.exhausted = True
            return
        self.error = abs(self.value - finer) / (parts**2 - 1)
        self.step *= factor
        # bounds from every grid hold, so the best of them do
        self.value = min(self.value, finer)

    def good(self, tolerance: float) -> bool:
        """Whether the value is as accurate as asked for, or memory allows no better."""
        return self.exhausted or self.error <= tolerance * max(abs(self.value), 1e-9)


def _larger(
    curve: "PrivacyLossCurve", ask: Callable[..., float], tolerance: float
) -> tuple[float, bool, tuple[float, ...]]:
    """The largest number over the directions, if it converged, and the grids' steps."""
    points = curve._max_points
    directions = [
        _Refined(partial(ask, steps, max_points=points), _first_step(steps, points))
        for steps in curve._directions
    ]
    while True:
        # a direction with a smaller number is settled: that is an upper bound already
        worst = max(directions, key=lambda found: found.value)
        if worst.value <= 0:
            # an upper bound, and no number asked for here is less than zero
            return 0.0, True, ()
        if worst.good(tolerance) or worst.value == math.inf:
            fine = not worst.exhausted or worst.error <= LOOSE * worst.value
            exact = worst.value < math.inf and fine
            return worst.value, exact, tuple(found.step for found in directions)
        worst.refine(tolerance)


def _renyi_epsilon(curve: "PrivacyLossCurve", delta: float) -> float:
    orders = tuple(ORDERS)
    return renyi_to_approximate(orders, curve.renyi_costs(orders), delta)


@lru_cache(maxsize=4096)
def _upper(
    curve: "PrivacyLossCurve", delta: float, tolerance: float
) -> tuple[float, str, tuple[float, ...]]:
    """Epsilon rounded up, by which engine, and the steps of its grids by direction."""
    if curve.n_steps == 1:  # the trade-off is known: no grid is needed
        ((pair, _),) = curve.steps
        # one whose divergences take long knows where to look for it
        if hasattr(pair, "least_epsilon"):
            return pair.least_epsilon(delta), "exact", ()
        found = max(_single_epsilon(each, delta) for each in _directions(pair))
        return found, "exact", ()

    def ask(steps: Steps, step: float, max_points: float) -> float:
        return _epsilon_on(steps, delta, step, max_points)

    grids: tuple[float, ...] = ()
    try:
        epsilon, exact, grids = _larger(curve, ask, tolerance)
    except GridTooLargeError:
        epsilon, exact = math.inf, False
    # Rényi costs bound epsilon too; they are worth it only where the grid fell short
    fallback = math.inf if exact else _renyi_epsilon(curve, delta)
    engine = "grid" if exact else "renyi" if fallback < epsilon else "coarse_grid"
    return max(0.0, float(min(epsilon, fallback))), engine, grids


def _single_epsilon(pair: Pair, delta: float) -> float:
    """Exact epsilon of one step, rounded up."""

    def height(epsilon: float) -> float:
        return float(pair.delta(np.array([epsilon]))[0])

    if height(0.0) <= delta:
        return 0.0
    high = tail_quantile(pair.delta, delta)
    if math.isinf(high):
        return math.inf
    return root_above(height, delta, 0.0, high)


@lru_cache(maxsize=4096)
def _delta(curve: "PrivacyLossCurve", epsilon: float) -> float:
    if curve.n_steps == 1:
        ((pair, _),) = curve.steps
        # delta = excess + max(0, 1 - exp(epsilon)), also where epsilon is negative
        at = np.array([epsilon])
        beyond = max(0.0, -math.expm1(min(epsilon, 0.0)))
        return max(float(excess(each, at)[0]) for each in _directions(pair)) + beyond
    # Rényi costs give a bound to begin with: the size of delta, by which tails are cut.
    orders = tuple(ORDERS)
    value = renyi_to_delta(orders, curve.renyi_costs(orders), epsilon)

    def ask(steps: Steps, step: float, max_points: float) -> float:
        return _delta_on(steps, epsilon, value, step, max_points)

    try:
        return min(value, _larger(curve, ask, TOLERANCE)[0])
    except GridTooLargeError:
        return value
