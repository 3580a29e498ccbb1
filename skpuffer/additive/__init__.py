"""Additive models, whose shape functions can be read, by noisy gradients."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
