"""What accountants of many noisy steps share: steps are accounted for one by one."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from functools import lru_cache
from typing import ClassVar

from scipy.optimize import brentq

from skpuffer.accountants._base import Calibration, as_asked, bind
from skpuffer.accountants._noise_parameter import check_values, chosen_noise
from skpuffer.accountants.additive._base import QUERY_FIELDS, _AdditiveAccountant
from skpuffer.exceptions import UnsupportedError
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._distribution import TOLERANCE
from skpuffer.releases import GradientRelease, QueryRelease, VoteRelease
from skpuffer.scenarios import Adjacency
from skpuffer.scenarios._facts import arbitrary_coupling
from skpuffer.utils._solve import largest_argument, raise_until

from ._accounting import StepsOfRelease, steps_of
from ._gradients import GRADIENT_FIELDS
from ._least_scale import least_scale
from ._votes import VOTE_FIELDS


class _CompositionAccountant(_AdditiveAccountant):
    """Accounts for a query as every accountant of shifts, and for steps one by one.

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

    def calibrate(self, release, scenario, random_state=None):
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        if type(release) not in StepsOfRelease.kinds:
            return super().calibrate(release, scenario, random_state)
        self.check()
        bound = bind(scenario, release)
        noise = chosen_noise(self)
        check_values(noise, release)
        fact, steps = self._steps(release, bound)
        noise = noise.with_scale(_memoised_scale(self, steps))
        certificate = self._composed_certificate(noise, steps, fact, bound)
        return Calibration(noise, as_asked(certificate, self.epsilon))

    def certify(self, noise, release, scenario):
        """Find what a given noise promises; see :class:`Accountant`."""
        if type(release) not in StepsOfRelease.kinds:
            return super().certify(noise, release, scenario)
        self.check()
        check_values(noise, release)
        bound = bind(scenario, release)
        fact, steps = self._steps(release, bound)
        return self._composed_certificate(noise, steps, fact, bound)

    def _check_support(self, release, bound):
        if type(release) not in StepsOfRelease.kinds:
            super()._check_support(release, bound)
        else:
            self._steps(release, bound)

    def _steps(self, release, bound):
        """The fact that both sides know, and the steps between such tables."""
        fact = self._fact(release, bound)
        try:
            return fact, steps_of(release, fact)
        except UnsupportedError as error:
            raise UnsupportedError(
                f"{type(self).__name__} has no bound for the release {release.name!r} "
                f"under {type(bound.scenario).__name__}: {error}."
            ) from None

    # -- the parts ----------------------------------------------------------------

    #: MiB that a grid of privacy losses may take.
    max_memory = 500.0

    #: Whether the noise is asked for Rényi costs, or for its trade-off.
    _by_renyi_costs = False

    @property
    @abstractmethod
    def _composed_notion(self):
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

    def _least_scale(self, steps):
        """Scale of the least noise that keeps the promise."""
        unit = chosen_noise(self)

        def curve(scale):
            noise = unit.with_scale(scale)
            return steps.under(noise, self.max_memory).curve

        def loss(scale, tolerance):
            return self._loss(curve(scale), tolerance)

        # a scale of the size of what moves, whatever it is
        size = steps.under(unit, self.max_memory).shift.radius
        aim = self._fair_mu()
        if isinstance(curve(size), GaussianCurve):
            # all there is to a run is one number, in inverse proportion to the scale
            mu = largest_argument(
                lambda mu: self._loss(GaussianCurve(mu), TOLERANCE), self.epsilon, aim
            )
            return raise_until(
                lambda scale: loss(scale, TOLERANCE) <= self.epsilon,
                size * curve(size).mu / mu,
            )

        def miss(log_scale):
            spread = curve(size * math.exp(log_scale)).spread
            return max(-20.0, min(20.0, math.log(max(spread, 1e-300) / aim)))

        # step by step, as nobody needs to know what absurd scales would do
        low = high = 0.0
        while miss(high) > 0 and high < 25:
            low, high = high, high + 3
        while miss(low) < 0 and low > -10:
            low, high = low - 3, low
        guess = brentq(miss, low, high, xtol=0.02)
        return least_scale(loss, self.epsilon, size * math.exp(guess), TOLERANCE)

    def _composed_certificate(self, noise, steps, fact, bound):
        release, found = steps.release, steps.under(noise, self.max_memory)
        epsilon, lower, curve, remarks = self._read(found.curve)
        # costs of sampled steps are read off the noise's trade-off as well
        pairs = getattr(found.curve, "steps", ())
        by_costs = self._by_renyi_costs and all(
            hasattr(pair, "renyi_costs") for pair, _ in pairs
        )
        radius = float(found.shift.radius)
        coupling = fact.coupling_id
        if not math.isinf(fact.move):
            # how far each moves is not used: the bound holds for any records
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


def _memoised_scale(accountant, steps):
    """Calibrate once for equal parameters: model selection asks again and again."""
    # without the facts of the table, which hold private rows under an empirical prior
    steps = replace_fields(steps, release=replace_fields(steps.release, context=None))
    params = tuple(sorted(accountant.get_params(deep=False).items()))
    return _scale_of(type(accountant), params, steps)


@lru_cache(maxsize=1024)
def _scale_of(kind, params, steps):
    return kind(**dict(params))._least_scale(steps)
