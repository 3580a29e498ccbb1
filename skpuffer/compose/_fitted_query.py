"""Query of a training table: a vector read off an estimator fitted on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from skpuffer.exceptions import ScenarioError
from skpuffer.utils._reading import floats
from skpuffer.utils._silence import muted
from skpuffer.utils._unquoted import unquoted

if TYPE_CHECKING:
    from skpuffer.utils._types import Array, Floats, Matrix

__all__ = ["FittedQuery", "is_settable"]

#: What is released of a fitted estimator: attributes by name, or a function of it.
Query: TypeAlias = str | Sequence[str] | Callable[[Any], Any]

#: Seed of an estimator that was given none. Public: it has no part in the noise.
PUBLIC_SEED = 0

#: What a fit notes of the machine rather than of the data, and predictions read.
ENVIRONMENT = ("_n_threads",)


class FittedQuery:
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

    Attributes
    ----------
    shapes : list of tuple or None
        Shapes of the arrays, once they are known.
    environment : dict
        Attributes of the fitted estimator that speak of the machine only.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        query: Query,
        classes: Array | None,
        dim: int | None,
    ):
        self._estimator = _seeded(estimator)
        self._query, self._classes, self._dim = query, classes, dim
        self._needs_target = get_tags(estimator).target_tags.required
        self.shapes: Any = None
        self.environment: dict[str, Any] = {}

    @property
    def names(self) -> list[str] | None:
        """Attributes asked for, or None for a function."""
        if callable(self._query):
            return None
        return [self._query] if isinstance(self._query, str) else list(self._query)

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
                f"{type(self._estimator).__name__} needs a target, which the tables "
                "that the scenario draws lack: name it (target=...), or draw (X, y)."
            )
        if self._classes is not None and y is not None:
            y = self._classes[y]
        # A fresh clone each time: with warm starts, the first table would leave a trace
        # in the query of the second. Errors of foreign code are raised without values.
        name = type(self._estimator).__name__
        fitted = unquoted(name, clone(self._estimator).fit, X, y)
        self._check_classes(fitted)
        parts = [_as_array(part) for part in self._parts(fitted)]
        # Noise hides values, not how many there are: it is calibrated for one
        # dimension, and a shape that depends on the rows would be released without any.
        self._check_shapes([part.shape for part in parts])
        vector = np.concatenate([part.ravel() for part in parts])
        # NaN plus noise is NaN: it would tell of the table that made it
        if not np.all(np.isfinite(vector)):
            raise ValueError("The parameter 'query' gives NaN or infinity.")
        self.environment = {n: v for n, v in vars(fitted).items() if n in ENVIRONMENT}
        return vector

    def _check_classes(self, fitted: Any) -> None:
        """Refuse a table without records of a class: parameters would lack its rows."""
        # The classes are public; which of them occur in this table is not.
        seen = getattr(fitted, "classes_", None)
        if self._classes is None or seen is None or len(seen) == len(self._classes):
            return
        raise ValueError(
            f"A table has records of {len(seen)} classes only, but there are "
            f"{len(self._classes)}: the shape of the parameters would tell which are "
            "there. Give the classes that any such table has as classes=[...]."
        )

    def _parts(self, fitted: Any) -> list[Any]:
        """Attributes asked for, or what the function returns."""
        if callable(self._query):
            return [unquoted("The parameter 'query'", self._query, fitted)]
        names = self.names or []
        missing = [name for name in names if not hasattr(fitted, name)]
        if missing:
            raise ValueError(
                f"The parameter 'query' names {missing!r}, which a fitted "
                f"{type(fitted).__name__} does not have."
            )
        return [getattr(fitted, name) for name in names]

    def _check_shapes(self, shapes: list[tuple[int, ...]]) -> None:
        """Refuse a shape that depends on the records: the noise would not match."""
        if self.shapes is not None and shapes != self.shapes:
            raise ValueError(
                f"The parameter 'query' gives arrays of shape {self.shapes} on one "
                f"table and {shapes} on another; the shape must not depend on the "
                "records."
            )
        # noise for another number of coordinates would not be what was accounted for
        size = sum(int(np.prod(shape)) for shape in shapes)
        if self._dim is not None and size != self._dim:
            raise ValueError(
                f"The parameter 'query' gives {size} numbers, but {self._dim} were "
                "announced (by 'n_outputs', or by the scenario)."
            )
        self.shapes = shapes

    def split(self, vector: Floats) -> list[Floats | float]:
        """Split a released vector into the arrays asked for; scalars become floats."""
        # back in the order of `query`; an empty shape is that of a scalar
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        return [
            piece.reshape(shape) if shape else float(piece[0])
            for piece, shape in zip(
                np.split(vector, ends[:-1]), self.shapes, strict=True
            )
        ]


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


def _as_array(part: Any) -> Floats:
    array = floats(part)
    if array is None:
        raise ValueError(
            "The parameter 'query' must give arrays of numbers. Got an object of type "
            f"{type(part).__name__}; stack it by a function of the fitted estimator."
        )
    return array
