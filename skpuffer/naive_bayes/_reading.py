"""Reading of classes and of raw tables: what is not declared counts as nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from skpuffer.schema import Category, Schema
from skpuffer.utils._reading import (
    _as_array,
    is_frame,
    ordered_labels,
    read_labels,
    read_table,
    row_count,
)

if TYPE_CHECKING:
    from skpuffer.releases import PublicContext
    from skpuffer.utils._types import Array, Indices, Table

__all__ = ["check_records", "composed_context", "read_raw", "read_target"]


@dataclass(frozen=True)
class Composed:
    """Two public maps of a table, one after the other."""

    first: Any
    then: Any

    def __call__(self, X: Any) -> Any:
        """Return the table, mapped by both."""
        return self.then(self.first(X))


def composed_context(context: PublicContext, binning: Any) -> PublicContext:
    """Return the context of a release that reads the cells of a table.

    Parameters
    ----------
    context : PublicContext
    binning : Binning

    Returns
    -------
    PublicContext
    """
    before = context.feature_map
    code = binning if before is None else Composed(before, binning)
    return replace(context, feature_map=code, n_features=len(binning.n_cells))


def check_records(X: Any) -> None:
    """Refuse tables of fewer than two records."""
    n = row_count(X)
    if n < 2:
        raise ValueError(
            f"The parameter 'X' holds {n} sample(s), n_samples={n}: at least 2 records "
            "are needed, as nothing of one is hidden among others."
        )


def read_raw(estimator: Any, X: Table, *, reset: bool) -> Any:
    """Read a table whose cells a code book will read, whatever they hold.

    Parameters
    ----------
    estimator : estimator
        Whose number and names of features are set or compared.
    X : {data frame, array-like} of shape (n, n_columns)
    reset : bool
        Whether in a fit.

    Returns
    -------
    {data frame, ndarray}
    """
    X = read_table(X)
    if is_frame(X):
        # column by column, each of its own type
        validate_data(estimator, X, "no_validation", reset=reset, skip_check_array=True)
        return X
    return validate_data(
        estimator, X, "no_validation", dtype=None, ensure_all_finite=False, reset=reset
    )


def read_target(estimator: Any, X: Any, y: Any) -> tuple[Array, Indices]:
    """Return the public labels, and the class of each record: -1 where it has none.

    The labels are those of the parameter `classes` or of the schema's target. Only
    where neither names any are the labels of `y` taken as public.

    Parameters
    ----------
    estimator : classifier
        With the parameters `schema` and `classes`.
    X : array of shape (n, n_columns)
    y : array-like of shape (n,)

    Returns
    -------
    labels : ndarray of shape (n_classes,)
        In their order.
    codes : ndarray of int of shape (n,)

    Raises
    ------
    ValueError
        If there are fewer than two classes, or the two parameters disagree.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )
    y = _as_array(y, "y")
    if y.ndim != 1:
        y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    declared = _declared(estimator)
    labels = declared
    if declared is None:
        y = read_labels(y)
        check_classification_targets(y)
        labels = ordered_labels(y, "y")
    if len(labels) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least 2 classes; there is one class "
            "only. Give all labels as classes=[...]."
        )
    if declared is None:
        return labels, np.searchsorted(labels, y)
    # types are public, as those of columns are; which labels occur is not
    if labels.dtype.kind in "US" and y.dtype.kind in "fiu" and _no_number(labels):
        raise ValueError(
            f"The public classes {labels.tolist()!r} are text and the target holds "
            "numbers: write the classes as the target has them."
        )
    missing = ()
    schema = estimator.schema
    if schema is not None and schema.classes is not None:
        missing = schema[schema.target].missing
    book = Schema({0: Category(tuple(labels.tolist()), missing=missing)}, target=0)
    return labels, book.class_codes(y)


def _declared(estimator: Any) -> Any:
    """Public labels of the parameters in their order, or None."""
    schema, given = estimator.schema, estimator.classes
    of_schema = None
    if schema is not None and schema.target is not None:
        if schema.classes is None:
            raise ValueError(
                f"The target {schema.target!r} of the parameter 'schema' is a number, "
                f"but {type(estimator).__name__} needs classes: list its levels."
            )
        of_schema = ordered_labels(np.asarray(schema.classes), "schema")
    if given is None:
        return of_schema
    labels = ordered_labels(given, "classes")
    numbers = labels.dtype.kind == "f"
    if np.any(pd.isna(labels)) or (numbers and not np.all(np.isfinite(labels))):
        raise ValueError(
            "The parameter 'classes' lists a missing or an infinite label, which no "
            "record can have."
        )
    if of_schema is not None and labels.tolist() != of_schema.tolist():
        raise ValueError(
            f"The parameters 'classes' ({labels.tolist()!r}) and 'schema' "
            f"({of_schema.tolist()!r}) disagree: leave one out."
        )
    return labels


def _no_number(labels: Array) -> bool:
    try:
        labels.astype(float)
    except ValueError:
        return True
    return False
