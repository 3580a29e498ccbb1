"""Amplification by iteration: what the last iterate of a run tells, and no other."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

from skpuffer.accountants._target import check_order_or_delta
from skpuffer.accountants.composition._accounting import StepsOfRelease
from skpuffer.accountants.composition._base import Reading, _CompositionAccountant
from skpuffer.accountants.composition._gradients import GRADIENT_FIELDS, GradientSteps
from skpuffer.accountants.composition._privacy_loss import PrivacyLoss
from skpuffer.accountants.composition._renyi_dp import RenyiDP
from skpuffer.exceptions import Statement
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss._gaussian import gaussian_mu
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import Adjacency, BoundScenario
from skpuffer.utils._checks import check_positive

from ._conditions import longest_step
from ._steps import IteratedSteps, largest_batch

__all__ = ["IterationAmplification"]


class IterationAmplification(_CompositionAccountant):
    """Noise for a training run of which nothing but its last iterate leaves.

    A short step of gradient descent on a smooth convex loss brings two iterates no
    further apart, and one with a penalty brings them nearer. So the noise of later
    steps covers what was done at earlier ones too, and a long run costs less than its
    steps added up: with a penalty on every parameter, or a projection onto a ball, no
    more than some number of steps, however long it is. With neither, runs of shuffled
    epochs gain, and runs of full batches cost what their steps add up to.

    It reads off a gradient release whether this is so, and names the setting that would
    do where it is not:

    - ``published='result'``, and an optimiser without momentum and averages;
    - gradients of a linear model with a smooth loss, clipped whole in l2: with one
      score a record (two classes, regression) at any clip norm, with one for each class
      at a norm that clips nothing;
    - no step longer than two over the curvature of the mean loss, in the largest batch
      there may be. A Poisson batch may hold all records, whatever it is divided by.

    Under this accountant, the linear models trained by gradients make such releases by
    default, and their penalty is for the intercept as well.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float or None, default=None
        Rényi order of the promise, in (1, inf); 2 if neither it nor `delta` is given.
    delta : float or None, default=None
        If given, the promise is an (epsilon, delta) one. Not together with `alpha`.

    See Also
    --------
    PrivacyLoss : For runs of which all is seen, and for batches that are hidden.
    skpuffer.privacy.iteration_cost : The cost of given shifts.

    Notes
    -----
    *What it costs.* At fixed tables and batches the last iterates are no easier to tell
    apart than two unit Gaussians at a distance mu, the sum of whose squares over the
    steps is least by the best allocation of each step's shift to its noise and to that
    of later steps; see :func:`~skpuffer.privacy.allocate_shifts`. With a constant step
    that contracts by c, T steps cost ``(1 + c)/(1 - c) * (1 - c**T)/(1 + c**T)`` times
    a single one, in place of T. The epsilon of a mu at a delta is exact.

    *Batches.* They are drawn without a look at the records: what holds for the worst
    of them holds. It is every record that differs at every step, except where they are
    dealt: then, in the last batches of each epoch. Hidden batches as such gain nothing
    here, and few small batches are better off with :class:`PrivacyLoss`.

    *Contraction.* Clipped gradients of one score are those of a convex loss, whose
    slope is cut off. Of several scores they are not, as are parts of a gradient that
    are clipped apart: two iterates may be driven apart then by such steps.

    *Other releases.* The certificate is one number for the run, and adds up with those
    of other releases under the same coupling. Where an iterate, a loss or a mean of
    iterates has been seen as well, it promises nothing.

    References
    ----------
    Feldman, Mironov, Talwar and Thakurta (2018), Privacy amplification by iteration;
    Altschuler and Talwar (2022), Privacy of noisy stochastic gradient descent; Pierquin
    et al. (2024), Rényi Pufferfish privacy, Theorem 5.2; Bok, Su and Altschuler (2024),
    Shifted interpolation for differential privacy.

    Examples
    --------
    >>> from skpuffer.accountants import IterationAmplification, PrivacyLoss
    >>> from skpuffer.releases import GradientRelease, Optimiser
    >>> from skpuffer.scenarios import RecordScenario
    >>> from skpuffer.training import Logistic, RecordGradient
    >>> release = GradientRelease(
    ...     n_records=1000,
    ...     n_steps=1000,
    ...     sampling="full_batch",
    ...     published="result",
    ...     record=RecordGradient(
    ...         loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2
    ...     ),
    ...     optimiser=Optimiser(learning_rate=8.0, l2=0.01),
    ... )
    >>> last = IterationAmplification(epsilon=1.0, delta=1e-5)
    >>> round(last.calibrate(release, RecordScenario()).noise.scale, 1)
    19.0
    >>> every = PrivacyLoss(epsilon=1.0, delta=1e-5)
    >>> round(every.calibrate(release, RecordScenario()).noise.scale, 1)
    118.0
    """

    reads: ClassVar = {GradientRelease: GRADIENT_FIELDS}
    _kinds: ClassVar[Mapping[type, type[StepsOfRelease]]] = {
        GradientRelease: IteratedSteps
    }
    last_iterate_only = True

    # the one noise whose shifts at many steps are those of one Gaussian.
    noise: str = "gaussian"
    beta: None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        # Gaussian noise has no largest loss
        if self._promised_order == math.inf:
            raise ValueError(Statement("iteration.alpha_infinite"))

    def longest_step(self, release: GradientRelease) -> float:
        """Longest step that brings no two runs apart, zero if none is known.

        Parameters
        ----------
        release : GradientRelease
            Its optimiser is not read.

        Returns
        -------
        float
        """
        largest = largest_batch(release)
        if largest is None or not hasattr(release.record, "curvature"):
            return 0.0
        return longest_step(release, largest)

    @property
    def _promised_order(self) -> float | None:
        """Rényi order of the promise, None of one with a delta."""
        return check_order_or_delta(self.alpha, self.delta)

    @property
    def _composed_notion(self) -> Notion:
        return Notion.RENYI_DP if self.delta is None else Notion.APPROXIMATE_DP

    def _scale_of_any_record(self, steps: StepsOfRelease) -> float:
        # a run of which all is seen may hide any record with less, in sampled batches
        seen = GradientSteps(
            cast(GradientRelease, steps.release), steps.relation, steps.count
        )
        accountant = (
            RenyiDP(self.epsilon, None, alpha=self._promised_order)
            if self.delta is None
            else PrivacyLoss(self.epsilon, self.delta)
        )
        return min(
            super()._scale_of_any_record(steps), accountant._scale_of_any_record(seen)
        )

    def _certify_steps(
        self,
        steps: StepsOfRelease,
        fact: Adjacency,
        bound: BoundScenario,
        noise: Noise,
    ) -> Certificate:
        """Find what a given noise of each step promises."""
        certificate = super()._certify_steps(steps, fact, bound, noise)
        # the one that is promised where none is named
        return replace(certificate, alpha=self._promised_order)

    def _read(
        self, curve: GaussianCurve | PrivacyLossCurve, delta: float | None
    ) -> Reading:
        # an upper bound that no table is known to attain
        return self._loss(curve, delta, 0.0), None, curve, ()

    def _loss(
        self,
        curve: GaussianCurve | PrivacyLossCurve,
        delta: float | None,
        tolerance: float,
    ) -> float:
        if delta is not None:
            return float(curve.epsilon(delta))
        order = self._promised_order
        assert order is not None  # one of the two is there
        return float(curve.renyi(order))

    def _fair_mu(self, delta: float | None) -> float:
        if delta is not None:
            return float(gaussian_mu(float(self.epsilon), delta))
        order = self._promised_order
        assert order is not None
        return math.sqrt(2 * self.epsilon / order)  # alpha mu^2 / 2
