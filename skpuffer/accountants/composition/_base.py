"""Base composition accountant: the composed curve of steps, and noise for a target."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from functools import lru_cache, partial
from typing import Any, ClassVar

from scipy.optimize import brentq

from skpuffer.accountants._base import Account, Calibration, accounts_for
from skpuffer.accountants.additive._base import QUERY_FIELDS, _AdditiveAccountant
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy._curve import Curve
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss._distribution import TOLERANCE
from skpuffer.releases import GradientRelease, QueryRelease, VoteRelease
from skpuffer.releases._base import Release
from skpuffer.scenarios import Adjacency, BoundScenario
from skpuffer.scenarios._facts import arbitrary_coupling
from skpuffer.utils._solve import largest_argument, raise_until

from ._accounting import Accounting, StepsOfRelease
from ._gradients import GRADIENT_FIELDS
from ._least_scale import least_scale
from ._votes import VOTE_FIELDS

#: Epsilon, a lower bound of it or None, the curve to certify, and remarks on both.
Reading = tuple[float, float | None, Curve, tuple[str, ...]]


def steps_of(release: Release, adjacency: Adjacency) -> StepsOfRelease:
    """Return the dominating pairs of a release's steps between neighbouring tables.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    adjacency : Adjacency

    Returns
    -------
    StepsOfRelease

    Raises
    ------
    UnsupportedError
        If nothing is known of such steps, with a clause that says why.
    """
    # by exact type: what a subclass of a release adds may cost more
    kind = StepsOfRelease.kinds.get(type(release))
    if kind is None:
        raise UnsupportedError(
            f"nothing is known of the steps of a {type(release).__name__}"
        )
    # In the event that more records differ nothing would be promised: its mass would
    # have to come off delta, which no account of steps does.
    if not adjacency.count_is_certain:
        raise UnsupportedError(
            f"only with probability 1 - {adjacency.delta:g} do no more than "
            f"{adjacency.count} records depend on the secret; ask the scenario for a "
            "number that is certain (event_delta=0)"
        )
    count = int(adjacency.count)
    # fixed beforehand: see the class
    independent = count == 1 or adjacency.any_records
    # what reads records one by one may be told how far each of them moves
    moves = None
    if release.contribution is not None:
        moves = kind.known_moves(release, adjacency)
    steps = kind(release, adjacency.relation, count, independent, moves=moves)
    steps.check()
    return steps


class _CompositionAccountant(_AdditiveAccountant):
    """Base composition accountant: additive for a query, by composition for steps.

    A subclass says what the curve of many steps is, and how epsilon is read off it.
    """

    # The one fact that speaks of records: clipping bounds each one's gradient, whatever
    # the prior, and adaptive steps leave no output distribution to compare.
    needs = (Adjacency,)
    reads: ClassVar = {
        QueryRelease: QUERY_FIELDS,
        GradientRelease: GRADIENT_FIELDS,
        VoteRelease: VOTE_FIELDS,
    }
    _composable = True
    _source = "group privacy under one coupling (Pierquin et al. 2024, Cor 3.1)"

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
        )

    def _calibrate_steps(
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Calibration:
        """Set the scale of each step's noise to the least that keeps the promise."""
        scale = _memoised_scale(self, steps)
        noise = noise.with_scale(scale)
        certificate = self._certify_steps(steps, fact, bound, noise)
        if steps.moves is not None and steps.count == 1:
            # exact for mixtures too, whose noise is not in proportion to their shifts
            any_record = replace_fields(steps, moves=None)
            gain = _memoised_scale(self, any_record) / scale
            certificate = replace_fields(certificate, noise_gain=gain)
        return Calibration(noise, certificate)

    def _steps(
        self, fact: Adjacency, release: Any, bound: BoundScenario
    ) -> StepsOfRelease:
        """Dominating pairs of a release's steps, between tables adjacent by a fact."""
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
        return self._chosen_noise().norm

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
        # of scale one: only its family and its shape matter here
        unit = self._chosen_noise()

        def under(scale: float) -> Accounting:
            return steps.under(unit.with_scale(scale), self.max_memory)

        def loss(scale: float, tolerance: float) -> float:
            return self._loss(under(scale).curve, tolerance)

        # the sensitivity of a step sets the order of magnitude of the scale
        size = under(1.0).shift.radius
        usual, aim = under(size).curve, self._fair_mu()
        if isinstance(usual, GaussianCurve):
            # the whole curve is one number, mu, inversely proportional to the scale
            mu = largest_argument(
                lambda mu: self._loss(GaussianCurve(mu), TOLERANCE), self.epsilon, aim
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
        return least_scale(loss, self.epsilon, size * math.exp(guess), TOLERANCE)

    def _certify_steps(
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
    ) -> Certificate:
        """Find what a given noise of each step promises."""
        # from the noise itself, as calibrated or as given: the certificate's own
        # account
        release, found = steps.release, steps.under(noise, self.max_memory)
        epsilon, lower, curve, remarks = self._read(found.curve)
        # Rényi costs of subsampled steps are read off the noise's trade-off, so the
        # evidence of that counts for them too
        pairs = getattr(found.curve, "steps", ())
        by_costs = self._by_renyi_costs and all(
            hasattr(pair, "renyi_costs") for pair, _ in pairs
        )
        radius = float(found.shift.radius)
        coupling, notion = fact.coupling_id, self._composed_notion
        moved: tuple[str, ...] = ()
        if steps.moves is not None:
            # what is promised rests on how far the secret moves each record
            notion = notion.pufferfish
            moved = steps.statements(fact.move)
        elif not math.isinf(fact.move):
            # the bound takes clipped gradients of any records, not how far each moves
            coupling = arbitrary_coupling(steps.relation, steps.count)
        # one record against one; under differential privacy the two are the same by
        # definition
        compared = steps.count == 1 and not fact.any_records
        return Certificate(
            notion=notion if fact.certified else Notion.ESTIMATED,
            epsilon=epsilon,
            alpha=getattr(self, "alpha", None),
            delta=0.0 if self.delta is None else float(self.delta),
            relation=steps.relation,
            curve=curve,
            # a lower bound of the dominating pair is one of the run only if tables
            # attain it
            epsilon_lower=lower if found.tight and fact.certified else None,
            coupling_id=coupling,
            composable=fact.certified and coupling is not None,
            assumptions=(
                *fact.assumptions,
                *moved,
                *found.assumptions,
                *remarks,
                *found.evidence[0 if by_costs else 1],
                *release.assumptions,
            ),
            sensitivity=radius,
            norm=float(found.shift.norm),
            record_sensitivity=steps.any_record(found.shift) if compared else None,
            source=found.source,
            **self._identity(bound, release),
        )


def _memoised_scale(accountant: _CompositionAccountant, steps: StepsOfRelease) -> float:
    """Least scale, remembered by value: model selection asks again and again."""
    # without the facts of the table, which hold private rows under an empirical prior
    release: Any = steps.release
    steps = replace_fields(steps, release=replace_fields(release, context=None))
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
