"""Couplings of the output between neighbouring tables, read off each kind of fact."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import TypeGuard

import numpy as np
from scipy.linalg import orthogonal_procrustes

from skpuffer.distributions import Discrete, Distribution, Gaussian, Support
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._lattice_coupling import monotone_gaps, on_one_lattice
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import Statement
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import Floats, lengths_of
from skpuffer.kernel.sums import SensitivityBound
from skpuffer.noise import Noise, Shift
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    CoupledSamples,
    OutputDistributions,
    RecordDistributions,
)
from skpuffer.transport import quantile_coupling, transport_plan

from ._coupling_curve import AtomMoves, GaussianMoves, Moves, of_balls

__all__ = ["Couplings", "RecordCouplings", "couplings"]

#: What a plan pays for a displacement: a power of its length, or a function.
_Cost = float | Callable[[Floats], Floats]

# Costs whose exponents are this far apart are compared by the exponents themselves.
_SPAN = 600.0
# Only couplings within this share of the worst one's cost are planned anew.
_BINDING = 0.8
# Beyond so many, lengths are rounded up to this many an octave: each costs a search.
_LENGTHS = 2**7
_PER_OCTAVE = 2**5


@dataclass(frozen=True, eq=False)
class Couplings:
    """Couplings, one for each pair of output distributions, some still to be planned.

    Parameters
    ----------
    fixed : tuple of AtomMoves or GaussianMoves
        Couplings that are good for any noise.
    plans : tuple of (Discrete, Discrete)
        Pairs of several coordinates, whose best coupling depends on the noise and is
        planned for it.
    scale : float
        The output moves by this factor times the distributions' own coordinates.
    slack : float
        Every move may be longer by this.
    norm : float
    units : ndarray of shape (dim,) or float
    mass_error : float
        Bound on the relative error of the distributions' masses.
    """

    fixed: tuple[Moves, ...] = field(repr=False)
    plans: tuple[tuple[Discrete, Discrete], ...] = field(default=(), repr=False)
    scale: float = 1.0
    slack: float = 0.0
    norm: float = 2.0
    units: Floats | float = 1.0
    mass_error: float = 0.0

    def moves(self) -> tuple[Moves, ...]:
        """Return the moves of all couplings; plans are those of W_2.

        Returns
        -------
        tuple of AtomMoves or GaussianMoves
        """
        cost = self._squared()
        planned = tuple(self._planned(u, v, cost) for u, v in self.plans)
        return self._lengthened(self.fixed) + planned

    def improved(
        self,
        moves: tuple[Moves, ...],
        noise: Noise,
        alpha: float,
        shift: Shift,
        skip: Sequence[int] = (),
    ) -> tuple[tuple[Moves, ...], tuple[int, ...]]:
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
        # any coupling gives a valid bound, so replanning can only sharpen it; plans of
        # pairs far below the worst one would change nothing, and a plan takes long
        moments = [each.log_moment(noise, alpha, shift) for each in moves]
        first = len(self.fixed)
        planned = [
            k
            for k in range(first, len(moves))
            if k not in skip and moments[k] >= _BINDING * max(moments)
        ]
        better = list(moves)
        cost = _exponential_cost(partial(self._costs, noise, alpha, shift), alpha)
        for k in planned:
            found = self._planned(*self.plans[k - first], cost)
            # where exponentials would overflow the cost planned for is not the mean's
            # own, so the new plan need not be better
            if found.log_moment(noise, alpha, shift) < moments[k]:
                better[k] = found
        return tuple(better), tuple(planned)

    def _squared(self) -> _Cost:
        """Return a cost by which plans are good before the noise is known."""
        return 2.0

    def _costs(
        self, noise: Noise, alpha: float, shift: Shift, displacements: Floats
    ) -> Floats:
        """Rényi cost of displacements of the distributions, of shape (k, dim)."""
        return AtomMoves.costs(noise, alpha, self.scale * displacements)

    def _planned(self, u: Discrete, v: Discrete, cost: _Cost) -> Moves:
        """Return the moves of an optimal plan: for a power of the norm, or a cost."""
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

    def _lengthened(self, moves: tuple[Moves, ...]) -> tuple[Moves, ...]:
        # outputs that are exact up to a tolerance only move by as much more; lengths
        # alone are kept then, so widen nothing if there is no need
        if self.slack == 0:
            return moves
        return tuple(each.widened(self.slack) for each in moves)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordCouplings(Couplings):
    """Couplings of one record's contribution, by which the output moves at most so far.

    Parameters
    ----------
    release : QueryRelease
        That bounds how far the output moves with a contribution.
    """

    release: QueryRelease

    def _reach(self, displacements: Floats) -> Floats:
        """Largest lengths of the output's moves for displacements, of shape (k, m)."""
        lengths = lengths_of(displacements, self.release.shift_norm(self.norm))
        found, at = np.unique(lengths, return_inverse=True)
        if len(found) > _LENGTHS:
            # a fraction is between a half and one
            fractions, exponents = np.frexp(lengths)
            fractions = np.ceil(fractions * 2 * _PER_OCTAVE) / (2 * _PER_OCTAVE)
            found, at = np.unique(np.ldexp(fractions, exponents), return_inverse=True)
        moves = [
            self.release.record_move(length, self.norm, "replace")
            for length in found.tolist()
        ]
        reached: Floats = np.asarray(moves, dtype=float)[at]
        return reached

    def _squared(self) -> _Cost:
        def squared(displacements: Floats) -> Floats:
            flat = displacements.reshape(-1, displacements.shape[-1])
            costs: Floats = self._reach(flat) ** 2
            return costs.reshape(displacements.shape[:-1])

        return squared

    def _costs(
        self, noise: Noise, alpha: float, shift: Shift, displacements: Floats
    ) -> Floats:
        # in which direction the output moves is not known: as the costliest of a ball
        balls = of_balls(
            lambda ball: noise.renyi(alpha, ball), shift, self._reach(displacements)
        )
        return balls

    def _planned(self, u: Discrete, v: Discrete, cost: _Cost) -> Moves:
        norm = self.release.shift_norm(self.norm)
        plan = transport_plan(u.points, v.points, u.weights, v.weights, cost, norm)
        reached = AtomMoves(self._reach(plan.displacements), plan.mass)
        (moves,) = self._lengthened((reached,))
        return moves


