from ._perceptron import PrivateMLPClassifier

__all__ = ["PrivateMLPClassifier"]
