"""Synthetic tables: rows that may be shared in place of the private ones."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
