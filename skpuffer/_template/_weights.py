"""Weights of records: clipped to public bounds, and paid for as the largest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from skpuffer.exceptions import Statement, unsupported_error, value_error
from skpuffer.scenarios import RecordScenario
from skpuffer.schema._cells import cell_numbers
from skpuffer.utils._reading import read_labels

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario

    from ._plan import TableRead


@dataclass(frozen=True)
class Weighting:
    """Public facts about the weights of records, in units of the largest.

    Parameters
    ----------
    least : float, default=1.0
        Smallest weight of a record, in [0, 1].
    largest : float, default=1.0
        The unit.
    of_units : bool, default=False
        Whether a unit of several rows is one record: the mean of its rows.
    """

    least: float = 1.0
    largest: float = 1.0
    of_units: bool = False

    @property
    def varies(self) -> bool:
        """Whether records may have different weights."""
        return self.least < 1

    @property
    def assumptions(self) -> tuple[Statement, ...]:
        """Statements of a certificate on them."""
        found = []
        if self.of_units:
            found.append(Statement("assume.units_weigh_the_same"))
        if self.varies:
            low, high = self.least * self.largest, self.largest
            found.append(Statement("assume.weights_clipped", low=low, high=high))
        return tuple(found)


def hides_any_record(scenario: Scenario) -> bool:
    """Whether noise for any records covers all that is secret."""
    # a block of records is moved one record after the other
    inner = getattr(scenario, "scenario", scenario)
    return isinstance(inner, RecordScenario) and scenario.any_records


def check_weight_bounds(bounds: Any, scenario: Scenario) -> None:
    """Check the parameter, and that noise for any record covers all that is secret."""
    try:
        pair = np.asarray(bounds, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pair = np.empty(0)
    right = pair.shape == (2,) and bool(np.all(np.isfinite(pair)))
    if not right or not (0 <= pair[0] <= pair[1] and pair[1] > 0):
        raise value_error("weights.bounds_invalid", bounds=bounds)
    if not hides_any_record(scenario):
        raise unsupported_error(
            "weights.scenario_without", scenario_type=type(scenario).__name__
        )


def read_weights(
    sample_weight: Any,
    table: TableRead,
    weighting: Weighting,
    bounds: tuple[float, float] | None,
) -> TableRead:
    """Return a table with its rows' weights, in units of the largest."""
    n = table.X.shape[0]
    shares = np.ones(n)
    if bounds is not None:
        values = numbers_or_nan(shares if sample_weight is None else sample_weight)
        check_consistent_length(table.X, values)
        low, high = map(float, bounds)
        # rounding must not leave [least, 1]
        values = np.clip(np.where(np.isnan(values), low, values), low, high)
        shares = np.clip(values / high, weighting.least, 1.0)
    lacking = 1.0 - shares
    if weighting.of_units and table.units is not None:
        sizes = np.bincount(table.units)[table.units]
        shares, lacking = shares / sizes, lacking / sizes
    columns = np.column_stack([shares, lacking])
    return replace(table, weighting=weighting, weights=columns)


def numbers_or_nan(values: Any) -> Floats:
    """Return a list of numbers, NaN for whatever is none; no value is refused."""
    found = read_labels(values, missing=True)
    found = np.ravel(found) if found.ndim == 2 and found.shape[1] == 1 else found
    if found.ndim != 1:
        raise value_error("weights.not_one_for_each", ndim=found.ndim)
    return cell_numbers(found)


def with_weights(X: Any, weights: Floats) -> Any:
    """Append weights to the columns of a table, as sums of weighted records read it."""
    if sparse.issparse(X):
        return sparse.hstack([X, weights], format="csr")
    return np.column_stack([np.asarray(X, dtype=float), weights])


def without_weights(X: Any) -> tuple[Any, Floats]:
    """Return a table as it was before :func:`with_weights`, and the weights."""
    held = X[:, -2:]
    weights = held.toarray() if sparse.issparse(held) else held
    return X[:, :-2], np.asarray(weights)[:, 0]
