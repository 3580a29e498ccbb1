from skpuffer.extensions.random_allocation import (
    CorrelatedAllocationPair,
    DirectedCosts,
    closed_add_delta,
    conditional_delta,
    conditional_epsilon,
    renyi_add,
    renyi_allocation,
    renyi_circulant,
    renyi_delta,
    renyi_epsilon,
    renyi_remove,
    unamplified_delta,
)

from ._pair import AllocationPair
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
