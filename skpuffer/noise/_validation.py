"""Checks and conversions of arguments that only noise needs."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.utils._checks import (
    check_extent,
    check_non_negative,
    check_probability,
    check_real,
)
from skpuffer.utils._types import Numbers


def check_each(check: Callable[..., float], **named: Any) -> Any:
    """Apply a check of one number to a number, or to each entry of an array.

    Every check of ours accepts an interval, so the extremes (NaN if there is one) stand
    for the rest. Returns a float or an array, as was given.
    """
    ((name, value),) = named.items()
    if isinstance(value, Real) or not hasattr(value, "__len__"):
        return check(**named)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"The parameter {name!r} must hold real numbers. Got {value!r}."
        )
    array = array.astype(float)
    if array.ndim == 0:
        return check(**{name: float(array)})
    if array.size:
        check(**{name: float(array.min())})
        check(**{name: float(array.max())})
    return array


def check_delta(**named: Any) -> float:
    """Return the one named value as a float in [0, 1)."""
    ((name, value),) = named.items()
    return 0.0 if check_real(**named) == 0 else check_probability(**named)


def check_scale(scale: ArrayLike) -> float | tuple[float, ...]:
    """Return a finite scale >= 0 as a float, or one for each coordinate as a tuple."""
    array = check_each(check_non_negative, scale=scale)
    for value in np.unique(array):
        check_extent(scale=float(value))
    if not np.all(np.isfinite(array)):
        raise ValueError(f"The parameter 'scale' must be finite. Got {scale!r}.")
    if np.ndim(array) == 0:
        return array
    if np.ndim(array) > 1 or array.size == 0:
        raise ValueError(
            "The parameter 'scale' must be one number or one for each coordinate. "
            f"Got shape {array.shape}; correlated Gaussian noise takes covariance=..."
        )
    return tuple(array.tolist())


def plain(value: Numbers) -> Any:
    """Return a Python float for a number or an array of no dimension; else the array.

    Which of the two it is, only the caller's arguments tell, hence the loose type.
    """
    return float(value) if np.ndim(value) == 0 else value
