"""Rows of noise, several at once: a product of matrices a block, in place of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from skpuffer.utils._types import Floats

__all__ = ["in_blocks", "windowed"]

# Blocks of so many numbers pay for the calls; of more rows than these, the products
# that make them would cost more than they save.
_NUMBERS, _MOST_ROWS = 2**12, 128


def in_blocks(rows: Iterator[Floats], n_rows: int, least: int) -> Iterator[Floats]:
    """Yield rows in blocks, all of the same length but the last.

    Parameters
    ----------
    rows : iterator of ndarray of shape (dim,)
    n_rows : int
        How many are read.
    least : int
        How many rows the state holds anyway, which a block may hold as well.

    Yields
    ------
    ndarray of shape (size, dim)
        Of their own memory.
    """
    rest = islice(rows, n_rows)
    first = next(rest, None)
    if first is None:
        return
    size = min(max(_NUMBERS // max(1, len(first)), least, 1), _MOST_ROWS)
    block = np.array([first, *islice(rest, size - 1)])
    while len(block):
        yield block
        block = np.array(list(islice(rest, size)))


def windowed(
    rows: Iterator[Floats],
    n_rows: int,
    past: int,
    weights: Callable[[int], Floats],
    recursive: bool,
) -> Iterator[Floats]:
    """Yield sums of each row and of the past before it, with the same weights.

    Parameters
    ----------
    rows : iterator of ndarray of shape (dim,)
    n_rows : int
    past : int
        How many rows of the past are kept; at the start they are zero.
    weights : callable
        Given a number of rows, their weights of shape (n, past + n): the past first,
        oldest first. Those of fewer rows are its first ones.
    recursive : bool
        Whether the past is that of what is yielded, not of `rows`.

    Yields
    ------
    ndarray of shape (dim,)
    """
    matrix = window = np.zeros((0, 0))
    for block in in_blocks(rows, n_rows, past):
        size = len(block)
        # the first block is as long as any
        if not window.size:
            matrix = weights(size)
            window = np.zeros((past + size, block.shape[1]))
        window[past : past + size] = block
        sums = matrix[:size, : past + size] @ window[: past + size]
        if recursive:
            window[past : past + size] = sums
        # numpy moves overlapping memory as if it had been copied first
        window[:past] = window[size : size + past]
        yield from sums
