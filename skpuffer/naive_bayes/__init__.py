"""Naive Bayes classifiers from one noisy release of moments or counts."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
