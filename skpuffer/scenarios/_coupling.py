"""Names of couplings that several releases of one table share."""

from typing import Any

import joblib

from skpuffer.exceptions import Statement
from skpuffer.releases import PublicContext

from ._base import BoundScenario

__all__ = ["coupling_in_table", "relabelling", "same_table"]


def relabelling(context: PublicContext, count: int) -> str | None:
    """Name of the coupling of tables in which so many targets differ, or None.

    The target of one release may be a feature of another, which hides it from nobody:
    only releases of equal columns rest on one coupling.

    Parameters
    ----------
    context : PublicContext
    count : int

    Returns
    -------
    str or None
    """
    columns = context.feature_names, context.target_name
    if None in columns:
        return None
    return f"relabel:{count}:{joblib.hash(columns)}"


def coupling_in_table(bound: BoundScenario, kind: str, *key: Any) -> str | None:
    """Name of a coupling of two neighbouring tables, or None if it has no name.

    One prior describes many tables, and two of them may depend on each other in any
    way: of the same people one may hold a fair sign U and the other sU, with s the
    secret. So a coupling belongs to a table that the scenario names, and to columns
    that have names.

    Parameters
    ----------
    bound : BoundScenario
        Of a scenario with a parameter `table`.
    kind : str
    *key : objects
        All else that the coupling depends on.

    Returns
    -------
    str or None
    """
    table, context = bound.scenario.table, bound.context
    if table is None or context.feature_names is None:
        return None
    # equal digests mean equal priors, pairs and columns: one and the same coupling
    digest = joblib.hash([*key, context.feature_names])
    return f"{kind}, {context.n_records} records of {table!r}:{digest}"


def same_table(coupling: str | None, table: str | None) -> tuple[Statement, ...]:
    """Assumptions that a shared coupling makes, in sentences.

    Parameters
    ----------
    coupling : str or None
        As :func:`coupling_in_table` names it.
    table : str or None

    Returns
    -------
    tuple of str
        Empty where nothing is shared.
    """
    if coupling is None:
        return ()
    return (Statement("assume.same_table_by_name", table=table),)
