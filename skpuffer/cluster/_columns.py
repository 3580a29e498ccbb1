"""Columns to cluster: scaled by public bounds or a code book, and brought back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.schema import Number
from skpuffer.utils._bounds import Bounds

if TYPE_CHECKING:
    from skpuffer.schema import Encoding
    from skpuffer.utils._types import Floats

__all__ = ["BoundedColumns", "EncodedColumns"]


@dataclass(frozen=True)
class BoundedColumns:
    """Numbers, scaled to [-1, 1] by their bounds.

    Parameters
    ----------
    bounds : Bounds
    """

    bounds: Bounds

    @property
    def box(self) -> Bounds:
        """Bounds of what is clustered."""
        d = len(self.bounds.low)
        return Bounds((-1.0,) * d, (1.0,) * d)

    def scaled(self, X: Floats) -> Floats:
        """Return rows to cluster."""
        return self.bounds.normalise(X)

    def raw(self, places: Floats) -> Floats:
        """Return places in the units of the data."""
        found: Floats = self.bounds.middle + places * self.bounds.half
        return found


@dataclass(frozen=True)
class EncodedColumns:
    """Rows of a code book: numbers in [-1, 1], amounts by their logarithm, levels 0, 1.

    Parameters
    ----------
    encoding : Encoding
        With the scale 'box'.
    """

    encoding: Encoding

    @property
    def box(self) -> Bounds:
        """Bounds of what is clustered."""
        return Bounds(tuple(self.encoding.low), tuple(self.encoding.high))

    def scaled(self, X: Floats) -> Floats:
        """Return rows to cluster: as they have been encoded."""
        return np.clip(X, self.encoding.low, self.encoding.high)

    def raw(self, places: Floats) -> Floats:
        """Return places in the units of the code book, levels as they are."""
        found, at = places.copy(), 0
        schema = self.encoding.schema
        for name in schema.names:
            column = schema[name]
            if isinstance(column, Number):
                low, high = column.scale(np.array([column.low, column.high]))
                middle, half = (low + high) / 2, (high - low) / 2
                found[:, at] = column.unscale(middle + places[:, at] * half)
                at += 1
            else:
                at += len(column.levels)
            at += column.missing_level
        return found
