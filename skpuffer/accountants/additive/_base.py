"""What accountants of additive noise share: a sensitivity, a target, a noise."""

import math
from abc import abstractmethod
from dataclasses import replace as replace_fields
from typing import Any, ClassVar

from skpuffer.accountants._base import Accountant, Calibration, bind, check_values
from skpuffer.accountants._noise_parameter import (
    check_pure,
    chosen_noise,
)
from skpuffer.exceptions import InfiniteDistanceError, UnsupportedError
from skpuffer.noise import Noise, Shift
from skpuffer.privacy import Certificate, Notion
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, Scenario
from skpuffer.utils._checks import check_order, check_positive, check_probability
from skpuffer.utils._types import Floats

from ._sensitivity import (
    SensitivityBound,
    record_sensitivity_bound,
    sensitivity_bound,
)

#: Rényi order of a promise that names neither an order nor a delta.
DEFAULT_ORDER = 2.0


#: What is read of a query: what bounds its sensitivity, its units, its assumptions.
QUERY_FIELDS = frozenset(
    {
        "assumptions",
        "context",
        "contribution",
        "dim",
        "factor",
        "is_integer",
        "is_sum",
        "linear",
        "modulus",
        "modulus_norm",
        "n_records",
        "name",
        "query",
        "sensitivity",
        "shift_ceiling",
        "slack",
        "units",
    }
)


