"""Sliced W_inf between distributions: the distances of their projections."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.distributions._distributions import (
    Discrete,
    Distribution,
    Gaussian,
    Support,
    cached_distribution_distance,
)
from skpuffer.distributions._lattice_sum import LatticeSum, step_gap
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats

from .transport._profile import SliceProfile
from .transport._sliced import sliced_distances

__all__ = ["sliced_distribution_distances"]

#: Relative difference of two variances below which they count as one, as for W_inf of
#: the Gaussians themselves.
_SAME = 1e-12


def sliced_distribution_distances(
    pairs: Sequence[tuple[Distribution, Distribution]],
    profile: SliceProfile,
    units: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """W_inf distances between projections, or certified upper bounds on them.

    Parameters
    ----------
    pairs : sequence of (Distribution, Distribution)
        All with the coordinates of the profile.
    profile : SliceProfile
        Finite.
    units : array-like of shape (dim,), default=None
        Unit of each coordinate: outputs are divided by it before they are projected.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    distances : ndarray of shape (n_pairs, n_slices)
        Infinite where no bound holds, as between Gaussians whose projections have
        unequal variances.

    Raises
    ------
    ValueError
        If the profile is not finite, or a distribution has another number of
        coordinates.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, equation 6.
    """
    if profile.directions is None:
        raise ValueError(Statement("distribution.profile_infinite"))
    for distribution in (one for pair in pairs for one in pair):
        if distribution.dim != profile.dim:
            raise ValueError(
                Statement(
                    "distribution.profile_dimension_mismatch",
                    profile_dim=profile.dim,
                    dim=distribution.dim,
                )
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
        farthest: Floats = np.maximum(
            x.max(axis=1) - y.min(axis=1), y.max(axis=1) - x.min(axis=1)
        )
        return farthest
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
