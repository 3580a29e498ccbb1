"""What estimators are given: checked as scikit-learn does, with our own advice."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from skpuffer.utils._reading import all_finite, read_labels, read_numbers

__all__ = ["refuse_arguments", "validate_labels", "validate_rows"]


def refuse_arguments(estimator, arguments):
    """Refuse keyword arguments that `fit` does not take, and weights with the reason.

    They are not in the signature, by which scikit-learn finds out what `fit` takes.
    """
    for name in arguments:
        why = "."
        if name == "sample_weight":
            why = (
                ": a record that weighs more would move the result further than its "
                "noise hides. Fit without weights."
            )
        # scikit-learn's ensembles read these words
        raise TypeError(
            f"{type(estimator).__name__}.fit() got an unexpected keyword argument "
            f"{name!r}{why}"
        )


def validate_rows(estimator, X, *y, **options):
    """Validate as scikit-learn does, except for its advice on missing values.

    Parameters
    ----------
    estimator : private estimator
    X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
    *y : array-like of shape (n_records,)
        The target, if there is one.
    **options : dict
        Of :func:`sklearn.utils.validation.validate_data`.

    Returns
    -------
    X : {ndarray, sparse matrix}, or a tuple of it and `y`

    Raises
    ------
    ValueError
        As there, but quoting nothing. Of NaN the remedy is named that does not leak.
    """
    options = {"dtype": [np.float64, np.float32]} | options
    options |= {"accept_sparse": estimator._accept_sparse, "ensure_all_finite": False}
    X = read_numbers(X)
    y = [read_labels(v, numeric=options.get("y_numeric", False)) for v in y]
    checked = validate_data(estimator, X, *y, **options)
    if not all_finite(checked[0] if y else checked):
        name = type(estimator).__name__
        raise ValueError(
            f"The parameter 'X' contains NaN or infinity, which {name} does not take. "
            "Fill missing values by public rows: compose.PublicPreprocessing("
            f"SimpleImputer(), {name}(...), reference=<public rows>). An imputer "
            "before it in a pipeline would learn from the private rows, and leak."
        )
    return checked


def validate_labels(estimator, X, y):
    """Validate, set `classes_`, and encode the target as class indices."""
    X, y = validate_rows(estimator, X, y)
    given = estimator.classes
    present = _ordered(y, "y")
    check_classification_targets(y)
    classes = present if given is None else _ordered(given, "classes")
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least 2 classes; there is one class "
            "only. Give all labels as classes=[...]."
        )
    if not set(present.tolist()) <= set(classes.tolist()):
        raise ValueError(
            f"The target has labels that the parameter 'classes' does not name "
            f"({given!r})."
        )
    estimator.classes_ = classes
    return X, np.searchsorted(classes, y)


def _ordered(labels, name):
    """Distinct labels in their order."""
    try:
        return np.unique(labels)
    except TypeError:
        pass
    raise ValueError(
        f"The parameter {name!r} mixes labels of types that have no order, such as "
        "text and numbers. Make them of one type."
    )