def atoms(
    steps: Floats, masses: Floats, norm: float, units: Floats | float
) -> AtomMoves:
    """Return the moves of a discrete coupling, given its displacements.

    Parameters
    ----------
    steps : ndarray of shape (k, dim)
    masses : ndarray of shape (k,) or (n_couplings, k)
    norm : float
    units : ndarray of shape (dim,) or float
        Unit of each coordinate, in which lengths are measured.

    Returns
    -------
    AtomMoves
    """
    radii = lengths_of(steps / units, norm)
    return AtomMoves(radii, np.asarray(masses, dtype=float), steps)


def ball(radius: float) -> AtomMoves:
    """Return moves of which only the largest length is known."""
    return AtomMoves(np.array([float(radius)]), np.ones(1))


@singledispatch
def couplings(
    fact: Fact, sensitivity: SensitivityBound, release: QueryRelease, norm: float
) -> Couplings:
    """Return a coupling for each pair of secrets, from what a fact says of the output.

    Parameters
    ----------
    fact : Fact
    sensitivity : SensitivityBound
        What the same fact says of the longest move.
    release : QueryRelease
    norm : float

    Returns
    -------
    Couplings
    """
    return Couplings((ball(sensitivity.radius),))


@couplings.register
def _(
    fact: CoupledSamples,
    sensitivity: SensitivityBound,
    release: QueryRelease,
    norm: float,
) -> Couplings:
    if fact.certified:
        # with confidence, certified samples bound every move except a small mass of
        # them; what that mass adds to a mean they cannot tell
        return Couplings((ball(sensitivity.radius),))
    units = release.unit_array
    # each draw of the joint samples is an atom of the same mass
    return Couplings(
        tuple(
            atoms(u - v, np.full(len(u), 1 / len(u)), norm, units)
            for *_, u, v in fact.draws
        )
    )


