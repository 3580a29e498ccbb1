"""Plan of a release: which columns, within which classes, in which tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement
from skpuffer.releases import PublicContext
from skpuffer.schema import Binning, Category, Date, Number, Schema
from skpuffer.schema._binning import ZERO

from ._mechanism import Mechanism
from ._structure import Budget, Structure, affordable

# Halvings of the cell at a bound that is zero: numbers of many sizes, most of them
# small, are told apart down to a thousandth of a cell.
_HALVINGS = 10

#: Bins below which nobody asks for finer ones: what is asked for is made.
_MANY = 32

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._types import Table

    from ._model import TableModel


@dataclass(frozen=True)
class TableCells:
    """Public map from the rows of a table to cells, the target among the columns.

    `schema`: schema of all columns of the synthetic table, none set apart as a target.
    `target`: the column within whose cells the others are linked. `n_bins`: cells of a
    number for which the schema does not say how many.
    """

    schema: Schema
    target: Hashable | None
    n_bins: int
    binning: Binning = field(init=False, repr=False, compare=False)

    #: As of public preprocessing: what makes it public, and what it leaks.
    assumption = Statement("assume.schema_fixed_beforehand")
    leaks = ()

    def __post_init__(self) -> None:
        binning = self.schema.binning(
            self.n_bins, self.n_bins, _HALVINGS if self.n_bins >= _MANY else None
        )
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
        """Return the most cells of a table of two columns, and the columns."""
        sizes = dict(zip(self.names, self.n_cells, strict=True))
        first = () if self.target is None else (self.target,)
        others = [name for name in self.names if name != self.target]
        # two columns as large as any; of one column, its margin
        most = sorted(others, key=lambda name: -sizes[name])[:2]
        names = (*first, *most)
        return int(np.prod([sizes[name] for name in names], dtype=object)), names

    def __call__(self, X: Table) -> Indices:
        """Return the cell of each value, (n, n_columns).

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
        """Return rows whose values lie in given cells, as a data frame.

        Types and levels are those of the schema. Numbers are drawn uniformly in the
        cell, whole where the schema says so. Missing is NaN or NA.
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
            widths = np.diff(edges)
            # of the cell of zero no other number is drawn
            widths[widths < 2 * ZERO * (column.high - column.low)] = 0.0
            values = edges[inside] + share * widths[inside]
            return np.where(missing, np.nan, values)
        low, high = _whole_numbers(column, edges)
        whole = low[inside] + np.floor(share * (high - low + 1)[inside])
        if isinstance(column, Date):
            return column.present(np.where(missing, np.nan, whole))
        if not column.has_gaps:
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


@dataclass(frozen=True)
class Plan:
    """The release of a table, from public facts alone.

    `target` is the position of the column whose cells are the classes.
    """

    cells: TableCells
    structure: Structure
    target: int | None = None

    @classmethod
    def within(
        cls,
        cells: TableCells,
        n_records: int,
        budget: Budget,
        shares: Sequence[float],
    ) -> Plan:
        """Return the richest plan that the noise allows.

        `shares` are its parts for margins, scores and tables.
        """
        target, n_cells = cells.position, cells.n_cells
        plain = Structure(n_cells)
        if target is None or len(n_cells) < 2:
            return cls(cells, affordable([plain], n_records, budget, shares))
        others = n_cells[:target] + n_cells[target + 1 :]
        by_class = Structure(others, n_cells[target])
        found = affordable([by_class, plain], n_records, budget, shares)
        return cls(cells, found, target if found == by_class else None)

    @property
    def kind(self) -> str:
        """Name of the structure: 'classes', 'tree' or 'independent'."""
        if not self.structure.linked:
            return "independent"
        return "tree" if self.target is None else "classes"

    @property
    def given_up(self) -> Statement | None:
        """Wanted parts that the noise forbids, None if nothing."""
        if not self.structure.linked and len(self.cells.n_cells) > 1:
            return Statement("synthesis.given_up_links")
        if self.target is None and self.cells.position is not None:
            return Statement("synthesis.given_up_class_links")
        return None

    @property
    def columns(self) -> list[int]:
        """Positions of the columns besides the classes."""
        return [k for k in range(len(self.cells.n_cells)) if k != self.target]

    def mechanism(self, release: AdaptiveRelease, noise: Noise) -> Mechanism:
        """Return what executes a release and reads what was released."""
        binning = self.cells.binning
        return Mechanism(
            structure=self.structure,
            kinds=tuple(binning.kinds[k] for k in self.columns),
            has_missing=tuple(
                # a target has its levels alone
                binning.has_missing[k] and binning.n_cells[k] == self.cells.n_cells[k]
                for k in self.columns
            ),
            release=release,
            noise=noise,
            counts_all=self.cells.position is None,
            is_private_size=getattr(release.context, "size", None) == "private",
        )

    def split(self, codes: Indices) -> tuple[Indices, list[Indices]]:
        """Return the classes and the cells of the other columns.

        Rows whose target is none of its levels are left out.
        """
        at = self.cells.position
        if at is not None:
            codes = codes[codes[:, at] < self.cells.n_cells[at]]
        cells = [codes[:, k] for k in self.columns]
        if self.target is None:
            return np.zeros(len(codes), dtype=np.intp), cells
        return codes[:, self.target], cells

    # -- what is read of the model ------------------------------------------------

    def in_order(self, classes: Indices, cells: Sequence[Indices]) -> list[Indices]:
        """Return the codes of all columns in the order of the schema."""
        found = dict(zip(self.columns, cells, strict=True))
        if self.target is not None:
            found[self.target] = classes
        return [found[k] for k in range(len(found))]

    def joint(self, model: TableModel, columns: Sequence[int]) -> Floats:
        """Return the masses of all cells of some columns, by their positions."""
        others = [k for k in columns if k != self.target]
        table = model.joint([self.columns.index(k) for k in others])
        if self.target is None or self.target not in columns:
            return np.asarray(table.sum(axis=0))
        # the classes come first, and go where they were asked for
        return np.moveaxis(table, 0, list(columns).index(self.target))


@dataclass(frozen=True, kw_only=True)
class SynthesisContext(PublicContext):
    """Public facts of a table, and the plan of its release."""

    plan: Plan | None = field(default=None)
