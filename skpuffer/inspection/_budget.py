"""Budget of an estimator: its nested parameter, and the label of its axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import BaseEstimator

from skpuffer.exceptions import value_error

#: Name of the axis where no certificate says more.
DEFAULT_LABEL = "Budget ε"

_SUFFIX = "accountant__epsilon"


def _is_budget(name: str) -> bool:
    return name == _SUFFIX or name.endswith(f"__{_SUFFIX}")


def budget_parameter(estimator: BaseEstimator) -> str:
    """Return the name of the one nested budget, ``...accountant__epsilon``.

    An accountant that is None counts: a private estimator reads
    ``accountant__epsilon`` as the budget of its default accountant.
    """
    # names alone are asked of nested estimators, so that any meta-estimator will do
    found = []
    for name, value in estimator.get_params(deep=True).items():
        if _is_budget(name):
            found.append(name)
        elif name.rpartition("__")[2] == "accountant" and value is None:
            found.append(f"{name}__epsilon")
    return _only(found, f"the estimator {type(estimator).__name__}")


def search_parameter(cv_results: Mapping[str, Any]) -> str:
    """Return the name of the one budget that a search went over."""
    names = [key.removeprefix("param_") for key in cv_results if key[:6] == "param_"]
    return _only([name for name in names if _is_budget(name)], "the search")


def _only(found: list[str], where: str) -> str:
    """Return the one name found, or say why there is not one."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise value_error(
            "inspection.budget_parameter_not_found", suffix=_SUFFIX, where=where
        )
    raise value_error(
        "inspection.budget_parameter_ambiguous",
        where=where,
        found=", ".join(sorted(found)),
    )


def _owner(estimator: BaseEstimator, param_name: str) -> Any:
    """Return the estimator whose accountant holds the budget."""
    # without its last two components, `accountant` and `epsilon`
    path = param_name.rsplit("__", 2)[0] if param_name.count("__") > 1 else ""
    if not path:
        return estimator
    return estimator.get_params(deep=True).get(path, estimator)


def owner_name(estimator: BaseEstimator, param_name: str) -> str:
    """Return the class name of the estimator whose accountant holds the budget."""
    return type(_owner(estimator, param_name)).__name__


def _certificate(fitted: Any, param_name: str) -> Any:
    """Return the certificate of a fitted estimator, or None if it shows none."""
    for candidate in (_owner(fitted, param_name), fitted):
        # a pipeline's step is fitted in place, so it holds the certificate itself
        if hasattr(candidate, "certificate_"):
            return candidate.certificate_
    # meta-estimators keep the copy they have fitted under one of these names, and
    # know its parameters under the first component of the path
    inner = param_name.partition("__")[2]
    for name in ("best_estimator_", "estimator_"):
        if inner and hasattr(fitted, name):
            return _certificate(getattr(fitted, name), inner)
    return None


def budget_label(fitted: Any, param_name: str) -> str:
    """Return the notion, order and failure mass of a fit's certificate, for an axis."""
    # the promise names the axis: epsilons of two notions are not the same quantity
    certificate = _certificate(fitted, param_name)
    if certificate is None:
        return DEFAULT_LABEL
    if certificate.mutual_information is not None:
        return "Budget: mutual information (nats)"
    parts = [f"{DEFAULT_LABEL}: {certificate.notion.title}"]
    if certificate.alpha is not None and math.isfinite(certificate.alpha):
        parts.append(f"order α = {certificate.alpha:g}")
    if certificate.delta:
        parts.append(f"δ = {certificate.delta:g}")
    return ", ".join(parts)


def fallback_of(fitted: Any, param_name: str) -> float | None:
    """Return what a fit promises whatever is believed, or None without a belief."""
    certificate = _certificate(fitted, param_name)
    return None if certificate is None else certificate.fallback


def pick(labels: Iterable[str]) -> str:
    """Return the label that all fits agree on, or the default one."""
    distinct = set(labels)
    return distinct.pop() if len(distinct) == 1 else DEFAULT_LABEL