class _AdditiveAccountant(Accountant):
    """Additive noise that covers the sensitivity of the output.

    A subclass says which facts it works from and what the promise is worth; the
    target, the noise and the certificate are the same for all.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        noise: str | Noise = "gaussian",
        beta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.noise = noise
        self.beta = beta

    @property
    @abstractmethod
    def _source(self) -> str:
        """Where the promise is proved."""

    reads: ClassVar[dict[type, frozenset[str]]] = {QueryRelease: QUERY_FIELDS}

    #: Whether certificates may be added up under one coupling.
    _composable = False

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_positive(epsilon=self.epsilon)
        chosen_noise(self)
        if self.delta is not None:
            check_probability(delta=self.delta)
            if self.alpha is not None:
                raise ValueError(
                    "The parameters 'alpha' and 'delta' name two kinds of promise: "
                    "give one of them. (The default accountant of an estimator has a "
                    "delta; pass an accountant of your own to set alpha.)"
                )
            return
        alpha = self._order
        if math.isinf(alpha):
            check_pure(chosen_noise(self))

    @property
    def _order(self) -> float:
        """The Rényi order asked for, checked."""
        return DEFAULT_ORDER if self.alpha is None else check_order(alpha=self.alpha)

    # -- the protocol -------------------------------------------------------------

    def calibrate(
        self,
        release: QueryRelease,
        scenario: Scenario | BoundScenario,
        random_state: Any = None,
    ) -> Calibration:
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        self.check()
        bound = bind(scenario, release)
        noise = chosen_noise(self)
        check_values(noise, release)
        sensitivity = self._sensitivity_bound(release, bound, noise.norm)
        if sensitivity.radius == 0 and not sensitivity.certified:
            raise UnsupportedError(
                f"By the samples at hand the secret does not move the release "
                f"{release.name!r} at all, which would leave it without noise; samples "
                "are no ground for that. Use more of them, or declare what is known "
                "(prior_as='law', 'support' or 'confidence')."
            )
        delta = None if self.delta is None else self._noise_delta(sensitivity)
        shift = self._shift(sensitivity, release)
        if release.units is not None:
            noise = noise.with_scale(release.units)
        scale: float | Floats
        if sensitivity.radius == 0:
            scale = 0.0
        elif delta is None:
            scale = noise.scale_for(self._order, self.epsilon, shift)
        else:
            scale = noise.scale_for_delta(self.epsilon, delta, shift)
        noise = noise.with_scale(scale)
        certificate = self._certificate(noise, sensitivity, release, bound)
        return Calibration(noise, certificate.as_asked(self.epsilon))

    def certify(
        self, noise: Noise, release: QueryRelease, scenario: Scenario | BoundScenario
    ) -> Certificate:
        """Find what a given noise promises; see :class:`Accountant`."""
        self.check()
        check_values(noise, release)
        bound = bind(scenario, release)
        sensitivity = self._sensitivity_bound(release, bound, noise.norm)
        return self._certificate(noise, sensitivity, release, bound)

    # -- the parts ----------------------------------------------------------------

    def _sensitivity_bound(
        self, release: QueryRelease, bound: BoundScenario, norm: float
    ) -> SensitivityBound:
        """Bound the sensitivity of the output; an infinite one is refused."""
        fact = self._fact(release, bound, norm)
        sensitivity = sensitivity_bound(fact, release, norm)
        if math.isinf(sensitivity.radius):
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        return sensitivity

    def _infinite(
        self,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> str:
        """Say why the sensitivity is infinite, and what would do."""
        what = f"the release {release.name!r}"
        if sensitivity.worst is None and release.sensitivity is not None:
            return (
                f"Nothing bounds how far one record moves {what} in the "
                f"{sensitivity.norm:g}-norm, which the noise needs: the vector's "
                "length is not known. Give it (n_outputs), a sensitivity in that norm, "
                "or use another noise."
            )
        if sensitivity.worst is None:
            return (
                f"Nothing bounds how far one record moves {what}: give bounds, a "
                "data_norm or a sensitivity."
            )
        _, a, b = sensitivity.worst
        return (
            f"W_inf between the output laws of {what} given {a!r} and {b!r} is "
            f"infinite (Gaussian laws of unequal covariance, or an unbounded law "
            f"against a bounded one), so {type(self).__name__} has no finite noise for "
            "them. Accountants that tolerate it are the approximate and the "
            "distribution-aware Wasserstein mechanisms; GroupPrivacy does where the "
            "scenario offers Adjacency; or state laws of bounded support."
        )

    def _shift(self, sensitivity: SensitivityBound, release: QueryRelease) -> Shift:
        """The sensitivity as what the noise has to cover."""
        return Shift(
            sensitivity.radius,
            norm=sensitivity.norm,
            dim=release.dim,
            weights=release.units,
        )

    def _noise_delta(self, sensitivity: SensitivityBound) -> float:
        """Return the part of delta that the fact's event leaves to the noise."""
        assert self.delta is not None
        if sensitivity.delta >= self.delta:
            raise ValueError(
                f"The parameter 'delta' ({self.delta:g}) must exceed "
                f"{sensitivity.delta:g}, the mass outside the event on which the prior "
                "is known. Use more public rows or a larger 'delta'."
            )
        return float(self.delta) - sensitivity.delta

    def _notion(self, sensitivity: SensitivityBound) -> Notion:
        if not sensitivity.certified:
            return Notion.ESTIMATED
        # a bound for any neighbouring tables needs no prior: differential privacy
        dp = sensitivity.arbitrary
        if self.delta is not None:
            return Notion.APPROXIMATE_DP if dp else Notion.APPROXIMATE_PUFFERFISH
        if sensitivity.delta:
            return Notion.APPROXIMATE_RENYI_PUFFERFISH
        if math.isinf(self._order):
            return Notion.PURE_DP if dp else Notion.PURE_PUFFERFISH
        return Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH

    def _value_epsilon(
        self, noise: Noise, sensitivity: SensitivityBound, release: QueryRelease
    ) -> float:
        """Rényi-Pufferfish epsilon for secrets about records' values, or infinity."""
        if not sensitivity.certified or sensitivity.delta:
            return math.inf
        if sensitivity.relation == "add_remove":
            # a value replaced is a removal and an addition, by the triangle inequality
            sensitivity = replace_fields(sensitivity, radius=2 * sensitivity.radius)
        return float(noise.curve(self._shift(sensitivity, release)).renyi(self._order))

    def _certificate(
        self,
        noise: Noise,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Certificate:
        notion, shift = self._notion(sensitivity), self._shift(sensitivity, release)
        curve = noise.curve(shift)
        unproved = curve.evidence(renyi=self.delta is None)
        alpha: float | None
        if self.delta is None:
            alpha, delta = float(self._order), sensitivity.delta
            epsilon = float(curve.renyi(alpha))
            rpp = self._value_epsilon(noise, sensitivity, release)
        else:
            alpha, delta, rpp = None, float(self.delta), math.inf
            epsilon = float(curve.epsilon(self._noise_delta(sensitivity)))
        # one record against one record; a secret of many is another promise
        compared = sensitivity.count == 1 and not sensitivity.any_records
        composable = (
            self._composable
            and sensitivity.certified
            and sensitivity.delta == 0
            and sensitivity.coupling_id is not None
        )
        return Certificate(
            notion=notion,
            epsilon=epsilon,
            alpha=alpha,
            delta=delta,
            event_delta=sensitivity.delta,
            confidence=sensitivity.confidence,
            relation=sensitivity.relation,
            curve=curve,
            rpp_epsilon=rpp,
            coupling_id=sensitivity.coupling_id,
            composable=bool(composable),
            assumptions=(
                *sensitivity.assumptions,
                *unproved,
                *release.assumptions,
            ),
            sensitivity=sensitivity.radius,
            norm=float(sensitivity.norm),
            record_sensitivity=(
                record_sensitivity_bound(release, sensitivity.norm)
                if compared
                else None
            ),
            source=self._source,
            **self._identity(bound, release),
        )
