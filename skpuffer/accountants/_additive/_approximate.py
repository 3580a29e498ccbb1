"""Approximate Wasserstein mechanism: noise that covers W_inf except for a mass."""

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone

from skpuffer.accountants._additive._base import scale_for_delta
from skpuffer.accountants._base import Found
from skpuffer.distributions import Distribution, Gaussian
from skpuffer.distributions._distributions import (
    cached_distribution_distance,
    largest_distance,
    on_the_line,
)
from skpuffer.distributions._lattice_sum import largest_near_gap, on_one_lattice
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import InfiniteDistanceError, Statement, value_error
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.noise import MARGIN
from skpuffer.kernel.numbers import check_option, check_probability, lengths_of
from skpuffer.kernel.sums import SensitivityBound, sensitivity_bound, shift_of
from skpuffer.noise import Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
    RecordDistributions,
)
from skpuffer.transport import continuous_near_radius, gaussian_near_radius, near_radius

from ._base import _AdditiveAccountant
from ._couplings import has_masses, left_out_text, mass_error

#: Mass left out for each pair of secrets without an `event_delta` or a `delta`.
DEFAULT_EVENT_DELTA = 1e-5

#: Shares of `delta` that are tried for the mass left out; the noise has the rest.
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)

# A mass is left out only if that lowers the sensitivity by this share: whoever leaves
# one out gives up the pure part of the promise, and a certificate that holds for any
# rows, which is not worth the last digits.
_WORTH = 1e-3


