"""Base composition accountant: the composed curve of steps, and noise for a target."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace as replace_fields
from functools import lru_cache, partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy.optimize import brentq

from skpuffer.accountants._additive._base import selection_noises
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.answers import SelectionSteps
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.composed import (
    Promise,
    Reading,
    claim_of_steps,
    is_of_bins,
    law_account,
    read_losses,
    read_renyi,
    renyi_costs,
)
from skpuffer.kernel.distribution import ORDERS, TOLERANCE
from skpuffer.kernel.noise import gaussian_mu, largest_argument, raise_until
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import check_positive, check_probability
from skpuffer.kernel.steps import (
    Accounting,
    Dominated,
    GradientSteps,
    StepsOfRelease,
    steps_of,
)
from skpuffer.kernel.sums import delta_left
from skpuffer.noise import Noise
from skpuffer.privacy_loss import (
    GaussianCurve,
    PrivacyLossCurve,
    allocation,
    renyi_to_approximate,
)
from skpuffer.privacy_loss._lower_bounds import account
from skpuffer.releases import (
    AdaptiveRelease,
    BallsInBinsSampling,
    FreshBinsSampling,
    GradientRelease,
    PartitionRelease,
    QueryRelease,
    SelectionRelease,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from ._additive._base import _AdditiveAccountant
from ._base import (
    Account,
    Found,
    accounts_for,
    check_order_or_delta,
)
from ._fields import (
    GRADIENT_FIELDS,
    PARTITION_FIELDS,
    QUERY_FIELDS,
    SELECTION_FIELDS,
    STAGE_FIELDS,
    VOTE_FIELDS,
)

__all__ = ["PrivacyLoss", "RenyiDP"]


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
        PartitionRelease: PARTITION_FIELDS,
    }
    _composable = True
    _source = Statement("source.group_privacy_one_coupling")

    #: Which steps those of a kind of release are.
    _kinds: ClassVar[Mapping[type, type[StepsOfRelease]]] = StepsOfRelease.kinds

    # -- the protocol -------------------------------------------------------------

    @accounts_for(GradientRelease, VoteRelease, PartitionRelease)
    def _account_of_steps(
        self,
        fact: Adjacency,
        release: GradientRelease | VoteRelease | PartitionRelease,
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
        with self._refusing(release, bound):
            steps = steps_of(release, fact, self._kinds, correlated=self._correlated)
            steps = self._asked_of(steps)
            if steps.event and self.delta is None:
                raise unsupported_error(
                    "event.count_uncertain_at_order",
                    event=steps.event,
                    count=steps.count,
                )
            return steps

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
            if scale > _MOST_NOISE * size:
                raise self._out_of_reach()
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
        # Of a loss with a largest value, such as that of Laplace noise, the spread may
        # never be as large: with little noise the loss nearly always is the largest.
        guess = -math.log(self.epsilon)
        if miss(low) >= 0 >= miss(high):
            # coarse, as `least_scale` goes on from there with the true loss
            guess = brentq(miss, low, high, xtol=0.02)
        scale = least_scale(loss, self.epsilon, size * math.exp(guess), self._accuracy)
        if math.isinf(scale):
            raise self._out_of_reach()
        return scale

    def _out_of_reach(self) -> UnsupportedError:
        """Refusal of an epsilon that no noise keeps."""
        return unsupported_error(
            "curve.epsilon_out_of_reach",
            owner=type(self).__name__,
            epsilon=self.epsilon,
        )

    def _scale_of_bins(
        self, pair_at: Callable[[float], Any], delta: float, size: float
    ) -> float:
        """Scale of the least noise for one pair of a record in bins."""
        # not at import, as it is of use for few schemes
        from skpuffer.privacy_loss.allocation._lattice import least_scale

        # exp(epsilon) is a float: what keeps a smaller epsilon keeps a larger one
        scale = least_scale(pair_at, min(float(self.epsilon), 600.0), delta, size)
        if math.isinf(scale):
            raise unsupported_error(
                "curve.rounding_above_delta",
                owner=type(self).__name__,
                delta=delta,
                enough=max(1e-09, 100 * delta),
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


# -- the least noise that keeps a promise whose loss is found numerically --------------


def least_scale(
    loss: Callable[[float, float], float], target: float, guess: float, fine: float
) -> float:
    """Return nearly the smallest scale whose loss is at most a target.

    A secant search on logarithms from coarse tolerances to `fine`. The `loss` of a
    scale and a relative tolerance is decreasing in the scale, never below the truth and
    at most the tolerance above it. The loss of the result is at most the target, and as
    near it as `fine` says, unless the loss jumps there.
    """
    window = 4 * fine
    # a Rényi cost falls with the square of the scale: the slope of logarithms is -2
    at, slope = math.log(guess), -2.0
    low, high = -math.inf, math.inf  # logarithms of scales too small, and large enough
    tolerance = 0.02
    last: tuple[float, float] | None = None
    for _ in range(100):
        found = loss(math.exp(at), tolerance)
        miss = math.log(found / target) if found > 0 else -5.0
        miss = min(miss, 5.0)
        if miss <= 0:
            if tolerance <= fine and miss >= -window:
                return math.exp(at)
            high = min(high, at)
        elif tolerance <= fine or miss > tolerance:
            # too small for certain, however roughly the loss was found
            low = max(low, at)
        # the loss jumps at this scale: `high` is the least that is known to be enough
        if high - low < 1e-12:
            break
        if last is not None and abs(at - last[0]) > 1e-9:
            # a slope is taken over only where it is seen beyond the tolerance
            seen = (miss - last[1]) / (at - last[0])
            if -50 < seen < -0.2 and abs(miss - last[1]) > 2 * tolerance:
                slope = seen
        last = at, miss
        if abs(miss) < 20 * tolerance:
            tolerance = max(fine, 0.02 * abs(miss))
        # aim at the middle of the window
        step = (-window / 2 - miss) / slope
        at += max(-1.5, min(1.5, step))
        if not low < at < high:
            inside = math.isfinite(low) and math.isfinite(high)
            if inside:
                at = (low + high) / 2
            elif at >= high and tolerance <= fine:
                at = high - max(1e-6, abs(step))
    # the side that keeps the promise
    return math.exp(high)


#: Sensitivities in a scale that is as good as none.
_MOST_NOISE = 1e50


# -- accounts of a run whose number of differing records follows a known law -----------


#: To which a scale is found, relatively.
_FINE = 2e-5


def law_scale(
    steps: StepsOfRelease,
    scaled: Callable[[float], Noise],
    epsilon: float,
    delta: float,
    enough: float,
    max_memory: float,
) -> float:
    """Return the least scale by the law of the number of records, at most `enough`."""

    def excess(log_scale: float) -> float:
        noise = scaled(math.exp(log_scale))
        curve, _ = law_account(steps, noise, delta, max_memory)
        return math.log(max(curve.epsilon(delta) / epsilon, 1e-300))

    high = math.log(enough)
    if excess(high) > 0:
        return enough
    low = high - 0.5
    while excess(low) <= 0:
        low, high = low - 0.5, low
    found: float = brentq(excess, low, high, xtol=_FINE)
    # to the side that keeps the promise
    while excess(found) > 0:
        found += _FINE
    return min(enough, math.exp(found))


# -- the privacy-loss accountant: nearly exact composition of noisy steps --------------


def _read_both_sides(
    curve: GaussianCurve | PrivacyLossCurve, delta: float, **given: float
) -> Reading:
    """Read epsilon off a curve as the kernel does, and a lower bound beside it."""
    epsilon, lower, read, remarks = read_losses(curve, delta, **given)
    if isinstance(curve, PrivacyLossCurve):
        # only reported: the upper end is promised
        lower = min(account(curve, delta).lower, epsilon)
    return epsilon, lower, read, remarks


class PrivacyLoss(_CompositionAccountant):
    """Composition by privacy-loss distributions: nearly exact (epsilon, delta).

    For a query it is :class:`GroupPrivacy` with a delta. For many noisy sums of clipped
    gradients it composes the dominating pairs of the steps: in closed form for Gaussian
    noise and equal sensitivities, otherwise on a grid that makes epsilon at most 0.02 %
    too large. If at most k records differ under a scenario, the run costs what
    replacing any k records does, amplified by hidden batches. The mass of a rare event
    on which more may differ is taken off `delta` once.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Gaussian for gradients, votes and sums in turn). Norms
        of shifts are those of :class:`GroupPrivacy`.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    max_memory : float, default=500
        MiB that a grid may take. Beyond, Rényi costs are added instead, and the
        certificate says so.

    See Also
    --------
    RenyiDP : Adds Rényi costs; simpler, and needs more noise.

    Notes
    -----
    The noise's scale is that of a step's sum: the noise multiplier times the clip norm.

    References
    ----------
    Zhu, Dong and Wang (2022), Optimal accounting via characteristic function;
    Doroshenko et al. (2022), Connect the dots.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=1000)
    >>> accountant = PrivacyLoss(epsilon=1.0, delta=1e-5)
    >>> certificate = accountant.certify(GaussianNoise(1.0), release, RecordScenario())
    >>> round(certificate.epsilon, 2)
    1.83
    >>> noise = accountant.calibrate(release, RecordScenario()).noise
    >>> round(noise.scale, 2)
    1.41
    """

    # no order of its own: the promise is always an (epsilon, delta) one
    alpha: None = None
    # always given, unlike in the base class
    delta: float
    _composed_notion = Notion.APPROXIMATE_DP
    _by_law = True
    _correlated = True
    saved_by_bins = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        noise: str | Noise = "auto",
        beta: float | None = None,
        max_memory: float = 500,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.max_memory = max_memory

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_positive(max_memory=self.max_memory)

    @property
    def _read(self) -> Callable[..., Reading]:
        epsilon, memory = float(self.epsilon), float(self.max_memory)
        return partial(_read_both_sides, asked=epsilon, max_memory=memory)

    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        assert delta is not None
        if isinstance(curve, GaussianCurve):
            # in closed form, so within any tolerance
            return float(curve.epsilon(delta))
        # the upper end again, which is at most the tolerance above the truth
        return float(curve.epsilon(delta, tolerance))

    def _fair_mu(self, delta: float | None) -> float:
        assert delta is not None
        # of Gaussian steps the answer itself; for others, where the search begins
        return float(gaussian_mu(float(self.epsilon), delta))


# -- the Rényi accountant: Rényi costs of steps, added order by order ------------------


class RenyiDP(_CompositionAccountant):
    """Add Rényi costs of all steps, order by order.

    The simple alternative to :class:`PrivacyLoss`. The cost of a step is the Rényi
    divergence of its dominating pair. Converting the sum of costs into an (epsilon,
    delta) promise loses some budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float or None, default=1e-5
        In (0, 1). None if `alpha` is given.
    alpha : float or None, default=None
        If given, the promise is the Rényi one of this order, in (1, inf).
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Gaussian for gradients, votes and sums in turn). Norms
        of shifts are those of :class:`GroupPrivacy`.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    PrivacyLoss : Needs less noise for the same (epsilon, delta).

    Notes
    -----
    A single query with a `delta` is accounted for by the noise's exact trade-off. For
    draws with replacement prefer :class:`PrivacyLoss`.

    References
    ----------
    Mironov (2017), Rényi differential privacy; Mironov, Talwar and Zhang (2019),
    Sampled Gaussian mechanism; Canonne, Kamath and Steinke (2020), Proposition 12
    (conversion).

    Examples
    --------
    >>> from skpuffer.accountants import RenyiDP
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=1000)
    >>> accountant = RenyiDP(epsilon=1.0, delta=1e-5)
    >>> certificate = accountant.certify(GaussianNoise(1.0), release, RecordScenario())
    >>> round(certificate.epsilon, 1)
    2.1
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        *,
        alpha: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.noise = noise
        self.beta = beta

    # of the two kinds of evidence, a certificate names that of Rényi costs
    _by_renyi_costs = True
    _correlated = True

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        # neither has a default here that would stand for the other
        if self.alpha is None and self.delta is None:
            raise value_error("parameter.alpha_or_delta_missing")
        order = check_order_or_delta(self.alpha, self.delta)
        # Gaussian noise has no largest loss, and to add up those of other noise would
        # be basic composition, which needs no accountant
        if order == math.inf:
            raise value_error("parameter.alpha_infinite_renyi")

    @property
    def _of_records(self) -> _CompositionAccountant:
        # what the conversion to a delta loses is no gain of a scenario
        if self.delta is None:
            return self
        return PrivacyLoss(self.epsilon, self.delta, noise=self.noise, beta=self.beta)

    @property
    def _accuracy(self) -> float:
        # the cost at one order is found to many more digits than a conversion
        return super()._accuracy if self.alpha is None else 1e-9

    @property
    def _composed_notion(self) -> Notion:
        return Notion.APPROXIMATE_DP if self.alpha is None else Notion.RENYI_DP

    @property
    def _orders(self) -> tuple[float, ...]:
        """Orders at which costs are added, with the one that is promised."""
        # the order that is promised is computed, not bounded by a larger one
        extra = () if self.alpha is None else (float(self.alpha),)
        return tuple(sorted({*map(float, ORDERS), *extra}))

    @property
    def _read(self) -> Callable[..., Reading]:
        alpha = None if self.alpha is None else float(self.alpha)
        return partial(read_renyi, orders=self._orders, alpha=alpha)

    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        if self.alpha is not None:
            # the one order that is promised, however rough an answer would do
            return float(renyi_costs(curve, (float(self.alpha),))[0])
        assert delta is not None
        costs = renyi_costs(curve, self._orders)
        return float(renyi_to_approximate(self._orders, costs, delta))

    def _fair_mu(self, delta: float | None) -> float:
        if self.alpha is not None:
            return math.sqrt(2 * self.epsilon / self.alpha)  # alpha mu^2 / 2
        assert delta is not None  # one of the two is given
        return float(gaussian_mu(float(self.epsilon), delta))


