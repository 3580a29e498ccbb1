from ._huber import PrivateHuberRegressor
from ._least_squares import PrivateLinearRegression
from ._logistic import PrivateLogisticRegression
from ._logit import PrivateLogit
from ._ridge import PrivateRidge
from ._sgd import PrivateSGDClassifier, PrivateSGDRegressor

__all__ = [
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateLogit",
    "PrivateRidge",
    "PrivateSGDClassifier",
    "PrivateSGDRegressor",
]
