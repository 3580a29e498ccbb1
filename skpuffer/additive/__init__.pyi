from ._basis import ShapeFunction
from ._model import PrivateAdditiveClassifier, PrivateAdditiveRegressor

__all__ = [
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "ShapeFunction",
]
