"""Query of a training table: a vector read off an estimator fitted on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from skpuffer._vector_query import VectorQuery
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.utils._silence import muted
from skpuffer.utils._unquoted import unquoted

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Matrix

__all__ = ["FittedQuery", "is_settable"]

#: What is released of a fitted estimator: attributes by name, or a function of it.
Query: TypeAlias = str | Sequence[str] | Callable[[Any], Any]

#: Seed of an estimator that was given none. Public: it has no part in the noise.
PUBLIC_SEED = 0

#: What a fit notes of the machine rather than of the data, and predictions read.
ENVIRONMENT = ("_n_threads",)


class FittedQuery(VectorQuery):
    """Query that fits a clone of an estimator and reads a vector off it.

    Every fit runs from the same public seed, so that two tables differ in nothing but
    their records, and NumPy's global state is not drawn from. Nothing hears of it, for
    what is fitted carries no noise.

    Parameters
    ----------
    estimator : estimator
    query : str, list of str or callable
        Attributes of the fitted estimator, or a function of it.
    classes : ndarray of shape (n_classes,) or None
        Labels by class index, for a classifier.
    dim : int or None
        Number of coordinates of the vector, if known.
    sort : bool, default=False
        Whether rows are put into one order; see :func:`sorted_rows`.

    Attributes
    ----------
    environment : dict
        Attributes of the fitted estimator that speak of the machine only.
    """

    _parameter, _source = "query", "fitted estimator"

    def __init__(
        self,
        estimator: BaseEstimator,
        query: Query,
        classes: Array | None,
        dim: int | None,
        sort: bool = False,
    ):
        super().__init__(dim)
        self._estimator = _seeded(estimator)
        self._query, self._classes, self._sort = query, classes, sort
        self._needs_target = get_tags(estimator).target_tags.required
        self.environment: dict[str, Any] = {}

    @property
    def names(self) -> list[str] | None:
        """Attributes asked for, or None for a function."""
        if callable(self._query):
            return None
        return [self._query] if isinstance(self._query, str) else list(self._query)

    def content(self) -> tuple[Any, ...]:
        """Return all that makes up the query: equal ones give equal vectors."""
        return self._estimator, self._query, self._classes, self._dim, self._sort

    def __call__(self, X: Matrix, y: Array | None) -> Floats:
        """Return the stacked vector of a fit on one table.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_records, n_features)
        y : ndarray or None
            Class indices, for a classifier.

        Returns
        -------
        ndarray of shape (dim,)

        Raises
        ------
        ValueError
            If the arrays are not there, not finite numbers, or of another shape than
            on the table before, or if the table has no record of a class.
        """
        if y is None and self._needs_target:
            raise ScenarioError(
                Statement(
                    "query.target_lacking_in_draws",
                    estimator_type=type(self._estimator).__name__,
                )
            )
        if self._classes is not None and y is not None:
            self._check_labels(y)
            y = self._classes[y]
        # A fresh clone each time: with warm starts, the first table would leave a trace
        # in the query of the second. Errors of foreign code are raised without values.
        name = type(self._estimator).__name__
        fitted = unquoted(name, clone(self._estimator).fit, X, y)
        self._check_classes(fitted)
        parts = self._parts(fitted)
        if self._sort:
            parts = sorted_rows([self._as_array(part) for part in parts])
        vector = self._stacked(parts)
        self.environment = {n: v for n, v in vars(fitted).items() if n in ENVIRONMENT}
        return vector

    def _check_labels(self, y: Array) -> None:
        """Refuse a table of one class, of which most classifiers learn nothing."""
        assert self._classes is not None
        # before the fit, whose own words would be withheld
        if len(self._classes) > 1 and len(y) > 1 and np.all(y == y[0]):
            raise self._without_a_class(1)

    def _check_classes(self, fitted: Any) -> None:
        """Refuse a table without records of a class: parameters would lack its rows."""
        # The classes are public; which of them occur in this table is not.
        seen = getattr(fitted, "classes_", None)
        if self._classes is None or seen is None or len(seen) == len(self._classes):
            return
        raise self._without_a_class(len(seen))

    def _without_a_class(self, n_seen: int) -> ValueError:
        assert self._classes is not None
        return ValueError(
            Statement(
                "query.table_has_one_class"
                if n_seen == 1
                else "query.table_lacks_a_class",
                n_seen=n_seen,
                n_classes=len(self._classes),
            )
        )

    def _parts(self, fitted: Any) -> list[Any]:
        """Attributes asked for, or what the function returns."""
        if callable(self._query):
            return [
                unquoted(
                    Statement("query.subject_parameter_query"), self._query, fitted
                )
            ]
        names = self.names or []
        missing = [name for name in names if not hasattr(fitted, name)]
        if missing:
            raise ValueError(
                Statement(
                    "query.attribute_missing_after_fit",
                    missing=missing,
                    fitted_type=type(fitted).__name__,
                )
            )
        return [getattr(fitted, name) for name in names]


def sorted_rows(arrays: list[Floats]) -> list[Floats]:
    """Return arrays with their rows in one order, whatever order they came in.

    Parameters
    ----------
    arrays : list of ndarray
        Of as many rows each, such as centres and weights of clusters.

    Returns
    -------
    list of ndarray
        The rows of the first in lexicographic order, and those of the others in that
        same order.

    Raises
    ------
    ValueError
        If their numbers of rows differ, or one has none.
    """
    if len({array.shape[:1] for array in arrays}) > 1 or not arrays[0].ndim:
        raise ValueError(Statement("query.sort_rows_unequal"))
    rows = arrays[0].reshape(len(arrays[0]), -1)
    # the first column decides, as the last key of the sort
    order = np.lexsort(rows.T[::-1])
    return [array[order] for array in arrays]


def is_settable(estimator: BaseEstimator, name: str) -> bool:
    """Whether an attribute can be set on an estimator: no read-only property."""
    member = getattr(type(estimator), name, None)
    return not isinstance(member, property) or member.fset is not None


def _seeded(estimator: BaseEstimator) -> BaseEstimator:
    """Muted clone that draws from public seeds."""
    # A sensitivity is that of a function of the table, which a fit from a fixed seed
    # is. The seed is public: it protects nothing, and the noise is not drawn from it.
    fresh = muted(estimator)
    seeds = {
        name: PUBLIC_SEED
        for name, value in fresh.get_params(deep=True).items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    return fresh.set_params(**seeds) if seeds else fresh
