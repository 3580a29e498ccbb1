"""How a query's output moves under a coupling of two worlds, read off each fact."""

import math
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from scipy.linalg import orthogonal_procrustes

from skpuffer.distributions import Discrete, Gaussian, Support
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.scenarios import CoupledSamples, OutputDistributions
from skpuffer.transport import quantile_coupling, transport_plan

from ._coupling_curve import AtomMoves, GaussianMoves

__all__ = ["Couplings", "couplings"]

# Exponents this far apart are not compared by their exponentials but as they are.
_SPAN = 600.0
# Only couplings that cost nearly as much as the worst are worth another plan.
_BINDING = 0.8


@dataclass(frozen=True, eq=False)
class Couplings:
    """A coupling for each pair of worlds, or the laws to make one of.

    Parameters
    ----------
    fixed : tuple of AtomMoves or GaussianMoves
    plans : tuple of (Distribution, Distribution)
        Discrete laws of several coordinates, whose best coupling depends on the noise.
    scale : float
        The output moves by this factor times the laws' own coordinates.
    slack : float
        Every move may be longer by this.
    norm : float
    units : ndarray of shape (dim,) or float
    mass_error : float
        Bound on the relative error of the laws' masses.
    """

    fixed: tuple = field(repr=False)
    plans: tuple = field(default=(), repr=False)
    scale: float = 1.0
    slack: float = 0.0
    norm: float = 2.0
    units: object = 1.0
    mass_error: float = 0.0

    def moves(self):
        """Return the moves of all couplings, plans being the best for squared moves.

        Returns
        -------
        tuple of AtomMoves or GaussianMoves
        """
        return self._lengthened(self.fixed) + tuple(
            self._planned(u, v, 2.0) for u, v in self.plans
        )

    def improved(self, moves, noise, alpha, shift, skip=()):
        """Plan the couplings anew that cost the most, for the cost of a noise.

        Parameters
        ----------
        moves : tuple of AtomMoves or GaussianMoves
        noise : Noise
        alpha : float
            Finite Rényi order.
        shift : Shift
        skip : sequence of int, default=()
            Positions of plans that have been planned for this noise already.

        Returns
        -------
        moves : tuple of AtomMoves or GaussianMoves
        planned : tuple of int
            Positions of the plans that were planned anew.
        """
        moments = [each.log_moment(noise, alpha, shift) for each in moves]
        first = len(self.fixed)
        planned = [
            k
            for k in range(first, len(moves))
            if k not in skip and moments[k] >= _BINDING * max(moments)
        ]
        better = list(moves)
        cost = _exponential_cost(noise, alpha, self.scale)
        for k in planned:
            found = self._planned(*self.plans[k - first], cost)
            if found.log_moment(noise, alpha, shift) < moments[k]:
                better[k] = found
        return tuple(better), tuple(planned)

    def _planned(self, u, v, cost):
        plan = transport_plan(
            u.points,
            v.points,
            u.weights,
            v.weights,
            cost,
            self.norm,
            coordinate_scale=np.broadcast_to(self.units, (u.dim,)),
        )
        steps = self.scale * plan.displacements
        (moves,) = self._lengthened((atoms(steps, plan.mass, self.norm, self.units),))
        return moves

    def _lengthened(self, moves):
        if self.slack == 0:
            return moves
        return tuple(each.widened(self.slack) for each in moves)


def atoms(steps, masses, norm, units):
    """Return the moves of a discrete coupling, by its steps of shape (k, dim)."""
    radii = np.linalg.norm(steps / units, ord=norm, axis=1)
    return AtomMoves(radii, np.asarray(masses, dtype=float), steps)


def ball(radius):
    """Return moves of which only the largest length is known."""
    return AtomMoves(np.array([float(radius)]), np.ones(1))


@singledispatch
def couplings(fact, moved, release, norm):
    """Return what a fact says of the moves of the output.

    Parameters
    ----------
    fact : Fact
    moved : SensitivityBound
        What the same fact says of the longest move.
    release : QueryRelease
    norm : float

    Returns
    -------
    Couplings
    """
    return Couplings((ball(moved.radius),))


@couplings.register
def _(fact: CoupledSamples, moved, release, norm):
    if fact.certified:
        # what is known with confidence is the longest move, not the mean of any cost
        return Couplings((ball(moved.radius),))
    units = release.unit_array
    return Couplings(
        tuple(
            atoms(u - v, np.full(len(u), 1 / len(u)), norm, units)
            for *_, u, v in fact.draws
        )
    )


@couplings.register
def _(fact: OutputDistributions, moved, release, norm):
    units = release.unit_array
    fixed, plans, error = [], [], 0.0
    for *_, u, v in fact.pairs_of_distributions():
        error = max(error, mass_error(u, v))
        if has_masses(u) and has_masses(v):
            if u.dim > 1:
                plans.append((u, v))
                continue
            lengths, masses = _on_the_line(u, v)
            steps = fact.scale * lengths[:, None]
            fixed.append(atoms(steps, masses, norm, units))
            continue
        distance = cached_distribution_distance(u, v, norm, release.units, math.inf)
        between = isinstance(u, Gaussian) and isinstance(v, Gaussian)
        if fact.corners or not between:
            # the cost of noise need not be largest at a corner, that of a ball is
            fixed.append(ball(fact.scale * distance))
        elif math.isfinite(distance):
            step = fact.scale * (u.mean - v.mean)
            fixed.append(atoms(step[None, :], [1.0], norm, units))
        else:
            fixed.append(_between_gaussians(u, v, fact.scale, units))
    return Couplings(
        tuple(fixed),
        tuple(plans),
        fact.scale,
        release.total_slack(norm),
        norm,
        units,
        error,
    )


def left_out_text(mass):
    """Say in a certificate that a mass is left out."""
    return (
        f"for each pair of secrets under each prior, a mass of {mass:g} of the "
        "output's law is left out: nothing is promised about it"
    )


def mass_error(u, v):
    """Bound on the relative error of the masses of two laws: zero if they are known."""
    return max(getattr(u, "error", 0.0), getattr(v, "error", 0.0))


def has_masses(law):
    """Whether a law is one of atoms whose masses are known or estimated."""
    return isinstance(law, Discrete) and not isinstance(law, Support)


@remembered_with(2)
def _on_the_line(u, v):
    """Lengths of the monotone coupling's moves and their masses, each length once."""
    x, y, mass = quantile_coupling(u.points[:, 0], v.points[:, 0], u.weights, v.weights)
    lengths, at = np.unique(np.abs(x - y), return_inverse=True)
    return lengths, np.bincount(at, weights=mass)


def _between_gaussians(u, v, scale, units):
    """Return a linear coupling of two Gaussians, that of W_2 in the given units."""
    outer = np.outer(*np.broadcast_arrays(units, units, np.empty(u.dim))[:2])
    first, second = (_square_root(law.covariance / outer) for law in (u, v))
    rotation, _ = orthogonal_procrustes(second, first)
    left = first - second @ rotation
    return GaussianMoves(scale * (u.mean - v.mean), scale**2 * left @ left.T * outer)


def _square_root(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def _exponential_cost(noise, alpha, scale):
    """What a displacement adds to the mean that bounds the Rényi divergence."""

    def cost(displacements):
        shape = displacements.shape[:-1]
        steps = scale * displacements.reshape(-1, displacements.shape[-1])
        exponent = (alpha - 1) * AtomMoves.costs(noise, alpha, steps)
        exponent = np.minimum(exponent, np.finfo(float).max / 4).reshape(shape)
        if np.ptp(exponent) > _SPAN:
            return exponent
        return np.exp(exponent - exponent.max())

    return cost
