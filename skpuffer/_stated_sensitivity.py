"""Sensitivities of foreign code, which their user states; units of what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import check_count, check_each, check_positive
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import LawsScenario

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.scenarios import Scenario

__all__ = ["StatedSensitivityMixin"]


class StatedSensitivityMixin:
    """Mixin of estimators that release what foreign code computes of a table.

    They have the parameters `sensitivity`, `n_outputs` and `units`.
    """

    sensitivity: Sensitivity | float | None
    n_outputs: int | None
    units: ArrayLike | None

    def _check_stated(self, scenario: Scenario) -> None:
        """Check the three parameters, before any row is read."""
        if self.n_outputs is not None:
            check_count(n_outputs=self.n_outputs)
        units = self._stated_units()
        if units is not None and self.n_outputs not in (None, len(units)):
            raise ValueError(
                Statement(
                    "parameter.units_not_n_outputs",
                    n_units=len(units),
                    n_outputs=self.n_outputs,
                )
            )
        # Foreign code has no sensitivity that could be found out by trying. Scenarios
        # whose secret is any record need one; those that know the output's
        # distributions, or draw them, do not.
        if self.sensitivity is None:
            if scenario.any_records:
                raise UnsupportedError(
                    Statement(
                        "parameter.sensitivity_missing",
                        scenario_type=type(scenario).__name__,
                    )
                )
        elif not isinstance(self.sensitivity, Sensitivity):
            check_positive(sensitivity=self.sensitivity)

    def _stated_sensitivity(self) -> Sensitivity | None:
        """Sensitivity of the vector, in its units."""
        if self.sensitivity is None or isinstance(self.sensitivity, Sensitivity):
            return self.sensitivity
        # one number is given for both relations
        move: dict[float, float] = {2: float(self.sensitivity)}
        return Sensitivity(add_remove=move, replace=move)

    def _stated_units(self) -> tuple[float, ...] | None:
        """Unit of each number that is released."""
        if self.units is None:
            return None
        units = np.asarray(check_each(check_positive, units=self.units), dtype=float)
        if units.ndim != 1 or not units.size:
            raise ValueError(
                Statement("parameter.units_not_positive", shape=units.shape)
            )
        return tuple(units.tolist())

    def _public_length(self, scenario: Scenario) -> int | None:
        """Length of the vector, where it is public beforehand."""
        units = self._stated_units()
        stated = self.n_outputs if units is None else len(units)
        if not isinstance(scenario, LawsScenario):
            return stated
        # explicit distributions are of one length, which the vector must have
        dim = scenario.laws[0][0].dim
        if units is not None and len(units) != dim:
            raise ValueError(
                Statement(
                    "parameter.units_not_scenario_dim", n_units=len(units), dim=dim
                )
            )
        return dim

    def _stated_assumptions(self) -> list[Statement]:
        """What the certificate takes for granted of the foreign code."""
        # what the user claims of it cannot be checked
        if self.sensitivity is None:
            return []
        return [
            Statement("assume.stated_sensitivity_holds", sensitivity=self.sensitivity)
        ]
