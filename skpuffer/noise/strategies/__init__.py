"""Strategies: noise that is correlated across the steps of a run.

Noise of one step that is partly taken back at later ones hurts sums of many steps less.
A strategy says how, by a matrix C: the run's noise is ``C^-1 Z`` for independent draws
Z, and what is accounted for is C.
"""

from ._base import NoiseStrategy
from ._buffered import BufferedToeplitz
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
