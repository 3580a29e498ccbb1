"""Public weights of classes: what a record counts in training, by its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_positive

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array

__all__ = ["CLASS_CONSTRAINTS", "check_class_weight", "class_weights"]

#: Parameters of trained classifiers, as scikit-learn's validation reads them.
CLASS_CONSTRAINTS: dict[str, Any] = {
    "classes": ["array-like", None],
    # a text passes here, to be refused by `check_class_weight` with the remedy
    "class_weight": [dict, tuple, str, None],
}

#: By so much public shares may miss adding up to one: they are rounded.
_ROUNDED = 0.01


def _read(class_weight: Any) -> tuple[bool, Any]:
    """Return whether numbers by label are shares, and these numbers."""
    if isinstance(class_weight, tuple | str):
        kind, *shares = (
            (class_weight,) if isinstance(class_weight, str) else class_weight
        )
        if kind == "balanced":
            if len(shares) != 1:
                raise ValueError(Statement("weights.balanced_counts_private_labels"))
            return True, shares[0]
    return False, class_weight


def check_class_weight(class_weight: Any) -> None:
    """Check weights and shares as far as they can be without the classes.

    Parameters
    ----------
    class_weight : dict, ('balanced', dict) or None

    Raises
    ------
    TypeError
        If a weight or a share is not a number.
    ValueError
        If they are not by label, not positive, or if weights would have to be counted.
    """
    if class_weight is None:
        return
    balanced, given = _read(class_weight)
    if not isinstance(given, Mapping):
        raise ValueError(
            Statement(
                "weights.dict_not_public_numbers",
                name="class_weight",
                given_type=type(given).__name__,
            )
        )
    for value in given.values():
        check_positive(class_weight=value)
    if balanced and abs(sum(given.values()) - 1) > _ROUNDED:
        raise ValueError(
            Statement("weights.class_shares_not_one", class_shares=sum(given.values()))
        )


def class_weights(class_weight: Any, classes: Array) -> Floats | None:
    """Return the weight of each class, None where nothing is weighted.

    Parameters
    ----------
    class_weight : dict, ('balanced', dict) or None
        By label. ``('balanced', shares)`` is ``1 / (n_classes * share)``, as in
        scikit-learn with public shares in the place of counts. A label that a dict of
        weights leaves out has one.
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_classes,) or None

    Raises
    ------
    ValueError
        If a label is none of the classes, or has no share.
    """
    if class_weight is None:
        return None
    labels = classes.tolist()
    balanced, given = _read(class_weight)
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(
            Statement("weights.class_unknown", name="class_weight", unknown=unknown[0])
        )
    if balanced:
        # of the shares that were given: which classes there are may be the table's
        if len(given) < len(labels):
            raise ValueError(
                Statement(
                    "weights.class_shares_incomplete",
                    n_labels=len(labels),
                    n_given=len(given),
                )
            )
        return np.array([1 / (len(labels) * given[label]) for label in labels])
    return np.array([float(given.get(label, 1.0)) for label in labels])
