"""Public encoding of a table as numbers: scaled, imputed, one-hot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.utils._checks import check_option

from ._columns import Category
from ._values import column_arrays, level_codes, numbers

if TYPE_CHECKING:
    from skpuffer.utils._types import Array, Floats, Table

    from ._columns import Column
    from ._schema import Schema

__all__ = ["Encoding"]


@dataclass(frozen=True)
class Encoding:
    """Public map from the rows of a table to vectors of numbers.

    A category becomes one column a level, of zeros and a one; a number stays one
    column. What is missing is the `fill` of its column, or a column of its own beside
    a number that is zero. Each row is read by itself, and none is refused.

    Parameters
    ----------
    schema : Schema
    scale : {'unit_ball', 'box', 'raw'}, default='unit_ball'
        'raw' leaves numbers in their units. 'box' maps their bounds, for amounts those
        of the logarithm, to [-1, 1]. 'unit_ball' then divides by the square root of the
        number of columns of the schema, so that no row is longer than one.

    Attributes
    ----------
    names : ndarray of str of shape (n_outputs,)
        ``sex_F`` for the level F of the column sex.
    low, high : ndarray of shape (n_outputs,)
        Bounds of the result.
    norm : float
        Largest l2 norm of a row; infinity if raw.

    Examples
    --------
    >>> from skpuffer.schema import Schema
    >>> schema = Schema({"age": (0, 100), "sex": ["F", "M"]})
    >>> encoding = schema.encoding("box")
    >>> encoding.names
    array(['age', 'sex_F', 'sex_M', 'sex_missing'], dtype=object)
    >>> encoding([[75, "M"], [None, "x"]])
    array([[0.5, 0. , 1. , 0. ],
           [0. , 0. , 0. , 1. ]])
    """

    schema: Schema
    scale: str = "unit_ball"
    names: Array = field(init=False, repr=False, compare=False)
    low: Floats = field(init=False, repr=False, compare=False)
    high: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_option(("unit_ball", "box", "raw"), scale=self.scale)
        names: list[str] = []
        low: list[float] = []
        high: list[float] = []
        for name in self.schema.names:
            column = self.schema[name]
            if isinstance(column, Category):
                names += [f"{name}_{level}" for level in column.levels]
                width = len(column.levels)
                low, high = low + [0.0] * width, high + [1.0] * width
            else:
                raw = self.scale == "raw"
                names.append(str(name))
                low.append(column.low if raw else -1.0)
                high.append(column.high if raw else 1.0)
            if column.missing_level:
                names.append(f"{name}_missing")
                low.append(0.0)
                high.append(1.0)
        object.__setattr__(self, "names", np.array(names, dtype=object))
        object.__setattr__(self, "low", np.array(low) * self._factor)
        object.__setattr__(self, "high", np.array(high) * self._factor)

    @property
    def _factor(self) -> float:
        if self.scale != "unit_ball":
            return 1.0
        return 1 / math.sqrt(max(1, len(self.schema)))

    @property
    def norm(self) -> float:
        """Largest l2 norm of a row."""
        # each column of the schema fills one block, whose norm is at most one
        if self.scale == "raw":
            return math.inf
        return 1.0 if self.scale == "unit_ball" else math.sqrt(len(self.schema))

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = "the schema was fixed beforehand and holds nothing of the private data"
    leaks = ()

    @property
    def n_columns(self) -> int:
        """Number of columns that are read."""
        return len(self.schema)

    def __call__(self, X: Table) -> Floats:
        """Encode a table.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)
            A frame may have other columns too.

        Returns
        -------
        ndarray of shape (n, n_outputs)

        Raises
        ------
        ValueError
            If a column is not there.
        """
        arrays = column_arrays(X, self.schema.names)
        blocks = [
            self._block(self.schema[name], values)
            for name, values in zip(self.schema.names, arrays, strict=True)
        ]
        # rounding must not put a row outside of the bounds that its noise is for
        return np.clip(np.column_stack(blocks) * self._factor, self.low, self.high)

    def _block(self, column: Column, values: Array) -> Floats:
        if isinstance(column, Category):
            width = len(column.levels) + column.missing_level
            return np.eye(width)[level_codes(column, values)]
        found, missing = numbers(column, values)
        if self.scale != "raw":
            low, high = column.scale(np.array([column.low, column.high]))
            found = (column.scale(found) - (low + high) / 2) / ((high - low) / 2)
        if not column.missing_level:
            return found[:, None]
        if self.scale != "raw":
            # one block of norm one at most: a number, or the mark that there is none
            found = np.where(missing, 0.0, found)
        return np.column_stack([found, missing])
