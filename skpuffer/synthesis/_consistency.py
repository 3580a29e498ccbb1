"""Noisy tables made consistent: means, projections and Sinkhorn's scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._counts import independent_table

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = [
    "fit_to_margins",
    "inverse_variance_mean",
    "project_on_margins",
    "project_on_simplex",
    "scale_to_margins",
]

# Alternations between the margins and the non-negative tables, and of rows and columns.
_ALTERNATIONS = 20
_SCALINGS = 100

#: How near scaling comes to the margins, as a share of the mass, before what is left
#: is made up by an exact step.
_NEAR = 1e-9

#: Share of the independent table in what is scaled: a cell of zero would stay one, and
#: a row of zeros could not be scaled to a positive margin.
_SMOOTHING = 1e-6


def inverse_variance_mean(
    estimates: Sequence[Floats], variances: Sequence[float]
) -> tuple[Floats, float]:
    """Return the mean of independent unbiased estimates that has the least variance.

    Parameters
    ----------
    estimates : sequence of ndarray of one shape
    variances : sequence of float
        Of each entry of an estimate.

    Returns
    -------
    mean : ndarray
    variance : float
    """
    weights = 1 / np.asarray(variances, dtype=float)
    mean = np.tensordot(weights, np.asarray(estimates, dtype=float), axes=1)
    return mean / weights.sum(), float(1 / weights.sum())


def project_on_simplex(values: Floats, total: Floats | float) -> Floats:
    """Return the nearest non-negative vectors of given sums.

    Parameters
    ----------
    values : ndarray of shape (..., m)
    total : array-like of shape (...,)
        Non-negative.

    Returns
    -------
    ndarray of shape (..., m)

    References
    ----------
    Held, Wolfe and Crowder (1974), Validation of subgradient optimization.
    """
    total = np.asarray(total, dtype=float)[..., None]
    falling = -np.sort(-values, axis=-1)
    counts = np.arange(1, values.shape[-1] + 1)
    # subtracted from all, and what falls below zero is cut off
    thresholds = (np.cumsum(falling, axis=-1) - total) / counts
    # at least the largest stays, whatever rounding says
    kept = np.maximum(np.sum(falling > thresholds, axis=-1, keepdims=True), 1)
    threshold = np.take_along_axis(thresholds, kept - 1, axis=-1)
    projected = np.maximum(values - threshold, 0.0)
    # sums are exact to rounding of one division
    sums = projected.sum(axis=-1, keepdims=True)
    scaled: Floats = projected * (total / np.where(sums > 0, sums, 1.0))
    return scaled


def project_on_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the nearest tables with the given sums of rows and columns.

    Parameters
    ----------
    table : ndarray of shape (n_classes, a, b)
    rows : ndarray of shape (n_classes, a)
    columns : ndarray of shape (n_classes, b)
        With the same sum as `rows` in each class.

    Returns
    -------
    ndarray of shape (n_classes, a, b)
        Entries may be negative.
    """
    a, b = table.shape[1:]
    of_rows = rows - table.sum(axis=2)
    of_columns = columns - table.sum(axis=1)
    missing = of_rows.sum(axis=1) / (a * b)
    nearest: Floats = (
        table
        + of_rows[:, :, None] / b
        + of_columns[:, None, :] / a
        - missing[:, None, None]
    )
    return nearest


def scale_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale rows and columns of non-negative tables to given sums, exactly.

    Parameters
    ----------
    table : ndarray of shape (n_classes, a, b)
        Non-negative.
    rows : ndarray of shape (n_classes, a)
    columns : ndarray of shape (n_classes, b)
        With the same sum as `rows` in each class.

    Returns
    -------
    ndarray of shape (n_classes, a, b)
        Non-negative, with these sums up to rounding, also where cells, rows or columns
        of `table` are zero.

    References
    ----------
    Sinkhorn (1967), Diagonal equivalence to matrices with prescribed row and column
    sums; Altschuler, Weed and Rigollet (2017), Algorithm 2 (the last, exact step).
    """
    mass = rows.sum(axis=1)
    sums = table.sum(axis=(1, 2))
    table = table * _ratio(mass, sums)[:, None, None]
    # in every cell that the margins allow some mass, so that it can be scaled
    table = (1 - _SMOOTHING) * table + _SMOOTHING * independent_table(rows, columns)
    for _ in range(_SCALINGS):
        table = table * _ratio(rows, table.sum(axis=2))[:, :, None]
        found = table.sum(axis=1)
        if np.all(np.abs(found - columns).sum(axis=1) <= _NEAR * mass):
            break
        table = table * _ratio(columns, found)[:, None, :]
    # down to both margins, and what then lacks as an independent table
    table = table * np.minimum(1, _ratio(rows, table.sum(axis=2)))[:, :, None]
    table = table * np.minimum(1, _ratio(columns, table.sum(axis=1)))[:, None, :]
    lacking_rows = np.maximum(rows - table.sum(axis=2), 0)
    lacking_columns = np.maximum(columns - table.sum(axis=1), 0)
    exact: Floats = table + independent_table(lacking_rows, lacking_columns)
    return exact


def fit_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Make noisy tables non-negative and consistent with margins.

    Parameters
    ----------
    table : ndarray of shape (n_classes, a, b)
        With noise of one scale in every cell.
    rows : ndarray of shape (n_classes, a)
    columns : ndarray of shape (n_classes, b)
        Non-negative, with the same sum as `rows` in each class.

    Returns
    -------
    ndarray of shape (n_classes, a, b)
        Non-negative, with these margins up to rounding.
    """
    for _ in range(_ALTERNATIONS):
        table = np.maximum(project_on_margins(table, rows, columns), 0.0)
    return scale_to_margins(table, rows, columns)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotients, zero where the denominator is."""
    positive = denominator > 0
    ratio: Floats = np.where(positive, numerator / np.where(positive, denominator, 1), 0)
    return ratio
