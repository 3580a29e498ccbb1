"""Teachers: one classifier for each shard of the private rows, and their votes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import (
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
)
from sklearn.utils.parallel import Parallel, delayed

from skpuffer._template._reading import known_targets
from skpuffer.exceptions import PrivacyWarning, Statement, value_error
from skpuffer.utils._silence import muted, silence, warn
from skpuffer.utils._sklearn import InvalidParameterError

from ._session import leading

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.releases import VoteRelease
    from skpuffer.utils._types import Array


def fit_classifier(
    estimator: BaseEstimator, X: Floats, y: Indices, seed: int
) -> BaseEstimator:
    """Fit a clone of a classifier, or a constant where there is a single class.

    `y` are indices of classes, of which some may be missing: `classes_` are those in
    `y`. The seed is for each `random_state` the estimator has, nested ones included.
    """
    if len(y) == 0 or np.all(y == y[0]):
        # not every classifier takes a single class, and none can say more
        return constant_classifier(X.shape[1], int(y[0]) if len(y) else 0)
    model = clone(estimator)
    seeds = {
        name: seed
        for name in model.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    }
    return model.set_params(**seeds).fit(X, y)


def constant_classifier(n_features: int, label: int) -> DummyClassifier:
    """Return a fitted classifier that says the same of every row."""
    model = DummyClassifier(strategy="constant", constant=label)
    return model.fit(np.zeros((1, n_features)), [label])


def check_trainable(estimator: BaseEstimator, n_features: int, n_classes: int) -> None:
    """Refuse a classifier whose parameters are bad, before it sees a private row.

    Later errors are swallowed.
    """
    # as many rows of each class, all different, and none of them private
    y = np.tile(np.arange(n_classes), 4)
    X = np.linspace(0.0, 1.0, len(y) * n_features).reshape(len(y), n_features)
    with silence():
        try:
            fit_classifier(muted(estimator), X, y, 0)
        except (InvalidParameterError, TypeError, AttributeError) as error:
            raise value_error(
                "pate.estimator_not_fittable", estimator=estimator, error=error
            ) from error
        except Exception:
            return  # these rows may be too few for it, or too alike; others need not


# Whether a shard converges, lacks a class or is one that the estimator cannot learn
# from is nobody else's business: no loss, no warning and no error of a teacher gets
# out, for each would tell of its rows without any noise.


def _fit_teacher(
    estimator: BaseEstimator, X: Floats, y: Indices, seed: int
) -> BaseEstimator:
    """Fit one teacher in silence; a constant where it cannot be fitted."""
    # dealt before: a record without a label leaves its place empty, as an absent one
    X, y = known_targets(X, y)
    with silence():
        try:
            return fit_classifier(estimator, X, y, seed)
        except Exception:
            return constant_classifier(X.shape[1], int(np.bincount(y).argmax()))


def _predict(model: Any, X: Floats, n_classes: int) -> Indices:
    """Return labels by one teacher; class 0 wherever it fails or answers out of range.

    A teacher always casts one vote a query: the number of votes is public.
    """
    # labels that are no indices of classes would be counted for another class, or none
    with silence():
        try:
            said = np.asarray(model.predict(X)).astype(np.int64)
            known = said.shape == (len(X),) and np.all((said >= 0) & (said < n_classes))
        except Exception:
            known = False
    return said if known else np.zeros(len(X), dtype=np.int64)


class Teachers:
    """Ensemble of classifiers fitted on disjoint shards of the private rows.

    Places are dealt to teachers, not records: a place's teacher depends on the number
    of rows and on chance alone. So a record that changes, or whose place stays empty,
    changes one shard only. Groups of places are dealt whole, as many to each teacher.

    `n_teachers`: at most the number of rows. `rng`: deals places to teachers, and seeds
    them.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        n_teachers: int,
        rng: np.random.Generator,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        # muted for good: clones are fitted in workers, out of reach of a context
        self._estimator, self._n_teachers = muted(estimator), n_teachers
        self._rng = rng
        self._parallel = {"n_jobs": n_jobs, "verbose": verbose}

    def fit(self, X: Floats, y: Indices, groups: ArrayLike | None = None) -> Self:
        """Fit every teacher on its own rows; `y` are indices of classes.

        Groups (n,) are numbers from 0, at least as many as teachers. None is each row.
        """
        # Sizes of shards depend on the number of rows, or groups, alone, and so do the
        # seeds: changing a record touches the one model that was dealt its place.
        group = np.arange(len(y)) if groups is None else np.asarray(groups)
        dealt = np.array_split(self._rng.permutation(group.max() + 1), self._n_teachers)
        teacher = np.empty(group.max() + 1, dtype=np.int64)
        for number, shard in enumerate(dealt):
            teacher[shard] = number
        seeds = self._rng.integers(2**31 - 1, size=self._n_teachers).tolist()
        # Rows in the order of the table, so that the deal has no part in what a teacher
        # of the same rows learns.
        by_teacher = np.argsort(teacher[group], kind="stable")
        ends = np.cumsum(np.bincount(teacher[group], minlength=self._n_teachers))
        shards = np.split(by_teacher, ends[:-1])
        self._models = self._each(
            delayed(_fit_teacher)(self._estimator, X[rows], y[rows], seed)
            for rows, seed in zip(shards, seeds, strict=True)
        )
        return self

    def _each(self, tasks: Iterable[Any]) -> list[Any]:
        """Run tasks on private rows, with the warnings of the workers silenced."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done: list[Any] = Parallel(**self._parallel)(tasks)
            return done

    def predict(self, X: Floats, n_classes: int) -> Indices:
        """Return the label that each teacher predicts for each row, (n_teachers, n)."""
        said = self._each(
            delayed(_predict)(model, X, n_classes) for model in self._models
        )
        return np.stack(said)

    def vote(self, X: Floats, n_classes: int, groups: Indices | None = None) -> Indices:
        """Return vote counts by class, of each row or group of rows.

        A teacher has one vote a group: its most frequent label within, the first such
        class.
        """
        # one vote of each teacher in each question, so one record moves one vote in it
        said = self.predict(X, n_classes)
        if groups is not None:
            said = np.stack([_most(labels, groups, n_classes) for labels in said])
        # exact counts: they leave through a VoteSession only, which adds the noise
        votes = np.zeros((said.shape[1], n_classes), dtype=np.int64)
        columns = np.arange(said.shape[1])
        for labels in said:
            votes[columns, labels] += 1
        return votes


@dataclass(frozen=True)
class FixedVotes:
    """Votes on questions that are fixed in advance, as a function of private rows.

    All chance is in the seed: what is accounted for is the function that is run.

    `estimator`: model of each teacher. `asking`: student that asks, with attributes
    `rows`, `asked` and `groups`. `groups`: groups of rows that are dealt whole.
    """

    estimator: BaseEstimator
    n_teachers: int
    n_classes: int
    asking: Any
    seed: int
    groups: tuple[int, ...] | None = None
    n_jobs: int | None = None
    verbose: int = 0

    @property
    def n_queries(self) -> int:
        """Number of questions."""
        groups = self.asking.groups
        return len(self.asking.asked) if groups is None else int(groups.max()) + 1

    def __call__(self, X: Floats, y: ArrayLike) -> Indices:
        """Return exact counts, of shape (n_queries, n_classes)."""
        teachers = Teachers(
            self.estimator,
            self.n_teachers,
            np.random.default_rng(self.seed),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        ).fit(X, np.asarray(y, dtype=np.int64), self.groups)
        asking = self.asking
        return teachers.vote(asking.rows[asking.asked], self.n_classes, asking.groups)


def _most(labels: Indices, groups: Indices, n_classes: int) -> Indices:
    """Most frequent label of each group."""
    # (group, label) pairs numbered row by row, so that one count serves all groups
    shape = (int(groups.max()) + 1, n_classes)
    counts = np.bincount(groups * n_classes + labels, minlength=shape[0] * shape[1])
    most: Indices = counts.reshape(shape).argmax(axis=1)
    return most


# -- students: which public rows they ask about, and how they learn from the answers ---
# All of it is made from public rows and released answers, so it costs no privacy.


#: Classifiers of scikit-learn that read -1 as "no label".
_SEMI_SUPERVISED = (LabelPropagation, LabelSpreading, SelfTrainingClassifier)

#: Public rows that a row hears, where labels are spread.
_NEIGHBOURS = 7


class _Student(ABC):
    """Base of students: queries about public rows, and a classifier of the answers."""

    def __init__(
        self, estimator: Any, rows: Array, n_queries: int, rng: np.random.Generator
    ):
        self.estimator, self.rows = estimator, rows
        self.seed = int(rng.integers(2**31 - 1))
        self.groups: Indices | None = None
        # drawn at random, as public rows may be sorted; no private row has a part in it
        self.asked = np.sort(rng.permutation(len(rows))[:n_queries])

    def learn(self, noisy: Floats, release: VoteRelease, noise: Any) -> Any:
        """Fit a classifier."""
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

    The noise has its known variance; the released counts set the length scale.
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
    """Return a student, given its name or the classifier to fit on released labels.

    `estimator` is the model that named students fit.
    """
    if isinstance(student, str):
        return STUDENTS[student](estimator, rows, n_queries, rng)
    semi = isinstance(student, _SEMI_SUPERVISED)
    kind: type[_Student] = SemiSupervised if semi else Supervised
    return kind(student, rows, n_queries, rng)
