"""Linear models that spend a privacy budget."""

from ._logistic import PrivateLogisticRegression
from ._ridge import PrivateRidge
from ._sgd import PrivateSGDClassifier, PrivateSGDRegressor

__all__ = [
    "PrivateLogisticRegression",
    "PrivateRidge",
    "PrivateSGDClassifier",
    "PrivateSGDRegressor",
]
