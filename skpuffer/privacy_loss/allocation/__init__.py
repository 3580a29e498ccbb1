"""Random allocation: a record takes part in the steps of one of many bins.

With the record the release is a mixture of Gaussians, one for each bin. Its divergence
from the noise depends on the Gram matrix of their means alone, in units of the noise.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
