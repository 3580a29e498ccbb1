"""Base additive accountant, and the sensitivity bounds that follow from facts."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from functools import lru_cache, partial
from typing import Any, ClassVar

from skpuffer.accountants._base import (
    Account,
    Accountant,
    Found,
    accounts_for,
    check_pure,
)
from skpuffer.accountants._families import FAMILIES
from skpuffer.accountants._target import DEFAULT_ORDER, check_order_or_delta
from skpuffer.distributions._distributions import largest_distance
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.numbers import (
    Floats,
    check_order,
    check_positive,
)
from skpuffer.kernel.sums import (
    QUERY_FIELDS,
    SensitivityBound,
    check_stage_noise,
    claim_of_bound,
    composed_stages,
    delta_of_noise,
    distribution_sensitivity,
    lacks_length,
    record_ceiling,
    sensitivity_bound,
    shift_of,
)
from skpuffer.noise import Noise
from skpuffer.releases import AdaptiveRelease, QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    OutputDistributions,
    RecordDistributions,
)


@sensitivity_bound.register
def _of_distributions(
    fact: OutputDistributions | RecordDistributions, release: QueryRelease, norm: float
) -> SensitivityBound:
    ceiling = record_ceiling(fact, release, norm)
    pairs = list(fact.pairs_of_distributions())
    # in the distributions' own coordinates, as is the ceiling beyond which no search
    # pays
    distance, at = largest_distance(
        [(u, v) for *_, u, v in pairs],
        *fact.compared_in(release, norm),
        fact.shift_ceiling(release, ceiling),
    )
    radius = fact.output_move(distance, release, norm)
    prior, i, j, *_ = pairs[at]
    worst = (prior, fact.secrets[i], fact.secrets[j])
    return distribution_sensitivity(fact, radius, release, norm, worst=worst)


# by value: model selection, and the choice of a family, ask again and again
_scale_at_order = lru_cache(maxsize=1024)(Noise.scale_for)
_scale_with_delta = lru_cache(maxsize=1024)(Noise.scale_for_delta)


class _AdditiveAccountant(Accountant):
    """Base additive accountant: noise that covers the sensitivity of the output.

    A subclass says which facts it works from and what the promise is worth; the
    target, the noise and the certificate are the same for all.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.noise = noise
        self.beta = beta

    @property
    @abstractmethod
    def _source(self) -> Statement:
        """Source of the proof, for the certificate."""

    reads: ClassVar[dict[type, frozenset[str]]] = {QueryRelease: QUERY_FIELDS}

    #: Whether an event of a mass takes all of a delta, so that a pure promise is left.
    _all_spent: ClassVar[Any] = None

    #: Whether certificates may be added up under one coupling.
    _composable = False

    @property
    def _in_proportion(self) -> bool:
        """Whether all depends on one sensitivity over one scale; see `Account`."""
        return True

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        if check_order_or_delta(self.alpha, self.delta) == math.inf:
            check_pure(noise)

    @property
    def _order(self) -> float:
        """The Rényi order asked for, checked."""
        return DEFAULT_ORDER if self.alpha is None else check_order(alpha=self.alpha)

    # -- the protocol -------------------------------------------------------------

    @accounts_for(QueryRelease)
    def _account_of_query(
        self, fact: Any, release: QueryRelease, bound: BoundScenario
    ) -> Account:
        return Account(
            partial(self._calibrate, fact, release, bound),
            partial(self._certify, fact, release, bound),
            by_sensitivity=self._in_proportion,
        )

    # marked here for all, and read by those alone that work from adjacency
    @accounts_for(AdaptiveRelease)
    def _account_of_stages(
        self, fact: Any, release: AdaptiveRelease, bound: BoundScenario
    ) -> Account:
        # one output's distributions say nothing of a query that is chosen by another
        if type(fact) is not Adjacency:
            raise UnsupportedError(
                Statement(
                    "accountant.stages_without_adjacency",
                    owner=type(self).__name__,
                    name=release.name,
                    fact_type=type(fact).__name__,
                )
            )
        account = self._account_of_query(fact, release, bound)

        def calibrate(noise: Noise, rng: Any) -> Found:
            check_stage_noise(noise, release)
            found = account.calibrate(noise, rng)
            return replace_fields(found, claim=composed_stages(found.claim))

        def certify(noise: Noise) -> Claim:
            check_stage_noise(noise, release)
            return composed_stages(account.claim(noise))

        check = partial(check_stage_noise, release=release)
        return Account(calibrate, certify, check, account.by_sensitivity)

    def _calibrate(
        self,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
        noise: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        # no noise at all only for what is known: in a sample, rare moves are missing
        if sensitivity.radius == 0 and not sensitivity.certified:
            raise UnsupportedError(
                Statement("noise.samples_do_not_move", name=release.name)
            )
        # a budget too small for the event is refused before any scale is searched for
        delta = None
        if self.delta is not None:
            delta = delta_of_noise(self.delta, sensitivity, self._all_spent)
        shift = shift_of(sensitivity, release)
        # proportions first: calibration multiplies them all by one factor
        if release.units is not None:
            noise = noise.in_units(release.units)
        scale: float | Floats
        if sensitivity.radius == 0:
            scale = 0.0
        else:
            # what is only estimated may have been read off private rows: not kept
            plain = sensitivity.certified and type(noise) in FAMILIES.values()
            epsilon = float(self.epsilon)
            if delta is None:
                at_order = _scale_at_order if plain else Noise.scale_for
                scale = at_order(noise, self._order, epsilon, shift)
            else:
                with_delta = _scale_with_delta if plain else Noise.scale_for_delta
                scale = with_delta(noise, epsilon, delta, shift)
        noise = noise.with_scale(scale)
        # read off the noise as it is, not off the target: they cannot differ unnoticed
        certificate = self._certificate(noise, sensitivity, release, bound)
        return Found(noise, certificate)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        return self._certificate(noise, sensitivity, release, bound)

    # -- the parts ----------------------------------------------------------------

    def _sensitivity_bound(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        """Bound the sensitivity of the output; an infinite one is refused."""
        sensitivity = sensitivity_bound(fact, release, norm)
        # refused with words of its own, before a family finds that no scale will do
        if math.isinf(sensitivity.radius):
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        return sensitivity

    def _infinite(
        self,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Statement:
        """Say why the sensitivity is infinite, and what would do."""
        what = Statement("release.subject_named", name=release.name)
        # known in another norm, but the factor between the two depends on the dimension
        known = release.sensitivity is not None
        if known and (sensitivity.worst is None or lacks_length(sensitivity, release)):
            return Statement(
                "release.vector_length_unknown", what=what, norm=sensitivity.norm
            )
        if sensitivity.worst is None:
            return Statement("release.sensitivity_unbounded", what=what)
        _, secret, other = sensitivity.worst
        return Statement(
            "transport.distance_infinite",
            what=what,
            secret=secret,
            other=other,
            owner=type(self).__name__,
        )

    def _noise_delta(self, sensitivity: SensitivityBound) -> float:
        """Return the part of delta that the fact's event leaves to the noise."""
        assert self.delta is not None
        return delta_of_noise(self.delta, sensitivity, self._all_spent)

    def _certificate(
        self,
        noise: Noise,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        exact = None
        if self.delta is not None:
            exact = delta_of_noise(self.delta, sensitivity, self._all_spent)
        return claim_of_bound(
            noise,
            sensitivity,
            release,
            alpha=float(self._order) if self.delta is None else None,
            delta=None if self.delta is None else float(self.delta),
            noise_delta=exact,
            composable=self._composable,
            source=self._source,
        )
