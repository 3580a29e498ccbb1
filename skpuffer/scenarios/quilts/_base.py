"""Quilts: records that, once known, hide a protected one from all beyond them.

A quilt Q of record i splits the others into near ones and far ones, the far ones being
independent of i given Q. The price of a quilt is what Q itself tells about i (its
influence) and the noise that covers the near records. Here is which quilts there are
and, for a given price, the best of them for the record that is worst off.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skpuffer.exceptions import UnsupportedError

from ._influences import measure_of

__all__ = ["ListedQuilts", "QuiltChoice", "Quilts"]


@dataclass(frozen=True)
class QuiltChoice:
    """The quilt that sets the price.

    Parameters
    ----------
    price : float
        At most this for every protected record; attained by `quilt` at `index`.
    size : float
        Size of its near set.
    influence : float
        What the quilt tells about the record.
    index : int
        Position of the record, from zero.
    quilt : tuple of int
        Positions of the quilt's records; empty for the trivial one, which has all
        records near and tells nothing.
    """

    price: float
    size: float
    influence: float
    index: int
    quilt: tuple


class Quilts(ABC):
    """The quilts of each protected record, under one prior."""

    @abstractmethod
    def worst(self, order, cost, max_distance=None, ceiling=math.inf):
        """Find the largest price over the records, each with its cheapest quilt.

        Parameters
        ----------
        order : float or 'total_variation'
            How influence is measured: the Rényi order, or total variation.
        cost : callable
            Of an array of sizes; non-decreasing. What covers so many near records. The
            price of a quilt is its influence and the cost of its size.
        max_distance : int or None, default=None
            Leave out quilts with records further away than that.
        ceiling : float, default=inf
            Beyond it, nothing but that the price is beyond it need be found out.

        Returns
        -------
        QuiltChoice
            The price is never below the truth for the quilts allowed.
        """

    @property
    @abstractmethod
    def smallest(self):
        """A size no larger than that of any near set."""

    @property
    @abstractmethod
    def largest(self):
        """Size of the largest near set, that of the trivial quilt."""

    @abstractmethod
    def approximate(self):
        """Return the same quilts with influences bounded by the mixing time.

        Raises
        ------
        UnsupportedError
            If there is no such bound.
        """

    @abstractmethod
    def to_dict(self):
        """Return plain data that JSON can hold."""


class ListedQuilts(Quilts):
    """Quilts given one by one, with the law of each given the protected record.

    Parameters
    ----------
    records : tuple of (int, sizes, quilts, laws, compared)
        For each protected record its position, the near sets' sizes, the positions in
        each quilt, the law of each quilt given each value of the record and where it
        has mass (arrays of shape (n_values, n_outcomes)), and the pairs of values to
        compare (a bool array of shape (n_values, n_values)). A quilt of no records
        tells nothing.
    described : dict
        Plain data that tells what the quilts are of.
    steps : int, default=40
        How many roundings a mass has been through.
    """

    def __init__(self, records, described, steps=40):
        self._records = tuple(records)
        self._described = described
        self._steps = steps
        self._influences = {}

    def __getstate__(self):
        return {**self.__dict__, "_influences": {}}

    def influences(self, order):
        """Return (sizes, influences) of the quilts of each record.

        Parameters
        ----------
        order : float or 'total_variation'

        Returns
        -------
        list of (ndarray, ndarray)
        """
        measure = measure_of(order)
        if measure not in self._influences:
            self._influences[measure] = [
                (np.asarray(sizes, float), self._of(measure, *rest))
                for _, sizes, *rest in self._records
            ]
        return self._influences[measure]

    def _of(self, measure, quilts, laws, compared):
        margin = measure.error(2, self._steps)
        found = np.zeros(len(quilts))
        for at, (quilt, table) in enumerate(zip(quilts, laws, strict=True)):
            if quilt:
                one = measure.one(measure.table(*table))
                found[at] = one[compared].max() + margin
        return found

    @property
    def smallest(self):
        """Size of the smallest near set."""
        return min(min(sizes) for _, sizes, *_ in self._records)

    @property
    def largest(self):
        """Size of the largest near set."""
        return max(max(sizes) for _, sizes, *_ in self._records)

    def worst(self, order, cost, max_distance=None, ceiling=math.inf):
        """Find the largest price; see :class:`Quilts`."""
        worst = None
        for record, (sizes, found) in zip(
            self._records, self.influences(order), strict=True
        ):
            index, _, quilts, *_ = record
            if max_distance is not None:
                near = [all(abs(q - index) <= max_distance for q in x) for x in quilts]
                found = np.where(near, found, math.inf)
            prices = found + cost(sizes)
            at = int(np.argmin(prices))
            if worst is None or prices[at] > worst.price:
                worst = QuiltChoice(
                    float(prices[at]),
                    float(sizes[at]),
                    float(found[at]),
                    index,
                    tuple(quilts[at]),
                )
        return worst

    def approximate(self):
        """Raise: a mixing time is one of a chain."""
        raise UnsupportedError(
            "A general network has no mixing time to bound influences by: use "
            "method='exact'."
        )

    def to_dict(self):
        """Return plain data that JSON can hold."""
        return self._described
