"""Moves of each step of a run at any history, and their Rényi cost by caps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom

from skpuffer.exceptions import Statement, reason_of, unsupported_error, value_error
from skpuffer.extensions.sliced.transport._profile import SliceProfile
from skpuffer.kernel.numbers import Floats, check_non_negative
from skpuffer.kernel.pairs import seen_excess
from skpuffer.noise import Noise, Shift
from skpuffer.releases import (
    FixedSizeSampling,
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    SamplingScheme,
    WithReplacementSampling,
)


class StepMoves(NamedTuple):
    """Factors by which one record moves each step's release in clip norms."""

    factors: Floats
    assumptions: tuple[Statement, ...]


def step_moves(
    release: GradientRelease, relation: str, lipschitz: ArrayLike | None
) -> StepMoves:
    """Return how far one record moves each step, wherever the noise enters.

    `lipschitz` are declared constants of the updates in the mean gradient.
    """
    # a replaced record takes one clipped gradient out of a sum and puts another in
    each = 1.0 if relation == "add_remove" else 2.0
    if release.noise_position == "gradient":
        # What is released is the noisy sum, of which an update is made afterwards. A
        # step size here would count noise that was never divided by it.
        if lipschitz is not None:
            raise unsupported_error("history.lipschitz_with_gradient_noise")
        return StepMoves(np.full(release.n_steps, each), ())
    constants, source = _update_constants(release, lipschitz)
    text = Statement("assume.update_lipschitz_noise_added", source=source)
    return StepMoves(each * constants / release.divisor, (text,))


def _update_constants(
    release: GradientRelease, lipschitz: ArrayLike | None
) -> tuple[Floats, Statement]:
    """Lipschitz constants of the updates in the mean gradient, and in words."""
    n_steps, optimiser = release.n_steps, release.optimiser
    least = np.zeros(n_steps)
    if optimiser is not None:
        steps = np.array(optimiser.step_sizes(n_steps))
        # What is made of a moved iterate, the penalty and the projection, shrinks it as
        # it does where the loss has no curvature.
        least = steps * optimiser.contractions(
            n_steps, smoothness=0.0, all_penalised=optimiser.penalise_all
        )
    elif lipschitz is None:
        raise unsupported_error("history.update_constants_missing")
    if lipschitz is None:
        return least, _range(least)
    given = np.asarray(lipschitz, float)
    if given.ndim and given.shape != (n_steps,):
        raise unsupported_error(
            "history.lipschitz_count_not_steps", n_given=given.size, n_steps=n_steps
        )
    given = np.broadcast_to(given, (n_steps,))
    # what is executed counts, whatever is declared
    if np.any(given < least * (1 - 1e-12)):
        raise unsupported_error(
            "history.lipschitz_below_optimiser", range=_range(least)
        )
    return given, Statement("history.constants_declared", constants=_range(given))


def _range(constants: Floats) -> Statement:
    low, high = float(constants.min()), float(constants.max())
    if low == high:
        return Statement("history.constant", constant=high)
    return Statement("history.constants_range", low=low, high=high)


def one_clipped(
    release: GradientRelease, noise: Noise, profile: Slices | None
) -> float:
    """Return the length of the longest clipped gradient, in deviations of the noise.

    With `profile` None it is that of the whole vector, the largest over all directions
    (Cauchy-Schwarz). See Sliced Rényi Pufferfish privacy, Appendix F.
    """
    blocks, scale = release.blocks, np.asarray(noise.scale, float)
    if blocks is not None and release.clip_order <= 2:
        # an l2 norm is no larger than one of a lower order
        clips = np.array(release.clip_norm, float)
        if profile is not None and not scale.ndim:
            return math.sqrt(profile.squared(clips, blocks)) / float(scale)
        return float(np.linalg.norm(clips / _block_scales(scale, blocks)))
    order = release.clip_order
    try:
        shift = Shift(release.total_clip_norm, norm=order, dim=release.dim)
        mu = noise.curve(shift).gaussian_mu
    except ValueError as error:
        raise unsupported_error(
            "history.clip_order_above_two", order=order, reason=reason_of(error)
        ) from error
    assert mu is not None  # of Gaussian noise
    return mu


