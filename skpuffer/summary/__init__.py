"""Private statistics of a table, and a scaler made of them."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
