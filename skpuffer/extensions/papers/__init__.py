"""Estimates, simulations and figures of papers of the field."""

from skpuffer.utils._rooms import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
