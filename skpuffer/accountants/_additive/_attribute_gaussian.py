"""Gaussian mechanism of attribute privacy, for Gaussian outputs."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from skpuffer.accountants._base import Found
from skpuffer.distributions import Gaussian
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.noise import gaussian_mu, root_above
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.sums import SensitivityBound
from skpuffer.noise import GaussianNoise, Noise
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, OutputDistributions
from skpuffer.utils._checks import check_bool

from ._base import _AdditiveAccountant

# Covariances of a pair count as equal if they agree to this fraction, so the noise may
# rely on the common one less this fraction.
_SAME = 1e-11

#: For each pair of secrets: difference of the means, and common covariance.
_Pairs = list[tuple[Floats, Floats]]

_RELIANCE = Statement("assume.prior_variance_protects")


class AttributeGaussian(_AdditiveAccountant):
    """Gaussian noise on an output that is Gaussian given each secret.

    The Gaussian mechanism of attribute privacy: the noise hides the difference of means
    of two Gaussian distributions of one covariance.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Finite Rényi order, greater than 1; 2 if neither it nor `delta` is given.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly. Not
        together with `alpha`.
    use_prior_variance : bool, default=False
        Whether the output's variance under the prior counts as noise. The promise then
        holds for exactly that prior: an adversary who knows part of the records sees
        less variance. Without it this is :class:`GeneralWasserstein`.

    See Also
    --------
    GeneralWasserstein : Relies on no variance of the prior.

    Notes
    -----
    Conditional variances must be equal. The sum of the prior's and the noise's variance
    is compared with the exact trade-off of two Gaussians, which holds for every
    epsilon.

    References
    ----------
    Zhang, Ohrimenko and Cummings (2022), Attribute privacy; Balle and Wang (2018),
    Improving the Gaussian mechanism.

    Examples
    --------
    >>> from skpuffer.accountants import AttributeGaussian
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.distributions import Gaussian
    >>> from skpuffer.scenarios import LawsScenario
    >>> scenario = LawsScenario([(Gaussian(0.0, 4.0), Gaussian(1.0, 4.0))])
    >>> release = QueryRelease(query=lambda X, y: X.mean(), n_records=9, dim=1)
    >>> for use in (False, True):
    ...     accountant = AttributeGaussian(0.5, alpha=8, use_prior_variance=use)
    ...     noise = accountant.calibrate(release, scenario).noise
    ...     print(round(noise.scale**2, 6))
    8.0
    4.0
    """

    needs = (OutputDistributions,)

    #: The mechanism's own; not parameters.
    noise: str = "gaussian"
    beta: None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        use_prior_variance: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.use_prior_variance = use_prior_variance

    @property
    def _in_proportion(self) -> bool:
        return not self.use_prior_variance

    @property
    def _source(self) -> Statement:
        if self.use_prior_variance:
            return Statement("source.attribute_gaussian_prior_variance")
        return Statement("source.attribute_gaussian_plain")

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_bool(use_prior_variance=self.use_prior_variance)

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
        if not self.use_prior_variance:
            return super()._calibrate(fact, release, bound, noise, rng)
        sensitivity = self._sensitivity_bound(fact, release, bound, 2.0)
        if sensitivity.radius == 0:
            return super()._calibrate(fact, release, bound, noise, rng)
        # What leaves is Gaussian given each secret, with one covariance for both: that
        # of the output under the prior and that of the noise, summed. Its loss is the
        # one of two unit Gaussians at the Mahalanobis distance of the means. The
        # distance mu of two unit Gaussians that costs the budget: alpha mu^2 / 2 at a
        # Rényi order, or the inverse of the trade-off (Balle and Wang 2018).
        if self.delta is None:
            target = math.sqrt(2 * self.epsilon / self._order)
        else:
            target = gaussian_mu(float(self.epsilon), self._noise_delta(sensitivity))
        pairs = self._pairs(fact, release)
        units = release.unit_array

        def distance(scale: float) -> float:
            return self._distance(pairs, (scale * units) ** 2)

        # no noise at all where the prior's own variance is enough
        scale = 0.0
        if distance(scale) > target:
            # enough without the prior's variance, so enough with it
            most = sensitivity.radius / target * (1 + 1e-9)
            scale = root_above(distance, target, 0.0, most)
        noise = GaussianNoise().with_scale(scale * units)
        certificate = self._prior_certificate(noise, sensitivity, pairs, release, bound)
        return Found(noise, certificate)

    def _certify(
        self, fact: Any, release: QueryRelease, bound: BoundScenario, noise: Noise
    ) -> Claim:
        """Find what a given noise promises."""
        if not self.use_prior_variance:
            return super()._certify(fact, release, bound, noise)
        if not isinstance(noise, GaussianNoise):
            raise value_error("gaussian.prior_variance_other_noise", noise=noise)
        sensitivity = self._sensitivity_bound(fact, release, bound, noise.norm)
        pairs = self._pairs(fact, release)
        return self._prior_certificate(noise, sensitivity, pairs, release, bound)

    # -- the parts ----------------------------------------------------------------

    @staticmethod
    def _pairs(fact: Any, release: QueryRelease) -> _Pairs:
        """Return the means' difference and the common covariance of each pair."""
        if release.total_slack(2.0) > 0:
            raise unsupported_error("gaussian.output_inexact", name=release.name)
        pairs: _Pairs = []
        for *_, u, v in fact.pairs_of_distributions():
            # W_inf between two Gaussians is finite if and only if their covariances
            # agree; what that overlooks as rounding is less than `_SAME`
            known = isinstance(u, Gaussian) and isinstance(v, Gaussian)
            if not known or math.isinf(
                cached_distribution_distance(u, v, 2.0, None, math.inf)
            ):
                raise unsupported_error("gaussian.covariances_differ")
            covariance = fact.scale**2 * (1 - _SAME) * u.covariance
            pairs.append((fact.scale * (u.mean - v.mean), covariance))
        return pairs

    @staticmethod
    def _distance(pairs: _Pairs, noise_covariance: Floats | float) -> float:
        """Largest Mahalanobis distance of means, under the release's covariance."""
        # step' C^-1 step by the eigenvectors of C, which may be singular: a release of
        # two copies of one number has a direction without variance
        worst = 0.0
        for step, covariance in pairs:
            added = noise_covariance
            if np.ndim(added) < 2:
                added = np.diag(np.broadcast_to(added, step.shape))
            variances, axes = np.linalg.eigh(covariance + added)
            parts = step @ axes
            # without variance, any difference of means along a direction is seen
            none = variances <= 1e-14 * max(variances[-1], 0.0)
            if np.any(none & (np.abs(parts) > 1e-12 * np.linalg.norm(step))):
                return math.inf
            with np.errstate(over="ignore"):  # what overflows is infinitely far
                squared = np.sum(parts[~none] ** 2 / variances[~none])
            worst = max(worst, float(squared))
        return math.sqrt(worst)

    def _prior_certificate(
        self,
        noise: GaussianNoise,
        sensitivity: SensitivityBound,
        pairs: _Pairs,
        release: QueryRelease,
        bound: BoundScenario,
    ) -> Claim:
        added = noise.covariance_matrix(len(pairs[0][0]))
        # the base states sensitivity and assumptions; its curve and epsilon, those of
        # the noise alone, are replaced
        curve = GaussianCurve(self._distance(pairs, added))
        base = self._certificate(noise, sensitivity, release, bound)
        if self.delta is None:
            epsilon = float(curve.renyi(self._order))
        else:
            epsilon = float(curve.epsilon(self._noise_delta(sensitivity)))
        exact = self.delta is None and sensitivity.certified and not sensitivity.delta
        # whatever the base knew of arbitrary tables, this rests on the prior's variance
        return replace(
            base,
            epsilon=epsilon,
            curve=curve,
            rpp_epsilon=epsilon if exact else math.inf,
            relation=None,
            assumptions=(*base.assumptions, _RELIANCE),
        )
