"""Markov quilt mechanism: noise for near records, max-influence for the rest."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace as replace_fields
from functools import partial
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from skpuffer.accountants._additive._base import scale_for, scale_for_delta
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import (
    CompositionError,
    InfiniteDistanceError,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim, certificate_of
from skpuffer.kernel.noise import root_above
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_option,
    check_order,
    check_positive,
    check_probability,
)
from skpuffer.kernel.sums import check_stage_noise
from skpuffer.noise import Noise, Shift
from skpuffer.privacy import Certificate
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    VoteRelease,
)
from skpuffer.scenarios import BoundScenario, MaxInfluence, Scenario

from ._base import (
    Account,
    Accountant,
    Found,
    accounts_for,
    bind,
    check_pure,
    check_values,
)
from ._fields import GRADIENT_FIELDS, QUERY_FIELDS, STAGE_FIELDS, VOTE_FIELDS
from ._quilt_runs import (
    QuiltCurve,
    QuiltPart,
    RunPart,
    check_run,
    is_drawn,
    orders_by_term,
)

__all__ = ["MarkovQuilt"]


AnyRelease = QueryRelease | GradientRelease | VoteRelease
Part: TypeAlias = QuiltPart | RunPart

#: Losses are capped at so many times the budget while a scale is searched for.
_BEYOND = 4.0

#: A share of a scale that is not worth a search.
_SAME = 1e-10

#: Doublings of the noise after which no more of it is taken to help.
_MOST_DOUBLINGS = 40

#: Assumption of a certificate of several releases.
_ONE_TABLE = Statement("assume.releases_read_one_table")

_SOURCE = Statement("source.markov_quilt")


class MarkovQuilt(Accountant):
    """Noise for the records near a secret one, and max-influence for those beyond.

    Given a Markov quilt of a record, the far records are independent of it. The promise
    pays for the record's max-influence on its cheapest quilt, and for arbitrary changes
    of the near records, which the noise covers. It never needs more noise than group
    privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=inf
        Rényi order, greater than 1. Infinity asks for a pure promise (Laplace noise).
    delta : float or None, default=None
        If given, the promise is an (epsilon, delta) one: by the best Rényi order, or
        with quilts that depend on the secret with a part of `delta` (in total
        variation), whichever needs less noise. Not together with a finite `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Laplace for gradients, votes and sums in turn).
    beta : float or None, default=None
        Shape of generalised Gaussian noise.
    method : {'exact', 'approximate'}, default='exact'
        Influences from the chain's own distributions, or bounds from its least
        stationary mass and spectral gap, which need more noise and a chain that mixes.
    max_distance : int or None, default=None
        Leave out quilts further than so many records away. None is all quilts.

    See Also
    --------
    GroupPrivacy : Takes all records that depend on each other as near.
    GeneralWasserstein : Less noise where the output's distribution is known.

    Notes
    -----
    Write N for the near set of the quilt Q. By the chain rule, the Rényi divergence of
    the outputs under two values of the secret is at most that of the distributions of Q
    under them, plus the worst over values of Q of that of the outputs given Q. With far
    records coupled to be equal, the latter is the cost of a shift of as many records as
    N has. For alpha = inf it is the published mechanism.

    *Runs* of noisy gradients, votes or sums are one release: each record's influence is
    paid for once, and every step pays for the near set, as a group of as many records.
    If votes are dealt by groups, the teachers who hold a near record count.

    Certificates cannot be added, as each may rest on other quilts: use
    :meth:`certify_together`. Sensitivities are those of replacing a record.

    References
    ----------
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data,
    Theorem 4.3 and section 4.4; Song and Chaudhuri (2017), Composition properties.

    Examples
    --------
    >>> from skpuffer.accountants import MarkovQuilt
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import MarkovChainScenario
    >>> scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    >>> count = QueryRelease(
    ...     query=lambda X, y: X.sum(),
    ...     n_records=50,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={1: 1.0}, replace={1: 1.0}),
    ... )
    >>> round(MarkovQuilt(epsilon=1.0).calibrate(count, scenario).noise.scale, 6)
    22.298361
    """

    needs = (MaxInfluence,)
    reads: ClassVar = {
        QueryRelease: QUERY_FIELDS,
        AdaptiveRelease: STAGE_FIELDS,
        GradientRelease: GRADIENT_FIELDS,
        VoteRelease: VOTE_FIELDS,
    }

    _usual_family = "laplace"

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float = math.inf,
        *,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
        method: str = "exact",
        max_distance: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.method = method
        self.max_distance = max_distance

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_option(("exact", "approximate"), method=self.method)
        if self.max_distance is not None:
            check_count(max_distance=self.max_distance)
        alpha = check_order(alpha=self.alpha)
        if self.delta is not None:
            check_probability(delta=self.delta)
            if not math.isinf(alpha):
                raise value_error("quilt.alpha_and_delta_both")
        elif math.isinf(alpha):
            check_pure(noise)

    @property
    def clip_order(self) -> float:
        """Order of the norm by which the noise wants gradients clipped: its own."""
        return self._chosen_noise().norm

    # -- the protocol ----------------------------------------------------------------

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        super()._check_support(release, bound)
        self._check_run(release, bound)

    def _check_run(self, release: Any, bound: BoundScenario) -> None:
        """Refuse a run of which groups have no known cost."""
        if isinstance(release, AdaptiveRelease):
            check_stage_noise(self._chosen_noise(), release)
        if isinstance(release, QueryRelease):
            return
        with self._refusing(release, bound):
            check_run(release, self._chosen_noise())
            if is_drawn(release) and self.delta is not None:
                raise unsupported_error(
                    "quilt.delta_under_sampling", sampling=str(release.sampling)
                )

    @accounts_for(QueryRelease, AdaptiveRelease, GradientRelease, VoteRelease)
    def _account_of_release(
        self, fact: MaxInfluence, release: AnyRelease, bound: BoundScenario
    ) -> Account:
        self._check_run(release, bound)
        return Account(
            partial(self._calibrate, fact, release, bound),
            partial(self._certify, fact, release, bound),
        )

    def _calibrate(
        self,
        fact: MaxInfluence,
        release: AnyRelease,
        bound: BoundScenario,
        unit: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        part = self._part(unit, fact, release)
        # scales of coordinates keep the proportions of their units, so that one
        # multiplier is searched for
        if release.units is not None:
            unit = unit.in_units(release.units)
        proportions = np.asarray(unit.scale) if np.ndim(unit.scale) else 1.0

        # by value, as long as the quilts live: model selection asks again and again
        key = (
            type(self),
            tuple(sorted(self.get_params(deep=False).items())),
            replace_fields(part, noise=unit),
            fact.delta,
        )
        multiplier = MEMORY.found(
            fact.quilts, key, lambda: self._multiplier(fact, part, unit, proportions)
        )
        noise = unit.with_scale(multiplier * proportions)
        certificate = self._certificate(
            fact, (replace_fields(part, noise=noise),), [release], bound
        )
        return Found(noise, certificate)

    def _multiplier(
        self, fact: MaxInfluence, part: Part, unit: Noise, proportions: Floats | float
    ) -> float:
        """Return the least multiple of unit noise that keeps the promise."""

        def curve(scale: float) -> QuiltCurve:
            noise = unit.with_scale(scale * proportions)
            parts = (replace_fields(part, noise=noise),)
            return self._curve(fact, parts)

        # the trivial quilt has no influence, so nothing at all is to be covered
        if part.radius(part.largest) == 0:
            return 0.0
        if self.delta is None:
            alpha = float(self.alpha)
            # what costs more is not told apart
            ceiling = _BEYOND * float(self.epsilon)
            return _least(
                lambda scale: curve(scale).renyi(alpha, ceiling) / self.epsilon,
                *self._bracket(
                    lambda shift: scale_for(unit, alpha, self.epsilon, shift),
                    part,
                    proportions,
                ),
            )
        delta = self._noise_delta(fact)
        low, high = self._bracket(
            lambda shift: scale_for_delta(unit, self.epsilon, delta, shift),
            part,
            proportions,
        )
        return self._least_of_routes(curve, delta, low, high)

    def _certify(
        self,
        fact: MaxInfluence,
        release: AnyRelease,
        bound: BoundScenario,
        noise: Noise,
    ) -> Claim:
        """Find what a given noise promises."""
        part = self._part(noise, fact, release)
        return self._certificate(fact, (part,), [release], bound)

    def certify_together(
        self,
        parts: Sequence[tuple[Noise, AnyRelease]],
        scenario: Scenario | BoundScenario,
    ) -> Certificate:
        """Find what several noisy releases about the same records promise together.

        Parameters
        ----------
        parts : sequence of (Noise, release)
            Noise and sensitivities may not depend on earlier outputs. All read one
            table.
        scenario : Scenario or BoundScenario

        Returns
        -------
        Certificate
            The influence of a quilt is paid for once; the same quilts serve all.

        Raises
        ------
        CompositionError
            If there is no release, or they are of different tables.
        """
        # Certificates that rest on different quilts bound what each release tells
        # alone, not what they tell together: take one quilt for all (Song and Chaudhuri
        # 2017). What can be checked of "one table" is, the rest is stated as an
        # assumption.
        self.check()
        if not parts:
            raise CompositionError(Statement("quilt.no_release"))
        if len({release.n_records for _, release in parts}) > 1:
            raise CompositionError(Statement("quilt.record_counts_differ"))
        # columns of different names are different tables, even of the same length
        contexts = [release.context for _, release in parts]
        named = {context.feature_names for context in contexts if context} - {None}
        if len(named) > 1:
            raise CompositionError(Statement("quilt.column_names_differ"))
        bounds, facts = [], []
        for noise, release in parts:
            check_values(noise, release)
            bounds.append(bind(scenario, release))
            facts.append(self._fact(release, bounds[-1], noise.norm))
        claim = self._certificate(
            facts[0],
            tuple(
                self._part(noise, fact, release)
                for fact, (noise, release) in zip(facts, parts, strict=True)
            ),
            [release for _, release in parts],
            bounds[0],
        )
        releases = [release for _, release in parts]
        names = self._names(bounds[0], *releases)
        return cast(Certificate, certificate_of(claim, releases[0], facts[0], names))

    # -- the parts -------------------------------------------------------------------

    @staticmethod
    def _part(noise: Noise, fact: MaxInfluence, release: AnyRelease) -> Part:
        """Return a noisy release's cost under quilts."""
        if not isinstance(release, QueryRelease):
            return RunPart.of(noise, fact, release)
        # given the quilt and what was released, near records move a stage as a group
        if isinstance(release, AdaptiveRelease):
            check_stage_noise(noise, release)
        # Sizes of near sets are moves of the output itself, or numbers of records. Near
        # records change their values and stay in the table, so one moves the output as
        # a replacement does.
        move = fact.move
        if not fact.of_output:
            move = release.record_move(fact.move, noise.norm, "replace")
        part = QuiltPart(
            noise=noise,
            move=float(move),
            slack=float(release.total_slack(noise.norm)),
            dim=release.dim,
            units=release.units,
            smallest=min(quilts.smallest for quilts in fact.quilts),
            largest=max(quilts.largest for quilts in fact.quilts),
        )
        if math.isinf(part.radius(part.largest)):
            raise InfiniteDistanceError(
                Statement(
                    "quilt.sensitivity_unbounded", name=release.name, norm=noise.norm
                )
            )
        if np.any(np.equal(noise.scale, 0)) and part.radius(part.largest) > 0:
            raise value_error("quilt.noise_scale_not_positive", noise=noise)
        return part

    def _curve(self, fact: MaxInfluence, parts: tuple[Part, ...]) -> QuiltCurve:
        return QuiltCurve(fact, parts, self.method, self.max_distance)

    def _bracket(
        self,
        for_shift: Callable[[Shift], Any],
        part: Part,
        proportions: Floats | float,
    ) -> tuple[float | None, float]:
        """Return a lower bound of the scale that is needed, if any, and a guess."""
        if isinstance(part, RunPart):
            return None, float(part.radius(1))
        # All scales are proportional, so the first coordinate's tells the multiplier.
        first = np.ravel(proportions)[0]
        low, high = (
            float(np.ravel(for_shift(part.shift(size)))[0] / first)
            for size in (part.smallest, part.largest)
        )
        return low, high

    def _noise_delta(self, fact: MaxInfluence) -> float:
        """Return the part of delta that is left to noise and quilts."""
        assert self.delta is not None
        if self.delta <= fact.delta:
            raise value_error(
                "quilt.mass_above_delta", delta=self.delta, mass=fact.delta
            )
        return float(self.delta) - fact.delta

    def _least_of_routes(
        self,
        curve: Callable[[float], QuiltCurve],
        delta: float,
        low: float | None,
        high: float,
    ) -> float:
        """Return the least scale that keeps an (epsilon, delta) promise in some way.

        Each way gives a valid promise, and its scale depends on public facts only, so
        the least of them may be taken.
        """
        epsilon = self.epsilon

        # Given two values of a record, tables can be coupled to agree on the quilt,
        # hence beyond it, except with its total variation: as for the approximate
        # Wasserstein mechanism that much is taken off delta, the rest left to the
        # noise.
        def by_variation(scale: float) -> float:
            return curve(scale).variation(epsilon, _BEYOND * delta) / delta

        # influence and noise at one Rényi order, then converted
        def by_order(alpha: float, term: float, scale: float) -> float:
            found = curve(scale).renyi(alpha, _BEYOND * epsilon - term)
            return (found + term) / epsilon

        best = _least(by_variation, low, high)
        ways = [
            partial(by_order, alpha, term)
            for alpha, term in orders_by_term(delta)
            if term < epsilon
        ]
        # The most promising first, by their losses at the best scale known: what is
        # over the budget there is so at a smaller one too, and most are asked once.
        probed = best if math.isfinite(best) else high
        losses = [(way(probed), number) for number, way in enumerate(ways)]
        for loss, number in sorted(losses):
            way = ways[number]
            if loss > 1 and probed >= best:
                continue
            if math.isinf(best):
                best = _least(way, low, high)
            elif best != low and way(best * (1 - _SAME)) <= 1:
                best = _least(way, low, best)
        return best

    def _certificate(
        self,
        fact: MaxInfluence,
        parts: tuple[Part, ...],
        releases: Sequence[AnyRelease],
        bound: BoundScenario,
    ) -> Claim:
        curve = self._curve(fact, parts)
        alpha: float | None
        if self.delta is None:
            alpha, delta = float(self.alpha), fact.delta
            choice = curve.worst(alpha)
            epsilon = choice.price
            pure = math.isinf(alpha) and not delta
            notion = Notion.PURE_PUFFERFISH if pure else Notion.RENYI_PUFFERFISH
            if delta:
                notion = Notion.APPROXIMATE_RENYI_PUFFERFISH
        else:
            alpha, delta = None, float(self.delta)
            choice = None
            epsilon = curve.epsilon(self._noise_delta(fact))
            notion = Notion.APPROXIMATE_PUFFERFISH
        # A sensitivity can be stated of one release with one worst quilt; by an
        # (epsilon, delta) curve each order may rest on another.
        alone = len(parts) == 1
        size = parts[0].largest if choice is None else choice.size
        # every part of a Rényi promise is one at that order, unless a delta is left out
        exact = fact.certified and not delta
        # a promise with a delta may rest on Rényi costs or on the trade-off
        asked = (True,) if self.delta is None else (True, False)
        evidence = [
            sentence
            for part in parts
            for renyi in asked
            for sentence in part.evidence(size, renyi)
        ]
        assumptions = [
            *fact.assumptions,
            *(() if alone else (_ONE_TABLE,)),
            *evidence,
            *(a for part in parts for a in part.assumptions),
            *(a for release in releases for a in release.assumptions),
        ]
        return Claim(
            notion=notion if fact.certified else Notion.ESTIMATED,
            epsilon=float(epsilon),
            alpha=alpha,
            delta=delta,
            event_delta=fact.delta,
            confidence=fact.confidence,
            curve=curve,
            rpp_epsilon=epsilon if exact else math.inf,
            assumptions=tuple(dict.fromkeys(assumptions)),
            sensitivity=(
                parts[0].radius(size) if alone and choice is not None else None
            ),
            norm=float(parts[0].noise.norm) if alone else None,
            source=_SOURCE
            if alpha == math.inf
            else Statement("source.markov_quilt_chain_rule", source=_SOURCE),
            n_releases=len(parts),
        )


def _least(excess: Callable[[float], float], low: float | None, high: float) -> float:
    """Return the least scale at which the loss is within the budget."""
    if low is not None and excess(low) <= 1:
        return low
    # where the curve is looser than the trade-off of one shift
    high = _enough(excess, high)
    if math.isinf(high):
        return high
    if low is None:
        low = high / 2
        while excess(low) <= 1:
            low, high = low / 2, low
    # At small scales the cheapest quilt may cost infinitely much, or so much that it is
    # not found out; capped, the function stays finite for the bracketing search.
    return float(root_above(lambda scale: min(excess(scale), _BEYOND), 1.0, low, high))


def _enough(excess: Callable[[float], float], scale: float) -> float:
    """Return a scale at which the loss is within the budget, found by doubling.

    Infinite if there seems to be none: from finitely many Rényi orders no small epsilon
    follows, whatever the noise.
    """
    for _ in range(_MOST_DOUBLINGS):
        if excess(scale) <= 1:
            return scale
        scale *= 2
    return math.inf
