"""Tables that lie elsewhere: sums are asked of them, and no row is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats

__all__ = ["STEPS", "Part", "TableElsewhere", "of_each_record"]

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

    values: Any
    is_count: bool = False


def of_each_record(contribution: Any, X: ArrayLike) -> Floats:
    """Return the contributions of the records of an array, from their parts.

    Parameters
    ----------
    contribution : object
        With the methods `parts` and `from_parts`: see :class:`TableElsewhere`.
    X : array-like of shape (n, n_features)

    Returns
    -------
    ndarray of shape (n, dim)
    """
    X = np.asarray(X)
    # what overflows is far outside of all bounds, and clipped to them
    with np.errstate(over="ignore"):
        parts = contribution.parts(X.T)
    # a record is a sum of one
    alone = np.column_stack([part.values for part in parts]).astype(float)
    sums: Floats = contribution.from_parts(alone, np.ones((len(X), 1)))
    return sums


class TableElsewhere(ABC):
    """Table that another engine holds, and sums up there.

    Parameters
    ----------
    n_records : int
        Public.
    n_features : int
        Number of columns that can be summed.
    """

    def __init__(self, n_records: int, n_features: int) -> None:
        self.shape = n_records, n_features

    @abstractmethod
    def sum(self, contribution: Any) -> Floats:
        """Return the sum of contributions over all records.

        Parameters
        ----------
        contribution : callable
            What a record adds: of `parts`, which are summed, by `from_parts`.

        Returns
        -------
        ndarray of shape (dim,)
        """

    @abstractmethod
    def rounding(self, contribution: Any) -> Floats:
        """Return how far the contribution of one record is rounded, at most.

        Parameters
        ----------
        contribution : callable

        Returns
        -------
        ndarray of shape (dim,)
        """

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(Statement("table.rows_lie_elsewhere"))

    __array__ = __getitem__ = __iter__ = _refuse

    def __len__(self) -> int:
        return self.shape[0]
