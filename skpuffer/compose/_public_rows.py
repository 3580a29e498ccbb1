"""Public rows to fit a transformer on, with the columns of the data and not of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.scenarios import ReferenceTable
from skpuffer.scenarios.priors._overlap import columns_of, shares_records
from skpuffer.utils._reading import column_names

__all__ = ["is_same", "rows_like", "share_records"]


def rows_like(public: Any, X: Any, owner: object) -> Any:
    """Return public rows with the columns of the data, in their order.

    Parameters
    ----------
    public : data frame, array-like or ReferenceTable
        Columns that the data lacks (the secret, the target) are left out.
    X : data frame or ndarray of shape (n_records, n_columns)
        The data, for the names and the number of its columns.
    owner : Statement
        Where the rows come from, for messages.

    Returns
    -------
    pandas frame if `X` has names, else ndarray

    Raises
    ------
    ScenarioError
        If the columns cannot be matched: by name, or by position where one of the two
        has no names.
    """
    # the table's own error may quote what it holds, so say no more than this
    try:
        frame = ReferenceTable(public).frame()
    except (ScenarioError, ValueError):
        raise ScenarioError(
            Statement("preprocessing.public_table_empty", owner=owner)
        ) from None
    names = column_names(X)
    # a pandas frame made of an array numbers its columns
    named = not all(isinstance(name, int) for name in frame.columns)
    if names is not None and named:
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ScenarioError(
                Statement(
                    "preprocessing.public_columns_missing",
                    owner=owner,
                    missing=missing,
                    columns=list(frame.columns),
                )
            )
        return frame[list(names)]
    # by position: only tables of the same width can be matched
    if frame.shape[1] != X.shape[1]:
        raise ScenarioError(
            Statement(
                "preprocessing.public_column_count_differs",
                owner=owner,
                n_public=frame.shape[1],
                n_columns=X.shape[1],
            )
        )
    if names is None:
        return frame.to_numpy()
    frame.columns = list(names)
    return frame


def share_records(given: Any, reference: Any, X: Any, public: Any) -> bool:
    """Whether reference rows hold private ones.

    Parameters
    ----------
    given, reference : table
        As they came: compared if both have names.
    X, public : table
        The same without the secret, with the same columns in the same order.
    """
    raw = columns_of(given), columns_of(reference)
    known = columns_of(X, column_names(X))
    # by position where one of them has no names
    if any(all(isinstance(name, int) for name in one) for one in raw):
        raw = known, columns_of(public, column_names(public))
    apart = tuple(name for name in raw[0] if name not in known)
    return shares_records(*raw, apart)


def is_same(public: Any, X: Any) -> bool:
    """Whether two tables are one object, or share memory."""
    if public is X:
        return True
    if isinstance(public, np.ndarray) and isinstance(X, np.ndarray):
        pairs = [(public, X)]
    elif isinstance(public, pd.DataFrame) and isinstance(X, pd.DataFrame):
        shared = [name for name in public.columns if name in X.columns]
        pairs = [(np.asarray(public[n]), np.asarray(X[n])) for n in shared]
    else:
        return False
    try:
        most: Any = 10_000  # steps; the stubs know two special values only
        return any(np.shares_memory(a, b, max_work=most) for a, b in pairs)
    except np.exceptions.TooHardError:
        return False  # equal records are looked for besides
