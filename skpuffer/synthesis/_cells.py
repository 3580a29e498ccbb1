"""Public map from a table to cells, and from cells to a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement
from skpuffer.schema import Binning, Category, Number, Schema

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Indices, Table

__all__ = ["TableCells"]


@dataclass(frozen=True)
class TableCells:
    """Public map from the rows of a table to cells, the target among the columns.

    Parameters
    ----------
    schema : Schema
        Of all columns of the synthetic table, none of them set apart as a target.
    target : str, int or None
        The column within whose cells the others are linked.
    n_bins : int
        Cells of a number for which the schema does not say how many.

    Attributes
    ----------
    binning : Binning
    """

    schema: Schema
    target: Hashable | None
    n_bins: int
    binning: Binning = field(init=False, repr=False, compare=False)

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Statement("assume.schema_fixed_beforehand")
    leaks = ()

    def __post_init__(self) -> None:
        binning = self.schema.binning(self.n_bins, self.n_bins)
        object.__setattr__(self, "binning", binning)

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of all columns, in the order of the schema."""
        return self.binning.names

    @property
    def position(self) -> int | None:
        """Position of the target."""
        return None if self.target is None else self.names.index(self.target)

    @property
    def n_cells(self) -> tuple[int, ...]:
        """Cells of each column; of a categorical target its declared levels alone."""
        sizes = list(self.binning.n_cells)
        if self.target is not None and self._levels:
            sizes[self.names.index(self.target)] = len(self._levels)
        return tuple(sizes)

    @property
    def _levels(self) -> tuple[Any, ...]:
        """Levels of a categorical target."""
        # a target that is missing or not declared is none, and its row counts nowhere
        column = None if self.target is None else self.schema[self.target]
        return column.levels if isinstance(column, Category) else ()

    def largest_table(self) -> tuple[int, tuple[Any, ...]]:
        """Return the most cells of a table of two columns (and the target), and which.

        Returns
        -------
        n_cells : int
        names : tuple
        """
        sizes = dict(zip(self.names, self.n_cells, strict=True))
        first = () if self.target is None else (self.target,)
        others = [name for name in self.names if name != self.target]
        # two columns as large as any; of one column, its margin
        most = sorted(others, key=lambda name: -sizes[name])[:2]
        names = (*first, *most)
        return int(np.prod([sizes[name] for name in names], dtype=object)), names

    def __call__(self, X: Table) -> Indices:
        """Return the cell of each value.

        Parameters
        ----------
        X : {data frame, array-like} of shape (n, n_columns)
            A frame may have other columns too.

        Returns
        -------
        ndarray of int of shape (n, n_columns)
            A target that is none of its levels has the code after the last one.
        """
        codes = self.binning(X)
        at = self.position
        if at is None or not self._levels:
            return codes
        frame = self.schema.frame(X)
        labels = self.schema.with_target(self.target).class_codes(frame[self.target])
        n_levels = self.n_cells[at]
        codes = codes.astype(
            np.promote_types(codes.dtype, np.min_scalar_type(n_levels))
        )
        codes[:, at] = np.where(labels < 0, n_levels, labels)
        return np.asfortranarray(codes)

    def labels(self, k: int) -> list[str]:
        """Return a text for each cell of a column."""
        return self.binning.labels(k)[: self.n_cells[k]]

    # -- back ---------------------------------------------------------------------

    def decode(
        self, codes: Sequence[Indices], rng: np.random.Generator
    ) -> pd.DataFrame:
        """Return rows whose values lie in given cells.

        Parameters
        ----------
        codes : sequence of ndarray of int of shape (n,)
            Of all columns.
        rng : numpy.random.Generator

        Returns
        -------
        pandas.DataFrame
            Types and levels are those of the schema: categories; whole numbers where
            the schema says so, drawn uniformly among those of the cell; other numbers,
            uniformly in the cell. Missing is NaN or NA.
        """
        columns = {
            name: self._values(k, np.asarray(codes[k]), rng)
            for k, name in enumerate(self.names)
        }
        return pd.DataFrame(columns)

    def _values(self, k: int, codes: Indices, rng: np.random.Generator) -> Any:
        column, edges = self.schema[self.names[k]], self.binning.edges[k]
        if isinstance(column, Category):
            # the cell of missing values stands after the levels
            known = np.where(codes < len(column.levels), codes, -1)
            return pd.Categorical.from_codes(
                known, categories=list(column.levels), ordered=column.ordered
            )
        assert edges is not None
        n_cells = len(edges) - 1
        missing = codes == n_cells
        inside = np.where(missing, 0, codes)
        share = rng.random(len(codes))
        if not column.integer:
            values = edges[inside] + share * np.diff(edges)[inside]
            return np.where(missing, np.nan, values)
        low, high = _whole_numbers(column, edges)
        whole = low[inside] + np.floor(share * (high - low + 1)[inside])
        if not column.missing_level:
            return whole.astype(np.int64)
        return pd.array(np.where(missing, np.nan, whole), dtype="Int64")


def _whole_numbers(column: Number, edges: Floats) -> tuple[Floats, Floats]:
    """First and last whole number of each cell."""
    low, high = np.ceil(edges[:-1]), np.ceil(edges[1:]) - 1
    # the last cell is closed
    high[-1] = max(high[-1], np.floor(edges[-1]))
    # a cell that holds none gives way to the nearest one within the bounds
    middle = np.round((edges[:-1] + edges[1:]) / 2)
    middle = np.clip(middle, np.ceil(column.low), np.floor(column.high))
    empty = high < low
    low[empty] = high[empty] = middle[empty]
    return low, high
