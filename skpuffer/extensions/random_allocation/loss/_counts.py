"""Sums over the counts of random bins, of which only near ones interact.

A moment of whole order a of the mixture's density is a sum over a tuples of bins, and
so over the counts t_0, ..., t_(b-1) of each bin in the tuple, of

    a! prod_j 1 / t_j!  exp(sum_j G_jj t_j (t_j - 1) / 2 + sum_(i<j) G_ij t_i t_j).

Everywhere here these weights come divided by ``a! exp(top a (a - 1) / 2)`` with `top`
the largest entry of G. Then the factor that a bin brings in is never above one: nothing
overflows, nothing cancels, and no logarithms are needed on the way.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_finite

__all__ = ["States", "divergences", "interpolated", "largest_order", "products"]

# Numbers below the smallest float are lost. There are at most as many as tuples, and
# this is the log of far more than each of them lacks.
_LOST = math.log(1e-300)


class States(NamedTuple):
    """Counts of the last few bins, in a total of at most `order`.

    Parameters
    ----------
    order : int
    counts : ndarray of shape (n_states, n_last)
        The oldest bin first. The first state is that of empty bins. States that differ
        in the oldest bin's count only stand side by side.
    starts : ndarray of shape (n_groups,)
        Where such groups start.
    moves : tuple of (ndarray, ndarray)
        By the count of the next bin: the groups that have room for it, and the states
        which they move to.
    """

    order: int
    counts: Floats
    starts: np.ndarray
    moves: tuple[tuple[np.ndarray, np.ndarray], ...]

    def empty(self, n_tables: int) -> Floats:
        """Return tables in which no bin has been visited.

        Parameters
        ----------
        n_tables : int

        Returns
        -------
        ndarray of shape (n_tables, order + 1, n_states)
            Weights by the total and the state.
        """
        table = np.zeros((n_tables, self.order + 1, len(self.counts)))
        table[:, 0, 0] = 1.0
        return table

    def interactions(self, row: Floats, top: float, offset: Floats) -> Floats:
        """Return the factors that one more record in the next bin brings in.

        Parameters
        ----------
        row : ndarray of shape (n_last,)
            Entries of G of the next bin and the last ones.
        top : float
        offset : ndarray of shape (n_tables,)
            What else lowers the exponents: zero or less.

        Returns
        -------
        ndarray of shape (n_tables, order + 1, n_states)
        """
        total = np.arange(self.order + 1.0)[:, np.newaxis]
        exponent = offset[:, np.newaxis, np.newaxis] + (self.counts @ row - top * total)
        # states of more than the total have no weight, whatever their factor
        return np.exp(np.minimum(exponent, 0.0))

    def advanced(self, table: Floats, factors: Floats, alone: Floats) -> Floats:
        """Return the tables after one more bin.

        Parameters
        ----------
        table : ndarray of shape (n_tables, order + 1, n_states)
        factors : ndarray of shape (n_tables or 1, order + 1, n_states)
            As of :meth:`interactions`.
        alone : ndarray of shape (>= order + 1,)
            The bin's own weights, by its count.

        Returns
        -------
        ndarray of shape (n_tables, order + 1, n_states)
        """
        new = np.zeros_like(table)
        for count, (groups, states) in enumerate(self.moves):
            room = self.order + 1 - count
            if count:
                table = table[:, :room] * factors[:, :room]
            sums = np.add.reduceat(table, self.starts, axis=-1)
            new[:, count:, states] = sums[:, :, groups] * alone[count]
        return new


def counts_within(n_bins: int, order: int) -> np.ndarray:
    """Return all counts of some bins in a total of at most `order`, in sorted order.

    Parameters
    ----------
    n_bins : int
    order : int

    Returns
    -------
    ndarray of int of shape (n, n_bins)
    """
    found = np.zeros((1, 0), int)
    for _ in range(n_bins):
        choices = order + 1 - found.sum(axis=1)
        first = np.cumsum(choices) - choices
        last = np.arange(choices.sum()) - np.repeat(first, choices)
        found = np.column_stack([np.repeat(found, choices, axis=0), last])
    return found


@lru_cache(maxsize=256)
def states(n_last: int, order: int) -> States:
    """Return the states of at least one last bin."""
    # sorted by the younger bins, the oldest one last: groups stand side by side
    rolled = counts_within(n_last, order)
    powers = (order + 1) ** np.arange(n_last - 1, -1, -1)
    codes = rolled @ powers
    starts = np.flatnonzero(rolled[:, -1] == 0)
    younger = rolled[starts, :-1]
    room = order - younger.sum(axis=1)
    moves = []
    for count in range(order + 1):
        groups = np.flatnonzero(room >= count)
        # the oldest of the younger bins becomes the oldest
        moved = np.column_stack([younger[groups], np.full(len(groups), count)])
        moved = np.roll(moved, -1, axis=1)
        moves.append((groups, np.searchsorted(codes, moved @ powers)))
    counts = np.roll(rolled, 1, axis=1).astype(float)
    return States(order, counts, starts, tuple(moves))


def own_weights(entry: float, top: float, order: int) -> Floats:
    """Return the weights of a single bin, by its count from 0 to `order`."""
    count = np.arange(order + 1.0)
    weights: Floats = np.exp(
        (entry - top) * count * (count - 1) / 2 - gammaln(count + 1)
    )
    return weights


@lru_cache(maxsize=64)
def _totals(order: int) -> np.ndarray:
    count = np.arange(order + 1)
    return np.add.outer(count, count).ravel()


def products(first: Floats, second: Floats, top: float) -> Floats:
    """Sum over pairs of parts that do not interact, by their common count.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs, order + 1)
        Weights of the one part and of the other, by the count in it.
    top : float

    Returns
    -------
    ndarray of shape (order + 1,)
    """
    count = np.arange(first.shape[1])
    weights = (first.T @ second) * np.exp(-top * np.multiply.outer(count, count))
    order = len(count) - 1
    return np.bincount(_totals(order), weights.ravel())[: order + 1].astype(float)


def divergences(weights: Floats, top: float, shared: float, n_bins: int) -> Floats:
    """Return the Rényi divergences of whole orders, from the sums over counts.

    Parameters
    ----------
    weights : ndarray of shape (order + 1,)
        Sums over the counts, by their total.
    top : float
        The weights' unit, see the module.
    shared : float
        What was taken from all entries of G.
    n_bins : int

    Returns
    -------
    ndarray of shape (order - 1,)
        At the orders 2, 3, ..., rounded up, in nats.
    """
    order = np.arange(2.0, len(weights))
    with np.errstate(divide="ignore"):
        total = np.log(weights[2:])
    every = order * math.log(n_bins)
    total = np.logaddexp(total, every - gammaln(order + 1) + _LOST)
    raised, factorial = top * order * (order - 1) / 2, gammaln(order + 1)
    found = total + raised + factorial - every
    # every bin and every exponent brings in some rounding, always relative
    found += 1e-15 * (np.abs(total) + raised + factorial + every + 4 * n_bins + 1e3)
    found += 1e-15 * shared * order * (order - 1)
    # not a number: beyond the range of floats, and nothing is known
    found = np.where(np.isnan(found), math.inf, found)
    costs: Floats = np.maximum(found / (order - 1), 0.0) + shared * order / 2
    return costs


def largest_order(orders: object) -> tuple[Floats, int]:
    """Return orders as floats, and the whole order up to which they are asked for."""
    values = check_finite(orders=orders)
    if values.size == 0 or np.any(values <= 1):
        raise ValueError(Statement("allocation.orders_empty_or_small", orders=orders))
    return values, max(2, math.ceil(values.max()))


def interpolated(costs: Floats, orders: Floats) -> Floats:
    """Return bounds at any orders from those at the orders 2, 3, ...

    With R the divergence, (order - 1) R is convex in the order and zero at one, so it
    lies below its chords.

    Parameters
    ----------
    costs : ndarray of shape (n,)
    orders : ndarray
        Above one.

    Returns
    -------
    ndarray of the shape of `orders`
        Infinite beyond the last order.
    """
    whole = np.arange(1.0, len(costs) + 2)
    convex = np.concatenate([[0.0], costs * (whole[1:] - 1)])
    low = np.clip(np.floor(orders).astype(int) - 1, 0, len(convex) - 1)
    high = np.minimum(low + 1, len(convex) - 1)
    part = orders - whole[low]
    with np.errstate(invalid="ignore"):
        found = np.where(
            part == 0, convex[low], (1 - part) * convex[low] + part * convex[high]
        )
    found = np.where(np.isnan(found) | (orders > whole[-1]), math.inf, found)
    result: Floats = found / (orders - 1)
    return result
