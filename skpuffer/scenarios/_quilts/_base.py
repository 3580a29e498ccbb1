"""Markov quilts: records given which a protected one is independent of those beyond.

Source: Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated
data, section 4.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skpuffer.exceptions import unsupported_error
from skpuffer.kernel.numbers import Booleans, Floats, Indices
from skpuffer.kernel.plain import Plain, to_plain


@dataclass(frozen=True)
class QuiltChoice:
    """The quilt that sets the price, at the worst record.

    Parameters
    ----------
    price : float
        At most this for every protected record; attained by `quilt` at `index`.
    size : float
        Size of its near set.
    influence : float
        Max-influence of the record on the quilt.
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
    quilt: tuple[int, ...]


class Quilts(Plain, ABC):
    """Markov quilts of each protected record, under one prior.

    A quilt is a set of records, given which a record is independent of those beyond
    them. Noise covers only the near set, which the quilt encloses; the quilt itself
    costs its max-influence.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import MarkovChainScenario, MaxInfluence
    >>> run = GradientRelease(n_records=50, n_steps=1, sampling="full_batch")
    >>> bound = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]).bind(run.context)
    >>> (quilts,) = bound.fact(MaxInfluence, run).quilts
    >>> quilts.smallest, quilts.largest
    (1.0, 50.0)
    >>> round(quilts.worst(float("inf"), lambda size: size / 10).price, 3)
    1.773
    """

    @abstractmethod
    def worst(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        max_distance: int | None = None,
        ceiling: float = math.inf,
    ) -> QuiltChoice:
        """Largest price over the records, each with its cheapest quilt.

        Parameters
        ----------
        order : float or 'total_variation'
            How influence is measured: the Rényi order, or total variation.
        cost : callable
            Cost of the noise that covers near sets of given sizes; non-decreasing.
        max_distance : int or None, default=None
            Leave out quilts with records further away than that.
        ceiling : float, default=inf
            A price from which on it does not matter how large it is.

        Returns
        -------
        QuiltChoice
            The price is never below the truth for the quilts allowed.
        """

    @property
    @abstractmethod
    def smallest(self) -> float:
        """Lower bound of the size of any near set."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """Size of the largest near set, that of the trivial quilt."""

    @abstractmethod
    def approximate(self) -> "Quilts":
        """Return the same quilts with max-influences bounded by the mixing time."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""


class ListedQuilts(Quilts, kind="listed_quilts"):
    """Quilts given one by one, with their distributions given the protected record.

    Parameters
    ----------
    records : tuple of (int, sizes, quilts, distributions, compared)
        For each protected record its position, the near sets' sizes, the positions in
        each quilt, the distribution of each quilt given each value of the record and
        where it has mass (arrays of shape (n_values, n_outcomes)), and the pairs of
        values to compare (a bool array of shape (n_values, n_values)). A quilt of no
        records tells nothing.
    described : dict
        Plain data that tells what the quilts are of.
    steps : int
        Number of roundings in each mass.
    """

    def __init__(
        self, records: Iterable[Any], described: dict[str, Any], steps: int
    ) -> None:
        self._records = tuple(records)
        self._described = described
        self._steps = steps
        self._influences: dict[Influence, list[tuple[Floats, Floats]]] = {}

    # influences are computed again rather than pickled
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_influences": {}}

    def influences(self, order: float | str) -> list[tuple[Floats, Floats]]:
        """Return (sizes, max-influences) of the quilts of each record."""
        measure = measure_of(order)
        if measure not in self._influences:
            self._influences[measure] = [
                (np.asarray(sizes, float), self._of(measure, *rest))
                for _, sizes, *rest in self._records
            ]
        return self._influences[measure]

    def _of(
        self,
        measure: "Influence",
        quilts: list[Any],
        tables: list[tuple[Floats, Booleans]],
        compared: Booleans,
    ) -> Floats:
        # influences are rounded up by their numerical error
        margin = measure.error(2, self._steps)
        found = np.zeros(len(quilts))
        for at, (quilt, table) in enumerate(zip(quilts, tables, strict=True)):
            # a quilt of no records has no influence
            if quilt:
                one = measure.one(measure.table(*table))
                found[at] = one[compared].max() + margin
        return found

    @property
    def smallest(self) -> float:
        """Size of the smallest near set."""
        return min(min(sizes) for _, sizes, *_ in self._records)

    @property
    def largest(self) -> float:
        """Size of the largest near set."""
        return max(max(sizes) for _, sizes, *_ in self._records)

    def worst(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        max_distance: int | None = None,
        ceiling: float = math.inf,
    ) -> QuiltChoice:
        """Largest price over the records; see :class:`Quilts`."""
        worst = None
        for record, (sizes, found) in zip(
            self._records, self.influences(order), strict=True
        ):
            index, _, quilts, *_ = record
            if max_distance is not None:
                # fewer quilts to choose from can only raise a price
                near = [all(abs(q - index) <= max_distance for q in x) for x in quilts]
                found = np.where(near, found, math.inf)
            # any quilt is a valid bound for its record: the cheapest counts
            prices = found + cost(sizes)
            at = int(np.argmin(prices))
            # the promise is for whichever record is secret: the dearest counts
            if worst is None or prices[at] > worst.price:
                worst = QuiltChoice(
                    float(prices[at]),
                    float(sizes[at]),
                    float(found[at]),
                    index,
                    tuple(quilts[at]),
                )
        assert worst is not None  # some record is protected
        return worst

    def approximate(self) -> "Quilts":
        """Raise: a general network has no mixing time."""
        raise unsupported_error("quilt.network_has_no_mixing")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": self.kind,
            "records": to_plain(self._records),
            "described": to_plain(self._described),
            "steps": self._steps,
        }

    @classmethod
    def read_back(cls, values: dict[str, Any]) -> Self:
        """Make one of the fields it was written with, read back each."""
        records = [
            (at, sizes, quilts, list(map(_tables, given)), np.array(compared, bool))
            for at, sizes, quilts, given, compared in values.pop("records")
        ]
        return cls(records, **values)


