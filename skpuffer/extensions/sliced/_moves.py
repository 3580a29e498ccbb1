"""How far an output moves along slices, by what a scenario says of it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from skpuffer.distributions import Discrete, Distribution, Gaussian, Samples
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import CoupledSamples, Fact, OutputDistributions
from skpuffer.utils._types import Floats

from ._distributions import sliced_distribution_distances
from .transport._dkw import Ball, Box, dkw_sliced_distances
from .transport._profile import SliceProfile

__all__ = [
    "SampledWorlds",
    "diameter",
    "moves_along",
    "sampled_worlds",
    "shift_lengths",
]

_Pair = tuple[Distribution, Distribution]


@dataclass(frozen=True)
class SampledWorlds:
    """Independent draws of the output, and the pairs to compare.

    Parameters
    ----------
    draws : tuple of ndarray of shape (n_draws, dim)
    pairs : tuple of (int, int)
        Indices into `draws`.
    """

    draws: tuple[Floats, ...]
    pairs: tuple[tuple[int, int], ...]

    def moves_along(
        self,
        release: QueryRelease,
        profile: SliceProfile,
        support: Ball | Box,
        confidence: float,
        n_jobs: int | None,
    ) -> Floats:
        """Bound the moves along each slice of what was drawn from.

        Parameters
        ----------
        release : QueryRelease
        profile : SliceProfile
            Finite.
        support : Ball or Box
            In which the output stays.
        confidence : float
            Probability that no bound is too small.
        n_jobs : int or None

        Returns
        -------
        ndarray of shape (n_pairs, n_slices)
        """
        return dkw_sliced_distances(
            self.draws,
            profile,
            support=support,
            confidence=confidence,
            pairs=self.pairs,
            coordinate_scale=release.units,
            n_jobs=n_jobs,
        )


@singledispatch
def moves_along(
    fact: Fact, release: QueryRelease, profile: SliceProfile, n_jobs: int | None
) -> Floats:
    """Bound how far the output moves along each slice, for each pair of secrets.

    Parameters
    ----------
    fact : Fact
    release : QueryRelease
    profile : SliceProfile
        Finite.
    n_jobs : int or None

    Returns
    -------
    ndarray of shape (n_pairs, n_slices)
        In the units of the release, without its `slack`.
    """
    raise TypeError(Statement("sliced.moves_unknown", fact_type=type(fact).__name__))


@moves_along.register
def _(
    fact: OutputDistributions,
    release: QueryRelease,
    profile: SliceProfile,
    n_jobs: int | None,
) -> Floats:
    found = sliced_distribution_distances(
        _unordered(fact), profile, release.units, n_jobs
    )
    # times zero, an infinite distance is no move
    return fact.scale * found if fact.scale else np.zeros_like(found)


@moves_along.register
def _(
    fact: CoupledSamples,
    release: QueryRelease,
    profile: SliceProfile,
    n_jobs: int | None,
) -> Floats:
    # a coupling of the outputs is one of their projections
    directions = profile.directions
    assert directions is not None  # finite
    steps = _displacements(fact, release)
    return np.array([np.abs(each @ directions.T).max(axis=0) for each in steps])


@singledispatch
def shift_lengths(fact: Fact, release: QueryRelease) -> Floats | None:
    """Lengths of the moves if each pair differs by one displacement and no more.

    Parameters
    ----------
    fact : Fact
    release : QueryRelease

    Returns
    -------
    ndarray of shape (n_pairs,) or None
        None if some pair is not known to.
    """
    return None


@shift_lengths.register
def _(fact: OutputDistributions, release: QueryRelease) -> Floats | None:
    pairs = _unordered(fact)
    if not all(_is_shift(u, v) for u, v in pairs):
        return None
    return np.array(
        [
            abs(fact.scale) * cached_distribution_distance(u, v, 2.0, release.units)
            if fact.scale
            else 0.0
            for u, v in pairs
        ]
    )


@shift_lengths.register
def _(fact: CoupledSamples, release: QueryRelease) -> Floats | None:
    steps = _displacements(fact, release)
    # one and the same displacement in all draws
    if any(np.ptp(each, axis=0).any() for each in steps):
        return None
    return np.array([np.linalg.norm(each[0]) for each in steps])


def sampled_worlds(fact: Fact, release: QueryRelease) -> SampledWorlds | None:
    """Return the draws of a fact that rests on nothing but independent ones.

    Parameters
    ----------
    fact : Fact
    release : QueryRelease

    Returns
    -------
    SampledWorlds or None
        None if the fact is known, or an estimate of another kind.

    Raises
    ------
    UnsupportedError
        If there are draws, of which no confidence follows.
    """
    if fact.certified or fact.reads_private_rows:
        return None
    if isinstance(fact, CoupledSamples):
        raise UnsupportedError(Statement("sliced.confidence_with_pair_draws"))
    if not isinstance(fact, OutputDistributions):
        return None
    pairs = _unordered(fact)
    worlds = {id(one): one for pair in pairs for one in pair}
    if not all(isinstance(one, Samples) for one in worlds.values()):
        return None
    # draws with weights are not independent draws of one distribution
    draws = [one for one in worlds.values() if isinstance(one, Samples)]
    if fact.common_part_removed or any(one.weights is not None for one in draws):
        raise UnsupportedError(Statement("sliced.confidence_with_partial_draws"))
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
    return _once(
        ((prior, i, j), (u, v)) for prior, i, j, u, v in fact.pairs_of_distributions()
    )


def _displacements(fact: CoupledSamples, release: QueryRelease) -> list[Floats]:
    """Displacements of the draws, in the units of the release, pair by pair."""
    units = release.unit_array
    return [(u - v) / units for *_, u, v in fact.draws]


def _once(pairs: Iterable[tuple[tuple[int, int, int], Any]]) -> list[Any]:
    found: dict[tuple[int, int, int], Any] = {}
    for (prior, i, j), value in pairs:
        found.setdefault((prior, min(i, j), max(i, j)), value)
    return list(found.values())


def _is_shift(u: Distribution, v: Distribution) -> bool:
    """Whether two distributions are known to be translates of each other."""
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
        # finite if and only if the covariances agree
        return math.isfinite(cached_distribution_distance(u, v, 2.0, None))
    both: Sequence[Distribution] = (u, v)
    return all(isinstance(one, Discrete) and len(one.points) == 1 for one in both)
