"""Privacy loss distributions on a grid: from a trade-off, and sums of many.

The distributions are built by connecting the dots of a trade-off, as dp-accounting
does, which bounds it from above everywhere. Building and adding are our own for two
reasons. dp-accounting goes through dictionaries and Python loops, which takes most of
its time (0.1 to 3 seconds for one subsampled Gaussian run, where ours takes some
hundredths). And its Fourier transform carries rounding errors of some 1e-16 of the
whole mass into the tail that a delta is read off; here the distributions are tilted
towards that tail first, so errors are relative to delta itself.

References
----------
Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Connect the dots: tighter
discrete approximations of privacy loss distributions. Koskela, Jälkö and Honkela
(2020), Computing tight differential privacy guarantees using FFT.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.signal import lfilter

from skpuffer.utils._types import Floats

from ._protocols import Pair, TradeOffs

__all__ = [
    "GridTooLargeError",
    "LossGrid",
    "Sum",
    "Tail",
    "excess",
    "loss_range",
    "on_grid",
    "tail_quantile",
]

#: Tilted mass that the window of a sum leaves out on each side.
_OUTSIDE = 1e-9


#: A mass further below zero than this is no rounding error.
_ROUNDED = 1e-9

#: Multiples of the tilt that a normal sum would need, among which that of another sum
#: is looked for.
_FACTORS = (0.05, 0.2, 0.5, 0.8, 1.1, 2.0, 5.0)


#: Losses, in nats, among which a tail quantile is looked for first.
_MARKS = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 73)])


class GridTooLargeError(MemoryError):
    """The grid would need more memory than allowed."""


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A privacy loss on the points ``step * (first + i)``, and at infinity.

    Parameters
    ----------
    step : float
        Distance of the points, in nats.
    first : int
    masses : ndarray
        Under the first distribution. Rounding may leave some a hair below zero; they
        are kept, as only so the interpolation passes through the trade-off's own
        values.
    infinity : float
    """

    step: float
    first: int
    masses: Floats
    infinity: float

    @cached_property
    def losses(self) -> Floats:
        """The points, in nats."""
        return self.step * np.arange(
            self.first, self.first + len(self.masses), dtype=float
        )

    def cumulant(self, tilt: float) -> float:
        """Log of the mean of exp(tilt * loss) over the finite losses."""
        exponent = tilt * self.losses
        largest = max(0.0, exponent[0], exponent[-1])
        if largest < 600:
            # the mass is one except for what is at infinity: no cancellation near zero
            largest = 0.0
            value = 1.0 + (self.masses @ np.expm1(exponent) - self.infinity)
        else:
            value = self.masses @ np.exp(exponent - largest)
        # where only rounding is left, nothing is known
        return largest + math.log(value) if value > 0 else math.inf

    def tilted(self, tilt: float) -> Floats:
        """Masses times exp(tilt * loss), normalised."""
        return self.masses * np.exp(tilt * self.losses - self.cumulant(tilt))

    def moments(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the tilted loss."""
        return self._moments(self.tilted(tilt))

    def _moments(self, masses: Floats) -> tuple[float, float]:
        mean = float(masses @ self.losses)
        return mean, float(masses @ (self.losses - mean) ** 2)


def excess(pair: TradeOffs, epsilon: Floats) -> Floats:
    """Trade-off minus that of equal distributions, max(0, 1 - exp(epsilon)).

    Parameters
    ----------
    pair : Pair
        With `delta(epsilon)` and `reverse(epsilon)`, the hockey-stick divergences of a
        pair of distributions in both orders at arrays of ``epsilon >= 0``.
    epsilon : ndarray
        In nats, of any sign.

    Returns
    -------
    excess : ndarray
        Relatively accurate in both tails, where the divergence itself is near one.
    """
    epsilon = np.asarray(epsilon, float)
    value = np.empty_like(epsilon)
    above = epsilon >= 0
    if above.any():
        value[above] = pair.delta(epsilon[above])
    # at a negative epsilon delta(e) = 1 - exp(e) + exp(e) reverse(-e)
    if not above.all():
        below = epsilon[~above]
        value[~above] = np.exp(below) * pair.reverse(-below)
    return value


def tail_quantile(
    curve: Callable[[Floats], Floats], tail: float, rounds: int = 1
) -> float:
    """Tail quantile of a privacy loss: an epsilon beyond which delta is at most `tail`.

    Nearly the least such epsilon >= 0.

    Parameters
    ----------
    curve : callable
        Decreasing, at arrays of epsilon >= 0.
    tail : float
    rounds : int, default=1
        How often the search is refined: to about 3 %, 0.1 %, ... above the least.

    Returns
    -------
    epsilon : float
        Infinity if there is none below 1e9.
    """
    # Four marks a decade, then 32 between the last two. The mark returned is one at
    # which the curve is small enough: rounded up.
    marks = _MARKS
    for left in range(rounds, -1, -1):
        small = np.flatnonzero(curve(marks) <= tail)
        if not len(small):
            return math.inf
        at = small[0]
        if at == 0:
            return 0.0
        found = float(marks[at])
        if left:
            marks = np.linspace(marks[at - 1], found, 33)
    return found


#: Ranges of losses by pair, and by tail. A pair may hold what a scenario stated of
#: records, so nothing here keeps it alive.
_RANGES: WeakKeyDictionary[Pair, dict[float, tuple[float, float]]] = WeakKeyDictionary()


def loss_range(pair: Pair, tail: float) -> tuple[float, float]:
    """Tail quantiles of a pair's loss and of that in the other order.

    Parameters
    ----------
    pair : Pair
        As for :func:`on_grid`, hashable: finer grids ask for the same again.
    tail : float

    Returns
    -------
    start : float
        Minus this is about the smallest loss.
    end : float
        About the largest one.
    """
    ranges = _RANGES.setdefault(pair, {})
    if tail not in ranges:
        end = tail_quantile(pair.delta, tail)
        start = end if pair.symmetric else tail_quantile(pair.reverse, tail)
        ranges[tail] = start, end
    return ranges[tail]


def on_grid(pair: Pair, step: float, tail: float, max_points: float) -> LossGrid:
    """Discretise a pair's privacy loss by connecting the dots of its trade-off.

    Parameters
    ----------
    pair : Pair
        As for :func:`excess`, and `symmetric`, whether both orders are the same.
    step : float
        Distance of the grid's points, in nats.
    tail : float
        Mass that may be moved to infinity.
    max_points : float

    Returns
    -------
    LossGrid
        Its trade-off is that of the pair at the grid's points and never below it in
        between or outside.

    Raises
    ------
    GridTooLargeError
        If more than `max_points` points would be needed.
    """
    # points from -start to end and one more on either side; the trade-off that is left
    # at the last becomes mass at infinity
    start, end = loss_range(pair, tail)
    if not (start + end) / step + 4 <= max_points:
        raise GridTooLargeError
    first, last = -math.ceil(start / step) - 1, math.ceil(end / step) + 1
    losses = step * np.arange(max(-first, last) + 1, dtype=float)
    above = pair.delta(losses[: last + 1])
    behind = losses[-first:0:-1]
    below = above[:0:-1] if pair.symmetric else pair.reverse(behind)
    height = np.concatenate([np.exp(-behind) * below, above])
    # unimodal about zero in exact arithmetic: where rounding broke that, raise it
    zero = -first
    height[: zero + 1] = np.maximum.accumulate(height[: zero + 1])
    height[zero:] = np.maximum.accumulate(height[zero:][::-1])[::-1]
    # a mass clearly below zero: what was given is a bound that is not convex
    masses = _masses(height, zero, step)
    near, is_bound = max(-first, last) * step < 600, not getattr(pair, "convex", True)
    if is_bound and not near:
        # signed masses would add up to no bound
        raise GridTooLargeError
    if near and (is_bound or masses.min() < -_ROUNDED):
        masses = _masses(_convex(height, zero, step), zero, step)
    # empty ends would only invite tilts towards them
    start, end = np.flatnonzero(masses)[[0, -1]]
    masses = masses[start : end + 1]
    return LossGrid(step, first + int(start), masses, float(height[-1]))


def _masses(height: Floats, zero: int, step: float) -> Floats:
    """Masses of the loss whose trade-off exceeds that of equal distributions so much.

    Between points the trade-off is linear in exp(epsilon). Its slope there is minus the
    second distribution's mass of larger losses, so the differences of slopes are that
    distribution's masses, and exp(loss) times these the first one's (Doroshenko et al.,
    2022). Here in terms of `height`, in which nothing cancels.
    """
    # With x_i = exp(loss i) the mass at i is x_i times the change of slope there, and
    # x_(i+1) - x_i = x_i growth, x_i - x_(i-1) = x_i growth / (1 + growth).
    rise = np.diff(height)
    growth = math.expm1(step)
    masses = np.zeros(len(height))
    masses[:-1] += rise / growth
    masses[1:] -= rise * (1 + 1 / growth)
    # before the first point the line to (0, 1), and at zero the kink of max(0, 1 - x)
    masses[0] -= height[0]
    masses[zero] += 1.0
    return masses


def _convex(height: Floats, zero: int, step: float) -> Floats:
    """Convex envelope of heights, as functions of exp(epsilon).

    A bound on a trade-off need not be convex, but the trade-off is, and so below this.
    Without it some masses would be negative, and their sums no bounds. The slopes of
    the largest convex function are the isotonic regression of those given (Barlow,
    Bartholomew, Bremner and Brunk, 1972).
    """
    width = np.exp(step * np.arange(-zero, len(height) - zero - 1)) * math.expm1(step)
    equal = np.arange(len(width)) < zero  # where 1 - exp(epsilon) falls by the width
    slopes = np.diff(height) / width - equal
    rise = (isotonic_regression(slopes, weights=width).x + equal) * width
    convex = height.copy()
    # either side from its own end, where heights are small
    convex[1:zero] = height[0] + np.cumsum(rise[: zero - 1])
    convex[zero:-1] = height[-1] - np.cumsum(rise[zero:][::-1])[::-1]
    return convex


class Sum:
    """The sum of independent privacy losses on one grid.

    Parameters
    ----------
    parts : sequence of (LossGrid, int)
        Grids of one step, and how many times each is added.
    """

    def __init__(self, parts: Iterable[tuple[LossGrid, int]]) -> None:
        self.parts = tuple(parts)
        self.step = self.parts[0][0].step
        self.count = sum(count for _, count in self.parts)
        # 1 - prod (1 - infinity), where no part is too small to be seen
        self.infinity = -math.expm1(
            sum(count * math.log1p(-grid.infinity) for grid, count in self.parts)
        )
        # smallest and largest index of a sum: nothing lies outside
        self._largest = sum(
            count * (grid.first + len(grid.masses) - 1) for grid, count in self.parts
        )
        self._smallest = sum(count * grid.first for grid, count in self.parts)

    def cumulant(self, tilt: float) -> float:
        """Log of the mean of exp(tilt * loss) over the finite losses."""
        return sum(count * grid.cumulant(tilt) for grid, count in self.parts)

    # -- Chernoff bounds: where to look -------------------------------------------

    def _tilt(self, bound: Callable[[float], float]) -> float:
        """Tilt that minimises a Chernoff bound, unimodal in the tilt's logarithm."""
        widest = max(self.step, *(np.ptp(grid.losses) for grid, _ in self.parts))
        found = minimize_scalar(
            lambda u: bound(math.exp(u)),
            bounds=(math.log(1e-4 / self.count / widest), math.log(10 / self.step)),
            method="bounded",
            options={"xatol": 0.03},
        )
        return math.exp(found.x)

    def tilt_for_delta(self, delta: float) -> float:
        """Tilt of the best Chernoff bound on epsilon at a delta."""
        need = -math.log(delta)
        return self._tilt(lambda t: (self.cumulant(t) + need) / t)

    def tilt_for_epsilon(self, epsilon: float) -> float:
        """Tilt of the best Chernoff bound on delta at an epsilon."""
        return self._tilt(lambda t: self.cumulant(t) - t * epsilon)

    def _window(self, tilt: float, here: float, variance: float) -> tuple[int, int]:
        """Grid indices beyond which Chernoff bounds leave a tilted sum little mass."""
        need = -math.log(_OUTSIDE)
        # the tilted mass beyond e is at most exp(K(tilt + s) - K(tilt) - s e), K the
        # cumulant: `_OUTSIDE` at each of the bounds below. The best s of a normal sum
        # is the guess
        guess = math.sqrt(2 * need / max(variance, self.step**2))
        ends = []
        for sign in (-1, 1):
            tries = [sign * guess * factor for factor in _FACTORS]
            bounds = [(self.cumulant(tilt + s) - here + need) / s for s in tries]
            # every s gives a bound, the one closest to the middle counts
            best = max(bounds) if sign < 0 else min(bounds)
            ends.append(best if math.isfinite(best) else sign * math.inf)
        low = max(ends[0] / self.step, self._smallest)
        high = min(ends[1] / self.step, self._largest)
        return math.floor(low), math.ceil(high)

    # -- the sum itself -----------------------------------------------------------

    def tail(self, tilt: float, max_points: float) -> "Tail":
        """Return the trade-off of the sum, accurate where a tilt puts its mass.

        Parameters
        ----------
        tilt : float
        max_points : float

        Returns
        -------
        Tail

        Raises
        ------
        GridTooLargeError
            If more than `max_points` points would be needed.
        """
        tilted = [grid.tilted(tilt) for grid, _ in self.parts]
        variance = sum(
            count * grid._moments(masses)[1]
            for (grid, count), masses in zip(self.parts, tilted, strict=True)
        )
        here = self.cumulant(tilt)
        low, high = self._window(tilt, here, variance)
        if not high - low + 2 <= max_points:
            raise GridTooLargeError
        # The distribution of the sum is the product of the transforms of all terms;
        # with each term tilted, that of the tilted sum.
        n = next_fast_len(high - low + 2, real=True)
        transform = 1.0
        for (_, count), masses in zip(self.parts, tilted, strict=True):
            # indices wrap around: fold what is longer than the window
            folded = np.pad(masses, (0, -len(masses) % n)).reshape(-1, n).sum(axis=0)
            transform = transform * rfft(folded) ** count
        # entry 0 is the smallest sum: move it to its place in the window, modulo n
        summed = np.roll(irfft(transform, n), self._smallest - low)
        return Tail(self, tilt, here, low, summed)


class Tail:
    """Trade-off of a sum, read off the masses of its tilt over a window.

    What wraps around from below the window adds to the trade-off; what is lost above
    it is at most the mass outside, and is added as well, and so is a bound on the
    rounding errors of the transform and its power.

    Parameters
    ----------
    total : Sum
    tilt : float
    cumulant : float
        Of the total, at the tilt.
    low : int
        Index of the first point of the window.
    masses : ndarray
        Tilted, over the window.
    """

    def __init__(
        self, total: Sum, tilt: float, cumulant: float, low: int, masses: Floats
    ) -> None:
        self.infinity, self.step = total.infinity, total.step
        losses = self.step * np.arange(low, low + len(masses), dtype=float)
        # everything below is in units of exp(unit), as far down as a float can follow
        self._unit = cumulant - tilt * losses[-1]
        exponent = tilt * (losses[-1] - losses)
        # p(l) = exp(unit) masses(l) weights(l); far below, weights would overflow
        start = int(np.searchsorted(-exponent, -600.0))
        self.low = low + start
        weights = np.exp(exponent[start:])
        masses = np.maximum(masses[start:], 0.0)
        untilted = masses * weights
        # sum of p(l) over l > e, added up from the small end
        above = np.cumsum(untilted[::-1])[::-1] - untilted
        # delta(e) is the sum over l > e of p(l) (1 - exp(e - l)); the sum of
        # p(l) exp(e - l) follows from that at e + step
        decay = math.exp(-self.step)
        below = lfilter([0.0, decay], [1.0, -decay], untilted[::-1])[::-1]
        height = np.maximum(above - below, 0.0)
        # an error of the masses, relative in their l2 norm, meets weights that decay
        # with the tilt: by Cauchy and Schwarz, times the root of their squares' sum
        relative = np.finfo(float).eps * (total.count + 1) * math.log2(len(masses) + 2)
        squares = min(len(masses), -1 / math.expm1(-2 * tilt * self.step))
        error = relative * np.linalg.norm(masses) * math.sqrt(squares) * weights
        error += (1e-9 + relative) * height
        # Rounded up and down. A trade-off decreases, so bounds from either side may be
        # made to decrease as well: each is raised to the largest at its right. Raising
        # the lower one is sound, as the trade-off there is at least what it is later.
        self._height = np.maximum.accumulate((height + error + _OUTSIDE)[::-1])[::-1]
        self._certain = height - error

    @cached_property
    def _floor(self) -> Floats:
        """The trade-off, rounded down."""
        return np.maximum.accumulate(np.maximum(0.0, self._certain)[::-1])[::-1]

    def delta(self, epsilon: float) -> float:
        """Delta at an epsilon, rounded up; below the window, one."""
        at = (epsilon / self.step) - self.low
        i = math.floor(at)
        if i < 0:
            return 1.0
        # beyond the window delta is no larger than within
        if i >= len(self._height) - 1:
            i = at = len(self._height) - 2
        left, right = self._height[i], self._height[i + 1]
        # linear in exp(epsilon) between two points of the grid
        part = math.expm1(self.step * (at - i)) / math.expm1(self.step)
        height = left + (right - left) * part
        if height <= 0:
            return self.infinity
        return min(1.0, self.infinity + math.exp(min(0, math.log(height) + self._unit)))

    def log_deltas(self, epsilon: Floats) -> Floats:
        """Logarithms of delta at many epsilons, rounded up.

        Parameters
        ----------
        epsilon : ndarray of shape (n,)

        Returns
        -------
        log_deltas : ndarray of shape (n,)
            Zero below the window.
        """
        last = len(self._height) - 2
        at = epsilon / self.step - self.low
        i = np.clip(np.floor(at), 0, last).astype(int)
        left, right = self._height[i], self._height[i + 1]
        # linear in exp(epsilon) between two points, and level beyond the window
        part = np.where(at >= last + 1, 0.0, np.clip(at - i, 0.0, 1.0))
        part = np.expm1(self.step * part) / math.expm1(self.step)
        height = left + (right - left) * part
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.minimum(0.0, np.log(height) + self._unit)
            if self.infinity:
                value = np.logaddexp(value, np.log(self.infinity))
        return np.where(at < 0, 0.0, np.minimum(value, 0.0))

    def epsilon(self, delta: float) -> float:
        """Epsilon at a delta, rounded up; infinity if delta is never reached.

        At least the low end of the window.
        """
        if delta <= self.infinity:
            return math.inf
        found = self._where(self._height, delta)
        return self.step * self.low if found is None else found

    def lower(self, delta: float) -> float:
        """Epsilon at a delta, rounded down; minus infinity if below the window."""
        found = None
        if delta > self.infinity:
            found = self._where(self._floor, delta)
        return -math.inf if found is None else min(found, self.epsilon(delta))

    def _where(self, height: Floats, delta: float) -> float | None:
        """Epsilon where a trade-off falls below delta; None if below the window."""
        # delta - infinity in units of exp(unit), which the heights are in
        target = math.exp(min(700.0, math.log(delta - self.infinity) - self._unit))
        large = np.flatnonzero(height > target)
        if not len(large):
            return None
        i = large[-1]
        if i + 1 == len(height):
            return math.inf
        # between the last point above and the next, linear in exp(epsilon)
        left, right = height[i], height[i + 1]
        part = (left - target) / (left - right)
        beyond = math.log1p(part * math.expm1(self.step))
        epsilon: float = self.step * (self.low + i) + beyond
        return epsilon
