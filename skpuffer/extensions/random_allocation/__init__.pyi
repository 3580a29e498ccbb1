from ._allocation import RandomAllocation
from ._sampled_allocation import SampledAllocation
from .loss._bands import renyi_circulant
from .loss._conditional import conditional_delta, conditional_epsilon
from .loss._correlated import CorrelatedAllocationPair
from .loss._renyi import (
    DirectedCosts,
    closed_add_delta,
    renyi_add,
    renyi_allocation,
    renyi_delta,
    renyi_epsilon,
    renyi_remove,
    unamplified_delta,
)
from .strategies._base import NoiseStrategy, Restarted
from .strategies._families import (
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
    prefix_sum_tree,
    restarted,
)
from .strategies._optimised import (
    BufferedToeplitz,
    InverseToeplitz,
    Toeplitz,
    ToeplitzStrategy,
)
from .strategies._rows import BandedRows, PrefixSumTree

__all__ = [
    "BandedRows",
    "BufferedToeplitz",
    "CorrelatedAllocationPair",
    "DirectedCosts",
    "InverseToeplitz",
    "NoiseStrategy",
    "PrefixSumTree",
    "RandomAllocation",
    "Restarted",
    "SampledAllocation",
    "Toeplitz",
    "ToeplitzStrategy",
    "banded_inverse_factorization",
    "banded_inverse_square_root",
    "banded_matrix_factorization",
    "banded_square_root",
    "buffered_linear_toeplitz",
    "closed_add_delta",
    "conditional_delta",
    "conditional_epsilon",
    "identity",
    "prefix_sum_tree",
    "renyi_add",
    "renyi_allocation",
    "renyi_circulant",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_remove",
    "restarted",
    "unamplified_delta",
]
