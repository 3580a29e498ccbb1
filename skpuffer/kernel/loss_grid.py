"""Privacy losses on a grid, added up by fast Fourier transforms.

They are tilted to the tail that is read, so that errors are relative to delta itself.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import isotonic_regression, minimize_scalar

from skpuffer.kernel.curves import Pair, TradeOffs
from skpuffer.kernel.numbers import Complexes, Floats, Indices

#: Transforms of a sum below it, relative to its mass, are left out.
_NEGLIGIBLE = 1e-18

#: Intervals of frequencies, each longer than the last by a factor, for which the
#: transform is bounded.
_INTERVALS = 400

#: Samples of a factor for each of its masses, and for how many in all no less are kept.
_SAMPLES, _MOST_SAMPLES = (4, 16), 2**18

#: Above what rounding takes off the square of a sample.
_BAND_ROUNDED = 1e-13


class Band(NamedTuple):
    """Frequencies beyond which a transform is small.

    Parameters
    ----------
    limit : float
        In radians for each point of the grid, in (0, pi).
    beyond : float
        Bound of the transform from there on.
    """

    limit: float
    beyond: float


def band_of(parts: Sequence[tuple[Floats, float, int]]) -> Band | None:
    """Band outside of which the transform of a sum of many terms is negligible.

    Parameters
    ----------
    parts : sequence of (ndarray, float, int)
        Masses of the terms, which sum to one, their variances in squared points of the
        grid, and how many of each there are.
    """
    spread = math.sqrt(sum(count * variance for _, variance, count in parts))
    # the transform of a normal sum is 3e-4 there
    first = 4.0 / max(spread, 1e-300)
    if not first < math.pi / 2:
        return None
    edges = np.geomspace(first, math.pi, _INTERVALS + 1)
    bounds = np.zeros(_INTERVALS)
    for masses, _, count in parts:
        bounds += count * _log_bounds(masses, edges)
    # largest from each edge on
    bounds = np.maximum.accumulate(bounds[::-1])[::-1]
    small = np.flatnonzero(bounds <= math.log(_NEGLIGIBLE))
    if not len(small):
        return None
    return Band(float(edges[small[0]]), math.exp(bounds[small[0]]))


def _log_bounds(masses: Floats, edges: Floats) -> Floats:
    """Logs of bounds of the transform of one term, between each two edges.

    With X and X' independent terms, the square g of the absolute value is the mean of
    cos(f (X - X')) at the frequency f. So its second derivative is at most the mean of
    (X - X')², twice the variance v: between two samples d apart g is above the larger
    of the two by at most v d² / 4. And by Taylor's theorem it is at most
    1 - v f² + m f⁴ / 24, m the mean of (X - X')⁴.
    """
    # rounding leaves some masses a hair below zero: apart, at their full size
    negative = float(-masses[masses < 0].sum())
    masses = np.maximum(masses, 0.0)
    total = float(masses.sum())
    masses = masses / total
    at = np.arange(len(masses), dtype=float)
    at -= masses @ at
    variance, fourth = float(masses @ at**2), float(masses @ at**4)
    fourth = 2 * fourth + 6 * variance**2

    n = max(_SAMPLES[0] * len(masses), min(_SAMPLES[1] * len(masses), _MOST_SAMPLES))
    n = 2 * next_fast_len(n // 2 + 1, real=True)
    squares = np.abs(rfft(masses, n)) ** 2
    apart = 2 * math.pi / n
    # the largest sample of those that enclose an interval, both ends included
    low = np.floor(edges[:-1] / apart).astype(int)
    high = np.minimum(np.ceil(edges[1:] / apart).astype(int) + 1, len(squares))
    ranges = np.column_stack([np.minimum(low, high - 1), high]).ravel()
    largest = np.maximum.reduceat(np.append(squares, 0.0), ranges)[::2]
    sampled = largest + variance * apart**2 / 4
    # as a function of f² the second bound is convex, so the larger of its ends counts
    taylor = 1 - variance * edges**2 + fourth * edges**4 / 24
    taylor = np.maximum(taylor[:-1], taylor[1:])
    bound = np.minimum(np.minimum(sampled, taylor) + _BAND_ROUNDED, 1.0)
    return np.asarray(np.log(total * np.sqrt(bound) + negative))


def low_frequencies(masses: Floats, n: int, m: int) -> Complexes:
    """Transform of masses over `n` points at its first `m` frequencies.

    Parameters
    ----------
    masses : ndarray
        At the points 0, 1, ...

    Returns
    -------
    ndarray of complex of shape (m,)
        Summed up, so that the error is that of a sum of the masses: a convolution by a
        chirp would be as fast, but its error grows with the root of their number.
    """
    # exp(-i f (r b + j)) is a product, so that few exponentials are asked for
    b = math.isqrt(len(masses)) + 1
    table = np.pad(masses, (0, -len(masses) % b)).reshape(-1, b)
    k = np.arange(m, dtype=np.int64)
    within, rows = _phases(np.arange(b), k, n), _phases(b * np.arange(len(table)), k, n)
    inner = table @ within.real + 1j * (table @ within.imag)
    found: Complexes = (inner * rows).sum(axis=0)
    return found


def _phases(points: Indices, k: Indices, n: int) -> Complexes:
    """Factors exp(-2 pi i j k / n), exact in integers as far as the angle."""
    angles = np.multiply.outer(points, k) % n
    found: Complexes = np.exp(-2j * math.pi / n * angles)
    return found


#: Tilted mass that the window of a sum leaves out on each side.
_OUTSIDE = 1e-9


#: A mass further below zero than this is no rounding error.
_ROUNDED = 1e-9

#: Multiples of the tilt that a normal sum would need, among which that of another sum
#: is looked for.
_FACTORS = (0.05, 0.2, 0.5, 0.8, 1.1, 2.0, 5.0)


#: Points of a window from which on frequencies are looked for that need no computing,
#: and points at which the trade-off is then held.
_LONG, _COARSE = 2**15, 2**13

#: Frequencies that are worth computing one by one.
_FEW = 512

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
    masses : ndarray
        Under the first distribution. Rounding may leave some a hair below zero; they
        are kept, as only so the interpolation passes through the trade-off's own
        values.
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

    Nearly the least such epsilon >= 0 for a decreasing `curve`; infinity if there is
    none below 1e9. By `rounds` of refinement it is about 3 %, 0.1 %, ... above the
    least.
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
    """Tail quantiles of a pair's loss in the other order, and of its loss."""
    ranges = _RANGES.setdefault(pair, {})
    if tail not in ranges:
        end = tail_quantile(pair.delta, tail)
        start = end if pair.symmetric else tail_quantile(pair.reverse, tail)
        ranges[tail] = start, end
    return ranges[tail]


def on_grid(pair: Pair, step: float, tail: float, max_points: float) -> LossGrid:
    """Discretise a pair's privacy loss by connecting the dots of its trade-off.

    The trade-off of the grid is that of the pair at the points, `step` nats apart, and
    never below it in between or outside. A mass of `tail` may be moved to infinity. A
    grid of more than `max_points` points raises a GridTooLargeError.

    References
    ----------
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Connect the dots: tighter
    discrete approximations of privacy loss distributions.
    """
    return grid_of(step, *dots(pair, step, tail, max_points))


def dots(
    pair: Pair, step: float, tail: float, max_points: float
) -> tuple[int, Floats, Floats]:
    """First point of a pair's grid, the :func:`excess` at its points, and their masses.

    The dots are convex as functions of exp(epsilon), so that no mass is negative but by
    rounding.
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
    masses = masses_of(height, zero, step)
    near, is_bound = max(-first, last) * step < 600, not getattr(pair, "convex", True)
    if is_bound and not near:
        # signed masses would add up to no bound
        raise GridTooLargeError
    if near and (is_bound or masses.min() < -_ROUNDED):
        height = convex_envelope(height, zero, step)
        masses = masses_of(height, zero, step)
    return first, height, masses


def grid_of(step: float, first: int, height: Floats, masses: Floats) -> LossGrid:
    """Grid of dots; the trade-off that is left at the last one is at infinity."""
    # empty ends would only invite tilts towards them
    start, end = np.flatnonzero(masses)[[0, -1]]
    masses = masses[start : end + 1]
    return LossGrid(step, first + int(start), masses, float(height[-1]))


def masses_of(height: Floats, zero: int, step: float) -> Floats:
    """Masses of the loss whose trade-off exceeds that of equal distributions so much.

    Between points the trade-off is linear in exp(epsilon). Its slope there is minus the
    second distribution's mass of larger losses, so the differences of slopes are that
    distribution's masses, and exp(loss) times these the first one's (Doroshenko et al.,
    2022). Here in terms of `height`, in which nothing cancels.
    """
    # With x_i = exp(loss i) the mass at i is x_i times the change of slope there, and
    # x_(i+1) - x_i = x_i growth, x_i - x_(i-1) = x_i growth / (1 + growth).
    rise = np.diff(height)
    # of wide steps: one part in it is nothing beside one
    growth = math.expm1(min(step, 600.0))
    masses = np.zeros(len(height))
    masses[:-1] += rise / growth
    masses[1:] -= rise * (1 + 1 / growth)
    # before the first point the line to (0, 1), and at zero the kink of max(0, 1 - x)
    masses[0] -= height[0]
    masses[zero] += 1.0
    return masses


def convex_envelope(height: Floats, zero: int, step: float) -> Floats:
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

    References
    ----------
    Koskela, Jälkö and Honkela (2020), Computing tight differential privacy guarantees
    using FFT.
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
        """Return the trade-off of the sum, accurate where a tilt puts its mass."""
        tilted = [grid.tilted(tilt) for grid, _ in self.parts]
        counts = [count for _, count in self.parts]
        variances = [
            grid._moments(masses)[1]
            for (grid, _), masses in zip(self.parts, tilted, strict=True)
        ]
        here = self.cumulant(tilt)
        variance = float(np.dot(counts, variances))
        low, high = self._window(tilt, here, variance)
        if high - low + 2 > _LONG:
            points = np.array(variances) / self.step**2
            band = band_of(list(zip(tilted, points, counts, strict=True)))
            found = self._by_band(tilt, here, tilted, (low, high), band)
            if found is not None:
                return found
        if not high - low + 2 <= max_points:
            raise GridTooLargeError
        # The distribution of the sum is the product of the transforms of all terms;
        # with each term tilted, that of the tilted sum.
        n = next_fast_len(high - low + 2, real=True)
        transform = _product(counts, (_transform(masses, n) for masses in tilted))
        # entry 0 is the smallest sum: move it to its place in the window, modulo n
        summed = np.roll(irfft(transform, n), self._smallest - low)
        return Tail.of_masses(self, tilt, here, low, summed)

    def _by_band(
        self,
        tilt: float,
        cumulant: float,
        tilted: Sequence[Floats],
        window: tuple[int, int],
        band: Band | None,
    ) -> "Tail | None":
        """Trade-off of the sum at few of the grid's points, by few of its frequencies.

        What a stretch of points between two of these adds to the trade-off is, like
        each mass, a sum over the frequencies, with a geometric series for weights.
        None where the frequencies are not few.
        """
        if band is None:
            return None
        low, high = window
        n_points = _COARSE
        apart = -(-(high - low + 2) // (n_points - 1))
        n = n_points * apart
        m = math.ceil(band.limit * n / (2 * math.pi)) + 1
        if m > _FEW:
            return None
        counts = [count for _, count in self.parts]
        transform = _product(counts, (low_frequencies(each, n, m) for each in tilted))
        # one point before the window, at which none of its mass is passed
        low = (low - 1) // apart
        k = np.arange(m)
        # entry 0 is the smallest sum; exact in integers
        shift = [int(i) * (low * apart - self._smallest) % n for i in k]
        transform *= np.exp(2j * math.pi / n * np.array(shift, dtype=float))
        angle = np.asarray(2 * math.pi / n * k, dtype=np.float64)
        series = _series(angle, tilt * self.step, apart)
        shorter = _series(angle, (tilt + 1) * self.step, apart)
        above, below = (
            np.asarray(irfft(transform * weights, n_points)) / apart
            for weights in (series, shorter)
        )
        norm = math.sqrt((2 * np.abs(transform) ** 2).sum() / n)
        return Tail.of_stretches(
            self, tilt, cumulant, low, apart, (above, below), norm, band.beyond
        )


def _series(angle: Floats, decay: float, n: int) -> Complexes:
    """Sum of exp(d (i angle - decay)) over d = 1, ..., n, for a positive decay."""
    exponent = 1j * angle - decay
    found = np.exp(exponent) * np.expm1(n * exponent) / np.expm1(exponent)
    return np.asarray(found, dtype=np.complex128)


def _weights(
    tilt: float, cumulant: float, step: float, low: int, n: int
) -> tuple[float, int, Floats]:
    """Weights that undo a tilt, in units of an exponential, and the first to be held.

    Everything is in units of that at the last of `n` points, as far down as a float can
    follow: far below, weights would overflow.
    """
    losses = step * np.arange(low, low + n, dtype=float)
    exponent = tilt * (losses[-1] - losses)
    start = int(np.searchsorted(-exponent, -600.0))
    return cumulant - tilt * float(losses[-1]), start, np.exp(exponent[start:])


def _relative_error(total: Sum, n: int) -> float:
    """Relative error of a sum's transform over `n` points, and of its masses."""
    return float(np.finfo(float).eps * (total.count + 1) * math.log2(n + 2))


def _transform(masses: Floats, n: int) -> Complexes:
    """Transform of masses over `n` points."""
    # indices wrap around: fold what is longer than the window
    if len(masses) > n:
        masses = np.pad(masses, (0, -len(masses) % n)).reshape(-1, n).sum(axis=0)
    transform: Complexes = rfft(masses, n)
    return transform


def _product(counts: Sequence[int], factors: Iterable[Complexes]) -> Complexes:
    """Product of the factors, each to the power of its count.

    Powers of complex numbers take far longer than products, so that of all factors
    together is squared once for each binary digit of the counts.
    """
    digits: list[Complexes | None] = [None] * max(counts).bit_length()
    for count, factor in zip(counts, factors, strict=True):
        for digit in range(count.bit_length()):
            if count >> digit & 1:
                held = digits[digit]
                # not in place, as factors are shared by digits
                digits[digit] = factor if held is None else held * factor
    product = digits.pop()
    assert product is not None  # of the largest count
    product = product.copy()
    for held in reversed(digits):
        product *= product
        if held is not None:
            product *= held
    return product


class Tail:
    """Trade-off of a sum, read off the masses of its tilt over a window.

    The mass that wraps around from below the window adds to the trade-off. What is lost
    above it is at most the mass outside, and is added as well, and so is a bound on the
    rounding errors of the transform and its power. The trade-off `height` at the points
    is held in units of the exponential of `unit`, with bounds of its numerical `error`
    and of what is `wrapped`. Where all points of the grid are there it is `dense`:
    linear in exp(epsilon) between two of them, and not below that only.
    """

    def __init__(
        self,
        infinity: float,
        step: float,
        low: int,
        unit: float,
        height: Floats,
        error: Floats,
        wrapped: Floats,
        dense: bool = True,
    ) -> None:
        self.infinity, self.step, self.low = infinity, step, low
        self._unit, self._dense = unit, dense
        # Rounded up and down. A trade-off decreases, so bounds from either side may be
        # made to decrease as well: each is raised to the largest at its right. Raising
        # the lower one is sound, as the trade-off there is at least what it is later.
        self._height = np.maximum.accumulate((height + error + _OUTSIDE)[::-1])[::-1]
        # what wraps around from below the window is not above it
        self._certain = height - error - wrapped

    @classmethod
    def of_masses(
        cls, total: Sum, tilt: float, cumulant: float, low: int, masses: Floats
    ) -> Self:
        """Return the trade-off of a sum by its tilted masses at a window's points."""
        step = total.step
        unit, start, weights = _weights(tilt, cumulant, step, low, len(masses))
        masses = np.maximum(masses[start:], 0.0)
        # p(l) = exp(unit) masses(l) weights(l)
        untilted = masses * weights
        # sum of p(l) over l > e, added up from the small end
        above = np.cumsum(untilted[::-1])[::-1] - untilted
        # delta(e) is the sum over l > e of p(l) (1 - exp(e - l)); the sum of
        # p(l) exp(e - l) follows from that at e + step
        decay = math.exp(-step)
        below = scipy.signal.lfilter([0.0, decay], [1.0, -decay], untilted[::-1])[::-1]
        height = np.maximum(above - below, 0.0)
        # an error of the masses, relative in their l2 norm, meets weights that decay
        # with the tilt: by Cauchy and Schwarz, times the root of their squares' sum
        relative = _relative_error(total, len(masses))
        squares = min(len(masses), -1 / math.expm1(-2 * tilt * step))
        error = relative * np.linalg.norm(masses) * math.sqrt(squares) * weights
        error += (1e-9 + relative) * height
        wrapped = _OUTSIDE * weights
        return cls(total.infinity, step, low + start, unit, height, error, wrapped)

    @classmethod
    def of_stretches(
        cls,
        total: Sum,
        tilt: float,
        cumulant: float,
        low: int,
        apart: int,
        stretches: tuple[Floats, Floats],
        norm: float,
        beyond: float,
    ) -> Self:
        """Return the trade-off of a sum by what stretches of `apart` points add to it.

        Parameters
        ----------
        stretches : (ndarray, ndarray)
            Sums over the points after the begin of a stretch, up to that of the next,
            of the tilted masses times exp(-tilt d), and times exp(-(tilt + 1) d), at
            the distance d.
        norm : float
            L2 norm of the masses.
        beyond : float
            Bound of the same norm of what was left out of them.
        """
        step = total.step * apart
        unit, start, weights = _weights(tilt, cumulant, step, low, len(stretches[0]))
        ahead = np.maximum(stretches[0][start:], 0.0)
        behind = np.clip(stretches[1][start:], 0.0, ahead)
        # as for single masses; a stretch begins behind its first point
        above = np.cumsum((ahead * weights)[::-1])[::-1]
        decay = math.exp(-step)
        untilted = behind * weights
        below = scipy.signal.lfilter([1.0], [1.0, -decay], untilted[::-1])[::-1]
        height = np.maximum(above - below, 0.0)
        # Errors of the masses meet the weights of single points, and those of the
        # transform of the stretches the weights of these. The weights of both sums are
        # of one sign each, so it is twice the error of the larger at most.
        n = len(weights)
        relative = _relative_error(total, n)
        of_points = min(n * apart, -1 / math.expm1(-2 * tilt * total.step))
        of_stretches = min(n, -1 / math.expm1(-2 * tilt * step))
        share = (relative * norm + beyond) * math.sqrt(of_points)
        share += relative * float(np.linalg.norm(ahead)) * math.sqrt(of_stretches)
        error = 2 * share * weights + (1e-9 + relative) * height
        wrapped = _OUTSIDE * weights
        return cls(
            total.infinity, step, low + start, unit, height, error, wrapped, dense=False
        )

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
        # not below it between points that are not all of the grid's
        if height is not self._height and not self._dense:
            return self.step * (self.low + int(i))
        # between the last point above and the next, linear in exp(epsilon)
        left, right = height[i], height[i + 1]
        part = (left - target) / (left - right)
        if self.step < 600:
            beyond = math.log1p(part * math.expm1(self.step))
        else:  # whose exponential is beyond floats
            beyond = max(0.0, self.step + math.log(max(part, 1e-300)))
        epsilon: float = self.step * (self.low + i) + beyond
        return epsilon
