"""Tables that another engine holds, and what it sums up there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn, Protocol

from skpuffer.exceptions import type_error

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["STEPS", "Contribution", "Part", "TableElsewhere"]

#: Steps from zero to one of the grid that numbers in [-1, 1] are rounded to. Sums of
#: fewer than 2**32 of them are whole numbers of 64 bits, whatever their order.
STEPS = 2**31


class Part(NamedTuple):
    """Number of each record that is summed up.

    Parameters
    ----------
    values : ndarray of shape (n,), or an expression of an engine
        In [-1, 1] whatever a cell holds, or truth values.
    is_count : bool
        Whether they are truth values, which are counted.
    """

    values: object
    is_count: bool = False


class Contribution(Protocol):
    """Contribution of each record to a sum, of parts that an engine can sum up."""

    def parts(self, columns: Sequence[object]) -> list[Part]:
        """Return what is summed over the records, given the columns of the table."""

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Return the sums of contributions, given those of parts and the counts."""


class TableElsewhere(ABC):
    """Table that another engine holds, and sums up there.

    Parameters
    ----------
    n_records : int
        Public.
    n_features : int
        Number of columns that can be summed.
    """

    #: Told by a query release, which sums up such a table by its own method.
    is_elsewhere: ClassVar[bool] = True

    def __init__(self, n_records: int, n_features: int) -> None:
        self.shape = n_records, n_features

    @abstractmethod
    def sum(self, contribution: Contribution) -> Floats:
        """Return the sum of contributions over all records.

        Parameters
        ----------
        contribution : callable
            Contribution of a record: of `parts`, which are summed, by `from_parts`.

        Returns
        -------
        ndarray of shape (dim,)
        """

    @abstractmethod
    def rounding(self, contribution: Contribution) -> Floats:
        """Return how far the contribution of one record is rounded, at most.

        Returns
        -------
        ndarray of shape (dim,)
        """

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise type_error("table.rows_lie_elsewhere")

    __array__ = __getitem__ = __iter__ = _refuse

    def __len__(self) -> int:
        return self.shape[0]
