"""Base composition accountant: the composed curve of steps, and noise for a target."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace as replace_fields
from functools import lru_cache, partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy.optimize import brentq

from skpuffer.accountants._base import Account, Found, accounts_for
from skpuffer.accountants.additive._base import _AdditiveAccountant
from skpuffer.exceptions import Statement, UnsupportedError, reason_of
from skpuffer.kernel.answers import (
    SELECTION_FIELDS,
    VOTE_FIELDS,
    SelectionSteps,
    selection_noises,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.composed import Promise, Reading, claim_of_steps, is_of_bins
from skpuffer.kernel.distribution import TOLERANCE
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import largest_argument, raise_until
from skpuffer.kernel.steps import GRADIENT_FIELDS, Accounting, StepsOfRelease, steps_of
from skpuffer.kernel.sums import QUERY_FIELDS, STAGE_FIELDS, delta_left
from skpuffer.noise import Noise
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    SelectionRelease,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from ._count_law import law_scale
from ._least_scale import least_scale

#: How much larger a scale of exponential noise may be than of Gumbel noise.
_WORTH = 1.05


class _CompositionAccountant(_AdditiveAccountant):
    """Base composition accountant: additive for a query, by composition for steps.

    A subclass says what the curve of many steps is, and how epsilon is read off it.
    """

    # The one fact that speaks of records: clipping bounds each one's gradient, whatever
    # the prior, and adaptive steps leave no output distribution to compare.
    needs = (Adjacency,)
    reads: ClassVar[dict[type, frozenset[str]]] = {
        QueryRelease: QUERY_FIELDS,
        AdaptiveRelease: STAGE_FIELDS,
        GradientRelease: GRADIENT_FIELDS,
        VoteRelease: VOTE_FIELDS,
        SelectionRelease: SELECTION_FIELDS,
    }
    _composable = True
    _source = Statement("source.group_privacy_one_coupling")

    #: Which steps those of a kind of release are.
    _kinds: ClassVar[Mapping[type, type[StepsOfRelease]]] = StepsOfRelease.kinds

    # -- the protocol -------------------------------------------------------------

    @accounts_for(GradientRelease, VoteRelease)
    def _account_of_steps(
        self,
        fact: Adjacency,
        release: GradientRelease | VoteRelease,
        bound: BoundScenario,
    ) -> Account:
        # refused here, when support is asked for, and not only when noise is set
        steps = self._steps(fact, release, bound)
        return Account(
            partial(self._calibrate_steps, steps, fact, bound),
            partial(self._certify_steps, steps, fact, bound),
            lambda noise: steps.under(noise, self.max_memory),
            _by_sensitivity(steps),
        )

    @accounts_for(SelectionRelease)
    def _account_of_selection(
        self, fact: Adjacency, release: SelectionRelease, bound: BoundScenario
    ) -> Account:
        # whatever noise of numbers it is asked for, scores have noise of their own
        steps = self._steps(fact, release, bound)
        assert isinstance(steps, SelectionSteps)  # as registered for the release

        def calibrate(noise: Noise, rng: Any) -> Found:
            found = [
                self._calibrate_steps(
                    replace_fields(steps, family=family),
                    fact,
                    bound,
                    noise,
                    rng,
                )
                for family in selection_noises(noise, release)
            ]
            # The first errs less at the same scale. How much less depends on where the
            # records lie, so that much more of a scale may be too much.
            scales = [float(np.max(made.noise.scale)) for made in found]
            return found[0 if scales[0] <= _WORTH * scales[-1] else -1]

        return Account(calibrate, partial(self._certify_steps, steps, fact, bound))

    def _calibrate_steps(
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of each step's noise to the least that keeps the promise."""
        # a budget too small for the event is refused before any scale is searched for
        self._delta_left(steps)
        scale = _memoised_scale(self, steps)
        noise = steps.scaled(noise, scale)
        certificate = self._certify_steps(steps, fact, bound, noise)
        if steps.moves is not None and steps.count == 1:
            # exact for mixtures too, whose noise is not in proportion to their shifts
            gain = self._scale_of_any_record(steps) / scale
            certificate = replace_fields(certificate, noise_gain=gain)
        return Found(noise, certificate)

    def _scale_of_any_record(self, steps: StepsOfRelease) -> float:
        """Scale of the least noise if a record that differs may become any other."""
        any_record = replace_fields(steps, moves=None)
        return _memoised_scale(self._of_records, any_record)

    def _steps(
        self, fact: Adjacency, release: Any, bound: BoundScenario
    ) -> StepsOfRelease:
        """Dominating pairs of a release's steps, between tables adjacent by a fact."""
        try:
            steps = steps_of(release, fact, self._kinds, correlated=self._correlated)
            steps = self._asked_of(steps)
            if steps.event and self.delta is None:
                raise UnsupportedError(
                    Statement(
                        "event.count_uncertain_at_order",
                        event=steps.event,
                        count=steps.count,
                    )
                )
            return steps
        except UnsupportedError as error:
            raise UnsupportedError(
                Statement(
                    "compose.release_without_bound",
                    owner=type(self).__name__,
                    name=release.name,
                    scenario_type=type(bound.scenario).__name__,
                    reason=reason_of(error),
                )
            ) from None

    def _asked_of(self, steps: StepsOfRelease) -> StepsOfRelease:
        """Return steps as this accountant asks about them; may refuse with a clause."""
        return steps

    @property
    def clip_order(self) -> float:
        """Order of the norm by which the noise wants gradients clipped: its own."""
        return self._chosen_noise().norm

    # -- the parts ----------------------------------------------------------------

    #: MiB that a grid of privacy losses may take.
    max_memory: float = 500.0

    #: Whether it reads nothing but the curve of the whole run, so that the noise of its
    #: steps may be correlated.
    _correlated = False

    #: Whether the noise is asked for Rényi costs, or for its trade-off.
    _by_renyi_costs = False

    @property
    def _of_records(self) -> "_CompositionAccountant":
        """Accountant that promises the same of any records for the least noise."""
        return self

    @property
    def _accuracy(self) -> float:
        """Relative accuracy of epsilon to which a scale is searched for."""
        return TOLERANCE

    @property
    @abstractmethod
    def _composed_notion(self) -> Notion:
        """Notion of the promise for many steps."""

    def _delta_left(self, steps: StepsOfRelease) -> float | None:
        """Part of delta that the event of some steps leaves to the noise, if any."""
        if self.delta is None or not steps.event:
            return self.delta
        # given the event's complement in both worlds, delta is that of the noise
        return delta_left(self.delta, steps.event) / (1 - steps.event)

    @property
    @abstractmethod
    def _read(self) -> Callable[..., Reading]:
        """How a promise is read off the curve of all steps, at a delta or None."""

    @abstractmethod
    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        """Epsilon of a curve, not below the truth and at most `tolerance` above it."""

    @abstractmethod
    def _fair_mu(self, delta: float | None) -> float:
        """Mu of the mu-Gaussian mechanism that keeps about the same promise."""

    def _least_scale(self, steps: StepsOfRelease) -> float:
        """Scale of the least noise that keeps the promise."""
        scale = self._scale_of_count(steps)
        if steps.law is None or not self._by_law:
            return scale
        assert self.delta is not None  # of an accountant that reads laws
        scaled = partial(steps.scaled, self._chosen_noise())
        target = float(self.epsilon), float(self.delta)
        return law_scale(steps, scaled, *target, scale, self.max_memory)

    def _scale_of_count(self, steps: StepsOfRelease) -> float:
        """Scale of the least noise for as many records as may differ."""
        # of scale one: only its family and its shape matter here
        unit, delta = self._chosen_noise(), self._delta_left(steps)

        def under(scale: float) -> Accounting:
            return steps.under(steps.scaled(unit, scale), self.max_memory)

        def loss(scale: float, tolerance: float) -> float:
            return self._loss(under(scale).curve, delta, tolerance)

        # the sensitivity of a step sets the order of magnitude of the scale
        size = under(1.0).shift.radius
        usual, aim = under(size).curve, self._fair_mu(delta)
        if not isinstance(usual, GaussianCurve) and is_of_bins(usual):
            if self._by_renyi_costs:
                return least_scale(loss, self.epsilon, size, self._accuracy)
            assert delta is not None  # as who reads the trade-off has one

            def pair_at(scale: float) -> Any:
                return cast(PrivacyLossCurve, under(scale).curve).steps[0][0]

            return self._scale_of_bins(pair_at, delta, size)
        if isinstance(usual, GaussianCurve):
            # the whole curve is one number, mu, inversely proportional to the scale
            mu = largest_argument(
                lambda mu: self._loss(GaussianCurve(mu), delta, TOLERANCE),
                self.epsilon,
                aim,
            )
            enough = raise_until(
                lambda scale: loss(scale, TOLERANCE) <= self.epsilon,
                size * usual.mu / mu,
            )
            return float(enough)

        def miss(log_scale: float) -> float:
            # by the central limit theorem of composition, a curve is about that of a
            # Gaussian mechanism with mu the spread of its privacy loss

            curve = under(size * math.exp(log_scale)).curve
            assert isinstance(curve, PrivacyLossCurve)  # as at the usual scale
            spread = curve.spread
            return max(-20.0, min(20.0, math.log(max(spread, 1e-300) / aim)))

        # widened step by step: the curves of absurd scales are expensive
        low = high = 0.0
        while miss(high) > 0 and high < 25:
            low, high = high, high + 3
        while miss(low) < 0 and low > -10:
            low, high = low - 3, low
        # coarse, as `least_scale` goes on from there with the true loss
        guess = brentq(miss, low, high, xtol=0.02)
        return least_scale(loss, self.epsilon, size * math.exp(guess), self._accuracy)

    def _scale_of_bins(
        self, pair_at: Callable[[float], Any], delta: float, size: float
    ) -> float:
        """Scale of the least noise for one pair of a record in bins."""
        # not at import, as it is of use for few schemes
        from skpuffer.privacy_loss.allocation._search import least_scale

        scale = least_scale(pair_at, float(self.epsilon), delta, size)
        if math.isinf(scale):
            raise UnsupportedError(
                Statement(
                    "curve.rounding_above_delta",
                    owner=type(self).__name__,
                    delta=delta,
                    enough=max(1e-09, 100 * delta),
                )
            )
        return scale

    def _certify_steps(
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
    ) -> Claim:
        """Find what a given noise of each step promises."""
        return claim_of_steps(noise, steps, fact, self._promise(steps))

    def _promise(self, steps: StepsOfRelease) -> Promise:
        """What is asked of a run, and how it is read off a curve."""
        return Promise(
            alpha=getattr(self, "alpha", None),
            delta=None if self.delta is None else float(self.delta),
            left=self._delta_left(steps),
            notion=self._composed_notion,
            by_renyi_costs=self._by_renyi_costs,
            by_law=self._by_law,
            max_memory=float(self.max_memory),
            read=self._read,
        )


