"""Steps of a training run of which only the last iterate leaves."""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from skpuffer.accountants.composition._accounting import Accounting
from skpuffer.accountants.composition._gradients import GradientSteps
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import Noise, Shift
from skpuffer.privacy._iteration import last_iterate_mu
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import (
    FixedSizeSampling,
    FullBatchSampling,
    GradientRelease,
    Optimiser,
    PoissonSampling,
    ShuffledEpochsSampling,
    WithReplacementSampling,
)
from skpuffer.utils._types import Floats

from ._conditions import check_contracts, check_hidden, longest_step

__all__ = ["IteratedSteps", "largest_batch"]

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

    Batches are drawn without a look at the records, so that the worst of all batches
    bounds what any of them cost. Tables are told apart by a Gaussian mechanism of some
    mu at most, in inverse proportion to the scale of the noise.
    """

    def check(self) -> None:
        """Refuse runs that show more, or whose steps expand; see the base class."""
        super().check()
        largest = largest_batch(self.release)
        if largest is None:
            raise UnsupportedError(
                Statement(
                    "iteration.batch_size_unknown", sampling=str(self.release.sampling)
                )
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
        once = self._curve(noise, 1)
        if once.gaussian_mu is None or np.ndim(noise.scale):
            raise UnsupportedError(
                Statement(
                    "iteration.noise_not_gaussian",
                    release_type=type(self.release).__name__,
                    noise=noise,
                )
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
        optimiser = self.release.optimiser
        assert optimiser is not None  # checked
        return optimiser

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
        """How far batches move together at worst, in clip norms, the most first.

        One for every step; of batches that are dealt, those of an epoch.
        """
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
        """Sums' moves where each epoch's are in its last batches; whether that is so.

        Seen from the last iterate a move counts times what its step is, and what the
        later ones leave of it. Where these factors fall within an epoch, its largest
        ones take the places of the last. The cost rises with each move, and as moves of
        one sum come later (fewer steps cover them), so this is the worst deal or worse.
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
        """Mu of a run's first steps whose sums move so far, in clip norms."""
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
