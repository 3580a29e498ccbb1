from skpuffer.extensions.random_allocation import BandedRows as BandedRows
from skpuffer.extensions.random_allocation import BufferedToeplitz as BufferedToeplitz
from skpuffer.extensions.random_allocation import InverseToeplitz as InverseToeplitz
from skpuffer.extensions.random_allocation import NoiseStrategy as NoiseStrategy
from skpuffer.extensions.random_allocation import PrefixSumTree as PrefixSumTree
from skpuffer.extensions.random_allocation import Restarted as Restarted
from skpuffer.extensions.random_allocation import Toeplitz as Toeplitz
from skpuffer.extensions.random_allocation import ToeplitzStrategy as ToeplitzStrategy
from skpuffer.extensions.random_allocation import (
    banded_inverse_factorization as banded_inverse_factorization,
)
from skpuffer.extensions.random_allocation import (
    banded_inverse_square_root as banded_inverse_square_root,
)
from skpuffer.extensions.random_allocation import (
    banded_matrix_factorization as banded_matrix_factorization,
)
from skpuffer.extensions.random_allocation import (
    banded_square_root as banded_square_root,
)
from skpuffer.extensions.random_allocation import (
    buffered_linear_toeplitz as buffered_linear_toeplitz,
)
from skpuffer.extensions.random_allocation import identity as identity
from skpuffer.extensions.random_allocation import prefix_sum_tree as prefix_sum_tree
from skpuffer.extensions.random_allocation import restarted as restarted

__all__ = []