def _by_sensitivity(steps: StepsOfRelease) -> bool:
    """Whether all depends on one sensitivity over one scale; see `Account`."""
    release: Any = steps.release
    # several numbers of records, or several moves of one, are several sensitivities
    if steps.law is not None:
        return False
    if type(release) is GradientRelease:
        return steps.moves is None and release.blocks is None
    return type(release) is QueryRelease


def _memoised_scale(accountant: _CompositionAccountant, steps: StepsOfRelease) -> float:
    """Least scale, remembered by value: model selection asks again and again."""
    # without the facts of the table, which hold private rows under an empirical prior,
    # and what of votes has been counted
    release: Any = steps.release
    bare: dict[str, Any] = {"context": None}
    if type(release) is VoteRelease:
        bare |= {"groups": None, "query": None}
    steps = replace_fields(steps, release=replace_fields(release, **bare))
    # by value: equal parameters of two accountants give the same scale
    params = tuple(sorted(accountant.get_params(deep=False).items()))
    return _scale_of(type(accountant), params, steps)


# no data enters: keys are parameters, public sizes and relations
@lru_cache(maxsize=1024)
def _scale_of(
    kind: type[_CompositionAccountant],
    params: tuple[tuple[str, Any], ...],
    steps: StepsOfRelease,
) -> float:
    return kind(**dict(params))._least_scale(steps)
