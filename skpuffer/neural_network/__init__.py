"""Neural networks that spend a privacy budget."""

from ._perceptron import PrivateMLPClassifier

__all__ = ["PrivateMLPClassifier"]
