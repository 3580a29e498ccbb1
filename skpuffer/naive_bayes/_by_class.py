"""Contribution of a record in the block of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.kernel.sensitivity import NORMS, grouped_sensitivity
from skpuffer.releases import Sensitivity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.summary._cells import Stacked

__all__ = ["ByClass"]


@dataclass(frozen=True)
class ByClass:
    """Contribution of a record that stands in the block of its class.

    A record of no class, whose code is negative, contributes nothing.

    Parameters
    ----------
    block : Stacked
        What a record adds within its block.
    n_classes : int
    """

    block: Stacked
    n_classes: int

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    @property
    def dim(self) -> int:
        """Number of coordinates, class by class."""
        return self.n_classes * self.block.dim

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :class:`Sensitivity`.

        Classes compose in parallel: a record fills one block at most, and one that is
        replaced may leave a block for another. A record of no class moves less.
        """
        alone = self.block.sensitivity
        grouped = grouped_sensitivity(alone)
        # where the class alone changes, one block is left for another and no more
        relabel = {
            norm: float(np.linalg.norm([alone.add_remove[norm]] * 2, norm))
            for norm in NORMS
        }
        return Sensitivity(grouped.add_remove, grouped.replace, relabel)

    def __call__(self, X: Floats, y: ArrayLike) -> Floats:
        """Contributions, of shape (n, dim)."""
        y = np.asarray(y).astype(np.intp)
        out = np.zeros((len(y), self.n_classes, self.block.dim))
        rows = np.flatnonzero(y >= 0)
        out[rows, y[rows]] = self._blocks(X)[rows]
        return out.reshape(len(y), -1)

    def _blocks(self, X: Floats) -> Floats:
        blocks: Floats = self.block(X)
        return blocks

    def total(self, X: Floats, y: ArrayLike) -> Floats:
        """Sum of the contributions, of shape (dim,), without making them."""
        y = np.asarray(y)
        out = np.zeros((self.n_classes, self.block.dim))
        for code in range(self.n_classes):
            mine = np.flatnonzero(y == code)
            if len(mine):
                out[code] = self._blocks(X[mine]).sum(axis=0)
        return out.ravel()

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features, the class staying; see `Moments.move`."""
        moves: Floats = self.block.move(gaps, norm)
        return moves
