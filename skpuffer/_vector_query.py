"""Queries by foreign code: a vector of numbers, whose shape no record may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import floats

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["VectorQuery"]


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
            raise ValueError(
                Statement("query.value_not_finite", parameter=self._parameter)
            )
        return vector

    def _as_array(self, part: Any) -> Floats:
        array = floats(part)
        if array is None:
            raise ValueError(
                Statement(
                    "query.part_not_array",
                    parameter=self._parameter,
                    part_type=type(part).__name__,
                    source=self._source,
                )
            )
        return array

    def check_shapes(self, shapes: list[tuple[int, ...]]) -> None:
        """Refuse a shape that depends on the records: the noise would not match.

        Parameters
        ----------
        shapes : list of tuple
            Of the arrays that one table gave.
        """
        if self.shapes is not None and shapes != self.shapes:
            raise ValueError(
                Statement(
                    "query.shape_depends_on_records",
                    parameter=self._parameter,
                    shapes=self.shapes,
                    shapes2=shapes,
                )
            )
        # noise for another number of coordinates would not be what was accounted for
        size = sum(int(np.prod(shape)) for shape in shapes)
        if self._dim is not None and size != self._dim:
            raise ValueError(
                Statement(
                    "query.length_not_announced",
                    parameter=self._parameter,
                    size=size,
                    dim=self._dim,
                )
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
