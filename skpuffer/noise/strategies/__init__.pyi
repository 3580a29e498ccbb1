from ._base import NoiseStrategy
from ._families import (
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
    prefix_sum_tree,
    restarted,
)
from ._optimised import BufferedToeplitz
from ._restarted import Restarted
from ._rows import BandedRows
from ._toeplitz import InverseToeplitz, Toeplitz, ToeplitzStrategy
from ._tree import PrefixSumTree

__all__ = [
    "BandedRows",
    "BufferedToeplitz",
    "InverseToeplitz",
    "NoiseStrategy",
    "PrefixSumTree",
    "Restarted",
    "Toeplitz",
    "ToeplitzStrategy",
    "banded_inverse_factorization",
    "banded_inverse_square_root",
    "banded_matrix_factorization",
    "banded_square_root",
    "buffered_linear_toeplitz",
    "identity",
    "prefix_sum_tree",
    "restarted",
]
