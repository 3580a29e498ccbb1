"""Checks for private estimators, and the list of those that skpuffer has."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
