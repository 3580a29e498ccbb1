"""PAC privacy: noise for a bound on the information that a release gives away."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
