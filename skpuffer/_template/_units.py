"""Units of privacy with several rows each: at most so many of a unit are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from skpuffer.exceptions import scenario_error, value_error
from skpuffer.schema._cells import cell_codes
from skpuffer.utils._reading import (
    as_table,
    drop_position,
    matching_names,
    read_secret,
)
from skpuffer.utils._sklearn import safe_indexing

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Indices

    from ._plan import TableRead


def is_limited(scenario: Any) -> bool:
    """Whether a scenario is about units, of which so many rows are read at most."""
    return getattr(scenario, "max_rows", None) is not None


def kept_rows(
    scenario: Any,
    X: Any,
    y: Any,
    secret: Any,
    groups: Any,
    rng: np.random.Generator,
    weights: Any = None,
    given: Any = None,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Drop the rows beyond what a scenario takes of each unit, before anything is read.

    Which rows are kept is drawn for each unit by itself. Returns the rows that are kept
    and the number of each row's unit, or None where rows are by themselves.
    """
    if not is_limited(scenario):
        return X, y, secret, groups, weights, None
    units = unit_codes(scenario, X if given is None else given, groups)
    # a table of another length is refused, whatever ids it has
    check_consistent_length(units, as_table(X))
    kept = rows_of_units(units, int(scenario.max_rows), rng)
    if not len(kept):
        raise value_error("units.no_row_has_an_id")
    if len(kept) < len(units):
        X, y, secret, groups, weights = (
            None if part is None else safe_indexing(as_table(part), kept)
            for part in (X, y, secret, groups, weights)
        )
    return X, y, secret, groups, weights, units[kept]


def with_sizes(scenario: Any, X: Any, groups: Any) -> Any:
    """Return a scenario that knows the sizes of units, where these are public."""
    if not scenario.reads_sizes:
        return scenario
    units = unit_codes(scenario, X, groups)
    sizes = np.bincount(units[units >= 0], minlength=1)
    if not sizes.max():
        raise value_error("units.no_row_has_an_id")
    return scenario.of_sizes(int(sizes.max()))


def unit_codes(scenario: Any, X: Any, groups: Any = None) -> Indices:
    """Return the number of each row's unit, negative where a row has no id."""
    if scenario.unit is None:
        if groups is None:
            raise scenario_error("units.ids_not_given")
        return cell_codes(read_secret(groups, "groups"))
    if groups is not None:
        raise scenario_error("units.groups_beside_unit", unit=scenario.unit)
    table = as_table(X)
    position = scenario.unit_position(matching_names(table), table.shape[1])
    if position is None:
        raise scenario_error("units.column_not_there", unit=scenario.unit)
    return cell_codes(np.asarray(drop_position(table, position)[1]))


def by_units(
    estimator: Any, scenario: Any, table: TableRead, units: Indices | None = None
) -> TableRead:
    """Return a table of which units are the records, where an estimator reads such."""
    if not is_limited(scenario):
        return table
    if units is not None and table.secret is not None:
        scenario.check_secret_of_units(table.secret, units)
    if not estimator._reads_units():
        return table
    if units is None:
        return replace(table, by_units=True)
    _, units = np.unique(units, return_inverse=True)
    return replace(table, by_units=True, units=units, n_given=int(units.max()) + 1)


def rows_of_units(ids: Indices, most: int, rng: np.random.Generator) -> Indices:
    """Return the positions of at most so many rows of each unit, in their order."""
    (there,) = np.nonzero(ids >= 0)
    if np.bincount(ids[there], minlength=1).max() <= most:
        return there
    shuffled = rng.permutation(there)
    shuffled = shuffled[np.argsort(ids[shuffled], kind="stable")]
    units = ids[shuffled]
    first = np.flatnonzero(np.diff(units, prepend=-1))
    place = np.arange(len(units)) - np.repeat(first, np.diff([*first, len(units)]))
    return np.sort(shuffled[place < most])
