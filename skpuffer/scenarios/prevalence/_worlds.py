"""Tables in which a value is as common as one likes, by the least relabelling."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Indices
from skpuffer.schema._cells import cell_key
from skpuffer.utils._reading import cells_of, is_frame, row_count

__all__ = ["Ranking", "ranking", "relabelled"]


@dataclass(frozen=True)
class Ranking:
    """Which records have the value, for each number of them, and what the others have.

    Parameters
    ----------
    order : ndarray of int of shape (n_records,)
        The first so many of it have the value. Those that have it now come first, so
        that no other table with as many differs from this one in fewer records.
    value : object
    others : ndarray of shape (n_records,)
        What each record has without it.
    column : str, int or None
        None is the target.
    """

    order: Indices
    value: Any
    others: NDArray[Any]
    column: Any


def ranking(
    X: Any, y: Any, column: Any, value: Any, rng: np.random.Generator
) -> Ranking:
    """Return in which order records get or lose a value.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_records, n_columns)
    y : array-like of shape (n_records,) or None
    column : str, int or None
        None is the target.
    value : object
        None is the second of two, in their order.
    rng : numpy.random.Generator

    Returns
    -------
    Ranking
    """
    held = _target(y) if column is None else _column(X, column)
    if y is not None and (given := row_count(y)) != (n := row_count(X)):
        raise ScenarioError(
            Statement("prevalence.target_count_differs", given=given, n=n)
        )
    codes, labels = pd.factorize(held, sort=True)
    if np.any(codes < 0):
        raise ScenarioError(Statement("prevalence.secret_column_missing_values"))
    if value is None:
        if len(labels) != 2:
            raise ScenarioError(
                Statement("prevalence.value_not_named", n_labels=len(labels))
            )
        position = 1
    else:
        same = np.flatnonzero([cell_key(v) == cell_key(value) for v in labels])
        if len(same) != 1 or len(labels) < 2:
            raise ScenarioError(
                Statement("prevalence.value_not_in_column", value=value)
            )
        position = int(same[0])
    has = codes == position
    shuffled = rng.permutation(len(has))
    order = np.concatenate([shuffled[has[shuffled]], shuffled[~has[shuffled]]])
    # who loses it gets what some record without it has
    others = held.copy()
    others[has] = rng.choice(held[~has], size=int(has.sum()))
    return Ranking(order, labels[position], others, column)


def relabelled(X: Any, y: Any, rank: Ranking, count: int) -> tuple[Any, Any]:
    """Return a copy of a table in which so many records have the value.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_records, n_columns)
    y : array-like of shape (n_records,) or None
    rank : Ranking
    count : int

    Returns
    -------
    X, y : as given
        Of which one is written anew.
    """
    cells = rank.others.copy()
    cells[rank.order[:count]] = rank.value
    if rank.column is None:
        return X, y if y is None else _like(y, cells)
    if isinstance(X, pd.DataFrame):
        column = X[rank.column]
        return X.assign(**{rank.column: _like(column, cells)}), y
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        values = nw.new_series(rank.column, cells, backend=nw.get_native_namespace(X))
        return frame.with_columns(values).to_native(), y
    X = np.array(X)
    X[:, rank.column] = cells
    return X, y


def _like(old: Any, cells: NDArray[Any]) -> Any:
    """Cells as what they stand for: a series keeps its index, name and dtype."""
    if isinstance(old, pd.Series):
        return pd.Series(cells, index=old.index, name=old.name).astype(old.dtype)
    series = nw.from_native(old, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        backend = nw.get_native_namespace(series)
        return nw.new_series(series.name, cells, backend=backend).to_native()
    return cells


def _target(y: Any) -> NDArray[Any]:
    if y is None:
        raise ScenarioError(Statement("prevalence.target_missing"))
    held = np.asarray(y)
    if held.ndim != 1:
        raise ScenarioError(Statement("prevalence.target_not_one_dimensional"))
    return held


def _column(X: Any, column: Any) -> NDArray[Any]:
    """Cells of a column, by name or position."""
    if sparse.issparse(X):
        raise ScenarioError(Statement("prevalence.table_sparse"))
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        if column in frame.columns:
            return np.array(cells_of(frame.get_column(column)))
    else:
        rows = np.asarray(X)
        by_position = not isinstance(column, str) and rows.ndim == 2
        if by_position and 0 <= column < rows.shape[1]:
            return np.array(rows[:, column])
    raise ScenarioError(Statement("prevalence.column_unknown", column=column))
