"""What accountants of many noisy steps share: steps are accounted for one by one."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from functools import lru_cache, singledispatchmethod

from scipy.optimize import brentq

from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, GaussianCurve, Notion
from skpuffer.privacy._loss_curve import TOLERANCE
from skpuffer.releases import GradientRelease, QueryRelease
from skpuffer.scenarios import RecordScenario, RecordShifts
from skpuffer.scenarios._facts import arbitrary_coupling

from ._base import Calibration, Unsupported, bind
from ._gradient_steps import account_for, gradient_obstacle, neighbours
from ._least_scale import least_scale
from ._shift import FAMILIES, _ShiftAccountant


class _StepAccountant(_ShiftAccountant):
    """Accounts for a query as every accountant of shifts, and for steps one by one.

    A subclass says what the curve of many steps is, and how epsilon is read off it.
    """

    needs = (RecordShifts,)
    releases = (QueryRelease, GradientRelease)
    _composable = True
    _source = "group privacy under one coupling (Pierquin et al. 2024, Cor 3.1)"

    # -- the protocol -------------------------------------------------------------

    def supports(self, release, scenario):
        """Whether this accountant can account for the release under the scenario.

        Parameters
        ----------
        release : QueryRelease or GradientRelease
        scenario : Scenario or BoundScenario

        Returns
        -------
        True or Unsupported
            `Unsupported` is false and reads as the reason why not, with what would do.
        """
        bound = bind(scenario, release)
        answer = super().supports(release, bound)
        if not answer or not isinstance(release, GradientRelease):
            return answer
        worlds = neighbours(bound.fact(RecordShifts, release), bound.scenario)
        obstacle = gradient_obstacle(release, worlds)
        if obstacle is None:
            return True
        return Unsupported(
            f"{type(self).__name__} has no bound for the release {release.name!r} "
            f"under {type(bound.scenario).__name__}: {obstacle}."
        )

    def calibrate(self, release, scenario, random_state=None):
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        return self._calibrate(release, scenario, random_state)

    def certify(self, noise, release, scenario):
        """Find what a given noise promises; see :class:`Accountant`."""
        return self._certify(release, noise, scenario)

    @singledispatchmethod
    def _calibrate(self, release, scenario, random_state):
        return super().calibrate(release, scenario, random_state)

    @singledispatchmethod
    def _certify(self, release, noise, scenario):
        return super().certify(noise, release, scenario)

    @_calibrate.register
    def _(self, release: GradientRelease, scenario, random_state):
        self.check()
        bound, worlds = self._meet(release, scenario)
        noise = FAMILIES[self.noise](_memoised_scale(self, release, worlds))
        certificate = self._step_certificate(noise, release, bound, worlds)
        # the noise was checked to keep the budget asked for, and is just below it
        asked = float(self.epsilon)
        return Calibration(noise, replace_fields(certificate, epsilon=asked))

    @_certify.register
    def _(self, release: GradientRelease, noise, scenario):
        self.check()
        if not isinstance(noise, Noise):
            raise TypeError(
                "The parameter 'noise' must be a noise of skpuffer.noise. "
                f"Got {noise!r}."
            )
        bound, worlds = self._meet(release, scenario)
        return self._step_certificate(noise, release, bound, worlds)

    # -- the parts ----------------------------------------------------------------

    #: MiB that a grid of privacy losses may take.
    max_memory = 500.0

    @property
    @abstractmethod
    def _step_notion(self):
        """Notion of the promise for many steps."""

    @abstractmethod
    def _read(self, curve):
        """Read the promise off the curve of all steps.

        Parameters
        ----------
        curve : GaussianCurve or PrivacyLossCurve

        Returns
        -------
        epsilon : float
        lower : float or None
            A lower bound, if what dominates the steps is attained.
        curve : object
            The one to be written in the certificate.
        remarks : tuple of str
            What else the certificate should say.
        """

    @abstractmethod
    def _loss(self, curve, tolerance):
        """Epsilon of a curve, not below the truth and at most `tolerance` above it."""

    @abstractmethod
    def _fair_mu(self):
        """Distance of two unit Gaussians that keep about the same promise."""

    def _least_scale(self, release, worlds):
        """Scale of the least noise that keeps the promise."""
        family = FAMILIES[self.noise]

        def curve(scale):
            return account_for(family(scale), release, worlds, self.max_memory).curve

        def loss(scale, tolerance):
            return self._loss(curve(scale), tolerance)

        clip = release.total_clip_norm
        aim = self._fair_mu()
        if isinstance(curve(clip), GaussianCurve):
            return least_scale(
                loss, self.epsilon, clip * curve(clip).mu / aim, TOLERANCE
            )

        def miss(log_scale):
            spread = curve(clip * math.exp(log_scale)).spread
            return max(-20.0, min(20.0, math.log(max(spread, 1e-300) / aim)))

        guess = brentq(miss, -10, 25, xtol=0.02)
        return least_scale(loss, self.epsilon, clip * math.exp(guess), TOLERANCE)

    def _meet(self, release, scenario):
        """Return the bound scenario, and how its worlds differ."""
        bound = bind(scenario, release)
        fact = bound.fact(self._require(release, bound), release)
        return bound, neighbours(fact, bound.scenario)

    def _step_certificate(self, noise, release, bound, worlds):
        fact = bound.fact(RecordShifts, release)
        found = account_for(noise, release, worlds, self.max_memory)
        epsilon, lower, curve, remarks = self._read(found.curve)
        certified = fact.certified and not bound.scenario.needs_empirical
        radius = float(found.shift.radius)
        coupling = fact.coupling_id
        if not math.isinf(fact.shift):
            # how far each moves is not used: the bound holds for any records
            coupling = arbitrary_coupling(worlds.relation, worlds.count)
        compared = worlds.count == 1 and not isinstance(bound.scenario, RecordScenario)
        return Certificate(
            notion=self._step_notion if certified else Notion.ESTIMATED,
            epsilon=epsilon,
            alpha=getattr(self, "alpha", None),
            delta=0.0 if self.delta is None else float(self.delta),
            relation=worlds.relation,
            curve=curve,
            epsilon_lower=lower if found.tight and certified else None,
            coupling_id=coupling,
            composable=certified and coupling is not None,
            assumptions=(
                *fact.assumptions,
                _SAMPLING[release.sampling].format(release),
                *remarks,
                *release.assumptions,
            ),
            sensitivity=radius,
            norm=float(release.clip_order),
            record_sensitivity=radius if compared else None,
            source=found.source,
            scenario=bound.describe(),
            accountant=" ".join(repr(self).split()),
            release=release.name,
        )


#: What each sampling scheme takes for granted, in a sentence.
_SAMPLING = {
    "full_batch": "every step takes all {0.n_records} records",
    "poisson": (
        "every step takes each record independently with probability "
        "{0.sampling_rate:.6g}, and which ones it took stays secret"
    ),
    "fixed_size": (
        "every step takes a fresh uniformly random subset of {0.batch_size} of the "
        "{0.n_records} records, which stays secret"
    ),
    "with_replacement": (
        "every step draws {0.batch_size} times uniformly from the {0.n_records} "
        "records, and which ones it drew stays secret"
    ),
    "shuffled_epochs": (
        "every epoch deals each of the {0.n_records} records to one batch, at random "
        "but with no amplification claimed for it"
    ),
}


def _memoised_scale(accountant, release, worlds):
    """Calibrate once for equal parameters: model selection asks again and again."""
    params = tuple(sorted(accountant.get_params(deep=False).items()))
    return _scale_of(type(accountant), params, release, worlds)


@lru_cache(maxsize=1024)
def _scale_of(kind, params, release, worlds):
    return kind(**dict(params))._least_scale(release, worlds)
