"""Random allocation: a record takes part in the steps of one of many bins.

With the record, what is released is a mixture of Gaussians, one component for each bin
the record may be in; without it, the Gaussian of the noise alone. How far these two are
apart depends on nothing but the inner products of the components' means, in units of
the noise: their Gram matrix. Under independent noise it is a diagonal.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
