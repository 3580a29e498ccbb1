"""Monte Carlo of records in random bins: estimates, or noise that abstains."""

import math
from functools import partial
from typing import ClassVar

import numpy as np

from skpuffer.accountants import (
    GRADIENT_FIELDS,
    Account,
    Accountant,
    Found,
    accounts_for,
)
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_positive,
    check_probability,
)
from skpuffer.kernel.steps import GradientSteps, StepsOfRelease, steps_of
from skpuffer.noise import Noise
from skpuffer.privacy_loss.allocation import (
    SampledDelta,
    abstention_threshold,
    sampled_delta,
)
from skpuffer.privacy_loss.allocation._lattice import crossing, sampled_crossing
from skpuffer.privacy_loss.allocation._sampled import tilt_of
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import Adjacency, BoundScenario
from skpuffer.utils._checks import check_bool
from skpuffer.utils._types import RandomState

from ._allocation import bins_of, check_bins, strategy_of

_SOURCE = Statement("source.sampled_privacy_losses")

#: Standard errors that a scale keeps clear of the threshold, so that a release rarely
#: abstains.
_CLEAR = 4.0


class SampledAllocation(Accountant):
    """Monte Carlo of the privacy loss of records in bins: estimates by default.

    For runs whose records draw one of several bins and keep it. Noise may be correlated
    across steps in any way. Certificates are labelled as estimates and refuse to be
    added up; :class:`RandomAllocation` gives bounds. With ``abstain=True`` a fresh
    sample verifies the noise before any data is read, and the release is refused if
    that fails. Then delta covers the chance of an error, and the certificate is a
    promise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    n_samples : int, default=100_000
        Independent draws for each direction. To abstain takes some multiple of
        ``1 / delta``.
    confidence : float, default=0.99
        Probability in (0, 1) with which an estimated epsilon is large enough.
    abstain : bool, default=False
        Whether to verify the noise and to refuse the release if that fails.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the sampled losses, not of the release's noise. None draws fresh entropy
        in each call, which a promise needs: any other makes `abstain` an estimate too.

    References
    ----------
    Choquette-Choo, Ganesh, Haque, Steinke and Thakurta (2025), Near exact privacy
    amplification for matrix mechanisms.

    Examples
    --------
    >>> from skpuffer.accountants import SampledAllocation
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(
    ...     n_records=100, batch_size=10, n_steps=20, sampling="balls_in_bins"
    ... )
    >>> accountant = SampledAllocation(1.0, 1e-5, random_state=0)
    >>> accountant.calibrate(release, RecordScenario()).certificate.certified
    False
    """

    needs = (Adjacency,)
    reads: ClassVar = {GradientRelease: GRADIENT_FIELDS}
    recommended = False  # an estimate is no substitute for a promise

    noise: str = "gaussian"
    beta: None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        n_samples: int = 100_000,
        confidence: float = 0.99,
        abstain: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_samples = n_samples
        self.confidence = confidence
        self.abstain = abstain
        self.random_state = random_state

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_count(n_samples=self.n_samples, least=100)
        check_probability(confidence=self.confidence)
        check_bool(abstain=self.abstain)

    # -- the protocol -------------------------------------------------------------

    @accounts_for(GradientRelease)
    def _account_of_run(
        self, fact: Adjacency, release: GradientRelease, bound: BoundScenario
    ) -> Account:
        # refused here, when support is asked for, and not only when noise is set
        with self._refusing(release, bound, "allocation.losses_not_sampled"):
            steps = self._steps(fact, release)
        return Account(
            partial(self._calibrate, steps, fact),
            partial(self._certify, steps, fact, self._draws),
            lambda noise: self._gram(steps, noise),
        )

    def _steps(self, fact: Adjacency, release: GradientRelease) -> GradientSteps:
        """Check what is asked about, and return it as it is sampled."""
        check_bins(release, fact.count)
        steps: StepsOfRelease = steps_of(release, fact, correlated=True)
        assert isinstance(steps, GradientSteps)
        if steps.event:
            raise unsupported_error("allocation.count_uncertain", event=steps.event)
        parts = bins_of(release, strategy_of(release))
        if len(parts) > 1 or parts[0].times > 1:
            raise unsupported_error("allocation.bins_redrawn_each_epoch")
        return steps

    def _calibrate(
        self,
        steps: GradientSteps,
        fact: Adjacency,
        unit: Noise,
        random_state: RandomState,
    ) -> Found:
        """Set the scale to the least that the sample is for."""
        seed = self._seed(random_state)
        release, epsilon, delta = steps.release, float(self.epsilon), float(self.delta)
        units = release.unit_array if release.units is not None else 1.0
        clip = release.total_clip_norm

        def gram(part: float) -> Floats:
            return self._gram(steps, unit.with_scale(clip * part * units))

        def excess(part: float) -> float:
            return max(
                self._excess(gram(part), epsilon, way, seed, searching=True)
                for way in self._ways(steps)
            )

        guess = sampled_crossing(
            gram, lambda _: epsilon, delta, steps.relation == "replace"
        )
        part = crossing(excess, 1.0, guess)
        if math.isinf(part):
            raise unsupported_error(
                "allocation.samples_show_no_noise",
                owner=type(self).__name__,
                n_samples=int(self.n_samples),
                delta=delta,
            )
        noise = unit.with_scale(clip * part * units)
        certificate = self._certify(steps, fact, seed, noise)
        # what verifies is drawn anew each time
        return Found(noise, certificate, draws=None if self.abstain else seed)

    def _certify(
        self, steps: GradientSteps, fact: Adjacency, seed: int | None, noise: Noise
    ) -> Claim:
        """Estimate what a noise costs, or verify that it keeps the promise."""
        gram = self._gram(steps, noise)
        release, relation = steps.release, steps.relation
        # coins that are known before they are tossed verify nothing
        fresh = self.random_state is None
        certified = bool(self.abstain) and fresh and fact.certified
        if self.abstain:
            self._verify(gram, steps, release)
            epsilon = float(self.epsilon)
            said = Statement(
                "assume.noise_verified_by_samples", n_samples=int(self.n_samples)
            )
        else:
            seed = self._seed(None) if seed is None else seed
            epsilon = self._epsilon(gram, steps, seed)
            said = Statement(
                "assume.epsilon_estimated_from_samples",
                n_samples=int(self.n_samples),
                confidence=float(self.confidence),
            )
        return Claim(
            # a sample that nobody acts upon may be wrong by chance: never a promise
            notion=Notion.APPROXIMATE_DP if certified else Notion.ESTIMATED,
            epsilon=epsilon,
            delta=float(self.delta),
            confidence=1.0 if self.abstain else float(self.confidence),
            relation=relation,
            coupling_id=fact.any_coupling(relation) if certified else None,
            coupling_count=1 if certified else None,
            assumptions=(
                *fact.assumptions,
                release.sampling_statement,
                said,
                *release.assumptions,
            ),
            sensitivity=release.total_clip_norm,
            norm=float(release.clip_order),
            source=_SOURCE,
        )

    # -- the parts ----------------------------------------------------------------

    def _seed(self, random_state: RandomState) -> int:
        """Seed by which one call meets the same random numbers throughout."""
        # what is given to one call is used up by it: an estimate is found again
        given = random_state if self.random_state is None else self.random_state
        rng, _ = noise_generator(given)
        return int(rng.integers(2**63))

    @staticmethod
    def _ways(steps: GradientSteps) -> tuple[str, ...]:
        """Directions of neighbouring tables; a promise must hold for the worst."""
        return ("replace",) if steps.relation == "replace" else ("remove", "add")

    def _gram(self, steps: GradientSteps, noise: Noise) -> Floats:
        """Gram matrix of what a record adds in each bin, in units of the noise."""
        release = steps.release
        mu = steps.curve_of(noise, 1).gaussian_mu
        if mu is None:
            raise unsupported_error(
                "allocation.sampled_noise_not_gaussian",
                owner=type(self).__name__,
                family=noise.family,
            )
        # the bound is the trivial one from a finite distance on
        strategy = strategy_of(release)
        means = strategy.means(release.steps_per_epoch, release.n_steps)
        gram = means @ means.T
        return min(float(mu), 1e6) ** 2 * np.maximum(gram, gram.T)

    def _sample(
        self, gram: Floats, epsilon: float, way: str, seed: int, n_samples: int
    ) -> SampledDelta:
        return sampled_delta(
            gram,
            epsilon,
            way,
            n_samples=n_samples,
            confidence=float(self.confidence),
            rng=np.random.default_rng(seed),
        )

    def _excess(
        self, gram: Floats, epsilon: float, way: str, seed: int, searching: bool
    ) -> float:
        """What a sample says of delta, over what it may say."""
        if not self.abstain:
            found = self._sample(gram, epsilon, way, seed, int(self.n_samples))
            return found.upper / float(self.delta)
        few = min(int(self.n_samples), 200_000)
        n_samples = few if searching else int(self.n_samples)
        threshold = self._threshold(gram, epsilon, way)
        found = self._sample(gram, epsilon, way, seed, n_samples)
        clear = 0.0
        if searching:
            # errors of this sample and of the one that verifies
            shares = 1 + few / int(self.n_samples)
            clear = _CLEAR * found.error * math.sqrt(shares)
        return (found.estimate + clear) / threshold

    def _threshold(self, gram: Floats, epsilon: float, way: str) -> float:
        """Largest mean of a sample with which the promise holds."""
        _, largest = tilt_of(gram, epsilon, way)
        found = abstention_threshold(float(self.delta), int(self.n_samples), largest)
        # none passes but one without a single loss
        return max(found, 1e-300)

    def _verify(
        self, gram: Floats, steps: GradientSteps, release: GradientRelease
    ) -> None:
        """Refuse the release unless a fresh sample is for its noise."""
        rng, _ = noise_generator(self.random_state)
        for way in self._ways(steps):
            # apart from the numbers by which the noise was found
            seed = int(rng.integers(2**63)) ^ 0x5EED
            excess = self._excess(gram, float(self.epsilon), way, seed, searching=False)
            if excess > 1:
                raise unsupported_error(
                    "allocation.noise_not_verified",
                    owner=type(self).__name__,
                    name=release.name,
                    n_samples=int(self.n_samples),
                    epsilon=float(self.epsilon),
                    delta=float(self.delta),
                )

    def _epsilon(self, gram: Floats, steps: GradientSteps, seed: int) -> float:
        """Estimate epsilon: the larger one of the two directions."""

        def excess(epsilon: float) -> float:
            return max(
                self._excess(gram, epsilon, way, seed, searching=False)
                for way in self._ways(steps)
            )

        if not gram.any() or excess(0.0) <= 1:
            return 0.0
        return crossing(excess, 1.0, float(self.epsilon), 1e-7)
