"""Raw tables, whose cells are a code book's to read, whatever they hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scipy import sparse
from sklearn.utils.validation import validate_data

from skpuffer.exceptions import type_error, value_error
from skpuffer.utils._reading import (
    column_names,
    is_frame,
    matching_names,
    object_rows,
    read_table,
    row_count,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer.releases import PublicContext
    from skpuffer.utils._types import Table


@dataclass(frozen=True)
class ComposedMap:
    """Two public maps of a table, one after the other.

    Parameters
    ----------
    first, then : callable
    """

    first: Callable[[Any], Any]
    then: Callable[[Any], Any]

    def __call__(self, X: Table) -> Any:
        """Map a table by both."""
        return self.then(self.first(X))


def mapped_context(
    context: PublicContext, code: Callable[[Any], Any], n_columns: int
) -> PublicContext:
    """Return the context of a release that reads a table by one more public map."""
    before = context.feature_map
    # a prior's rows are read as the private ones are
    whole = code if before is None else ComposedMap(before, code)
    return replace(context, feature_map=whole, n_features=n_columns)


def read_raw(estimator: Any, X: Table, *, reset: bool) -> Any:
    """Read a table without looking at its cells; set or compare its columns."""
    if sparse.issparse(X):
        raise type_error(
            "table.sparse_for_raw_columns", estimator_type=type(estimator).__name__
        )
    X = read_table(object_rows(X))
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
            ensure_min_samples=1,
        )
    check_records(estimator, X, 2 if reset else 1)
    return X


def check_records(estimator: Any, X: Any, least: int = 2) -> None:
    """Refuse tables of fewer records than this."""
    check_size(estimator, row_count(X), least)


def check_size(estimator: Any, n: int, least: int = 2) -> None:
    """Refuse fewer records than this."""
    if n < least:
        # scikit-learn's own checks read these words
        raise value_error(
            "table.too_few_samples",
            n=n,
            least=least,
            estimator_type=type(estimator).__name__,
        )


def column_keys(X: Any) -> list[Any]:
    """Names of the columns of a table, or their positions."""
    names = matching_names(X) or column_names(X)
    return list(range(X.shape[1]) if names is None else names)
