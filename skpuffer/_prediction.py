"""Prediction by linear scores: post-processing of released coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import validate_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Table

__all__ = ["LinearLabelsMixin", "ScoreProbabilitiesMixin", "linear_scores"]


def linear_scores(estimator: Any, X: Table) -> Floats:
    """Return scores of rows, which are scaled down as they were in training.

    Parameters
    ----------
    estimator : fitted estimator
        With `coef_`, `intercept_` and `data_norm`.
    X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

    Returns
    -------
    scores : ndarray of shape (n_records,) or (n_records, n_outputs)
    """
    check_is_fitted(estimator)
    # rows to predict for are not protected: only those of the fit are
    X = validate_rows(estimator, estimator._without_secret(X), reset=False)
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


class LinearLabelsMixin:
    """Labels from scores, which are linear unless a subclass says otherwise."""

    classes_: Array

    def decision_function(self, X: Table) -> Floats:
        """Return the score of each class, or of the second of two.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
            A secret column is ignored; rows are scaled down as in training.

        Returns
        -------
        scores : ndarray of shape (n_records,) or (n_records, n_classes)
        """
        return linear_scores(self, X)

    def predict(self, X: Table) -> Array:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        labels : ndarray of shape (n_records,)
        """
        scores = self.decision_function(X)
        # two classes have one score, whose sign says which; more have one score each
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[chosen]
        return labels


class ScoreProbabilitiesMixin:
    """Class probabilities from the scores of a log-likelihood."""

    decision_function: Callable[[Table], Floats]

    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_records, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            # one score is the log-odds of the second class, several are softmax logits
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        probabilities: Floats = softmax(scores, axis=1)
        return probabilities

    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_records, n_classes)
        """
        # of the probabilities, as scikit-learn's linear classifiers do: -inf where one
        # underflows
        return np.log(self.predict_proba(X))
