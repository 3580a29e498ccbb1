"""Targets of records by public labels or bounds: what is none counts as nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpuffer.exceptions import Statement
from skpuffer.schema._cells import level_places, refuse_ambiguous
from skpuffer.utils._reading import (
    as_numbers,
    ordered_labels,
    read_labels,
    validate_rows,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.schema import Schema
    from skpuffer.utils._types import Array

__all__ = [
    "class_indices",
    "counted",
    "declared_classes",
    "known_targets",
    "label_codes",
    "numeric_targets",
    "rows_and_labels",
    "target_values",
]


def one_class(estimator: Any) -> ValueError:
    """Say that there is one class only, and so nothing to learn."""
    return ValueError(
        Statement("target.one_class_only", estimator=type(estimator).__name__)
    )


def label_codes(estimator: Any, classes: Array, y: ArrayLike) -> Indices:
    """Return the position of each label among public ones, -1 for what is none.

    Parameters
    ----------
    estimator : estimator
        For messages.
    classes : ndarray of shape (n_classes,)
        In their order.
    y : array-like of shape (n_records,)

    Returns
    -------
    ndarray of int of shape (n_records,)

    Raises
    ------
    ValueError
        If there are less than two classes, readers of files do not keep two of them
        apart, or `y` is no list of labels. No label is quoted, and none that is held is
        refused.
    """
    if len(classes) < 2:
        raise one_class(estimator)
    labels = classes.tolist()
    refuse_ambiguous(labels, "classes")
    return np.maximum(level_places(labels, _list_of(estimator, y)), -1)


def declared_classes(estimator: Any) -> Array | None:
    """Return the public labels of a classifier in their order, or None."""
    given, schema = estimator.classes, estimator.schema
    if given is None and schema is not None:
        given = schema.classes
    return None if given is None else ordered_labels(given, "classes")


def class_indices(estimator: Any, X: Any, y: ArrayLike) -> Indices:
    """Return the class of each record of a table that has been read; set `classes_`.

    Parameters
    ----------
    estimator : classifier
        With the parameters `classes` and `schema`. Without public labels by either,
        those of the table are taken as public.
    X : {ndarray, data frame} of shape (n_records, n_columns)
    y : array-like of shape (n_records,)

    Returns
    -------
    ndarray of int of shape (n_records,)
        -1 for a record that counts as nothing.

    Raises
    ------
    ValueError
        As :func:`label_codes`, or if `y` is of another length.
    """
    classes = declared_classes(estimator)
    if classes is None:
        labels = _list_of(estimator, y, missing=False)
        check_classification_targets(labels)
        classes = ordered_labels(labels, "y")
        if len(classes) < 2:
            raise one_class(estimator)
        codes: Indices = np.searchsorted(classes, labels)
    else:
        codes = label_codes(estimator, classes, y)
    check_consistent_length(X, codes)
    # last: an attribute that only a sound target sets
    estimator.classes_ = classes
    return codes


def rows_and_labels(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, Indices]:
    """Validate rows and read labels by declared classes; set `classes_`.

    Parameters
    ----------
    estimator : classifier
        With classes, by its parameter or by its code book.
    X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
    y : array-like of shape (n_records,)

    Returns
    -------
    X : {ndarray, sparse matrix}
    codes : ndarray of int of shape (n_records,)
        -1 for a record that counts as nothing.
    """
    classes = declared_classes(estimator)
    assert classes is not None
    X = validate_rows(estimator, X)
    codes = label_codes(estimator, classes, y)
    check_consistent_length(X, codes)
    # last: an attribute that only a sound target sets
    estimator.classes_ = classes
    return X, codes


def target_values(estimator: Any, schema: Schema, y: ArrayLike) -> Floats:
    """Return numeric targets by a code book, NaN for one that counts as nothing.

    Parameters
    ----------
    estimator : estimator
        For messages.
    schema : Schema
        Whose target is a number.
    y : array-like of shape (n_records,)

    Returns
    -------
    ndarray of shape (n_records,)
        Within the bounds of the target.
    """
    return schema.target_numbers(_list_of(estimator, y))


def numeric_targets(estimator: Any, y: ArrayLike) -> Floats:
    """Return numeric targets, none of which may be missing.

    Parameters
    ----------
    estimator : estimator
        For messages.
    y : array-like of shape (n_records,)

    Returns
    -------
    ndarray of shape (n_records,)
    """
    numbers: Floats = as_numbers(
        _list_of(estimator, y, missing=False),
        partial(Statement, "target.subject_parameter_y"),
    ).astype(float)
    return numbers


def counted(y: Array) -> Booleans | None:
    """Mask of the records that count, or None if all do.

    Parameters
    ----------
    y : ndarray of shape (n_records,)
        Class indices, -1 for none; or numbers, NaN for none.
    """
    mask = np.isfinite(y) & ~((y == -1) if y.dtype.kind == "i" else np.isnan(y))
    return None if mask.all() else mask


def known_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the records that count: those without a target are left out.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_records, n_features)
    y : ndarray of shape (n_records,)

    Returns
    -------
    X, y : of the records that are left
    """
    mask = counted(np.asarray(y))
    return (X, y) if mask is None else (X[mask], y[mask])


def _list_of(estimator: Any, y: Any, missing: bool = True) -> Array:
    """Target as an array of one dimension, of any values."""
    if y is None:
        raise ValueError(
            Statement("target.is_none", estimator_type=type(estimator).__name__)
        )
    values = read_labels(y, missing=missing)
    found: Array = values if values.ndim == 1 else column_or_1d(values, warn=True)
    return found
