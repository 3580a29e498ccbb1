"""Base classes of linear models: gradients, targets, published coefficients."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin

from skpuffer._prediction import LinearLabelsMixin, linear_scores
from skpuffer.base import PrivateClassifierMixin, mark_noisy
from skpuffer.training import LinearGradients
from skpuffer.utils._checks import check_interval, check_positive, check_real
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import validate_rows
from skpuffer.utils._sklearn import Interval

from ._base_sgd import PrivateTrainingMixin

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Matrix, Table

__all__ = [
    "LinearClassifier",
    "LinearRegressorMixin",
    "LinearTraining",
    "target_scale",
    "with_intercept",
]


class LinearTraining(PrivateTrainingMixin):
    """Base of linear models trained with a loss of :mod:`skpuffer.training`.

    A subclass has the parameters `data_norm`, `fit_intercept` and `intercept_scaling`
    and says which loss it takes.
    """

    _release_name = "gradients of a linear model"
    _accept_sparse = "csr"

    _parameter_constraints: dict = {
        **PrivateTrainingMixin._parameter_constraints,
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    }

    def _check_parameters(self, scenario):
        super()._check_parameters(scenario)
        if self.intercept_scaling is not None:
            check_positive(intercept_scaling=self.intercept_scaling)
        if not isinstance(self.data_norm, str):
            check_positive(data_norm=self.data_norm)

    @property
    def _intercept_scale(self):
        """Value of the intercept's column in units of `data_norm`; 0 for none."""
        if not self.fit_intercept:
            return 0.0
        return 0.5 if self.intercept_scaling is None else float(self.intercept_scaling)

    def _gradients(self, X, y):
        """Clipped gradients of the model on rows in units of `data_norm`."""
        n_classes = len(self.classes_) if hasattr(self, "classes_") else None
        intercept_scale = self._intercept_scale
        # in units of the public norm, so that one rule fits every scale of the data
        rows = clip_rows(X, self.data_norm)
        if self.data_norm != 1:
            rows = rows / rows.dtype.type(self.data_norm)
        return LinearGradients(
            self._loss(),
            rows,
            y,
            n_classes=n_classes,
            intercept_scale=intercept_scale,
        )

    def _publish(self, value, release):
        super()._publish(value, release)
        # trained on rows in units of `data_norm`, published for rows as they are
        n_outputs = value.size // (self.n_features_in_ + bool(self.fit_intercept))
        weights = self.n_features_in_ * n_outputs
        self.coef_ = value[:weights].reshape(self.n_features_in_, -1).T / self.data_norm
        self.intercept_ = np.zeros(len(self.coef_))
        if self.fit_intercept:
            self.intercept_ = value[weights:] * self._intercept_scale


class LinearClassifier(PrivateClassifierMixin, LinearLabelsMixin, LinearTraining):
    """Base of linear classifiers; a subclass has the parameter `classes` as well."""

    _parameter_constraints: dict = {
        **LinearTraining._parameter_constraints,
        "classes": ["array-like", None],
    }


class LinearRegressorMixin(RegressorMixin):
    """Mixin of linear regressors: a target that is clipped to public bounds."""

    _accept_sparse = "csr"

    def _check_parameters(self, scenario):
        super()._check_parameters(scenario)
        target_scale(self.target_bounds)

    def _validate(self, X, y):
        """Validate, and map the bounds of the target to [-1, 1]."""
        X, y = validate_rows(self, X, y, y_numeric=True)
        centre, half = target_scale(self.target_bounds)
        return X, np.clip((y - centre) / half, -1.0, 1.0), None

    def predict(self, X: Table) -> Floats:
        """Predict the target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
            A secret column is ignored; rows are scaled down as in training.

        Returns
        -------
        y : ndarray of shape (n_records,)
        """
        return linear_scores(self, X)

    def __sklearn_tags__(self):
        return mark_noisy(super().__sklearn_tags__())


def with_intercept(rows: Matrix, value: float) -> Matrix:
    """Append a constant column to rows, dense or sparse; zero is for none."""
    if not value:
        return rows
    column = np.full((rows.shape[0], 1), value)
    if sparse.issparse(rows):
        return sparse.hstack([rows, column], format="csr")
    return np.hstack([rows, column])


def target_scale(bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return centre and half width of public bounds ``(low, high)`` of a target.

    Raises
    ------
    ValueError
        If they are not two finite numbers in increasing order.
    """
    if bounds is None:
        raise ValueError(
            "The parameter 'target_bounds' is missing: give public bounds (low, high) "
            "of the target, such as the ends of its scale, from what is known without "
            "the data. Values outside are clipped, and the noise grows with the range."
        )
    ends = [check_real(target_bounds=end) for end in bounds]
    if len(ends) != 2 or not np.all(np.isfinite(ends)) or ends[0] >= ends[1]:
        raise ValueError(
            "The parameter 'target_bounds' must be two finite numbers, the lower "
            f"first. Got {bounds!r}."
        )
    low, high = ends
    check_interval(low, high, "target_bounds")
    return (low + high) / 2, (high - low) / 2
