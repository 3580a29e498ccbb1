"""Prediction by linear scores: post-processing of released coefficients."""

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import validate_rows

__all__ = ["LinearLabelsMixin", "ScoreProbabilitiesMixin", "linear_scores"]


def linear_scores(estimator, X):
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
    X = validate_rows(estimator, estimator._without_secret(X), reset=False)
    if not isinstance(estimator.data_norm, str):
        X = clip_rows(X, estimator.data_norm)
    coef = np.atleast_2d(estimator.coef_)
    scores = safe_sparse_dot(X, coef.T, dense_output=True) + estimator.intercept_
    return scores.ravel() if scores.shape[1] == 1 else scores


class LinearLabelsMixin:
    """Labels from scores, which are linear unless a subclass says otherwise."""

    def decision_function(self, X):
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

    def predict(self, X):
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        labels : ndarray of shape (n_records,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]


class ScoreProbabilitiesMixin:
    """Class probabilities from the scores of a log-likelihood."""

    def predict_proba(self, X):
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
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_records, n_classes)
        """
        return np.log(self.predict_proba(X))
