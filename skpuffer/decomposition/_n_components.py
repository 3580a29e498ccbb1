"""How many components are kept: a number, or a part of the noisy variance."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["check_n_components", "number_kept"]


def check_n_components(given: Any) -> None:
    """Refuse what is neither a number of components nor a part of the variance."""
    if given is None:
        return
    number = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
    if number and (isinstance(given, Integral) or float(given).is_integer()):
        number = isinstance(given, Integral) and int(given) >= 1
    elif number:
        number = 0 < given < 1
    if not number:
        raise ValueError(
            Statement("decomposition.n_components_by_likelihood")
            if given == "mle"
            else Statement("decomposition.n_components_not_valid", given=given)
        )


def number_kept(n_components: Any, ratios: Floats) -> int:
    """Number of components, of the noisy spectrum where a part of it is asked for."""
    if n_components is None:
        return len(ratios)
    if isinstance(n_components, Integral):
        return int(n_components)
    # with much noise all together may hold less than was asked for
    reached = np.cumsum(ratios) >= n_components
    return int(reached.argmax()) + 1 if reached.any() else len(ratios)
