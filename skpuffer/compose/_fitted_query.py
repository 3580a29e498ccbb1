"""A vector read off a fitted estimator, as a query of its training table."""

import numpy as np
from sklearn.base import clone

from skpuffer.exceptions import ScenarioError

__all__ = ["FittedQuery", "is_settable"]


def is_settable(estimator, name):
    """Whether an attribute can be written on a fresh estimator (no read-only property)."""
    member = getattr(type(estimator), name, None)
    return not isinstance(member, property) or member.fset is not None


class FittedQuery:
    """Fits a clone of an estimator and returns the vector asked for.

    Parameters
    ----------
    estimator : estimator
    query : str, list of str or callable
        Attributes of the fitted estimator, or a function of it.
    classes : ndarray or None
        Labels by class index, for a classifier.
    """

    def __init__(self, estimator, query, classes):
        self._estimator, self._query, self._classes = estimator, query, classes
        self.shapes = None

    @property
    def names(self):
        """Attributes asked for, or None for a function."""
        if callable(self._query):
            return None
        return [self._query] if isinstance(self._query, str) else list(self._query)

    def __call__(self, X, y):
        """Return the stacked vector of a fit on one table."""
        if self._classes is not None and y is not None:
            y = self._classes[y]
        fitted = clone(self._estimator)
        fitted = fitted.fit(X) if y is None else fitted.fit(X, y)
        parts = [np.asarray(part, dtype=float) for part in self._parts(fitted)]
        shapes = [part.shape for part in parts]
        if self.shapes is not None and shapes != self.shapes:
            raise ScenarioError(
                f"The parameter 'query' gives shapes {self.shapes} on one table and "
                f"{shapes} on another; its shape must not depend on the records."
            )
        self.shapes = shapes
        vector = np.concatenate([part.ravel() for part in parts])
        if not np.all(np.isfinite(vector)):
            raise ValueError("The parameter 'query' gives NaN or infinity.")
        return vector

    def _parts(self, fitted):
        if self.names is None:
            return [self._query(fitted)]
        missing = [name for name in self.names if not hasattr(fitted, name)]
        if missing:
            raise ValueError(
                f"The parameter 'query' names {missing!r}, which a fitted "
                f"{type(fitted).__name__} does not have."
            )
        return [getattr(fitted, name) for name in self.names]

    def split(self, vector):
        """Cut a vector back into arrays of the shapes asked for."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        pieces = np.split(vector, ends[:-1])
        return [
            piece.reshape(shape)
            for piece, shape in zip(pieces, self.shapes, strict=True)
        ]
