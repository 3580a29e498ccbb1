"""Tables of any library: column names, one column, a plain copy in pandas."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "as_table",
    "column_names",
    "drop_position",
    "is_frame",
    "matching_names",
    "refuse_mask",
    "row_count",
    "to_pandas",
]


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame (pandas, polars, or another eager one)."""
    if isinstance(X, pd.DataFrame | np.ndarray):  # what it nearly always is
        return isinstance(X, pd.DataFrame)
    return nw.dependencies.is_into_dataframe(X)


def as_table(X: Any) -> Any:
    """Return lists of rows as an array of objects, and anything with a shape as it is.

    Of objects, as the text of a secret column must be kept.
    """
    refuse_mask(X, "X")
    return X if hasattr(X, "shape") or is_frame(X) else np.asarray(X, dtype=object)


def refuse_mask(values: object, name: str) -> None:
    """Refuse a masked array, whose masked values would be read."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"The parameter {name!r} is a masked array, whose masked values would be "
            "read. Fill them by public values: filled(...)."
        )


def column_names(X: Any) -> tuple[Any, ...] | None:
    """Return the column names of a frame as a tuple, or None for anything else."""
    if not is_frame(X):
        return None
    return tuple(nw.from_native(X, eager_only=True).columns)


def matching_names(X: Any) -> tuple[Any, ...] | None:
    """Return column names that say what a column is, or None.

    Integers are what pandas numbers columns with when nobody names them: as positions
    they mean another column as soon as one is left out.
    """
    names = column_names(X)
    if names is None or all(isinstance(name, Integral) for name in names):
        return None
    return names


def row_count(X: Any) -> int:
    """Return the number of records of a frame, an array or a sparse matrix."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def to_pandas(X: Any, columns: Iterable[Any] | None = None) -> pd.DataFrame:
    """Return a pandas frame with the same columns, or an array's with names 0, 1, …

    Column by column through NumPy, because a frame's own conversion may need an
    optional library that is not ours to require.
    """
    if isinstance(X, pd.DataFrame):
        return X if columns is None else X.loc[:, list(columns)]
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        names = frame.columns if columns is None else columns
        return pd.DataFrame({name: frame[name].to_numpy() for name in names})
    frame = pd.DataFrame(np.asarray(X))
    return frame if columns is None else frame.loc[:, list(columns)]


def drop_position(X: Any, position: int) -> tuple[Any, NDArray[Any]]:
    """Split off one column by position.

    Returns
    -------
    rest : same kind as X
    column : ndarray of shape (n_records,)
    """
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        name = frame.columns[position]
        # not frame[name]: a name that is a number would be read as a row
        return frame.drop(name).to_native(), frame.get_column(name).to_numpy()
    if hasattr(X, "tocsc"):
        keep = np.delete(np.arange(X.shape[1]), position)
        column = X.tocsc()
        return column[:, keep].tocsr(), column[:, [position]].toarray().ravel()
    X = np.asarray(X)
    return np.delete(X, position, axis=1), X[:, position]
