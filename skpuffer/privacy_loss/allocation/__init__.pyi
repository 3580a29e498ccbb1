from skpuffer.extensions.random_allocation import (
    CorrelatedAllocationPair as CorrelatedAllocationPair,
)
from skpuffer.extensions.random_allocation import DirectedCosts as DirectedCosts
from skpuffer.extensions.random_allocation import closed_add_delta as closed_add_delta
from skpuffer.extensions.random_allocation import conditional_delta as conditional_delta
from skpuffer.extensions.random_allocation import (
    conditional_epsilon as conditional_epsilon,
)
from skpuffer.extensions.random_allocation import renyi_add as renyi_add
from skpuffer.extensions.random_allocation import renyi_allocation as renyi_allocation
from skpuffer.extensions.random_allocation import renyi_circulant as renyi_circulant
from skpuffer.extensions.random_allocation import renyi_delta as renyi_delta
from skpuffer.extensions.random_allocation import renyi_epsilon as renyi_epsilon
from skpuffer.extensions.random_allocation import renyi_remove as renyi_remove
from skpuffer.extensions.random_allocation import unamplified_delta as unamplified_delta

from ._pair import AllocationPair
from ._sampled import (
    SampledDelta,
    abstention_delta,
    abstention_threshold,
    sampled_delta,
)

__all__ = [
    "AllocationPair",
    "SampledDelta",
    "abstention_delta",
    "abstention_threshold",
    "sampled_delta",
]
