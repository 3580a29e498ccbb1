"""How far an output or a distribution moves along slices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.distributions import Discrete, Distribution, Gaussian, Samples, Support
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._lattice_sum import LatticeSum, step_gap
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import type_error, unsupported_error, value_error
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import Floats
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import CoupledSamples, OutputDistributions
from skpuffer.transport import Ball

from .transport._dkw import Box
from .transport._profile import SliceProfile
from .transport._sliced import sliced_distances

#: Relative difference of two variances below which they count as one, as for W_inf of
#: the Gaussians themselves.
_SAME = 1e-12


def sliced_distribution_distances(
    pairs: Sequence[tuple[Distribution, Distribution]],
    profile: SliceProfile,
    units: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Return W_inf distances between projections, or certified upper bounds on them.

    Parameters
    ----------
    pairs : sequence of (Distribution, Distribution)
        All with the coordinates of the profile.
    profile : SliceProfile
        Finite.
    units : array-like of shape (dim,), default=None
        Unit of each coordinate, by which outputs are divided first.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    distances : ndarray of shape (n_pairs, n_slices)
        Infinite where no bound holds, as for Gaussian projections of unequal variances.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, equation 6.
    """
    if profile.directions is None:
        raise value_error("distribution.profile_infinite")
    for distribution in (one for pair in pairs for one in pair):
        if distribution.dim != profile.dim:
            raise value_error(
                "distribution.profile_dimension_mismatch",
                profile_dim=profile.dim,
                dim=distribution.dim,
            )
    scale = np.ones(profile.dim) if units is None else np.asarray(units, dtype=float)
    key = ("sliced_distribution_distances", profile.name, tuple(scale.tolist()))
    rows: list[Floats | None] = [MEMORY.held(pair, key) for pair in pairs]
    new = [at for at, row in enumerate(rows) if row is None]
    # those of points are computed together: each is projected and sorted once
    clouds = [at for at in new if _are_points(*pairs[at])]
    found = dict(
        zip(
            clouds,
            _of_points([pairs[at] for at in clouds], profile, scale, n_jobs),
            strict=True,
        )
    )
    for at in new:
        row = found[at] if at in found else _row(*pairs[at], profile, scale)
        row = np.array(row)
        row.setflags(write=False)
        MEMORY.keep(pairs[at], key, row)
        rows[at] = row
    shape = len(pairs), len(profile.directions)
    return np.array(rows, dtype=float).reshape(shape)


def _are_points(u: Distribution, v: Distribution) -> bool:
    return (
        isinstance(u, Discrete)
        and isinstance(v, Discrete)
        and not isinstance(u, Support)
        and not isinstance(v, Support)
        and _steps(u, v) is None
    )


def _steps(u: Distribution, v: Distribution) -> int | None:
    if isinstance(u, LatticeSum) and isinstance(v, LatticeSum):
        return step_gap(u, v)
    return None


def _of_points(
    pairs: list[tuple[Distribution, Distribution]],
    profile: SliceProfile,
    units: Floats,
    n_jobs: int | None,
) -> Floats:
    if not pairs:
        return np.empty((0, profile.n_slices or 0))
    worlds = list({id(one): one for pair in pairs for one in pair}.values())
    place = {id(world): at for at, world in enumerate(worlds)}
    discrete = [cast(Discrete, world) for world in worlds]
    return sliced_distances(
        [world.points for world in discrete],
        profile,
        weights=[world.weights for world in discrete],
        pairs=[(place[id(u)], place[id(v)]) for u, v in pairs],
        coordinate_scale=units,
        n_jobs=n_jobs,
    )


def _row(
    u: Distribution, v: Distribution, profile: SliceProfile, units: Floats
) -> Floats:
    """Distances of one pair that are not those of points."""
    directions = cast(Floats, profile.directions) / units
    along: Floats
    steps = _steps(u, v)
    if steps is not None:
        # on their common line both are projected by one factor
        along = directions @ cast(LatticeSum, u).direction
        return steps * np.abs(along)
    if profile.dim == 1:
        # on the line a projection is a multiple
        along = directions[:, 0]
        return cached_distribution_distance(u, v, 2, None, np.inf) * np.abs(along)
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
        return _of_gaussians(u, v, directions)
    if isinstance(u, Discrete) and isinstance(v, Discrete):
        # The worst case over all masses on a support: everything at its point farthest
        # from some atom of the other distribution.
        x, y = directions @ u.points.T, directions @ v.points.T
        return np.maximum(x.max(axis=1) - y.min(axis=1), y.max(axis=1) - x.min(axis=1))
    # an unbounded support against a bounded one
    return np.full(len(directions), np.inf)


