"""Accountant of what a declared belief about one record leaves to hide."""

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from skpuffer.accountants._composition import PrivacyLoss
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import check_option, check_positive, check_probability
from skpuffer.kernel.sums import delta_left
from skpuffer.noise import Noise
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._overlap import (
    OverlapCurve,
    PairwiseOverlap,
    PairwiseOverlapCurve,
    amplified_budgets,
    largest_pairwise_mu,
)
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    SelectionRelease,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, BoundScenario, RecordBelief, RecordScenario

from ._base import (
    Account,
    Accountant,
    Calibration,
    Found,
    accounts_for,
)

__all__ = ["OverlapAmplification"]


#: An epsilon that is so much nearer to the least one is not looked for.
_NEARLY = 0.99


class OverlapAmplification(Accountant):
    """Calibrate noise by a belief that records are nearly alike whatever the secret.

    Given either value of the secret a record has one of two distributions, and their
    common part reveals nothing. So the run's own differential privacy (one record
    replaced) is composed over all steps first, and amplified once for a holder of the
    belief. It covers all releases that :class:`PrivacyLoss` accounts for.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    delta : float, default=1e-5
        In (0, 1).
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian'} or Noise, \
default='auto'
        Family of the noise, as for :class:`PrivacyLoss`.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    max_fallback : float, default=8.0
        Largest epsilon that may hold whatever is believed of the record: plain
        differential privacy of the noise, one record (or household) replaced, at the
        same delta. At least `epsilon`.
    if_belief_suffices : {'raise', 'cap'}, default='raise'
        Whether to raise an error, or take the noise of `max_fallback`, where the belief
        alone is within (epsilon, delta).

    See Also
    --------
    PrivacyLoss : Promises as much to everyone; more noise.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Privacy amplification by subsampling, Theorem 2.

    Examples
    --------
    >>> from skpuffer.accountants import OverlapAmplification, PrivacyLoss
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> scenario = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    >>> release = GradientRelease(n_records=1000, n_steps=10, sampling="full_batch")
    >>> believed = OverlapAmplification(epsilon=0.3).calibrate(release, scenario)
    >>> plain = PrivacyLoss(epsilon=0.3).calibrate(release, scenario)
    >>> round(plain.noise.scale / believed.noise.scale, 2)
    3.05
    """

    needs = (RecordBelief,)
    # of choices nobody has said what a belief leaves of them
    reads: ClassVar[dict[type, frozenset[str]]] = {
        kind: fields
        for kind, fields in PrivacyLoss.reads.items()
        if kind is not SelectionRelease
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        noise: str | Noise = "auto",
        beta: float | None = None,
        max_fallback: float = 8.0,
        if_belief_suffices: str = "raise",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.beta = beta
        self.max_fallback = max_fallback
        self.if_belief_suffices = if_belief_suffices

    def _check_parameters(self, noise: Noise) -> None:
        epsilon = check_positive(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        check_option(("raise", "cap"), if_belief_suffices=self.if_belief_suffices)
        if check_positive(max_fallback=self.max_fallback) < epsilon:
            raise value_error(
                "overlap.max_fallback_below_epsilon",
                max_fallback=self.max_fallback,
                epsilon=self.epsilon,
            )

    @property
    def clip_order(self) -> float:
        """Order of the norm by which the noise wants gradients clipped: its own."""
        return self._chosen_noise().norm

    # -- the protocol -------------------------------------------------------------

    @accounts_for(QueryRelease, AdaptiveRelease, GradientRelease, VoteRelease)
    def _account_of_belief(
        self, fact: RecordBelief, release: Any, bound: BoundScenario
    ) -> Account:
        if getattr(release, "noise_correlation", None) is not None:
            raise unsupported_error(
                "overlap.noise_correlated", owner=type(self).__name__, name=release.name
            )
        anyone = _whatever_is_believed(fact, bound)
        # refused here, when support is asked for, and not only when noise is set
        plain = self._plain(self.epsilon, self.delta)
        support = plain.supports(release, anyone)
        if not support:
            raise unsupported_error(
                "overlap.privacy_loss_refuses",
                owner=type(self).__name__,
                reason=support.reason,
            )
        return Account(
            partial(self._calibrate, fact, release, bound, anyone),
            partial(self._certify, fact, release, bound, anyone),
            by_sensitivity=plain._account(release, anyone, 2.0).by_sensitivity,
        )

    def _plain(self, epsilon: float, delta: float) -> PrivacyLoss:
        """Accountant of plain differential privacy with the same noise."""
        return PrivacyLoss(epsilon, delta, noise=self.noise, beta=self.beta)

    def _calibrate(
        self,
        fact: RecordBelief,
        release: Any,
        bound: BoundScenario,
        anyone: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set the noise to the least that keeps the promise, and the fallback."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        left = delta_left(delta, fact.delta)
        targets = self._targets(fact, release, anyone, epsilon, left)
        if not targets and self.if_belief_suffices == "raise":
            raise unsupported_error(
                "overlap.belief_alone_within_budget",
                belief=bound.describe(),
                epsilon=epsilon,
                delta=delta,
            )

        def least(epsilon: float, delta: float) -> Calibration:
            return self._plain(epsilon, delta).calibrate(release, anyone)

        def plainly(noise: Noise) -> Claim:
            return self._plain(epsilon, delta).certify(noise, release, anyone)

        made = [least(*target) for target in targets]
        found = max(made, key=lambda each: _size(each.noise), default=None)
        plain = None if found is None else plainly(found.noise)
        if plain is None or _epsilon(plain) > self.max_fallback:
            found = least(float(self.max_fallback), delta)
            plain = plainly(found.noise)
        assert found is not None
        certificate = self._certificate(fact, release, bound, plain)
        # no noise is asked for where a record moves nothing
        if not found.noise.is_zero:
            gain = _size(least(epsilon, delta).noise) / _size(found.noise)
            certificate = replace(certificate, noise_gain=gain)
        return Found(found.noise, certificate, found.warnings)

    def _targets(
        self,
        fact: RecordBelief,
        release: Any,
        anyone: BoundScenario,
        epsilon: float,
        delta: float,
    ) -> tuple[tuple[float, float], ...]:
        """Budgets of plain differential privacy, all of which are to be kept."""
        targets = amplified_budgets(fact.overlap, epsilon, delta)
        if fact.pairwise is None or not targets:
            return targets
        # Gaussian runs are one number, and so is what the pairs of records allow
        unit = self._chosen_noise()
        once = self._plain(epsilon, delta).certify(unit, release, anyone)
        if once.curve is None or once.curve.gaussian_mu is None:
            return targets
        most = gaussian_mu(float(self.max_fallback), delta)
        mu = _pairwise_mu(fact.pairwise, epsilon, delta, most)
        return ((GaussianCurve(mu).epsilon(delta), delta),)

    def _certify(
        self,
        fact: RecordBelief,
        release: Any,
        bound: BoundScenario,
        anyone: BoundScenario,
        noise: Noise,
    ) -> Claim:
        """Find what a given noise promises."""
        plain = self._plain(self.epsilon, self.delta).certify(noise, release, anyone)
        return self._certificate(fact, release, bound, plain)

    def _epsilon(self, curve: OverlapCurve, delta: float) -> float:
        mu = curve.curve.gaussian_mu
        if isinstance(curve, PairwiseOverlapCurve) and mu is not None:
            return _pairwise_epsilon(curve.overlap, mu, float(self.epsilon), delta)
        return curve.epsilon(delta)

    def _certificate(
        self,
        fact: RecordBelief,
        release: Any,
        bound: BoundScenario,
        plain: Claim,
    ) -> Claim:
        """Claim of a noise, given what it promises to everyone."""
        assert plain.curve is not None
        delta = float(self.delta)
        left = delta_left(delta, fact.delta)
        curve = OverlapCurve(plain.curve, fact.overlap, fact.wider)
        if fact.pairwise is not None and plain.curve.gaussian_mu is not None:
            curve = PairwiseOverlapCurve(plain.curve, fact.pairwise, fact.wider)
        # what differential privacy says of its own neighbours is not what is said here
        anyone = _whatever_is_believed(fact, bound)
        own = anyone.fact(Adjacency, release).assumptions
        rest = tuple(text for text in plain.assumptions if text not in own)
        together = (
            Statement("overlap.records_taken_together", records=fact.together)
            if fact.together
            else ""
        )
        return Claim(
            notion=Notion.APPROXIMATE_PUFFERFISH
            if fact.certified
            else Notion.ESTIMATED,
            epsilon=self._epsilon(curve, left),
            delta=delta,
            event_delta=fact.delta,
            confidence=fact.confidence,
            relation="replace",
            curve=curve,
            events=plain.events,
            # Never to be added as it is, but amplified again or at the fallback, of
            # which the coupling is: see `compose`.
            coupling_id=plain.coupling_id,
            coupling_count=plain.coupling_count,
            composable=fact.certified,
            record=fact.record,
            assumptions=(
                Statement(
                    "assume.belief_independent_of_rows",
                    together=together,
                    belief=fact.belief,
                ),
                *fact.assumptions,
                *rest,
            ),
            sensitivity=plain.sensitivity,
            norm=plain.norm,
            source=Statement("source.amplification_by_overlap", source=plain.source),
        )


def _whatever_is_believed(fact: RecordBelief, bound: BoundScenario) -> BoundScenario:
    """Differential privacy of the records that a belief speaks of, all replaced."""
    anyone = fact.anyone or RecordScenario(fact.count, relation="replace")
    found: BoundScenario = anyone.bind(bound.context)
    return found


def _epsilon(plain: Claim) -> float:
    assert plain.epsilon is not None  # as of every (epsilon, delta) promise
    return plain.epsilon


def _size(noise: Noise) -> float:
    """Scale of the coordinate that has most: the others are in proportion."""
    return float(np.max(noise.scale))


# no data enters: distributions are declared, and costs are of public records
@lru_cache(maxsize=64)
def _pairwise_mu(
    overlap: PairwiseOverlap, epsilon: float, delta: float, most: float
) -> float:
    """Largest mu that keeps a budget, remembered: model selection asks again."""
    return largest_pairwise_mu(overlap, epsilon, delta, most=most)


@lru_cache(maxsize=64)
def _pairwise_epsilon(
    overlap: PairwiseOverlap, mu: float, asked: float, delta: float
) -> float:
    """Epsilon at a delta: the one that was asked for, if it is met and nearly spent."""
    curve = PairwiseOverlapCurve(GaussianCurve(mu), overlap)
    # to look where exactly the budget is met takes longer than to see that it is
    if curve.delta(asked) <= delta < curve.delta(asked * _NEARLY):
        return asked
    return curve.epsilon(delta)
