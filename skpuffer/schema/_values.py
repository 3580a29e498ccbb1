"""Values of a column as its code book reads them: whatever is held, nothing raises.

What a table holds is private, so what it may not hold is no error: it is read as the
nearest public value, or as missing. Each value is read by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement
from skpuffer.utils._reading import (
    cells_of,
    held_as_codes,
    is_frame,
    object_cells,
    object_rows,
    read_table,
)

from ._cells import cell_numbers, level_places

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.utils._types import Array

    from ._columns import Category, Number

__all__ = ["AT_ONCE", "column_arrays", "level_codes", "numbers", "plain_numbers"]

#: Values that are read at once.
AT_ONCE = 2**17


def column_arrays(X: Any, names: Sequence[Hashable]) -> list[Array]:
    """Return the columns of a table that a code book names.

    Parameters
    ----------
    X : {data frame, array-like} of shape (n, n_columns)
        Columns of a frame go by name, and there may be others; those of an array by
        position, and there are as many as names.
    names : sequence

    Returns
    -------
    list of array of shape (n,)
        Arrays of NumPy; of texts and categories in pandas, as pandas holds them.

    Raises
    ------
    ValueError
        If a column is not there.
    """
    X = object_rows(X)
    # an array of objects may hold anything: what it holds is read, and never refused
    if type(X) is not np.ndarray or X.dtype != object or X.ndim != 2:
        X = read_table(X)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        held = list(frame.columns)
        # numbered columns of pandas, where the code book has names, go by position
        if not set(names) <= set(held) and held == list(range(len(names))):
            return [_array(X, frame, name) for name in held]
        lacking = [name for name in names if name not in held]
        if lacking:
            raise ValueError(
                Statement("schema.table_lacks_columns", lacking=lacking, held=held)
            )
        return [_array(X, frame, name) for name in names]
    if not hasattr(X, "dtype") or hasattr(X, "tocsr"):
        raise TypeError(Statement("schema.table_sparse"))
    if X.shape[1] != len(names):
        raise ValueError(
            Statement(
                "schema.array_column_count_differs",
                n_columns=X.shape[1],
                n_names=len(names),
                names=list(names),
            )
        )
    return list(np.asarray(X).T)


def _array(X: Any, frame: Any, name: Hashable) -> Array:
    if isinstance(X, pd.DataFrame):
        cells = X[name]
        if isinstance(cells.dtype, pd.DatetimeTZDtype):
            # in UTC, as pandas refuses some objects with a zone
            cells = cells.dt.tz_convert(None)
        held = held_as_codes(cells)
        values: Array = cells.to_numpy() if held is None else held
        return values
    column = frame.get_column(name)
    held = held_as_codes(column)
    if held is not None:
        found: Array = held
        return found
    return cells_of(column)


def numbers(column: Number, values: Array) -> tuple[Floats, Booleans]:
    """Read a numeric column.

    Parameters
    ----------
    column : Number
    values : array of shape (n,)

    Returns
    -------
    numbers : ndarray of float of shape (n,)
        Within the bounds, `filling` where a value is missing.
    missing : ndarray of bool of shape (n,)
        What is missing, or no number.
    """
    found = plain_numbers(values, column.missing)
    missing = np.isnan(found)
    inside = np.clip(found, column.low, column.high)
    return np.where(missing, column.filling, inside), missing


def plain_numbers(values: Array, missing: Sequence[Any] = ()) -> Floats:
    """Read numbers, NaN for what is none or a code of missing values.

    Parameters
    ----------
    values : array of shape (n,)
    missing : sequence, default=()

    Returns
    -------
    ndarray of float of shape (n,)
    """
    found = cell_numbers(values)
    # a code that is no number is missing anyhow
    for code in cell_numbers(object_cells(missing)):
        found = np.where(found == code, np.nan, found)
    return found


def level_codes(column: Category, values: Array) -> Indices:
    """Read a categorical column.

    Parameters
    ----------
    column : Category
    values : array of shape (n,)

    Returns
    -------
    ndarray of int of shape (n,)
        Position in `levels`; what is missing or not listed is ``len(levels)`` if it
        has a level of its own, and the `filling` otherwise.
    """
    other = len(column.levels) if column.missing_level else column.filling
    if isinstance(values, pd.api.extensions.ExtensionArray):
        places = level_places(column.levels, values)
        return np.where(places < 0, other, places)
    codes = np.empty(len(values), dtype=np.intp)
    # some at a time: what is made on the way stays small
    for start in range(0, len(values), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        places = level_places(column.levels, values[part])
        codes[part] = np.where(places < 0, other, places)
    return codes