def _block_scales(scale: Floats, blocks: tuple[int, ...]) -> Floats:
    """Least standard deviation of each block's coordinates."""
    if scale.ndim and scale.size == sum(blocks):
        starts = np.cumsum((0, *blocks[:-1]))
        return np.minimum.reduceat(scale, starts)
    return np.full(len(blocks), scale.min())


@dataclass(frozen=True)
class Discrepancy:
    """Law of the discrepancy of one batch.

    Parameters
    ----------
    largest : int
        The most it can be.
    mean_square : float
        Mean of its square.
    log_weights : ndarray of shape (largest,)
        Log-probabilities of 1, 2, ..., `largest`.
    """

    largest: int
    mean_square: float
    log_weights: Floats = field(repr=False)

    @property
    def times(self) -> Floats:
        """The values 1, 2, ..., `largest`."""
        return np.arange(1.0, self.largest + 1)


def _of(law: Any, largest: int, mean_square: float) -> Discrepancy:
    with np.errstate(divide="ignore"):
        weights = np.asarray(law.logpmf(np.arange(1, largest + 1)), float)
    weights.flags.writeable = False  # shared by all who ask
    return Discrepancy(largest, mean_square, weights)


def _binomial(trials: int, chance: float) -> Discrepancy:
    mean = trials * chance
    square = mean * (1 - chance) + mean**2
    return _of(binom(trials, chance), trials if chance else 0, square)


def _fixed_size(count: int, n: int, size: int, rate: float) -> Discrepancy:
    mean = size * count / n
    # the variance of a hypergeometric law; of a table of one record there is none
    spread = mean * (1 - count / n) * (n - size) / max(1, n - 1)
    return _of(hypergeom(n, count, size), min(count, size), mean**2 + spread)


#: Laws by the exact type of the scheme; of the number of records that differ, of all
#: records, the batch size and the rate. Batches that are dealt have a law too, but not
#: one batch after the other: see :func:`dealt_squares`.
DISCREPANCIES: dict[
    type[SamplingScheme], Callable[[int, int, int, float], Discrepancy]
] = {
    FullBatchSampling: lambda count, n, size, rate: _binomial(count, 1.0),
    PoissonSampling: lambda count, n, size, rate: _binomial(count, rate),
    FixedSizeSampling: _fixed_size,
    # one record may be drawn at every draw
    WithReplacementSampling: lambda count, n, size, rate: _binomial(size, count / n),
}


def discrepancy(release: GradientRelease, count: int) -> Discrepancy:
    """Return the law of a batch's discrepancy under a release's sampling scheme.

    At most `count` records differ. See Sliced Rényi Pufferfish privacy, Proposition I.1
    and Appendix D: hypergeometric for subsets, binomial for draws with replacement.
    """
    n, size = release.n_records, release.batch_size
    assert size is not None  # the release has checked that
    rate = release.sampling_rate
    return _cached(type(release.sampling), min(count, n), n, size, rate)


# no data enters: public sizes only
@lru_cache(maxsize=512)
def _cached(
    kind: type[SamplingScheme], count: int, n: int, size: int, rate: float
) -> Discrepancy:
    return DISCREPANCIES[kind](count, n, size, rate)


def dealt_squares(count: int, size: int, weights: Floats) -> float:
    """Return the largest weighted sum of squared discrepancies over one epoch.

    Discrepancies add up to at most `count`, and none is above `size`. A weighted sum of
    squares is convex: it is largest where the heaviest batches are filled first.
    """
    filled = np.clip(count - size * np.arange(len(weights)), 0, size)
    return float(np.sort(weights)[::-1] @ filled.astype(float) ** 2)


