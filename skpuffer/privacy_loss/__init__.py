"""Privacy losses: divergences, privacy curves, dominating pairs, composition."""

from skpuffer.utils._rooms import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
