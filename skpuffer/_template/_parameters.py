"""Scenario and accountant of a fit, and what stands for none."""

from __future__ import annotations

import functools
from typing import Any

from sklearn.base import clone

from skpuffer.accountants import Accountant, PrivacyLoss
from skpuffer.exceptions import Statement
from skpuffer.scenarios import RecordScenario, Scenario

__all__ = [
    "DEFAULT_DELTA",
    "DEFAULT_EPSILON",
    "scenario_and_accountant",
]

#: Epsilon of an estimator that was told nothing.
DEFAULT_EPSILON = 1.0

#: Delta of an estimator that was told nothing.
DEFAULT_DELTA = 1e-5

# Made anew at each call, since a default value in a signature must be None. Under
# differential privacy one accountant is the best for every release; elsewhere it
# depends on what the scenario offers.
OF_RECORDS = functools.partial(
    PrivacyLoss, epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA
)


def of_secrets() -> Accountant:
    # it brings accountants with it that plain differential privacy has no use for
    from skpuffer.accountants import Best

    return Best(epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA)


def scenario_and_accountant(estimator: Any) -> tuple[Scenario, Accountant]:
    """Return the scenario and a private copy of the accountant, both checked."""
    found: list[Any] = []
    for name, kind in (("scenario", Scenario), ("accountant", Accountant)):
        held = getattr(estimator, name)
        if held is None:
            default: Any = RecordScenario
            if found:
                plain = isinstance(found[0], RecordScenario)
                default = OF_RECORDS if plain else of_secrets
            held = default()
        if not isinstance(held, kind):
            raise TypeError(
                Statement(
                    "parameter.not_instance_or_none",
                    name=name,
                    kind=kind.__name__,
                    held=held,
                )
            )
        # by plain code: scikit-learn's validation of parameters can be switched off
        held.check()
        found.append(held)
    scenario, accountant = found
    # a copy: changing the parameter after the fit must not change `accountant_`
    return scenario, clone(accountant)
