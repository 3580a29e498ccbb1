"""Private classifiers: labels that are public, and scores that are poor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import ClassifierMixin

from skpuffer._targets import rows_and_labels
from skpuffer.exceptions import Statement
from skpuffer.utils._reading import validate_labels

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from skpuffer.kernel.numbers import Indices

__all__ = [
    "PrivateClassifierMixin",
    "declares_classes",
    "mark_noisy",
    "validate_classes",
]

#: What a certificate says of labels that no public class names.
NO_LABEL = Statement("assume.unknown_label_counts_nothing")


class PrivateClassifierMixin(ClassifierMixin):  # type: ignore[misc] # scikit-learn is untyped
    """Mixin of private classifiers: public class labels, encoded for the query."""

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        return *validate_classes(self, X, y), None

    def _of_no_target(self) -> Statement | None:
        return NO_LABEL if declares_classes(self) else None

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())


def validate_classes(estimator: Any, X: Any, y: Any) -> tuple[Any, Indices]:
    """Validate, set `classes_`, and encode the target as class indices.

    By declared classes a label that is none of them is -1. Without, the labels of the
    table are taken as public, which the certificate says.
    """
    if not declares_classes(estimator):
        return validate_labels(estimator, X, y)
    return rows_and_labels(estimator, X, y)


def declares_classes(estimator: Any) -> bool:
    """Whether public labels are known without those of the table."""
    schema = estimator.schema
    of_schema = schema is not None and schema.classes is not None
    return estimator.classes is not None or of_schema


def mark_noisy(tags: Tags) -> Tags:
    """Say in the tags of an estimator that it scores poorly, at the default budget."""
    for kind in (tags.classifier_tags, tags.regressor_tags):
        # scikit-learn's own checks would else ask for scores that the noise rules out
        # on the small tables they fit
        if kind is not None:
            kind.poor_score = True
    return tags