class ApproximateWasserstein(_AdditiveAccountant):
    """Noise that covers the near-W_inf distance between output distributions.

    A mass `event_delta` of the best coupling, for each pair of secrets and each prior,
    may move any distance; the promise holds outside that event.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity is
        an (epsilon, `event_delta`) promise, which needs noise with a finite pure cost.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one: the mass left out and the
        noise's own trade-off share it. Not together with `alpha`.
    event_delta : float, default=None
        Mass left out for each pair of secrets, in (0, 1). None takes 1e-5 for a Rényi
        promise, else the share of `delta` that needs the least noise.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Gaussian noise where the prior is only sampled).
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    bound : {'two_sided', 'paper'}, default='two_sided'
        'two_sided' conditions both distributions on the event, at no further cost.
        'paper' is the published bound for Rényi promises, which adds
        ``alpha / (alpha - 1) * log(1 / (1 - event_delta))`` and cannot reach budgets
        below that.

    See Also
    --------
    GeneralWasserstein : Nothing left out.
    DistributionAwareWasserstein : Far moves of little mass cost little instead.

    Notes
    -----
    Only rare outputs under a secret are left out, never a rare *secret*. With the
    two-sided bound the event is that a best coupling of the two outputs keeps them
    within the radius. Given it, W_inf between the two is at most the radius, in either
    direction.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Definition 4.1, Theorem 4.3 and
    Proposition C.2 ('paper'); Chen and Ohrimenko (2023), distribution privacy (pure
    case).

    Examples
    --------
    >>> from skpuffer.accountants import ApproximateWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> u = Discrete([0, 1, 20], [60, 39, 1])
    >>> v = Discrete([0, 2])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> accountant = ApproximateWasserstein(epsilon=0.5, alpha=8, event_delta=0.01)
    >>> certificate = accountant.calibrate(release, LawsScenario([(u, v)])).certificate
    >>> certificate.sensitivity, certificate.event_delta
    (2.0, 0.01)
    >>> certificate.notion
    <Notion 'approximate_renyi_pufferfish'>
    """

    # given the event a pure promise, where it takes all of delta
    _all_spent = operator.eq

    needs = (
        OutputDistributions,
        RecordDistributions,
        CoupledSamples,
        OutputSensitivity,
        Adjacency,
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        event_delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
        bound: str = "two_sided",
    ) -> None:
        super().__init__(epsilon, alpha, delta=delta, noise=noise, beta=beta)
        self.event_delta = event_delta
        self.bound = bound

    @property
    def _source(self) -> Statement:
        if self.bound == "paper":
            return Statement("source.approximate_wasserstein")
        return Statement("source.approximate_wasserstein_two_sided")

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_option(("two_sided", "paper"), bound=self.bound)
        if self.event_delta is not None:
            # of delta the event is a part, and the rest is left to the noise given it
            event = check_probability(event_delta=self.event_delta)
            if self.delta is not None and event > self.delta:
                raise value_error(
                    "event.delta_above_delta", event=event, delta=self.delta
                )
        # the published term alone may use up the budget: say so before anything is
        # bound
        if self.bound == "paper":
            if self.delta is not None:
                raise value_error("event.paper_bound_with_delta")
            self._paper_budget(self._event_deltas(0.0)[0])
        whole = self.event_delta is not None and self.event_delta == self.delta
        if whole and not noise.has_bounded_loss:
            raise value_error("event.delta_takes_all", family=noise.family)

    # -- the protocol -------------------------------------------------------------

    def _calibrate(
        self,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        if self.bound == "two_sided":
            return super()._calibrate(fact, release, bound, noise, rng)
        # The published bound adds a term that the noise does not change, so the noise
        # is that of the two-sided bound for the budget that is left.
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        budget = self._paper_budget(sensitivity.delta)
        inner = clone(self).set_params(bound="two_sided", epsilon=budget)
        noise = inner.calibrate(release, bound).noise
        certificate = self._certificate(noise, sensitivity, release, bound)
        return Found(noise, certificate)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        # every choice of the mass gives a valid promise of one and the same noise,
        # which was drawn without regard to the choice: state the smallest
        return min(
            (
                self._certificate(noise, sensitivity, release, bound)
                for sensitivity in self._options(fact, release, bound, noise.norm)
            ),
            key=lambda c: math.inf if c.epsilon is None else c.epsilon,
        )

    # -- the parts ----------------------------------------------------------------

    def _sensitivity_bound(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        """Return the bound that needs the least noise, of those that delta allows."""
        options = self._options(fact, release, bound, norm)
        if len(options) == 1:
            return options[0]
        # More mass left out shortens the move but leaves less of delta to the noise.
        # Neither the masses nor what they gain depend on private rows, so the best may
        # be picked.
        # in units of the output, each coordinate's noise is a multiple of its unit's
        unit = self._chosen_noise()
        if release.units is not None:
            unit = unit.in_units(release.units)

        def needed(sensitivity: SensitivityBound) -> float:
            shift = shift_of(sensitivity, release)
            delta = self._noise_delta(sensitivity)
            return float(np.max(scale_for_delta(unit, self.epsilon, delta, shift)))

        return min(options, key=needed)

    def _options(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> list[SensitivityBound]:
        """Bound the sensitivity, once for each mass that may be left out."""
        # with a mass left out, distances may be finite where W_inf is not (Gaussians of
        # unequal covariance): refuse only if none is
        whole = sensitivity_bound(fact, release, norm)
        events = self._event_deltas(fact.delta)
        # bounds fall with the mass: where the most of it gains nothing, no less does
        most = near_sensitivity(fact, whole, release, norm, max(events))
        if most is whole and math.isfinite(whole.radius):
            return [whole]
        found = [
            near_sensitivity(fact, whole, release, norm, event) for event in events
        ]
        finite = [each for each in found if math.isfinite(each.radius)]
        if not finite:
            raise InfiniteDistanceError(self._infinite(found[0], release, bound))
        return finite

    def _event_deltas(self, known: float) -> tuple[float, ...]:
        """Return the masses to try leaving out, besides `known`, that of the fact."""
        if self.event_delta is not None:
            return (float(self.event_delta),)
        if self.delta is None:
            # a Rényi promise states the mass beside epsilon, so there is nothing to
            # share
            return (DEFAULT_EVENT_DELTA,)
        left = float(self.delta) - known
        if left <= 0:
            return (0.0,)
        if known:
            left *= 1 - 1e-12  # the sum of both must not be rounded above delta
        # all of delta for the event asks for a pure promise given it
        pure = self._chosen_noise().has_bounded_loss
        return tuple(share * left for share in _SHARES if pure or share < 1)

    def _paper_term(self, event: float) -> float:
        """Term that Proposition C.2 adds to the Rényi cost of the noise."""
        # alpha / (alpha - 1) log(1 / (1 - event)), of which the limit is log(1 / ...)
        factor = 1.0 if math.isinf(self._order) else self._order / (self._order - 1)
        return -factor * math.log1p(-event)

    def _paper_budget(self, event: float) -> float:
        """Budget that this term leaves to the noise."""
        budget = self.epsilon - self._paper_term(event)
        if budget <= 0:
            raise value_error(
                "event.paper_bound_above_epsilon",
                paper_term=self._paper_term(event),
                event=event,
                epsilon=self.epsilon,
            )
        return budget

    def _certificate(
        self,
        noise: Noise,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        # the base accounts for the noise given the event, which is the two-sided bound
        certificate = super()._certificate(noise, sensitivity, release, bound)
        if self.bound == "two_sided":
            return certificate
        added = self._paper_term(sensitivity.delta)
        assert certificate.epsilon is not None  # additive accountants state one
        return replace(certificate, epsilon=certificate.epsilon + added)


@singledispatch
def near_sensitivity(
    fact: Fact,
    whole: SensitivityBound,
    release: QueryRelease,
    norm: float,
    event: float,
) -> SensitivityBound:
    """Bound the sensitivity of a release's output except for the mass `event`.

    Pierquin et al. (2024), Definition 4.2 and Theorem 4.3.
    """
    return whole


@near_sensitivity.register
def _(
    fact: OutputDistributions | RecordDistributions,
    whole: SensitivityBound,
    release: QueryRelease,
    norm: float,
    event: float,
) -> SensitivityBound:
    if event == 0 or whole.radius == 0:
        return whole
    # one radius for all pairs, each of which may leave out the same mass: the promise
    # is made pair by pair, so these masses are not added up
    pairs = list(fact.pairs_of_distributions())
    shift, at = _largest_near_distance(
        [(u, v) for *_, u, v in pairs], event, *fact.compared_in(release, norm)
    )
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    radius = fact.output_move(shift, release, norm) + release.total_slack(norm)
    if whole.radius * (1 - _WORTH) <= radius:
        return whole
    # even if `whole` is the sensitivity to an arbitrary record, this bound rests on the
    # prior: it is as certain as the fact, and names no relation
    return replace(
        whole,
        radius=radius,
        certified=fact.certified,
        delta=fact.delta + event,
        confidence=fact.confidence,
        assumptions=(*fact.assumptions, left_out_text(event)),
        relation=None,
        worst=worst,
    )


@near_sensitivity.register
def _(
    fact: CoupledSamples,
    whole: SensitivityBound,
    release: QueryRelease,
    norm: float,
    event: float,
) -> SensitivityBound:
    if event == 0 or fact.certified:
        # certified samples bound the longest move with confidence, and no quantile
        return whole
    radius = 0.0
    for *_, u, v in fact.draws:
        # the empirical quantile of the moves: the longest are left out, up to the mass
        moves = np.sort(lengths_of((u - v) / release.unit_array, norm))
        left_out = math.floor(event * len(moves))
        radius = max(radius, float(moves[len(moves) - 1 - left_out]))
    if whole.radius * (1 - _WORTH) <= radius:
        return whole
    # an estimate, as `whole` is: a quantile of samples is no bound
    return replace(
        whole,
        radius=radius,
        delta=fact.delta + event,
        assumptions=(*fact.assumptions, left_out_text(event)),
    )


def _largest_near_distance(
    pairs: Sequence[tuple[Distribution, Distribution]],
    event: float,
    norm: float,
    units: tuple[float, ...] | None,
) -> tuple[float, int]:
    """Bound the near-W_inf distances of pairs of distributions; say of which pair."""
    spare = event - 2 * max(mass_error(u, v) for u, v in pairs)
    if spare > 0 and on_one_lattice(pairs):
        step = pairs[0][0].step_length(norm, units)
        # how many steps there are to W_inf, within which all mass is kept
        most = largest_distance(pairs, norm, units)[0] / step if step else 0.0
        gap, at = largest_near_gap(pairs, spare, round(most))
        return gap * step, at
    # W_inf bounds the near radius, and takes a sort only on one coordinate: there the
    # pairs furthest apart come first, and nearly always settle it
    far = [math.inf] * len(pairs)
    if all(u.dim == 1 for u, _ in pairs):
        far = [
            cached_distribution_distance(u, v, norm, units, math.inf) for u, v in pairs
        ]
    largest, at = -math.inf, 0
    for each in np.argsort(far)[::-1].tolist():
        if far[each] <= largest * (1 + MARGIN):
            return max(largest, far[each]), at
        found = _near_distance(*pairs[each], event, norm, units)
        if found > largest:
            largest, at = found, each
    return largest, at


@remembered_with(2)
def _near_distance(
    u: Distribution,
    v: Distribution,
    event: float,
    norm: float,
    units: tuple[float, ...] | None,
) -> float:
    """Bound the near-W_inf distance of two distributions: except for a mass."""
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
        # in units: coordinate i is divided by unit[i], entry (i, j) by both
        unit = np.ones(u.dim) if units is None else np.asarray(units)
        outer = np.outer(unit, unit)
        return gaussian_near_radius(
            u.mean / unit,
            u.covariance / outer,
            v.mean / unit,
            v.covariance / outer,
            event,
            ord=norm,
        )
    # continuous distributions on the line: by their quantile functions
    first, second = on_the_line(u), on_the_line(v)
    if first is not None and second is not None:
        length = 1.0 if units is None else float(units[0])
        return continuous_near_radius(first, second, event) / length
    # each distribution is within the error of its masses in total variation, and what
    # either lacks of the true one counts as left out
    spare = event - 2 * mass_error(u, v)
    if has_masses(u) and has_masses(v) and spare > 0:
        return near_radius(
            u.points,
            v.points,
            spare,
            u.weights,
            v.weights,
            norm,
            coordinate_scale=units,
        )
    # supports have no masses to leave out: W_inf bounds the near radius
    return cached_distribution_distance(u, v, norm, units, math.inf)
