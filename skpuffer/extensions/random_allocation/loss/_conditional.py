"""Conditional composition of random bins: rows of the releases one after another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import expit, log_softmax, ndtr, ndtri, xlogy
from sklearn.utils import gen_batches

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import Pair
from skpuffer.kernel.distribution import Reversed, Steps, _delta_on, _epsilon_on
from skpuffer.kernel.loss_grid import GridTooLargeError
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import (
    Floats,
    check_finite,
    check_non_negative,
    check_option,
    check_positive,
    check_probability,
)
from skpuffer.kernel.poisson_groups import _mixed_delta, _Mixture

# Epsilons times components of a mixture that are treated at once: bounds the memory.
_BLOCK = 2**16

#: Without the record.
_NOTHING = _Mixture(0.0, np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class StepPair:
    """The mixture of N(u, 1) over some means u, and N(0, 1).

    Weights sum to one; means increase and are not negative.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]

    symmetric = False

    @property
    def spread(self) -> float:
        """Rough standard deviation of the loss in nats."""
        # that of two Gaussians whose Pearson divergence is exp(spread²) - 1
        weights, means = np.array(self.weights), np.array(self.means)
        excess = np.expm1(np.minimum(np.multiply.outer(means, means), 700.0))
        return math.sqrt(math.log1p(weights @ excess @ weights))

    @cached_property
    def _mixture(self) -> _Mixture:
        weights, means = np.array(self.weights), np.array(self.means)
        # a weight that no trade-off can tell from none: the mixture's law expects one
        rest = weights[means == 0].sum()
        rest = math.log(rest) if rest > 0 else -690.0
        kept = (means > 0) & (weights > 0)
        return _Mixture(rest, weights[kept], means[kept])

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the mixture from N(0, 1)."""
        return self._divergence(epsilon, ahead=True)

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of N(0, 1) from the mixture."""
        return self._divergence(epsilon, ahead=False)

    def _divergence(self, epsilon: Floats, ahead: bool) -> Floats:
        epsilon = np.asarray(epsilon, float)
        if len(self.means) == 1:
            return gaussian_delta(epsilon, np.asarray(self.means[0]))
        mixture = self._mixture
        if len(mixture.means) == 1:
            return _sampled_delta(epsilon, mixture, ahead)
        # N(0, 1) is nowhere denser than the mixture's component at zero allows
        most = math.inf if ahead else -mixture.rest
        inside = np.flatnonzero(epsilon < most)
        value = np.zeros_like(epsilon)
        size = max(1, _BLOCK // len(self.means))
        for part in gen_batches(len(inside), size) if len(inside) else ():
            at = inside[part]
            both = (mixture, _NOTHING) if ahead else (_NOTHING, mixture)
            value[at] = _mixed_delta(epsilon[at, np.newaxis], *both)
        return value


def _sampled_delta(epsilon: Floats, mixture: _Mixture, ahead: bool) -> Floats:
    """Divergence where one component is not at zero: its own, at another epsilon."""
    weight, mean = mixture.weights[0], mixture.means[0]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if ahead:
            own = np.log1p(np.expm1(epsilon) / weight)
            return np.asarray(weight * gaussian_delta(own, mean))
        # what is left of N(0, 1) without exp(epsilon) times its part in the mixture
        left = np.maximum(-np.expm1(epsilon + mixture.rest), 0.0)
        own = epsilon + np.log(weight) - np.log(left)
        return np.where(left > 0, left * gaussian_delta(own, mean), 0.0)


#: Temperatures of the laws over which bounds are optimised (Schuchardt and Kalinin,
#: 2026, Appendix F).
TEMPERATURES = tuple(10.0 ** np.array([-1, -0.5, 0, 0.5, 1]))

# Step of a grid of losses, in parts of the root mean square of the rows' spreads. It
# adds to the variance of each row at most a quarter of its square, so a thousandth.
_STEP = 0.06

# Bytes that a bound takes for each bin and law, and MiB that all of them may.
_BYTES, _MOST_MEMORY = 32, 4000

# Points of a grid of losses.
_MAX_POINTS = 2.0**21


def conditional_epsilon(
    means: Any,
    noise: float,
    delta: float,
    direction: str | None = None,
    share: float = 0.5,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> float:
    """Bound epsilon at a delta by conditional composition.

    Given the releases so far, the next row is a mixture by the posterior of the
    record's bin. Except on pasts of some small probability, each row is dominated by a
    mixture with fixed weights, and their product by composition.

    Parameters
    ----------
    means : array-like of shape (n_bins, n_rows)
        Contributions of the record to each row of the releases from each bin; not
        negative.
    noise : float
        Standard deviation of each row.
    delta : float
        In (0, 1).
    direction : {'remove', 'add'}, default=None
        None takes the larger of both.
    share : float, default=0.5
        Share of `delta` that pays for pasts on which the weights do not hold.
    temperatures : tuple of float
        Temperatures of further laws that tighten the bounds. None (``()``) is faster.

    Returns
    -------
    float
        At least zero in nats.

    Raises
    ------
    ValueError
        If `means` are none, or so many that the bounds would not fit in memory.

    Notes
    -----
    The natural and the reversed order of the rows are tried. Unlike the paper, and for
    soundness: the reference of the direction "remove" is the mixture over all bins, not
    over those from the position on, and the probability of failure is split over all
    bounds of all rows.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemma 4.1 and Theorem 4.6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.privacy_loss.allocation import conditional_epsilon
    >>> round(conditional_epsilon(np.eye(50), 2.0, 1e-5), 2)
    0.42
    """
    delta, share = check_probability(delta=delta), check_probability(share=share)
    found = _accounts(means, noise, share * delta, direction, temperatures)
    return max(
        min(float(rows.epsilon(delta - rows.failure)) for rows in orders)
        for orders in found
    )


def conditional_delta(
    means: Any,
    noise: float,
    epsilon: float,
    delta: float,
    direction: str | None = None,
    share: float = 0.5,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> float:
    """Bound delta at an epsilon by conditional composition, in view of a target.

    Parameters
    ----------
    means, noise : array-like of shape (n_bins, n_rows) and float
        As for :func:`conditional_epsilon`, as are the others.
    epsilon : float
        At least zero in nats.
    delta : float
        The target, of which `share` is paid whatever is found.
    direction : {'remove', 'add'}, default=None
        None takes the larger of both.
    share : float, default=0.5
    temperatures : tuple of float

    Returns
    -------
    float
        In [0, 1].
    """
    delta, share = check_probability(delta=delta), check_probability(share=share)
    epsilon = check_non_negative(epsilon=epsilon)
    found = _accounts(means, noise, share * delta, direction, temperatures)
    return max(
        min(1.0, *(float(rows.delta(epsilon, delta) + rows.failure) for rows in orders))
        for orders in found
    )


def _accounts(
    means: Any,
    noise: float,
    failure: float,
    direction: str | None,
    temperatures: tuple[float, ...],
) -> Iterator[Iterator[_Rows]]:
    """Rows of each direction asked for, in each order."""
    check_option((None, "remove", "add"), direction=direction)
    orders = _orders(means, temperatures)
    for add in (False, True) if direction is None else (direction == "add",):
        yield (_Rows.of(hazards, noise, failure, add) for hazards in orders)


def _orders(means: Any, temperatures: tuple[float, ...]) -> tuple[Hazards, ...]:
    """Hazards with the rows in the natural order and in the reversed one."""
    means = check_finite(means=means)
    if means.ndim != 2 or not len(means):
        raise value_error("allocation.means_shape_wrong", shape=means.shape)
    if np.any(means < 0):
        raise value_error("allocation.means_negative", least=means.min())
    temperatures = tuple(check_positive(temperatures=t) for t in temperatures)
    return _prepared(means.tobytes(), means.shape, temperatures)


@lru_cache(maxsize=8)
def _prepared(
    data: bytes, shape: tuple[int, int], temperatures: tuple[float, ...]
) -> tuple[Hazards, ...]:
    # calibration asks for the same means with ever other noise
    means = merged(np.frombuffer(data).reshape(shape))
    if np.count_nonzero(means) == means.shape[1] and len(np.unique(means)) == 2:
        # independent noise: all pasts are equally far apart, so that every law is
        # uniform, and one order is as good as another
        return (Hazards.of(means),)
    # a bound for each bin of each row that adds more than the least
    n_bounds = int((means > means.min(axis=0)).sum())
    size = n_bounds * (1 + len(temperatures)) * len(means) * _BYTES / 2**20
    if size > _MOST_MEMORY:
        raise value_error(
            "allocation.means_exceed_memory",
            n_rows=means.shape[1],
            n_bins=len(means),
            n_bounds=n_bounds,
            size=size,
            most_memory=_MOST_MEMORY,
        )
    both = (means,) if means.shape[1] < 2 else (means, means[:, ::-1])
    return tuple(Hazards.of(each, temperatures) for each in both)


class _Rows(NamedTuple):
    """Dominating pairs of all rows, in one direction."""

    steps: Steps
    spread: float
    failure: float

    @classmethod
    def of(cls, hazards: Hazards, noise: float, failure: float, add: bool) -> _Rows:
        """Bound the posterior at each row, except with probability `failure`."""
        noise = check_positive(noise=noise)
        n_bounds = len(hazards.row)
        # all bounds hold together except with the sum of what each may fail with
        weights = hazards.weights(noise, failure / max(1, n_bounds), add)
        pairs = Counter(
            _pair(row.means / noise, each)
            for row, each in zip(hazards.rows, weights, strict=True)
        )
        squares = [count * pair.spread**2 for pair, count in pairs.items()]
        return cls(
            tuple(
                (cast(Pair, Reversed(pair) if add else pair), count)
                for pair, count in pairs.items()
            ),
            math.sqrt(sum(squares) / max(1, len(hazards.rows))),
            failure if n_bounds else 0.0,
        )

    def epsilon(self, delta: float) -> float:
        """Epsilon of all rows together, rounded up."""
        return max(0.0, self._on_grid(partial(_epsilon_on, self.steps, delta)))

    def delta(self, epsilon: float, roughly: float) -> float:
        """Delta of all rows together, rounded up, given its rough size."""
        found = self._on_grid(partial(_delta_on, self.steps, epsilon, roughly))
        return min(found, 1.0)

    def _on_grid(self, ask: Callable[[float, float], float]) -> float:
        if not self.spread:
            return 0.0
        step = _STEP * self.spread
        # every step bounds from above
        for _ in range(20):
            try:
                return ask(step, _MAX_POINTS)
            except GridTooLargeError:
                step *= 2
        return math.inf


def _pair(means: Floats, weights: Floats) -> StepPair:
    distinct, index = np.unique(means, return_inverse=True)
    total = np.bincount(index.ravel(), weights)
    # what rounding leaves of the sum belongs to the largest mean, and never nothing:
    # the safe side
    total[-1] = max(total[-1], 1.0 - total[:-1].sum(), 1e-300)
    return StepPair(tuple(total.tolist()), tuple(distinct.tolist()))


# -- how likely a record's bin is, given the releases so far: bounds that hold often ---
# At each row of the releases the bins are sorted by what they add to it. The posterior
# hazard of a bin is its probability given that no bin after it is the record's; hazards
# that are larger everywhere put more weight on bins that add more. In terms of the past
# x the hazard at position i is ``1 / (1 + (i - 1) exp(L))`` with L the log of the mean
# density of the bins before it over its own. So a lower bound on L that holds except
# with some probability bounds the hazard.
#
# Bins with the same past as the i-th, a share f of those before it, enter L exactly:
# ``L = log(f + (1 - f) exp(L'))`` with L' over the rest. And L' is at least the mean of
# the log densities under any distribution psi of these, less its divergence from the
# uniform one, which is Gaussian.


class Row(NamedTuple):
    """One row of the releases, as those who know the past see it.

    `means` are the sorted contributions of the bins. `hazards` are those of the
    positions that need no bound, and NaN elsewhere.
    """

    means: Floats
    hazards: Floats


@dataclass(frozen=True, eq=False)
class Hazards:
    """The basis of all bounds on hazards of a run, whatever the noise.

    Parameters
    ----------
    row, position : ndarray of int of shape (n_bounds,)
        Where a bound is needed; positions start from zero.
    tied : ndarray of shape (n_bounds,)
        Share of the bins before that have the same past.
    along : ndarray of shape (n_bounds, n_laws, n_bins)
        Inner products of each bin's past with the mean past under each law psi less
        that of the position's bin.
    gap : ndarray of shape (n_bounds, n_laws)
        Half of the latter's squared norm less the mean of the others'.
    distance, divergence : ndarray of shape (n_bounds, n_laws)
        Distance of the two pasts, and divergence of psi from the uniform distribution.
    """

    rows: list[Row]
    row: np.ndarray
    position: np.ndarray
    tied: Floats
    along: Floats
    gap: Floats
    distance: Floats
    divergence: Floats

    @classmethod
    def of(cls, means: Floats, temperatures: tuple[float, ...] = ()) -> Hazards:
        """Look where bounds are needed, and what they depend on.

        `means` (n_bins, n_rows): contribution of each bin to each row, in any order of
        the rows. `temperatures`: laws psi beside the uniform one are proportional to
        the exponential of minus the squared distance from the position's bin over
        these.
        """
        rows, found = [], []
        n_bins, n_rows = means.shape
        same = np.zeros(n_bins, int)  # bins of the same past share a label
        for n in range(n_rows):
            order = np.argsort(means[:, n], kind="stable")
            sorted_means = means[order, n]
            hazards = np.full(n_bins, np.nan)
            # among bins that add the least it does not matter which one it is
            hazards[sorted_means == sorted_means[0]] = 1.0
            for i in np.flatnonzero(np.isnan(hazards)):
                bin_, before = order[i], order[:i]
                others = before[same[before] != same[bin_]]
                if not len(others):
                    # all had the same past: nothing is known of them
                    hazards[i] = 1 / (i + 1)
                    continue
                past = means[:, :n]
                tied = 1 - len(others) / i
                found.append((n, i, tied, *_laws(past, bin_, others, temperatures)))
            rows.append(Row(sorted_means, hazards))
            pairs = np.column_stack([same, means[:, n]])
            same = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        if not found:
            n_laws = 1 + len(temperatures)
            empty, by_law = np.zeros(0, int), np.zeros((0, n_laws))
            along = np.zeros((0, n_laws, n_bins))
            return cls(rows, empty, empty, np.zeros(0), along, by_law, by_law, by_law)
        columns = [np.array(column) for column in zip(*found, strict=True)]
        return cls(rows, *columns)

    def tails(self, noise: float, chance: float, add: bool) -> Floats:
        """Return lower bounds on L, (n_bounds,), each of which fails with a chance.

        The chance is under the first distribution of the direction: with the record in
        a random bin ("remove"), or without it ("add"). `noise` is a standard deviation.
        """
        centre = self.gap / noise**2 - self.divergence
        spread = self.distance / noise
        if add:
            found = (centre + spread * ndtri(chance)).max(axis=1)
        else:
            found = _mixture_tail(
                self.along / noise**2 + centre[..., np.newaxis],
                np.maximum(spread, 1e-300)[..., np.newaxis],
                chance,
            )
        with np.errstate(divide="ignore"):
            tails: Floats = np.logaddexp(
                np.log(self.tied), np.log1p(-self.tied) + found
            )
        return tails

    def weights(self, noise: float, chance: float, add: bool) -> list[Floats]:
        """Return weights (n_bins,) of the sorted bins at each row, which hold together.

        Except with probability n_bounds times `chance`, they put more weight on bins
        that add more than the posterior does.
        """
        tails = self.tails(noise, chance, add)
        # up: the safe side of what rounding does to some hundred operations
        bounds = np.minimum(expit(-np.log(self.position) - tails) * (1 + 1e-10), 1.0)
        hazards = np.array([row.hazards for row in self.rows])
        hazards = hazards.reshape(len(self.rows), self.along.shape[-1])
        hazards[self.row, self.position] = bounds
        after = np.cumprod(1 - hazards[:, :0:-1], axis=1)[:, ::-1]
        after = np.column_stack([after, np.ones(len(hazards))])
        return list(hazards * after)


def _laws(
    past: Floats, bin_: int, others: np.ndarray, temperatures: tuple[float, ...]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return `along`, `gap`, `distance` and `divergence` of one bound, by the law."""
    apart = past[others] - past[bin_]
    squares = (apart**2).sum(axis=1)
    logits = [np.zeros(len(others)), *(-squares / t for t in temperatures)]
    laws = np.exp(log_softmax(np.array(logits), axis=1))
    # of laws that do not sum to one by rounding, the divergence would be off as well
    laws /= laws.sum(axis=1, keepdims=True)
    step = laws @ apart
    norms = (past**2).sum(axis=1)
    gap = (norms[bin_] - laws @ norms[others]) / 2
    divergence = np.log(len(others)) + xlogy(laws, laws).sum(axis=1)
    return (
        step @ past.T,
        gap,
        np.sqrt((step**2).sum(axis=1)),
        np.maximum(divergence, 0.0),
    )


def _mixture_tail(centres: Floats, spreads: Floats, chance: float) -> Floats:
    """Return the largest t whose mean of tails is at most `chance`, rounded down."""
    # at the lower end no bin's own tail is above the chance
    low = (centres + spreads * ndtri(chance)).max(axis=1).min(axis=1)
    high = np.maximum((centres + 9 * spreads).max(axis=(1, 2)), low)
    for _ in range(54):
        middle = (low + high) / 2
        at = middle[:, np.newaxis, np.newaxis]
        # whichever law is best may depend on the bin
        likely = ndtr((at - centres) / spreads).min(axis=1).mean(axis=1)
        fine = likely <= chance
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return low


def merged(means: Floats) -> Floats:
    """Merge columns that are multiples of each other, which leaves the pair as it is.

    Columns of zeros are left out. No inner product of two rows is less than before.
    """
    norms = np.sqrt((means**2).sum(axis=0))
    means, norms = means[:, norms > 0], norms[norms > 0]
    shapes = means / norms
    _, first, group = np.unique(
        np.round(shapes.T, 9), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    columns = []
    for label in np.argsort(first):
        chosen = group == label
        # of columns that differ by rounding, the largest entries
        largest = shapes[:, chosen].max(axis=1)
        columns.append(largest * np.sqrt((norms[chosen] ** 2).sum()))
    return np.array(columns).reshape(len(columns), len(means)).T
