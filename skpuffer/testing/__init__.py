"""Checks for private estimators, and the list of those that skpuffer has."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
