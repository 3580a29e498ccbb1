"""Plan of a release: which columns, within which classes, in which tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.releases import PublicContext

from ._mechanism import Mechanism
from ._structure import Budget, Structure, affordable

if TYPE_CHECKING:
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.utils._types import Floats, Indices

    from ._cells import TableCells
    from ._model import TableModel

__all__ = ["Plan", "SynthesisContext"]


@dataclass(frozen=True)
class Plan:
    """What is released of a table, from public facts alone.

    Parameters
    ----------
    cells : TableCells
    structure : Structure
    target : int or None
        Position of the column whose cells are the classes.
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

        Parameters
        ----------
        cells : TableCells
        n_records : int
        budget : Budget
        shares : sequence of 3 float
            Parts of it for margins, scores and tables.

        Returns
        -------
        Plan
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
        """What the noise forbids that was wanted, None if nothing."""
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
        """Return what executes a release and reads what was released.

        Parameters
        ----------
        release : AdaptiveRelease
        noise : Noise

        Returns
        -------
        Mechanism
        """
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
        )

    def split(self, codes: Indices) -> tuple[Indices, list[Indices]]:
        """Return the classes and the cells of the other columns.

        Parameters
        ----------
        codes : ndarray of int of shape (n, n_columns)

        Returns
        -------
        classes : ndarray of int of shape (m,)
            Of the rows whose target is one of its levels; the others count nowhere.
        cells : list of ndarray of int of shape (m,)
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
        """Return the codes of all columns in the order of the schema.

        Parameters
        ----------
        classes : ndarray of int of shape (n,)
        cells : sequence of ndarray of int of shape (n,)

        Returns
        -------
        list of ndarray
        """
        found = dict(zip(self.columns, cells, strict=True))
        if self.target is not None:
            found[self.target] = classes
        return [found[k] for k in range(len(found))]

    def joint(self, model: TableModel, columns: Sequence[int]) -> Floats:
        """Return the masses of all cells of some columns.

        Parameters
        ----------
        model : TableModel
        columns : sequence of int
            Positions in the table.

        Returns
        -------
        ndarray of shape ``[n_cells[k] for k in columns]``
        """
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
