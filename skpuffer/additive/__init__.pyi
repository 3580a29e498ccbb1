from ._classifier import PrivateAdditiveClassifier
from ._regressor import PrivateAdditiveRegressor
from ._shapes import ShapeFunction

__all__ = [
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "ShapeFunction",
]
