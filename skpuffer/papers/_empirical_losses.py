"""Privacy losses as sampled: drawn, put on a grid, and added up."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.noise.generalized_gaussian._loss import loss as privacy_loss
from skpuffer.privacy_loss._dominating_pairs import PoissonPair, log_mixed

__all__ = ["EmpiricalLosses", "samplers", "width_for"]

#: Log of the chance that a sum of losses as sampled leaves a grid that fits itself.
_RARE = math.log(1e-20)


def samplers(pair, beta, u):
    """Samplers of one step's loss, for each order of the worlds that differs."""
    unit = GeneralizedGaussianNoise(1.0, beta=beta)
    q = pair.rate if type(pair) is PoissonPair else 1.0

    def full(n, rng):
        return privacy_loss(unit.sample(n, rng), u, beta)

    def leaves(n, rng):
        # the mixture (1 - q) N(u) + q N(0) against N(u)
        there = rng.random(n) < q
        x = unit.sample(n, rng) + np.where(there, 0.0, u)
        return log_mixed(privacy_loss(x, u, beta), q)

    def joins(n, rng):
        return -log_mixed(privacy_loss(unit.sample(n, rng) + u, u, beta), q)

    return (full,) if q == 1 else (leaves, joins)


def width_for(losses, n_steps):
    """A grid that the sum of such losses hardly ever leaves: Bernstein's bound."""
    largest = float(np.max(np.abs(losses)))
    mean, variance = float(np.mean(losses)), float(np.var(losses))
    third = -_RARE * 2 * largest / 3
    swing = third + math.sqrt(third**2 - 2 * _RARE * n_steps * variance)
    return max(largest, min(n_steps * largest, n_steps * abs(mean) + swing))


@dataclass(frozen=True)
class EmpiricalLosses:
    """Masses on the points ``offset + mesh * i``, i = -m ... m, and at infinity."""

    mesh: float
    offset: float
    masses: np.ndarray
    infinity: float

    @classmethod
    def on(cls, losses, half_width, mesh, rejected):
        """Put the first half of losses on a grid; the second half says where it is."""
        first, second = np.array_split(losses, 2)
        # the ends lie between two points, so that every cell is whole
        m = max(1, math.ceil(half_width / mesh - 0.5))
        cells = np.clip(np.rint(first / mesh), -m, m).astype(int) + m
        masses = np.bincount(cells, minlength=2 * m + 1) / len(first)
        off = float(np.mean(second) - mesh * (masses @ np.arange(-m, m + 1)))
        return cls(mesh, min(max(off, -mesh / 2), mesh / 2), masses, rejected)

    def composed(self, n_steps):
        """Return the law of the sum of so many losses, modulo the grid."""
        if n_steps == 1:
            return self
        m = len(self.masses) // 2
        n = next_fast_len(len(self.masses), real=True)
        # index 0 first, negative ones wrapped around, so that the power stays centred
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

    def epsilon(self, delta):
        """Smallest epsilon >= 0 whose delta is at most so much, or infinity."""
        if delta <= self.infinity:
            return math.inf
        m = len(self.masses) // 2
        losses = self.offset + self.mesh * np.arange(-m, m + 1)
        above = losses > 0
        losses, masses = losses[above], (1 - self.infinity) * self.masses[above]
        # of losses above each point: their mass, and that less what exp(epsilon) undoes
        mass = np.cumsum(masses[::-1])[::-1]
        kept = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
        starts = np.concatenate([[0.0], losses[:-1]])
        # so far out that nothing is left of what epsilon undoes
        at_start = self.infinity + mass - np.exp(np.minimum(starts, 700.0)) * kept
        larger = np.flatnonzero(at_start > delta)
        if not len(larger):
            return 0.0
        i = larger[-1]
        # between two points delta is linear in exp(epsilon)
        left = mass[i] - (delta - self.infinity)
        return math.log(left / kept[i]) if left > 0 else float(starts[i])
