"""Overlap of a table said to be public with the private records."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skpuffer.utils._reading import to_pandas

__all__ = ["PRIOR_OVERLAP", "REFERENCE_OVERLAP", "columns_of", "shares_records"]

_OVERLAP = (
    "{} holds the private records, or half of them: it is not public, and what was "
    "taken from it is not covered by any promise. Use other rows"
)

#: What is said of a belief, and of preprocessing, that private records were taken for.
PRIOR_OVERLAP = _OVERLAP.format("the prior")
REFERENCE_OVERLAP = _OVERLAP.format("the reference table")

# An odd number that mixes the hashes of columns; from Knuth's multiplicative hashing.
_MIX = np.uint64(0x9E3779B97F4A7C15)


def columns_of(table: Any) -> Iterator[pd.Series]:
    """Yield the columns of a table.

    Parameters
    ----------
    table : {data frame, array-like, sparse matrix} of shape (n, n_columns)

    Yields
    ------
    Series of shape (n,)
    """
    if sparse.issparse(table):
        table = table.tocsc()
        for j in range(table.shape[1]):
            yield pd.Series(table[:, [j]].toarray().ravel())
        return
    table = to_pandas(table)
    for j in range(table.shape[1]):
        yield table.iloc[:, j]


def shares_records(
    private: Iterable[pd.Series], public: Iterable[pd.Series], *, coded: bool = False
) -> bool:
    """Whether two tables are equal up to order, or share half of the private rows.

    Parameters
    ----------
    private, public : iterable of Series
        The same columns in the same order.
    coded : bool, default=False
        Whether private rows were read as public ones, which they share by that. Then
        only equal tables count.

    Returns
    -------
    bool
        Whether the rows are the same in some order, or at least half of the private
        ones are among the public. Rows count for that if they are there once in both
        tables: honest tables of few values share the others by chance.
    """
    # one hash for each row, made column by column; it depends on their order
    ours = theirs = np.uint64(0)
    for pair in zip(private, public, strict=True):
        ours, theirs = (
            _mixed(found ^ pd.util.hash_array(values))
            for found, values in zip((ours, theirs), _alike(*pair), strict=True)
        )
    mine, times = np.unique(ours, return_counts=True)
    others, counts = np.unique(theirs, return_counts=True)
    if np.array_equal(mine, others) and np.array_equal(times, counts):
        return True
    if coded:
        return False
    # of rows that repeat in either table nothing is concluded
    both = np.intersect1d(mine[times == 1], others[counts == 1], assume_unique=True)
    return bool(2 * len(both) >= ours.size)


def _mixed(hashes: Any) -> Any:
    # without the shift, low bits of a product never see the high ones
    hashes = hashes * _MIX
    return hashes ^ (hashes >> np.uint64(29))


def _alike(*columns: pd.Series) -> list[Any]:
    """Return two columns as numbers of one precision, or else as text."""
    try:
        values = [column.to_numpy(dtype=float) for column in columns]
    except (TypeError, ValueError):
        return [column.astype(str).to_numpy(dtype=object) for column in columns]
    # By the values, as a table that was rounded once may have other dtypes since.
    with np.errstate(over="ignore"):
        rounded = [value.astype(np.float32) for value in values]
    if any(map(_equal, values, rounded)):
        values = rounded
    return [value + 0.0 for value in values]  # of two zeros, one


def _equal(values: Any, rounded: Any) -> bool:
    return np.array_equal(values, rounded, equal_nan=True)
