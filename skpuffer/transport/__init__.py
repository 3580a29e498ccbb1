"""Wasserstein distances and couplings of two distributions, exact up to order infinity.

W_inf is what the general Wasserstein mechanism calibrates on, and no library offers
it: POT returns NaN for ``p=inf`` and SciPy's ``wasserstein_distance`` knows ``p=1``
only. The distances here are therefore hand-written on top of NumPy's sorts and SciPy's
maximum flow, with masses in exact integer arithmetic: W_inf is a maximum over a
support, so one dropped sliver of mass would under-state it, and the noise with it.

The same holds of near radii, which leave out a stated mass and no sliver more. Plans of
least cost in several dimensions come from POT where it is installed and from SciPy
otherwise, and are then made exact.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
