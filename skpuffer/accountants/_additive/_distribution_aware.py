"""Distribution-aware Wasserstein mechanism: the mean cost over a coupling."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skpuffer.accountants._additive._base import scale_for, scale_for_delta
from skpuffer.accountants._base import Found
from skpuffer.exceptions import (
    InfiniteDistanceError,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.noise import root_above
from skpuffer.kernel.numbers import check_real
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

from ._base import _AdditiveAccountant, lacks_length
from ._couplings import CouplingCurve, Couplings, Moves, couplings

# Number of times transport plans and noise are computed in turn.
_ROUNDS = 3
# Factors of two by which a scale is searched for, up or down, before there is none.
_DOUBLINGS = 100


class DistributionAwareWasserstein(_AdditiveAccountant):
    """Noise that covers the mean cost of a coupling of output distributions.

    It takes the mean of what each move would cost, so rare far moves cost little, and
    Gaussian distributions of unequal covariance cost a finite amount. It never needs
    more noise than :class:`GeneralWasserstein` for the same promise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Finite Rényi order, greater than 1; 2 if neither it nor `delta` is given.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, by the mean of the noise's own
        trade-off over the moves. Not together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' is the
        Gaussian, Laplace or (for integers) discrete Laplace noise of least mean square
        error, by public facts (Laplace noise where the prior is only sampled).
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    q : float, default=1
        Exponent of the published bound, at least 1. More than 1 is never better.

    See Also
    --------
    GeneralWasserstein : The worst case; also makes pure promises.
    ApproximateWasserstein : Leaves out a small mass instead.

    Notes
    -----
    Any coupling gives a valid bound. On one coordinate the monotone coupling is used,
    on several an optimal plan for the noise's cost, found in turn with the noise, and
    between Gaussians a linear coupling. For a query that is no sum over records, the
    mean is over how far one record moves. Where only the longest move is known, or the
    mean gains nothing, the promise is that of :class:`GeneralWasserstein`. Samples of
    an unknown distribution only give an estimate.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 4.5 and Proposition 4.3;
    joint convexity of the hockey-stick divergence (delta).

    Examples
    --------
    >>> from skpuffer.accountants import DistributionAwareWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    >>> infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    >>> scenario = LawsScenario([(healthy, infected)])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> accountant = DistributionAwareWasserstein(epsilon=0.5, alpha=8)
    >>> round(accountant.calibrate(release, scenario).noise.scale, 6)
    2.613188
    """

    needs = (
        OutputDistributions,
        RecordDistributions,
        CoupledSamples,
        OutputSensitivity,
        Adjacency,
    )

    @property
    def _in_proportion(self) -> bool:
        return False

    _source = Statement("source.distribution_aware_wasserstein")

    _usual_family = "laplace"

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        noise: str | Noise = "auto",
        beta: float | None = None,
        q: float = 1,
    ) -> None:
        super().__init__(epsilon, alpha, delta=delta, noise=noise, beta=beta)
        self.q = q

    def _check_parameters(self, noise: Noise) -> None:
        q = check_real(q=self.q)
        if not 1 <= q < math.inf:
            raise value_error("parameter.q_below_one", q=self.q)
        super()._check_parameters(noise)
        # (Theorem 4.5 tends to the cost of the longest move as alpha does to infinity)
        if self.delta is None and math.isinf(self._order):
            raise value_error("parameter.alpha_infinite_mean_order")

    @property
    def _mean_order(self) -> float:
        """Order at which costs are averaged: alpha itself if q is 1.

        Theorem 4.5 takes the mean of exp(t R_(t + 1)(move)) with t = q (alpha - 1), and
        ``log(mean) / t`` is the cost: what the curve gives at the order t + 1.
        """
        return self.q * (self._order - 1) + 1

    # -- the protocol -------------------------------------------------------------

    def _calibrate(
        self,
        fact: Any,
        release: QueryRelease,
        bound: BoundScenario,
        unit: Noise,
        rng: Any,
    ) -> Found:
        """Set the scale of noise to the least that keeps the promise."""
        # two ways to calibrate from one fact: by the longest move and by the mean cost
        sensitivity, aware = self._bounds(fact, release, unit.norm)
        if sensitivity.radius == 0:
            # nothing moves, or samples say so: the base knows which, and refuses these
            return super()._calibrate(fact, release, bound, unit, rng)
        # then no move has a length in this norm, and no mean of moves either
        if lacks_length(sensitivity, release):
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        if release.units is not None:
            unit = unit.in_units(release.units)
        worst = self._worst_case_multiplier(unit, sensitivity, release)
        coupled = couplings(fact, sensitivity, release, unit.norm)
        found, moves = self._multiplier(unit, coupled, aware, release, worst)
        # either may be infinite alone: W_inf between Gaussians of unequal covariance,
        # or the mean where only the longest move is known
        if min(worst, found) == math.inf:
            raise InfiniteDistanceError(self._infinite(sensitivity, release, bound))
        # Zero noise is right only where it is known that nothing moves. Samples that
        # happen to coincide would leave the secret bare.
        if found == 0 and not aware.certified:
            raise unsupported_error("noise.samples_hardly_move", name=release.name)
        noise = _scaled(unit, found if _smaller(found, worst) else worst)
        # a gain of rounding errors only is not worth the assumptions of the mean
        if moves is None or not _smaller(found, worst):
            certificate = self._certificate(noise, sensitivity, release, bound)
        else:
            curve = self._curve(noise, moves, coupled, aware, release)
            certificate = self._aware_certificate(curve, aware, release, bound)
        return Found(noise, certificate)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        sensitivity, aware = self._bounds(fact, release, noise.norm)
        worst = self._certificate(noise, sensitivity, release, bound)
        # the event outside of which the fact is known takes all of delta
        spent = self.delta is not None and aware.delta >= self.delta
        # without noise only a delta may cover what moves
        bare = noise.is_zero and self.delta is None
        if sensitivity.radius == 0 or bare or spent:
            return worst
        # The noise is given, so plans are made for it: those that set the worst case
        # first, again while others set it. For a delta the plans of W_2 stay.
        coupled = couplings(fact, sensitivity, release, noise.norm)
        moves = coupled.moves()
        if self.delta is None:
            shift = shift_of(aware, release)
            done: tuple[int, ...] = ()
            for _ in range(_ROUNDS):
                order = self._mean_order
                moves, planned = coupled.improved(moves, noise, order, shift, done)
                done += planned
        # both are promises of the same noise, so the smaller one may be stated
        curve = self._curve(noise, moves, coupled, aware, release)
        found = self._aware_certificate(curve, aware, release, bound)
        return found if _smaller(_stated(found), _stated(worst)) else worst

    # -- the parts ----------------------------------------------------------------

    def _infinite(
        self,
        sensitivity: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Statement:
        if sensitivity.worst is None or lacks_length(sensitivity, release):
            return super()._infinite(sensitivity, release, bound)
        _, secret, other = sensitivity.worst
        return Statement(
            "transport.mean_distance_infinite",
            name=release.name,
            secret=secret,
            other=other,
        )

    @staticmethod
    def _bounds(
        fact: Any, release: QueryRelease, norm: float
    ) -> tuple[SensitivityBound, SensitivityBound]:
        """Return a fact's sensitivity bound, and that bound as far as masses go.

        The longest move may be certain, as the sensitivity to an arbitrary record is,
        where the masses of the coupling are only as certain as the fact.
        """
        sensitivity = sensitivity_bound(fact, release, norm)
        aware = replace(
            sensitivity,
            certified=fact.certified,
            arbitrary=False,
            delta=fact.delta,
            confidence=fact.confidence,
            assumptions=fact.assumptions,
        )
        return sensitivity, aware

    def _worst_case_multiplier(
        self, unit: Noise, sensitivity: SensitivityBound, release: QueryRelease
    ) -> float:
        """Least multiple of unit noise that covers the longest move."""
        # no finite noise covers an infinite move, nor a promise of which nothing is
        # left to the noise; the mean may still do, so neither is an error here
        if math.isinf(sensitivity.radius):
            return math.inf
        shift = shift_of(sensitivity, release)
        if self.delta is None:
            scale = scale_for(unit, self._order, self.epsilon, shift)
        elif sensitivity.delta >= self.delta:
            return math.inf
        else:
            delta = self._noise_delta(sensitivity)
            scale = scale_for_delta(unit, self.epsilon, delta, shift)
        # scales of coordinates keep their proportions, so the largest ratio covers all
        return float(np.max(np.divide(scale, unit.scale)))

    def _multiplier(
        self,
        unit: Noise,
        coupled: Couplings,
        aware: SensitivityBound,
        release: QueryRelease,
        start: float,
    ) -> tuple[float, tuple[Moves, ...] | None]:
        """Least multiple of unit noise by the mean over moves, and the moves it is for.

        The moves go into the curve of the certificate: it must be of the very plan that
        the noise was calibrated for.
        """
        # Where the event of the fact takes all of delta, a certain longest move may
        # still do without it; if there is none either, `_noise_delta` says why below.
        spent = self.delta is not None and aware.delta >= self.delta
        if spent and math.isfinite(start):
            return math.inf, None
        if math.isinf(start):
            start = 1.0
        # the loss that must not be exceeded: epsilon at an order, or delta at epsilon
        target = float(self.epsilon)
        if self.delta is not None:
            target = self._noise_delta(aware)
        shift = shift_of(aware, release)
        moves, best = coupled.moves(), math.inf
        best_moves: tuple[Moves, ...] | None = None
        # The best plan depends on the noise, and the least noise on the plan: in turn.
        # Every plan gives a valid promise, so stopping early costs noise and no
        # privacy.
        for _ in range(_ROUNDS):
            loss = self._loss(unit, self._curve(unit, moves, coupled, aware, release))
            found = _least(loss, target, start)
            if not found < best * (1 - 1e-9):
                break
            start, best, best_moves = found, found, moves
            # Plans are made for Rényi costs; couplings on one coordinate and between
            # Gaussians are the same for every noise.
            if found == 0 or self.delta is not None or not coupled.plans:
                break
            noise = _scaled(unit, found)
            moves, _ = coupled.improved(moves, noise, self._mean_order, shift)
        return best, best_moves

    def _curve(
        self,
        noise: Noise,
        moves: tuple[Moves, ...],
        coupled: Couplings,
        aware: SensitivityBound,
        release: QueryRelease,
    ) -> CouplingCurve:
        shift = shift_of(aware, release)
        return CouplingCurve(noise, shift, moves, aware.delta, coupled.mass_error)

    def _loss(self, unit: Noise, curve: CouplingCurve) -> Callable[[float], float]:
        """Return the loss of a multiple of unit noise: Rényi cost, or delta."""

        def loss(multiplier: float) -> float:
            scaled = replace(curve, noise=_scaled(unit, multiplier))
            if self.delta is None:
                return float(scaled.renyi(self._mean_order))
            return float(scaled.delta(self.epsilon))

        return loss

    def _aware_certificate(
        self,
        curve: CouplingCurve,
        aware: SensitivityBound,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        # the base states assumptions and notion; curve and epsilon, of the worst case
        # there, are replaced by those of the mean
        base = self._certificate(curve.noise, aware, release, bound)
        if self.delta is None:
            epsilon = float(curve.renyi(self._mean_order))
        else:
            epsilon = float(curve.epsilon(self._noise_delta(aware)))
        # The Rényi-Pufferfish epsilon is about secrets in a record's value. Under
        # add_remove a replaced value is two moves, of which the mean covers one.
        exact = (
            self.delta is None
            and aware.certified
            and not aware.delta
            and aware.relation != "add_remove"
        )
        # no sensitivity can be stated where moves are unbounded, as between Gaussians
        known = math.isfinite(aware.radius)
        return replace(
            base,
            epsilon=epsilon,
            curve=curve,
            rpp_epsilon=epsilon if exact else math.inf,
            sensitivity=aware.radius if known else None,
            norm=base.norm if known else None,
        )


def _smaller(found: float, worst: float) -> bool:
    """Whether the mean gains anything but the last digits over the worst case."""
    return found < worst * (1 - 1e-9)


def _stated(certificate: Claim) -> float:
    """Return the epsilon of a certificate, infinite if it states none."""
    return math.inf if certificate.epsilon is None else certificate.epsilon


def _scaled(unit: Noise, multiplier: float) -> Noise:
    """Return the noise at so many times its scale."""
    return unit.with_scale(multiplier * np.asarray(unit.scale))


def _least(loss: Callable[[float], float], target: float, start: float) -> float:
    """Return nearly the smallest multiplier whose loss is at most the target."""
    # bracket by doublings up, then by halvings down, from a guess that is near: at most
    # a factor of 2^100 either way, beyond which there is no noise or no need of any
    low = high = start
    for _ in range(_DOUBLINGS):
        if loss(high) <= target:
            break
        low, high = high, 2 * high
    else:
        return math.inf
    for _ in range(_DOUBLINGS):
        if low < high and loss(low) > target:
            break
        low, high = low / 2, low
    else:
        return 0.0
    return root_above(loss, target, low, high)