@couplings.register
def _(
    fact: OutputDistributions,
    sensitivity: SensitivityBound,
    release: QueryRelease,
    norm: float,
) -> Couplings:
    units = release.unit_array
    pairs = [(u, v) for *_, u, v in fact.pairs_of_distributions()]
    on_lattice = lattice_moves(pairs)
    if on_lattice is not None:
        steps, masses, error = on_lattice
        return Couplings(
            (atoms(fact.scale * steps, masses, norm, units),),
            scale=fact.scale,
            slack=release.total_slack(norm),
            norm=norm,
            units=units,
            mass_error=error,
        )
    fixed: list[Moves] = []
    plans: list[tuple[Discrete, Discrete]] = []
    error = 0.0
    for u, v in pairs:
        error = max(error, mass_error(u, v))
        if has_masses(u) and has_masses(v):
            # in several coordinates the best plan depends on the cost, hence on the
            # noise, which is not known yet
            if u.dim > 1:
                plans.append((u, v))
                continue
            # on one coordinate the monotone coupling is optimal for every convex cost
            # of the move, whatever the noise
            lengths, masses = _on_the_line(u, v)
            steps = fact.scale * lengths[:, None]
            fixed.append(atoms(steps, masses, norm, units))
            continue
        # Atoms without masses (a support), and continuous distributions: W_inf is
        # known, a mean over the moves is not, except between Gaussians.
        distance = cached_distribution_distance(u, v, norm, release.units, math.inf)
        if fact.corners or not (isinstance(u, Gaussian) and isinstance(v, Gaussian)):
            # Corners stand for a convex set of moves where the cost is convex in the
            # move. A norm is; the cost of a noise need not be, so take that of a ball.
            fixed.append(ball(fact.scale * distance))
        elif math.isfinite(distance):
            # one covariance (W_inf is infinite between unequal ones): the coupling that
            # moves the mean and nothing else
            step = fact.scale * (u.mean - v.mean)
            fixed.append(atoms(step[None, :], np.ones(1), norm, units))
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


@couplings.register
def _(
    fact: RecordDistributions,
    sensitivity: SensitivityBound,
    release: QueryRelease,
    norm: float,
) -> Couplings:
    # A coupling of one record's contributions is one of the tables, the others being
    # independent of the secret. Given both tables the outputs are no further apart than
    # the release says, and what that costs may be averaged: divergences of mixtures by
    # one law are no larger, by joint convexity, as in Theorem 4.5.
    fixed: list[Moves] = []
    plans: list[tuple[Discrete, Discrete]] = []
    error = 0.0
    for *_, u, v in fact.pairs_of_distributions():
        error = max(error, mass_error(u, v))
        if has_masses(u) and has_masses(v):
            plans.append((u, v))
            continue
        # of supports the longest move alone is known
        compared_in = fact.compared_in(release, norm)
        far = cached_distribution_distance(u, v, *compared_in, release.shift_ceiling)
        fixed.append(ball(fact.output_move(far, release, norm)))
    return RecordCouplings(
        tuple(fixed),
        tuple(plans),
        slack=release.total_slack(norm),
        norm=norm,
        units=release.unit_array,
        mass_error=error,
        release=release,
    )


def left_out_text(mass: float) -> Statement:
    """Sentence of the certificate on a mass that is left out."""
    return Statement("assume.mass_left_out", mass=mass)


def mass_error(u: Distribution, v: Distribution) -> float:
    """Bound on the relative error of two distributions' masses: zero if known."""
    return max(getattr(u, "error", 0.0), getattr(v, "error", 0.0))


def has_masses(distribution: Distribution) -> TypeGuard[Discrete]:
    """Whether a distribution has atoms, of masses that are known or estimated."""
    return isinstance(distribution, Discrete) and not isinstance(distribution, Support)


