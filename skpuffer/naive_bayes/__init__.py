"""Naive Bayes classifiers from one noisy release of moments or counts."""

from ._categorical import PrivateCategoricalNB
from ._gaussian import PrivateGaussianNB

__all__ = ["PrivateCategoricalNB", "PrivateGaussianNB"]
