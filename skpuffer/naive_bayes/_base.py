"""What naive Bayes classifiers share: public classes, priors, and prediction."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from skpuffer._raw_tables import check_records
from skpuffer._targets import class_indices, declared_classes
from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Table

__all__ = ["PrivateNaiveBayes"]


class PrivateNaiveBayes(PrivateClassifierMixin, PrivateEstimatorMixin):
    """Base of naive Bayes classifiers by one noisy sum over records.

    A subclass has the parameters `schema`, `classes` and `bounds`, reads rows and says
    the log-likelihood of each class.
    """

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _read_rows(self, X: Any) -> tuple[Any, Any]:
        """Read rows in a fit, and say how: public."""

    @abstractmethod
    def _log_likelihood(self, X: Any) -> Floats:
        """Log-likelihood of rows, the secret column gone, given each class."""

    # -- fit ----------------------------------------------------------------------

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        X, reading = self._read_rows(X)
        check_records(self, X)
        return X, class_indices(self, X, y), reading

    def _public_facts(self, task: Task) -> Statement:
        """What is taken as public, for the certificate."""
        return Statement(
            "assume.values_clipped_labels_found"
            if declared_classes(self) is None
            else "assume.values_clipped_labels_public",
            classes=task.context.classes,
        )

    # -- post-processing ----------------------------------------------------------

    def predict_joint_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of the joint probability of each row and class.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is ignored.

        Returns
        -------
        ndarray of shape (n_records, n_classes)
        """
        check_is_fitted(self)
        likelihood = self._log_likelihood(self._without_secret(X))
        with np.errstate(divide="ignore"):  # of a class that has no mass
            joint: Floats = likelihood + np.log(self.class_prior_)
        return joint

    def predict(self, X: Table) -> Array:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        ndarray of shape (n_records,)
        """
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels

    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        ndarray of shape (n_records, n_classes)
        """
        joint = self.predict_joint_log_proba(X)
        logarithms: Floats = joint - logsumexp(joint, axis=1, keepdims=True)
        return logarithms

    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        ndarray of shape (n_records, n_classes)
        """
        probabilities: Floats = np.exp(self.predict_log_proba(X))
        return probabilities
