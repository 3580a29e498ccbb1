"""Amplification by iteration: what the last iterate of a run tells, and no other."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from skpuffer.accountants import GRADIENT_FIELDS, PrivacyLoss, RenyiDP
from skpuffer.accountants._base import check_order_or_delta
from skpuffer.accountants._composition import _CompositionAccountant
from skpuffer.exceptions import Statement, unsupported_error, value_error
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.composed import Reading
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import Floats, check_positive
from skpuffer.kernel.steps import Accounting, GradientSteps, StepsOfRelease
from skpuffer.noise import Noise, Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.releases import (
    FixedSizeSampling,
    FullBatchSampling,
    GradientRelease,
    Optimiser,
    PoissonSampling,
    ShuffledEpochsSampling,
    WithReplacementSampling,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from ._iteration import last_iterate_mu

_SOURCE = Statement("source.shifted_interpolation")

#: How many records a batch may hold at most, by the scheme that draws it.
_LARGEST: dict[type, Callable[[GradientRelease], int]] = {
    FullBatchSampling: lambda release: release.n_records,
    # however unlikely it is
    PoissonSampling: lambda release: release.n_records,
    FixedSizeSampling: lambda release: release.batch_size or 0,
    # draws, of which each may be the same record
    WithReplacementSampling: lambda release: release.batch_size or 0,
    ShuffledEpochsSampling: lambda release: math.ceil(
        release.n_records / release.steps_per_epoch
    ),
}


def largest_batch(release: GradientRelease) -> int | None:
    """How many records a batch may hold at most, None if the scheme is new here."""
    size = _LARGEST.get(type(release.sampling))
    return None if size is None else size(release)


class IteratedSteps(GradientSteps, kind=None):
    """The steps of a training run, accounted for by its last iterate.

    The worst of all batches bounds the cost, which is that of a Gaussian mechanism of
    some mu at most, in inverse proportion to the scale of the noise.
    """

    def check(self) -> None:
        """Refuse runs that show more, or whose steps expand; see the base class."""
        super().check()
        largest = largest_batch(self.release)
        if largest is None:
            raise unsupported_error(
                "iteration.batch_size_unknown", sampling=str(self.release.sampling)
            )
        check_hidden(self.release)
        check_contracts(self.release, largest)

    @classmethod
    def _worth(cls, release: GradientRelease, moves: list[float]) -> bool:
        # all of them may be in each batch, however it is drawn
        return math.fsum(moves) < 2 * len(moves)

    def any_record(self, shift: Shift) -> float | None:
        """How far any other records would move a sum; see the base class."""
        if self.moves is None:
            return float(shift.radius)
        # the diameter of the ball does not grow with it, and batches hold only so many
        plain = type(self.release.sampling) is FullBatchSampling
        if not plain or self._optimiser.radius is not None:
            return None
        return 2 * self.count * self.release.total_clip_norm

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Bound the trade-off of the last iterates; see the base class."""
        once = self.curve_of(noise, 1)
        if once.gaussian_mu is None or np.ndim(noise.scale):
            raise unsupported_error(
                "iteration.noise_not_gaussian",
                release_type=type(self.release).__name__,
                noise=noise,
            )
        clip = self.release.total_clip_norm
        mu = self._unit_mu * (once.gaussian_mu / clip)
        largest = float(np.max(self._parts)) * clip
        return Accounting(
            GaussianCurve(mu),
            Shift(largest, norm=2.0, dim=self.release.dim),
            _SOURCE,
            False,
            (once.evidence(renyi=True), once.evidence()),
            (self.release.sampling_statement, *self._statements),
        )

    # -- the iteration ------------------------------------------------------------

    @property
    def _optimiser(self) -> Optimiser:
        return cast(Optimiser, self.release.optimiser)  # checked

    @cached_property
    def _steps(self) -> Floats:
        return np.array(self._optimiser.step_sizes(self.release.n_steps))

    @cached_property
    def _contractions(self) -> Floats:
        """Lipschitz constant of each step in the iterate, at most one."""
        release = self.release
        # of batches as large as can be; no step is longer than that allows: checked
        smoothness = 2 / longest_step(release, largest_batch(release) or 0)
        shrunk = self._optimiser.contractions(
            release.n_steps,
            smoothness,
            # a direction that is not penalised does not contract
            all_penalised=self._optimiser.penalise_all or not release.record.intercept,
        )
        # rounded up
        return np.minimum(1.0, (1 + 1e-15) * np.array(shrunk))

    @property
    def _parts(self) -> tuple[float, ...]:
        """Return how far batches move together, in clip norms, the most first."""
        release, k, moves = self.release, self.count, self.moves
        size = largest_batch(release) or 0
        scheme = type(release.sampling)
        if scheme is WithReplacementSampling:
            # one record may be drawn each time
            return ((2.0 if moves is None else moves[0]) * size,)
        if scheme is FixedSizeSampling:
            # in a batch of fixed size another record takes the place of one that leaves
            taken = min(k, size)
            return (2.0 * taken if moves is None else math.fsum(moves[:taken]),)
        if scheme is not ShuffledEpochsSampling:
            return (self._moved,)
        if self.relation == "add_remove":
            # a record of another batch takes the place of one that leaves, unless
            # there is no other
            return (2.0 * k, 1.0 * k) if release.steps_per_epoch > 1 else (1.0 * k,)
        if moves is None:
            moves = (2.0,) * k
        # those that move most in one batch, the next ones in another
        return tuple(math.fsum(moves[i : i + size]) for i in range(0, k, size))

    @cached_property
    def _unit_mu(self) -> float:
        """Mu of the whole run, for noise of scale one."""
        n_steps, release = self.release.n_steps, self.release
        if type(release.sampling) is not ShuffledEpochsSampling:
            return self._mu(np.full(n_steps, self._parts[0]))
        moved, is_last_worst = self._dealt_late()
        ends = np.append(np.arange(0, n_steps, release.steps_per_epoch)[1:], n_steps)
        best = self._mu(moved)
        if is_last_worst:
            return best
        # Steps that shrink to nothing have little noise for what is carried to them.
        # So the last epochs may also pay for what is theirs at once, whichever batch
        # it is in, and the ones before for theirs until then.
        clip = release.total_clip_norm
        at_once = math.fsum((part * clip) ** 2 for part in self._parts)
        for n_late in {2**i for i in range(len(ends).bit_length())} | {len(ends)}:
            early, squares = len(ends) - n_late, n_late * at_once
            if early > 0:
                squares += self._mu(moved[: ends[early - 1]]) ** 2
            if early >= 0:
                best = min(best, math.sqrt(squares) * (1 + 1e-14))
        return best

    def _dealt_late(self) -> tuple[Floats, bool]:
        """Return sums' moves if each epoch's are in its last batches, and whether they
        are.

        The cost rises with each move, and as moves of one sum come later: this is the
        worst.
        """
        n_steps, length = self.release.n_steps, self.release.steps_per_epoch
        late = np.log(self._steps) + np.cumsum(np.log(self._contractions)[::-1])[::-1]
        n_epochs = self.release.n_epochs
        by_epoch = np.full(n_epochs * length, -np.inf)
        by_epoch[:n_steps] = late
        falling = -np.sort(-by_epoch.reshape(n_epochs, length), axis=1)
        # one after the last step of each epoch, which may be cut off by the run's end
        ends = np.minimum(np.arange(1, n_epochs + 1) * length, n_steps)
        moved, is_last_worst = np.zeros(n_steps), True
        for rank, part in enumerate(self._parts[:length]):
            at = ends - 1 - rank
            inside = at >= np.arange(n_epochs) * length
            at = at[inside]
            lifted = falling[inside, rank] - late[at]
            # beyond that another bound is less
            moved[at] = part * np.exp(np.minimum(lifted, 500.0))
            is_last_worst &= bool((lifted <= 1e-12).all())
        return moved, is_last_worst

    def _mu(self, moved: Floats) -> float:
        """Mu of a run's first steps whose sums move so far in clip norms."""
        release, radius = self.release, self._optimiser.radius
        clip, n = release.total_clip_norm, len(moved)
        # in the unit of the iterate: a step and its noise are divided by the public
        # divisor, and shrink with the penalty
        noise = self._steps[:n] * self._contractions[:n] / release.divisor
        return last_iterate_mu(
            noise * moved * clip,
            noise,
            contraction=self._contractions[:n],
            # the noise is inside of the projection, and so is every gradient
            diameter=None if radius is None else 2 * radius,
        )

    @property
    def _statements(self) -> tuple[Statement, ...]:
        """What the run has to be for this to hold, in sentences."""
        release, optimiser = self.release, self._optimiser
        step, shrunk = float(self._steps.max()), float(self._contractions.max())
        how = Statement("iteration.step_one_lipschitz")
        if shrunk < 1:
            how = Statement(
                "iteration.step_shrinks_by_penalty", shrunk=shrunk, l2=optimiser.l2
            )
        kept: Statement | str = ""
        if optimiser.radius is not None:
            kept = Statement("iteration.projected_onto_ball", radius=optimiser.radius)
        return (
            Statement("assume.last_iterate_alone_leaves", n_steps=release.n_steps),
            Statement("assume.step_size_and_lipschitz", step=step, how=how, kept=kept),
        )


