"""Output distributions: what is known of a query's output; how far two are apart."""

from skpuffer.utils._rooms import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
