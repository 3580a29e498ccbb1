"""Vote release: noisy counts of the votes of disjoint voters."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.noise import Noise
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_option,
    check_positive,
    check_real,
)
from skpuffer.kernel.queries import QueryRelease, Sensitivity, stacked_sensitivity
from skpuffer.kernel.releases import PublicContext, Release
from skpuffer.kernel.run import add_noise

#: What a certificate says of votes as one vector.
_FIXED = Statement("assume.queries_fixed_before_votes")

#: How the votes of neighbouring tables differ, by name.
VOTE_RELATIONS = ("replace_vote", "add_remove_vote")


def noisy_counts(
    counts: ArrayLike, noise: Noise, rng: np.random.Generator, n_records: int = 1
) -> Floats:
    """Return counts with noise, drawn exactly where its family can be.

    Parameters
    ----------
    n_records : int, default=1
        Behind the counts.

    Returns
    -------
    ndarray of float of the shape of `counts`
    """
    exact = np.asarray(counts, dtype=float)
    return add_noise(exact, noise, rng, n_records=n_records, integer=True)


@dataclass(frozen=True, kw_only=True)
class VoteRelease(Release):
    """Vote release: noisy vote counts of disjoint voters, one histogram a query.

    Each record lies with one teacher, so whatever happens to it changes the votes of
    that teacher alone: in each query one vote moves from one class to another, and two
    counts change by one. The release is the counts with noise, or a function of them;
    each query may depend on all earlier answers. With a `threshold` a query is first
    tested: only if its largest count, with noise of its own, reaches the threshold is
    it answered. The test is charged on every query, the counts for as many as may be
    answered.

    Parameters
    ----------
    n_records : int
        Number of private records behind the votes.
    n_teachers : int
        Number of voters, at most `n_records`. The assignment of records to teachers
        must not depend on what is in them.
    n_classes, n_queries : int
        Number of classes, at least 2, and of queries that may be asked.
    groups : array-like of shape (n_records,), default=None
        Which records are dealt together, as households are: each group lies whole with
        one teacher. Public. None deals records singly.
    relation : {'replace_vote', 'add_remove_vote'}, default='replace_vote'
        Whether the vote of a teacher whose data changes moves, or joins or leaves. The
        latter is only for votes in which a voter may be missing.
    threshold : float, default=None
        In votes. None answers every query, untested.
    max_answers : int, default=None
        Largest number of queries that are answered. None is `n_queries`, the only
        choice without a threshold.
    threshold_noise_ratio : float, default=5.0
        Scale of the test's noise in units of the scale of the counts' noise.
    query : callable of (X, y), default=None
        The counts of all queries, of shape (n_queries, n_classes), where these are
        fixed in advance: then the votes are one vector as well. Not with a threshold.
    name : str, default='votes'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        Facts taken as public or true; written in the certificate.

    References
    ----------
    Papernot et al. (2017), Semi-supervised knowledge transfer for deep learning from
    private training data; Papernot et al. (2018), Scalable private learning with PATE,
    Algorithm 1, for the threshold, with ratios of 3.75 to 5.

    Examples
    --------
    >>> from skpuffer.releases import VoteRelease
    >>> release = VoteRelease(n_records=900, n_teachers=3, n_classes=2, n_queries=4)
    >>> release.check_votes([[2, 1], [0, 3]]).tolist()
    [[2, 1], [0, 3]]
    """

    #: What a certificate says of its last digits, where it is drawn on a grid.
    last_digits: ClassVar[str] = "assume.noise_exact_on_grid"

    n_records: int
    n_teachers: int
    n_classes: int
    n_queries: int
    groups: tuple[int, ...] | None = field(default=None, repr=False)
    relation: str = "replace_vote"
    threshold: float | None = None
    max_answers: int | None = None
    threshold_noise_ratio: float = 5.0
    query: Callable[..., ArrayLike] | None = field(
        default=None, compare=False, repr=False
    )
    name: str = "votes"
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[Statement, ...] = field(default=(), compare=False)

    # one record, one teacher, one vote: whatever the record becomes
    is_bounded = True

    def __post_init__(self) -> None:
        for key, least in (
            ("n_records", 1),
            ("n_teachers", 1),
            ("n_classes", 2),
            ("n_queries", 1),
        ):
            count = check_count(least=least, **{key: getattr(self, key)})
            object.__setattr__(self, key, count)
        if self.n_teachers > self.n_records:
            raise value_error(
                "pate.teachers_exceed_records",
                n_teachers=self.n_teachers,
                n_records=self.n_records,
            )
        check_option(VOTE_RELATIONS, relation=self.relation)
        # a removed record leaves its teacher with less data, and the vote moves: it is
        # not gone
        if self.relation == "add_remove_vote" and self.n_records != self.n_teachers:
            raise value_error(
                "pate.vote_relation_several_records",
                n_records=self.n_records,
                n_teachers=self.n_teachers,
            )
        check_positive(threshold_noise_ratio=self.threshold_noise_ratio)
        self._check_threshold()
        self._check_groups()
        self._meet_context()

    def _check_groups(self) -> None:
        if self.groups is None:
            return
        given = np.asarray(self.groups)
        if given.shape != (self.n_records,):
            raise value_error(
                "pate.groups_shape_wrong", n_records=self.n_records, shape=given.shape
            )
        _, codes, sizes = np.unique(given, return_inverse=True, return_counts=True)
        object.__setattr__(self, "groups", tuple(codes.tolist()))
        if len(sizes) < self.n_teachers:
            raise value_error(
                "pate.groups_fewer_than_teachers",
                n_sizes=len(sizes),
                n_teachers=self.n_teachers,
            )
        # such a teacher would have more than all others
        share = -(-self.n_records // self.n_teachers)
        if sizes.max() > share:
            raise value_error(
                "pate.group_larger_than_share", largest=sizes.max(), share=share
            )
        # accounting without an estimator: a scenario is told of the groups as well
        if self.context is None:
            context = PublicContext(n_records=self.n_records, groups=self.groups)
            object.__setattr__(self, "context", context)

    def _check_threshold(self) -> None:
        # an infinite one would answer all or none, and still be charged for its tests
        if self.threshold is not None and math.isinf(
            check_real(threshold=self.threshold)
        ):
            raise value_error("pate.threshold_not_finite")
        # filled in here, so that accounting and execution read the same number
        if self.max_answers is None:
            object.__setattr__(self, "max_answers", self.n_queries)
        answers = check_count(max_answers=self.max_answers)
        if answers > self.n_queries:
            raise value_error(
                "pate.max_answers_exceeds_queries",
                max_answers=answers,
                n_queries=self.n_queries,
            )
        # without a test, nothing but the exact votes could say which go unanswered
        if self.threshold is None and answers < self.n_queries:
            raise value_error(
                "pate.max_answers_without_threshold",
                max_answers=answers,
                n_queries=self.n_queries,
            )
        object.__setattr__(self, "max_answers", answers)
        if self.query is not None and self.threshold is not None:
            raise value_error("pate.query_with_threshold")

    #: Counts are integers, as noise on the integers needs.
    is_integer = True

    @property
    def dim(self) -> int:
        """Length of one histogram."""
        # of a single query: its answers are accounted for one by one
        return self.n_classes

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of one query's counts to the data of one teacher."""
        # one count falls by one and another rises by one
        changed = {1: 2.0, 2: math.sqrt(2), math.inf: 1.0}
        if self.relation == "replace_vote":
            return Sensitivity(add_remove=changed, replace=changed)
        # one count changes by one; replaced, the vote leaves one class for another
        return Sensitivity(add_remove={1: 1.0}, replace=changed)

    def teachers_met(
        self, sizes: ArrayLike, sequences: Iterable[Indices] | None = None
    ) -> Indices:
        """Return how many teachers so many records lie with at most.

        Parameters
        ----------
        sizes : array-like
            Numbers of records.
        sequences : iterable of ndarray of int, default=None
            Positions in the table: the records are consecutive in one of these. None
            lets them be any.

        Returns
        -------
        ndarray of int
            Of the shape of `sizes`.
        """
        least: Floats = np.arange(1.0, self.n_teachers + 1)
        if self.groups is not None and sequences is not None:
            groups = np.asarray(self.groups)
            least = np.full(self.n_teachers, math.inf)
            for sequence in sequences:
                found = _least_windows(groups[sequence], self.n_teachers)
                least[: len(found)] = np.minimum(least[: len(found)], found)
        met: Indices = np.searchsorted(least, sizes, side="right")
        return met

    def stacked(self) -> QueryRelease:
        """Return the counts of all queries as one vector, for `query` that is given.

        Returns
        -------
        QueryRelease
            Of dimension `n_queries` times `n_classes`.
        """
        # a moved vote bounds one that joins or leaves
        moved = self.sensitivity.replace or {}
        each = Sensitivity(add_remove=moved, replace=moved)
        return QueryRelease(
            query=self.query,
            n_records=self.n_records,
            dim=self.n_queries * self.n_classes,
            sensitivity=stacked_sensitivity([each] * self.n_queries),
            is_integer=True,
            name=self.name,
            context=self.context,
            assumptions=(*self.assumptions, _FIXED),
        )

    def test_noise(self, noise: Noise) -> Noise:
        """Return the noise of the threshold's test, given that of the counts."""
        # one place for accounting and execution, which must not differ
        return noise.with_scale(np.asarray(noise.scale) * self.threshold_noise_ratio)

    def check_votes(self, votes: ArrayLike) -> Indices:
        """Return votes as an integer array, or raise.

        Parameters
        ----------
        votes : array-like of shape (n, n_classes)
            How many teachers named each class, one query a row.

        Returns
        -------
        votes : ndarray of int64 of shape (n, n_classes)

        Raises
        ------
        ValueError
            If a count is negative or not whole, or a row does not add up.
        """
        votes = np.asarray(votes)
        if votes.ndim != 2 or votes.shape[1] != self.n_classes:
            raise value_error(
                "pate.votes_shape_wrong", n_classes=self.n_classes, shape=votes.shape
            )
        # Shares of votes come of a mistake, and noise on the integers would leave
        # their fractions as they are.
        kind = votes.dtype.kind
        if not (kind in "iub" or (kind == "f" and np.all(votes == np.floor(votes)))):
            raise value_error("pate.votes_not_whole")
        if np.any(votes < 0) or np.any(votes > self.n_teachers):
            raise value_error("pate.votes_out_of_range", n_teachers=self.n_teachers)
        votes = votes.astype(np.int64)
        totals = votes.sum(axis=1)
        if self.relation == "add_remove_vote":
            if np.any(totals > self.n_teachers):
                raise value_error(
                    "pate.votes_sum_exceeds_teachers", n_teachers=self.n_teachers
                )
        # A teacher who may abstain joins and leaves, which is the other relation; under
        # this one the accounting takes every vote for cast.
        elif np.any(totals != self.n_teachers):
            raise value_error("pate.votes_sum_not_teachers", n_teachers=self.n_teachers)
        return votes


def _least_windows(labels: Indices, most: int) -> Indices:
    """Least numbers of consecutive entries that meet 1, 2, ... runs of equal ones.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    most : int
        Up to so many runs.

    Returns
    -------
    ndarray of int of shape (min(most, number of runs),)
    """
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    edges = np.concatenate([[0], changes, [len(labels)]])
    runs = len(edges) - 1
    # all of the runs between the first and the last one, and an entry of these two
    return np.array(
        [1]
        + [
            2 + int((edges[met - 1 : runs] - edges[1 : runs - met + 2]).min())
            for met in range(2, min(most, runs) + 1)
        ]
    )