#: Numbers of differing records that a law is read at one by one; beyond, in steps.
_ONE_BY_ONE = 64


@dataclass(frozen=True)
class CappedRun:
    """A run, and how many records differ in it at most or by which law.

    Parameters
    ----------
    subsampling : {'worst_case', 'log_moment', 'mean_square'}
    count : int
        How many records differ, at most.
    factors : ndarray of shape (n_steps,)
        How far one of them moves each step in clip norms.
    law : tuple of float or None
        Bounds of the probability that more than 0, 1, ... records differ.
    """

    release: GradientRelease
    subsampling: str
    count: int
    factors: Floats = field(repr=False)
    law: tuple[float, ...] | None = None

    @property
    def largest(self) -> float:
        """Largest move of a step in clip norms."""
        if type(self.release.sampling) in DISCREPANCIES:
            most = discrepancy(self.release, self.count).largest
        else:
            most = min(self.count, self._dealt_size)
        return float(most * self.factors.max())

    @property
    def moves(self) -> bool:
        """Whether any step moves at all."""
        differ = self.count if self.law is None else max(self.law, default=0.0)
        return bool(differ and self.factors.max())

    @property
    def squares(self) -> float:
        """Sum over all steps of the squared move in clip norms: largest, or mean.

        See Sliced Rényi Pufferfish privacy, Propositions 5.1 and 5.2.
        """
        weights = self.factors**2
        if type(self.release.sampling) not in DISCREPANCIES:
            return math.fsum(
                dealt_squares(self.count, self._dealt_size, epoch)
                for epoch in np.split(weights, self._epoch_ends)
            )
        found = discrepancy(self.release, self.count)
        mean = self.subsampling == "mean_square"
        each = found.mean_square if mean else float(found.largest) ** 2
        return each * math.fsum(weights)

    @property
    def _epoch_ends(self) -> range:
        per_epoch = self.release.steps_per_epoch
        return range(per_epoch, self.release.n_steps, per_epoch)

    @property
    def _dealt_size(self) -> int:
        """Records of the largest batch that is dealt."""
        return -(-self.release.n_records // self.release.steps_per_epoch)

    def costs(self, orders: Floats, length: float) -> Floats:
        """Return the Rényi costs of the whole run by order in nats.

        `length` is that of the longest clipped gradient, in deviations of the noise.
        """
        if not (length and self.moves):
            return np.zeros(len(orders))
        if math.isinf(length):
            return np.full(len(orders), math.inf)
        if self.law is not None:
            return self._by_law(orders, length)
        if self.subsampling != "log_moment":
            # alpha / 2 times the squared distance of two Gaussians, step by step
            return orders / 2 * (length**2 * self.squares)
        found = discrepancy(self.release, self.count)
        total = np.zeros(len(orders))
        # Given the batch the two outputs are Gaussians so far apart. The divergence of
        # the mixtures is no more than that with the batch seen, whose moment of order
        # alpha - 1 is the mean of those of all batches.
        for factor, times in zip(
            *np.unique(self.factors, return_counts=True), strict=True
        ):
            shifts = length * factor * found.times
            excess = seen_excess(orders, shifts, found.log_weights)
            total += times * np.logaddexp(0.0, excess) / (orders - 1)
        return total

    def _by_law(self, orders: Floats, length: float) -> Floats:
        """Costs by the mean over how many records differ: of whole runs, once."""
        counts, log_weights = _binned(self.law or ())
        rest = orders - 1
        found = [
            replace(self, count=int(k), law=None).costs(orders, length) for k in counts
        ]
        exponent = rest * np.array(found)
        with np.errstate(divide="ignore"):
            logs = exponent + np.log(-np.expm1(-exponent)) + log_weights[:, None]
        return np.logaddexp(0.0, logsumexp(logs, axis=0)) / rest


def _binned(law: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return numbers of records and log-masses, each moved up to the next kept.

    The cost grows with the number, so moving mass upwards is safe.
    """
    # bounds of a tail: no more than one, and falling
    tail = np.minimum.accumulate(np.clip(np.asarray(law, float), 0.0, 1.0))
    masses = tail - np.append(tail[1:], 0.0)
    top = len(tail)
    kept = np.arange(1, min(top, _ONE_BY_ONE) + 1)
    if top > _ONE_BY_ONE:
        further = np.ceil(np.geomspace(_ONE_BY_ONE, top, _ONE_BY_ONE))
        kept = np.unique(np.append(kept, np.minimum(further, top)))
    # mass number j is of j + 1 records
    bins = np.searchsorted(kept, np.arange(1, top + 1))
    total = np.bincount(bins, weights=masses, minlength=len(kept))
    some = total > 0
    return kept[some].astype(float), np.log(total[some])


# -- what clipping layer by layer caps along each slice of a profile -------------------


@dataclass(frozen=True)
class Slices:
    """A finite slice profile, and how its slices are taken together."""

    profile: SliceProfile
    averaging: str

    @classmethod
    def checked(
        cls,
        slices: ArrayLike | SliceProfile,
        slice_weights: ArrayLike | None,
        averaging: str,
    ) -> Slices:
        """Return what a user gave, as a profile or as directions and weights."""
        if not isinstance(slices, SliceProfile):
            slices = SliceProfile.finite(slices, slice_weights)
        elif slice_weights is not None or not slices.is_finite:
            raise value_error("sliced.slices_profile_infinite")
        return cls(slices, averaging)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.profile.dim

    def squared(self, clip_norms: Floats, blocks: tuple[int, ...]) -> float:
        """Return the squared length of a clipped gradient along the slices, taken
        together.

        It is the weighted mean over the slices if averaged, their largest otherwise.
        """
        directions, weights = self.profile.directions, self.profile.weights
        assert directions is not None and weights is not None  # finite
        caps = layer_caps(directions, blocks, clip_norms)
        return float(weights @ caps if self.averaging == "averaged" else caps.max())

    @property
    def name(self) -> str:
        """Identifier that equal profiles share."""
        return str(joblib.hash((self.profile.name, self.averaging)))[:16]


def layer_caps(
    slices: ArrayLike,
    blocks: tuple[int, ...],
    clip_norms: ArrayLike,
    *,
    lipschitz: ArrayLike = 1.0,
    factor: float = 1.0,
) -> Floats:
    """Return caps of the squared move along each slice, if layers are clipped apart.

    Parameters
    ----------
    slices : array-like of shape (n_slices, dim)
        Unit vectors.
    blocks : tuple of int
        Sizes of consecutive layers, adding up to `dim`.
    clip_norms : array-like of shape (n_blocks,)
        Clip norms of the layers.
    lipschitz : float or array-like of shape (n_blocks,), default=1.0
        Step size of each layer, where noise is added to the update.
    factor : float, default=1.0
        How many clip norms the mean moves: ``2 K / B`` for K replaced records of B.

    Returns
    -------
    ndarray of shape (n_slices,)
        At most the full-dimensional value, with the norm of `clip_norms * lipschitz`.

    Notes
    -----
    Caps that differ from slice to slice bound the loss of a slice in one step, given
    the history. **They do not add up** over a run that reads its own history: a later
    step may copy information from one direction to another.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix F.
    """
    directions = np.asarray(slices, float)
    if sum(blocks) != directions.shape[1]:
        raise value_error(
            "sliced.blocks_not_slice_length", shape=directions.shape[1], blocks=blocks
        )
    factor = check_non_negative(factor=factor)
    starts = np.cumsum((0, *blocks[:-1]))
    lengths = np.sqrt(np.add.reduceat(directions**2, starts, axis=1))
    per_layer = np.asarray(clip_norms, float) * np.asarray(lipschitz, float)
    return (factor * (lengths @ np.broadcast_to(per_layer, len(blocks)))) ** 2
