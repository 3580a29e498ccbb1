"""Reading of raw tables and targets by a public code book, where nothing raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from skpuffer.schema import Category, Number, Schema
from skpuffer.schema._values import level_codes, numbers
from skpuffer.utils._reading import (
    _as_array,
    is_frame,
    matching_names,
    read_labels,
    read_table,
    row_count,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpuffer.utils._types import Floats, Indices

__all__ = [
    "check_agreement",
    "check_rows",
    "feature_names",
    "pairs_of",
    "public_classes",
    "read_classes",
    "read_numbers",
    "read_target",
    "validate_raw",
]


def validate_raw(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check the form of a raw table, and set or compare its columns.

    Parameters
    ----------
    estimator : estimator
    X : {data frame, array-like} of shape (n, n_features)
    reset : bool
        Whether in a fit.

    Returns
    -------
    data frame or ndarray

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it is no table, or of fewer than two rows in a fit.
    """
    if sparse.issparse(X):
        raise TypeError(
            "The parameter 'X' is a sparse matrix, but "
            f"{type(estimator).__name__} reads raw columns: a feature that was one-hot "
            "encoded is one column of levels here. Leave the encoder out and give "
            "categories={column: [levels]}, or a 'schema'; or pass a dense array, "
            "X.toarray()."
        )
    X = read_table(X)
    if is_frame(X):
        # what a column may hold is the code book's to say, not scikit-learn's
        validate_data(estimator, X, "no_validation", reset=reset, skip_check_array=True)
    else:
        X = validate_data(
            estimator,
            X,
            "no_validation",
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
    check_rows(estimator, X, reset=reset)
    return X


def check_rows(estimator: Any, X: Any, *, reset: bool) -> None:
    """Refuse tables of no rows, and in a fit of one."""
    n = row_count(X)
    if n < (2 if reset else 1):
        raise ValueError(
            f"Found array with {n} sample(s) (shape={X.shape}) while a minimum of "
            f"{2 if reset else 1} is required by {type(estimator).__name__}: nothing "
            "of one record is hidden among others."
        )


def feature_names(X: Any) -> list[Any]:
    """Names of the columns of a table, or their positions."""
    names = matching_names(X)
    if names is None and is_frame(X):
        names = tuple(X.columns)
    return list(range(X.shape[1]) if names is None else names)


def read_target(X: Any, y: Any) -> Any:
    """Return the target as one column, as long as the table.

    Raises
    ------
    ValueError
        If there is none, or it is of another length.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: the parameter 'y' "
            "must hold a target for each record."
        )
    if sparse.issparse(y):
        raise TypeError("The parameter 'y' is a sparse matrix. Give y.toarray().")
    y = _as_array(y, "y")
    if y.ndim != 1:
        y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    return y


def public_classes(classes: Any, schema: Schema | None) -> NDArray[Any] | None:
    """Return the public labels in their order; None if no parameter says them.

    Parameters
    ----------
    classes : array-like or None
    schema : Schema or None

    Raises
    ------
    ValueError
        If there are fewer than two or the two disagree.
    """
    said = None if schema is None else schema.classes
    if schema is not None and schema.target is not None and said is None:
        raise ValueError(
            f"The target {schema.target!r} of the parameter 'schema' is a number, but "
            "a classifier needs classes: list its levels."
        )
    if classes is None and said is None:
        return None
    labels = _ordered(said if classes is None else classes)
    if classes is not None and said is not None and {*labels.tolist()} != {*said}:
        raise ValueError(
            f"The parameters 'classes' ({classes!r}) and 'schema' ({list(said)!r}) "
            "disagree: leave one out."
        )
    if labels.size < 2:
        raise ValueError(
            "The parameter 'classes' must name at least 2 classes. Got one class only."
        )
    return labels


def read_classes(labels: NDArray[Any] | None, y: Any) -> tuple[NDArray[Any], Indices]:
    """Return the labels and the class of each record, -1 where it has none.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,) or None
        Public labels; None takes those of the target for public.
    y : array-like of shape (n,)

    Returns
    -------
    labels : ndarray of shape (n_classes,)
    codes : ndarray of int of shape (n,)
    """
    if labels is None:
        y = read_labels(y)
        check_classification_targets(y)
        labels = _ordered(y)
        if labels.size < 2:
            raise ValueError(
                "A classifier needs at least 2 classes; there is one class only. Give "
                "all labels as classes=[...]."
            )
        return labels, np.searchsorted(labels, y)
    # read as a column of the table is: what is no label counts as nothing
    column = Category(tuple(labels.tolist()), missing_level=True)
    codes = level_codes(column, np.asarray(y))
    return labels, np.where(codes < labels.size, codes, -1)


def read_numbers(bounds: tuple[float, float], y: Any) -> Floats:
    """Return targets in [-1, 1], NaN where there is none.

    Parameters
    ----------
    bounds : (float, float)
        Public; what is outside of them is clipped.
    y : array-like of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    low, high = bounds
    values, missing = numbers(Number(low, high), np.asarray(y))
    middle, half = (low + high) / 2, (high - low) / 2
    return np.where(missing, np.nan, np.clip((values - middle) / half, -1.0, 1.0))


