"""Public cells of a table's columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_count

from ._cells import AT_ONCE, column_arrays, level_codes, numbers
from ._columns import MOST_BINS, Category, Column, Date, Number

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Table

    from ._schema import Schema


#: Part of the bounds within which a number is in the cell of zero, if that has one.
ZERO = 2.0**-40

#: What cells are of.
LEVELS, ORDERED, AMOUNT = "levels", "ordered", "amount"


@dataclass(frozen=True)
class Binning:
    """Public map from the rows of a table to one cell a column.

    Levels and few whole numbers (up to `n_bins`) are cells as they are. Other numbers
    fall into equal cells of their bounds, amounts into equal cells of the logarithm. A
    column with a level for missing values has it as its last cell. Whatever a row holds
    has a cell.

    Parameters
    ----------
    schema : Schema
    n_bins : int, default=32
        Cells of a number for which the schema does not say how many.
    n_amount_bins : int, default=256
        Cells of an amount.
    n_halvings : int or None, default=None
        How often the cell at zero is halved towards it, for a number that is no amount
        and has zero as a bound. None leaves cells equal.

    Attributes
    ----------
    names : tuple
        Names of the columns.
    n_cells : tuple of int
        Number of cells of each column.
    kinds : tuple of {'levels', 'ordered', 'amount'}
        Whether the order of cells says something, and of what they are.
    has_missing : tuple of bool
        Whether the last cell is that of missing values.
    edges : tuple of ndarray or None
        Edges of the cells of numbers, one more than there are, in the column's unit.
    values : tuple of list
        Value of each cell: a level, the middle of a cell, None if missing.

    Examples
    --------
    >>> from skpuffer.schema import Schema
    >>> schema = Schema({"age": (0, 100), "sex": ["F", "M"]})
    >>> binning = schema.binning(n_bins=4)
    >>> binning.n_cells
    (5, 3)
    >>> binning([[30, "M"], [170, None], [None, "F"]])
    array([[1, 1],
           [3, 2],
           [4, 0]], dtype=uint8)
    """

    schema: Schema
    n_bins: int = 32
    n_amount_bins: int = 256
    n_halvings: int | None = None
    names: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    n_cells: tuple[int, ...] = field(init=False, repr=False, compare=False)
    kinds: tuple[str, ...] = field(init=False, repr=False, compare=False)
    has_missing: tuple[bool, ...] = field(init=False, repr=False, compare=False)
    edges: tuple[Floats | None, ...] = field(init=False, repr=False, compare=False)
    values: tuple[list[Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(n_bins=self.n_bins, most=MOST_BINS)
        check_count(n_amount_bins=self.n_amount_bins, most=MOST_BINS)
        columns = [self.schema[name] for name in self.schema.names]
        edges = tuple(self._edges_of(column) for column in columns)
        missing = tuple(column.has_gaps for column in columns)
        values = tuple(map(_values, columns, edges))
        found = {
            "names": self.schema.names,
            "edges": edges,
            "has_missing": missing,
            "kinds": tuple(map(_kind, columns)),
            "values": values,
            "n_cells": tuple(map(len, values)),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def _edges_of(self, column: Column) -> Floats | None:
        if isinstance(column, Category):
            return None
        if isinstance(column.bins, tuple):
            return np.asarray(column.bins)
        whole = column.whole_edges(self.n_bins)
        if whole is not None:
            return whole
        count = column.bins or (self.n_amount_bins if column.amount else self.n_bins)
        low, high = column.scale(np.array([column.low, column.high]))
        inner = column.unscale(np.linspace(low, high, count + 1)[1:-1])
        if self.n_halvings is not None and column.bins is None and not column.amount:
            inner = self._near_zero(column, inner)
        # the ends are the bounds themselves, whatever a logarithm rounds to
        return np.concatenate([[column.low], inner, [column.high]])

    def _near_zero(self, column: Number, inner: Floats) -> Floats:
        """Inner edges, and finer ones towards a bound that is zero."""
        if 0.0 not in (column.low, column.high):
            return inner
        whole = column.high - column.low
        width = whole / (len(inner) + 1)
        # zero alone, and what no number of floats is told apart from it
        alone = 0.5 if column.integer else whole * ZERO
        halves = width * 0.5 ** np.arange(self.n_halvings or 0, 0, -1)
        near = np.array([alone, *halves[halves > 2 * alone]])
        if column.low < 0:
            return np.concatenate([inner, -near[::-1]])
        return np.concatenate([near, inner])

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Statement("assume.schema_fixed_beforehand")
    leaks = ()

    def __call__(self, X: Table) -> Indices:
        """Return the cell of each value.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)
            A frame may have other columns too.

        Returns
        -------
        codes : ndarray of shape (n, n_columns)
            Unsigned, in Fortran order.
        """
        arrays = column_arrays(X, self.names)
        largest = max(self.n_cells, default=1) - 1
        kind = np.min_scalar_type(largest)
        codes = np.empty((len(arrays[0]), len(arrays)), dtype=kind, order="F")
        # some rows at a time: what is made on the way stays small
        for start in range(0, len(codes), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            for k, values in enumerate(arrays):
                codes[rows, k] = self._codes_of(k, values[rows])
        return codes

    def _codes_of(self, k: int, values: Any) -> Indices:
        column, edges = self.schema[self.names[k]], self.edges[k]
        if isinstance(column, Category):
            return level_codes(column, values)
        assert edges is not None
        found, missing = numbers(column, values)
        # closed below and open above, the ends without end
        codes = np.searchsorted(edges[1:-1], found, side="right")
        if column.has_gaps:
            codes[missing] = self.n_cells[k] - 1
        return codes

    def labels(self, k: int) -> list[str]:
        """Return a text for each cell of a column."""
        column, edges = self.schema[self.names[k]], self.edges[k]
        if edges is None or are_whole(column, edges):
            text = column.text if isinstance(column, Date) else _written
            texts = [text(value) for value in self._of(k)]
        else:
            text = column.text if isinstance(column, Date) else "{:.4g}".format
            texts = [
                f"[{low}, {high})" for low, high in itertools.pairwise(map(text, edges))
            ]
            texts[-1] = texts[-1][:-1] + "]"
        return texts + ["missing"] * self.has_missing[k]

    def _of(self, k: int) -> list[Any]:
        values = self.values[k]
        return values[:-1] if self.has_missing[k] else values


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(column: Column) -> str:
    if isinstance(column, Number):
        return AMOUNT if column.amount else ORDERED
    return ORDERED if column.ordered else LEVELS


def are_whole(column: Column, edges: Floats) -> bool:
    """Whether each cell is one whole number."""
    integer = isinstance(column, Number) and column.integer
    return integer and bool(np.all(np.diff(edges) == 1) and edges[0] % 1 == 0.5)


def _values(column: Column, edges: Floats | None) -> list[Any]:
    if isinstance(column, Category):
        found = list(column.levels)
    else:
        assert edges is not None
        scaled = column.scale(edges)
        if are_whole(column, edges):
            found = (edges[:-1] + 0.5).tolist()
        else:
            found = column.unscale((scaled[:-1] + scaled[1:]) / 2).tolist()
    return found + [None] * column.has_gaps
