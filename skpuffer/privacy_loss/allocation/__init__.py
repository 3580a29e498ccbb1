"""Random allocation: a record takes part in the steps of one of many bins.

With the record, what is released is a mixture of Gaussians, one component for each bin
the record may be in; without it, the Gaussian of the noise alone. How far these two are
apart depends on nothing but the inner products of the components' means, in units of
the noise: their Gram matrix.
"""

from ._correlated import CorrelatedAllocationPair
from ._gram import closed_add_delta, renyi_add, unamplified_delta

__all__ = [
    "CorrelatedAllocationPair",
    "closed_add_delta",
    "renyi_add",
    "unamplified_delta",
]