# -- dominating pairs of batches that records draw, as balls draw bins -----------------


def fresh_bins(steps: GradientSteps, noise: Noise) -> Dominated:
    """Return what dominates epochs in each of which records draw a bin anew."""
    # bins of an epoch do not depend on those of others, nor on what was released
    epochs, rest = divmod(steps.release.n_steps, steps.release.steps_per_epoch)
    length = steps.release.steps_per_epoch
    kept = [(length, epochs)] * (epochs > 0) + [(rest, 1)] * (rest > 0)
    return _in_bins(steps, noise, kept)


def balls_in_bins(steps: GradientSteps, noise: Noise) -> Dominated:
    """Return what dominates a run in which every record keeps its bin."""
    return _in_bins(steps, noise, [(steps.release.n_steps, 1)])


def _in_bins(
    steps: GradientSteps, noise: Noise, kept: list[tuple[int, int]]
) -> Dominated:
    """Batches that records draw: for how many steps they are kept, and how often.

    What is known of a record's own move is not read.
    """
    n_bins = steps.release.steps_per_epoch
    # all records are in one bin
    if n_bins == 1:
        return steps.full_batch(noise)
    once = steps.curve_of(noise, 1)
    if once.gaussian_mu is None:
        raise unsupported_error(
            "sampling.bins_noise_not_gaussian",
            name=steps.release.name,
            sampling=str(steps.release.sampling),
            family=noise.family,
        )
    replaced = steps.relation == "replace"
    # its modules load here, as they are of use for few schemes
    pairs = tuple(
        (allocation.AllocationPair(once, n_bins, n_steps, replaced), times)
        for n_steps, times in kept
    )
    source = Statement("source.worst_pairs_random_bins")
    # some tables attain these pairs, but what is known of them are upper bounds
    return Dominated(pairs, source, tight=False)


GradientSteps.schemes |= {
    FreshBinsSampling: fresh_bins,
    BallsInBinsSampling: balls_in_bins,
}
