"""Private classifiers: labels that are public, and predictions from linear scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import Statement
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import validate_labels, validate_rows

from ._reading import rows_and_labels, without_secret

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Array, Table


#: What a certificate says of labels that no public class names.
NO_LABEL = Statement("assume.unknown_label_counts_nothing")


class PrivateClassifierMixin(ClassifierMixin):  # type: ignore[misc] # scikit-learn is untyped
    """Mixin of private classifiers: public class labels, encoded for the query."""

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        return *validate_classes(self, X, y), None

    def _of_no_target(self) -> Statement | None:
        return NO_LABEL if declares_classes(self) else None

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())


def validate_classes(estimator: Any, X: Any, y: Any) -> tuple[Any, Indices]:
    """Validate, set `classes_`, and encode the target as class indices.

    By declared classes a label that is none of them is -1. Without, the labels of the
    table are taken as public, which the certificate says.
    """
    if not declares_classes(estimator):
        return validate_labels(estimator, X, y)
    return rows_and_labels(estimator, X, y)


def declares_classes(estimator: Any) -> bool:
    """Whether public labels are known without those of the table."""
    schema = estimator.schema
    of_schema = schema is not None and schema.classes is not None
    return estimator.classes is not None or of_schema


def mark_noisy(tags: Tags) -> Tags:
    """Say in the tags of an estimator that it scores poorly, at the default budget."""
    for kind in (tags.classifier_tags, tags.regressor_tags):
        # scikit-learn's own checks would else ask for scores that the noise rules out
        # on the small tables they fit
        if kind is not None:
            kind.poor_score = True
    return tags


def linear_scores(estimator: Any, X: Table) -> Floats:
    """Return scores of rows, which are scaled down as they were in training."""
    check_is_fitted(estimator)
    # rows to predict for are not protected: only those of the fit are
    X = validate_rows(estimator, without_secret(estimator, X), reset=False)
    # as in training, where longer rows were scaled down; a text such as 'empirical'
    # names no norm
    if not isinstance(estimator.data_norm, str):
        X = clip_rows(X, estimator.data_norm)
    # post-processing of released coefficients: as many predictions as one likes
    coef = np.atleast_2d(estimator.coef_)
    scores: Floats = (
        safe_sparse_dot(X, coef.T, dense_output=True) + estimator.intercept_
    )
    # one output is one number a row, as scikit-learn's linear models have it
    return scores.ravel() if scores.shape[1] == 1 else scores


def decision_function(self: Any, X: Table) -> Floats:
    """Return the score of each class, or of the second of two."""
    return linear_scores(self, X)


def predict(self: Any, X: Table) -> Array:
    """Return the most likely label of each row."""
    scores = self.decision_function(X)
    # two classes have one score, whose sign says which; more have one score each
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    labels: Array = self.classes_[chosen]
    return labels


def predict_proba(self: Any, X: Table) -> Floats:
    """Return the probability of each class."""
    scores = self.decision_function(X)
    if scores.ndim == 1:
        # one score is the log-odds of the second class, several are softmax logits
        positive = expit(scores)
        return np.column_stack([1 - positive, positive])
    probabilities: Floats = softmax(scores, axis=1)
    return probabilities


def predict_log_proba(self: Any, X: Table) -> Floats:
    """Return the logarithm of :meth:`predict_proba`."""
    # of the probabilities, as scikit-learn's linear classifiers do: -inf where one
    # underflows
    log_probabilities: Floats = np.log(self.predict_proba(X))
    return log_probabilities
