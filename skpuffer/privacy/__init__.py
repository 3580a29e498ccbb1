"""What is promised, what follows from it, and what may be added up."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
