"""The accountant of caps that hold at every history, with its three subsamplings."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.accountants import (
    GRADIENT_FIELDS,
    Account,
    Accountant,
    Found,
    RenyiDP,
    accounts_for,
)
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.distribution import ORDERS
from skpuffer.kernel.noise import largest_argument, raise_until
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    check_each,
    check_non_negative,
    check_option,
    check_order,
    check_positive,
)
from skpuffer.noise import GaussianNoise, Noise
from skpuffer.privacy_loss import GaussianCurve, RenyiCurve
from skpuffer.releases import (
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    ShuffledEpochsSampling,
)
from skpuffer.scenarios import Adjacency, BoundScenario

from ..transport._profile import SliceProfile
from ._run import DISCREPANCIES, CappedRun, Slices, StepMoves, one_clipped, step_moves

_PAPER = Statement("source.sliced_renyi_pufferfish")

#: Where each kind of account is proved.
_SOURCES = {
    "worst_case": Statement("source.history_uniform_caps", paper=_PAPER),
    "log_moment": Statement("source.log_moments_seen_batches", paper=_PAPER),
    "mean_square": Statement("source.mean_squares_over_batches", paper=_PAPER),
}

#: Schemes whose law does not change with the number of records, and which need not
#: know it.
_ANY_NUMBER = (FullBatchSampling, PoissonSampling)

#: Schemes for which the account of hidden batches takes milliseconds.
_QUICKLY_HIDDEN = (FullBatchSampling, PoissonSampling, ShuffledEpochsSampling)


#: What the bound says of batches, by relation: of a record that comes or goes, to be in
#: a batch is to be there.
_SEEN = {
    "replace": Statement("assume.batches_may_be_revealed"),
    "add_remove": Statement("assume.other_records_may_be_revealed"),
}

#: Records for which it does.
_QUICK_COUNT = 1000


class _Asked(NamedTuple):
    """A run as it is accounted for, between tables adjacent by a fact."""

    run: CappedRun
    moves: StepMoves
    profile: Slices | None
    fact: Adjacency
    bound: BoundScenario


class HistoryUniformCap(Accountant):
    """Account for training runs by caps on how far each step moves, at every history.

    The accountant of sliced Rényi Pufferfish stochastic gradient descent, read so that
    it holds. Gradients are clipped, so a batch in which K records differ moves its sum
    by at most 2 K clip norms. Batches may be revealed. :class:`RenyiDP` keeps batches
    hidden and needs no more noise for the same promise: use this for comparison.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=2.0
        Rényi order, in (1, inf).
    subsampling : {'worst_case', 'log_moment', 'mean_square'}, default='worst_case'
        - 'worst_case': the largest K of a batch. Rényi Pufferfish privacy, composable;
          the same as group privacy without amplification.
        - 'log_moment': K has its law under the sampling scheme, inside the moment of
          order alpha - 1. Rényi Pufferfish privacy, composable, for independent
          batches.
        - 'mean_square': the mean of the squared move, averaged over batches after the
          divergence. A notion of its own, from which nothing else follows.
    averaging : {'joint', 'averaged'}, default='joint'
        Sliced notion of 'mean_square': of the worst slice, or of their weighted mean.
    slices : array-like of shape (n_slices, dim) or SliceProfile, default=None
        Unit vectors spanning all directions, for 'mean_square'. None is any slices.
        Slices matter in a run of one step with noise on its gradients, if layers are
        clipped apart; otherwise all directions count as the worst one.
    slice_weights : array-like of shape (n_slices,), default=None
        Equal if None.
    lipschitz : float or array-like of shape (n_steps,), default=None
        Lipschitz constants of the updates in the mean gradient, for noise on the
        updates. None takes the steps of the release's optimiser.

    Notes
    -----
    For Gaussian noise, whose scale is on each step's sum. Noise on the updates is in
    the unit of the parameters, and step sizes count.

    'mean_square' needs that the pair of secrets alone decides which records differ, as
    under a :class:`~skpuffer.scenarios.RecordScenario`. Where the law of their number
    is known instead, 'log_moment' takes the mean over whole runs, which adds up with
    nothing.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish privacy, section 5. Its
    Theorem 5.6 is false for caps that differ from slice to slice, and its Theorem 5.7
    if the records that differ are random; neither is used so here.

    Examples
    --------
    >>> from skpuffer.accountants import HistoryUniformCap
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = GradientRelease(
    ...     n_records=4000, batch_size=200, n_steps=200, sampling="fixed_size"
    ... )
    >>> scenario = RecordScenario(k=10, relation="replace")
    >>> accountant = HistoryUniformCap(8.0, 8.0, "log_moment")
    >>> noise = accountant.calibrate(release, scenario).noise
    >>> round(noise.scale / release.divisor, 3)
    0.112
    """

    needs = (Adjacency,)
    reads: ClassVar = {GradientRelease: GRADIENT_FIELDS}

    #: The hidden-batch accountants keep the same promise with less noise.
    recommended = False

    noise = "gaussian"

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float = 2.0,
        subsampling: str = "worst_case",
        *,
        averaging: str = "joint",
        slices: ArrayLike | SliceProfile | None = None,
        slice_weights: ArrayLike | None = None,
        lipschitz: ArrayLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.subsampling = subsampling
        self.averaging = averaging
        self.slices = slices
        self.slice_weights = slice_weights
        self.lipschitz = lipschitz

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        if check_order(alpha=self.alpha) == math.inf:
            raise value_error("history.alpha_infinite")
        check_option(tuple(_SOURCES), subsampling=self.subsampling)
        check_option(("joint", "averaged"), averaging=self.averaging)
        if self.slices is None and self.slice_weights is not None:
            raise value_error("history.slice_weights_without_slices")
        if self.slices is not None and self.subsampling != "mean_square":
            raise value_error(
                "history.slices_without_mean_square", subsampling=self.subsampling
            )
        self._profile()
        if self.lipschitz is not None:
            check_each(
                partial(check_non_negative, finite=True), lipschitz=self.lipschitz
            )

    def _profile(self) -> Slices | None:
        if self.slices is None:
            return None
        return Slices.checked(self.slices, self.slice_weights, self.averaging)

    # -- the protocol -------------------------------------------------------------

    @accounts_for(GradientRelease)
    def _account_of_run(
        self, fact: Adjacency, release: GradientRelease, bound: BoundScenario
    ) -> Account:
        # refused here, when support is asked for, and not only when noise is set
        with self._refusing(release, bound):
            run, moves = self._run(fact, release)
            profile = self._slices_of(release)
            one_clipped(release, GaussianNoise(), profile)
        asked = _Asked(run, moves, profile, fact, bound)
        calibrate, certify = self._calibrate, self._certify
        return Account(
            partial(calibrate, asked), partial(certify, asked), _only_gaussian
        )

    def _run(
        self, fact: Adjacency, release: GradientRelease
    ) -> tuple[CappedRun, StepMoves]:
        """Check what is asked about, and return it as it is accounted for."""
        scheme = release.sampling
        dealt = type(scheme) is ShuffledEpochsSampling
        # fails closed: an unknown scheme has no known cost
        if not dealt and type(scheme) not in DISCREPANCIES:
            raise unsupported_error(
                "history.sampling_scheme_unknown",
                scheme=scheme,
                scheme_type=type(scheme).__name__,
            )
        if release.noise_correlation is not None:
            raise unsupported_error("history.noise_correlated")
        if dealt and self.subsampling == "log_moment":
            raise unsupported_error("history.shuffled_batches_dependent")
        if fact.relation == "add_remove" and type(scheme) not in _ANY_NUMBER:
            raise unsupported_error(
                "history.sampling_reads_changing_count", scheme=str(scheme)
            )
        moves = step_moves(release, fact.relation, self.lipschitz)
        law = self._law(fact, release)
        run = CappedRun(release, self.subsampling, fact.count, moves.factors, law)
        return run, moves

    def _law(
        self, fact: Adjacency, release: GradientRelease
    ) -> tuple[float, ...] | None:
        """Law of how many records differ, if that is what has to be read."""
        if self.subsampling == "mean_square":
            settled = (
                fact.settled or fact.any_records or fact.count >= release.n_records
            )
            if not (settled and fact.count_is_certain):
                raise unsupported_error("history.differing_records_left_to_chance")
        if fact.count_is_certain:
            return None
        if fact.survival is None or self.subsampling != "log_moment":
            raise unsupported_error(
                "history.count_uncertain_at_order", delta=fact.delta, count=fact.count
            )
        return tuple(fact.survival.tolist())

    def _slices_of(self, release: GradientRelease) -> Slices | None:
        """Slices along which a release costs less than along the worst direction."""
        profile = self._profile()
        if profile is None:
            return None
        blocks = release.blocks
        dim = release.dim if blocks is None else sum(blocks)
        if dim is not None and dim != profile.dim:
            raise unsupported_error(
                "history.slices_dimension_mismatch", profile_dim=profile.dim, dim=dim
            )
        # Steps read the history along all directions, so what one tells along a slice
        # the next may tell along any other: caps that differ add up for one step only.
        # An update does so in one: a projection, or a rotation, is 1-Lipschitz, and
        # moves what layers that are clipped apart tell from one slice to another.
        alone = release.n_steps == 1 and release.noise_position == "gradient"
        return profile if blocks is not None and alone else None

    # -- noise and certificate ----------------------------------------------------

    def _calibrate(self, asked: _Asked, noise: Noise, rng: Any) -> Found:
        """Set the scale of each step's noise to the least that keeps the promise."""
        run, profile = asked.run, asked.profile
        unit = noise.with_scale(1.0 * run.release.unit_array)
        length = one_clipped(run.release, unit, profile)
        order = np.array([float(self.alpha)])
        epsilon = float(self.epsilon)

        def cost(scale: float) -> float:
            return float(run.costs(order, length / scale)[0])

        scale = 0.0
        if run.moves and length:
            # the length that the worst case or the mean square takes, in closed form
            squares = run.squares or float(np.sum(run.factors**2))
            most = math.sqrt(2 * epsilon / (self.alpha * squares))
            if self.subsampling == "log_moment":
                # at least that, and found from there
                most = largest_argument(
                    lambda u: float(run.costs(order, u)[0]), epsilon, most
                )
            scale = raise_until(lambda s: cost(s) <= epsilon, length / most)
        noise = noise.with_scale(scale * run.release.unit_array)
        return Found(noise, self._certify(asked, noise))

    def _with_hidden_batches(
        self, run: CappedRun, bound: BoundScenario, own: float
    ) -> Statement:
        """What the accountant needs that keeps batches hidden, in a sentence."""
        release = run.release
        drawn: Statement | str = ""
        if type(release.sampling) not in _QUICKLY_HIDDEN:
            # of other schemes it takes seconds, and mostly more noise
            size = min(release.batch_size or 0, release.n_records)
            release = replace(release, sampling="poisson", batch_size=size)
            drawn = Statement("history.in_poisson_batches", size=size)
        what = Statement("history.renyi_with_hidden_batches", drawn=drawn)
        least = self._hidden_scale(run, release, bound)
        if least is None:
            return Statement("history.may_need_less_noise", subject=what)
        return Statement(
            "history.would_need_noise_scale", subject=what, least=least, own=own
        )

    def _hidden_scale(
        self, run: CappedRun, release: GradientRelease, bound: BoundScenario
    ) -> float | None:
        """Scale of noise that keeps the promise if batches are hidden, if quick."""
        if not run.moves:
            return 0.0
        if run.count > _QUICK_COUNT or run.law is not None:
            return None
        hidden = RenyiDP(float(self.epsilon), None, alpha=float(self.alpha))
        try:
            return float(np.max(hidden.calibrate(release, bound).noise.scale))
        except UnsupportedError:
            return None

    def _certify(self, asked: _Asked, noise: Noise) -> Claim:
        """Find what a given noise promises."""
        _only_gaussian(noise)
        run, moves, profile, fact, bound = asked
        release, alpha = run.release, float(self.alpha)
        length = one_clipped(release, noise, profile) if run.moves else 0.0
        mean, by_law = self.subsampling == "mean_square", run.law is not None
        orders = np.array(sorted({*map(float, ORDERS), alpha}))
        costs = run.costs(orders, length)
        epsilon = float(costs[orders == alpha][0])
        curve: GaussianCurve | RenyiCurve | None = None
        if self.subsampling == "worst_case":
            # steps of Gaussian noise compose exactly
            curve = GaussianCurve(length * math.sqrt(run.squares))
        elif not mean:
            curve = RenyiCurve(tuple(orders.tolist()), tuple(costs.tolist()))
        coupling: str | None = fact.any_coupling()
        if mean:
            given = self._profile()
            name = "any" if given is None else given.name
            coupling = f"{coupling} slices:{name}"
        # a mean over how many records differ is one of whole runs, and caps that differ
        # by slice are of one step
        alone = by_law or profile is not None
        values = fact.relation == "replace" and fact.certified
        return Claim(
            notion=self._notion(fact) if fact.certified else Notion.ESTIMATED,
            epsilon=epsilon,
            alpha=alpha,
            relation=fact.relation,
            curve=curve,
            rpp_epsilon=epsilon if values and not mean else math.inf,
            coupling_id=None if alone else coupling,
            coupling_count=None if by_law else fact.count,
            composable=fact.certified and not alone,
            assumptions=(
                *fact.assumptions,
                release.sampling_statement,
                *moves.assumptions,
                *self._remarks(run, profile, fact.relation),
                *release.assumptions,
                self._with_hidden_batches(run, bound, float(np.max(noise.scale))),
            ),
            sensitivity=None if by_law else run.largest * release.total_clip_norm,
            norm=None if by_law else release.clip_order,
            source=_SOURCES[self.subsampling],
        )

    def _notion(self, fact: Adjacency) -> Notion:
        if self.subsampling == "mean_square":
            if self.averaging == "averaged":
                return Notion.SA_AVERAGED_SLICED_RENYI_PUFFERFISH
            return Notion.SA_JOINT_SLICED_RENYI_PUFFERFISH
        # records that come and go are about tables, and no values of them
        dp = fact.relation == "add_remove"
        return Notion.RENYI_DP if dp else Notion.RENYI_PUFFERFISH

    def _remarks(
        self, run: CappedRun, profile: Slices | None, relation: str
    ) -> tuple[Statement, ...]:
        """What else a certificate should say, in sentences."""
        seen = _SEEN[relation]
        count = run.count
        any_records = (
            Statement("history.any_group_may_differ", count=count)
            if count > 1
            else Statement("history.any_record_may_differ")
        )
        as_good = Statement(
            "history.plain_dp_promises_no_less", any_records=any_records
        )
        if self.subsampling == "worst_case":
            return (
                Statement(
                    "history.group_privacy_same_bound", as_good=as_good, seen=seen
                ),
            )
        if self.subsampling == "log_moment":
            law = Statement("assume.mean_over_differing_law")
            batches = Statement("assume.batches_independent_of_data", seen=seen)
            return (law if run.law is not None else as_good, batches)
        about = Statement("assume.divergence_given_batches")
        fixed = Statement("assume.secrets_fix_differing_records")
        slices = (
            Statement("assume.slice_has_own_cap")
            if profile is not None
            else Statement("assume.slices_share_worst_cap")
        )
        return (about, fixed, slices)


def _only_gaussian(noise: Noise) -> None:
    """Refuse noise that is not Gaussian."""
    if type(noise) is not GaussianNoise:
        raise unsupported_error("history.noise_not_gaussian", family=noise.family)
