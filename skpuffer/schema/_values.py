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

from skpuffer.utils._reading import is_frame, read_table

from ._columns import Category, Number

if TYPE_CHECKING:
    from skpuffer.utils._types import Array, Booleans, Floats, Indices, Table

__all__ = ["column_arrays", "level_codes", "numbers"]


def column_arrays(X: Table, names: Sequence[Hashable]) -> list[Array]:
    """Return the columns of a table that a code book names.

    Parameters
    ----------
    X : {data frame, array-like} of shape (n, n_columns)
        Columns of a frame go by name, and there may be others; those of an array by
        position, and there are as many as names.
    names : sequence

    Returns
    -------
    list of ndarray of shape (n,)

    Raises
    ------
    ValueError
        If a column is not there.
    """
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
                f"The table lacks the columns {lacking!r} of the schema; it has "
                f"{held!r}. Leave columns out by schema.select(names)."
            )
        return [_array(X, frame, name) for name in names]
    if not hasattr(X, "dtype") or hasattr(X, "tocsr"):
        raise TypeError(
            "The parameter 'X' is a sparse matrix. A table with a schema is a data "
            "frame or a dense array of the raw columns, not of one-hot codes."
        )
    if X.shape[1] != len(names):
        raise ValueError(
            f"The table has {X.shape[1]} columns and the schema {len(names)}: "
            f"{list(names)!r}. Columns of an array go by position; give a data frame."
        )
    return list(np.asarray(X).T)


def _array(X: Any, frame: Any, name: Hashable) -> Array:
    if isinstance(X, pd.DataFrame):
        column = X[name]
        # plain values: the levels of a type are those of a table, not of the code book
        kind = object if isinstance(column.dtype, pd.CategoricalDtype) else None
        values: Array = column.to_numpy(dtype=kind)
        return values
    return np.asarray(frame.get_column(name).to_numpy())


def numbers(column: Number, values: Array) -> tuple[Floats, Booleans]:
    """Read a numeric column.

    Parameters
    ----------
    column : Number
    values : ndarray of shape (n,)

    Returns
    -------
    numbers : ndarray of float of shape (n,)
        Within the bounds, `filling` where a value is missing.
    missing : ndarray of bool of shape (n,)
        What is missing, or no number.
    """
    found = _floats(values)
    missing = np.isnan(found)
    for code in column.missing:
        # a code that is text is no number, and missing anyhow
        if isinstance(code, int | float):
            missing |= found == code
    inside = np.clip(found, column.low, column.high)
    return np.where(missing, column.filling, inside), missing


def level_codes(column: Category, values: Array) -> Indices:
    """Read a categorical column.

    Parameters
    ----------
    column : Category
    values : ndarray of shape (n,)

    Returns
    -------
    ndarray of int of shape (n,)
        Position in `levels`; what is missing or not listed is ``len(levels)`` if it
        has a level of its own, and the `filling` otherwise.
    """
    other = len(column.levels) if column.missing_level else column.filling
    if all(isinstance(level, int | float) for level in column.levels):
        # numbers, however they are written
        found = _floats(values)
        levels = np.asarray(column.levels, dtype=float)
        order = np.argsort(levels)
        places = np.searchsorted(levels[order], found)
        codes = order[np.minimum(places, len(levels) - 1)]
        return np.where(levels[codes] == found, codes, other).astype(np.intp)
    texts = np.asarray(values)
    if texts.dtype.kind != "O":
        texts = texts.astype(object)
    known = pd.Index(np.array([*map(_text, column.levels), ""], dtype=object)[:-1])
    codes = known.get_indexer(pd.Index(_texts(texts), dtype=object))
    return np.where(codes < 0, other, codes).astype(np.intp)


def _texts(values: Array) -> Array:
    """Texts of a column, None for what is missing."""
    codes, uniques = pd.factorize(values)
    written: Array = np.array([*map(_text, uniques.tolist()), None], dtype=object)
    texts: Array = written[codes]
    return texts


def _text(value: Any) -> str:
    # a whole number is written as one, whatever type a table has it in
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _floats(values: Array) -> Floats:
    """Numbers of a column, NaN for what is none."""
    if values.dtype.kind in "biuf":
        return values.astype(float)
    # dates and complex numbers are none
    if values.dtype.kind not in "OUS" and not _is_masked_number(values):
        return np.full(len(values), np.nan)
    read = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    return np.asarray(read.to_numpy(dtype=float, na_value=np.nan), dtype=float)


def _is_masked_number(values: Any) -> bool:
    return hasattr(values, "dtype") and pd.api.types.is_numeric_dtype(values.dtype)
