"""Aggregator of votes that were counted elsewhere, with noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks

from skpuffer._template._all_or_nothing import all_or_nothing
from skpuffer._template._announce import announce, announce_gain
from skpuffer._template._parameters import scenario_and_accountant
from skpuffer._template._proved import proved
from skpuffer.accountants._base import bind
from skpuffer.exceptions import Statement
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count
from skpuffer.releases import VoteRelease
from skpuffer.utils._doc_links import DocLinkMixin
from skpuffer.utils._listeners import CarriesListeners, tell

from ._session import VoteSession, leading

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import RandomState

__all__ = ["PATEAggregator"]


class PATEAggregator(
    DocLinkMixin,
    CarriesListeners,
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # as above
):
    """Answers votes with noise until its budget is used up.

    For teachers that voted elsewhere. The noise is set once, for all `n_queries`, from
    the parameters alone; :meth:`aggregate` then takes votes in any number of portions,
    which may depend on earlier answers.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret, about the records behind the votes. None is one record, added or
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
        Number of questions that may be put in all.
    n_records : int, default=None
        Number of private records behind the votes. None is one for each teacher: what
        is secret is then all that a voter knows.
    relation : {'replace_vote', 'add_remove_vote'}, default='replace_vote'
        What becomes of the vote of a teacher whose data changes; see
        :class:`~skpuffer.releases.VoteRelease`.
    threshold : float, default=None
        Number of votes that the leading class must have, by a noisy test that is
        charged on every query, for the query to be answered. None answers all.
    max_answers : int, default=None
        How many queries may be answered; fewer take less noise. Only with a
        `threshold`. None is `n_queries`.
    threshold_noise_ratio : float, default=5.0
        Scale of the test's noise in units of the scale of the counts' noise.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    certificate_ : Certificate
        What was promised for all queries together. Set by :meth:`calibrate`.
    noise_ : Noise
        The noise that is added to each count.
    release_ : VoteRelease
        What was accounted for.
    accountant_ : Accountant
        The accountant that set the noise.

    See Also
    --------
    PATEClassifier : Trains the teachers as well, and a student.

    Notes
    -----
    The noisy counts as a whole cost what the leading class alone costs, so they are
    there too: :meth:`histograms`. Copies share one budget; in another process,
    unpickled or forked, they refuse until they are calibrated anew. No accounting here
    looks at the votes: noise that were smaller where teachers agree would itself give
    them away.

    References
    ----------
    Papernot et al. (2017), Semi-supervised knowledge transfer for deep learning from
    private training data; Papernot et al. (2018), Scalable private learning with PATE.

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
    >>> round(aggregator.noise_.scale, 2)
    8.92
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

        Called again it begins anew: the certificate is of what is answered from then
        on, and that of earlier answers is to be added to it.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is not as it must be.
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
            If more is asked than is left; nothing is answered then.
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
