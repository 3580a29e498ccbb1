"""Mixin of linear regressors, the intercept's column, and the scale of a target."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from skpuffer._template._classes import linear_scores, mark_noisy
from skpuffer._template._lazy_tables import clipped, number
from skpuffer._template._reading import target_values
from skpuffer.exceptions import (
    ScaleWarning,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_real
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.utils._bounds import check_interval
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import COLLECT, validate_rows
from skpuffer.utils._silence import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer._template._lazy_tables import LazyColumn, LazyTable
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array, Matrix, Table


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
        """Predict the target of each row; a secret column is ignored."""
        # not clipped: outside of the bounds a prediction tells no more than its
        # coefficients
        return linear_scores(self, X)

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())


def lazy_regression(
    self: Any, table: LazyTable, y: Any, encoding: Any
) -> tuple[list[LazyColumn], None, tuple[str, ...]]:
    """Return features and target of a lazy data frame, and names of the former.

    A method of regressions.
    """
    if encoding is not None:
        raise unsupported_error("linear.schema_on_lazy_table", collect=COLLECT)
    # of an array `in` would compare each entry
    known = isinstance(y, str) and y in table.names
    if not known or len(table.names) < 2:
        raise value_error("linear.lazy_target_not_a_column", names=list(table.names))
    names = tuple(name for name in table.names if name != y)
    return [number(table, name) for name in (*names, y)], None, names


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
    """Map from a target's public bounds to [-1, 1], values outside being clipped."""

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
    """Return the map to [-1, 1] of public bounds ``(low, high)`` of a target."""
    # no default, and never read off the targets: their ends are those of two records
    if bounds is None:
        raise value_error("target.bounds_missing")
    ends = [check_real(target_bounds=end) for end in bounds]
    if len(ends) != 2 or not np.all(np.isfinite(ends)) or ends[0] >= ends[1]:
        raise value_error("target.bounds_not_ordered_finite", bounds=bounds)
    low, high = ends
    check_interval(low, high, "target_bounds")
    # public numbers, by which released coefficients are mapped back
    return TargetScale((low + high) / 2, (high - low) / 2)


# -- A word where public facts say that rows are of another scale than `data_norm` -----


#: By so much the length of rows may miss `data_norm`: what is cut off, or wasted.
_FAR = 10.0

#: By so much one column may be wider than most.
_APART = 100.0


def scale_advice(low: Floats, high: Floats, data_norm: float) -> Statement | None:
    """Return what is wrong with public bounds of columns, with the remedy, or None.

    A row that is uniform within the bounds has the mean squared length ``|c|**2 +
    |h|**2 / 3``, with c their middle and h their half width.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    usual = math.sqrt(float(middle @ middle + half @ half / 3))
    longest = float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))
    remedy = Statement("linear.remedy_scale_by_bounds")
    if usual > _FAR * data_norm:
        return Statement(
            "linear.rows_longer_than_data_norm", usual=usual / data_norm, remedy=remedy
        )
    if longest < data_norm / _FAR:
        return Statement(
            "linear.rows_shorter_than_data_norm", longest=longest, data_norm=data_norm
        )
    wide = half[half > 0]
    if len(wide) > 2 and wide.max() > _APART * np.median(wide):
        return Statement(
            "linear.one_column_too_wide",
            ratio=wide.max() / np.median(wide),
            remedy=remedy,
        )
    return None


def warn_of_scale(estimator: Any, task: Task) -> None:
    """Warn where public facts say that rows are far from `data_norm`."""
    norm = getattr(estimator, "data_norm", None)
    if norm is None or isinstance(norm, str) or task.scenario.needs_empirical:
        return
    if estimator.schema is not None:
        # columns are scaled by their bounds, and the rows' norm is known
        longest = float(getattr(task.context.feature_map, "norm", math.inf))
        if longest < norm / _FAR:
            _say(
                estimator,
                Statement(
                    "linear.schema_rows_below_data_norm", longest=longest, norm=norm
                ),
            )
        return
    bounds = task.scenario.declared_bounds(task.context)
    if bounds is not None:
        low, high = (np.asarray(ends, float) for ends in bounds)
        found = scale_advice(low, high, float(norm))
        if found is not None:
            _say(estimator, found)


def _say(estimator: Any, found: Statement) -> None:
    warn(
        Statement(
            "linear.scale_found_by_bounds",
            estimator_type=type(estimator).__name__,
            found=found,
        ),
        ScaleWarning,
    )


# -- rows and records as a linear model reads them, and how far they move --------------


@dataclass(frozen=True)
class ModelRows:
    """Map from raw rows to model rows: clipped, with the intercept's column.

    Parameters
    ----------
    data_norm : float
        Bound of the l2 norm of a raw row.
    intercept : float
        Value of the intercept's column; zero for none.
    unit : float, default=1.0
        By which clipped rows are divided.
    """

    data_norm: float
    intercept: float
    unit: float = 1.0

    @property
    def radius(self) -> float:
        """Largest l2 norm of a model row."""
        return math.hypot(self.data_norm / self.unit, self.intercept)

    def move(self, gaps: Floats) -> Floats:
        """Sensitivity of model rows, in l2, to moves of their features."""
        # Clipping projects onto a ball, which moves no two rows apart, and two rows of
        # a ball are no further apart than it is wide. The intercept's column does not
        # move.
        moves = np.minimum(np.linalg.norm(gaps, axis=1), 2 * self.data_norm)
        scaled: Floats = moves / self.unit
        return scaled

    def __call__(self, X: Matrix) -> Matrix:
        rows = clip_rows(X, self.data_norm)
        if self.unit != 1:
            rows = rows / self.unit
        return with_intercept(rows, self.intercept)


@dataclass(frozen=True)
class ModelRecord(ABC):
    """Map from a record to the space in which its move is measured."""

    rows: ModelRows

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    @abstractmethod
    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""

    def given(self, y: ArrayLike) -> Array:
        """Return targets as they are read: codes of classes, -1 for none."""
        return np.asarray(y)

    def targets(self, y: ArrayLike) -> Array:
        """Return the targets that the loss reads."""
        return np.asarray(y)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points to moves of the features, targets staying."""
        return self.rows.move(gaps)


@dataclass(frozen=True)
class SignedRecord(ModelRecord):
    """A record of two classes as z = y x, with y = ±1: all that its margin reads."""

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        signed: Floats = np.asarray(self.rows(X)) * (2.0 * np.asarray(y) - 1.0)[:, None]
        return signed


@dataclass(frozen=True)
class LabelledRecord(ModelRecord):
    """A record of several classes: x, and its label as a block of coordinates.

    Parameters
    ----------
    label_distance : float
        How far apart records of different labels are at least.
    """

    n_classes: int
    label_distance: float

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        # two unit vectors are sqrt(2) apart
        labels = np.eye(self.n_classes)[np.asarray(y)]
        return np.hstack(
            [np.asarray(self.rows(X)), labels * (self.label_distance / 2**0.5)]
        )


@dataclass(frozen=True)
class TargetRecord(ModelRecord):
    """A record of a regression: x, and its scaled target beside it."""

    target: TargetScale

    def given(self, y: ArrayLike) -> Array:
        """Return targets as they are read: numbers, NaN for none."""
        return np.asarray(y, dtype=float)

    def targets(self, y: ArrayLike) -> Array:
        """Return the targets that the loss reads, in [-1, 1]."""
        return self.target(y)

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        return np.hstack([np.asarray(self.rows(X)), self.targets(y)[:, None]])