class IterationAmplification(_CompositionAccountant):
    """Noise for a training run of which only the last iterate is released.

    The noise of later steps covers the moves of earlier ones too. So a long run costs
    less than its steps added up. With a penalty on every parameter, or a projection
    onto a ball, the cost levels off. With neither, only runs of shuffled epochs gain.

    A release must meet these conditions, or the error names the setting to change:

    - ``published='result'``, and an optimiser without momentum and averages;
    - gradients of a linear model with a smooth loss, clipped whole in l2: with one
      score a record (two classes, regression) at any clip norm, with one for each class
      at a norm that clips nothing;
    - no step longer than two over the curvature of the mean loss, in the largest batch
      there may be. A Poisson batch may hold all records.

    The linear models trained by gradients make such releases under this accountant by
    default, and penalise the intercept as well.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float or None, default=None
        Rényi order of the promise, in (1, inf); 2 if neither it nor `delta` is given.
    delta : float or None, default=None
        If given, the promise is an (epsilon, delta) one. Not together with `alpha`.

    Notes
    -----
    *Cost.* At fixed tables and batches the last iterates are no easier to tell apart
    than two unit Gaussians at a distance mu. Its square is the least sum over the
    steps, by :func:`~skpuffer.privacy.allocate_shifts`. With a constant step that
    contracts by c, T steps cost ``(1 + c)/(1 - c) * (1 - c**T)/(1 + c**T)`` times a
    single one.

    *Batches.* The worst batch has every differing record at every step; dealt ones, in
    the last batches of each epoch. Hidden batches gain nothing here: few small batches
    are better off with :class:`PrivacyLoss`.

    *Contraction.* Clipped gradients of one score are those of a convex loss. Those of
    several scores are not, nor are parts of a gradient that are clipped apart.

    *Other releases.* The certificate adds up with others under the same coupling. It
    promises nothing once an iterate, a loss or a mean of iterates has been seen.

    References
    ----------
    Feldman, Mironov, Talwar and Thakurta (2018), Privacy amplification by iteration;
    Altschuler and Talwar (2022), Privacy of noisy stochastic gradient descent; Pierquin
    et al. (2024), Rényi Pufferfish privacy, Theorem 5.2; Bok, Su and Altschuler (2024),
    Shifted interpolation for differential privacy.

    Examples
    --------
    >>> from skpuffer.accountants import IterationAmplification
    >>> from skpuffer.releases import GradientRelease, Optimiser
    >>> from skpuffer.scenarios import RecordScenario
    >>> from skpuffer.training import Logistic, RecordGradient
    >>> record = RecordGradient(
    ...     loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2
    ... )
    >>> release = GradientRelease(
    ...     n_records=1000,
    ...     n_steps=1000,
    ...     sampling="full_batch",
    ...     published="result",
    ...     record=record,
    ...     optimiser=Optimiser(learning_rate=8.0, l2=0.01),
    ... )
    >>> accountant = IterationAmplification(epsilon=1.0, delta=1e-5)
    >>> round(accountant.calibrate(release, RecordScenario()).noise.scale, 1)
    19.0
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
            raise value_error("iteration.alpha_infinite")

    def longest_step(self, release: GradientRelease) -> float:
        """Return the longest step that brings no two runs apart, zero if unknown."""
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
        self, steps: StepsOfRelease, fact: Adjacency, bound: BoundScenario, noise: Noise
    ) -> Claim:
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
        # one of the two is there
        return float(curve.renyi(cast(float, self._promised_order)))

    def _fair_mu(self, delta: float | None) -> float:
        if delta is not None:
            return float(gaussian_mu(float(self.epsilon), delta))
        # alpha mu^2 / 2
        return math.sqrt(2 * self.epsilon / cast(float, self._promised_order))


# -- conditions under which the steps of a training run bring no two runs apart --------


def check_hidden(release: GradientRelease) -> None:
    """Refuse runs of which more than the last iterate leaves."""
    if release.published != "result":
        raise unsupported_error("iteration.iterates_may_be_seen")
    optimiser = release.optimiser
    # by exact type: a subclass may take other steps than the ones that are read here
    if type(optimiser) is not Optimiser:
        raise unsupported_error("iteration.optimiser_not_stated")
    if optimiser.momentum or optimiser.nesterov:
        raise unsupported_error("iteration.momentum_carried")
    if optimiser.restart or optimiser.recalibration is not None:
        raise unsupported_error("iteration.restart_or_recalibration")
    if optimiser.average:
        raise unsupported_error("iteration.mean_of_iterates_released")


def check_contracts(release: GradientRelease, largest_batch: int) -> None:
    """Refuse runs whose steps may bring two iterates further apart.

    The release has passed `check_hidden`; a batch holds `largest_batch` records at
    most.
    """
    if release.clip_order != 2:
        raise unsupported_error(
            "iteration.clip_order_not_two", clip_order=release.clip_order
        )
    if release.blocks is not None:
        raise unsupported_error("iteration.blocks_clipped_apart")
    record = release.record
    if not hasattr(record, "step_obstacle"):
        raise unsupported_error("iteration.loss_not_stated_convex")
    obstacle = record.step_obstacle(release.clip_norm)
    if obstacle is not None:
        raise unsupported_error("iteration.steps_expand", obstacle=obstacle)
    longest = longest_step(release, largest_batch)
    step = max(release.optimiser.step_sizes(release.n_steps))
    if step > longest:
        rate = _rounded_down(longest)
        beyond: Statement | str = ""
        remedy = Statement("iteration.remedy_smaller_learning_rate", rate=rate)
        if largest_batch > math.ceil(release.divisor):
            beyond = Statement(
                "iteration.batch_beyond_divisor",
                largest_batch=largest_batch,
                divisor=release.divisor,
            )
            remedy = Statement("iteration.remedy_other_sampling", rate=rate)
        raise unsupported_error(
            "iteration.step_too_long",
            step=step,
            longest=longest,
            beyond=beyond,
            remedy=remedy,
        )


def longest_step(release: GradientRelease, largest_batch: int) -> float:
    """Return the step beyond which two runs on the same batches may come further apart.

    The gradient of a convex b-smooth function is 1/b-cocoercive, so that a step of at
    most 2/b is 1-Lipschitz (Baillon and Haddad, 1977).
    """
    # of a sum of convex functions, each clipped gradient being that of one
    curvature = release.record.curvature * largest_batch / release.divisor
    return float(2 / curvature)


def _rounded_down(number: float) -> float:
    """Round to four digits, never up: a remedy that is not refused again."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 3)
    return float(f"{math.floor(number / unit) * unit:.4g}")
