"""The approximate Wasserstein mechanism: a small mass of far moves is left out."""

import math
from dataclasses import replace
from functools import singledispatch

import numpy as np
from sklearn.base import clone

from skpuffer.accountants._base import Calibration, as_asked, bind
from skpuffer.accountants._noise_parameter import check_values, chosen_noise
from skpuffer.distributions import Gaussian
from skpuffer.distributions._distributions import (
    cached_distribution_distance,
    on_the_line,
)
from skpuffer.distributions._weak_cache import remembered_with
from skpuffer.exceptions import InfiniteDistanceError
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.transport import continuous_near_radius, gaussian_near_radius, near_radius
from skpuffer.utils._checks import check_option, check_probability

from ._base import _AdditiveAccountant
from ._couplings import has_masses, left_out_text, mass_error
from ._sensitivity import sensitivity_bound

__all__ = ["ApproximateWasserstein"]

#: Mass left out for each pair of secrets if neither it nor a delta is given.
DEFAULT_EVENT_DELTA = 1e-5

#: Shares of an asked delta that are tried for the mass left out.
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)

# A mass is left out only if the longest move becomes shorter by this share.
_WORTH = 1e-3


class ApproximateWasserstein(_AdditiveAccountant):
    """Noise that covers the moves between output laws except for a small mass of them.

    :class:`GeneralWasserstein` covers the longest move of the best coupling, however
    little mass makes it. Here a mass `event_delta` of the coupling, for each pair of
    secrets and each prior, may move any distance; the promise holds outside that event.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. At infinity
        the promise is an (epsilon, `event_delta`) one; it takes noise with a finite
        pure cost, such as ``noise='laplace'``.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one: the mass left out and the
        noise's own trade-off share it. Not together with `alpha`.
    event_delta : float, default=None
        Mass left out for each pair of secrets, in (0, 1), where that shortens the
        longest move by a thousandth at least. None takes 1e-5 for a Rényi
        promise and for a `delta` the share of it, none and all included, that needs
        the least noise.
    noise : {'gaussian', 'laplace', 'generalized_gaussian', 'generalized_cauchy', \
'discrete_laplace'} or Noise, default='gaussian'
        Family of the noise, or a noise whose scale calibration replaces. Discrete
        Laplace noise is for releases of integers.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    bound : {'two_sided', 'paper'}, default='two_sided'
        'two_sided' conditions both laws on the event, and nothing is added to the cost
        of the noise. 'paper' is the published bound for Rényi promises, which adds
        ``alpha / (alpha - 1) * log(1 / (1 - event_delta))`` and cannot reach a budget
        below that.

    See Also
    --------
    GeneralWasserstein : Nothing left out.
    DistributionAwareWasserstein : Far moves of little mass cost little instead.

    Notes
    -----
    Both secrets are conditioned on, so a rare *secret* is never left out, only rare
    outputs under a secret. To ignore a secret, leave it out of the scenario's pairs.

    With the two-sided bound: sample, given the output, whether a best coupling has kept
    the pair within the radius. Given that, the two laws are within it of each other in
    W_inf, whatever the order in which they are compared, and the general Wasserstein
    mechanism applies.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Definition 4.1, Theorem 4.3 and
    Proposition C.2 ('paper'); Chen and Ohrimenko (2023), Protecting global properties
    of datasets with distribution privacy mechanisms (the pure case of 'two_sided').

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

    needs = (OutputDistributions, CoupledSamples, OutputSensitivity, Adjacency)

    def __init__(
        self,
        epsilon=1.0,
        alpha=None,
        *,
        delta=None,
        event_delta=None,
        noise="gaussian",
        beta=None,
        bound="two_sided",
    ):
        super().__init__(epsilon, alpha, delta=delta, noise=noise, beta=beta)
        self.event_delta = event_delta
        self.bound = bound

    @property
    def _source(self):
        if self.bound == "paper":
            return (
                "approximate Wasserstein mechanism (Pierquin et al. 2024, Thm 4.3, "
                "Prop C.2)"
            )
        return (
            "approximate Wasserstein mechanism (Pierquin et al. 2024, Def 4.1 and Thm "
            "3.3 given an event for each secret)"
        )

    def check(self):
        """Check the parameters; see the class."""
        super().check()
        check_option(("two_sided", "paper"), bound=self.bound)
        if self.event_delta is not None:
            event = check_probability(event_delta=self.event_delta)
            if self.delta is not None and event > self.delta:
                raise ValueError(
                    f"The parameter 'event_delta' ({event:g}) must not exceed 'delta' "
                    f"({self.delta:g}), of which it is a part."
                )
        if self.bound == "paper":
            if self.delta is not None:
                raise ValueError(
                    "The parameter bound='paper' goes with a Rényi order 'alpha' "
                    "(infinity included), not with 'delta': the published bound has no "
                    "trade-off. Use alpha and event_delta, or bound='two_sided'."
                )
            self._paper_budget(self._event_deltas(0.0)[0])
        if self.event_delta is not None and self.event_delta == self.delta:
            noise = chosen_noise(self)
            if math.isinf(noise.pure_epsilon(1.0)):
                raise ValueError(
                    "The parameter 'event_delta' takes all of 'delta', which leaves a "
                    f"pure promise that {noise.family} noise cannot keep. Use a "
                    "smaller 'event_delta', or noise='laplace'."
                )

    # -- the protocol -------------------------------------------------------------

    def calibrate(self, release, scenario, random_state=None):
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        if self.bound == "two_sided":
            return super().calibrate(release, scenario, random_state)
        self.check()
        bound = bind(scenario, release)
        moved = self._sensitivity_bound(release, bound, chosen_noise(self).norm)
        budget = self._paper_budget(moved.delta)
        inner = clone(self).set_params(bound="two_sided", epsilon=budget)
        noise = inner.calibrate(release, bound).noise
        certificate = self._certificate(noise, moved, release, bound)
        return Calibration(noise, as_asked(certificate, self.epsilon))

    def certify(self, noise, release, scenario):
        """Find what a given noise promises; see :class:`Accountant`."""
        self.check()
        check_values(noise, release)
        bound = bind(scenario, release)
        return min(
            (
                self._certificate(noise, moved, release, bound)
                for moved in self._displacements(release, bound, noise.norm)
            ),
            key=lambda certificate: certificate.epsilon,
        )

    # -- the parts ----------------------------------------------------------------

    def _sensitivity_bound(self, release, bound, norm):
        """Return the move that needs the least noise, of those that delta allows."""
        options = self._displacements(release, bound, norm)
        if len(options) == 1:
            return options[0]
        unit = chosen_noise(self)
        if release.units is not None:
            unit = unit.with_scale(release.units)

        def needed(moved):
            shift = self._shift(moved, release)
            delta = self._noise_delta(moved)
            return np.max(unit.scale_for_delta(self.epsilon, delta, shift))

        return min(options, key=needed)

    def _displacements(self, release, bound, norm):
        """Return the moves, one for each mass that may be left out."""
        fact = self._fact(release, bound, norm)
        whole = sensitivity_bound(fact, release, norm)
        found = [
            near_displacement(fact, whole, release, norm, event)
            for event in self._event_deltas(fact.delta)
        ]
        finite = [moved for moved in found if math.isfinite(moved.radius)]
        if not finite:
            raise InfiniteDistanceError(self._infinite(found[0], release, bound))
        return finite

    def _event_deltas(self, known):
        """Return the masses to try leaving out, besides one that a fact leaves out."""
        if self.event_delta is not None:
            return (float(self.event_delta),)
        if self.delta is None:
            return (DEFAULT_EVENT_DELTA,)
        left = float(self.delta) - known
        if left <= 0:
            return (0.0,)
        if known:
            left *= 1 - 1e-12  # so that the sum of both is not rounded above delta
        pure = math.isfinite(chosen_noise(self).pure_epsilon(1.0))
        return tuple(share * left for share in _SHARES if pure or share < 1)

    def _noise_delta(self, moved):
        if moved.delta == self.delta:
            return 0.0  # a pure promise given the event
        return super()._noise_delta(moved)

    def _paper_term(self, event):
        """Return what the published bound adds to the cost of the noise."""
        factor = 1.0 if math.isinf(self._order) else self._order / (self._order - 1)
        return -factor * math.log1p(-event)

    def _paper_budget(self, event):
        """Return what the published bound leaves of the budget."""
        budget = self.epsilon - self._paper_term(event)
        if budget <= 0:
            raise ValueError(
                f"The parameter bound='paper' adds {self._paper_term(event):g} to the "
                f"cost of any noise, for a mass of {event:g} left out, so a budget of "
                f"epsilon={self.epsilon:g} cannot be reached. Use bound='two_sided', "
                "or a smaller 'event_delta'."
            )
        return budget

    def _certificate(self, noise, moved, release, bound):
        certificate = super()._certificate(noise, moved, release, bound)
        if self.bound == "two_sided":
            return certificate
        added = self._paper_term(moved.delta)
        return replace(certificate, epsilon=certificate.epsilon + added)


@singledispatch
def near_displacement(fact, whole, release, norm, event):
    """Bound the move of a release's output except for a mass.

    Parameters
    ----------
    fact : Fact
    whole : SensitivityBound
        What the fact says of the longest move.
    release : QueryRelease
    norm : float
    event : float
        Mass of a coupling that may move any distance, besides that of the fact.

    Returns
    -------
    SensitivityBound
        The whole one where leaving out a mass gains nothing.

    References
    ----------
    Pierquin et al. (2024), Definition 4.2 and Theorem 4.3.
    """
    return whole


@near_displacement.register
def _(fact: OutputDistributions, whole, release, norm, event):
    if event == 0 or whole.radius == 0:
        return whole
    radius, worst = -math.inf, None
    for prior, i, j, u, v in fact.pairs_of_distributions():
        found = _law_radius(u, v, event, norm, release.units)
        if found > radius:
            radius, worst = found, (prior, fact.secrets[i], fact.secrets[j])
    radius = (fact.scale * radius if radius else 0.0) + release.total_slack(norm)
    if whole.radius * (1 - _WORTH) <= radius:
        return whole
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


@near_displacement.register
def _(fact: CoupledSamples, whole, release, norm, event):
    if event == 0 or fact.certified:
        # what is known with confidence is the longest move
        return whole
    radius = 0.0
    for *_, u, v in fact.draws:
        moves = np.sort(np.linalg.norm((u - v) / release.unit_array, ord=norm, axis=1))
        left_out = math.floor(event * len(moves))
        radius = max(radius, float(moves[len(moves) - 1 - left_out]))
    if whole.radius * (1 - _WORTH) <= radius:
        return whole
    return replace(
        whole,
        radius=radius,
        delta=fact.delta + event,
        assumptions=(*fact.assumptions, left_out_text(event)),
    )


@remembered_with(2)
def _law_radius(u, v, event, norm, units):
    """Return how far apart two laws are except for a mass, or a bound."""
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
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
    lines = on_the_line(u), on_the_line(v)
    if None not in lines:
        unit = 1.0 if units is None else float(np.asarray(units).flat[0])
        return continuous_near_radius(*lines, event) / unit
    # masses known to an error may each be off by so much in total variation
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
    return cached_distribution_distance(u, v, norm, units, math.inf)
