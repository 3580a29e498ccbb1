"""Cache of noisy votes by row, so that each row is paid for once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

    from ._session import VoteSession
    from ._teachers import Teachers

__all__ = ["Answers"]


class Answers:
    """Noisy votes on new rows, until the budget is used up.

    A row that was answered keeps its answer, and costs nothing when it is asked about
    again.

    Parameters
    ----------
    teachers : Teachers
        Fitted. Private.
    session : VoteSession
    n_classes : int
    """

    def __init__(self, teachers: Teachers, session: VoteSession, n_classes: int):
        self._teachers, self._session = teachers, session
        self._n_classes = n_classes

    @property
    def n_queries_left(self) -> int:
        """Number of rows that may still be asked about."""
        return self._session.n_queries_left

    def histograms(self, X: Floats) -> Floats:
        """Return noisy vote counts of rows.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        noisy : ndarray of shape (n, n_classes)

        Raises
        ------
        QueryBudgetError
            If there are more new rows than queries left; nothing is answered then.
        """
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
