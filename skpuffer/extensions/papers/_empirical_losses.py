"""Empirical privacy-loss distributions: sampled, put on a grid, and composed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from skpuffer.kernel.pairs import PoissonPair, log_mixed
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.noise.generalized_gaussian._loss import loss as privacy_loss

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.kernel.pairs import ShiftPair

__all__ = ["EmpiricalLosses", "Sampler", "samplers", "width_for"]

#: Draws so many losses.
Sampler: TypeAlias = "Callable[[int, np.random.Generator], Floats]"

#: Log of the probability that a sum of sampled losses leaves the grid made for it.
_RARE = math.log(1e-20)


def samplers(
    pair: ShiftPair | PoissonPair, beta: float, u: float
) -> tuple[Sampler, ...]:
    """Samplers of one step's privacy loss, one for each direction.

    Parameters
    ----------
    pair : ShiftPair or PoissonPair
        The dominating pair of the step; the two directions of a shift are the same.
    beta : float
        Shape of the generalised Gaussian noise.
    u : float
        Shift at scale one.

    Returns
    -------
    tuple of callable of (n, rng)
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

    Parameters
    ----------
    mesh : float
        Distance of the points, in nats.
    offset : float
    masses : ndarray of shape (2 m + 1,)
        Given that the loss is finite.
    infinity : float
        Mass at infinity.
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
