"""The accountant of records in random bins, by a bound of one's choice."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

from skpuffer.accountants import GRADIENT_FIELDS, PrivacyLoss
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.numbers import check_option, check_probability
from skpuffer.kernel.steps import Accounting, Dominated, GradientSteps, StepsOfRelease
from skpuffer.noise import Noise
from skpuffer.privacy_loss import PrivacyLossCurve, ShiftPair
from skpuffer.releases import (
    BallsInBinsSampling,
    FreshBinsSampling,
    FullBatchSampling,
    GradientRelease,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from .loss._correlated import METHODS as METHODS_OF_BINS
from .loss._correlated import CorrelatedAllocationPair
from .strategies._base import NoiseStrategy, Restarted
from .strategies._families import identity
from .strategies._optimised import BufferedToeplitz, InverseToeplitz, Toeplitz
from .strategies._rows import BandedRows, PrefixSumTree

#: Bounds by their names.
METHODS = ("best", "exact", *METHODS_OF_BINS[1:])

#: Those that say nothing of a record that is replaced.
_ONE_SIDED = ("blocks", "closed", "renyi", "conditional")

# a full batch is the one bin of its epoch: what trained estimators ask about to see how
# much noise a budget takes
_BINS = (FreshBinsSampling, BallsInBinsSampling, FullBatchSampling)


def check_bins(release: GradientRelease, count: int) -> None:
    """Refuse a run whose records draw no bins, or a group of `count` records."""
    if type(release.sampling) not in _BINS:
        raise unsupported_error(
            "allocation.scheme_draws_no_bins",
            sampling=str(release.sampling),
            sampling_type=type(release.sampling).__name__,
        )
    if count > 1:
        raise unsupported_error(
            "allocation.group_without_bound",
            count=count,
            sampling=str(release.sampling),
        )


def strategy_of(release: GradientRelease) -> NoiseStrategy:
    """Return how the noise of a run is correlated, which may be not at all."""
    found: Any = release.noise_correlation
    return identity() if found is None else found


class CorrelatedSteps(GradientSteps, kind=None):
    """The steps of a run whose noise may be correlated; see :class:`GradientSteps`."""

    def check_correlation(self) -> None:
        """Refuse a run whose noise is correlated in a way that has no account."""
        if self.release.noise_correlation is not None:
            check_correlated(self.release)

    @staticmethod
    def winners(curve: PrivacyLossCurve, epsilon: float) -> tuple[Statement, ...]:
        """Say which bound was the least; nothing of other runs."""
        return winners(curve, epsilon)

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the dominating pairs of all steps, and say how noise is shared."""
        found, strategy = (
            super().under(noise, max_memory),
            self.release.noise_correlation,
        )
        if strategy is None:
            return found
        shared = Statement(
            "assume.noise_correlated_across_steps",
            strategy_type=type(strategy).__name__,
        )
        stated = correlation_statement(self, strategy, noise)
        assumptions = (*found.assumptions, shared, stated)
        return replace(found, assumptions=assumptions)

    def dominated(self, noise: Noise) -> Dominated:
        """Return the dominating pairs of these steps; see the base class."""
        if self.release.noise_correlation is None:
            return super().dominated(noise)
        pairs, source = correlated_pairs(self, noise, self.release.noise_correlation)
        return Dominated(pairs, source, tight=False)


@dataclass(frozen=True)
class AllocationSteps(CorrelatedSteps, kind=None):
    """The steps of a run whose records draw bins; see :class:`GradientSteps`.

    `method` is the bound, and `target` the delta for which it is, if it is for one.
    """

    release: GradientRelease
    method: str = "best"
    target: float | None = None

    def check(self) -> None:
        """Refuse what has no such bound; see the base class."""
        check_bins(self.release, self.count)
        super().check()
        if self.method == "exact" and self.release.noise_correlation is not None:
            raise unsupported_error("allocation.noise_correlated")
        # all records are in one bin: nothing is left to a method
        if type(self.release.sampling) is FullBatchSampling:
            return
        if self.relation == "replace" and self.method in _ONE_SIDED:
            raise unsupported_error(
                "allocation.method_without_replace", method=self.method
            )
        parts = bins_of(self.release, strategy_of(self.release))
        if self.method == "conditional" and sum(part.times for part in parts) > 1:
            raise unsupported_error("allocation.conditional_over_epochs")

    def dominated(self, noise: Noise) -> Dominated:
        """Return the dominating pairs of these steps; see the base class."""
        if self.curve_of(noise, 1).gaussian_mu is None:
            raise unsupported_error(
                "allocation.noise_not_gaussian",
                name=self.release.name,
                family=noise.family,
            )
        independent = self.release.noise_correlation is None
        if independent and self.method in ("best", "exact"):
            return super().dominated(noise)
        strategy = strategy_of(self.release)
        pairs, source = correlated_pairs(
            self, noise, strategy, self.method, self.target
        )
        return Dominated(pairs, source, tight=False)


