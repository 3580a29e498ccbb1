from ._bands import renyi_circulant
from ._conditional import conditional_delta, conditional_epsilon
from ._correlated import CorrelatedAllocationPair
from ._pair import AllocationPair
from ._renyi import (
    DirectedCosts,
    closed_add_delta,
    renyi_add,
    renyi_allocation,
    renyi_delta,
    renyi_epsilon,
    renyi_remove,
    unamplified_delta,
)
from ._sampled import (
    SampledDelta,
    abstention_delta,
    abstention_threshold,
    sampled_delta,
)

__all__ = [
    "AllocationPair",
    "CorrelatedAllocationPair",
    "DirectedCosts",
    "SampledDelta",
    "abstention_delta",
    "abstention_threshold",
    "closed_add_delta",
    "conditional_delta",
    "conditional_epsilon",
    "renyi_add",
    "renyi_allocation",
    "renyi_circulant",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_remove",
    "sampled_delta",
    "unamplified_delta",
]