def _tables(distribution: Any) -> tuple[Floats, Booleans]:
    """Masses of a distribution, and where it has any, as arrays."""
    masses, possible = distribution
    return np.array(masses, float), np.array(possible, bool)


# -- max-influence: divergences between the rows of conditional distributions ----------
# A table of distributions has one row for each value of the protected record: the
# distribution of the records of a quilt given that value. The influence of the record
# on them is a matrix over pairs of rows, and the max-influence its largest entry.


#: Asks for total variation in place of a Rényi order.
TOTAL_VARIATION = "total_variation"

#: Masses below it count as zero in denominators: their digits are not to be trusted.
_TINY = 1e-280

#: Entries of an intermediate array held at once.
_BLOCK = 2**20

_ULP = 2.0**-52


def measure_of(order: float | str) -> "Influence":
    """Return the measure of influence: a Rényi divergence or total variation."""
    if order == TOTAL_VARIATION:
        return VariationInfluence()
    return RenyiInfluence(float(order))


@dataclass(frozen=True)
class RenyiInfluence:
    """Rényi divergence between rows; it adds up over independent parts.

    Parameters
    ----------
    alpha : float
        In (1, inf].
    """

    alpha: float

    def table(self, distributions: Floats, possible: Booleans) -> Floats:
        """Divergence of row z from row y at [..., z, y], for distributions (..., k, v).

        `possible` says where a distribution has mass, however little. A divergence is
        infinite where z has mass and y none.
        """
        shape = distributions.shape[:-2]
        distributions = distributions.reshape(-1, *distributions.shape[-2:])
        possible = np.broadcast_to(possible, (*shape, *distributions.shape[1:]))
        possible = possible.reshape(distributions.shape)
        _, k, v = distributions.shape
        step = max(1, _BLOCK // (k * k * v))
        found = _in_blocks(self._block, step, k, distributions, possible)
        return found.reshape(*shape, k, k)

    def _block(self, distributions: Floats, possible: Booleans) -> Floats:
        # A mass that underflowed is taken at _TINY as a numerator, which rounds up, and
        # makes the divergence infinite as a denominator where the other has mass.
        low = distributions < _TINY
        log = np.log(np.where(low, _TINY, distributions))
        log_p = np.where(possible, log, -math.inf)[:, :, None, :]
        log_q = log[:, None, :, :]
        # axes: ..., z (numerator), y (denominator), outcome
        if math.isinf(self.alpha):
            value = (log_p - log_q).max(axis=-1)
        else:
            rest = self.alpha - 1
            # log of the sum of p^alpha q^(1 - alpha), by its largest term
            terms = self.alpha * log_p - rest * log_q
            top = terms.max(axis=-1)
            top = np.where(np.isfinite(top), top, 0.0)  # a value that never occurs
            total = np.exp(terms - top[..., None]).sum(axis=-1)
            with np.errstate(divide="ignore"):
                value = (np.log(total) + top) / rest
        never = (possible[:, :, None, :] & low[:, None, :, :]).any(axis=-1)
        return np.where(never, math.inf, np.maximum(value, 0.0))

    def one(self, table: Floats) -> Floats:
        """Return the matrix of divergences over pairs of rows, of shape (..., k, k)."""
        return table

    def joint(self, first: Floats, second: Floats) -> Floats:
        """Return the divergences of two parts that are independent given the record."""
        return first + second

    def error(
        self, n_states: int, steps: int | Indices, drift: float = 0.0
    ) -> float | Floats:
        """Bound of the error of a divergence of `n_states` terms."""
        # a relative error r of p and q moves log(p / q) by 2 r at most, and
        # log(sum p^alpha q^(1 - alpha)) / (alpha - 1) by (2 alpha - 1) / (alpha - 1) r
        amplified = 2.0
        if not math.isinf(self.alpha):
            amplified = (2 * self.alpha - 1) / (self.alpha - 1)
        return amplified * (relative_error(n_states, steps) + drift)


@dataclass(frozen=True)
class VariationInfluence:
    """Total variation between rows; of independent parts between their products."""

    def table(self, distributions: Floats, possible: Booleans) -> Floats:
        """Return the table itself: independent parts need all of it."""
        return distributions

    def one(self, table: Floats) -> Floats:
        """Return the matrix of total variations over pairs of rows, (..., k, k)."""
        shape, (k, v) = table.shape[:-2], table.shape[-2:]
        table = table.reshape(-1, k, v)
        step = max(1, 2 * _BLOCK // (k * k * v))
        found = np.zeros((len(table), k, k))
        # of two rows once, as it is symmetric
        first, second = np.triu_indices(k, 1)
        for at in range(0, len(table), step):
            block = table[at : at + step]
            gaps = block[:, first] - block[:, second]
            np.abs(gaps, out=gaps)
            found[at : at + step, first, second] = gaps.sum(axis=-1) / 2
        return (found + np.swapaxes(found, 1, 2)).reshape(*shape, k, k)

    def joint(self, first: Floats, second: Floats) -> Floats:
        """Return total variations of two parts, independent given the record."""
        # rows of the joint table are outer products of the parts' rows
        first, second = np.broadcast_arrays(first, second)
        shape, k = first.shape[:-2], first.shape[-2]
        first, second = first.reshape(-1, k, k), second.reshape(-1, k, k)

        def joined(first: Floats, second: Floats) -> Floats:
            outer = first[:, :, :, None] * second[:, :, None, :]
            return self.one(outer.reshape(-1, k, k * k))

        step = max(1, _BLOCK // k**4)
        return _in_blocks(joined, step, k, first, second).reshape(*shape, k, k)

    def error(
        self, n_states: int, steps: int | Indices, drift: float = 0.0
    ) -> float | Floats:
        """Bound of the numerical error of a total variation."""
        # masses are off by r p and r q, so half of the sum of |p - q| by r; twice that
        return 2 * (relative_error(n_states, steps) + drift)


def _in_blocks(make: Callable[..., Floats], step: int, k: int, *tables: Any) -> Floats:
    """Matrices (n, k, k) made of blocks of tables, which bounds the memory."""
    starts = range(0, len(tables[0]), step)
    parts = [make(*(table[at : at + step] for table in tables)) for at in starts]
    return np.concatenate(parts) if parts else np.zeros((0, k, k))


#: A measure of influence: of tables, and of their rows.
Influence = RenyiInfluence | VariationInfluence


def relative_error(n_terms: int, steps: int | Indices) -> float | Floats:
    """Relative round-off of `steps` sums of products of non-negative numbers."""
    return (n_terms + 2) * (np.asarray(steps) + 4.0) * _ULP
