"""Delegation of methods and tags to the estimator inside a meta-estimator."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from skpuffer._template._classes import mark_noisy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.utils._types import Table


_Class = TypeVar("_Class", bound=type)

#: Methods of one table that are post-processing of what was released.
DELEGATED = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
    "inverse_transform",
)


def offered(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of a method that is there only if its class offers `name`."""

    def check(owner: Any) -> Any:
        return owner._offers(name)

    decorator: Callable[[Callable[..., Any]], Any] = available_if(check)
    return decorator


def _delegate(name: str) -> Any:
    """Method that calls the one of the same name inside."""

    def method(self: Any, X: Table) -> Any:
        return self._call(name, X)

    method.__name__ = name
    method.__doc__ = f"""Call `{name}` of the estimator inside.

    Parameters
    ----------
    X : {{array-like, data frame}} of shape (n_records, n_features)
        A secret column is ignored.

    Returns
    -------
    array
        What the estimator inside returns.
    """
    return offered(name)(method)


@offered("score")
def score(
    self: Any,
    X: Table,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the score of the estimator inside; it is not private."""
    # `fit` refuses weights, which would move the release further; a score moves nothing
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    found: float = self._call("score", X, y, **weights)
    return found


@offered("transform")
def fit_transform(
    self: Any, X: Table, y: ArrayLike | None = None, *, secret: ArrayLike | None = None
) -> Any:
    """Fit, then transform the same table; the result is not private."""
    return self.fit(X, y, secret=secret).transform(X)


@offered("set_output")
def set_output(self: Any, *, transform: str | None = None) -> Any:
    """Set what `transform` of the estimator inside returns."""
    # the one that is cloned by the next fit, and the fitted one if there is one
    for inside in (self.estimator, getattr(self, "estimator_", None)):
        if inside is not None:
            inside.set_output(transform=transform)
    return self


def delegates(cls: _Class) -> _Class:
    """Class decorator: adds the methods of the estimator inside, where it has them.

    The class says whether it `_offers(name)` a method, and how to `_call(name, X)` it.
    Its own methods stay.
    """
    methods = {name: _delegate(name) for name in DELEGATED}
    methods |= {
        "score": score,
        "fit_transform": fit_transform,
        "set_output": set_output,
    }
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    return cls


def inherit_tags(tags: Tags, inner: Any) -> Tags:
    """Fill the tags of a meta-estimator with those of the estimator inside."""
    # What the estimator is, not what input it takes: the input is checked here first.
    theirs = get_tags(inner)
    for name in (
        "estimator_type",
        "classifier_tags",
        "regressor_tags",
        "transformer_tags",
        "target_tags",
    ):
        setattr(tags, name, deepcopy(getattr(theirs, name)))
    return mark_noisy(tags)
