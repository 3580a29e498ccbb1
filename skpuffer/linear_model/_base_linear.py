"""Mixin of linear regressors, the intercept's column, and the scale of a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from skpuffer._lazy_tables import clipped
from skpuffer._prediction import linear_scores
from skpuffer._targets import target_values
from skpuffer._template._classes import mark_noisy
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_real
from skpuffer.utils._bounds import check_interval
from skpuffer.utils._reading import validate_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Matrix, Table

__all__ = [
    "BoundedTargetMixin",
    "LinearRegressorMixin",
    "TargetScale",
    "target_scale",
    "with_intercept",
]


class BoundedTargetMixin:
    """Mixin of regressors whose target is clipped to public bounds."""

    target_bounds: Any
    schema: Any

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)  # type: ignore[misc] # of the template
        # missing or wrong bounds are refused before the data is read
        target_scale(self._bounds_of_target)

    @property
    def _bounds_of_target(self) -> Any:
        """Public bounds of the target: the parameter's, or those of the code book."""
        given, schema = self.target_bounds, self.schema
        return schema.target_bounds if given is None and schema is not None else given

    @property
    def _target(self) -> TargetScale:
        return target_scale(self._bounds_of_target)

    @property
    def _target_may_lack(self) -> bool:
        """Whether targets are read by a code book, which takes whatever is there."""
        return self.schema is not None and self.schema.target_bounds is not None


class LinearRegressorMixin(BoundedTargetMixin, RegressorMixin):  # type: ignore[misc] # scikit-learn is untyped
    """Mixin of linear regressors: a target that is clipped to public bounds.

    A subclass applies :func:`target_scale` to the targets that its query reads, so that
    those of a prior go through it as well.
    """

    _accept_sparse: str | bool = "csr"

    @property
    def _fills_targets(self) -> bool:
        """Whether a record without a target is read as one with the middle of them."""
        # Where the target alone changes, a record that comes to count as nothing moves
        # a gradient by all of it, further than by any other target: so it must be an
        # ordinary one there.
        return self.scenario is not None and not self.scenario.any_records

    def _of_no_target(self) -> Statement | None:
        if not self._target_may_lack:
            return None
        if self._fills_targets:
            return Statement("assume.missing_target_read_as_middle")
        return Statement("assume.missing_target_counts_nothing")

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        if not self._target_may_lack:
            X, y = validate_rows(self, X, y, y_numeric=True)
            # a whole number may be -1, which among codes of classes is none
            return X, y if y.dtype.kind == "f" else y.astype(float), None
        X = validate_rows(self, X)
        y = target_values(self, self.schema, y)
        check_consistent_length(X, y)
        if self._fills_targets:
            y = np.where(np.isnan(y), self._target.centre, y)
        return X, y, None

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
        # not clipped: outside of the bounds a prediction tells no more than its
        # coefficients
        return linear_scores(self, X)

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())


def with_intercept(rows: Matrix, value: float) -> Matrix:
    """Append a constant column to rows, dense or sparse; zero is for none."""
    if not value:
        return rows
    # part of the row: bounds and norms of rows count it in
    column = np.full((rows.shape[0], 1), value)
    if sparse.issparse(rows):
        return sparse.hstack([rows, column], format="csr")
    return np.hstack([rows, column])


@dataclass(frozen=True)
class TargetScale:
    """Map from a target's public bounds to [-1, 1], values outside being clipped.

    One record's target moves a loss by a known amount then, whatever it is.

    Parameters
    ----------
    centre, half : float
        Of the bounds: their middle, and half of the range.
    """

    centre: float = 0.0
    half: float = 1.0

    def __call__(self, y: ArrayLike) -> Floats:
        """Return scaled targets, of the same shape."""
        scaled: Floats = self.scaled(np.asarray(y))
        return scaled

    def scaled(self, y: Any) -> Any:
        """Return scaled targets of an array, or of an expression of an engine."""
        return clipped((y - self.centre) / self.half, -1.0, 1.0)


def target_scale(bounds: tuple[float, float] | None) -> TargetScale:
    """Return the map to [-1, 1] of public bounds ``(low, high)`` of a target.

    Raises
    ------
    ValueError
        If they are not two finite numbers in increasing order.
    """
    # no default, and never read off the targets: their ends are those of two records
    if bounds is None:
        raise ValueError(Statement("target.bounds_missing"))
    ends = [check_real(target_bounds=end) for end in bounds]
    if len(ends) != 2 or not np.all(np.isfinite(ends)) or ends[0] >= ends[1]:
        raise ValueError(Statement("target.bounds_not_ordered_finite", bounds=bounds))
    low, high = ends
    check_interval(low, high, "target_bounds")
    # public numbers, by which released coefficients are mapped back
    return TargetScale((low + high) / 2, (high - low) / 2)
