"""Contributions of a record to counts: by sign, bin, level, cell of a cross-table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from skpuffer._template._elsewhere import Part
from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.queries import NORMS, stacked_sensitivity
from skpuffer.releases import Sensitivity

from ._gaps import of_each_record
from ._mean import row_blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Array


# Rows whose cells are found at once.
_ROWS = 2**17

# By the order of the norm, for a record that is added or removed and for one replaced.
#
# Of a vector with a single one. A replaced record moves the one to another place: by
# two in l1, by sqrt(2) in l2.
_ONE_HOT = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 2.0, 2.0: math.sqrt(2.0), math.inf: 1.0},
)
# Of a number that is one or zero.
_ONE = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
)
# Of a number that is one or minus one: it moves by one if the record comes or goes, by
# two if it is replaced, in every norm as there is one coordinate only.
_SIGN = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 2.0, 2.0: 2.0, math.inf: 2.0},
)


def stepwise(
    gaps: Floats, positions: Sequence[int], sensitivity: Sensitivity, norm: float
) -> Floats:
    """Sensitivity of contributions that jump: none where no column they read moves."""
    # A contribution that jumps moves by all of its sensitivity however little the
    # column does, so a smooth bound on moves gains nothing; a column that cannot move
    # gains all.
    apart = sensitivity.value("replace", norm, None)
    return np.where(np.any(gaps[:, list(positions)] > 0, axis=1), apart, 0.0)


def cell_counts(
    codes: Indices,
    n_codes: int,
    cells: Indices | None,
    n_cells: int,
    weights: Floats | None = None,
) -> Floats:
    """Count records by cell and code, as an array of shape (n_cells, n_codes).

    Codes and cells count from 0. A negative code counts as nothing.
    """
    # what counts as nothing has a column of its own, which is left out
    places = np.maximum(codes, -1) + 1
    # it would be counted in the next cell
    if places.size and places.max() > n_codes:
        raise IndexError(Statement("summary.code_beyond_levels"))
    if cells is not None:
        places += cells * (n_codes + 1)
    counts = np.bincount(places, weights, minlength=n_cells * (n_codes + 1))
    return counts.reshape(n_cells, -1)[:, 1:].astype(float)


def _counts(
    contribution: Bins | Levels,
    X: Floats,
    cells: Indices | None,
    n_cells: int,
    weights: Floats | None,
) -> Floats:
    """Sums of a contribution with a single one, by the codes of its column."""
    size = contribution.dim
    counts = np.zeros((n_cells, size))
    for rows in row_blocks(len(X), 1, n_cells * size):
        codes = contribution.codes(X[rows])
        within = None if cells is None else cells[rows]
        share = None if weights is None else weights[rows]
        counts = counts + cell_counts(codes, size, within, n_cells, share)
    return counts


def _bins_of(x: Floats, edges: Floats) -> Indices:
    """Position of the last edge at or below each value, -1 where there is none."""
    last = len(edges) - 2
    # the table had none when it was read
    if np.isnan(x).any():
        raise value_error("summary.memory_map_changed")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scale = (last + 1) / (edges[-1] - edges[0])

        def guesses(values: Floats) -> Indices:
            inside = np.clip((values - edges[0]) * scale, 0, last)
            guess: Indices = inside.astype(np.intp)
            return guess

        # The guess grows with the value, rounding and all. So where the bin that is
        # guessed for an edge is its own or the one below, that of any value is at most
        # one off: looking at its two edges mends it.
        places = np.arange(last + 1)
        off = places - guesses(edges[:-1]) if 0 < scale < np.inf else places + 2
        if np.any(off < 0) or np.any(off > 1):
            return np.searchsorted(edges, x, side="right") - 1
        found = guesses(x)
    found -= x < edges[found]
    found += x >= edges[found + 1]
    return found


def one_hot(codes: Indices, size: int) -> Floats:
    """Vectors with a single one each, of shape (n, size); none at a negative code."""
    out = np.zeros((len(codes), size))
    # a negative code counts as nothing: zeros, which are nearer to each vector with a
    # single one than two of these are to each other, in every norm
    (rows,) = np.nonzero(codes >= 0)
    out[rows, codes[rows]] = 1.0
    return out


@dataclass(frozen=True)
class Signs:
    """Contribution to a rate: plus one where a column is positive, else minus one.

    Parameters
    ----------
    positions : tuple of int
    marks : tuple of int, default=()
        As of :class:`Moments`.
    """

    positions: tuple[int, ...]
    marks: tuple[int, ...] = ()

    is_count = False

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.positions)

    @property
    def units(self) -> tuple[float, ...]:
        """Half the range of an indicator, for each column."""
        return (0.5,) * self.dim

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        return stacked_sensitivity(self.by_column.values())

    @property
    def by_column(self) -> dict[int, Sensitivity]:
        """Sensitivity of the contributions of each column, by its position."""
        return dict.fromkeys(self.positions, _SIGN)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return of_each_record(self, X)

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self.dim + len(self.marks)

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Whether a column is positive, for each; see :meth:`Moments.parts`."""
        positive = [columns[at] > 0 for at in self.positions]
        missing = [columns[at] > 0 for at in self.marks]
        if missing:
            positive = [p & ~m for p, m in zip(positive, missing, strict=True)]
        return [Part(truths, is_count=True) for truths in (*positive, *missing)]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        # Centred at zero: with plus or minus one a record added or removed moves the
        # sum by one, in units of half the range; with zero or one, by two such units.
        positive, missing = np.split(sums, [self.dim], axis=1)
        return 2 * positive - (counts - (missing if self.marks else 0))

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        # of two counts, those that are positive and those that are not
        columns = []
        for at, mark in zip_longest(self.positions, self.marks):
            codes = _marked((X[:, at] > 0).astype(np.intp), X, mark)
            columns.append(cell_counts(codes, 2, cells, n_cells, weights))
        return np.column_stack([counts[:, 1] - counts[:, 0] for counts in columns])

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        # one norm of the norms of the blocks: they are different coordinates
        parts = [
            stepwise(gaps, [at] if mark is None else [at, mark], _SIGN, norm)
            for at, mark in zip_longest(self.positions, self.marks)
        ]
        moves: Floats = np.linalg.norm(parts, norm, axis=0)
        return moves


