"""Random allocation: a record takes part in the steps of one of many bins.

With the record, what is released is a mixture of Gaussians, one component for each bin
the record may be in; without it, the Gaussian of the noise alone. How far these two are
apart depends on nothing but the inner products of the components' means, in units of
the noise: their Gram matrix.
"""

from ._conditional import conditional_delta, conditional_epsilon
from ._correlated import CorrelatedAllocationPair
from ._gram import closed_add_delta, renyi_add, unamplified_delta
from ._renewal import renyi_circulant
from ._renyi import (
    DirectedCosts,
    renyi_allocation,
    renyi_delta,
    renyi_epsilon,
    renyi_remove,
)

__all__ = [
    "CorrelatedAllocationPair",
    "DirectedCosts",
    "closed_add_delta",
    "conditional_delta",
    "conditional_epsilon",
    "renyi_add",
    "renyi_allocation",
    "renyi_circulant",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_remove",
    "unamplified_delta",
]
