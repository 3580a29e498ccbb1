"""What the two meta-estimators share: methods and tags of the one inside."""

from copy import deepcopy

from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

__all__ = ["DELEGATED", "delegates", "inherit_tags"]

#: Methods of an estimator that are post-processing of what it released.
DELEGATED = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "inverse_transform",
)


def _delegate(name):
    def offered(owner):
        return owner._offers(name)

    def method(self, X):
        check_is_fitted(self)
        return self._call(name, X)

    method.__name__ = name
    method.__doc__ = f"""Call `{name}` of the private estimator inside.

    Parameters
    ----------
    X : {{array-like, data frame}} of shape (n_records, n_features)
        A secret column is ignored.

    Returns
    -------
    ndarray
        What the inner estimator returns.
    """
    return available_if(offered)(method)


def delegates(cls):
    """Give a class the methods in `DELEGATED`, there only if the inner one has them.

    The class says whether it `_offers(name)` a method and how to `_call(name, X)` it.
    """
    for name in DELEGATED:
        setattr(cls, name, _delegate(name))
    return cls


def inherit_tags(tags, inner):
    """Fill the tags of a meta-estimator with those of the estimator inside."""
    theirs = get_tags(inner)
    for name in (
        "estimator_type",
        "classifier_tags",
        "regressor_tags",
        "transformer_tags",
        "target_tags",
    ):
        setattr(tags, name, deepcopy(getattr(theirs, name)))
    if tags.classifier_tags is not None:
        tags.classifier_tags.poor_score = True
    if tags.regressor_tags is not None:
        tags.regressor_tags.poor_score = True
    return tags
