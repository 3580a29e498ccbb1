"""Steps with nothing left to learn, one after the other, as one fixed map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from skpuffer._template._steps import is_known
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement
from skpuffer.utils._reading import bounded, is_frame, to_pandas
from skpuffer.utils._sklearn import safe_indexing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.utils import Tags

    from skpuffer.utils._types import Array


def foreign_frozen(node: Any) -> Any:
    """Return steps that need no fit, such that foreign ones among them get none.

    A step that says it needs no fit may still keep what it is given.
    """
    if node is None or isinstance(node, str | FrozenEstimator):
        return node
    if type(node) is Pipeline:
        steps = [(name, foreign_frozen(one)) for name, one in node.steps]
        return _holding(node, steps=steps, memory=None)
    if type(node) is FeatureUnion:
        parts = [(name, foreign_frozen(one)) for name, one in node.transformer_list]
        return _holding(node, transformer_list=parts)
    if type(node) is ColumnTransformer:
        named = [
            (name, foreign_frozen(one), columns)
            for name, one, columns in node.transformers
        ]
        return _holding(
            node, transformers=named, remainder=foreign_frozen(node.remainder)
        )
    return node if is_known(node) else FrozenEstimator(node)


def _holding(node: Any, **parts: Any) -> Any:
    """A copy of a composition with other parts, and the settings of its own."""
    fresh = clone(node)
    for name, value in parts.items():
        setattr(fresh, name, value)
    return fresh


def as_read(step: Any, rows: Any) -> Any:
    """Return rows as a fitted step read them; behind others, as an array."""
    private = isinstance(step, PrivateEstimatorMixin)
    named = hasattr(step, "feature_names_in_") or hasattr(step, "feature_map_")
    if not private or named:
        return rows
    if hasattr(rows, "toarray"):
        return rows.toarray()
    return to_pandas(rows).to_numpy() if is_frame(rows) else rows


class _FixedStep(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """Transformer with nothing to learn."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class ColumnSelection(_FixedStep):
    """Columns of a table, as a step.

    Parameters
    ----------
    columns : str, int, slice, list or callable
        As :class:`~sklearn.compose.ColumnTransformer` has them.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def transform(self, X: Any) -> Any:
        """Return the columns."""
        return safe_indexing(X, self.columns, axis=1)


class Chain(_FixedStep):
    """Fitted steps, one after the other, as one transformer that learns nothing.

    Parameters
    ----------
    steps : sequence of (str, estimator)
        Fitted, each with a `transform`.
    """

    def __init__(self, steps: Sequence[tuple[str, Any]] = ()) -> None:
        self.steps = steps

    def transform(self, X: Any) -> Any:
        """Pass rows through all steps."""
        for _, step in self.steps:
            X = bounded(step.transform(as_read(step, X)), mapped=True)
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names that the last step gives."""
        names: Any = input_features
        for name, step in self.steps:
            if not hasattr(step, "get_feature_names_out"):
                raise AttributeError(
                    Statement(
                        "pipeline.step_without_column_names",
                        name=name,
                        step_type=type(step).__name__,
                    )
                )
            names = step.get_feature_names_out(names)
        found: Array = names
        return found