@dataclass(frozen=True)
class Bins:
    """Contribution to a histogram: a one where a value falls, on a public grid.

    Bins are closed below and open above, the last one closed. Values outside are
    counted in the first or the last, and missing ones in none.

    Parameters
    ----------
    edges : tuple of float
        Increasing.
    mark : int or None, default=None
        Column that is one where the value is missing; None if none ever is.
    """

    position: int
    edges: tuple[float, ...]
    mark: int | None = None

    is_count = True
    sensitivity = _ONE_HOT

    @property
    def by_column(self) -> dict[int, Sensitivity]:
        """Sensitivity of the contributions of its column, by its position."""
        return {self.position: self.sensitivity}

    @property
    def dim(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def units(self) -> tuple[float, ...]:
        """Counts, for each bin."""
        return (1.0,) * self.dim

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return one_hot(self.codes(np.asarray(X)), self.dim)

    def codes(self, X: Array) -> Indices:
        """Position of the bin of each record, of shape (n,); -1 where none is."""
        # Clipped into the first or last bin and never dropped: every record counts
        # exactly once, as the shares of a group that add up to its size require.
        found = _bins_of(X[:, self.position], np.asarray(self.edges))
        return _marked(np.clip(found, 0, self.dim - 1), X, self.mark)

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self.dim - (self.mark is None)

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Whether a value reaches an edge, for each inner one; see `Moments.parts`."""
        column = columns[self.position]
        reached = [column >= edge for edge in self.edges[1:-1]]
        if self.mark is not None:
            # what is there reaches the first edge
            present = ~(columns[self.mark] > 0)
            reached = [present, *(truths & present for truths in reached)]
        return [Part(truths, is_count=True) for truths in reached]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        if self.mark is not None:
            return -np.diff(sums, axis=1, append=0.0)
        return -np.diff(sums, axis=1, prepend=counts, append=0.0)

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        return _counts(self, X, cells, n_cells, weights)

    @property
    def reads(self) -> list[int]:
        """Columns that are read."""
        return [self.position, *([] if self.mark is None else [self.mark])]

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return stepwise(gaps, self.reads, self.sensitivity, norm)


def _marked(codes: Indices, X: Array, mark: int | None) -> Indices:
    """Codes, -1 where a value is missing."""
    return codes if mark is None else np.where(X[:, mark] > 0, -1, codes)


@dataclass(frozen=True)
class Levels:
    """Contribution to counts of levels: a one at the level of a categorical column.

    Parameters
    ----------
    position : int
        Position of a column that holds codes 0, 1, …; a negative one counts as nothing.
    dim : int
        Number of levels.
    """

    position: int
    dim: int

    is_count = True
    sensitivity = _ONE_HOT

    @property
    def by_column(self) -> dict[int, Sensitivity]:
        """Sensitivity of the contributions of its column, by its position."""
        return {self.position: self.sensitivity}

    @property
    def units(self) -> tuple[float, ...]:
        """Counts, for each level."""
        return (1.0,) * self.dim

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return one_hot(self.codes(np.asarray(X)), self.dim)

    def codes(self, X: Array) -> Indices:
        """Level of each record, of shape (n,)."""
        levels: Indices = X[:, self.position].astype(np.intp)
        return levels

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self.dim

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Whether a record has a level, for each; see :meth:`Moments.parts`."""
        codes = columns[self.position]
        return [Part(codes == code, is_count=True) for code in range(self.dim)]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        return sums

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions by cell; see :meth:`Moments.sums`."""
        return _counts(self, X, cells, n_cells, weights)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return stepwise(gaps, [self.position], self.sensitivity, norm)


@dataclass(frozen=True)
class Level(Levels):
    """Contribution to the count of one level: a one there, and zero elsewhere.

    Parameters
    ----------
    code : int, default=0
        Code of the level.
    """

    code: int = 0

    sensitivity = _ONE

    def codes(self, X: Array) -> Indices:
        """Zero for a record at the level, and -1 for others, of shape (n,)."""
        return np.where(super().codes(X) == self.code, 0, -1)

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Whether a record has the level; see :meth:`Moments.parts`."""
        return [Part(columns[self.position] == self.code, is_count=True)]


@dataclass(frozen=True)
class Grouped:
    """Contribution by group: a block in the cell of the cross-table a record lies in.

    Parameters
    ----------
    positions : tuple of int
        Columns of codes that span the table; a record with a negative one is in none
        of its cells.
    sizes : tuple of int
        Their numbers of levels.
    block : callable
        Contribution of a record within its cell.
    """

    positions: tuple[int, ...]
    sizes: tuple[int, ...]
    block: Any

    @property
    def n_cells(self) -> int:
        """Number of cells, empty ones included."""
        return math.prod(self.sizes)

    @property
    def dim(self) -> int:
        """Number of coordinates: one block for each cell."""
        dim: int = self.n_cells * self.block.dim
        return dim

    @property
    def is_count(self) -> bool:
        """Whether all contributions are zeros and ones that count something."""
        is_count: bool = self.block.is_count
        return is_count

    @property
    def units(self) -> tuple[float, ...]:
        """Units of the block, for each cell."""
        units: tuple[float, ...] = self.block.units * self.n_cells
        return units

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        return grouped_sensitivity(self.block.sensitivity)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim), cell after cell."""
        X = np.asarray(X)
        # Parallel composition: a record writes into its own cell only, so all cells
        # together have the sensitivity of one, or twice where a replaced record changes
        # cells.
        cells = self.cells(X)
        (inside,) = np.nonzero(cells < self.n_cells)
        out = np.zeros((len(X), self.n_cells, self.block.dim))
        out[inside, cells[inside]] = self.block(X[inside])
        return out.reshape(len(X), self.dim)

    def cells(self, X: Array) -> Indices:
        """Cell of each record, of shape (n,); `n_cells` for one that is in none."""
        codes = [X[:, at].astype(np.intp) for at in self.positions]
        outside = codes[0] < 0
        for column in codes[1:]:
            outside |= column < 0
        for column in codes if outside.any() else ():
            column[outside] = 0
        cells = np.ravel_multi_index(tuple(codes), self.sizes)
        cells[outside] = self.n_cells
        return cells

    def cell(self, columns: Sequence[Any]) -> Any:
        """Cell of each record, `n_cells` for none: as :meth:`cells`, by an engine."""
        cell, inside = nw.lit(0), nw.lit(True)
        for at, size in zip(self.positions, self.sizes, strict=True):
            cell = cell * size + columns[at]
            inside = inside & (columns[at] >= 0)
        return nw.when(inside).then(cell).otherwise(nw.lit(self.n_cells))

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Those of the block, summed by cell; see :meth:`Moments.parts`."""
        parts: list[Part] = self.block.parts(columns)
        return parts

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see :meth:`Moments.from_parts`."""
        found: Floats = self.block.from_parts(sums, counts)
        return found

    def sums(self, X: Floats, weights: Floats | None = None) -> Floats:
        """Sums of contributions, of shape (n_cells, dim of the block)."""
        total = np.zeros((self.n_cells + 1, self.block.dim))
        for rows in row_blocks(len(X), 1, max(_ROWS, total.size)):
            part = X[rows]
            share = None if weights is None else weights[rows]
            total += self.block.sums(part, self.cells(part), self.n_cells + 1, share)
        # who is in no cell is in the one behind the last
        return total[:-1]

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        # a record that may change its cell pays for both cells, any other for its own
        across = stepwise(gaps, self.positions, self.sensitivity, norm)
        moves: Floats = np.maximum(across, self.block.move(gaps, norm))
        return moves


def grouped_sensitivity(block: Sensitivity) -> Sensitivity:
    """Sensitivity of a block that stands in the one cell, of several, of its record.

    Disjoint cells compose in parallel: a record alone fills one block, so adding one
    moves no more than one cell's block. A replaced record may leave one cell for
    another, which moves both.

    Parameters
    ----------
    block : Sensitivity
        Sensitivity of the block within one cell.

    Returns
    -------
    Sensitivity

    References
    ----------
    McSherry (2009), Privacy integrated queries, Theorem 4 (parallel composition).
    """
    # a record that changes its cell leaves one block and joins another: two moves, side
    # by side, each as of a record that is removed or added
    within = block.replace or {}
    across = stacked_sensitivity([block, block]).add_remove
    return Sensitivity(
        add_remove=dict(block.add_remove),
        replace={norm: max(within[norm], across[norm]) for norm in NORMS},
    )
