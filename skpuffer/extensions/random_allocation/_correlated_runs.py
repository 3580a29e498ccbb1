"""Runs whose noise is correlated across steps: which have an account, and by what."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.steps import GradientSteps
from skpuffer.noise import Noise
from skpuffer.privacy_loss import PrivacyLossCurve, ShiftPair
from skpuffer.releases import (
    BallsInBinsSampling,
    FreshBinsSampling,
    FullBatchSampling,
    GradientRelease,
)

from .loss._correlated import CorrelatedAllocationPair
from .strategies._base import NoiseStrategy
from .strategies._optimised import BufferedToeplitz
from .strategies._restarted import Restarted
from .strategies._rows import BandedRows, PrefixSumTree
from .strategies._toeplitz import InverseToeplitz, Toeplitz

if TYPE_CHECKING:
    _Pair = ShiftPair | CorrelatedAllocationPair

__all__ = [
    "KeptBins",
    "bins_of",
    "check_correlated",
    "correlated_pairs",
    "correlation_statement",
    "register",
    "winners",
]

_SOURCE = Statement("source.gaussian_mixtures_per_bin")

_ACCOUNTED = (BallsInBinsSampling, FreshBinsSampling, FullBatchSampling)

#: Strategies that do to the noise what they say of their matrix.
_STRATEGIES = (Toeplitz, InverseToeplitz, BufferedToeplitz, BandedRows, PrefixSumTree)


class KeptBins(NamedTuple):
    """Steps for which records keep the bins they drew.

    Parameters
    ----------
    strategy : NoiseStrategy
        Of their noise, which is independent of that of other steps.
    n_steps : int
    times : int
        How many such parts the run has.
    """

    strategy: NoiseStrategy
    n_steps: int
    times: int


def check_correlated(release: GradientRelease) -> None:
    """Refuse a run whose noise is correlated in a way that has no account.

    Parameters
    ----------
    release : GradientRelease
        With a strategy.

    Raises
    ------
    UnsupportedError
        With a clause that gives the reason and the remedy.
    """
    scheme = release.sampling
    # by exact type: what a subclass does with its bins is not known
    if type(scheme) not in _ACCOUNTED:
        raise UnsupportedError(
            Statement("correlation.sampling_scheme_unfit", scheme=str(scheme))
        )
    strategy = release.noise_correlation
    each = strategy.strategy if type(strategy) is Restarted else strategy
    # by exact type as well: what a subclass does to the noise is not known
    if type(each) not in _STRATEGIES:
        raise UnsupportedError(
            Statement("correlation.strategy_unknown", each_type=type(each).__name__)
        )
    if type(scheme) is FreshBinsSampling and not _begins_with_bins(release):
        raise UnsupportedError(
            Statement(
                "correlation.bins_redrawn_across_epochs",
                steps_per_epoch=release.steps_per_epoch,
            )
        )


def _begins_with_bins(release: GradientRelease) -> bool:
    """Whether noise is correlated within epochs only."""
    strategy, n_batches = release.noise_correlation, release.steps_per_epoch
    if release.n_steps <= n_batches:
        return True
    return type(strategy) is Restarted and strategy.every == n_batches


def bins_of(release: GradientRelease, strategy: NoiseStrategy) -> tuple[KeptBins, ...]:
    """Return the parts of a run in each of which records keep their bins.

    Parameters
    ----------
    release : GradientRelease
        Whose records draw bins.
    strategy : NoiseStrategy
        Of its noise.

    Returns
    -------
    tuple of KeptBins
        At most two: all whole epochs, and the last one if it is cut short.
    """
    n_steps, n_batches = release.n_steps, release.steps_per_epoch
    if type(release.sampling) is not FreshBinsSampling or n_steps <= n_batches:
        return (KeptBins(strategy, n_steps, 1),)
    epoch = strategy.strategy if isinstance(strategy, Restarted) else strategy
    whole, rest = divmod(n_steps, n_batches)
    parts = (KeptBins(epoch, n_batches, whole), KeptBins(epoch, rest, 1))
    return tuple(part for part in parts if part.n_steps)


def correlated_pairs(
    steps: GradientSteps,
    noise: Noise,
    strategy: NoiseStrategy,
    method: str = "best",
    target: float | None = None,
) -> tuple[tuple[tuple["_Pair", int], ...], Statement]:
    """Return what dominates a run of correlated noise, and where that is proved.

    Parameters
    ----------
    steps : GradientSteps
        Checked.
    noise : Noise
    strategy : NoiseStrategy
    method : str, default='best'
        Bound of records in bins.
    target : float, default=None
        Delta for which it is, if it is for one.

    Returns
    -------
    pairs : tuple of (pair, int)
    source : Statement

    Raises
    ------
    UnsupportedError
        If the noise is not Gaussian.
    """
    release = steps.release
    once = steps.curve_of(noise, 1)
    # what is released is a linear map of independent draws, whose law no other family
    # keeps
    if once.gaussian_mu is None:
        raise UnsupportedError(
            Statement(
                "correlation.noise_not_gaussian", name=release.name, family=noise.family
            )
        )
    if type(release.sampling) is FullBatchSampling:
        # every record is in the one batch of each step: one Gaussian mechanism, however
        # the gradients depend on what was seen before
        together = _longest(strategy, 1, release.n_steps)
        pair = ShiftPair(steps.curve_of(noise, steps._moved * together))
        source = Statement("source.gaussian_adaptive_streams")
        return ((pair, 1),), source
    replaced = steps.relation == "replace"
    n_batches = release.steps_per_epoch
    pairs = tuple(
        (
            CorrelatedAllocationPair(
                once, part.strategy, n_batches, part.n_steps, replaced, method, target
            ),
            part.times,
        )
        for part in bins_of(release, strategy)
    )
    return pairs, _SOURCE


# asked for at each scale that is tried
@lru_cache(maxsize=64)
def _longest(strategy: NoiseStrategy, n_batches: int, n_steps: int) -> float:
    """How far a record moves ``C @ sums`` at most, in clip norms."""
    return strategy.sensitivity(n_batches, n_steps)


def winners(curve: PrivacyLossCurve, epsilon: float) -> tuple[Statement, ...]:
    """Say which bound was the least, by direction.

    Parameters
    ----------
    curve : PrivacyLossCurve
    epsilon : float

    Returns
    -------
    tuple of Statement
        None unless all steps are of correlated noise. Of a run of several parts, each
        with bins of its own, the bound of the longest at the epsilon of the run: what
        is composed is the least at every loss, which need not be the same one.
    """
    pairs: list[Any] = [pair for pair, _ in curve.steps]
    of_bins = all(hasattr(pair, "winner") for pair in pairs)
    if not of_bins or not math.isfinite(epsilon):
        return ()
    longest = max(pairs, key=lambda pair: pair.n_steps)
    found = tuple(f"{name} ({way})" for way, name in longest.winner(epsilon).items())
    if curve.n_steps == 1:
        return (Statement("correlation.upper_bound_each_direction", found=found),)
    return (
        Statement(
            "correlation.parts_composed_least",
            n_parts=curve.n_steps,
            epsilon=epsilon,
            found=found,
        ),
    )


def correlation_statement(
    steps: GradientSteps, strategy: NoiseStrategy, noise: Noise
) -> Statement:
    """Say how much noise there is, for what a record adds to C @ sums.

    Parameters
    ----------
    steps : GradientSteps
    strategy : NoiseStrategy
    noise : Noise
        Gaussian.

    Returns
    -------
    Statement
    """
    release = steps.release
    longest = _longest(strategy, release.steps_per_epoch, release.n_steps)
    # of noise in proportions, the scale in one unit that hides a record as well
    moved = float(cast(float, steps.curve_of(noise, 1).gaussian_mu))
    scale = 1 / moved if moved else math.inf
    return Statement(
        "correlation.independent_draws_scale", scale=scale, longest=longest
    )


class _Runs:
    """Account of runs of the strategies here."""

    check = staticmethod(check_correlated)
    pairs = staticmethod(correlated_pairs)
    statement = staticmethod(correlation_statement)
    winners = staticmethod(winners)


def register() -> None:
    """Let accountants that compose steps account for these runs."""
    GradientSteps.correlated = _Runs()
