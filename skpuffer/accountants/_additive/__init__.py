"""Additive noise that covers the output's sensitivity, or a coupling of outputs."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
