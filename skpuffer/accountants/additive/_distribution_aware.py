"""The distribution-aware Wasserstein mechanism."""

import math
from dataclasses import replace

import numpy as np

from skpuffer.accountants._base import Calibration, as_asked, bind
from skpuffer.accountants._noise_parameter import check_values, chosen_noise
from skpuffer.exceptions import InfiniteDistanceError, UnsupportedError
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.utils._checks import check_real
from skpuffer.utils._solve import root_above

from ._base import _AdditiveAccountant
from ._coupling_curve import CouplingCurve
from ._couplings import couplings
from ._sensitivity import sensitivity_bound

__all__ = ["DistributionAwareWasserstein"]

# Times a transport plan is computed anew for the noise it led to.
_ROUNDS = 3
# Factors of two by which a scale is searched up or down before it counts as none.
_DOUBLINGS = 100


class DistributionAwareWasserstein(_AdditiveAccountant):
    """Noise that covers how far output laws are on the whole, not at worst.

    :class:`GeneralWasserstein` covers the longest move of the best coupling, however
    little mass makes it. This one takes the mean of what each move would cost, so rare
    far moves cost little, and Gaussian laws of unequal covariance, which are infinitely
    far apart, cost a finite amount. It never needs more noise for the same promise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Finite Rényi order, greater than 1; 2 if neither it nor `delta` is given. The
        mean of infinite order is the worst case, so a pure promise is refused.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated through the mean of
        the noise's own trade-off over the moves. Not together with `alpha`.
    noise : {'gaussian', 'laplace', 'generalized_gaussian', 'generalized_cauchy', \
'discrete_laplace'} or Noise, default='laplace'
        Family of the noise, or a noise whose scale calibration replaces. Discrete
        Laplace noise is for releases of integers.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.
    q : float, default=1
        Exponent of the published bound, at least 1. More than 1 takes the mean at the
        order ``q (alpha - 1) + 1`` and is never better.

    See Also
    --------
    GeneralWasserstein : The worst case; also makes pure promises.
    ApproximateWasserstein : Leaves out a small mass instead.

    Notes
    -----
    Any coupling gives a valid bound, the best one the smallest. On one coordinate the
    monotone coupling is used, which is the best for costs that are convex in the move;
    on several an optimal plan for the cost of the noise itself, found in turn with the
    noise; between Gaussians a linear coupling. Where only the longest move is known,
    or the mean gains nothing, the promise is that of :class:`GeneralWasserstein`.

    Draws from an unknown law only estimate the mean, so the certificate is an estimate.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 4.5 and Proposition 4.3;
    the (epsilon, delta) target by joint convexity of the hockey-stick divergence.

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

    needs = (OutputDistributions, CoupledSamples, OutputSensitivity, Adjacency)
    _source = "distribution-aware Wasserstein mechanism (Pierquin et al. 2024, Thm 4.5)"

    def __init__(
        self,
        epsilon=1.0,
        alpha=None,
        *,
        delta=None,
        noise="laplace",
        beta=None,
        q=1,
    ):
        super().__init__(epsilon, alpha, delta=delta, noise=noise, beta=beta)
        self.q = q

    def check(self):
        """Check the parameters; see the class."""
        q = check_real(q=self.q)
        if not 1 <= q < math.inf:
            raise ValueError(
                f"The parameter 'q' must be in the range [1, inf). Got {self.q!r}; 1 "
                "is always the best."
            )
        super().check()
        if self.delta is None and math.isinf(self._order):
            raise ValueError(
                "The parameter 'alpha' is infinite, and a mean of infinite order is "
                "the worst case: nothing is gained over GeneralWasserstein, which "
                "makes pure promises. Use it, or a finite 'alpha', or 'delta'."
            )

    @property
    def _mean_order(self):
        """Order at which costs are averaged: the one promised if q is 1."""
        return self.q * (self._order - 1) + 1

    # -- the protocol -------------------------------------------------------------

    def calibrate(self, release, scenario, random_state=None):
        """Find the least noise that keeps the promise; see :class:`Accountant`."""
        self.check()
        bound = bind(scenario, release)
        unit = chosen_noise(self)
        check_values(unit, release)
        fact, moved, aware = self._moves(release, bound, unit.norm)
        if moved.radius == 0:
            return super().calibrate(release, bound)
        if release.units is not None:
            unit = unit.with_scale(release.units)
        worst = self._worst_case_multiplier(unit, moved, release)
        coupled = couplings(fact, moved, release, unit.norm)
        found, moves = self._multiplier(unit, coupled, aware, release, worst)
        if min(worst, found) == math.inf:
            raise InfiniteDistanceError(self._infinite(moved, release, bound))
        if found == 0 and not aware.certified:
            raise UnsupportedError(
                f"By the samples at hand the secret hardly moves the release "
                f"{release.name!r}, which would leave it without noise; samples are "
                "no ground for that. Use more of them, or declare what is known "
                "(prior_as='law', 'support' or 'confidence')."
            )
        noise = _scaled(unit, found if _smaller(found, worst) else worst)
        if not _smaller(found, worst):
            certificate = self._certificate(noise, moved, release, bound)
        else:
            curve = self._curve(noise, moves, coupled, aware, release)
            certificate = self._aware_certificate(curve, aware, release, bound)
        return Calibration(noise, as_asked(certificate, self.epsilon))

    def certify(self, noise, release, scenario):
        """Find what a given noise promises; see :class:`Accountant`."""
        self.check()
        check_values(noise, release)
        bound = bind(scenario, release)
        fact, moved, aware = self._moves(release, bound, noise.norm)
        worst = self._certificate(noise, moved, release, bound)
        spent = self.delta is not None and aware.delta >= self.delta
        # without noise only a delta may cover what moves
        bare = noise.is_zero and self.delta is None
        if moved.radius == 0 or bare or spent:
            return worst
        coupled = couplings(fact, moved, release, noise.norm)
        moves = coupled.moves()
        if self.delta is None:
            shift, done = self._shift(aware, release), ()
            for _ in range(_ROUNDS):
                order = self._mean_order
                moves, planned = coupled.improved(moves, noise, order, shift, done)
                done += planned
        curve = self._curve(noise, moves, coupled, aware, release)
        found = self._aware_certificate(curve, aware, release, bound)
        return found if _smaller(found.epsilon, worst.epsilon) else worst

    # -- the parts ----------------------------------------------------------------

    def _infinite(self, moved, release, bound):
        if moved.worst is None:
            return super()._infinite(moved, release, bound)
        _, a, b = moved.worst
        return (
            f"The output laws of the release {release.name!r} given {a!r} and {b!r} "
            "are infinitely far apart, and no mean over their moves is known to be "
            "finite for this noise. Between Gaussian laws of unequal covariance it is "
            "for noise='gaussian', and on one coordinate for noise with a finite pure "
            "cost, such as 'laplace'; ApproximateWasserstein leaves far moves out."
        )

    def _moves(self, release, bound, norm):
        """Return the fact, its longest move, and how far its couplings are trusted."""
        fact = self._fact(release, bound, norm)
        moved = sensitivity_bound(fact, release, norm)
        # the longest move may be certain where the mass that makes it is not
        aware = replace(
            moved,
            certified=fact.certified,
            arbitrary=False,
            delta=fact.delta,
            confidence=fact.confidence,
            assumptions=fact.assumptions,
        )
        return fact, moved, aware

    def _worst_case_multiplier(self, unit, moved, release):
        if math.isinf(moved.radius):
            return math.inf
        shift = self._shift(moved, release)
        if self.delta is None:
            scale = unit.scale_for(self._order, self.epsilon, shift)
        elif moved.delta >= self.delta:
            return math.inf
        else:
            delta = self._noise_delta(moved)
            scale = unit.scale_for_delta(self.epsilon, delta, shift)
        return float(np.max(np.divide(scale, unit.scale)))

    def _multiplier(self, unit, coupled, aware, release, start):
        """Least multiple of unit noise by the mean over moves, and those moves."""
        spent = self.delta is not None and aware.delta >= self.delta
        if spent and math.isfinite(start):
            return math.inf, None
        if math.isinf(start):
            start = 1.0
        target = float(self.epsilon)
        if self.delta is not None:
            target = self._noise_delta(aware)
        shift = self._shift(aware, release)
        moves, best, best_moves = coupled.moves(), math.inf, None
        for _ in range(_ROUNDS):
            loss = self._loss(unit, self._curve(unit, moves, coupled, aware, release))
            found = _least(loss, target, start)
            if not found < best * (1 - 1e-9):
                break
            start, best, best_moves = found, found, moves
            if found == 0 or self.delta is not None or not coupled.plans:
                break
            noise = _scaled(unit, found)
            moves, _ = coupled.improved(moves, noise, self._mean_order, shift)
        return best, best_moves

    def _curve(self, noise, moves, coupled, aware, release):
        shift = self._shift(aware, release)
        return CouplingCurve(noise, shift, moves, aware.delta, coupled.mass_error)

    def _loss(self, unit, curve):
        """Loss of a multiple of unit noise, in the currency of the target."""

        def loss(multiplier):
            scaled = replace(curve, noise=_scaled(unit, multiplier))
            if self.delta is None:
                return scaled.renyi(self._mean_order)
            return scaled.delta(self.epsilon)

        return loss

    def _aware_certificate(self, curve, aware, release, bound):
        base = self._certificate(curve.noise, aware, release, bound)
        if self.delta is None:
            epsilon = float(curve.renyi(self._mean_order))
        else:
            epsilon = float(curve.epsilon(self._noise_delta(aware)))
        exact = (
            self.delta is None
            and aware.certified
            and not aware.delta
            and aware.relation != "add_remove"
        )
        known = math.isfinite(aware.radius)
        return replace(
            base,
            epsilon=epsilon,
            curve=curve,
            rpp_epsilon=epsilon if exact else math.inf,
            sensitivity=aware.radius if known else None,
            norm=base.norm if known else None,
        )


def _smaller(found, worst):
    """Whether the mean gains anything but the last digits over the worst case."""
    return found < worst * (1 - 1e-9)


def _scaled(unit, multiplier):
    return unit.with_scale(multiplier * np.asarray(unit.scale))


def _least(loss, target, start):
    """Return nearly the smallest multiplier whose loss is at most the target.

    Parameters
    ----------
    loss : callable
        Decreasing in the multiplier; may be infinite.
    target, start : float
        Positive.

    Returns
    -------
    multiplier : float
        Rounded up; infinite if none is enough, zero if any is.
    """
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
