"""Types that annotations share: arrays, tables and numbers."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame, IntoLazyFrame
    from scipy import sparse


#: Of any dtype, such as one of labels, or of float32 as well as float64.
Array = NDArray[Any]


#: Rows as they are computed with.
Matrix: TypeAlias = "NDArray[Any] | sparse.csr_matrix | sparse.csr_array"

#: Rows as users give them: anything like an array, a sparse matrix, a data frame, or a
#: lazy one whose rows another engine holds.
Table: TypeAlias = (
    "ArrayLike | sparse.spmatrix | sparse.sparray | IntoDataFrame | IntoLazyFrame"
)


class FindsBounds(Protocol):
    """Protocol of what releases bounds before they are used; see `PrivateBounds`."""

    def to_schema(self) -> Any:
        """Return a code book with the bounds that were found."""


#: Public bounds of columns: a pair (low, high), pairs by column, or 'empirical'; or
#: what releases bounds first.
BoundsLike: TypeAlias = (
    tuple[ArrayLike, ArrayLike]
    | Mapping[Hashable, tuple[float, float]]
    | FindsBounds
    | str
    | None
)

#: What noise is drawn from; None is the operating system's entropy.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
