from ._huber import PrivateHuberRegressor
from ._logistic import PrivateLogisticRegression
from ._ridge import PrivateRidge
from ._sgd import PrivateSGDClassifier, PrivateSGDRegressor

__all__ = [
    "PrivateHuberRegressor",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "PrivateSGDClassifier",
    "PrivateSGDRegressor",
]
