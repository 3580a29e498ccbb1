"""Privacy curve of the best of a random number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import brentq

from skpuffer.exceptions import value_error
from skpuffer.kernel.composed_curves import costs_at
from skpuffer.kernel.curves import PrivacyCurve, renyi_to_approximate, renyi_to_delta
from skpuffer.kernel.distribution import ORDERS
from skpuffer.kernel.numbers import Floats, check_order, check_probability, check_real
from skpuffer.kernel.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BestRunCurve", "RandomRuns"]


if TYPE_CHECKING:
    from skpuffer.kernel.curves import PrivacyCurve
    from skpuffer.kernel.numbers import Floats


#: Epsilons at which a curve is read. Fewer prove less, and nothing false.
_READ = 25

#: Deltas, in units of the probability that matters, beyond which nothing is gained.
_NEGLIGIBLE = 1e-4


def most_probable(curve: PrivacyCurve, matters: float) -> tuple[Floats, Floats]:
    """Bound an event's probability on one table by that on a neighbouring one.

    Let p and p' be an event's probabilities on two neighbouring tables. Then
    ``p' <= exp(e) p + delta(e)`` for every e >= 0. The complement gives
    ``p' <= 1 - exp(-e) (1 - delta(e) - p)``. The least of finitely many of these lines,
    and of 1, is a concave bound of p' by p, in pieces that are straight. It is tightest
    around p = `matters`; its corners p and bound (n_corners,) are returned.
    """
    far = float(curve.epsilon(_NEGLIGIBLE * matters))
    pure = float(curve.renyi(math.inf))
    far = min(far, pure)
    # beyond this a line passes 1 at once, and exp(-e) is nothing
    far = min(far, 50.0) if math.isfinite(far) else 50.0
    # nearer to each other where the curve bends, around zero
    epsilons = far * np.linspace(0.0, 1.0, _READ) ** 1.5
    deltas = np.array([float(curve.delta(float(e))) for e in epsilons])
    if math.isfinite(pure):
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    deltas = np.clip(deltas, 0.0, 1.0)
    slopes = np.concatenate([np.exp(epsilons), np.exp(-epsilons), [0.0]])
    heights = np.concatenate([deltas, 1 - np.exp(-epsilons) * (1 - deltas), [1.0]])
    return _least_of_lines(slopes, heights)


def _least_of_lines(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """Corners in [0, 1] of the least of some lines, by slopes and heights at zero."""
    # by falling slopes, of which the lowest of each leads
    order = np.lexsort((heights, -slopes))
    kept: list[tuple[float, float]] = []
    starts: list[float] = []  # where each becomes the least one
    for slope, height in zip(slopes[order], heights[order], strict=True):
        start = 0.0
        if kept and kept[-1][0] == slope:
            continue
        while kept:
            steep, low = kept[-1]
            start = (height - low) / (steep - slope)
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        kept.append((float(slope), float(height)))
        starts.append(float(start))
    within = [start for start in starts if 0 < start < 1]
    corners = np.unique([0.0, *within, 1.0])
    # the least of all lines there, whatever rounding did to the order of them
    bound = np.min(np.outer(corners, slopes) + heights, axis=1)
    return corners, np.clip(bound, corners, 1.0)


#: What rounding may take off a cost, relatively and in nats.
_DIGITS = 1e-9


@dataclass(frozen=True)
class BestRunCurve(Plain, kind="best_run"):
    """Privacy curve of the best of a random number of runs of one mechanism.

    Runs are independent given the table. Only the best one leaves, by an order that the
    runs' own output gives: the highest noisy score, ties broken by coins. How many
    there were must not leave.

    Parameters
    ----------
    curve : curve
        Curve of one run, its score included, whichever candidate it is of.
    runs : RandomRuns
        Distribution of their number.

    Notes
    -----
    *The density.* Let F(y) be the probability that one run on a table x is no better
    than y, coins included. Let f be the generating function of the number of runs. The
    best run has the density ``f'(F(y)) dQ(y)`` for Q the distribution of one run. On a
    neighbouring table it is ``f'(F'(y)) dQ'(y)``. The event "a run is better than y"
    has the probabilities p = 1 - F(y) and p' = 1 - F'(y). The curve of one run bounds
    p' by p, and so with ``s = log f'`` from above

    - the Rényi cost at an order a, by that of one run plus the largest of
      ``(a s(1 - p) - (a - 1) s(1 - p')) / (a - 1)`` over all p' that the curve allows:
      Lemma 7 of Papernot and Steinke.
    - the trade-off: with c the largest of ``s(1 - p) - s(1 - p')`` the delta at epsilon
      is at most the mean number of runs times that of one run at ``epsilon - c``, as
      ``f'(F) dQ - exp(epsilon) f'(F') dQ' <= f'(F) (dQ - exp(epsilon - c) dQ')`` and
      ``f'(F) <= f'(1)``, the mean.

    Whichever is smaller holds.

    *Amplification comes last.* Under a belief about one record the runs are *not*
    independent given the secret: all of them read the same record. Given the record
    they are. So the theorem holds for `curve` that of a record that becomes any other,
    and the belief amplifies the result once (``OverlapCurve``). To amplify each run
    first would promise what does not hold.

    References
    ----------
    Papernot and Steinke (2022), Hyperparameter tuning with Rényi differential privacy,
    Lemma 7 and Theorems 2 and 6; Liu and Talwar (2019), Private selection from private
    candidates; Koskela, Redberg and Wang (2024), Privacy profiles for private
    selection.

    Examples
    --------
    >>> from skpuffer.privacy_loss import BestRunCurve, GaussianCurve, RandomRuns
    >>> one = GaussianCurve(0.2)
    >>> best = BestRunCurve(one, RandomRuns(mean=10.0, shape=1.0))
    >>> round(one.epsilon(1e-5), 3), round(best.epsilon(1e-5), 3)
    (0.726, 1.189)
    """

    curve: PrivacyCurve
    runs: RandomRuns

    gaussian_mu: ClassVar[None] = None

    @property
    def orders(self) -> tuple[float, ...]:
        """Orders at which Rényi costs are kept for composition."""
        return _table(self)[0]

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order, in nats."""
        alpha = check_order(alpha=alpha)
        return float(_costs(self, np.array([alpha]))[0])

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon, rounded up."""
        epsilon = check_real(epsilon=epsilon)
        orders, costs = _table(self)
        found = [1.0, renyi_to_delta(orders, costs, epsilon)]
        rest = epsilon - self._ratio
        if rest >= 0:
            found.append(self.runs.mean * float(self.curve.delta(rest)))
        return min(found)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 known at a delta, rounded up."""
        delta = check_probability(delta=delta)
        by_orders = renyi_to_approximate(*_table(self), delta)
        one = float(self.curve.epsilon(delta / self.runs.mean * (1 - _DIGITS)))
        return min(by_orders, one + self._ratio)

    @property
    def _ratio(self) -> float:
        """Largest log ratio of the densities of one quantile on the two tables."""
        (found,) = _largest(self.runs, *_chances(self), np.array([math.inf]))
        return float(found) * (1 + _DIGITS) + _DIGITS


# no data enters: curves are of public facts
@lru_cache(maxsize=256)
def _chances(best: BestRunCurve) -> tuple[Floats, Floats]:
    """Corners of the bound on the probabilities of an event, for one run."""
    # quantiles matter where the density of the best one bends
    return most_probable(best.curve, 1 / best.runs.mean)


@lru_cache(maxsize=256)
def _table(best: BestRunCurve) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Orders and the Rényi costs at them."""
    orders = np.append(ORDERS, math.inf)
    costs = _costs(best, orders)
    # curves of composed noise know no costs at orders that their grids do not hold
    known = np.isfinite(costs)
    if not known.any():
        return (math.inf,), (math.inf,)
    return tuple(orders[known].tolist()), tuple(costs[known].tolist())


def _costs(best: BestRunCurve, orders: Floats) -> Floats:
    """Rényi costs at some orders."""
    one = costs_at(best.curve, tuple(orders.tolist()))
    more = _largest(best.runs, *_chances(best), orders)
    return np.asarray(one) + more * (1 + _DIGITS) + _DIGITS


def _largest(runs: RandomRuns, p: Floats, bound: Floats, orders: Floats) -> Floats:
    """Return the largest of ``(a s(1 - p) - (a - 1) s(1 - p')) / (a - 1)`` by order."""
    a = orders[:, np.newaxis]
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.where(np.isinf(a), 1.0, a / (a - 1))

    def value(at: Floats, other: Floats) -> Floats:
        return first * runs.log_slope(at) - runs.log_slope(other)

    found = np.max(value(p, bound), axis=1)
    # Of Poisson numbers it is linear along a piece, and largest at a corner. Of the
    # others it is a difference of logarithms of w and of w' = m w + c, for w = stop +
    # (1 - stop) p, and its derivative has the sign of -(m w + a c): where c is negative
    # there is one more candidate in between.
    if not runs.is_poisson:
        stop = runs.stop
        w, other = stop + (1 - stop) * p, stop + (1 - stop) * bound
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # corners may be so near to each other that w is the same
            slope = np.diff(other) / np.diff(w)
            height = other[:-1] - slope * w[:-1]
            top = np.where(height < 0, -a * height / slope, w[:-1])
        top = np.clip(np.nan_to_num(top, nan=0.0, posinf=2.0), w[:-1], w[1:])
        at = np.clip((top - stop) / (1 - stop), p[:-1], p[1:])
        # along the piece
        reached = bound[:-1] + np.diff(bound) / np.diff(p) * (at - p[:-1])
        found = np.maximum(found, np.max(value(at, reached), axis=1))
    most: Floats = np.maximum(found, 0.0)
    return most


# -- random number of runs, of which the best one leaves -------------------------------


#: Means and shapes that are taken: beyond them rounding is all there is, or time.
LEAST_MEAN, MOST_RUNS, MOST_SHAPE = 1 + 1e-6, 1_000_000, 1000

#: Logarithms of powers of the parameter that are nearer to zero count as zero.
_FLAT = 1e-12

#: Logarithms of masses below this are those of numbers that are never drawn.
_NEVER = -700.0


@dataclass(frozen=True)
class RandomRuns(Plain, kind="random_runs"):
    """Distribution of the number of runs of a mechanism, of which the best one leaves.

    A negative binomial or Poisson distribution, given that it is not zero.

    Parameters
    ----------
    mean : float
        Expected number of runs, above 1 and at most a million.
    shape : float
        Shape of the negative binomial distribution, up to 1000 or infinite. 0 is the
        logarithmic, 1 the geometric and infinity the Poisson distribution. The larger,
        the less the number varies.

    Notes
    -----
    With f the probability generating function, the best run has the quantile u of one
    run with the density ``f'(u)``; see :class:`BestRunCurve`. It is ``f'(1 - p) = mean
    (stop / (stop + (1 - stop) p))**(shape + 1)``, where `stop` is the parameter of the
    negative binomial distribution. For the Poisson one it is
    ``f'(1 - p) = mean exp(-rate p)``.

    References
    ----------
    Papernot and Steinke (2022), Hyperparameter tuning with Rényi differential privacy,
    Definition 1.

    Examples
    --------
    >>> from skpuffer.privacy_loss import RandomRuns
    >>> runs = RandomRuns(mean=10.0, shape=1.0)
    >>> round(runs.stop, 6), round(runs.chance_of_missing(0.1), 6)
    (0.1, 0.473684)
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        mean = check_real(mean=self.mean)
        if not LEAST_MEAN <= mean <= MOST_RUNS:
            raise value_error("search.runs_mean_out_of_range", mean=self.mean)
        shape = float(self.shape)
        if not (0 <= shape <= MOST_SHAPE or shape == math.inf):
            raise value_error(
                "search.runs_shape_out_of_range",
                most_shape=MOST_SHAPE,
                shape=self.shape,
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "shape", shape)

    @property
    def is_poisson(self) -> bool:
        """Whether it is the Poisson distribution."""
        return math.isinf(self.shape)

    @cached_property
    def stop(self) -> float:
        """Parameter in (0, 1) of the negative binomial distribution; 0 of Poisson."""
        if self.is_poisson:
            return 0.0
        # the mean falls to one as it grows, and is at least one over it where it is
        # small, but for a logarithm
        root: float = brentq(
            lambda log: math.log(_mean(math.exp(log), self.shape) / self.mean),
            math.log(1e-2 / self.mean**2),
            math.log1p(-1e-12),
            xtol=1e-14,
            rtol=1e-14,
        )
        return math.exp(root)

    @cached_property
    def rate(self) -> float:
        """Parameter of the Poisson distribution before zero is ruled out; else inf."""
        if not self.is_poisson:
            return math.inf
        root: float = brentq(
            lambda rate: rate / -math.expm1(-rate) - self.mean,
            1e-12,
            self.mean,
            xtol=1e-14,
            rtol=1e-14,
        )
        return root

    def log_slope(self, p: Floats) -> Floats:
        """Return ``log(f'(1 - p))``, p the probability that one run is better."""
        p = np.asarray(p, dtype=float)
        if self.is_poisson:
            return math.log(self.mean) - self.rate * p
        fallen: Floats = np.log1p((1 - self.stop) / self.stop * p)
        return math.log(self.mean) - (self.shape + 1) * fallen

    def chance_of_missing(self, share: float) -> float:
        """Return the probability that no run is one of a share of all candidates."""
        share = float(share)
        if self.is_poisson:
            # (exp(rate (1 - share)) - 1) / (exp(rate) - 1)
            whole = -math.expm1(-self.rate)
            rest = -math.expm1(-self.rate * (1 - share))
            return math.exp(-self.rate * share) * rest / whole
        first = math.log1p(-(1 - self.stop) * (1 - share))
        last = math.log(self.stop)
        if self.shape * last > -_FLAT:
            return first / last
        # (1 - (1 - stop) x)^-shape - 1 over stop^-shape - 1
        return math.exp(self.shape * (last - first)) * (
            math.expm1(self.shape * first) / math.expm1(self.shape * last)
        )

    def masses(self, covered: float) -> Floats:
        """Return the probabilities of 1, 2, ... runs, up to a total below 1."""
        found: list[float] = []
        total = 0.0
        for mass in self._each_mass():
            if total >= covered:
                break
            found.append(mass)
            total += mass
        return np.array(found)

    def _each_mass(self) -> Iterator[float]:
        """Yield the probabilities of 1, 2, ... runs until they are next to nothing."""
        # in logarithms, as the first ones may be less than a float can hold
        log_mass, k = float(self.log_slope(np.array(1.0))), 1
        while log_mass > _NEVER or k < self.mean:
            yield math.exp(log_mass)
            log_mass += math.log(self._ratio(k))
            k += 1

    def _ratio(self, k: int) -> float:
        """Probability of k + 1 runs over that of k."""
        if self.is_poisson:
            return self.rate / (k + 1)
        return (1 - self.stop) * (k + self.shape) / (k + 1)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a number of runs, at least 1."""
        left, k = float(rng.random()), 0
        for mass in self._each_mass():
            k += 1
            if left < mass:
                break
            left -= mass
        return k


def _mean(stop: float, shape: float) -> float:
    """Mean of a negative binomial distribution, given that it is not zero."""
    least = shape * math.log(stop)
    # shape (1 - stop) / (stop (1 - stop^shape)), without its cancellations
    spread = -math.log(stop) if least > -_FLAT else -math.expm1(least) / shape
    return (1 - stop) / stop / spread
