"""Scores that one record moves by a bounded amount: sums over held-out records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skpuffer.exceptions import (
    unsupported_error,
    value_error,
)
from skpuffer.releases import QueryRelease, Sensitivity

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import PublicContext
    from skpuffer.utils._types import Array


#: How far the sum moves with one record: each is worth from zero to one.
_ONE = {1.0: 1.0, 2.0: 1.0}


@dataclass(frozen=True)
class Score:
    """A score of a model on held-out records, as a sum of one number for each.

    Parameters
    ----------
    name : str
        As scikit-learn has it: more is better.
    worth : callable
        Takes the model, the records, their targets as they were read (indices of
        classes, -1 of no class; or numbers, NaN of none) and `bounds`. Returns what
        each record is worth, in [0, 1].
    needs : str
        Method of the model that it calls.
    low, high : float
        Score of a model for which every record is worth nothing, and of one for which
        each is worth one.
    is_integer : bool
        Whether each is worth zero or one.
    bounds : tuple of float or None
        Bounds of the target, of a regressor.
    """

    name: str
    worth: Callable[[Any, Any, Array, Any], Floats]
    needs: str
    low: float = 0.0
    high: float = 1.0
    is_integer: bool = False
    bounds: tuple[float, float] | None = None

    def release(self, context: PublicContext) -> QueryRelease:
        """Return the release of the sum, of whichever model."""
        return QueryRelease(
            # which model is to be scored is not known before it is released
            query=self._of_no_model,
            n_records=context.n_records,
            dim=1,
            name=f"{self.name} of {context.n_records} held-out records",
            context=context,
            is_integer=self.is_integer,
            sensitivity=Sensitivity(add_remove=_ONE, replace=_ONE),
        )

    def _of_no_model(self, X: Any, y: Any) -> Floats:
        raise unsupported_error("search.score_needs_fitted_model", name=self.name)

    def total(self, model: Any, X: Any, y: Array) -> Floats:
        """Return the exact sum; it must not be released without noise."""
        return np.array([np.sum(self.each(model, X, y))])

    def each(self, model: Any, X: Any, y: Array) -> Floats:
        """Return what each record is worth, in [0, 1] whatever the model predicts."""
        worth = np.nan_to_num(np.asarray(self.worth(model, X, y, self.bounds), float))
        within: Floats = np.clip(worth, 0.0, 1.0)
        return within

    def of_total(self, total: float, n_records: int) -> float:
        """Return the score for a sum."""
        return self.low + (self.high - self.low) * total / n_records

    def width(self, std: float, n_records: int) -> float:
        """Return the standard deviation of the score for that of a sum."""
        return (self.high - self.low) * std / n_records


def _answers(model: Any, method: str, X: Any, y: Array) -> Array:
    """Return what a model answers, one or a row of numbers for each record."""
    found = np.asarray(getattr(model, method)(X))
    if len(found) != len(y) or (method == "predict" and found.size != len(y)):
        raise value_error("search.not_one_answer_per_record", method=method)
    return found.ravel() if method == "predict" else found


def _correct(model: Any, X: Any, y: Array, bounds: Any) -> Floats:
    known = y >= 0
    truth = np.asarray(model.classes_)[np.where(known, y, 0)]
    right: Floats = (known & (_answers(model, "predict", X, y) == truth)).astype(float)
    return right


def _brier(model: Any, X: Any, y: Array, bounds: Any) -> Floats:
    chances = _answers(model, "predict_proba", X, y).astype(float)
    truth = np.zeros_like(chances)
    known = y >= 0
    truth[np.flatnonzero(known), y[known]] = 1.0
    return np.where(known, 1 - np.sum((chances - truth) ** 2, axis=1) / 2, 0.0)


def _distance(model: Any, X: Any, y: Array, bounds: Any) -> Floats:
    """How far predictions are from targets, as shares of the range of the target."""
    low, high = bounds
    predicted = np.clip(_answers(model, "predict", X, y).astype(float), low, high)
    far: Floats = np.abs(predicted - np.clip(y, low, high)) / (high - low)
    return far


def _absolute(model: Any, X: Any, y: Array, bounds: Any) -> Floats:
    return 1 - _distance(model, X, y, bounds)


def _squared(model: Any, X: Any, y: Array, bounds: Any) -> Floats:
    return 1 - _distance(model, X, y, bounds) ** 2


#: Scores of classifiers: what each record is worth, the method, whether integers.
_CLASSIFIERS: dict[str, tuple[Any, str, bool]] = {
    "accuracy": (_correct, "predict", True),
    "neg_brier_score": (_brier, "predict_proba", False),
}

#: Scores of regressors: what each record is worth, and the power of the range.
_REGRESSORS: dict[str, tuple[Any, int]] = {
    "neg_mean_squared_error": (_squared, 2),
    "neg_mean_absolute_error": (_absolute, 1),
}


def score_of(
    scoring: Any,
    model: Any,
    classes: Array | None,
    bounds: tuple[float, float] | None,
) -> Score:
    """Return the score of a name, or the default, for a kind of model."""
    names: tuple[str, ...]
    if is_classifier(model):
        names = tuple(_CLASSIFIERS)
    elif is_regressor(model):
        names = tuple(_REGRESSORS)
    else:
        raise value_error(
            "search.estimator_has_no_score", model_type=type(model).__name__
        )
    if scoring is None:
        scoring = names[0]
    if not isinstance(scoring, str) or scoring not in names:
        raise value_error(
            "search.scoring_sensitivity_unknown",
            scorings=list(names),
            model_type=type(model).__name__,
            scoring=scoring,
        )
    if is_classifier(model):
        assert classes is not None  # of every classifier, once they are declared
        worth, method, whole = _CLASSIFIERS[scoring]
        if not hasattr(model, method):
            raise value_error(
                "search.scoring_method_missing",
                scoring=scoring,
                model_type=type(model).__name__,
                method=method,
            )
        low, high = (0.0, 1.0)
        if scoring == "neg_brier_score":
            # as scikit-learn: half of the sum of squares where there are two classes
            low, high = (-1.0 if len(classes) == 2 else -2.0), 0.0
        return Score(scoring, worth, method, low, high, whole)
    if bounds is None:
        raise value_error("search.scoring_needs_target_bounds", scoring=scoring)
    worth, power = _REGRESSORS[scoring]
    low, high = float(bounds[0]), float(bounds[1])
    return Score(
        scoring, worth, "predict", -((high - low) ** power), 0.0, False, (low, high)
    )
