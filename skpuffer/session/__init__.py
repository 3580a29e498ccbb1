"""One table, one budget: the door for analysts who publish numbers and models."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
