"""Couplings of the output between neighbouring tables, read off each kind of fact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, Protocol, TypeGuard, TypeVar

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.special import log_ndtr, logsumexp, ndtr

from skpuffer.distributions import Discrete, Distribution, Gaussian, Support
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._lattice_sum import monotone_gaps, on_one_lattice
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.curves import DEFAULT_ORDERS
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.noise import MARGIN, smallest_argument
from skpuffer.kernel.numbers import Floats, check_order, check_real, lengths_of
from skpuffer.kernel.plain import Plain
from skpuffer.kernel.sums import SensitivityBound
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    Noise,
    Shift,
)
from skpuffer.privacy_loss import renyi_to_delta
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import CoupledSamples, OutputDistributions, RecordDistributions
from skpuffer.transport import quantile_coupling, transport_plan

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
        """Return the moves of all couplings; plans are those of W_2."""
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
        """Plan the couplings anew that cost the most, for the cost of a noise."""
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
    """Return the moves of a discrete coupling, given its displacements."""
    radii = lengths_of(steps / units, norm)
    return AtomMoves(radii, np.asarray(masses, dtype=float), steps)


def ball(radius: float) -> AtomMoves:
    """Return moves of which only the largest length is known."""
    return AtomMoves(np.array([float(radius)]), np.ones(1))


@singledispatch
def couplings(
    fact: Fact, sensitivity: SensitivityBound, release: QueryRelease, norm: float
) -> Couplings:
    """Return a coupling for each pair of secrets, from a fact about the output."""
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

    They are optimal for every convex cost of the move. None where the pairs are no sums
    of one lattice, or exact ones. The last number returned bounds the masses' relative
    error.
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
    square roots A, B of the covariances and the rotation R that brings B R nearest to A
    (Dowson and Landau, 1982).
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


# -- privacy curve of noise against a coupling: how far outputs move, by mass ----------


# Number of cells into which a Gaussian's moves are rounded up where there is no closed
# form, most of them within so many standard deviations of its mean.
_CELLS = 2**14
_BULK = 9.0
_FAR = 38.0  # standard deviations: beyond, the normal tail is not a normal float
_LARGEST = 600.0  # exponents up to this one have exponentials that can be added

#: One number, or an array of them.
_Number = TypeVar("_Number", float, Floats)


class Moves(Protocol):
    """Moves of a coupling, and the mean cost of noise against them."""

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move)), or an upper bound."""

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move, or an upper bound."""

    def widened(self, distance: float) -> Moves:
        """Return a coupling whose moves are longer by at most a distance."""


@dataclass(frozen=True, eq=False)
class AtomMoves(Plain, kind="atom_moves"):
    """Moves of a discrete coupling: finitely many displacements with masses.

    Parameters
    ----------
    radii : ndarray of shape (k,)
        Length of each move, in the noise's norm and the units of the release.
    masses : ndarray of shape (k,) or (n_couplings, k)
        Or of each of several couplings by the same moves, of which the worst counts.
    steps : ndarray of shape (k, dim) or None
        The moves themselves, in the units of the output. None where only their
        lengths are known.
    """

    radii: Floats = field(repr=False)
    masses: Floats = field(repr=False)
    steps: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _keep_arrays(self)

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move))."""
        if self.steps is None:
            # of lengths only: each move may be the costliest one of its ball
            costs = of_balls(lambda ball: noise.renyi(alpha, ball), shift, self.radii)
        else:
            costs = self.costs(noise, alpha, self.steps)
        # infinite where it overflows, as is the cost then
        with np.errstate(over="ignore"):
            exponent = (alpha - 1) * costs
        if np.max(exponent) < _LARGEST:
            # log1p and expm1: costs near zero would be lost in a sum near one
            return math.log1p(float(np.max(self.masses @ np.expm1(exponent))))
        return _log_mean(exponent, self.masses)

    @staticmethod
    def costs(noise: Noise, alpha: float, steps: Floats) -> Floats:
        """Return the Rényi cost of each step: the sum of its coordinates' costs."""
        # Rényi divergences of product distributions add up over the coordinates. Noise
        # of every family is symmetric, so a step costs what its absolute value does.
        costs: Floats
        if isinstance(noise, CorrelatedGaussianNoise | DegenerateGaussianNoise):
            # D_alpha between N(s, C) and N(0, C) is alpha s' C^-1 s / 2
            costs = alpha / 2 * np.sum(noise.whitened(steps) ** 2, axis=1)
            return costs
        if isinstance(noise.scale, tuple):
            columns = zip(noise.scale, np.abs(steps).T, strict=True)
            costs = np.column_stack(
                [noise.with_scale(s).renyi(alpha, column) for s, column in columns]
            )
        else:
            costs = np.asarray(noise.renyi(alpha, np.abs(steps)))
        return np.asarray(np.sum(costs, axis=1))

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move at exp(epsilon)."""
        # hockey-stick divergences do not add up over coordinates as Rényi costs do, so
        # each move counts as the worst one of its ball, even where steps are known
        deltas = of_balls(lambda ball: noise.delta(epsilon, ball), shift, self.radii)
        return float(np.max(self.masses @ deltas))

    def widened(self, distance: float) -> AtomMoves:
        """Return a coupling whose moves are longer by a distance, in any direction."""
        # the direction of what is added is not known, so only lengths remain
        return AtomMoves(self.radii + distance, self.masses)


@dataclass(frozen=True, eq=False)
class GaussianMoves(Plain, kind="gaussian_moves"):
    """Moves of a linear coupling of Gaussians: a Gaussian displacement.

    Parameters
    ----------
    mean : ndarray of shape (dim,)
    covariance : ndarray of shape (dim, dim)
    """

    mean: Floats = field(repr=False)
    covariance: Floats = field(repr=False)

    def __post_init__(self) -> None:
        _keep_arrays(self)

    def log_moment(self, noise: Noise, alpha: float, shift: Shift) -> float:
        """Return log E exp((alpha - 1) R_alpha(move)), rounded up.

        In closed form for Gaussian noise. For other noise on one coordinate moves are
        rounded up to the ends of small cells; beyond the last one the cost is at most
        linear in the move. Infinite where neither applies.
        """
        if isinstance(noise, GaussianNoise):
            # E exp(a z^2) for z ~ N(m, v), along each principal axis of the whitened
            # move, with a = alpha (alpha - 1) / 2: finite if 2 a v < 1
            factor = noise.whitened(_root_of_covariance(self.covariance).T)
            if not np.all(np.isfinite(factor)):
                return math.inf  # moves that leave the subspace of the noise
            variances, axes = np.linalg.eigh(factor.T @ factor)
            means = noise.whitened(self.mean[None, :])[0] @ axes
            left = 1 - alpha * (alpha - 1) * np.maximum(variances, 0.0)
            if np.any(left <= 0):
                return math.inf
            rate = alpha * (alpha - 1) / 2
            return float(np.sum(rate * means**2 / left - np.log(left) / 2))
        if len(self.mean) > 1:
            return math.inf
        center, spread = self._line
        # R_alpha(z) <= R_inf(z) <= ceil(z / spread) R_inf(spread): so many times the
        # exponent of one standard deviation bound that of a longer move
        slope = (alpha - 1) * noise.pure_epsilon(spread)
        if math.isinf(slope):
            return math.inf
        # weighting a normal density by exp(slope z) moves its bulk by `slope`: cells
        # must reach beyond that for the tail to be negligible
        last = center / spread + slope + _FAR
        ends, masses = _cells(center, spread, last, slope)
        costs = np.asarray(noise.renyi(alpha, ends))
        inside = _log_mean((alpha - 1) * costs, masses)
        # Beyond the last end the exponent is at most slope (|z| + 1), the one for the
        # rounding up to whole deviations. By completing the square, for z ~ N(m, 1),
        # E exp(slope z) over z > last is exp(slope m + slope^2 / 2) Phi(slope + m -
        # last); the two tails of |z| are those of m and -m.
        beyond = [
            slope + slope**2 / 2 + slope * side + log_ndtr(slope + side - last)
            for side in (center / spread, -center / spread)
        ]
        return float(np.logaddexp.reduce([inside, *beyond]))

    def mean_delta(self, noise: Noise, epsilon: float, shift: Shift) -> float:
        """Return the mean hockey-stick divergence of a move, rounded up.

        By cells on one coordinate, by way of Rényi costs on more.
        """
        if len(self.mean) == 1:
            center, spread = self._line
            # a divergence grows with the move, so outer ends round up; beyond the last
            # cell it is at most one, with the mass of both tails
            ends, masses = _cells(center, spread, center / spread + _FAR, 0.0)
            return float(masses @ noise.delta(epsilon, ends) + 2 * ndtr(-_FAR))
        # Rényi costs do have a closed form on several coordinates. At high orders the
        # moment is infinite unless the moves' variance is minute.
        orders = DEFAULT_ORDERS[DEFAULT_ORDERS < 1e3]
        costs = [self.log_moment(noise, a, shift) / (a - 1) for a in orders]
        return float(renyi_to_delta(orders, costs, epsilon))

    def widened(self, distance: float) -> Moves:
        """Refuse: there is no Gaussian coupling with longer moves."""
        raise unsupported_error("gaussian.unequal_covariance_not_widened")

    @property
    def _line(self) -> tuple[float, float]:
        """Absolute mean and standard deviation of one coordinate."""
        return abs(float(self.mean[0])), math.sqrt(self.covariance[0, 0])


@dataclass(frozen=True, eq=False)
class CouplingCurve(Plain, kind="coupling"):
    """Privacy curve of noise against a coupling for each pair of secrets.

    The hockey-stick divergence and exp((alpha - 1) R_alpha) are f-divergences, hence
    jointly convex: their mean over the moves of any coupling bounds that between the
    distributions of what is released.

    Parameters
    ----------
    shift : Shift
        A ball that no move leaves, maybe of infinite radius: the curve is nowhere
        above the noise's own against it.
    couplings : tuple of AtomMoves or GaussianMoves
        One for each pair of output distributions; the worst of them counts.
    event_delta : float
        Mass that may not follow the couplings. The curve holds given that it does.
    mass_error : float
        Bound on the relative error of the distributions' masses, hence of densities
        of what is released.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 4.5, with q = 1.
    """

    noise: Noise
    shift: Shift
    couplings: tuple[Moves, ...]
    event_delta: float = 0.0
    mass_error: float = 0.0

    gaussian_mu: ClassVar[None] = None

    def renyi(self, alpha: _Number) -> _Number:
        """Return the Rényi cost in nats at one order or an array of orders."""
        return _one_or_many(self._renyi, alpha)

    def delta(self, epsilon: _Number) -> _Number:
        """Return a bound on the hockey-stick divergence at one or many epsilons."""
        return _one_or_many(self._delta, epsilon)

    def epsilon(self, delta: _Number) -> _Number:
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        return _one_or_many(self._epsilon, delta)

    def widened(self, distance: float) -> CouplingCurve:
        """Return the curve with all moves longer by a distance."""
        return replace(
            self,
            shift=replace(self.shift, radius=self.shift.radius + distance),
            couplings=tuple(moves.widened(distance) for moves in self.couplings),
        )

    def conditioned(self, mass: float) -> CouplingCurve:
        """Return the curve given an event that so much more mass is outside of."""
        return replace(self, event_delta=self.event_delta + mass)

    # -- the parts ----------------------------------------------------------------

    def _renyi(self, alpha: float) -> float:
        alpha = check_order(alpha=alpha)
        # the worst case over the ball of all moves bounds the mean (Pierquin et al.
        # 2024, Proposition 4.3), and its value too where the mean was rounded up
        ball = float(self.noise.renyi(alpha, self.shift))
        if math.isinf(alpha):
            # the mean of infinite order is the essential supremum: nothing is gained
            return ball
        moments = [
            moves.log_moment(self.noise, alpha, self.shift) for moves in self.couplings
        ]
        # Conditioning on an event divides masses by at least that of the event. Where
        # masses are off by a relative error e, the moment, an integral of p^alpha
        # q^(1 - alpha), is off by at most (1 + e)^alpha (1 - e)^(1 - alpha).
        worst = max(moments) - math.log1p(-self.event_delta)
        worst = max(0.0, worst) + alpha * self._slack
        return min(ball, worst * (1 + MARGIN) / (alpha - 1))

    def _delta(self, epsilon: float) -> float:
        epsilon = check_real(epsilon=epsilon)
        ball = float(self.noise.delta(epsilon, self.shift))
        # With p <= (1 + e) p' and q >= (1 - e) q', the hockey-stick divergence of p, q
        # at epsilon is at most (1 + e) times that of p', q' at epsilon less the slack.
        means = [
            moves.mean_delta(self.noise, epsilon - self._slack, self.shift)
            for moves in self.couplings
        ]
        inflation = (1 + self.mass_error) * (1 + MARGIN) / (1 - self.event_delta)
        return min(ball, max(means) * inflation)

    @property
    def _slack(self) -> float:
        """Error of the logarithm of a ratio of densities, at most."""
        return math.log1p(self.mass_error) - math.log1p(-self.mass_error)

    def _epsilon(self, delta: float) -> float:
        if delta == 0:
            # only the longest move counts for a pure promise, however little its mass
            return float(self.noise.renyi(math.inf, self.shift))
        root = smallest_argument(self._delta, delta)
        return min(root, float(self.noise.epsilon(delta, self.shift)))


def _keep_arrays(moves: AtomMoves | GaussianMoves) -> None:
    for part in fields(moves):
        value = getattr(moves, part.name)
        if value is not None:
            object.__setattr__(moves, part.name, np.asarray(value, dtype=float))


def _one_or_many(function: Callable[[Any], Any], values: _Number) -> _Number:
    """Apply a function of one number to it, or to each entry of an array."""
    if np.ndim(values) > 0:
        function = np.vectorize(function, otypes=[float])
    found: _Number = function(values)
    return found


def _log_mean(exponent: Floats, masses: Floats) -> float:
    """Logarithm of the mean of the exponentials, the largest by rows of masses."""
    # log 0 plus an infinite exponent would be nan
    exponent = np.where(masses > 0, exponent, -math.inf)
    log_masses = np.log(np.where(masses > 0, masses, 1.0))
    return float(np.max(logsumexp(exponent + log_masses, axis=-1)))


def of_balls(function: Callable[[Any], Any], shift: Shift, radii: Floats) -> Floats:
    """Return a function of shifts at balls like `shift`, of several radii."""
    if shift.dim == 1:
        # noise takes an array of shifts of one coordinate, in units of the output
        unit = 1.0 if shift.weights is None else shift.weights[0]
        return np.asarray(function(radii * unit))
    # on several coordinates a ball is resolved by a search: once for each length
    found, at = np.unique(radii, return_inverse=True)
    values = [function(replace(shift, radius=float(radius))) for radius in found]
    return np.asarray(values)[at]


def _cells(
    center: float, spread: float, last: float, slope: float
) -> tuple[Floats, Floats]:
    """Outer ends and masses of cells of |Z|, for Z Gaussian."""
    # in standard deviations: |Z| has the upper tail Phi(m - z) + Phi(-m - z). Narrow
    # cells are spent on the bulk, where rounding up costs something.
    middle = center / spread
    low, high = max(0.0, middle - _BULK), min(last, middle + _BULK + slope)
    marks = np.concatenate(
        [
            np.linspace(0.0, low, _CELLS // 8),
            np.linspace(low, high, _CELLS),
            np.linspace(high, last, _CELLS // 4),
        ]
    )
    marks = np.unique(marks)
    above = ndtr(middle - marks) + ndtr(-middle - marks)
    below = ndtr(marks - middle) - ndtr(-marks - middle)
    # differences of upper tails above the mean, of lower ones below: no cancellation
    masses = np.where(
        marks[1:] > middle, above[:-1] - above[1:], below[1:] - below[:-1]
    )
    masses[-1] = above[-2]
    return marks[1:] * spread, np.maximum(masses, 0.0)


def _root_of_covariance(covariance: Floats) -> Floats:
    """Return a matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
