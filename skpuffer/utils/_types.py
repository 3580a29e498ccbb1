"""Names for the arrays that annotations speak of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Floats", "Indices", "Integers"]

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]

#: int64, or Python integers where those would overflow.
Integers = NDArray[Any]
