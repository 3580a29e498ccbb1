"""Sliced Rényi Pufferfish privacy: costs along projections of an output."""

from skpuffer.utils._rooms import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
