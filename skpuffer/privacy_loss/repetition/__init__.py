"""What the best of a random number of runs costs: of a search, for one."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
