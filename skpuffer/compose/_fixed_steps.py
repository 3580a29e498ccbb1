"""Steps with nothing left to learn, one after the other, as one fixed map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.utils._reading import is_frame, to_pandas
from skpuffer.utils._sklearn import safe_indexing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.utils import Tags

    from skpuffer.utils._types import Array

__all__ = ["Chain", "ColumnSelection", "as_read"]


def as_read(step: Any, rows: Any) -> Any:
    """Return rows as a fitted step read them: a private one behind others, as an array.

    Parameters
    ----------
    step : estimator
        Fitted.
    rows : {data frame, array-like, sparse matrix} of shape (n, n_columns)

    Returns
    -------
    rows : the same, or ndarray
    """
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
        """Do nothing.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self : object
        """
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
        """Return the columns.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)

        Returns
        -------
        the same kind, of shape (n, n_selected)
        """
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
        """Pass rows through all steps.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)

        Returns
        -------
        {data frame, ndarray, sparse matrix} of shape (n, n_features)
        """
        for _, step in self.steps:
            X = step.transform(as_read(step, X))
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names that the last step gives.

        Parameters
        ----------
        input_features : array-like of str, default=None

        Returns
        -------
        ndarray of str
        """
        names: Any = input_features
        for name, step in self.steps:
            if not hasattr(step, "get_feature_names_out"):
                raise AttributeError(
                    f"The step {name!r} ({type(step).__name__}) does not say what its "
                    "columns are called."
                )
            names = step.get_feature_names_out(names)
        found: Array = names
        return found
