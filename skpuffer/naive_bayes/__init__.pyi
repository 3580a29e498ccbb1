from ._categorical import PrivateCategoricalNB
from ._gaussian import PrivateGaussianNB

__all__ = ["PrivateCategoricalNB", "PrivateGaussianNB"]
