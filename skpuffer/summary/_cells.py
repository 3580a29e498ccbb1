"""Contributions of a record to counts: by sign, bin, level, cell of a cross-table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.releases import Sensitivity
from skpuffer.releases._sensitivity import grouped_sensitivity, stacked_sensitivity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.utils._types import Floats

__all__ = ["Bins", "Grouped", "Levels", "Ones", "Signs", "Stacked"]

# By the order of the norm, for a record that is added or removed and for one replaced.
#
# Of a vector with a single one. A replaced record moves the one to another place: by
# two in l1, by sqrt(2) in l2.
_ONE_HOT = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 2.0, 2.0: math.sqrt(2.0), math.inf: 1.0},
)
# Of a number that is one or minus one: it moves by one if the record comes or goes, by
# two if it is replaced, in every norm as there is one coordinate only.
_SIGN = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 2.0, 2.0: 2.0, math.inf: 2.0},
)
# Of a number that is one for each record: a replaced record changes nothing.
_CONSTANT = Sensitivity(
    add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
    replace={1.0: 0.0, 2.0: 0.0, math.inf: 0.0},
)


def _stepwise(gaps, positions, sensitivity, norm):
    """Sensitivity of contributions that jump: none where no column they read moves.

    Parameters
    ----------
    gaps : ndarray of shape (n, n_features)
        Largest move of each feature.
    positions : sequence of int
        Columns that are read.
    sensitivity : Sensitivity
        Of the contribution.
    norm : float

    Returns
    -------
    ndarray of shape (n,)
    """
    # A contribution that jumps moves by all of its sensitivity however little the
    # column does, so a smooth bound on moves gains nothing; a column that cannot move
    # gains all.
    apart = sensitivity.value("replace", norm, None)
    return np.where(np.any(gaps[:, list(positions)] > 0, axis=1), apart, 0.0)


def _one_hot(codes, size):
    out = np.zeros((len(codes), size))
    # a negative code counts as nothing: zeros, which are nearer to each vector with a
    # single one than two of these are to each other, in every norm
    (rows,) = np.nonzero(codes >= 0)
    out[rows, codes[rows]] = 1.0
    return out


@dataclass(frozen=True)
class Ones:
    """Contribution to a count: a one for each record."""

    dim = 1
    units = (1.0,)
    is_count = True
    sensitivity = _CONSTANT

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, 1)."""
        return np.ones((len(X), 1))

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return np.zeros(len(gaps))


@dataclass(frozen=True)
class Signs:
    """Contribution to a rate: plus one where a column is positive, else minus one.

    A rate is the mean of an indicator in [0, 1]: it is centred and scaled as the mean
    of any bounded column is.

    Parameters
    ----------
    positions : tuple of int
    """

    positions: tuple[int, ...]

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
        return stacked_sensitivity([_SIGN] * self.dim)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        # Centred at zero: with plus or minus one a record added or removed moves the
        # sum by one, in units of half the range; with zero or one, by two such units.
        return np.where(np.asarray(X)[:, list(self.positions)] > 0, 1.0, -1.0)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        # one norm of the norms of the blocks: they are different coordinates
        parts = [_stepwise(gaps, [at], _SIGN, norm) for at in self.positions]
        return np.linalg.norm(parts, norm, axis=0)


@dataclass(frozen=True)
class Bins:
    """Contribution to a histogram: a one where a value falls, on a public grid.

    Bins are closed below and open above, the last one closed. What lies outside is
    counted in the first or the last.

    Parameters
    ----------
    position : int
    edges : tuple of float
        Increasing.
    """

    position: int
    edges: tuple[float, ...]

    is_count = True
    sensitivity = _ONE_HOT

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
        x = np.asarray(X)[:, self.position]
        # Clipped into the first or last bin and never dropped: every record counts
        # exactly once, as the shares of a group that add up to its size require.
        codes = np.searchsorted(self.edges, x, side="right") - 1
        return _one_hot(np.clip(codes, 0, self.dim - 1), self.dim)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return _stepwise(gaps, [self.position], self.sensitivity, norm)


@dataclass(frozen=True)
class Levels:
    """Contribution to counts of levels: a one at the level of a categorical column.

    Parameters
    ----------
    position : int
        Of a column that holds codes 0, 1, …; a negative one counts as nothing.
    dim : int
        Number of levels.
    """

    position: int
    dim: int

    is_count = True
    sensitivity = _ONE_HOT

    @property
    def units(self) -> tuple[float, ...]:
        """Counts, for each level."""
        return (1.0,) * self.dim

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return _one_hot(np.asarray(X)[:, self.position].astype(int), self.dim)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        return _stepwise(gaps, [self.position], self.sensitivity, norm)


@dataclass(frozen=True)
class Stacked:
    """Contributions side by side.

    Parameters
    ----------
    blocks : tuple
    """

    blocks: tuple

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return sum(block.dim for block in self.blocks)

    @property
    def is_count(self) -> bool:
        """Whether all contributions are zeros and ones that count something."""
        # noise on the integers is for whole numbers only
        return all(block.is_count for block in self.blocks)

    @property
    def units(self) -> tuple[float, ...]:
        """Units of all blocks, in order."""
        return tuple(unit for block in self.blocks for unit in block.units)

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        return stacked_sensitivity(block.sensitivity for block in self.blocks)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return np.hstack([block(X) for block in self.blocks])

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        parts = [block.move(gaps, norm) for block in self.blocks]
        return np.linalg.norm(parts, norm, axis=0)


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
        What a record adds within its cell.
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
        return self.n_cells * self.block.dim

    @property
    def is_count(self) -> bool:
        """Whether all contributions are zeros and ones that count something."""
        return self.block.is_count

    @property
    def units(self) -> tuple[float, ...]:
        """Units of the block, for each cell."""
        return self.block.units * self.n_cells

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        return grouped_sensitivity(self.block.sensitivity)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim), cell after cell."""
        X = np.asarray(X)
        codes = X[:, list(self.positions)].astype(int)
        # Parallel composition: a record writes into its own cell only, so all cells
        # together have the sensitivity of one, or twice where a replaced record changes
        # cells.
        (inside,) = np.nonzero(np.all(codes >= 0, axis=1))
        cells = np.ravel_multi_index(tuple(codes[inside].T), self.sizes)
        out = np.zeros((len(X), self.n_cells, self.block.dim))
        out[inside, cells] = self.block(X[inside])
        return out.reshape(len(X), -1)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features; see :meth:`Moments.move`."""
        # a record that may change its cell pays for both cells, any other for its own
        across = _stepwise(gaps, self.positions, self.sensitivity, norm)
        return np.maximum(across, self.block.move(gaps, norm))
