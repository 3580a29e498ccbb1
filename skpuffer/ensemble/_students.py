"""Students: which public rows they ask about, and how they learn from the answers.

All of it is made from public rows and released answers, so it costs no privacy.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import (
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
)

from skpuffer.exceptions import PrivacyWarning, Statement
from skpuffer.utils._warn import warn

from ._session import leading
from ._teachers import constant_classifier, fit_classifier

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.releases import VoteRelease
    from skpuffer.utils._types import Array

__all__ = ["STUDENTS", "make_student"]

#: Classifiers of scikit-learn that read -1 as "no label".
_SEMI_SUPERVISED = (LabelPropagation, LabelSpreading, SelfTrainingClassifier)

#: Public rows that a row hears, where labels are spread.
_NEIGHBOURS = 7


class _Student(ABC):
    """Base of students: queries about public rows, and a classifier of the answers.

    Parameters
    ----------
    estimator : classifier
        To be fitted on released labels.
    rows : ndarray of shape (n, n_features)
        Public.
    n_queries : int
        How many questions there are at most.
    rng : numpy.random.Generator

    Attributes
    ----------
    rows : ndarray
        All public rows.
    asked : ndarray of int
        Indices of the rows that are asked about.
    groups : ndarray of int or None
        Group of each such row, if a whole group is one question.
    """

    def __init__(
        self, estimator: Any, rows: Array, n_queries: int, rng: np.random.Generator
    ):
        self.estimator, self.rows = estimator, rows
        self.seed = int(rng.integers(2**31 - 1))
        self.groups: Indices | None = None
        # drawn at random, as public rows may be sorted; no private row has a part in it
        self.asked = np.sort(rng.permutation(len(rows))[:n_queries])

    def learn(self, noisy: Floats, release: VoteRelease, noise: Any) -> Any:
        """Fit a classifier.

        Parameters
        ----------
        noisy : ndarray of shape (n_questions, n_classes)
            Released; rows of NaN have no answer.
        release : VoteRelease
        noise : Noise

        Returns
        -------
        classifier : fitted classifier
            Of class indices. One that says the same of every row, with a warning, where
            nothing can be learned: what was released is paid for and must not be lost.
        """
        labels = leading(noisy)
        known = labels[labels >= 0]
        if not len(known):
            return self._constant(
                0,
                Statement(
                    "pate.no_query_reached_threshold",
                    n_labels=len(labels),
                    threshold=release.threshold,
                ),
            )
        # Here an error may be told, unlike a teacher's: all that is read is public or
        # released.
        try:
            return self._learn(noisy, labels, release, noise)
        except Exception as error:
            return self._constant(
                int(np.bincount(known).argmax()),
                Statement("pate.student_could_not_learn", error=error),
            )

    def _constant(self, label: int, why: Statement) -> Any:
        """Return a constant classifier, and warn why."""
        warn(
            Statement("pate.student_predicts_one_class", why=why),
            PrivacyWarning,
        )
        return constant_classifier(self.rows.shape[1], label)

    @abstractmethod
    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        """Fit a classifier on what was released."""

    def _fit(self, rows: Array, labels: Indices) -> Any:
        return fit_classifier(self.estimator, rows, labels, self.seed)


class Supervised(_Student):
    """Student of the answered rows alone."""

    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        known = labels >= 0
        return self._fit(self.rows[self.asked[known]], labels[known])


class SemiSupervised(_Student):
    """Student by a semi-supervised classifier: rows without an answer have label -1."""

    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        target = np.full(len(self.rows), -1)
        target[self.asked] = labels
        return clone(self.estimator).fit(self.rows, target)


class Spreading(_Student):
    """Student by label spreading over nearest neighbours, which outvote bad labels."""

    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        # Noisy labels are wrong now and then. With alpha = 0.2 a row takes a fifth of
        # its label from its neighbours in each step, so that a few bad labels are
        # outvoted and the many good ones are kept.
        target = np.full(len(self.rows), -1)
        target[self.asked] = labels
        neighbours = min(_NEIGHBOURS, len(self.rows))
        spreading = LabelSpreading(
            kernel="knn", n_neighbors=neighbours, alpha=0.2, max_iter=1000
        )
        with warnings.catch_warnings():
            # rows that nothing connects to a label keep none, and are left out
            warnings.simplefilter("ignore")
            spreading.fit(self.rows, target)
        # spreading labels the rows it was fitted on; neighbours carry them to any other
        reached = spreading.label_distributions_.sum(axis=1) > 0
        voters = KNeighborsClassifier(min(_NEIGHBOURS, int(reached.sum())))
        return voters.fit(self.rows[reached], spreading.transduction_[reached])


class Histograms(_Student):
    """Student of noisy counts smoothed by a Gaussian process over all public rows.

    A Gaussian process with noise of the known variance; its length scale is what
    explains the released counts best.
    """

    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        known = labels >= 0
        counts, rows = noisy[known], self.rows[self.asked[known]]
        k = release.n_classes
        # Variance of a count, were all teachers sure and all classes as frequent: n^2
        # times that of an indicator of chance 1/k.
        prior = release.n_teachers**2 * (k - 1) / k**2
        # typical distance of two rows, around which the length scale is searched for
        spread = float(np.sqrt(self.rows.shape[1] * max(self.rows.var(), 1e-12)))
        kernel = ConstantKernel(prior, "fixed") * RBF(
            spread, (1e-2 * spread, 1e2 * spread)
        )
        # The noise of the counts is known exactly, as the mechanism added it, so no
        # noise level need be fitted.
        process = GaussianProcessRegressor(
            kernel, alpha=float(noise.variance()), random_state=self.seed
        )
        with warnings.catch_warnings():
            # a length scale at its bound: the noise hides it all, or nothing
            warnings.simplefilter("ignore")
            process.fit(rows, counts - release.n_teachers / k)
            smooth = process.predict(self.rows)
        return self._fit(self.rows, smooth.reshape(len(self.rows), k).argmax(axis=1))


class Clusters(_Student):
    """Student of one query for each cluster of public rows, which share its label."""

    def __init__(
        self,
        estimator: BaseEstimator,
        rows: Array,
        n_queries: int,
        rng: np.random.Generator,
    ):
        super().__init__(estimator, rows, n_queries, rng)
        # Clusters are of public rows, so all rows of one may share one query: the
        # teachers' votes within it are theirs to settle, and one vote of each leaves.
        distinct = len(np.unique(rows, axis=0))
        clusters = KMeans(min(n_queries, distinct), n_init=3, random_state=self.seed)
        self.asked = np.arange(len(rows))
        labels = clusters.fit(rows).labels_
        # numbered without gaps: an empty cluster would be a query for nothing
        self.groups = np.unique(labels, return_inverse=True)[1]

    def _learn(
        self, noisy: Floats, labels: Indices, release: VoteRelease, noise: Any
    ) -> Any:
        spread = labels[self.groups]
        known = spread >= 0
        return self._fit(self.rows[known], spread[known])


#: Students by the name a user gives.
STUDENTS: dict[str, type[_Student]] = {
    "supervised": Supervised,
    "semi_supervised": Spreading,
    "histograms": Histograms,
    "clusters": Clusters,
}


def make_student(
    student: str | BaseEstimator,
    estimator: BaseEstimator,
    rows: Floats,
    n_queries: int,
    rng: np.random.Generator,
) -> _Student:
    """Return a student, given its name or its classifier.

    Parameters
    ----------
    student : str or classifier
        A name, or the classifier to be fitted on the released labels: with -1 for all
        other public rows if it is one of :mod:`sklearn.semi_supervised`.
    estimator : classifier
        What named students fit.
    rows : ndarray of shape (n, n_features)
    n_queries : int
    rng : numpy.random.Generator

    Returns
    -------
    object with attributes `rows`, `asked` and `groups` and a method `learn`
    """
    if isinstance(student, str):
        return STUDENTS[student](estimator, rows, n_queries, rng)
    semi = isinstance(student, _SEMI_SUPERVISED)
    kind: type[_Student] = SemiSupervised if semi else Supervised
    return kind(student, rows, n_queries, rng)
