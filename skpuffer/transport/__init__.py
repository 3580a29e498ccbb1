"""Wasserstein distances and couplings of two distributions, exact up to order infinity.

Masses are compared in exact integer arithmetic: a dropped sliver of mass would
under-state W_inf, and the noise with it.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
