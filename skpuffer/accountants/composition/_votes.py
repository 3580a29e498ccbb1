"""Dominating pairs of the answers of a vote."""

import math

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import Noise, Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve, ShiftPair
from skpuffer.releases import VoteRelease

from ._accounting import Accounting, StepsOfRelease

__all__ = ["VOTE_FIELDS", "VoteSteps"]

#: What is read of a vote.
VOTE_FIELDS: frozenset[str] = frozenset(
    {
        "assumptions",
        "context",
        "groups",
        "max_answers",
        "n_queries",
        "n_records",
        "n_teachers",
        "name",
        "relation",
        "threshold",
        "threshold_noise_ratio",
        # Immaterial: only counts of classes that a vote leaves or joins move, and each
        # counts as released whatever the others said.
        "n_classes",
        "query",
    }
)

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
        """Compose the dominating pairs of all answers; see :class:`StepsOfRelease`.

        Raises
        ------
        UnsupportedError
            If the noise is not one scale for all classes, or is not log-concave and
            several records differ.
        """
        release = self.release
        # any class may gain or lose votes, and one coordinate stands for all below
        if noise.dim is not None:
            raise UnsupportedError(
                Statement(
                    "pate.votes_noise_scales_differ", name=release.name, noise=noise
                )
            )
        k = min(self.count, release.n_teachers)
        if k > 1 and not noise.log_concave:
            raise UnsupportedError(
                Statement(
                    "pate.votes_noise_not_log_concave",
                    name=release.name,
                    n_touched=k,
                    family=noise.family,
                )
            )
        one = Shift(float(k), norm=math.inf, dim=None, structure="scalar")
        both = release.relation == "replace_vote" or self.relation == "replace"
        assert release.max_answers is not None  # the release has set it
        answers = release.max_answers * (2 if both else 1)
        # two coordinates an answer where votes change, one where they join or leave
        cost = noise.curve(one)
        steps = [(ShiftPair(cost), answers)]
        if release.threshold is not None:
            # charged on every query, as which of them pass is itself read off the votes
            test = release.test_noise(noise).curve(one)
            steps.append((ShiftPair(test), release.n_queries))
        mus = [pair.curve.gaussian_mu for pair, _ in steps]
        # mu-Gaussian mechanisms compose by the sum of squares (Dong et al. 2022)
        squares = [
            n * mu**2 for mu, (_, n) in zip(mus, steps, strict=True) if mu is not None
        ]
        curve: GaussianCurve | PrivacyLossCurve
        # counts and test have noise of one family: both are Gaussian or neither is
        if len(squares) < len(steps):
            curve = PrivacyLossCurve(tuple(steps), float(max_memory))
        else:
            curve = GaussianCurve(float(np.sqrt(sum(squares))))
        groups: Statement | str = ""
        if release.groups is not None:
            groups = Statement(
                "pate.groups_dealt_whole",
                n_groups=max(release.groups) + 1,
                n_touched=k,
                n_teachers=release.n_teachers,
            )
        threshold: Statement | str = ""
        if release.threshold is not None:
            threshold = Statement(
                "pate.leading_count_test_charged",
                n_queries=release.n_queries,
                max_answers=release.max_answers,
            )
        statement = Statement(
            _STATEMENTS[release.relation], groups=groups, threshold=threshold
        )
        # the test is of the same family, so nothing further is unproved
        evidence = cost.evidence(renyi=True), cost.evidence()
        events = tuple(steps)
        return Accounting(curve, one, _SOURCE, False, evidence, (statement,), events)


#: What a certificate says of the relation between votes.
_STATEMENTS = {
    "replace_vote": "assume.record_has_one_teacher",
    "add_remove_vote": "assume.record_has_one_voter",
}
