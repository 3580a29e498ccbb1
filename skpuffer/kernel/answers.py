"""Dominating pairs of votes, and of choices by noisy scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.curves import DescribedPair, GaussianCurve
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.laplace import ExponentialNoise, GumbelNoise
from skpuffer.kernel.noise import Noise, Shift
from skpuffer.kernel.pairs import BoundedRangePair, PurePair, ShiftPair
from skpuffer.kernel.releases import SelectionRelease
from skpuffer.kernel.steps import Accounting, StepsOfRelease
from skpuffer.kernel.votes import VoteRelease

_SOURCE = Statement("source.noisy_vote_counts")


class VoteSteps(StepsOfRelease, kind=VoteRelease):
    """The answers of a vote; see :class:`StepsOfRelease`.

    The bound holds however the records that differ depend on each other and on the
    secret, as no sampling is involved. The noise is that of each count; with a
    threshold, `threshold_noise_ratio` times as much is added to the largest count, for
    the test.

    Notes
    -----
    If k records differ, so do the votes of at most k teachers, or of fewer where groups
    are dealt whole and the records that differ lie in few of them: the others learn
    from the same rows in both tables. `count` is the number of these teachers. In each
    query at most k votes leave some classes and as many come to others. For independent
    log-concave noise the joint trade-off of moves a and b of two coordinates is no
    worse than that of a move a + b of one, so all that come are dominated by one
    coordinate that moves by k, all that leave by another, and the query by two releases
    of one number each. One number suffices where votes only join or only leave. The
    largest count moves by at most k. How many queries pass the test, and when, depends
    on the answers, so the tests and the counts are two interactive mechanisms of fixed
    length that the analyst interleaves as he likes: that is what concurrent composition
    is about.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, for trade-offs of groups;
    Vadhan and Zhang (2023), Concurrent composition theorems for differential privacy.
    """

    release: VoteRelease

    def check(self) -> None:
        """Accept every vote; its noise is checked by :meth:`under`."""

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the dominating pairs of all answers; see :class:`StepsOfRelease`."""
        release = self.release
        touched = min(self.count, release.n_teachers)
        self._check_noise(noise, touched)
        one = Shift(float(touched), norm=math.inf, dim=None, structure="scalar")
        both = release.relation == "replace_vote" or self.relation == "replace"
        assert release.max_answers is not None  # the release has set it
        # two coordinates an answer where votes change, one where they join or leave
        cost = noise.curve(one)
        steps = [(ShiftPair(cost), release.max_answers * (2 if both else 1))]
        if release.threshold is not None:
            # charged on every query, as which of them pass is itself read off the votes
            test = release.test_noise(noise).curve(one)
            steps.append((ShiftPair(test), release.n_queries))
        events = tuple(steps)
        # the test is of the same family, so nothing further is unproved
        return Accounting(
            curve=_composed(events, max_memory),
            shift=one,
            source=_SOURCE,
            tight=False,
            evidence=(cost.evidence(renyi=True), cost.evidence()),
            assumptions=(_votes_statement(release, touched),),
            events=events,
        )

    def _check_noise(self, noise: Noise, touched: int) -> None:
        # any class may gain or lose votes, and one coordinate stands for all
        if noise.dim is not None:
            raise unsupported_error(
                "pate.votes_noise_scales_differ", name=self.release.name, noise=noise
            )
        if touched > 1 and not noise.log_concave:
            raise unsupported_error(
                "pate.votes_noise_not_log_concave",
                name=self.release.name,
                n_touched=touched,
                family=noise.family,
            )


def _composed(
    steps: tuple[tuple[ShiftPair, int], ...], max_memory: float
) -> GaussianCurve | PrivacyLossCurve:
    mus = [pair.curve.gaussian_mu for pair, _ in steps]
    # mu-Gaussian mechanisms compose by the sum of squares (Dong et al. 2022)
    squares = [
        n * mu**2 for mu, (_, n) in zip(mus, steps, strict=True) if mu is not None
    ]
    # counts and test have noise of one family: both are Gaussian or neither is
    if len(squares) < len(steps):
        return PrivacyLossCurve(steps, float(max_memory))
    return GaussianCurve(float(np.sqrt(sum(squares))))


