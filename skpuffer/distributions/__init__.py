"""Output distributions: what is known of a query's output; how far two are apart."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
