"""Aggregator of votes that were counted elsewhere, with noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks

from skpuffer.accountants import PrivacyLoss
from skpuffer.accountants._base import bind
from skpuffer.base import (
    DEFAULT_DELTA,
    all_or_nothing,
    announce,
    announce_gain,
    proved,
    scenario_and_accountant,
)
from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count
from skpuffer.kernel.votes import noisy_counts
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._listeners import carries_listeners, tell
from skpuffer.utils._sklearn import linked_to_docs

from ._session import VoteSession, leading

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import RandomState

    from ._teachers import Teachers


@carries_listeners
@linked_to_docs
class PATEAggregator(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # as above
):
    """Answer votes with noise until a budget is used up.

    For teachers that voted elsewhere. The noise is set once, for all `n_queries`, from
    the parameters alone. :meth:`aggregate` then takes votes in any number of portions,
    which may depend on earlier answers.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret, about the records behind the votes. None is one record, added or
        removed: it changes one teacher, so one vote a query.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    n_teachers : int, default=50
        Number of voters.
    n_classes : int, default=10
        Number of classes.
    n_queries : int, default=100
        Total number of queries.
    n_records : int, default=None
        Number of private records behind the votes. None is one for each teacher.
    relation : {'replace_vote', 'add_remove_vote'}, default='replace_vote'
        Effect of a record on the vote of its teacher; see
        :class:`~skpuffer.releases.VoteRelease`.
    threshold : float, default=None
        Least number of votes of the leading class for an answer, by a noisy test that
        is charged on every query. None answers all.
    max_answers : int, default=None
        Most queries that are answered; fewer take less noise. Only with a `threshold`.
        None is `n_queries`.
    threshold_noise_ratio : float, default=5.0
        Scale of the test's noise in units of the scale of the counts' noise.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    certificate_ : Certificate
        Promise for all queries together. Set by :meth:`calibrate`.
    noise_ : Noise
        The noise that is added to each count.
    release_ : VoteRelease
        The release that was accounted for.
    accountant_ : Accountant
        The accountant that set the noise.

    See Also
    --------
    PATEClassifier : Trains the teachers as well, and a student.

    Notes
    -----
    The noisy counts cost what the leading class alone costs: see :meth:`histograms`.
    Copies share one budget. In another process, unpickled or forked, they refuse until
    they are calibrated anew. The noise never depends on the votes.

    References
    ----------
    Papernot et al. (2018), Scalable private learning with PATE.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.ensemble import PATEAggregator
    >>> aggregator = PATEAggregator(
    ...     accountant=PrivacyLoss(epsilon=2.0, delta=1e-5),
    ...     n_teachers=250,
    ...     n_classes=3,
    ...     n_queries=10,
    ... )
    >>> aggregator.aggregate([[240, 5, 5], [0, 0, 250]])
    array([0, 2])
    >>> aggregator.n_queries_left_
    8
    """

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        n_teachers: int = 50,
        n_classes: int = 10,
        n_queries: int = 100,
        n_records: int | None = None,
        relation: str = "replace_vote",
        threshold: float | None = None,
        max_answers: int | None = None,
        threshold_noise_ratio: float = 5.0,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.n_teachers = n_teachers
        self.n_classes = n_classes
        self.n_queries = n_queries
        self.n_records = n_records
        self.relation = relation
        self.threshold = threshold
        self.max_answers = max_answers
        self.threshold_noise_ratio = threshold_noise_ratio
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks  # type: ignore[untyped-decorator]
    def calibrate(self) -> Self:
        """Set the noise for all queries; :meth:`aggregate` does so by itself.

        A second call begins anew: add the certificate of earlier answers to the new
        one.

        Returns
        -------
        self : object

        Raises
        ------
        UnsupportedError
            If the accountant cannot work from what the scenario offers.
        """
        # From parameters alone, before any vote is seen: the scale of the noise says
        # nothing of how far the teachers agree.
        scenario, accountant = scenario_and_accountant(self)
        release = self._release()
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        rng, seeded = noise_generator(self.random_state)
        bound = bind(scenario, release)
        calibration = proved(accountant, release, bound, rng)
        certificate = calibration.certificate
        if seeded:
            certificate = certificate.as_seeded()
        # for all its answers, before any of them; a ledger may refuse
        ledger = callback.subcontext(task_name="release")
        metadata = {"certificate": certificate}
        ledger.call_on_fit_task_begin(estimator=self, metadata=metadata)
        tell(self, metadata, ledger)
        announce(self, certificate, seeded, calibration.noise.is_zero)
        announce_gain(self, calibration, accountant, release, bound)
        self.certificate_ = certificate
        self.noise_ = calibration.noise
        self.release_ = release
        self.accountant_ = accountant
        self._session = VoteSession(release, calibration.noise, rng)
        ledger.call_on_fit_task_end(estimator=self, metadata=metadata)
        callback.call_on_fit_task_end(estimator=self, metadata=metadata)
        return self

    def _release(self) -> VoteRelease:
        # One record for each voter makes the voter the unit of privacy: safe whatever
        # the voters know, and coarser than need be where each knows many records.
        n_records = self.n_records
        if n_records is None:
            n_records = check_count(n_teachers=self.n_teachers)
        return VoteRelease(
            n_records=n_records,
            n_teachers=self.n_teachers,
            n_classes=self.n_classes,
            n_queries=self.n_queries,
            relation=self.relation,
            threshold=self.threshold,
            max_answers=self.max_answers,
            threshold_noise_ratio=self.threshold_noise_ratio,
            assumptions=(
                Statement(
                    "assume.record_known_to_one_voter", n_teachers=self.n_teachers
                ),
            ),
        )

    def aggregate(self, votes: ArrayLike) -> Indices:
        """Return the class that leads in each query by noisy counts.

        Parameters
        ----------
        votes : array-like of int of shape (n, n_classes)
            How many teachers named each class, one query a row; each row adds up to
            `n_teachers`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
            Indices of classes; -1 where the query did not reach the threshold, or came
            after the last of `max_answers`.

        Raises
        ------
        QueryBudgetError
            If fewer queries are left; nothing is answered then.
        ValueError
            If counts are negative or not whole, or do not add up.
        """
        # post-processing of the noisy counts, which are what was accounted for
        return leading(self.histograms(votes))

    def histograms(self, votes: ArrayLike) -> Floats:
        """Return noisy vote counts, at the cost of their leading classes alone.

        Parameters
        ----------
        votes : array-like of int of shape (n, n_classes)
            As for :meth:`aggregate`, whose budget this uses up as well.

        Returns
        -------
        noisy : ndarray of float of shape (n, n_classes)
            NaN where there is no answer.
        """
        if not hasattr(self, "_session"):
            self.calibrate()
        return self._session.histograms(votes)

    @property
    def n_queries_left_(self) -> int:
        """Number of queries that may still be put."""
        return self._left("n_queries_left")

    @property
    def n_answers_left_(self) -> int:
        """Number of queries that may still be answered."""
        return self._left("n_answers_left")

    def _left(self, name: str) -> int:
        if not hasattr(self, "_session"):
            raise AttributeError(Statement("pate.noise_not_calibrated", name=name))
        left: int = getattr(self._session, name)
        return left


# -- agreement of noisy plurality votes with exact ones, at several budgets ------------


def noisy_argmax(
    votes: ArrayLike, noise: Noise, random_state: RandomState = None
) -> Indices:
    """Return the class that leads in each row once noise is added to every count.

    Nothing is accounted for here; see :class:`PATEAggregator`.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Finite counts, of at least 2 classes.
    noise : Noise
        Noise of one scale, in votes.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy.

    Returns
    -------
    labels : ndarray of int of shape (n_queries,)
        Indices of classes.

    References
    ----------
    Papernot et al. (2018), Scalable private learning with PATE.

    Examples
    --------
    >>> from skpuffer.ensemble import noisy_argmax
    >>> from skpuffer.noise import LaplaceNoise
    >>> noisy_argmax([[90, 5, 5], [0, 1, 99]], LaplaceNoise(1.0))
    array([0, 2])
    """
    votes = np.asarray(votes, dtype=float)
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise value_error("pate.votes_of_wrong_shape", shape=votes.shape)
    if not np.all(np.isfinite(votes)) or np.any(votes < 0):
        raise value_error("pate.votes_negative_or_infinite")
    if noise.is_zero:
        raise value_error("pate.noise_scale_not_positive")
    # The argmax is post-processing of the noisy counts. With noise on the classes that
    # got a vote only, it would tell which these are.
    rng, _ = noise_generator(random_state)
    winners: Indices = np.argmax(noisy_counts(votes, noise, rng), axis=1)
    return winners


def subsample_votes(
    votes: ArrayLike, n_voters: int, random_state: RandomState = None
) -> Indices:
    """Draw the same number of votes from each row, without replacement.

    For public votes of unequal turnout. Before a private release it is sound only if
    each voter's part in it does not depend on the others.

    Parameters
    ----------
    votes : array-like of int of shape (n_queries, n_classes)
        Each row holds at least `n_voters` votes.
    n_voters : int
    random_state : int, RandomState instance, Generator or None, default=None

    Returns
    -------
    votes : ndarray of int64 of shape (n_queries, n_classes)
        Counts whose rows add up to `n_voters`.

    Examples
    --------
    >>> from skpuffer.ensemble import subsample_votes
    >>> subsample_votes([[4, 0, 0], [1, 2, 3]], 4, random_state=0).sum(axis=1)
    array([4, 4])
    """
    n_voters = check_count(n_voters=n_voters)
    counts = np.asarray(votes, dtype=float)
    votes = counts.astype(np.int64)
    if votes.ndim != 2 or np.any(votes < 0) or np.any(votes != counts):
        raise value_error("pate.votes_not_whole_counts")
    if len(votes) and votes.sum(axis=1).min() < n_voters:
        raise value_error(
            "pate.voters_above_votes", n_voters=n_voters, least=votes.sum(axis=1).min()
        )
    rng, _ = noise_generator(random_state)
    # so many votes of each class, when voters are drawn without replacement
    rows = [rng.multivariate_hypergeometric(row, n_voters) for row in votes]
    return np.array(rows, dtype=np.int64).reshape(votes.shape)


def plurality_agreement(
    votes: ArrayLike,
    epsilons: ArrayLike,
    *,
    delta: float = DEFAULT_DELTA,
    n_queries: int = 100,
    noise: str | Noise = "gaussian",
    n_repeats: int = 1,
    random_state: RandomState = None,
    **noise_parameters: Any,
) -> Floats:
    """Measure how often noisy votes agree with exact ones, at each budget.

    For public votes: the result is not private.

    Parameters
    ----------
    votes : array-like of int of shape (n, n_classes)
        Each row adds up to the same number of voters.
    epsilons : array-like of float of shape (n_epsilons,)
        Budgets for `n_queries` votes together, with one voter's votes replaced.
    delta : float, default=1e-5
    n_queries : int, default=100
        Number of votes for which a budget has to last.
    noise : str or Noise, default='gaussian'
        As for :class:`~skpuffer.accountants.PrivacyLoss`.
    n_repeats : int, default=1
        How often each row is drawn with noise.
    random_state : int, RandomState instance, Generator or None, default=None
    **noise_parameters : dict
        Further parameters of the accountant, such as `beta`.

    Returns
    -------
    agreement : ndarray of shape (n_epsilons,)
        Share of rows whose noisy winner has as many exact votes as any class.

    Examples
    --------
    >>> from skpuffer.ensemble import plurality_agreement
    >>> votes = [[40, 10, 0], [0, 45, 5]]
    >>> plurality_agreement(votes, [50.0], n_queries=2)
    array([1.])
    """
    votes = np.asarray(votes)
    totals = np.unique(votes.sum(axis=1))
    if len(totals) != 1:
        raise value_error("pate.rows_votes_unequal")
    # one voter's vote is what is secret, so that voters are teachers and records
    release = VoteRelease(
        n_records=int(totals[0]),
        n_teachers=int(totals[0]),
        n_classes=votes.shape[1],
        n_queries=n_queries,
    )
    votes = np.tile(release.check_votes(votes), (check_count(n_repeats=n_repeats), 1))
    # a winner by a tie agrees as well as the other one
    best, rows = votes.max(axis=1), np.arange(len(votes))
    rng, _ = noise_generator(random_state)
    agreement = []
    for epsilon in np.asarray(epsilons, dtype=float).ravel().tolist():
        accountant = PrivacyLoss(epsilon, delta, noise=noise, **noise_parameters)
        drawn = accountant.calibrate(release, RecordScenario()).noise
        # every row is drawn at the noise of one budget for `n_queries`, not for all
        # rows
        elected = noisy_argmax(votes, drawn, rng)
        agreement.append(np.mean(votes[rows, elected] == best))
    return np.array(agreement)


# -- cache of noisy votes by row, so that each row is paid for once --------------------


class Answers:
    """Noisy votes of fitted teachers on new rows, until the budget is used up.

    A row that was answered keeps its answer, and costs nothing when it is asked again.
    """

    def __init__(self, teachers: Teachers, session: VoteSession, n_classes: int):
        self._teachers, self._session = teachers, session
        self._n_classes = n_classes

    @property
    def n_queries_left(self) -> int:
        """Number of rows that may still be asked about."""
        return self._session.n_queries_left

    def histograms(self, X: Floats) -> Floats:
        """Return noisy vote counts (n, n_classes) of rows."""
        # of one type, and zero without a sign, so that equal rows have equal bytes
        X = np.ascontiguousarray(X, dtype=np.float64) + 0.0
        # of the session, which copies of this share
        given = self._session.given
        # Repeating an answer is post-processing of it, so a row costs one query however
        # often it is asked about, in one call or in many.
        keys = [row.tobytes() for row in X]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        new = sorted(i for key, i in first.items() if key not in given)
        if new:
            self._session.reserve(len(new))  # before a teacher looks at them
            votes = self._teachers.vote(X[new], self._n_classes)
            noisy = self._session.histograms(votes)
            given.update(zip((keys[i] for i in new), noisy, strict=True))
        return np.stack([given[key] for key in keys])
