"""The rule of composed steps: what dominates each, and what all of them promise."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from skpuffer.exceptions import Statement, reason_of, unsupported_error
from skpuffer.kernel import pairs, sampling
from skpuffer.kernel.curves import Events, GaussianCurve
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.facts import Adjacency
from skpuffer.kernel.gradients import GradientRelease
from skpuffer.kernel.noise import Evidence, Noise, Shift, ShiftCurve
from skpuffer.kernel.poisson_groups import GaussianPoissonGroup, GaussianPoissonPair
from skpuffer.kernel.releases import Release
from skpuffer.kernel.votes import VoteRelease


@dataclass(frozen=True)
class Accounting:
    """Privacy curve of all steps of a release, composed.

    Parameters
    ----------
    curve : GaussianCurve or PrivacyLossCurve
        The former, exact, where Gaussian noise meets known shifts.
    shift : Shift
        Sensitivity of one step; of an epoch, where batches are dealt.
    source : Statement
        Where the bound is proved.
    tight : bool
        Whether some neighbouring tables attain it.
    evidence : tuple of tuple of Statement
        Facts about the noise that are not proved: its Rényi costs, and its trade-off.
    assumptions : tuple of Statement
        Assumptions of the release, in sentences.
    events : tuple of (pair, int) or None
        Parts that the curve is composed of, where it is not one bound of all steps.
    """

    # Bounds the true curve from above in any case; whether it does so from below as
    # well, `tight` says.
    curve: GaussianCurve | PrivacyLossCurve
    shift: Shift
    source: Statement
    tight: bool
    evidence: Evidence
    assumptions: tuple[Statement, ...] = ()
    events: Events | None = None


@dataclass(frozen=True)
class StepsOfRelease(ABC):
    """Dominating pairs of one release's steps, between neighbouring tables.

    A subclass is registered for the one kind of release it reads, by exact type: what a
    subclass of that kind may add is not known to be covered. One of ``kind=None`` is
    for accountants that ask for it by name.

    Parameters
    ----------
    relation : {'add_remove', 'replace'}
        How neighbouring tables differ; a record may become any other.
    count : int
        How many records differ at most.
    event : float
        Mass of the event in which more do.
    law : tuple of float or None
        Bounds of the probability that more than 0, 1, ... records differ, under some
        coupling, where they are known.
    moves : tuple of float or None
        How far each of them moves a step at most, in units of the release and the
        largest first, by what is known of the record's own move. None if a record may
        become any other.

    Notes
    -----
    Why any dependence will do: under one coupling of the two worlds the run meets a
    fixed pair of tables that differ in so many records, whatever these depend on. A
    bound for each such pair holds for the mixtures over the coupling, as divergences
    are jointly convex. On an event that is left out nothing is promised; it is about
    the tables, so that it counts once for all steps.
    """

    # Hashable, with the release: scales are remembered by them, see `_memoised_scale`.
    release: Release
    relation: str
    count: int
    event: float = 0.0
    law: tuple[float, ...] | None = None
    moves: tuple[float, ...] | None = None

    #: Whether the event is about the tables, and not about coins of the mechanism.
    event_of_tables: ClassVar[bool] = True

    #: Subclasses by the kind of release they read.
    # filled by `__init_subclass__`, so that accountants need no list of releases
    kinds: ClassVar[dict[type, type["StepsOfRelease"]]] = {}

    def __init_subclass__(cls, kind: type | None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if kind is not None:
            StepsOfRelease.kinds[kind] = cls

    @classmethod
    def known_moves(
        cls, release: Release, adjacency: Adjacency
    ) -> tuple[float, ...] | None:
        """Return :attr:`moves` under a fact; None unless they are less than any."""
        return None

    def statements(self, move: float) -> tuple[Statement, ...]:
        """Return how :attr:`moves` were found, in sentences, for the largest one."""
        return ()

    def any_record(self, shift: Shift) -> float | None:
        """How far a step would move, in the norm of `shift`, for any other records.

        None where the noise is not in proportion to it.
        """
        return float(shift.radius)

    def scaled(self, unit: Noise, scale: float) -> Noise:
        """Return noise of a scale, in the proportions that the release asks for.

        Parameters
        ----------
        unit : Noise
            Noise of the family that was asked for.
        """
        if self.release.units is None:
            return unit.with_scale(scale)
        return unit.with_scale(scale * self.release.unit_array)

    @abstractmethod
    def check(self) -> None:
        """Refuse steps that no bound is known for, before any noise is looked at."""

    @abstractmethod
    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the dominating pairs of all steps under a noise.

        Parameters
        ----------
        noise : Noise
            Noise of one step.
        max_memory : float
            In MiB, for the grid of a :class:`~skpuffer.privacy_loss.PrivacyLossCurve`.
        """


