"""Noisy tables made consistent: means, projections and Sinkhorn's scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skpuffer.utils._simplex import project_on_simplex

from ._counts import independent_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices

__all__ = [
    "WeightedMean",
    "fit_to_margins",
    "project_on_groups",
    "project_on_margins",
    "project_on_mass",
    "scale_to_margins",
]

# Alternations between the tables of given margins and the non-negative ones, and of
# scaling rows and columns.
_ALTERNATIONS = 20
_SCALINGS = 100

#: How near scaling comes to the margins, as a share of the mass, before an exact step
#: makes up for what is left.
_NEAR = 1e-9

#: Share of the independent table in what is scaled: a cell of zero would stay one, and
#: a row of zeros cannot be scaled to a positive margin.
_SMOOTHING = 1e-6


class WeightedMean:
    """Mean of independent unbiased estimates, each weighted by its inverse variance."""

    def __init__(self) -> None:
        self._weighted: Floats | float = 0.0
        self._weight: Floats | float = 0.0

    def add(self, estimate: Floats, variance: ArrayLike) -> None:
        """Take in an estimate.

        Parameters
        ----------
        estimate : ndarray
        variance : array-like that broadcasts against it
            Of each entry.
        """
        weight = 1 / np.asarray(variance, dtype=float)
        self._weighted = self._weighted + weight * estimate
        self._weight = self._weight + weight

    @property
    def value(self) -> Floats:
        """The mean of least variance."""
        return np.asarray(self._weighted / self._weight)


def project_on_mass(values: Floats, mass: ArrayLike) -> Floats:
    """Return the nearest non-negative vectors of given sums.

    Parameters
    ----------
    values : ndarray of shape (..., m)
    mass : array-like of shape (...,)
        Non-negative.

    Returns
    -------
    ndarray of shape (..., m)
    """
    mass = np.asarray(mass, dtype=float)[..., None]
    scale = np.where(mass > 0, mass, 1.0)
    return mass * project_on_simplex(values / scale)


def project_on_groups(values: Floats, groups: Indices, masses: Floats) -> Floats:
    """Return the nearest non-negative vectors whose groups have given sums.

    Parameters
    ----------
    values : ndarray of shape (..., n_cells)
    groups : ndarray of int of shape (n_cells,)
    masses : ndarray of shape (..., n_groups)
        Non-negative.

    Returns
    -------
    ndarray of shape (..., n_cells)
    """
    nearest = np.empty_like(values)
    for group in range(masses.shape[-1]):
        inside = groups == group
        nearest[..., inside] = project_on_mass(values[..., inside], masses[..., group])
    return nearest


def project_on_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the nearest tables with given sums of rows and columns.

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
    # in both corrections, so once too often
    common = of_rows.sum(axis=1) / (a * b)
    nearest: Floats = (
        table
        + of_rows[:, :, None] / b
        + of_columns[:, None, :] / a
        - common[:, None, None]
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
    table = table * _ratio(mass, table.sum(axis=(1, 2)))[:, None, None]
    # some mass in every cell that the margins allow, so that it can be scaled
    table = (1 - _SMOOTHING) * table + _SMOOTHING * independent_table(rows, columns)
    for _ in range(_SCALINGS):
        table = table * _ratio(rows, table.sum(axis=2))[:, :, None]
        found = table.sum(axis=1)
        if np.all(np.abs(found - columns).sum(axis=1) <= _NEAR * mass):
            break
        table = table * _ratio(columns, found)[:, None, :]
    # down to both margins; what then lacks is added as an independent table
    table = table * np.minimum(1, _ratio(rows, table.sum(axis=2)))[:, :, None]
    table = table * np.minimum(1, _ratio(columns, table.sum(axis=1)))[:, None, :]
    lacking = (
        np.maximum(rows - table.sum(axis=2), 0),
        np.maximum(columns - table.sum(axis=1), 0),
    )
    exact: Floats = table + independent_table(*lacking)
    return exact


def fit_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Make noisy tables non-negative and consistent with their margins.

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
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), 0.0)