def _ordered(labels: Any) -> NDArray[Any]:
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        pass
    raise ValueError(
        "The parameter 'classes' or the target mixes labels of types that have no "
        "order, such as text and numbers. Make them of one type."
    )


def check_agreement(
    schema: Schema, bounds: Any, categories: Any, amounts: Sequence[Any]
) -> None:
    """Refuse what parameters say of columns where the schema says something else.

    Raises
    ------
    ValueError
    """
    numeric = [n for n in schema.names if isinstance(schema[n], Number)]
    said: dict[str, dict[Any, Any]] = {"bounds": {}, "categories": {}, "amounts": {}}
    if isinstance(bounds, dict):
        said["bounds"] = {n: tuple(map(float, pair)) for n, pair in bounds.items()}
    elif bounds is not None:
        low, high = (np.broadcast_to(end, len(numeric)) for end in bounds)
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        said["bounds"] = dict(zip(numeric, pairs, strict=True))
    said["categories"] = {n: tuple(levels) for n, levels in (categories or {}).items()}
    said["amounts"] = dict.fromkeys(amounts, True)
    for parameter, entries in said.items():
        for name, entry in entries.items():
            if name not in schema:
                raise ValueError(
                    f"The parameter {parameter!r} names the column {name!r}, which the "
                    f"'schema' lacks: it has {list(schema.names)!r}."
                )
            column = schema[name]
            held: Any = None
            if isinstance(column, Category) and parameter == "categories":
                held = column.levels
            elif isinstance(column, Number) and parameter == "bounds":
                held = (float(column.low), float(column.high))
            elif isinstance(column, Number) and parameter == "amounts":
                held = column.amount
            if held != entry:
                raise ValueError(
                    f"The parameters {parameter!r} and 'schema' disagree on the column "
                    f"{name!r}: leave {parameter!r} out, or change the schema."
                )


def pairs_of(interactions: Any, names: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the positions of features that interact.

    Parameters
    ----------
    interactions : {'all', None} or list of pairs of names
    names : sequence
        Of the features.

    Returns
    -------
    tuple of (int, int)

    Raises
    ------
    ValueError
        If a pair names a feature that is not there, one twice, or comes twice.
    """
    if interactions is None:
        return ()
    n = len(names)
    if isinstance(interactions, str):
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))
    found = []
    for pair in interactions:
        unknown = [name for name in pair if name not in names]
        if unknown:
            raise ValueError(
                f"The parameter 'interactions' names {unknown!r}, which are no "
                f"features: {list(names)!r}."
            )
        i, j = sorted(list(names).index(name) for name in pair)
        if i == j or (i, j) in found:
            raise ValueError(
                "The parameter 'interactions' must be of pairs of two features, each "
                f"pair once. Got {pair!r}."
            )
        found.append((i, j))
    return tuple(found)