#: Schemes that draw from a number of records.
_BY_NUMBER = (sampling.FixedSizeSampling, sampling.WithReplacementSampling)

# Groups up to this size are accounted for split by split, i joining while k - i leave,
# which takes a tenth of a second each; beyond, a looser bound that holds for any.
_MOST_DIRECTIONS = 16


class Dominated(NamedTuple):
    """The dominating pairs of a run's steps.

    Parameters
    ----------
    steps : tuple of (DominatingPair, int)
        Pairs of one step, or of one epoch where batches are dealt, and the numbers of
        them that are composed. All have the same curve.
    source : Statement
        Where domination is proved.
    tight : bool
        Whether some neighbouring tables attain it.
    """

    steps: tuple[tuple[Any, int], ...]
    source: Statement
    tight: bool

    @property
    def pair(self) -> pairs.DominatingPair:
        """The pair that comes first."""
        first: pairs.DominatingPair = self.steps[0][0]
        return first


#: Schemes of which the noise is in proportion to how far a sum moves.
_PLAIN = (sampling.FullBatchSampling, sampling.ShuffledEpochsSampling)

# Rounding errors of a sum of float64 for each of its terms, as a share of the clip
# norm: no less than those of `Rows.slack` of `skpuffer.training`, block by block.
_ROUNDED = 2.0**-35


#: Schemes that draw records, and the most that move for which batches are mixtures.
_MIXED: dict[type, int] = {
    sampling.PoissonSampling: _MOST_DIRECTIONS,
    sampling.FixedSizeSampling: 1,
    sampling.WithReplacementSampling: 1,
}


