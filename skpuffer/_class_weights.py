"""Public weights of classes: what a record counts in training, by its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_positive
from skpuffer.utils._sklearn import StrOptions

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array

__all__ = ["ClassWeightMixin", "check_class_weight", "class_weights"]

#: By so much public shares may miss adding up to one: they are rounded.
_ROUNDED = 0.01


def check_class_weight(class_weight: Any, class_shares: Any) -> None:
    """Check weights and shares as far as they can be without the classes.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None
    class_shares : dict or None

    Raises
    ------
    TypeError
        If a weight or a share is not a number.
    ValueError
        If they are not by label, not positive, or if weights would have to be counted.
    """
    for name, given in (("class_weight", class_weight), ("class_shares", class_shares)):
        if name == "class_weight" and isinstance(given, str) and given == "balanced":
            continue
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(
                Statement(
                    "weights.dict_not_public_numbers",
                    name=name,
                    given_type=type(given).__name__,
                )
            )
        for value in (given or {}).values():
            check_positive(**{name: value})
    if class_weight != "balanced":
        if class_shares is not None:
            raise ValueError(Statement("weights.class_shares_without_balanced"))
        return
    if class_shares is None:
        raise ValueError(Statement("weights.balanced_counts_private_labels"))
    if abs(sum(class_shares.values()) - 1) > _ROUNDED:
        raise ValueError(
            Statement(
                "weights.class_shares_not_one", class_shares=sum(class_shares.values())
            )
        )


def class_weights(
    class_weight: Any, class_shares: Any, classes: Array
) -> Floats | None:
    """Return the weight of each class, None where nothing is weighted.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None
        By label; 'balanced' is ``1 / (n_classes * share)``, as in scikit-learn with
        public shares in the place of counts. A label that a dict leaves out has one.
    class_shares : dict or None
        Public share of each class, for 'balanced'.
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
    balanced = class_weight == "balanced"
    name = "class_shares" if balanced else "class_weight"
    given = class_shares if balanced else class_weight
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(
            Statement("weights.class_unknown", name=name, unknown=unknown[0])
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


class ClassWeightMixin:
    """Mixin of classifiers with the parameters `class_weight` and `class_shares`."""

    class_weight: Any
    class_shares: Any
    classes_: Array

    _parameter_constraints: dict[str, Any] = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "class_shares": [dict, None],
    }

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)  # type: ignore[misc] # of the template
        check_class_weight(self.class_weight, self.class_shares)

    def _class_weights(self) -> Floats | None:
        return class_weights(self.class_weight, self.class_shares, self.classes_)