#: What wins where the noise is independent.
_EXACT = Statement("allocation.exact_up_to_grid")


class RandomAllocation(PrivacyLoss):
    """Noise for training runs whose records draw one of several bins by chance.

    Each record draws one of the batches of an epoch, anew in each (``'fresh_bins'``) or
    once for the run (``'balls_in_bins'``), and the Gaussian noise may be correlated
    across steps. :class:`PrivacyLoss` takes the best known bound; this accountant takes
    the one that you name. Its certificate names the least bound in each direction.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    method : {'best', 'exact', 'chain', 'blocks', 'closed', 'renyi', 'conditional', \
'unamplified'}, default='best'
        - 'best': the least of all that are known, by direction and epsilon.
        - 'exact': of independent noise only.
        - 'chain': Markov chains whose covariance is no less than that of the bins.
        - 'blocks': independent blocks of bins; quicker than chains and looser.
        - 'closed': Jensen's inequality where a record is added, known bins where one is
          removed.
        - 'renyi': Rényi divergences where a record is removed, 'closed' where one is
          added.
        - 'conditional': conditional composition as a baseline: looser than chains,
          slower, for this `delta` alone, and no part of 'best'.
        - 'unamplified': as if it were known which bin a record is in.
    max_memory : float, default=500
        MiB that a grid may take where epochs are composed.

    Notes
    -----
    Neighbouring tables differ in one record that is added, removed or replaced. For a
    replaced one, 'blocks', 'closed', 'renyi' and 'conditional' refuse. Groups of
    records have no bound here. Where bins are drawn anew, noise may be correlated
    within epochs only, and 'conditional' is for one epoch at most.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation. Feldman and Shenfeld (2025), Privacy
    amplification by random allocation.

    Examples
    --------
    >>> from skpuffer.accountants import RandomAllocation
    >>> from skpuffer.noise.strategies import banded_square_root
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(
    ...     n_records=100,
    ...     batch_size=10,
    ...     n_steps=20,
    ...     sampling="balls_in_bins",
    ...     noise_correlation=banded_square_root(2),
    ... )
    >>> found = RandomAllocation(1.0, 1e-5).calibrate(release, RecordScenario())
    >>> round(found.noise.scale, 1)
    3.0
    """

    reads: ClassVar = {GradientRelease: GRADIENT_FIELDS}
    _kinds: ClassVar[Mapping[type, type[StepsOfRelease]]] = {
        GradientRelease: AllocationSteps
    }

    #: PrivacyLoss makes the same promise by the best of its bounds.
    recommended = False

    noise: str = "gaussian"
    beta: None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        method: str = "best",
        max_memory: float = 500,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.max_memory = max_memory

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_option(METHODS, method=self.method)

    def _asked_of(self, steps: StepsOfRelease) -> StepsOfRelease:
        assert isinstance(steps, AllocationSteps)
        asked = replace(steps, method=self.method, target=self._target)
        asked.check()
        return asked

    @property
    def _target(self) -> float | None:
        # the other bounds are for any: one search serves all deltas
        if self.method != "conditional":
            return None
        return check_probability(delta=self.delta)

    def _certify_steps(
        self, steps: StepsOfRelease, fact: Adjacency, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise of each step promises."""
        certificate = super()._certify_steps(steps, fact, bound, noise)
        assert isinstance(steps, AllocationSteps)
        said = (_bins(steps), *_bounds(certificate), *_noise(steps, noise))
        return replace(certificate, assumptions=(*certificate.assumptions, *said))


def _bins(steps: AllocationSteps) -> Statement:
    """Say how long bins are kept."""
    if type(steps.release.sampling) is FullBatchSampling:
        return Statement("assume.one_bin_each_step")
    kept = (
        Statement("allocation.bins_drawn_each_epoch")
        if type(steps.release.sampling) is FreshBinsSampling
        else Statement("allocation.bins_kept_for_run")
    )
    return Statement("assume.bins_independent_per_record", kept=kept)


def _bounds(certificate: Claim) -> tuple[Statement, ...]:
    """Name the bound in each direction, where the composition does not."""
    curve = certificate.curve
    if not isinstance(curve, PrivacyLossCurve) or all(
        isinstance(pair, CorrelatedAllocationPair) for pair, _ in curve.steps
    ):
        return ()
    return (Statement("assume.bound_of_each_direction", exact=_EXACT),)


def _noise(steps: AllocationSteps, noise: Noise) -> tuple[Statement, ...]:
    """Say how much independent noise there is, as is said of correlated noise."""
    if steps.release.noise_correlation is not None:
        return ()
    return (correlation_statement(steps, strategy_of(steps.release), noise),)


# -- runs whose noise is correlated across steps: which have an account, and by what ---


_SOURCE = Statement("source.gaussian_mixtures_per_bin")

#: Strategies that do to the noise what they say of their matrix.
_STRATEGIES = (Toeplitz, InverseToeplitz, BufferedToeplitz, BandedRows, PrefixSumTree)


class KeptBins(NamedTuple):
    """Steps for which records keep the bins they drew, `times` such parts in a run."""

    strategy: NoiseStrategy
    n_steps: int
    times: int


def check_correlated(release: GradientRelease) -> None:
    """Refuse a run whose noise is correlated in a way that has no account."""
    scheme = release.sampling
    # by exact type: what a subclass does with its bins is not known
    if type(scheme) not in _BINS:
        raise unsupported_error("correlation.sampling_scheme_unfit", scheme=str(scheme))
    strategy = release.noise_correlation
    each = strategy.strategy if type(strategy) is Restarted else strategy
    # by exact type as well: what a subclass does to the noise is not known
    if type(each) not in _STRATEGIES:
        raise unsupported_error(
            "correlation.strategy_unknown", each_type=type(each).__name__
        )
    if type(scheme) is FreshBinsSampling and not _begins_with_bins(release):
        raise unsupported_error(
            "correlation.bins_redrawn_across_epochs",
            steps_per_epoch=release.steps_per_epoch,
        )


def _begins_with_bins(release: GradientRelease) -> bool:
    """Whether noise is correlated within epochs only."""
    strategy, n_batches = release.noise_correlation, release.steps_per_epoch
    if release.n_steps <= n_batches:
        return True
    return type(strategy) is Restarted and strategy.every == n_batches


def bins_of(release: GradientRelease, strategy: NoiseStrategy) -> tuple[KeptBins, ...]:
    """Return the parts of a run in each of which records keep their bins.

    There are at most two: all whole epochs, and the last one if it is cut short.
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
) -> tuple[tuple[tuple["ShiftPair | CorrelatedAllocationPair", int], ...], Statement]:
    """Return (pair, count) for a run of correlated noise, and where that is proved.

    `method` is the bound of records in bins, `target` the delta it may be for.
    """
    release = steps.release
    once = steps.curve_of(noise, 1)
    # what is released is a linear map of independent draws, whose law no other family
    # keeps
    if once.gaussian_mu is None:
        raise unsupported_error(
            "correlation.noise_not_gaussian", name=release.name, family=noise.family
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
    """How far a record moves ``C @ sums`` at most in clip norms."""
    return strategy.sensitivity(n_batches, n_steps)


def winners(curve: PrivacyLossCurve, epsilon: float) -> tuple[Statement, ...]:
    """Say which bound was the least, by direction, for steps of correlated noise.

    For a run of several parts it is the bound of the longest at the run's epsilon.
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
    """Say how much noise there is, for what a record adds to C @ sums."""
    release = steps.release
    longest = _longest(strategy, release.steps_per_epoch, release.n_steps)
    # of noise in proportions, the scale in one unit that hides a record as well
    moved = float(cast(float, steps.curve_of(noise, 1).gaussian_mu))
    scale = 1 / moved if moved else math.inf
    return Statement(
        "correlation.independent_draws_scale", scale=scale, longest=longest
    )


def register() -> None:
    """Let accountants that compose steps account for these runs."""
    GradientSteps.correlated = CorrelatedSteps
