"""Banded strategies of least error whose columns differ, all of length one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import solve_banded
from scipy.optimize import minimize

from skpuffer.utils._types import Floats

from ._optimised import best_banded
from ._rows import BandedRows

__all__ = ["best_columns", "columns_cost"]

# So many columns of the inverse are held at once.
_COLUMNS = 128

# Steps of the search: each takes the time of solving for all columns twice.
_MOST_STEPS = 200


def columns_cost(x: Floats) -> tuple[float, Floats]:
    """Log of the mean squared error of prefix sums, and its gradient.

    Parameters
    ----------
    x : ndarray of shape (bandwidth, n_steps)
        Entry l of column j is that of C in row j + l, but for the length of the column,
        which is made one. What would be below the last row is not read.

    Returns
    -------
    value : float
    gradient : ndarray of shape (bandwidth, n_steps)
    """
    size, n_steps = x.shape
    lower, lengths = _normalised(x)
    # the transpose in the layout that solvers of banded systems read
    upper = np.zeros_like(lower)
    for lag in range(size):
        upper[size - 1 - lag, lag:] = lower[lag, : n_steps - lag]
    error, gradient = 0.0, np.zeros_like(x)
    for start in range(0, n_steps, _COLUMNS):
        units = np.zeros((n_steps, min(_COLUMNS, n_steps - start)))
        np.fill_diagonal(units[start:], 1.0)
        inverse = solve_banded((size - 1, 0), lower, units)
        sums = np.cumsum(inverse, axis=0)
        error += np.sum(sums**2)
        later = np.cumsum(sums[::-1], axis=0)[::-1]
        back = solve_banded((0, size - 1), upper, later)
        # - Y^T Y C^-T for Y = E C^-1, in the band alone
        for lag in range(size):
            gradient[lag, : n_steps - lag] -= np.einsum(
                "ij,ij->i", back[lag:], inverse[: n_steps - lag]
            )
    gradient *= 2 / error
    # of columns before they are made of length one: across them alone
    gradient -= lower * np.sum(gradient * lower, axis=0)
    return float(np.log(error / n_steps)), gradient / lengths


@lru_cache(maxsize=16)
def best_columns(n_steps: int, bandwidth: int) -> BandedRows:
    """Return the banded strategy of columns of length one, of little mean error."""
    column = best_banded(n_steps, bandwidth, n_steps, "mean").column
    # Columns at the end, which are cut off, are made of length one as well: no record
    # pays more for them.
    start = np.repeat(np.array(column)[:, np.newaxis], n_steps, axis=1)
    if n_steps == 1:
        return BandedRows(((1.0,),))  # there is no other column

    def cost(x: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, gradient = columns_cost(x.reshape(start.shape))
        if value < first + 1 and np.all(np.isfinite(gradient)):
            return value, gradient.ravel()
        return first + 1, np.zeros_like(x)

    first = columns_cost(start)[0]
    options = {"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-8}
    found = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    best = found.x if found.fun <= first else start.ravel()
    columns, _ = _normalised(best.reshape(start.shape))
    rows = np.zeros((n_steps, bandwidth))
    for lag, entries in enumerate(columns):
        rows[lag:, lag] = entries[: n_steps - lag]
    return BandedRows(tuple(map(tuple, rows.tolist())))


def _normalised(x: Floats) -> tuple[Floats, Floats]:
    """Columns of length one, zero below the last row, and what they were divided by."""
    size, n_steps = x.shape
    inside = np.arange(size)[:, np.newaxis] + np.arange(n_steps) < n_steps
    lengths: Floats = np.sqrt(np.sum(x**2, axis=0, where=inside))
    return np.where(inside, x / lengths, 0.0), lengths
