"""Values of a column as its code book reads them: whatever is held, nothing raises.

What a table holds is private, so what it may not hold is no error: it is read as the
nearest public value, or as missing. Each value is read by itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer.utils._reading import (
    distinct_cells,
    held_as_codes,
    is_frame,
    object_cells,
    object_rows,
    read_table,
)

from ._columns import Category, Number, is_missing, level_text, real_part

if TYPE_CHECKING:
    from skpuffer.utils._types import Array, Booleans, Floats, Indices

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
        held = held_as_codes(X[name])
        values: Array = X[name].to_numpy() if held is None else held
        return values
    column = frame.get_column(name)
    held = held_as_codes(column)
    if held is not None:
        found: Array = held
        return found
    try:
        return np.asarray(column.to_numpy())
    # of a type that NumPy lacks, as of whole numbers beyond 64 bits
    except Exception:
        return object_cells(column.to_list())


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
    found = _floats(values)
    for code in missing:
        # a code that is text is no number, and missing anyhow, unless it is written as
        # one
        number = _floats(np.array([code, None], dtype=object))[0]
        found = np.where(found == number, np.nan, found)
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
    if isinstance(values, pd.api.extensions.ExtensionArray):
        # Each by itself, and so each text or category once; what is missing comes last.
        # The levels of a type are those of a table, not of the code book.
        places, cells = distinct_cells(values)
        return _level_codes(column, object_cells([*cells, None]))[places]
    codes = np.empty(len(values), dtype=np.intp)
    # some at a time: what is made on the way stays small
    for start in range(0, len(values), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        codes[part] = _level_codes(column, values[part])
    return codes


def _level_codes(column: Category, values: Array) -> Indices:
    other = len(column.levels) if column.missing_level else column.filling
    if all(isinstance(level, int | float) for level in column.levels):
        # numbers, however they are written
        codes = _number_codes(column.levels, _floats(values))
    else:
        codes = np.full(len(values), -1)
    # those of truth values may be written as words
    if not all(map(_is_number, column.levels)):
        texts = pd.Index(list(map(level_text, column.levels)), dtype=object)
        positions, written = _texts(values)
        # of each text once, and of none for what is missing
        held = texts.get_indexer(pd.Index([*written, None], dtype=object))
        found = held[positions]
        codes = np.where(codes < 0, found, codes)
    codes[codes < 0] = other
    return codes.astype(np.intp, copy=False)


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool)


def _number_codes(levels: Sequence[float], found: Floats) -> Indices:
    held = np.asarray(levels, dtype=float)
    order = np.argsort(held)
    places = np.searchsorted(held[order], found)
    codes: Indices = order[np.minimum(places, len(held) - 1, out=places)]
    codes[held[codes] != found] = -1
    return codes


#: Types of which equal values have one text, and which a table of texts is made of.
_TEXT = frozenset({str, type(None), type(pd.NA)})


def _texts(values: Array) -> tuple[Indices, list[str]]:
    """Texts of a column, each once, and the position of each value's: -1 for none."""
    values = _objects(np.asarray(values))
    kinds = set(map(type, values))
    # a frame's usual gap among texts: a float, but no number
    if float in kinds and kinds <= _TEXT | {float}:
        kinds = set(map(type, values[~pd.isna(values)])) | {str}
    if not kinds <= _TEXT:
        # One by one: 1, True and 1.0 are equal, so that the text of one would be that
        # of another, and depend on which of them comes first.
        values = object_cells(map(_text, values))
    positions, uniques = pd.factorize(values)
    return positions, [level_text(value) for value in uniques.tolist()]


def _objects(values: Array) -> Array:
    """Values as a column of objects has them, which one text among them makes it."""
    # NumPy makes whole numbers of dates this fine, and pandas' dates are them
    fine = values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] == "ns"
    if fine or values.dtype.kind == "m":
        dates: Array = pd.Series(values).astype(object).to_numpy()
        return dates
    return values if values.dtype.kind == "O" else values.astype(object)


def _text(value: Any) -> str | None:
    try:
        return None if is_missing(value) else level_text(value)
    # of a whole number of more digits than Python writes, or of a foreign object
    except Exception:
        return None


#: Types of which pandas reads a whole column at once, each value by itself.
_NUMBER = frozenset({str, float, int, type(None), type(pd.NA)})


def _floats(values: Array) -> Floats:
    """Numbers of a column, NaN for what is none."""
    kind = values.dtype.kind
    if kind in "biuf":
        with np.errstate(over="ignore"):  # of more than double precision
            return values.astype(float)
    if kind == "c":
        values, kind = values.astype(object), "O"
    # dates are none
    if kind not in "OUS" and not _is_masked_number(values):
        return np.full(len(values), np.nan)
    held = np.asarray(values, dtype=object)
    if not set(map(type, held)) <= _NUMBER:
        held = object_cells(map(_number, held))
    try:
        read = pd.to_numeric(pd.Series(held, dtype=object), errors="coerce")
    except OverflowError:  # of whole numbers beyond the range of floats
        return _floats(object_cells(map(_number, held)))
    return np.asarray(read.to_numpy(dtype=float, na_value=np.nan), dtype=float)


def _number(value: Any) -> Any:
    """One value as a float, a text that may be one, or None."""
    value = real_part(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, Real | Decimal | np.bool_):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, 1 if value > 0 else -1)  # type: ignore[operator] # real
    except (ArithmeticError, ValueError):  # a signalling NaN
        return None


def _is_masked_number(values: Any) -> bool:
    return hasattr(values, "dtype") and pd.api.types.is_numeric_dtype(values.dtype)
