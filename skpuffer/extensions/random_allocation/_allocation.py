"""The accountant of records in random bins, by a bound of one's choice."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.numbers import check_option, check_probability
from skpuffer.kernel.steps import (
    GRADIENT_FIELDS,
    Dominated,
    GradientSteps,
    StepsOfRelease,
)
from skpuffer.noise import Noise
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.releases import (
    BallsInBinsSampling,
    FreshBinsSampling,
    FullBatchSampling,
    GradientRelease,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from ._correlated_runs import bins_of, correlated_pairs, correlation_statement
from .loss._correlated import CorrelatedAllocationPair
from .strategies._base import NoiseStrategy
from .strategies._families import identity

__all__ = ["RandomAllocation"]


#: Bounds by their names.
METHODS = (
    "best",
    "exact",
    "chain",
    "blocks",
    "closed",
    "renyi",
    "conditional",
    "unamplified",
)

#: Those that say nothing of a record that is replaced.
_ONE_SIDED = ("blocks", "closed", "renyi", "conditional")

# a full batch is the one bin of its epoch: what trained estimators ask about to see how
# much noise a budget takes
_BINS = (FreshBinsSampling, BallsInBinsSampling, FullBatchSampling)


def check_bins(release: GradientRelease, count: int) -> None:
    """Refuse a run whose records draw no bins, or a group of records.

    Parameters
    ----------
    release : GradientRelease
    count : int
        How many records differ.

    Raises
    ------
    UnsupportedError
        With a clause that gives the reason and the remedy.
    """
    if type(release.sampling) not in _BINS:
        raise UnsupportedError(
            Statement(
                "allocation.scheme_draws_no_bins",
                sampling=str(release.sampling),
                sampling_type=type(release.sampling).__name__,
            )
        )
    if count > 1:
        raise UnsupportedError(
            Statement(
                "allocation.group_without_bound",
                count=count,
                sampling=str(release.sampling),
            )
        )


def strategy_of(release: GradientRelease) -> NoiseStrategy:
    """Return how the noise of a run is correlated, which may be not at all."""
    found: Any = release.noise_correlation
    return identity() if found is None else found


@dataclass(frozen=True)
class AllocationSteps(GradientSteps, kind=None):
    """The steps of a run whose records draw bins; see :class:`GradientSteps`.

    Parameters
    ----------
    method : str
        Which bound.
    target : float or None
        Delta for which it is, if it is for one.
    """

    release: GradientRelease
    method: str = "best"
    target: float | None = None

    def check(self) -> None:
        """Refuse what has no such bound; see the base class."""
        check_bins(self.release, self.count)
        super().check()
        if self.method == "exact" and self.release.noise_correlation is not None:
            raise UnsupportedError(Statement("allocation.noise_correlated"))
        # all records are in one bin: nothing is left to a method
        if type(self.release.sampling) is FullBatchSampling:
            return
        if self.relation == "replace" and self.method in _ONE_SIDED:
            raise UnsupportedError(
                Statement("allocation.method_without_replace", method=self.method)
            )
        parts = bins_of(self.release, strategy_of(self.release))
        if self.method == "conditional" and sum(part.times for part in parts) > 1:
            raise UnsupportedError(Statement("allocation.conditional_over_epochs"))

    def dominated(self, noise: Noise) -> Dominated:
        """Return the dominating pairs of these steps; see the base class."""
        if self.curve_of(noise, 1).gaussian_mu is None:
            raise UnsupportedError(
                Statement(
                    "allocation.noise_not_gaussian",
                    name=self.release.name,
                    family=noise.family,
                )
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
    across steps; full batches are one bin. :class:`PrivacyLoss` accounts for the same
    by the best bound that is known: this accountant takes the one that is asked for,
    and its certificate names the one that was the least in each direction.

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
        - 'blocks': independent blocks of bins, which is quicker than chains and looser.
        - 'closed': Jensen's inequality where a record is added, known bins where one is
          removed.
        - 'renyi': Rényi divergences by sums over counts where a record is removed,
          'closed' where one is added.
        - 'conditional': conditional composition, step by step, as a baseline: looser
          than chains, slower, for this `delta` alone, and no part of 'best'.
        - 'unamplified': as if it were known which bin a record is in.
    max_memory : float, default=500
        MiB that a grid may take where epochs are composed.

    See Also
    --------
    PrivacyLoss : The same promise, by the best of these, for any sampling.
    SampledAllocation : Estimates by Monte Carlo.

    Notes
    -----
    Neighbouring tables differ in one record that is added, removed or replaced; of a
    replaced one, 'blocks', 'closed', 'renyi' and 'conditional' say nothing and refuse.
    Groups of records have no bound here. Where bins are drawn anew, noise may be
    correlated within epochs only, and 'conditional' is for one epoch at most.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation; Choquette-Choo, Ganesh, Haque, Steinke and
    Thakurta (2025), Near exact privacy amplification for matrix mechanisms; Feldman and
    Shenfeld (2025), Privacy amplification by random allocation.

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
    >>> for method in ("best", "unamplified"):
    ...     accountant = RandomAllocation(1.0, 1e-5, method=method)
    ...     noise = accountant.calibrate(release, RecordScenario()).noise
    ...     print(method, round(noise.scale, 1))
    best 3.0
    unamplified 5.9
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
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
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
    if not isinstance(certificate.curve, PrivacyLossCurve):
        return ()
    pairs: list[Any] = [pair for pair, _ in certificate.curve.steps]
    if not all(isinstance(pair, CorrelatedAllocationPair) for pair in pairs):
        return (Statement("assume.bound_of_each_direction", exact=_EXACT),)
    return ()


def _noise(steps: AllocationSteps, noise: Noise) -> tuple[Statement, ...]:
    """Say how much independent noise there is, as is said of correlated noise."""
    if steps.release.noise_correlation is not None:
        return ()
    return (correlation_statement(steps, strategy_of(steps.release), noise),)
