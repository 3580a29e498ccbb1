"""Public pools that are given as a table, and tables drawn of them."""

from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import Rows
from skpuffer.scenarios.priors._tables import ReferenceTable, bound_arrays
from skpuffer.utils._reading import is_frame, refuse_mask, row_count

__all__ = [
    "check_classes",
    "check_pool",
    "pool_arrays",
    "pool_digest",
    "pool_rows",
    "taken_of",
]


def _dimensions(values: Any) -> int:
    """Dimensions of an array, -1 of rows of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return -1


def pool_rows(pool: Any) -> tuple[Any, Any]:
    """Return rows and targets of a pool that is given, as they are."""
    return pool if isinstance(pool, tuple) else (pool, None)


def check_pool(pool: Any) -> None:
    """Refuse what is no pool.

    Parameters
    ----------
    pool : 'known', table or tuple of (X, y)

    Raises
    ------
    ScenarioError
    """
    if isinstance(pool, str):
        if pool != "known":
            raise ScenarioError(
                Statement("subsample.pool_not_known_or_table", pool=pool)
            )
        return
    if isinstance(pool, tuple) and len(pool) != 2:
        raise ScenarioError(
            Statement("subsample.pool_tuple_not_pair", n_pool=len(pool))
        )
    X, y = pool_rows(pool)
    refuse_mask(X, "pool")
    refuse_mask(y, "pool")
    if sparse.issparse(X):
        raise ScenarioError(Statement("subsample.pool_sparse"))
    if not is_frame(X) and _dimensions(X) != 2:
        raise ScenarioError(
            Statement("subsample.pool_not_a_table", x_type=type(X).__name__)
        )
    if y is not None and row_count(y) != row_count(X):
        raise ScenarioError(
            Statement(
                "subsample.pool_target_count_differs",
                n_records=row_count(X),
                n_targets=row_count(y),
            )
        )


def pool_digest(pool: Any) -> str:
    """Return a hash of the content of a public pool, as it was given.

    Parameters
    ----------
    pool : table or tuple of (X, y)

    Returns
    -------
    str
    """
    X, y = pool_rows(pool)
    targets = None if y is None else ReferenceTable(np.asarray(y).reshape(len(y), -1))
    digests = [ReferenceTable(X).digest, None if targets is None else targets.digest]
    return str(joblib.hash(digests))


def check_classes(y: Any) -> None:
    """Refuse to stratify by what is no column of classes.

    Parameters
    ----------
    y : array-like of shape (n_pool,) or None

    Raises
    ------
    ScenarioError
    """
    if y is None or _dimensions(y) != 1:
        raise ScenarioError(Statement("subsample.stratify_without_target"))


def pool_arrays(pool: Any, context: PublicContext) -> tuple[Any, Any]:
    """Return a public pool as the query reads it.

    Parameters
    ----------
    pool : table or tuple of (X, y)
    context : PublicContext

    Returns
    -------
    X : ndarray of shape (n_pool, n_features)
    y : ndarray of shape (n_pool,) or None

    Raises
    ------
    ScenarioError
        If it has other columns than the table.
    """
    X, y = pool_rows(pool)
    if context.has_target and y is None:
        raise ScenarioError(Statement("subsample.pool_without_targets"))
    try:
        return bound_arrays(context, X, y)
    except ScenarioError as error:
        raise ScenarioError(
            Statement("subsample.pool_differs_from_table", error=error)
        ) from None


def taken_of(
    table: tuple[Rows, Any], pool: tuple[Any, Any], rng: np.random.Generator | None
) -> NDArray[np.bool_]:
    """Return which records of a pool a table has, and refuse one that has others.

    Parameters
    ----------
    table, pool : tuple of (X, y)
        Read in one way. Targets are compared where both have them.
    rng : numpy.random.Generator or None
        Records of the pool that are equal are as likely to be the ones that the table
        has. None takes the first of them.

    Returns
    -------
    ndarray of bool of shape (n_pool,)

    Raises
    ------
    ScenarioError
        Without quoting a record: which are there is what is hidden.
    """
    both = np.concatenate([_dense(pool[0]), _dense(table[0])])
    if table[1] is not None and pool[1] is not None:
        targets = [np.asarray(y, dtype=float) for y in (pool[1], table[1])]
        columns = np.concatenate([y.reshape(len(y), -1) for y in targets])
        both = np.column_stack([both, columns])
    n_pool = row_count(pool[0])
    # both were read in one way, so a record is equal to itself; zeros have one sign
    _, which = np.unique(both + 0.0, axis=0, return_inverse=True)
    which = which.reshape(-1)
    times = np.bincount(which[n_pool:], minlength=int(which.max()) + 1)
    # the pool's records of one kind in a chance order, of which the first are taken
    order = np.arange(n_pool) if rng is None else rng.permutation(n_pool)
    order = order[np.argsort(which[order], kind="stable")]
    kinds = which[order]
    rank = np.arange(n_pool) - np.searchsorted(kinds, kinds)
    mask = np.zeros(n_pool, dtype=bool)
    mask[order] = rank < times[kinds]
    if mask.sum() != len(both) - n_pool:
        raise ScenarioError(Statement("subsample.records_not_in_pool"))
    return mask


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=float)
