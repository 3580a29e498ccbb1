"""A private estimator's twin under plain differential privacy, to compare it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.exceptions import Statement
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Schema
from skpuffer.utils._reading import as_table, drop_position, matching_names

if TYPE_CHECKING:
    from skpuffer.utils._types import Table

__all__ = ["baselines_of"]

_NAMES = {
    "replace": "Differential privacy, a record replaced",
    "add_remove": "Differential privacy, a record added or removed",
}


def baselines_of(
    baseline: BaseEstimator | str | None,
    estimator: BaseEstimator,
    param_name: str,
    X: Table,
) -> tuple[dict[str, Any], Any]:
    """Return what a private estimator is to be compared with, by name.

    Parameters
    ----------
    baseline : estimator, 'dp' or None
    estimator : estimator object
    param_name : str
        Where it holds its budget.
    X : {array-like, data frame} of shape (n_records, n_columns)

    Returns
    -------
    baselines : dict of {str: estimator}
    X : {array-like, data frame}
        Without the secret column, which they would read.

    Raises
    ------
    ValueError
        If `baseline` is none of these, or the budget is that of no private estimator.
    """
    if baseline is None:
        return {}, X
    if hasattr(baseline, "fit") and not isinstance(baseline, type):
        return {f"Baseline: {type(baseline).__name__}": baseline}, X
    if baseline != "dp":
        raise ValueError(Statement("inspection.baseline_invalid", baseline=baseline))
    params = estimator.get_params(deep=True)
    prefix = param_name.removesuffix("accountant__epsilon")
    if not {f"{prefix}scenario", f"{prefix}accountant"} <= set(params):
        raise ValueError(
            Statement("inspection.dp_baseline_needs_accountant", param_name=param_name)
        )
    scenario, accountant = params[f"{prefix}scenario"], params[f"{prefix}accountant"]
    public: dict[str, Any] = {}
    if scenario is not None:
        table = as_table(X)
        at = scenario.secret_position(matching_names(table), table.shape[1])
        X = X if at is None else drop_position(table, at)[0]
        # steps that are fitted on the prior's rows have no prior any more
        rows = scenario.public_table()
        public = {
            name: rows
            for name, value in params.items()
            if name.rpartition("__")[2] == "reference" and value is None
        }
        # of the table without the secret, which the scenario would leave out of it
        public |= {
            name: _without_secret(scenario, value)
            for name, value in params.items()
            if isinstance(value, Schema)
        }
    found = {}
    for relation, name in _NAMES.items():
        changed = {
            f"{prefix}scenario": RecordScenario(relation=relation),
            f"{prefix}accountant": _plain(accountant),
        }
        found[name] = clone(estimator).set_params(**public, **changed)
    return found, X


def _without_secret(scenario: Any, schema: Schema) -> Schema:
    """Return the code book of the table without the secret."""
    at = scenario.secret_position(schema.names, len(schema))
    return schema if at is None else schema.without(schema.names[at])


def _plain(accountant: Any) -> PrivacyLoss | RenyiDP:
    """Accountant of differential privacy in the same notion and with the same noise."""
    alpha = getattr(accountant, "alpha", None)
    noise = {
        name: getattr(accountant, name)
        for name in ("noise", "beta")
        if getattr(accountant, name, None) is not None
    }
    delta = getattr(accountant, "delta", None)
    if alpha is not None and delta is None:
        return RenyiDP(1.0, None, alpha=float(alpha), **noise)
    return PrivacyLoss(1.0, 1e-5 if delta is None else float(delta), **noise)
