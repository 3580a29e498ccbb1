"""Foreign code in a release: its sensitivity is stated, and its shape never varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_count, check_each, check_positive, floats
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import LawsScenario

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario


class VectorQuery:
    """Base of queries that stack what foreign code returns, and split it again.

    Parameters
    ----------
    dim : int or None
        Number of coordinates of the vector, if known.

    Attributes
    ----------
    shapes : list of tuple or None
        Shapes of the arrays, once they are known.
    """

    #: Parameter of the estimator that the code is from, for messages.
    _parameter: ClassVar[str]

    #: What the code reads.
    _source: ClassVar[str]

    def __init__(self, dim: int | None):
        self._dim = dim
        self.shapes: Any = None

    def _stacked(self, parts: list[Any]) -> Floats:
        """Stack arrays to one vector, or refuse them."""
        arrays = [self._as_array(part) for part in parts]
        # Noise hides values, not how many there are: it is calibrated for one
        # dimension, and a shape that depends on the rows would be released without any.
        self.check_shapes([array.shape for array in arrays])
        vector = np.concatenate([array.ravel() for array in arrays])
        # NaN plus noise is NaN: it would tell of the table that made it
        if not np.all(np.isfinite(vector)):
            raise value_error("query.value_not_finite", parameter=self._parameter)
        return vector

    def _as_array(self, part: Any) -> Floats:
        array = floats(part)
        if array is None:
            raise value_error(
                "query.part_not_array",
                parameter=self._parameter,
                part_type=type(part).__name__,
                source=self._source,
            )
        return array

    def check_shapes(self, shapes: list[tuple[int, ...]]) -> None:
        """Refuse a shape that depends on the records: the noise would not match."""
        if self.shapes is not None and shapes != self.shapes:
            raise value_error(
                "query.shape_depends_on_records",
                parameter=self._parameter,
                shapes=self.shapes,
                shapes2=shapes,
            )
        # noise for another number of coordinates would not be what was accounted for
        size = sum(int(np.prod(shape)) for shape in shapes)
        if self._dim is not None and size != self._dim:
            raise value_error(
                "query.length_not_announced",
                parameter=self._parameter,
                size=size,
                dim=self._dim,
            )
        self.shapes = shapes

    @property
    def size(self) -> int | None:
        """How many numbers it gives; None before a table was read."""
        if self.shapes is None:
            return None
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def split(self, vector: Floats) -> list[Floats | float]:
        """Split a released vector into the arrays asked for; scalars become floats."""
        # back in the order of the query; an empty shape is that of a scalar
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        return [
            piece.reshape(shape) if shape else piece[0].item()
            for piece, shape in zip(
                np.split(vector, ends[:-1]), self.shapes, strict=True
            )
        ]


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
            raise value_error(
                "parameter.units_not_n_outputs",
                n_units=len(units),
                n_outputs=self.n_outputs,
            )
        # Foreign code has no sensitivity that could be found out by trying. Scenarios
        # whose secret is any record need one; those that know the output's
        # distributions, or draw them, do not.
        if self.sensitivity is None:
            if scenario.any_records:
                raise unsupported_error(
                    "parameter.sensitivity_missing",
                    scenario_type=type(scenario).__name__,
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
            raise value_error("parameter.units_not_positive", shape=units.shape)
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
            raise value_error(
                "parameter.units_not_scenario_dim", n_units=len(units), dim=dim
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
