"""Caps of the discrepancy by draws and tails, which no certificate rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_order,
    check_positive,
    check_probability,
)
from skpuffer.kernel.pairs import PoissonPair, ShiftPair, log_mixed
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.noise._generalized_gaussian_loss import loss as privacy_loss


class MonteCarloCaps(NamedTuple):
    """Caps of a batch's discrepancy from draws.

    `slack` is by how much a mean or a probability of the draws may be off.
    """

    mean_square: float
    tail: int
    slack: float
    confidence: float


def monte_carlo_caps(
    draws: ArrayLike,
    batch_size: int,
    *,
    tail: float,
    failure: float = 0.05,
    n_instances: int = 1,
) -> MonteCarloCaps:
    """Return caps of a batch's discrepancy from draws of coupled tables and batches.

    Parameters
    ----------
    draws : array-like of shape (n_draws,) or (n_pairs, n_draws)
        How many of a batch's records differ, at each draw. For several pairs of
        secrets, one in each row, the largest cap counts.
    batch_size : int
    tail : float
        Probability by which the discrepancy may exceed the second cap; in (0, 1).
    failure : float, default=0.05
        Probability that a cap does not hold, by the draws.
    n_instances : int, default=1
        Pairs and priors for which it is to hold at once.

    Returns
    -------
    MonteCarloCaps
        A named tuple: `mean_square` caps the mean of the discrepancy's square. The
        discrepancy exceeds `tail` with probability `tail` at most. Either was raised by
        `slack`. `confidence` is one less the failure.

    Notes
    -----
    A diagnostic: draws average over the coupling, and a promise is about its worst pair
    of tables. The excess over a tail counts against a delta, never at a Rényi order.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Lemmas D.1 and D.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.papers import monte_carlo_caps
    >>> draws = np.repeat([0, 1, 2], [700, 200, 100])
    >>> found = monte_carlo_caps(draws, batch_size=20, tail=0.1)
    >>> round(found.mean_square, 2), found.tail
    (17.78, 2)
    """
    size, count = (
        check_count(batch_size=batch_size),
        check_count(n_instances=n_instances),
    )
    tail, failure = check_probability(tail=tail), check_probability(failure=failure)
    values = np.atleast_2d(np.asarray(draws, float))
    if (
        values.ndim > 2
        or not values.size
        or not np.all((values >= 0) & (values <= size))
    ):
        raise value_error("papers.draws_out_of_range", batch_size=size)
    n_draws = values.shape[1]
    # Hoeffding's inequality, both ways and for all instances at once
    slack = math.sqrt(math.log(2 * count / failure) / (2 * n_draws))
    square = np.max(np.mean(values**2, axis=1)) + size**2 * slack
    most = size
    if tail > slack:
        rank = math.ceil((1 - (tail - slack)) * n_draws)
        most = int(np.sort(values, axis=1)[:, rank - 1].max())
    return MonteCarloCaps(min(float(square), float(size**2)), most, slack, 1 - failure)


def tail_cap(
    batch_size: int, chance: float, tail: float, *, exact: bool = True
) -> float:
    """Return the number of independent mismatches that few batches exceed.

    Parameters
    ----------
    batch_size : int
    chance : float
        Probability that one record differs; in (0, 1).
    tail : float
        Probability of more than the cap; in (0, 1).
    exact : bool, default=True
        The binomial quantile. False is the published bound, by Hoeffding's inequality.

    Returns
    -------
    float

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, eq. 41.

    Examples
    --------
    >>> from skpuffer.papers import tail_cap
    >>> tail_cap(512, 4e-4, 1e-5), round(tail_cap(512, 4e-4, 1e-5, exact=False), 2)
    (4.0, 54.49)
    """
    size = check_count(batch_size=batch_size)
    chance, tail = check_probability(chance=chance), check_probability(tail=tail)
    if exact:
        return float(binom.isf(tail, size, chance))
    return size * chance + math.sqrt(size / 2 * math.log(1 / tail))


def mismatch_mean_square(
    batch_size: int, chance: float, n_records: int | None = None
) -> float:
    """Return the mean squared discrepancy of records that differ independently.

    Parameters
    ----------
    batch_size : int
    chance : float
        Probability that one record differs; in (0, 1).
    n_records : int, default=None
        Size of the table that batches are drawn from with replacement. None is a batch
        of different records.

    Returns
    -------
    float

    Notes
    -----
    A diagnostic: the mean is over the tables too, and a promise is about the worst
    pair. The published formula is that of different records, not of draws with
    replacement.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, eq. 40.

    Examples
    --------
    >>> from skpuffer.papers import mismatch_mean_square
    >>> round(mismatch_mean_square(20, 0.1), 3)
    5.8
    """
    size, chance = check_count(batch_size=batch_size), check_probability(chance=chance)
    both = chance**2
    if n_records is not None:
        # two draws meet in one record with this chance
        again = 1 / check_count(n_records=n_records)
        both = again * chance + (1 - again) * chance**2
    return size * chance + size * (size - 1) * both


def realised_mean_square(n_records: int, count: int, rate: float) -> float:
    """Return the mean squared share of a Poisson batch that differs, by its own size.

    Parameters
    ----------
    n_records : int
    count : int
        Number of the table's records that differ.
    rate : float
        Probability that a record is in a batch; in (0, 1).

    Returns
    -------
    float
        Empty batches count as nothing.

    Notes
    -----
    A formula only: no run here divides by the size that was drawn, which is secret.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix E.

    Examples
    --------
    >>> from skpuffer.papers import realised_mean_square
    >>> round(realised_mean_square(100, 10, 0.2), 7)
    0.0138373
    """
    n = check_count(n_records=n_records)
    count, rate = check_count(count=count), check_probability(rate=rate)
    if count > n:
        raise value_error("papers.count_exceeds_records", n_records=n, count=count)
    differ, same = np.arange(count + 1)[:, None], np.arange(n - count + 1)
    masses = binom.pmf(differ, count, rate) * binom.pmf(same, n - count, rate)
    shares = differ / np.maximum(1, differ + same)
    return float(np.sum(masses * shares**2))


def tail_route_epsilon(
    epsilon: float, alpha: float, delta: float, exceeded: float
) -> float:
    """Return the epsilon at a delta of a Rényi cost by caps that may be exceeded.

    Parameters
    ----------
    epsilon, alpha : float
        Rényi cost in nats while all caps hold, and its order.
    delta : float
        In (0, 1).
    exceeded : float
        Probability that a cap is exceeded, summed over the steps; less than `delta`.

    Returns
    -------
    float
        Of an (epsilon, delta) Pufferfish promise, if the caps are right.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix D.

    Examples
    --------
    >>> from skpuffer.papers import tail_route_epsilon
    >>> round(tail_route_epsilon(1.0, 16.0, 1e-5, 1e-6), 4)
    1.7746
    """
    epsilon, alpha = check_positive(epsilon=epsilon), check_order(alpha=alpha)
    delta, exceeded = (
        check_probability(delta=delta),
        check_probability(exceeded=exceeded),
    )
    if exceeded >= delta:
        raise value_error("papers.delta_below_exceeded", delta=delta, exceeded=exceeded)
    return epsilon + math.log(1 / (delta - exceeded)) / (alpha - 1)


# -- empirical privacy-loss distributions: sampled, put on a grid, and composed --------


#: Draws so many losses.
Sampler: TypeAlias = "Callable[[int, np.random.Generator], Floats]"

#: Log of the probability that a sum of sampled losses leaves the grid made for it.
_RARE = math.log(1e-20)


def samplers(
    pair: ShiftPair | PoissonPair, beta: float, u: float
) -> tuple[Sampler, ...]:
    """Return samplers of one step's privacy loss, one for each direction.

    `u` is the shift at scale one, `beta` the shape of the noise.
    """
    unit = GeneralizedGaussianNoise(1.0, beta=beta)
    q = pair.rate if type(pair) is PoissonPair else 1.0

    def full(n: int, rng: np.random.Generator) -> Floats:
        return privacy_loss(unit.sample(n, rng), u, beta)

    def leaves(n: int, rng: np.random.Generator) -> Floats:
        # a record leaves: the mixture (1 - q) N(u) + q N(0) against N(u)
        there = rng.random(n) < q
        x = unit.sample(n, rng) + np.where(there, 0.0, u)
        return log_mixed(privacy_loss(x, u, beta), q)

    def joins(n: int, rng: np.random.Generator) -> Floats:
        # a record joins: N(u) against that mixture, so minus the loss of the other way
        return -log_mixed(privacy_loss(unit.sample(n, rng) + u, u, beta), q)

    return (full,) if q == 1 else (leaves, joins)


def width_for(losses: Floats, n_steps: int) -> float:
    """Half width of a grid that the sum of such losses hardly ever leaves."""
    # Bernstein, for deviations of at most 2 M = 2 largest: P(sum - mean > t) is at most
    # exp(-t^2 / (2 n v + 4 M t / 3)), solved for the t at which that is exp(_RARE)
    largest = float(np.max(np.abs(losses)))
    mean, variance = float(np.mean(losses)), float(np.var(losses))
    third = -_RARE * 2 * largest / 3
    swing = third + math.sqrt(third**2 - 2 * _RARE * n_steps * variance)
    return max(largest, min(n_steps * largest, n_steps * abs(mean) + swing))


@dataclass(frozen=True)
class EmpiricalLosses:
    """Distribution on the points ``offset + mesh * i``, i = -m ... m, and infinity.

    `masses` (2 m + 1,) are given that the loss is finite.
    """

    mesh: float
    offset: float
    masses: Floats
    infinity: float

    @classmethod
    def on(
        cls, losses: Floats, half_width: float, mesh: float, rejected: float
    ) -> EmpiricalLosses:
        """Put the first half of losses on a grid; the second half corrects its mean."""
        first, second = np.array_split(losses, 2)
        # the half width is an odd number of half meshes, so that every cell is whole
        m = max(1, math.ceil(half_width / mesh - 0.5))
        cells = np.clip(np.rint(first / mesh), -m, m).astype(int) + m
        masses = np.bincount(cells, minlength=2 * m + 1) / len(first)
        off = float(np.mean(second) - mesh * (masses @ np.arange(-m, m + 1)))
        return cls(mesh, min(max(off, -mesh / 2), mesh / 2), masses, rejected)

    def composed(self, n_steps: int) -> EmpiricalLosses:
        """Return the distribution of the sum of so many losses, modulo the grid."""
        if n_steps == 1:
            return self
        m = len(self.masses) // 2
        n = next_fast_len(len(self.masses), real=True)
        # circular convolution by FFT: index 0 first and negative ones wrapped around,
        # so that the power stays centred
        wrapped = np.zeros(n)
        wrapped[: m + 1] = self.masses[m:]
        wrapped[n - m :] = self.masses[:m]
        total = np.maximum(irfft(rfft(wrapped) ** n_steps, n), 0.0)
        masses = np.roll(total, n // 2)[n // 2 - m : n // 2 + m + 1]
        return EmpiricalLosses(
            self.mesh,
            n_steps * self.offset,
            masses,
            -math.expm1(n_steps * math.log1p(-self.infinity)),
        )

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 whose delta is at most so much, or infinity."""
        if delta <= self.infinity:
            return math.inf
        m = len(self.masses) // 2
        losses = self.offset + self.mesh * np.arange(-m, m + 1)
        above = losses > 0
        losses, masses = losses[above], (1 - self.infinity) * self.masses[above]
        # delta(epsilon) = E[1 - exp(epsilon - loss)]_+: for the losses from each point
        # on, the sums of masses and of masses times exp(-loss)
        mass = np.cumsum(masses[::-1])[::-1]
        kept = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
        starts = np.concatenate([[0.0], losses[:-1]])
        # delta at the start of each cell; beyond exp(700) the second sum underflows
        at_start = self.infinity + mass - np.exp(np.minimum(starts, 700.0)) * kept
        larger = np.flatnonzero(at_start > delta)
        if not len(larger):
            return 0.0
        i = larger[-1]
        # between two points delta is linear in exp(epsilon)
        left = mass[i] - (delta - self.infinity)
        if left <= 0:
            return float(starts[i])
        # where losses are too large for exponentials, so is epsilon
        return math.log(left / kept[i]) if kept[i] > 0 else math.inf