def lattice_moves(
    pairs: Sequence[tuple[Distribution, Distribution]],
) -> tuple[Floats, Floats, float] | None:
    """Moves of the monotone couplings of lattice sums, with masses pair by pair.

    A lattice is a line, on which they are optimal for every convex cost of the move.

    Parameters
    ----------
    pairs : sequence of (Distribution, Distribution)

    Returns
    -------
    steps : ndarray of shape (n_moves, dim)
        From the shortest to the longest.
    masses : ndarray of shape (n_pairs, n_moves)
    error : float
        Bound on the relative error of the masses of the distributions.

    Notes
    -----
    None where the pairs are no sums of one lattice, or exact ones.
    """
    if not on_one_lattice(pairs):
        return None
    found = monotone_gaps(pairs)
    if found is None:
        return None
    masses, error = found
    steps = np.multiply.outer(np.arange(masses.shape[1]), pairs[0][0].direction)
    return steps, masses, error


@remembered_with(2)
def _on_the_line(u: Discrete, v: Discrete) -> tuple[Floats, Floats]:
    """Lengths and masses of the moves of the monotone coupling, each length once."""
    # noise is symmetric, so a move counts by its length; equal lengths are merged, as
    # sums on a lattice have far fewer lengths than pairs of atoms
    x, y, mass = quantile_coupling(u.points[:, 0], v.points[:, 0], u.weights, v.weights)
    lengths, at = np.unique(np.abs(x - y), return_inverse=True)
    return lengths, np.bincount(at, weights=mass).astype(float)


def _between_gaussians(
    u: Gaussian, v: Gaussian, scale: float, units: Floats | float
) -> GaussianMoves:
    """Return the optimal coupling of two Gaussians for W_2, in the given units.

    With one standard normal vector z behind both, x = m + A z and y = n + B R z for
    square roots A, B of the covariances and any rotation R. The mean squared move is
    least for the R that brings B R nearest to A (orthogonal Procrustes).

    References
    ----------
    Dowson and Landau (1982), The Fréchet distance between multivariate normal
    distributions.
    """
    # in units: coordinate i is divided by units[i], hence entry (i, j) of a covariance
    # by units[i] units[j]
    outer = np.outer(*np.broadcast_arrays(units, units, np.empty(u.dim))[:2])
    first, second = (_square_root(each.covariance / outer) for each in (u, v))
    # x - y = m - n + (A - B R) z: a Gaussian of covariance (A - B R)(A - B R)', which
    # is given back in the units of the output
    rotation, _ = orthogonal_procrustes(second, first)
    left = first - second @ rotation
    return GaussianMoves(scale * (u.mean - v.mean), scale**2 * left @ left.T * outer)


def _square_root(covariance: Floats) -> Floats:
    """Return the symmetric square root."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return root


def _exponential_cost(
    costs: Callable[[Floats], Floats], alpha: float
) -> Callable[[Floats], Floats]:
    """Return the cost of a displacement whose mean bounds the Rényi divergence.

    Up to a factor exp((alpha - 1) R_alpha(displacement)), as in Theorem 4.5 of Pierquin
    et al. (2024) with q = 1; the exponent itself where exponentials would overflow.
    """

    def cost(displacements: Floats) -> Floats:
        shape = displacements.shape[:-1]
        steps = displacements.reshape(-1, displacements.shape[-1])
        exponent = (alpha - 1) * costs(steps)
        # an infinite cost would make the solver's sums nan; a finite one this large is
        # avoided all the same
        exponent = np.minimum(exponent, np.finfo(float).max / 4).reshape(shape)
        # a constant factor does not change the best plan, so subtract the largest
        # exponent; where they span more than floats do, plan for the exponents
        # themselves: any coupling is valid
        if np.ptp(exponent) > _SPAN:
            return exponent
        powers: Floats = np.exp(exponent - exponent.max())
        return powers

    return cost
