"""What accountants of composition share: the curve of steps, and a noise for it."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from functools import lru_cache
from typing import Any, ClassVar

from scipy.optimize import brentq

from skpuffer.accountants._base import Calibration, bind, check_values
from skpuffer.accountants._noise_parameter import chosen_noise
from skpuffer.accountants.additive._base import QUERY_FIELDS, _AdditiveAccountant
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy._curve import Curve
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss._distribution import TOLERANCE
from skpuffer.releases import GradientRelease, QueryRelease, VoteRelease
from skpuffer.scenarios import Adjacency, BoundScenario, Scenario
from skpuffer.scenarios._facts import arbitrary_coupling
from skpuffer.utils._solve import largest_argument, raise_until

from ._accounting import StepsOfRelease, steps_of
from ._gradients import GRADIENT_FIELDS
from ._least_scale import least_scale
from ._votes import VOTE_FIELDS

#: Epsilon, a lower bound of it or None, the curve to certify, and remarks on both.
Reading = tuple[float, float | None, Curve, tuple[str, ...]]


class _CompositionAccountant(_AdditiveAccountant):
    """Accounts for a query as every additive accountant, and for steps by composition.

    A subclass says what the curve of many steps is, and how epsilon is read off it.
    """

    needs = (Adjacency,)
    reads: ClassVar = {
        QueryRelease: QUERY_FIELDS,
        GradientRelease: GRADIENT_FIELDS,
        VoteRelease: VOTE_FIELDS,
    }
    _composable = True
    _source = "group privacy under one coupling (Pierquin et al. 2024, Cor 3.1)"

    # -- the protocol -------------------------------------------------------------

    def calibrate(
        self,
        release: Any,
        scenario: Scenario | BoundScenario,
        random_state: Any = None,
    ) -> Calibration:
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        if type(release) not in StepsOfRelease.kinds:
            return super().calibrate(release, scenario, random_state)
        self.check()
        bound = bind(scenario, release)
        noise = chosen_noise(self)
        check_values(noise, release)
        fact = self._fact(release, bound)
        steps = self._steps(fact, release, bound)
        noise = noise.with_scale(_memoised_scale(self, steps))
        certificate = self._composed_certificate(noise, steps, fact, bound)
        return Calibration(noise, certificate.as_asked(self.epsilon))

    def certify(
        self, noise: Noise, release: Any, scenario: Scenario | BoundScenario
    ) -> Certificate:
        """Find what a given noise promises; see :class:`Accountant`."""
        if type(release) not in StepsOfRelease.kinds:
            return super().certify(noise, release, scenario)
        self.check()
        check_values(noise, release)
        bound = bind(scenario, release)
        fact = self._fact(release, bound)
        steps = self._steps(fact, release, bound)
        return self._composed_certificate(noise, steps, fact, bound)

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        if type(release) not in StepsOfRelease.kinds:
            super()._check_support(release, bound)
        else:
            self._steps(self._fact(release, bound), release, bound)

    def _steps(
        self, fact: Adjacency, release: Any, bound: BoundScenario
    ) -> StepsOfRelease:
        """The steps of a release between such tables as a fact speaks of."""
        try:
            return steps_of(release, fact)
        except UnsupportedError as error:
            raise UnsupportedError(
                f"{type(self).__name__} has no bound for the release {release.name!r} "
                f"under {type(bound.scenario).__name__}: {error}."
            ) from None

    @property
    def clip_order(self) -> float:
        """Order of the norm by which the noise wants gradients clipped: its own."""
        return chosen_noise(self).norm

    # -- the parts ----------------------------------------------------------------

    #: MiB that a grid of privacy losses may take.
    max_memory: float = 500.0

    #: Whether the noise is asked for Rényi costs, or for its trade-off.
    _by_renyi_costs = False

    @property
    @abstractmethod
    def _composed_notion(self) -> Notion:
        """Notion of the promise for many steps."""

    @abstractmethod
    def _read(self, curve: GaussianCurve | PrivacyLossCurve) -> Reading:
        """Read the promise off the curve of all steps.

        Parameters
        ----------
        curve : GaussianCurve or PrivacyLossCurve

        Returns
        -------
        epsilon : float
        lower : float or None
            A lower bound, if the dominating pairs are attained.
        curve : Curve
            The one to be written in the certificate.
        remarks : tuple of str
            What else the certificate should say.
        """

    @abstractmethod
    def _loss(self, curve: GaussianCurve | PrivacyLossCurve, tolerance: float) -> float:
        """Epsilon of a curve, not below the truth and at most `tolerance` above it."""

    @abstractmethod
    def _fair_mu(self) -> float:
        """Mu of the mu-Gaussian mechanism that keeps about the same promise."""

    def _least_scale(self, steps: StepsOfRelease) -> float:
        """Scale of the least noise that keeps the promise."""
        unit = chosen_noise(self)

        def curve(scale: float) -> Any:
            noise = unit.with_scale(scale)
            return steps.under(noise, self.max_memory).curve

        def loss(scale: float, tolerance: float) -> float:
            return self._loss(curve(scale), tolerance)

        # the sensitivity of a step sets the order of magnitude of the scale
        size = steps.under(unit, self.max_memory).shift.radius
        aim = self._fair_mu()
        if isinstance(curve(size), GaussianCurve):
            # the whole curve is one number, mu, inversely proportional to the scale
            mu = largest_argument(
                lambda mu: self._loss(GaussianCurve(mu), TOLERANCE), self.epsilon, aim
            )
            enough = raise_until(
                lambda scale: loss(scale, TOLERANCE) <= self.epsilon,
                size * curve(size).mu / mu,
            )
            return float(enough)

        def miss(log_scale: float) -> float:
            # by the central limit theorem of composition, a curve is about that of a
            # Gaussian mechanism with mu the spread of its privacy loss

            spread = curve(size * math.exp(log_scale)).spread
            return max(-20.0, min(20.0, math.log(max(spread, 1e-300) / aim)))

        # widened step by step: the curves of absurd scales are expensive
        low = high = 0.0
        while miss(high) > 0 and high < 25:
            low, high = high, high + 3
        while miss(low) < 0 and low > -10:
            low, high = low - 3, low
        guess = brentq(miss, low, high, xtol=0.02)
        return least_scale(loss, self.epsilon, size * math.exp(guess), TOLERANCE)

    def _composed_certificate(
        self,
        noise: Noise,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
    ) -> Certificate:
        release, found = steps.release, steps.under(noise, self.max_memory)
        epsilon, lower, curve, remarks = self._read(found.curve)
        # Rényi costs of subsampled steps are read off the noise's trade-off, so the
        # evidence of that counts for them too
        pairs = getattr(found.curve, "steps", ())
        by_costs = self._by_renyi_costs and all(
            hasattr(pair, "renyi_costs") for pair, _ in pairs
        )
        radius = float(found.shift.radius)
        coupling = fact.coupling_id
        if not math.isinf(fact.move):
            # the bound takes clipped gradients of any records, not how far each moves
            coupling = arbitrary_coupling(steps.relation, steps.count)
        compared = steps.count == 1 and not fact.any_records
        return Certificate(
            notion=self._composed_notion if fact.certified else Notion.ESTIMATED,
            epsilon=epsilon,
            alpha=getattr(self, "alpha", None),
            delta=0.0 if self.delta is None else float(self.delta),
            relation=steps.relation,
            curve=curve,
            epsilon_lower=lower if found.tight and fact.certified else None,
            coupling_id=coupling,
            composable=fact.certified and coupling is not None,
            assumptions=(
                *fact.assumptions,
                *found.assumptions,
                *remarks,
                *noise.evidence(found.shift, renyi=by_costs),
                *release.assumptions,
            ),
            sensitivity=radius,
            norm=float(found.shift.norm),
            record_sensitivity=radius if compared else None,
            source=found.source,
            **self._identity(bound, release),
        )


def _memoised_scale(accountant: _CompositionAccountant, steps: StepsOfRelease) -> float:
    """Calibrate once for equal parameters: model selection asks again and again."""
    # without the facts of the table, which hold private rows under an empirical prior
    release: Any = steps.release
    steps = replace_fields(steps, release=replace_fields(release, context=None))
    params = tuple(sorted(accountant.get_params(deep=False).items()))
    return _scale_of(type(accountant), params, steps)


@lru_cache(maxsize=1024)
def _scale_of(
    kind: type[_CompositionAccountant],
    params: tuple[tuple[str, Any], ...],
    steps: StepsOfRelease,
) -> float:
    return kind(**dict(params))._least_scale(steps)
