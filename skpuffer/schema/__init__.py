"""The public code book of a table: what may be known of its columns beforehand."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
