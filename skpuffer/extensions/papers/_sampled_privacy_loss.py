"""Monte Carlo accounting: the distribution of privacy losses, from samples."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

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
    check_non_negative,
    check_positive,
    check_probability,
)
from skpuffer.kernel.steps import steps_of
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise, Noise
from skpuffer.privacy_loss import PoissonPair, ShiftPair
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import Adjacency, BoundScenario
from skpuffer.utils._types import RandomState

from ._discrepancy_caps import EmpiricalLosses, Sampler, samplers, width_for

#: Number of grid points beyond which the mesh is made coarser.
_MOST_POINTS = 2**22

#: Largest mesh, in nats and in standard deviations of one step's loss.
_MESH, _PART = 1e-3, 1 / 30

#: Dominating pairs of one coordinate whose losses can be sampled.
_SAMPLED = (ShiftPair, PoissonPair)


class SampledPrivacyLoss(Accountant):
    """Composition by sampled privacy losses: an estimate, no guarantee.

    The published method for generalised Gaussian noise, for comparison:
    :class:`~skpuffer.accountants.PrivacyLoss` finds the same number exactly, and
    faster. Its certificates are labelled as estimates and refuse to be added up. It
    answers for runs of one coordinate (``GradientRelease(dim=1, ...)``).

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    noise : {'gaussian', 'laplace', 'generalized_gaussian', 'generalized_cauchy', \
'discrete_laplace'} or Noise, default='gaussian'
        As for :class:`~skpuffer.accountants.PrivacyLoss`.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    n_samples : int, default=1_000_000
        Losses of the empirical distribution; as many more correct its mean.
    half_width : float, default=None
        Bound of the grid in nats; losses beyond are rejected, and their share counts
        against delta. None takes what the samples need.
    mesh : float, default=None
        Distance of the grid's points in nats. None is at most 0.001.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the sampled losses, which are no noise of a release.

    Notes
    -----
    The algorithm as printed cannot be run. Here the half width is an odd number of half
    meshes, the correction of the mean goes either way, and a rejected loss counts as
    infinite. The published :meth:`error_bound` is vacuous at feasible sample sizes.

    References
    ----------
    Rinberg et al. (2025), Beyond Laplace and Gaussian, Algorithms 5 and 6, Theorem 6.

    Examples
    --------
    >>> from skpuffer.papers import SampledPrivacyLoss
    >>> from skpuffer.noise import GeneralizedGaussianNoise
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(
    ...     n_records=100, n_steps=1, sampling="full_batch", dim=1
    ... )
    >>> noise = GeneralizedGaussianNoise(1.0, beta=1.5)
    >>> sampled = SampledPrivacyLoss(n_samples=100_000, random_state=0)
    >>> certificate = sampled.certify(noise, release, RecordScenario())
    >>> certificate.certified, round(certificate.epsilon, 1)
    (False, 3.1)
    """

    needs = (Adjacency,)
    reads: ClassVar = {GradientRelease: GRADIENT_FIELDS}
    recommended = False  # an estimate is no substitute for a promise

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        noise: str | Noise = "gaussian",
        beta: float | None = None,
        n_samples: int = 1_000_000,
        half_width: float | None = None,
        mesh: float | None = None,
        random_state: RandomState = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.n_samples = n_samples
        self.half_width = half_width
        self.mesh = mesh
        self.random_state = random_state

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_count(n_samples=self.n_samples, least=100)
        for name in ("half_width", "mesh"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})

    @property
    def clip_order(self) -> float:
        """Order of the norm by which the noise wants gradients clipped."""
        return self._chosen_noise().norm

    @staticmethod
    def error_bound(
        n_steps: int,
        mesh: float,
        half_width: float,
        n_samples: float,
        *,
        slack: float,
        deviation: float,
        outside: float = 0.0,
    ) -> tuple[float, float]:
        """Evaluate the published bound on the error of a sampled account.

        For any slack and deviation it claims two bounds on the true delta at epsilon:
        the curve at ``epsilon + tau`` less eta and the curve at ``epsilon - tau`` plus
        eta.

        Parameters
        ----------
        n_steps : int
        mesh, half_width : float
            Mesh and half-width of the grid in nats.
        n_samples : float
            Losses that make the empirical distribution.
        slack, deviation : float
            Positive parts of tau that pay for the grid, in nats, and for the samples.
        outside : float, default=0.0
            The sum of all probabilities in the bound that the grid is left.

        Returns
        -------
        eta : float
            In the unit of delta: a claim about a delta below it says nothing.
        tau : float
            In nats.

        Notes
        -----
        The bound is as printed, and not proved: it takes a distance in total variation
        for one in nats, and a failure of the samples for a part of delta.
        """
        k = check_count(n_steps=n_steps)
        h, width = check_positive(mesh=mesh), check_positive(half_width=half_width)
        n, s = check_positive(n_samples=n_samples), check_positive(slack=slack)
        t = check_positive(deviation=deviation)
        outside = check_non_negative(outside=outside)
        # term by term as printed in Theorem 6
        per_cell = math.sqrt(width / (n * h))
        eta = outside + 2 * k * (t + per_cell)
        eta += 4 * math.exp(-2 * s**2 / (k * h**2))
        eta += 4 * k * math.exp(-n * t**2 / (2 * width**2))
        eta += 8 * k * math.exp(-n * t**2 / 2)
        tau = s + k * (t + 2 * width * (t / 2 + per_cell)) + 2 * k * (t / 2 + per_cell)
        return eta, tau

    # -- the protocol -------------------------------------------------------------

    @accounts_for(GradientRelease)
    def _account_of_steps(
        self, fact: Adjacency, release: GradientRelease, bound: BoundScenario
    ) -> Account:
        steps = self._steps(fact, release, bound)
        return Account(
            partial(self._calibrate, steps, fact),
            partial(self._certify, steps, fact),
        )

    def _steps(
        self, fact: Adjacency, release: GradientRelease, bound: BoundScenario
    ) -> Any:
        """Steps whose losses can be sampled."""
        # The same dominating pairs that PrivacyLoss composes exactly: what differs
        # between the two is how, not what.
        with self._refusing(release, bound, "allocation.losses_not_sampled"):
            steps = steps_of(release, fact)
            self._check_sampled(steps)
        return steps

    def _calibrate(
        self, steps: Any, fact: Adjacency, unit: Noise, random_state: RandomState
    ) -> Found:
        """Set the scale of noise to one whose estimated cost is the budget."""
        seed, clip = self._seed(random_state), steps.release.total_clip_norm

        # One seed at every scale (common random numbers): the estimate is then a smooth
        # function of the scale, with a root, not a noisy one.
        def miss(log_scale: float) -> float:
            noise = unit.with_scale(clip * math.exp(log_scale))
            epsilon = self._epsilon(noise, steps, seed)
            # bounded, as epsilon may be infinite or zero at the ends of the bracket
            return max(-5.0, min(5.0, math.log(max(epsilon, 1e-300) / self.epsilon)))

        # a bracket by factors of four, on either side of a scale of one clip norm
        low, high = 0.0, 0.0
        while miss(high) > 0:
            low, high = high, high + math.log(4)
        while miss(low) <= 0:
            low, high = low - math.log(4), low
        root = brentq(miss, low, high, xtol=1e-6)
        # samples make it a little rough: up to where the budget is kept
        step = 1e-6
        while miss(root) > 0:
            root, step = root + step, 2 * step
        noise = unit.with_scale(clip * math.exp(root))
        certificate = self._certificate(noise, steps, fact, seed)
        return Found(noise, certificate, draws=seed)

    def _certify(self, steps: Any, fact: Adjacency, noise: Noise) -> Claim:
        """Estimate what a given noise costs."""
        seed = self._seed(None) if self._draws is None else self._draws
        return self._certificate(noise, steps, fact, seed)

    # -- the parts ----------------------------------------------------------------

    def _check_sampled(self, steps: Any) -> None:
        """Refuse steps whose losses cannot be sampled."""
        # One fixed shift is sampled, and in several dimensions a shift in another
        # direction may cost more.
        dim = steps.release.dim
        if steps.event:
            raise unsupported_error(
                "papers.loss_event_not_certain", event=steps.event, count=steps.count
            )
        if dim != 1:
            raise unsupported_error("papers.loss_several_coordinates", dim=dim)
        if type(steps.dominated(self._chosen_noise()).pair) not in _SAMPLED:
            raise unsupported_error(
                "papers.loss_sampling_unsupported",
                name=steps.release.sampling.name,
                relation=steps.relation,
                count=steps.count,
            )

    def _seed(self, random_state: RandomState) -> int:
        """Seed by which one call meets the same random numbers throughout."""
        given = self.random_state if random_state is None else random_state
        rng, _ = noise_generator(given)
        return int(rng.integers(2**63))

    def _epsilon(self, noise: Noise, steps: Any, seed: int) -> float:
        """Estimate epsilon: the larger one of the two directions."""
        # those that are sampled are of one kind
        ((pair, n_steps),) = steps.dominated(noise).steps
        beta, u = _unit_shift(noise, pair.curve.shift)
        # neighbouring tables are compared both ways; a promise must hold for the worse
        return max(
            self._one_way(draw, n_steps, np.random.default_rng(seed))
            for draw in samplers(pair, beta, u)
        )

    def _one_way(self, draw: Sampler, n_steps: int, rng: np.random.Generator) -> float:
        """Estimate epsilon in one direction (Algorithms 5 and 6)."""
        losses, rejected = self._sample(draw, rng)
        # rejected losses count as infinite ones: with that much mass no epsilon will do
        # and no noise hides a loss that is none
        if rejected >= self.delta or not np.all(np.isfinite(losses)):
            return math.inf
        half_width = self.half_width or width_for(losses, n_steps)
        # fine enough to resolve one step's losses, coarse enough for the memory
        mesh = self.mesh or min(_MESH, _PART * float(np.std(losses)) + 1e-12)
        mesh = max(mesh, 2 * half_width / _MOST_POINTS)
        grid = EmpiricalLosses.on(losses, half_width, mesh, rejected)
        return grid.composed(n_steps).epsilon(float(self.delta))

    def _sample(self, draw: Sampler, rng: np.random.Generator) -> tuple[Floats, float]:
        """Sample twice `n_samples` losses; return them and the part rejected."""
        # one half makes the distribution, the other corrects its mean
        want = 2 * int(self.n_samples)
        kept, drawn = draw(want, rng), want
        if self.half_width is None:
            return kept, 0.0
        kept = kept[np.abs(kept) < self.half_width]
        # once the rejected part exceeds delta, epsilon is infinite: stop
        while want > len(kept) > drawn * (1 - self.delta):
            losses = draw(want, rng)
            kept = np.append(kept, losses[np.abs(losses) < self.half_width])
            drawn += want
        return kept[:want], 1 - len(kept) / drawn

    def _certificate(
        self, noise: Noise, steps: Any, fact: Adjacency, seed: int
    ) -> Claim:
        if noise.dim not in (None, 1):
            raise unsupported_error(
                "papers.loss_needs_one_scale", owner=type(self).__name__, noise=noise
            )
        release = steps.release
        return Claim(
            # a quantile of samples may be too small by chance: never a promise
            notion=Notion.ESTIMATED,
            epsilon=self._epsilon(noise, steps, seed),
            delta=float(self.delta),
            relation=steps.relation,
            assumptions=(
                *fact.assumptions,
                Statement(
                    "assume.epsilon_from_sampled_losses", n_samples=int(self.n_samples)
                ),
                *release.assumptions,
            ),
            sensitivity=float(steps.dominated(noise).pair.curve.shift.radius),
            norm=float(release.clip_order),
            source=Statement("source.sampled_privacy_losses_quantile"),
        )


def _unit_shift(noise: Noise, shift: Any) -> tuple[float, float]:
    """Return the shape as a generalised Gaussian, and the shift at scale one."""
    u = shift.magnitude(noise.scale, noise.norm)
    if isinstance(noise, GeneralizedGaussianNoise):
        return noise.beta, u
    if isinstance(noise, LaplaceNoise):
        return 1.0, u
    if isinstance(noise, GaussianNoise):
        # exp(-x^2 / (2 s^2)) is exp(-|x / (s sqrt(2))|^2), with s the standard
        # deviation, which need not be the scale alone
        mu: Any = noise.curve(shift).gaussian_mu  # None for other families only
        return 2.0, mu / math.sqrt(2)
    raise unsupported_error("papers.loss_noise_family_unsupported", family=noise.family)
