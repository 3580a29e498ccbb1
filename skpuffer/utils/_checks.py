"""Checks of privacy parameters, each named by its keyword.

Unlike scikit-learn's ``_parameter_constraints`` they cannot be switched off.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement, type_error, value_error
from skpuffer.kernel.numbers import (
    _LEAST_SIZE,
    Floats,
    _one,
    _workable,
    check_finite,
    check_real,
    floats,
)

from ._reading import refuse_mask

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def check_sizes(**named: Any) -> Floats:
    """Return the one named value as an array of numbers that are zero or workable.

    A number whose square vanishes would be taken for zero, without noise for its
    distance.
    """
    name, _ = _one(named)
    array = check_finite(**named)
    sizes = np.abs(array[array != 0])
    # the extremes stand for the rest
    for size in (sizes.min(), sizes.max()) if sizes.size else ():
        _workable(name, float(size), float(size), _LEAST_SIZE, finite=True)
    return array


def check_share(**named: object) -> float:
    """Return the one named value as a float in [0, 1)."""
    name, raw = _one(named)
    value = check_real(**named)
    if not 0 <= value < 1:
        raise value_error("parameter.share_out_of_range", name=name, raw=raw)
    return value


def check_jobs(**named: Any) -> int | None:
    """Return the one named value if joblib can count so many workers, or it is None."""
    name, value = _one(named)
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    # more than that joblib cannot count
    if value is not None and (not integer or not 0 < abs(value) < 2**31):
        raise value_error("parameter.jobs_invalid", name=name, value=value)
    return None if value is None else int(value)


def check_bool(**named: object) -> None:
    """Refuse a named value that is neither True nor False."""
    name, value = _one(named)
    if not isinstance(value, bool | np.bool_):
        raise type_error("parameter.not_bool", name=name, value=value)


def check_name(**named: Any) -> str | None:
    """Return the one named value if it is a text that names something, or None."""
    name, value = _one(named)
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise value_error("parameter.name_not_text", name=name, value=value)
    return value


def check_masses(
    n: int, *, tol: float = 1e-9, counts: bool = True, **named: Any
) -> Floats:
    """Return the one named weights as a float array of shape (n,) that sums to one.

    None means equal masses. Integer weights are counts and are normalised unless
    `counts` is False; other weights must sum to one already, to `tol`.
    """
    name, raw = _one(named)
    if raw is None:
        return np.full(n, 1.0 / n)
    refuse_mask(raw, name)
    values = floats(raw)
    if values is not None and values.shape != (n,):
        raise value_error(
            "transport.masses_count_differs", name=name, n=n, shape=values.shape
        )
    if (
        values is None
        or not np.all(np.isfinite(values))
        or np.any(values < 0)
        or (total := float(values.sum())) <= 0
    ):
        raise value_error("transport.masses_invalid", name=name)
    # counts sum to any number, masses to one: a sum that is neither is a mistake
    read_as_counts = counts and np.issubdtype(np.asarray(raw).dtype, np.integer)
    if not read_as_counts and abs(total - 1.0) > tol:
        raise value_error(
            "parameter.masses_not_sum_one",
            name=name,
            counts=Statement("parameter.integers_are_counts") if counts else "",
            total=total,
        )
    # again, as a sum within the tolerance is not yet one
    return values / total


def check_covariance(*, least: float = -1e-10, **named: Any) -> Floats:
    """Return the one named value as a float matrix of shape (d, d), symmetric exactly.

    Its smallest eigenvalue is at least `least` times the largest: positive definite
    where `least` is above zero, else semi-definite up to round-off.
    """
    name, _ = _one(named)
    array = check_finite(**named)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise value_error(
            "parameter.covariance_not_square", name=name, shape=array.shape
        )
    # by standard deviations, so that large units of one coordinate excuse nothing
    # elsewhere
    spreads = np.sqrt(np.maximum(np.diag(array), 0))
    slack = 1e-9 * np.outer(spreads, spreads) + 1e-12 * np.abs(array).max()
    if np.any(np.abs(array - array.T) > slack):
        raise value_error("parameter.covariance_not_symmetric", name=name)
    # exactly symmetric from here on: factorisations read one half only
    array = np.where(array == array.T, array, (array + array.T) / 2)
    low, high = _extreme_eigenvalues(array)
    # relative to the largest, as the matrix may be in any unit
    if low < least * high or (least > 0 and low <= least * high):
        kind: Statement | str = "semi-definite"
        if least > 0:
            kind = Statement("parameter.covariance_condition_number", most=1 / least)
        raise value_error(
            "parameter.covariance_not_positive_definite",
            name=name,
            kind=kind,
            low=low,
            high=high,
        )
    return array


#: Extreme eigenvalues by a digest of the matrix, which is not kept itself.
_EXTREMES: dict[tuple[int, bytes], tuple[float, float]] = {}


def _extreme_eigenvalues(array: Floats) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric matrix.

    Remembered, as one matrix is checked at every calibration: a digest takes a tenth of
    the time.
    """
    key = len(array), hashlib.sha256(array.tobytes()).digest()
    found = _EXTREMES.get(key)
    if found is None:
        low, high = np.linalg.eigvalsh(array)[[0, -1]].tolist()
        found = low, high
        if len(_EXTREMES) >= 256:
            _EXTREMES.clear()
        _EXTREMES[key] = found
    return found


# -- size of known noise, as post-processing reads it ----------------------------------


def noise_deviation(noise: Any, dim: int) -> float:
    """Return a coordinate's largest standard deviation, or the scale without one."""
    deviation = float(np.max(noise.std(dim)))
    return deviation if np.isfinite(deviation) else float(np.max(noise.scale))


# -- nearest points of the simplex of shares -------------------------------------------


def project_on_simplex(values: ArrayLike) -> Floats:
    """Project vectors on the simplex of shares, in the l2 norm, along the last axis.

    Duchi, Shalev-Shwartz, Singer and Chandra (2008), Efficient projections, Figure 1.
    """
    values = np.asarray(values, dtype=np.float64)
    # The projection subtracts one number from all coordinates and cuts at zero. With
    # the largest `last + 1` ones kept positive that number is (their sum - 1) / (last +
    # 1).
    ordered = -np.sort(-values, axis=-1)
    ranks = np.arange(1, values.shape[-1] + 1)
    excess = (np.cumsum(ordered, axis=-1) - 1) / ranks
    last = np.sum(ordered > excess, axis=-1, keepdims=True) - 1
    shares: Floats = np.maximum(values - np.take_along_axis(excess, last, -1), 0.0)
    return shares
