"""Session of a vote release: its noise, and the queries left of its budget."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpuffer.exceptions import QueryBudgetError
from skpuffer.utils._entropy import secret_generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.noise import Noise
    from skpuffer.releases import VoteRelease
    from skpuffer.utils._types import Booleans, Floats, Indices

__all__ = ["NoisyVotes", "VoteSession", "leading"]


class NoisyVotes(NamedTuple):
    """Noise of one answer, for tests.

    Parameters
    ----------
    noise : ndarray of shape (n_classes,)
        What was added to the counts.
    """

    noise: Floats


class VoteSession:
    """Execution of a vote release, query by query, until its budget is used up.

    Parameters
    ----------
    release : VoteRelease
        What was accounted for.
    noise : Noise
        What it was accounted for with.
    rng : numpy.random.Generator
    seeded : bool, default=False
        Whether noise is to be reproduced, by copies as well: for tests.
    record : list, default=None
        Collects a :class:`NoisyVotes` for each answer, for tests.

    Attributes
    ----------
    n_queries_left : int
    n_answers_left : int
    """

    def __init__(
        self,
        release: VoteRelease,
        noise: Noise,
        rng: np.random.Generator,
        *,
        seeded: bool = False,
        record: list[Any] | None = None,
    ):
        self._release, self._noise, self._rng = release, noise, rng
        self._seeded, self._record = seeded, record
        # who drew last; see `_generator`
        self._process = os.getpid()
        self.n_queries_left = release.n_queries
        self.n_answers_left: int = release.max_answers  # type: ignore[assignment] # made a number

    def __getstate__(self) -> dict[str, Any]:
        # a copy must not draw the same noise for other votes: their difference would
        # show the votes without noise
        return vars(self) if self._seeded else {**vars(self), "_rng": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if state["_rng"] is None:
            self._rng = secret_generator()

    @property
    def _generator(self) -> np.random.Generator:
        # a forked process must not draw the same noise as its parent for other votes
        if not self._seeded and self._process != os.getpid():
            self._rng, self._process = secret_generator(), os.getpid()
        return self._rng

    def reserve(self, n_queries: int) -> None:
        """Check that so many queries are left, before anything is looked at.

        Parameters
        ----------
        n_queries : int

        Raises
        ------
        QueryBudgetError
            If so many queries are not left, or no answers are.
        """
        name = self._release.name
        if n_queries > self.n_queries_left:
            raise QueryBudgetError(
                f"{n_queries} queries were put to the release {name!r}, of whose "
                f"n_queries={self._release.n_queries} there are {self.n_queries_left} "
                "left. Ask less; or set a larger 'n_queries' beforehand, which takes "
                "more noise in each answer."
            )
        if n_queries and not self.n_answers_left:
            raise QueryBudgetError(
                f"All max_answers={self._release.max_answers} answers of the release "
                f"{name!r} are given. Set a larger 'max_answers' beforehand."
            )

    def histograms(self, votes: ArrayLike) -> Floats:
        """Return noisy vote counts.

        Parameters
        ----------
        votes : array-like of shape (n, n_classes)

        Returns
        -------
        noisy : ndarray of float of shape (n, n_classes)
            Rows of NaN for queries that did not reach the threshold, or came after the
            last answer.

        Raises
        ------
        QueryBudgetError
            If more is asked than is left; nothing is answered then.
        ValueError
            If the votes are not votes.
        """
        # whole portions or nothing: refused before any noise is drawn
        votes = self._release.check_votes(votes)
        self.reserve(len(votes))
        self.n_queries_left -= len(votes)  # paid before it is answered, whatever fails
        # Which queries are answered is itself released: by noisy tests that are
        # accounted for, so the number of answers left may depend on it.
        answered = self._answered(votes)
        self.n_answers_left -= int(answered.sum())
        noisy = np.full(votes.shape, np.nan)
        noisy[answered] = self._release.with_noise(
            votes[answered], self._noise, self._generator
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
        largest = release.with_noise(
            votes.max(axis=1, initial=0),
            release.test_noise(self._noise),
            self._generator,
        )
        # the first that pass are answered; a running sum of noisy tests tells no more
        passed: Booleans = largest >= release.threshold
        return passed & (np.cumsum(passed) <= self.n_answers_left)


def leading(noisy: Floats) -> Indices:
    """Return the index of the largest noisy count, or -1 where there is none.

    Parameters
    ----------
    noisy : ndarray of shape (n, n_classes)
        Rows of NaN are queries without an answer.

    Returns
    -------
    labels : ndarray of int of shape (n,)
    """
    # a row is NaN as a whole or not at all
    answered = ~np.isnan(noisy[:, 0])
    return np.where(answered, np.argmax(np.where(answered[:, None], noisy, 0), 1), -1)
