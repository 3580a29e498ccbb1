"""Public encoding of a table as numbers: scaled, imputed, one-hot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_option
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import distinct_names

from ._cells import column_arrays, level_codes, numbers
from ._columns import Category, Number

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Table

    from ._columns import Column
    from ._schema import Schema


#: Deviations of a number, of known spread, that become one.
_DEVIATIONS = 2.0


@dataclass(frozen=True)
class Encoding:
    """Public map from the rows of a table to vectors of numbers.

    A category becomes one column of zeros and ones a level; a number stays one column.
    A missing value is the `fill` of its column, or marked in a column of its own. No
    row is refused.

    Parameters
    ----------
    schema : Schema
    scale : {'unit_ball', 'box', 'raw'}, default='unit_ball'
        'raw' leaves numbers in their units. 'box' maps their bounds (of the logarithm
        for amounts) to [-1, 1]. 'unit_ball' scales a number with a `centre` and a
        `spread` by these, any other by its bounds, and centres levels by their
        `shares`; rows are divided by the length of a usual one, and cut to length one.

    Attributes
    ----------
    names : ndarray of str of shape (n_outputs,)
        Such as ``sex_F`` for the level F of the column sex.
    low, high : ndarray of shape (n_outputs,)
        Bounds of the result.
    norm : float
        Largest l2 norm of a row; infinity if raw.
    marks : dict of {int: int}
        For each number that may be missing, the position of its mark.

    Examples
    --------
    >>> from skpuffer.schema import Schema
    >>> schema = Schema({"age": (0, 100), "sex": ["F", "M"]})
    >>> encoding = schema.encoding("box")
    >>> encoding.names.tolist()
    ['age', 'age_missing', 'sex_F', 'sex_M', 'sex_missing']
    >>> encoding([[75, "M"], [None, "x"]])
    array([[0.5, 0. , 0. , 1. , 0. ],
           [0. , 1. , 0. , 0. , 1. ]])
    """

    schema: Schema
    scale: str = "unit_ball"
    names: Array = field(init=False, repr=False, compare=False)
    low: Floats = field(init=False, repr=False, compare=False)
    high: Floats = field(init=False, repr=False, compare=False)
    marks: dict[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_option(("unit_ball", "box", "raw"), scale=self.scale)
        names: list[str] = []
        low: list[float] = []
        high: list[float] = []
        marks: dict[int, int] = {}
        for name in self.schema.names:
            column = self.schema[name]
            if isinstance(column, Category):
                shares = self._shares(column)
                names += [f"{name}_{level}" for level in column.levels]
                low, high = [*low, *(0 - shares)], [*high, *(1 - shares)]
            else:
                raw = self.scale == "raw"
                names.append(str(name))
                low.append(column.low if raw else -1.0)
                high.append(column.high if raw else 1.0)
            if column.has_gaps:
                if isinstance(column, Number):
                    marks[len(names) - 1] = len(names)
                names.append(f"{name}_missing")
                low.append(0.0)
                high.append(1.0)
        object.__setattr__(self, "names", np.array(distinct_names(names), dtype=object))
        object.__setattr__(self, "marks", marks)
        object.__setattr__(self, "low", np.array(low) / self._usual)
        object.__setattr__(self, "high", np.array(high) / self._usual)

    def _shares(self, column: Category) -> Floats:
        """Shares of the levels that are taken off."""
        if self.scale != "unit_ball" or column.shares is None:
            return np.zeros(len(column.levels))
        return np.array(column.shares)

    @property
    def _usual(self) -> float:
        """Length of a usual row, by which rows are divided."""
        if self.scale != "unit_ball":
            return 1.0
        columns = [self.schema[name] for name in self.schema.names]
        return math.sqrt(sum(map(_usual_square, columns)) or 1.0)

    @property
    def norm(self) -> float:
        """Largest l2 norm of a row."""
        # each column of the schema fills one block, whose norm is at most one
        if self.scale == "raw":
            return math.inf
        return 1.0 if self.scale == "unit_ball" else math.sqrt(len(self.schema))

    @property
    def whole_numbers(self) -> list[tuple[int, float, float]]:
        """Places of whole numbers in a row, with the first and last within bounds."""
        found, place = [], 0
        for name in self.schema.names:
            column = self.schema[name]
            if isinstance(column, Category):
                place += len(column.levels)
            else:
                if column.whole_range is not None and self.scale == "raw":
                    found.append((place, *column.whole_range))
                place += 1
            place += column.has_gaps
        return found

    @property
    def level_blocks(self) -> list[tuple[int, ...]]:
        """Places of the levels of each category in a row, and of what is missing."""
        found, place = [], 0
        for column in map(self.schema.__getitem__, self.schema.names):
            width = 1 + column.has_gaps
            if isinstance(column, Category):
                width = len(column.levels) + column.has_gaps
                found.append(tuple(range(place, place + width)))
            place += width
        return found

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Statement("assume.schema_fixed_beforehand")
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
        rows = np.column_stack(blocks) / self._usual
        # rounding must not put a row outside of the bounds that its noise is for
        rows = np.clip(rows, self.low, self.high)
        return clip_rows(rows, 1.0) if self.scale == "unit_ball" else rows

    def _block(self, column: Column, values: Array) -> Floats:
        if isinstance(column, Category):
            codes = level_codes(column, values)
            width = len(column.levels) + column.has_gaps
            block = np.zeros((len(codes), width))
            block[np.arange(len(codes)), codes] = 1.0
            block[:, : len(column.levels)] -= self._shares(column)
            return block
        found, missing = numbers(column, values)
        if self.scale != "raw":
            middle, half = self._unit_of(column)
            found = np.clip((column.scale(found) - middle) / half, -1.0, 1.0)
        if not column.has_gaps:
            return found[:, None]
        if self.scale != "raw":
            # one block of norm one at most: a number, or the mark that there is none
            found = np.where(missing, 0.0, found)
        return np.column_stack([found, missing])

    def _unit_of(self, column: Number) -> tuple[float, float]:
        """Where a number is zero, and how far from there it is one."""
        if self.scale == "unit_ball" and column.spread is not None:
            return float(column.centre or 0.0), _DEVIATIONS * column.spread
        low, high = column.scale(np.array([column.low, column.high]))
        return (low + high) / 2, (high - low) / 2


def _usual_square(column: Column) -> float:
    """Square of the length of a usual block, by what is known of its column."""
    if isinstance(column, Category):
        shares = np.array(column.shares or ())
        return 1 - float(shares @ shares)
    # of a uniform number, or of one of known spread
    return 1 / 3 if column.centre is None else 1 / _DEVIATIONS**2
