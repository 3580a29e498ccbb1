"""Session of a vote release: its noise, and the queries left of its budget."""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np

from skpuffer.exceptions import QueryBudgetError, Statement
from skpuffer.kernel.votes import noisy_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.releases import VoteRelease


class NoisyVotes(NamedTuple):
    """Noise (n_classes,) of one answer, for tests."""

    noise: Floats


#: Sessions of this process that were pickled, which copies that come back find while
#: anybody has the original: what a fit used is kept no longer than its estimator.
_PICKLED: weakref.WeakValueDictionary[str, VoteSession] = weakref.WeakValueDictionary()


class VoteSession:
    """Execution of a vote release, query by query, until its budget is used up.

    Copies of a session in its process are that session itself. Elsewhere, unpickled or
    forked, they refuse every query, as nobody counts those of several processes
    together.

    `release`, `noise`: the release that was accounted for, and its noise. `record`:
    collects a :class:`NoisyVotes` for each answer, for tests. `given`: noisy counts by
    question, to repeat them.
    """

    given: dict[bytes, Floats]

    def __init__(
        self,
        release: VoteRelease,
        noise: Noise,
        rng: np.random.Generator,
        *,
        record: list[Any] | None = None,
    ):
        self._release, self._noise, self._rng = release, noise, rng
        self._record = record
        # threads that ask at once are answered one after the other
        self._lock = threading.Lock()
        # of the process where noise is drawn and queries are counted
        self._process, self._name = os.getpid(), uuid.uuid4().hex
        self.given = {}
        self.n_queries_left = release.n_queries
        self.n_answers_left: int = release.max_answers  # type: ignore[assignment] # made a number

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        _PICKLED[self._name] = self
        # neither the generator nor what is left goes along, nor the context of the fit
        return _found_again, (self._name, self._release.name, dict(self.given))

    def reserve(self, n_queries: int) -> None:
        """Check that so many queries are left, before anything is looked at."""
        if n_queries and self._process != os.getpid():
            _refuse_elsewhere(self._release.name)
        name = self._release.name
        if n_queries > self.n_queries_left:
            raise QueryBudgetError(
                Statement(
                    "pate.queries_exceed_paid",
                    n_asked=n_queries,
                    name=name,
                    n_queries=self._release.n_queries,
                    n_left=self.n_queries_left,
                )
            )
        if n_queries and self.n_answers_left <= 0:
            raise QueryBudgetError(
                Statement(
                    "pate.all_answers_given",
                    max_answers=self._release.max_answers,
                    name=name,
                )
            )

    def histograms(self, votes: ArrayLike) -> Floats:
        """Return noisy vote counts (n, n_classes), NaN without an answer."""
        votes = self._release.check_votes(votes)
        # whole portions or nothing: refused before any noise is drawn; and before the
        # lock, which a forked process may find taken for good
        self.reserve(len(votes))
        with self._lock:
            self.reserve(len(votes))
            return self._histograms(votes)

    def _histograms(self, votes: Indices) -> Floats:
        self.n_queries_left -= len(votes)  # paid before it is answered, whatever fails
        # Which queries are answered is itself released: by noisy tests that are
        # accounted for, so the number of answers left may depend on it.
        answered = self._answered(votes)
        self.n_answers_left -= int(answered.sum())
        noisy = np.full(votes.shape, np.nan)
        n_records = self._release.n_records
        noisy[answered] = noisy_counts(
            votes[answered], self._noise, self._rng, n_records
        )
        if self._record is not None:
            drawn = noisy[answered] - votes[answered]
            self._record.extend(map(NoisyVotes, drawn))
        return noisy

    def _answered(self, votes: Indices) -> Booleans:
        """Mask of the answered queries: those that pass, while answers last."""
        release = self._release
        if release.threshold is None:
            return np.ones(len(votes), dtype=bool)
        # The noisy threshold test is charged on every query, passed or not (Papernot et
        # al. 2018, Algorithm 1), with noise of its own: the accounting composes two
        # independent mechanisms.
        largest = noisy_counts(
            votes.max(axis=1, initial=0),
            release.test_noise(self._noise),
            self._rng,
            release.n_records,
        )
        # the first that pass are answered; a running sum of noisy tests tells no more
        passed: Booleans = largest >= release.threshold
        return passed & (np.cumsum(passed) <= self.n_answers_left)


class _ClosedSession(VoteSession):
    """What a session is elsewhere, or when it is gone: no query is left."""

    def __init__(self, name: str, release_name: str, given: dict[bytes, Floats]):
        self._name, self._release_name, self.given = name, release_name, given
        self.n_queries_left = self.n_answers_left = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _found_again, (self._name, self._release_name, self.given)

    def reserve(self, n_queries: int) -> None:
        """Refuse all queries; see `VoteSession`."""
        if n_queries:
            _refuse_elsewhere(self._release_name)

    def histograms(self, votes: ArrayLike) -> Floats:
        """Refuse all votes; see `VoteSession`."""
        votes = np.asarray(votes)
        self.reserve(len(votes))
        return votes.astype(float)


def _found_again(
    name: str, release_name: str, given: dict[bytes, Floats]
) -> VoteSession:
    """Session of that name, where it is still held in its process, or a closed one."""
    found = _PICKLED.get(name)
    return _ClosedSession(name, release_name, given) if found is None else found


def _refuse_elsewhere(release_name: str) -> NoReturn:
    raise QueryBudgetError(
        Statement("pate.queries_counted_elsewhere", release_name=release_name)
    )


def leading(noisy: Floats) -> Indices:
    """Return indices of the largest noisy counts by row, -1 where there are none."""
    # a row is NaN as a whole or not at all
    answered = ~np.isnan(noisy[:, 0])
    return np.where(answered, np.argmax(np.where(answered[:, None], noisy, 0), 1), -1)