class GradientSteps(StepsOfRelease, kind=GradientRelease):
    """The steps of a training run; see :class:`StepsOfRelease`.

    A sampling scheme is accounted for by the function registered for its exact type.
    """

    release: GradientRelease

    #: Functions of these steps and a noise that return what dominates them.
    schemes: ClassVar[dict[type, Callable[[Any, Noise], Dominated]]] = {}

    #: The steps of runs whose noise is correlated. The extension that has the
    #: strategies sets it when it is loaded; without one no such run is accounted.
    correlated: ClassVar[type["GradientSteps"] | None] = None

    #: Schemes whose accounts read how many records differ. One that is registered but
    #: not here has an account of a single record.
    of_groups: ClassVar[tuple[type, ...]] = (
        sampling.FixedSizeSampling,
        sampling.FullBatchSampling,
        sampling.PoissonSampling,
        sampling.ShuffledEpochsSampling,
        sampling.WithReplacementSampling,
    )

    def check(self) -> None:
        """Refuse unknown schemes and other noise; see :class:`StepsOfRelease`."""
        scheme = self.release.sampling
        # fails closed, before any noise is looked at: an unknown scheme has no known
        # cost
        if type(scheme) not in self.schemes:
            raise unsupported_error(
                "sampling.scheme_unknown",
                scheme=scheme,
                scheme_type=type(scheme).__name__,
            )
        self.check_correlation()
        if self.release.noise_position != "gradient":
            raise unsupported_error("gradient.noise_on_updates")
        if self.count == 1:
            return
        if type(scheme) not in self.of_groups:
            raise unsupported_error(
                "sampling.group_without_bound", count=self.count, scheme=str(scheme)
            )
        # their samplers read the number of records, which is then not the same
        if self.relation == "add_remove" and type(scheme) in _BY_NUMBER:
            raise unsupported_error(
                "sampling.draws_from_changing_count",
                count=self.count,
                scheme=str(scheme),
            )

    def check_correlation(self) -> None:
        """Refuse noise that is correlated across steps, unless there is an account."""
        strategy = self.release.noise_correlation
        if strategy is not None:
            raise unsupported_error(
                "correlation.strategy_unknown", each_type=type(strategy).__name__
            )

    @staticmethod
    def winners(curve: PrivacyLossCurve, epsilon: float) -> tuple[Statement, ...]:
        """Say which of several bounds was the least, where there are several."""
        return ()

    @classmethod
    def known_moves(
        cls, release: Release, adjacency: Adjacency
    ) -> tuple[float, ...] | None:
        """Return how far records move a sum, in clip norms; see the base class."""
        assert isinstance(release, GradientRelease)  # by whose type it was found
        bound = release.modulus
        # of records in steps whose noise is correlated nothing more is read than that
        # they are clipped
        if release.noise_correlation is not None:
            return None
        move = adjacency.move
        if adjacency.relabelled and release.record is not None:
            # however far any record's point moves, its target moves no more than this
            move = release.sensitivity.value("relabel", 2, release.dim)
            bound = float
        # An estimate, or what holds on an event only, bounds no move for certain: then
        # what holds for any records is certified. So it is where nothing moves at all:
        # a run without noise is nothing to come to by chance.
        firm = adjacency.certified and adjacency.delta == 0
        known = adjacency.relation == "replace" and 0 < move < math.inf
        if bound is None or not firm or not known:
            return None
        given = adjacency.moves
        if given is None:
            given = np.full(adjacency.count, move)
        clip = release.total_clip_norm
        moves = sorted((bound(b) / clip for b in given.tolist()), reverse=True)
        if not cls._worth(release, moves):
            return None
        # Sums of float64 are rounded, in two tables apart from each other. What that
        # comes to is taken off the clip norm, of which it may be no small part here.
        size = max(release.n_records, release.batch_size or 0)
        moves[0] += size * _ROUNDED
        return tuple(moves)

    @classmethod
    def _worth(cls, release: GradientRelease, moves: list[float]) -> bool:
        """Whether less noise is needed for such moves than for those of any records."""
        # what holds for any records, in each batch or drawn by chance, may be less
        scheme, k = type(release.sampling), len(moves)
        if scheme in _PLAIN:
            return math.fsum(moves) < 2 * k
        # one that is new reads no moves
        if scheme not in _MIXED:
            return False
        if k <= _MIXED[scheme]:
            # about where the worst pair of any records, which is no mixture's, is less
            return moves[0] < (1 if scheme is sampling.PoissonSampling else 2)
        # every batch is charged for all of them, which none may hold twice
        once = scheme is not sampling.WithReplacementSampling
        return once and math.fsum(moves) < 2 * k * release.sampling_rate

    def statements(self, move: float) -> tuple[Statement, ...]:
        """Return how the moves were found, in sentences; see the base class."""
        clipped = self.release.clipped
        together = (Statement("assume.group_moves_add_up", count=self.count),)
        if math.isinf(move):
            moved = self.release.sensitivity.value("relabel", 2, self.release.dim)
            found = Statement("assume.target_alone_moves_gradient", moved=moved)
        else:
            assert clipped is not None  # what moves were read off
            found = clipped.statement(move)
        return (found, *(together if self.count > 1 else ()))

    def any_record(self, shift: Shift) -> float | None:
        """How far any other records would move a sum; see the base class."""
        if self.moves is None:
            return super().any_record(shift)
        # noise of a mixture is not in proportion to one of its shifts
        if type(self.release.sampling) not in _PLAIN:
            return None
        return 2 * self.count * self.release.total_clip_norm

    @property
    def _moved(self) -> float:
        """How far all records that differ move a sum together, in clip norms."""
        if self.moves is not None:
            # one after the other, each by its own bound
            return math.fsum(self.moves)
        # a replaced record takes one clipped gradient out and puts another in
        return (1 if self.relation == "add_remove" else 2) * self.count

    def _dealt(self, noise: Noise) -> tuple[float, ...]:
        """How far batches that are dealt move at worst in an epoch, in clip norms."""
        moves, release = self.moves or (), self.release
        size = -(-release.n_records // release.steps_per_epoch)
        # Gaussian steps add their squares. These are most where those records share a
        # batch that move most, the next ones another: sums of any deal are majorised
        # by these.
        if self.curve_of(noise, 1).gaussian_mu is not None:
            return tuple(
                math.fsum(moves[i : i + size]) for i in range(0, len(moves), size)
            )
        return (self._moved,)

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the dominating pairs of all steps; see :class:`StepsOfRelease`."""
        steps, source, tight = self.dominated(noise)
        dominating, counts = zip(*steps, strict=True)
        cost = cast(ShiftCurve, dominating[0].curve)
        evidence = cost.evidence(renyi=True), cost.evidence()
        # subsampled pairs are mixtures of Gaussians, and no mu describes them
        plain = set(map(type, dominating)) == {pairs.ShiftPair}
        mu = cost.gaussian_mu if plain else None
        curve: GaussianCurve | PrivacyLossCurve
        if mu is None:
            curve = PrivacyLossCurve(steps, float(max_memory))
        else:
            # mu-Gaussian steps compose exactly (Dong, Roth and Su 2022)
            curve = GaussianCurve(float(mu * np.sqrt(sum(counts))))
        stated = (self.release.sampling_statement,)
        return Accounting(curve, cost.shift, source, tight, evidence, stated, steps)

    def dominated(self, noise: Noise) -> Dominated:
        """Return the dominating pairs of these steps under a noise."""
        return self.schemes[type(self.release.sampling)](self, noise)

    def _in_one_scale(self, noise: Noise) -> tuple[Noise, float]:
        """Noise of one scale, and the clip norm that costs as much under it.

        Divided by their scales the coordinates have noise of one scale, under which
        each block has a clip norm of its own, and what these come to together is exact
        for noise of a scale for each block.
        """
        scales, blocks = noise.scale, self.release.blocks
        if blocks is None or not isinstance(scales, tuple):
            return noise, self.release.total_clip_norm
        # in the unit of the largest, so that equal ones are one
        most = max(scales)
        if most == 0:
            return noise.with_scale(0.0), self.release.total_clip_norm
        clip = self.release.clip_norm_in(np.array(scales) / most)
        return noise.with_scale(most), clip

    def _shift(self, noise: Noise, *moves: float, clip: float | None = None) -> Shift:
        """Shift of the stacked sums of batches, each moved by so many clip norms."""
        clip = self.release.total_clip_norm if clip is None else clip
        order, dim = self.release.clip_order, self.release.dim
        if dim is None and self.release.blocks is not None:
            dim = sum(self.release.blocks)
        if len(moves) > 1:
            # The sums of several batches are one stacked vector. Its p-norm is that of
            # the batches' p-norms, each at most the norm of a lower order.
            order = max(order, noise.norm)
            dim = None if dim is None else len(moves) * dim
        # each step's sum moves by so many clipped gradients, each no longer than this
        # norm
        radius = float(np.linalg.norm(moves, ord=order)) * clip
        return Shift(radius, norm=order, dim=dim)

    def curve_of(self, noise: Noise, *moves: float) -> ShiftCurve:
        """Curve of the noise against that shift; see :meth:`dominated` for refusals."""
        noise, clip = self._in_one_scale(noise)
        try:
            return noise.curve(self._shift(noise, *moves, clip=clip))
        except ValueError as error:
            raise unsupported_error(
                "gradient.clip_order_too_large",
                clip_order=self.release.clip_order,
                family=noise.family,
                norm=noise.norm,
                reason=reason_of(error),
            ) from error

    # -- one scheme each ----------------------------------------------------------

    def full_batch(self, noise: Noise) -> Dominated:
        """Return what dominates steps that read all records."""
        pair = pairs.ShiftPair(self.curve_of(noise, self._moved))
        source = Statement("source.adaptive_composition_tradeoff")
        # some tables attain what any records may move, but not what these may
        tight = self.moves is None
        return Dominated(((pair, self.release.n_steps),), source, tight=tight)

    def _shuffled_epochs(self, noise: Noise) -> Dominated:
        # Without a record the batch sizes change by one somewhere else: a record of
        # that batch takes its place, so one batch's sum moves twice a clip norm, and
        # the other's once. A replaced record stays in its batch.
        k = self.count
        moves: tuple[float, ...] = (2 * k,)
        if self.relation == "add_remove":
            moves = (2 * k, k)
        if self.moves is not None:
            moves = self._dealt(noise)
        # two batches, stacked, have twice the coordinates that such a noise has scales
        if self._in_one_scale(noise)[0].dim is not None and len(moves) > 1:
            raise unsupported_error(
                "sampling.shuffled_scales_differ", name=self.release.name, noise=noise
            )
        pair = pairs.ShiftPair(self.curve_of(noise, *moves))
        source = Statement("source.adaptive_composition_by_epoch")
        # bounded one epoch at a time, from above
        return Dominated(((pair, self.release.n_epochs),), source, tight=False)

    def _sampled(
        self, noise: Noise, joins: float, trials: int, chance: float
    ) -> Dominated:
        """Batches in which records that differ are drawn, and move a little."""
        if self.count > _MIXED[type(self.release.sampling)]:
            return self.full_batch(noise)
        # each as far as the one that moves most
        moved = self.curve_of(noise, (self.moves or (math.inf,))[0])
        # a batch without them, or with others in their place
        pair = pairs.MovedPair(moved, self.curve_of(noise, joins), trials, chance)
        source = Statement("source.joint_convexity_batches")
        return Dominated(((pair, self.release.n_steps),), source, tight=False)

    def _poisson(self, noise: Noise) -> Dominated:
        rate, steps, k = self.release.sampling_rate, self.release.n_steps, self.count
        if rate == 1:
            return self.full_batch(noise)
        if self.moves is not None:
            return self._sampled(noise, 1, k, rate)
        replaced = self.relation == "replace"
        once = self.curve_of(noise, 1)
        pair: pairs.DominatingPair
        # Gaussian noise has worst pairs that tables attain; other families are bounded
        # from above, by what holds for any noise
        if once.gaussian_mu is not None and (replaced or 1 < k <= _MOST_DIRECTIONS):
            source = Statement("source.worst_pairs_poisson_groups")
            pair = (
                GaussianPoissonPair(once, rate, k, k)
                if replaced
                else GaussianPoissonGroup(once, rate, k)
            )
        elif k > 1:
            each = self.curve_of(noise, 2) if replaced else once
            source = Statement("source.subsampled_groups")
            pair = pairs.MixturePair(each, k, rate)
        elif replaced:
            source = Statement("source.joint_convexity")
            pair = pairs.ReplacePoissonPair(once, rate)
        else:
            source = Statement("source.dominating_pairs_poisson")
            pair = pairs.PoissonPair(once, rate)
        return Dominated(((pair, steps),), source, tight=pair.tight)

    def _fixed_size(self, noise: Noise) -> Dominated:
        n, steps = self.release.n_records, self.release.n_steps
        rate, size = self.release.sampling_rate, self.release.batch_size
        assert size is not None  # the release has checked that
        # no more than all records can be others
        k = min(self.count, n)
        # in a batch of fixed size another record takes the place of one that leaves
        twice = self.curve_of(noise, 2)
        source = Statement("source.batches_without_replacement")
        if self.moves is not None:
            # with all records in each batch, those are the ones that move
            return (
                self.full_batch(noise)
                if rate == 1
                else self._sampled(noise, 2, 1, rate)
            )
        pair: pairs.DominatingPair
        if rate == 1:
            # a batch of all records cannot have another in the place of one that is
            # gone
            pair = pairs.ShiftPair(self.curve_of(noise, 2 * k))
        elif k > 1:
            source = Statement("source.subsets_group_exchanged")
            pair = pairs.SubsetGroupPair(twice, n, size, k)
        else:
            # Under either relation the sum moves by two clipped gradients where the
            # record is drawn. Of the other table, the output is a mixture only under
            # replacement.
            kind = (
                pairs.PoissonPair if self.relation == "add_remove" else pairs.SubsetPair
            )
            pair = kind(twice, rate)
        return Dominated(
            ((pair, steps),), source, tight=False if rate == 1 else pair.tight
        )

    def _with_replacement(self, noise: Noise) -> Dominated:
        n, size = self.release.n_records, self.release.batch_size
        assert size is not None  # the release has checked that
        source = Statement("source.batches_with_replacement")
        k = min(self.count, n)
        pair: pairs.DominatingPair
        if self.moves is not None and n > 1:
            return self._sampled(noise, 2, size, 1 / n)
        if n == k:
            pair = pairs.ShiftPair(self.curve_of(noise, 2 * size))
        else:
            # records of the group are drawn Binomial(size, k / n) times, and each draw
            # moves the sum as often
            pair = pairs.MixturePair(self.curve_of(noise, 2), size, k / n)
        return Dominated(((pair, self.release.n_steps),), source, tight=False)


GradientSteps.schemes |= {
    sampling.FullBatchSampling: GradientSteps.full_batch,
    sampling.ShuffledEpochsSampling: GradientSteps._shuffled_epochs,
    sampling.PoissonSampling: GradientSteps._poisson,
    sampling.FixedSizeSampling: GradientSteps._fixed_size,
    sampling.WithReplacementSampling: GradientSteps._with_replacement,
}


def steps_of(
    release: Release,
    adjacency: Adjacency,
    kinds: Mapping[type, type[StepsOfRelease]] = StepsOfRelease.kinds,
    *,
    correlated: bool = False,
) -> StepsOfRelease:
    """Return the dominating pairs of a release's steps between neighbouring tables.

    Parameters
    ----------
    kinds : mapping of {type: type}, optional
        Which steps those of a kind of release are. By default each one counts as
        released.
    correlated : bool, default=False
        Whether whoever asks takes steps whose noise is correlated as one mechanism.
    """
    # by exact type: what a subclass of a release adds may cost more
    kind = kinds.get(type(release))
    if kind is None:
        raise unsupported_error(
            "compose.release_steps_unknown", release_type=type(release).__name__
        )
    # fails closed: who adds up steps, or reads them one by one, would promise too much
    correlation = getattr(release, "noise_correlation", None)
    if not correlated and correlation is not None:
        raise unsupported_error("correlation.independent_noise_accounted")
    if kind is GradientSteps and correlation is not None:
        kind = GradientSteps.correlated or kind
    count = int(adjacency.count)
    # what differs between votes is teachers, who may hold many of the records
    if type(release) is VoteRelease:
        count = adjacency.teachers(release)
    # more records than that differ in an event of this mass, which is about the tables:
    # it is paid for once, whatever the number of steps
    event = 0.0 if adjacency.count_is_certain else float(adjacency.delta)
    law = None if adjacency.survival is None else tuple(adjacency.survival.tolist())
    # what reads records one by one may be told how far each of them moves
    moves = None
    if release.contribution is not None or adjacency.relabelled:
        moves = kind.known_moves(release, adjacency)
    # of so many records as there are moves, no fewer and no more
    if moves is not None:
        law = None
    steps = kind(release, adjacency.relation, count, event, law, moves)
    steps.check()
    return steps
