"""Points with integer masses: checked, merged, rounded to a grid."""

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Integers


def check_points(
    coordinate_scale: ArrayLike | None = None, **named: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the two named point sets as float arrays of rows, scaled.

    Scaled points may be moved, all by one vector: see :func:`moved_to_zero`.

    Raises
    ------
    ValueError
        Naming the parameter, if a set is not a finite, non-empty (n, d) array, if the
        two differ in `d`, or if the scale is not d positive numbers.
    """
    checked = []
    for name, raw in named.items():
        points = np.asarray(raw, dtype=float)
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(
                Statement(
                    "transport.points_shape_invalid", name=name, shape=points.shape
                )
            )
        if not np.isfinite(points).all():
            raise ValueError(Statement("transport.values_not_finite", name=name))
        checked.append(points)
    first, second = checked
    if first.shape[1] != second.shape[1]:
        one, other = named
        raise ValueError(
            Statement(
                "transport.points_column_counts_differ",
                first=one,
                second=other,
                n_first=first.shape[1],
                n_second=second.shape[1],
            )
        )
    if coordinate_scale is None:
        return first, second
    scale = np.asarray(coordinate_scale, dtype=float)
    if scale.shape != first.shape[1:] or not np.all((scale > 0) & np.isfinite(scale)):
        raise ValueError(
            Statement(
                "transport.coordinate_scale_invalid",
                shape=first.shape[1],
                coordinate_scale=coordinate_scale,
            )
        )
    # scaled as they are, points far from zero would round by more than they are apart
    first, second, _ = moved_to_zero(first, second)
    return first / scale, second / scale


def moved_to_zero(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return points without what all of them have in common, and that vector.

    Coordinates stay as they are where a difference might be rounded.

    Parameters
    ----------
    first, second : ndarray of shape (n, d) and (m, d)

    Returns
    -------
    first, second : ndarray of shape (n, d) and (m, d)
    origin : ndarray of shape (d,)
        What was taken off all points.
    """
    low = np.minimum(first.min(axis=0), second.min(axis=0))
    high = np.maximum(first.max(axis=0), second.max(axis=0))
    # exact within a factor of two (Sterbenz 1974, Floating-point computation)
    with np.errstate(over="ignore"):
        far = ((low > 0) & (high <= 2 * low)) | ((high < 0) & (low >= 2 * high))
    origin = np.where(far, low, 0.0)
    if not far.any():
        return first, second, origin
    return first - origin, second - origin, origin


def merge(points: Floats, masses: Integers) -> tuple[Floats, Integers]:
    """Return the distinct rows with mass above zero, and their masses added up."""
    points, masses = points[masses > 0], masses[masses > 0]
    order = np.lexsort(points.T)
    points, masses = points[order], masses[order]
    # In lexicographic order equal rows are neighbours.
    new = np.ones(len(points), dtype=bool)
    new[1:] = (points[1:] != points[:-1]).any(axis=1)
    return points[new], np.add.reduceat(masses, np.flatnonzero(new))


def finest_grid(
    first: Floats, second: Floats, max_cells: float
) -> tuple[Floats, float]:
    """Return corner and width of the finest grid within a budget of pairs of cells.

    Parameters
    ----------
    first, second : ndarray of shape (n, d) and (m, d)
    max_cells : float
        Largest product of the numbers of cells that the two sets fall into, at least 1.

    Returns
    -------
    corner : ndarray of shape (d,)
    width : float
        The smallest that fits, to 5 percent.
    """
    corner = np.minimum(first.min(axis=0), second.min(axis=0))
    extent = np.maximum(first.max(axis=0), second.max(axis=0)) - corner
    # one cell holds everything, even after round-off
    fits = coarsest = float(extent.max()) * 1.001
    ratio = 0.5
    # cells finer than the round-off of the coordinates would tell nothing apart
    while ratio < 0.95 and fits > coarsest * 2.0**-50:
        width = fits * ratio
        cells = _count_cells(first, corner, width) * _count_cells(second, corner, width)
        # Halve while the cells fit; each time they do not, try a milder refinement,
        # down to one of 5 percent. More cells than allowed are never accepted.
        if cells <= max_cells:
            fits = width
        else:
            ratio = ratio**0.5
    return corner, fits


def _count_cells(points: Floats, corner: Floats, width: float) -> int:
    cells = np.floor((points - corner) / width).astype(np.int64).astype(np.uint64)
    # a hash of each row: to choose a width, a count that is right except collisions do
    weights = np.uint64(0x9E3779B97F4A7C15) ** np.arange(
        1, points.shape[1] + 1, dtype=np.uint64
    )
    return len(np.unique(cells @ weights))


def round_to_grid(points: Floats, corner: Floats, width: float) -> Floats:
    """Return the centres of the cells that hold the points, row by row."""
    return corner + (np.floor((points - corner) / width) + 0.5) * width