def _of_gaussians(u: Gaussian, v: Gaussian, directions: Floats) -> Floats:
    """W_inf of projected Gaussians: of unequal variance, infinite."""
    moves = np.abs(directions @ (u.mean - v.mean))
    first, second, apart = (
        np.einsum("kd,de,ke->k", directions, matrix, directions)
        for matrix in (u.covariance, v.covariance, u.covariance - v.covariance)
    )
    deviations = np.sqrt(np.maximum(np.diag(u.covariance), np.diag(v.covariance)))
    same = np.abs(u.covariance - v.covariance) <= _SAME * np.outer(
        deviations, deviations
    )
    if same.all():
        return moves
    # By the difference of the covariances, which does not cancel. It has to be small
    # beside the lesser variance itself: along a direction of almost none it is not.
    return np.where(np.abs(apart) <= _SAME * np.minimum(first, second), moves, np.inf)


_Pair = tuple[Distribution, Distribution]


@dataclass(frozen=True)
class SampledWorlds:
    """Independent draws of the output (n_draws, dim), and pairs of them to compare."""

    draws: tuple[Floats, ...]
    pairs: tuple[tuple[int, int], ...]


def moves_along(
    fact: Fact, release: QueryRelease, profile: SliceProfile, n_jobs: int | None
) -> Floats:
    """Bound how far the output moves along each slice, (n_pairs, n_slices).

    In the units of the release, without its `slack`.
    """
    if isinstance(fact, OutputDistributions):
        pairs = _unordered(fact)
        found = sliced_distribution_distances(pairs, profile, release.units, n_jobs)
        # times zero, an infinite distance is no move
        return fact.scale * found if fact.scale else np.zeros_like(found)
    if isinstance(fact, CoupledSamples):
        # a coupling of the outputs is one of their projections
        directions = cast(Floats, profile.directions)  # finite
        steps = _displacements(fact, release)
        return np.array([np.abs(each @ directions.T).max(axis=0) for each in steps])
    raise type_error("sliced.moves_unknown", fact_type=type(fact).__name__)


def shift_lengths(fact: Fact, release: QueryRelease) -> Floats | None:
    """Return the lengths (n_pairs,) of moves if each pair differs by one displacement.

    None if some pair is not known to.
    """
    if isinstance(fact, OutputDistributions):
        pairs = _unordered(fact)
        if not all(_is_shift(u, v) for u, v in pairs):
            return None
        if not fact.scale:
            return np.zeros(len(pairs))
        units, scale = release.units, abs(fact.scale)
        lengths = [cached_distribution_distance(*pair, 2.0, units) for pair in pairs]
        return np.array([scale * length for length in lengths])
    if isinstance(fact, CoupledSamples):
        steps = _displacements(fact, release)
        # one and the same displacement in all draws
        if not any(np.ptp(each, axis=0).any() for each in steps):
            return np.array([np.linalg.norm(each[0]) for each in steps])
    return None


def sampled_worlds(fact: Fact) -> SampledWorlds | None:
    """Return the draws of a fact that rests on independent ones alone, or None."""
    if fact.certified or fact.reads_private_rows:
        return None
    if isinstance(fact, CoupledSamples):
        raise unsupported_error("sliced.confidence_with_pair_draws")
    if not isinstance(fact, OutputDistributions):
        return None
    pairs = _unordered(fact)
    worlds = {id(one): one for pair in pairs for one in pair}
    if not all(isinstance(one, Samples) for one in worlds.values()):
        return None
    # draws with weights are not independent draws of one distribution
    draws = [one for one in worlds.values() if isinstance(one, Samples)]
    if fact.common_part_removed or any(one.weights is not None for one in draws):
        raise unsupported_error("sliced.confidence_with_partial_draws")
    place = {key: at for at, key in enumerate(worlds)}
    return SampledWorlds(
        tuple(fact.scale * one.points for one in draws),
        tuple((place[id(u)], place[id(v)]) for u, v in pairs),
    )


def diameter(support: Ball | Box, release: QueryRelease) -> float:
    """Largest distance between two points of a support, in the units of a release."""
    units = release.unit_array
    if isinstance(support, Ball):
        return 2 * float(support.radius) / float(np.min(units))
    dim = release.dim or np.size(support.lower)
    sides = np.subtract(support.upper, support.lower) / units
    return float(np.linalg.norm(np.broadcast_to(sides, (dim,))))


def _unordered(fact: OutputDistributions) -> list[_Pair]:
    """Pairs of distributions, each once: W_inf is symmetric."""
    found: dict[tuple[int, int, int], _Pair] = {}
    for prior, i, j, u, v in fact.pairs_of_distributions():
        found.setdefault((prior, min(i, j), max(i, j)), (u, v))
    return list(found.values())


def _displacements(fact: CoupledSamples, release: QueryRelease) -> list[Floats]:
    """Displacements of the draws, in the units of the release, pair by pair."""
    units = release.unit_array
    return [(u - v) / units for *_, u, v in fact.draws]


def _is_shift(u: Distribution, v: Distribution) -> bool:
    """Whether two distributions are known to be translates of each other."""
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
        # finite if and only if the covariances agree
        return math.isfinite(cached_distribution_distance(u, v, 2.0, None))
    both: Sequence[Distribution] = (u, v)
    return all(isinstance(one, Discrete) and len(one.points) == 1 for one in both)
