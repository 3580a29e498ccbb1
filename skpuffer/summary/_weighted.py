"""Contributions of records with weights, beside what these lack of the largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.releases import Sensitivity

from ._gaps import MomentsWithGaps, ReadMoments, gap_weight, with_gaps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer._template._weights import Weighting
    from skpuffer.kernel.numbers import Floats


@dataclass(frozen=True)
class Weighted:
    """Contribution of a record times its weight, in units of the largest.

    The last two columns of a table are the weight of each row, and what it lacks of the
    largest. The total that all lack is released as well. With the weight s a record
    adds ``(s v, (1 - s) lack)``; see :func:`with_gaps` for how far that moves.

    Parameters
    ----------
    block : contribution
        Contribution of a record of the largest weight.
    weighting : Weighting
    lack : float or None, default=None
        Amount that a record without weight adds to the last coordinate. None releases
        none.
    """

    block: Any
    weighting: Weighting
    lack: float | None = None

    is_count = False

    @property
    def n_cells(self) -> int:
        """Number of cells of a block by groups."""
        n_cells: int = self.block.n_cells
        return n_cells

    @property
    def dim(self) -> int:
        """Number of coordinates: those of the block, and what is lacking."""
        dim: int = self.block.dim
        return dim + (self.lack is not None)

    @property
    def units(self) -> tuple[float, ...]:
        """Units of the block, and that in which what is lacking is counted."""
        more = () if self.lack is None else (1 / self.lack,)
        return (*self.block.units, *more)

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        lack = 0.0 if self.lack is None else self.lack
        return with_gaps(self.block.sensitivity, lack, self.weighting.least)

    def __call__(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        X = np.asarray(X)
        found: Floats = self.block(X[:, :-2], y) * X[:, -2:-1]
        if self.lack is None:
            return found
        return np.hstack([found, self.lack * X[:, -1:]])

    def sums(self, X: Floats) -> Floats:
        """Sums of contributions, of shape (dim,)."""
        found: Floats = np.ravel(self.block.sums(X[:, :-2], weights=X[:, -2]))
        return (
            found if self.lack is None else np.append(found, self.lack * X[:, -1].sum())
        )

    def of_targets(self, X: Floats, y: ArrayLike) -> Floats:
        """Sum of contributions of a block that reads targets, of shape (dim,)."""
        found: Floats = self.block.total(X[:, :-2], y, X[:, -2])
        if self.lack is None:
            return found
        return np.append(found, self.lack * X[:, -1].sum())

    def total(self, value: Floats, noise_std: Floats) -> tuple[Floats, Floats]:
        """Return the mean weight, in units of the largest, and its deviation."""
        if self.lack is None:
            counted: MomentsWithGaps = self.block
            return counted.total(value, noise_std)
        return 1 - value[-1], noise_std[-1]

    def read(self, value: Floats, noise_std: Floats, n_records: int) -> ReadMoments:
        """Return the moments of each column; see :meth:`MomentsWithGaps.read`."""
        block: MomentsWithGaps = self.block
        # or by the block itself
        total = None if self.lack is None else self.total(value, noise_std)
        d = block.dim
        return block.read(value[:d], noise_std[:d], n_records, total)


def weighted(
    block: Any,
    *,
    weighting: Weighting,
    relation: str,
    norm: float,
    lacking: bool = True,
) -> Weighted:
    """Return a contribution times weights."""
    lack = None
    if lacking and weighting.varies:
        lack = gap_weight(block.sensitivity, relation, norm, weighting.least)
    return Weighted(block, weighting, lack)