def _votes_statement(release: VoteRelease, touched: int) -> Statement:
    groups: Statement | str = ""
    if release.groups is not None:
        groups = Statement(
            "pate.groups_dealt_whole",
            n_groups=max(release.groups) + 1,
            n_touched=touched,
            n_teachers=release.n_teachers,
        )
    threshold: Statement | str = ""
    if release.threshold is not None:
        threshold = Statement(
            "pate.leading_count_test_charged",
            n_queries=release.n_queries,
            max_answers=release.max_answers,
        )
    return Statement(_STATEMENTS[release.relation], groups=groups, threshold=threshold)


#: What a certificate says of the relation between votes.
_STATEMENTS = {
    "replace_vote": "assume.record_has_one_teacher",
    "add_remove_vote": "assume.record_has_one_voter",
}

#: Mechanism, and what dominates a round of range r at scale one.
_MECHANISMS: dict[type[Noise], tuple[Statement, Callable[[float], DescribedPair]]] = {
    GumbelNoise: (Statement("source.exponential_mechanism_range"), BoundedRangePair),
    ExponentialNoise: (Statement("source.permute_and_flip"), PurePair),
}


def selection_curve(
    noise: Noise,
    release: SelectionRelease,
    relation: str,
    count: int,
    max_memory: float = 500.0,
) -> tuple[PrivacyLossCurve, Shift, Statement, Statement]:
    """Return what the choices of a release cost under a noise on their scores.

    With c the reciprocal of the scale, the privacy loss of a candidate under Gumbel
    noise is c times the move of its score, plus a constant that all candidates share:
    so losses lie in an interval of c times the range of these moves. If k records
    differ, moves add up one record after the other, and so do their ranges. Choices of
    one round depend on earlier rounds alone, so that given these their losses, and the
    intervals in which they lie, add up. Under exponential noise the largest losses do,
    either way.

    Returns
    -------
    curve : PrivacyLossCurve
    shift : Shift
        The largest range of a round.
    source : Statement
        Where the cost of a round is proved.
    statement : Statement
    """
    # by exact type, as a subclass may draw otherwise
    if type(noise) not in _MECHANISMS or noise.dim is not None:
        raise unsupported_error(
            "selection.noise_not_gumbel_exponential", name=release.name, noise=noise
        )
    if type(noise) is ExponentialNoise and not release.is_finite:
        raise unsupported_error(
            "selection.exponential_candidates_not_finite", name=release.name
        )
    source, pair = _MECHANISMS[type(noise)]
    ranges = [count * one for one in release.ranges(relation)]
    scale = float(np.max(noise.scale))  # of one scale
    curve = PrivacyLossCurve(
        tuple((pair(r / scale), 1) for r in ranges), float(max_memory)
    )
    largest = Shift(max(ranges), norm=math.inf, dim=None, structure="scalar")
    statement = Statement(
        "selection.choices_in_rounds_stated",
        dim=release.dim,
        n_rounds=len(ranges),
        largest=max(ranges),
    )
    return curve, largest, source, statement


@dataclass(frozen=True)
class SelectionSteps(StepsOfRelease, kind=SelectionRelease):
    """The choices of a selection; see :class:`StepsOfRelease`.

    Parameters
    ----------
    family : {GumbelNoise, ExponentialNoise}
        Family of the noise whose scale is searched for.
    """

    release: SelectionRelease
    family: type[Noise] = GumbelNoise

    def check(self) -> None:
        """Accept every selection; its noise is checked by :meth:`under`."""

    def scaled(self, unit: Noise, scale: float) -> Noise:
        """Return noise of the family; see :meth:`StepsOfRelease.scaled`."""
        return self.family(scale)

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the pairs of all rounds; see :class:`StepsOfRelease`."""
        curve, shift, source, statement = selection_curve(
            noise, self.release, self.relation, self.count, max_memory
        )
        source = Statement("source.composition_dominating_pairs", source=source)
        return Accounting(
            curve, shift, source, False, ((), ()), (statement,), curve.steps
        )
