"""What is promised, what follows from it, and what may be added up."""

from skpuffer.utils._rooms import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
