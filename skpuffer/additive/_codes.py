"""Coded rows: cells of groups of features, read and summed over by one joint code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpuffer.kernel.numbers import Floats, Indices


#: Cells of a joint code, at most: a table of so many numbers stays in a core's cache.
_MOST_CELLS = 2**15
#: Rows read at once, for the same reason.
_ROWS = 2**15


@dataclass(frozen=True)
class _Group:
    """Fields with one joint code, and the blocks that are read by it."""

    fields: tuple[int, ...]
    shape: tuple[int, ...]
    blocks: list[tuple[int, tuple[int, ...]]]

    @property
    def is_plain(self) -> bool:
        """Whether each field has one block, in their order."""
        return len(self.blocks[0][1]) == 1

    def table(self, functions: Sequence[Floats]) -> Floats:
        """Values of the functions of the blocks, added up for each joint code."""
        n_outputs = functions[0].shape[1]
        if self.is_plain:
            # axis by axis, so that most sums are small
            table = np.zeros((n_outputs, 1))
            for block, _ in self.blocks:
                table = (table[:, :, None] + functions[block].T[:, None]).reshape(
                    n_outputs, -1
                )
            return table
        whole = np.zeros((n_outputs, *self.shape))
        for block, axes in self.blocks:
            whole += _spread(functions[block].T, self.shape, axes)
        return whole.reshape(n_outputs, -1)


def _spread(values: Floats, shape: tuple[int, ...], axes: tuple[int, ...]) -> Floats:
    """View of (n_outputs, n_cells) values that broadcasts over a group's shape."""
    sizes = [1] * len(shape)
    for axis in axes:
        sizes[axis] = shape[axis]
    if list(axes) != sorted(axes):
        i, j = axes
        values = values.reshape(-1, shape[i], shape[j]).swapaxes(1, 2)
    return values.reshape(-1, *sizes)


class CodedRows:
    """Rows as joint codes of groups of features.

    A function of one or two features is a table of its cells. A joint code of a few
    features makes one gather of several.

    Parameters
    ----------
    codes : ndarray of int of shape (n, n_features)
    n_cells : sequence of int
        Cells of each feature.
    pairs : sequence of (int, int), default=()
        Features that interact: blocks after those of the features.
    merged : sequence of ndarray of shape (n_cells,), default=()
        For each feature the coarse cell of each cell; read for pairs only.
    """

    def __init__(
        self,
        codes: NDArray[Any],
        n_cells: Sequence[int],
        pairs: Sequence[tuple[int, int]] = (),
        merged: Sequence[Indices] = (),
    ):
        self.n_rows, n_features = codes.shape
        self.n_blocks = n_features + len(pairs)
        # tables are made anew in each round: larger than the rows they cost more
        limit = int(np.clip(self.n_rows // 2, 64, _MOST_CELLS))
        groups = [
            _Group(fields, tuple(n_cells[k] for k in fields), [])
            for fields in _packed(list(n_cells), limit)
        ]
        for group in groups:
            group.blocks.extend((k, (axis,)) for axis, k in enumerate(group.fields))
        self._groups = groups
        self._joint = [_joint_codes(codes, group, None) for group in groups]
        if pairs:
            widths = [int(cells.max()) + 1 for cells in merged]
            for fields, inside in _covered(pairs, widths, limit):
                group = _Group(fields, tuple(widths[k] for k in fields), [])
                group.blocks.extend(
                    (n_features + p, tuple(fields.index(k) for k in pairs[p]))
                    for p in inside
                )
                self._groups.append(group)
                self._joint.append(_joint_codes(codes, group, merged))
        starts = range(0, self.n_rows, _ROWS)
        self._chunks = [slice(start, start + _ROWS) for start in starts]
        # indices of the type that gathers take: kept where one chunk is all there is
        self._only = self._cells(self._chunks[0]) if len(self._chunks) == 1 else None

    def tables(self, functions: Sequence[Floats]) -> list[Floats]:
        """Values of the functions added up for each joint code."""
        return [group.table(functions) for group in self._groups]

    def _cells(self, rows: slice) -> list[Indices]:
        return [joint[rows].astype(np.intp) for joint in self._joint]

    def chunks(self) -> Iterator[tuple[slice, list[Indices]]]:
        """Rows that are read together, in their order, with their joint codes."""
        for rows in self._chunks:
            yield rows, self._cells(rows) if self._only is None else self._only

    def values(self, tables: Sequence[Floats], cells: Sequence[Indices]) -> Floats:
        """Sum of the functions for some rows."""
        first, *others = zip(tables, cells, strict=True)
        # of one row alone, in the order of the groups: whatever stands beside it
        found: Floats = first[0].take(first[1], axis=1)
        for table, joint in others:
            found += table.take(joint, axis=1)
        return found

    def empty(self, n_outputs: int) -> list[Floats]:
        """Sums over no rows, for :meth:`add` to add to."""
        return [
            np.zeros((n_outputs, int(np.prod(group.shape)))) for group in self._groups
        ]

    def add(
        self, sums: Sequence[Floats], weights: Floats, cells: Sequence[Indices]
    ) -> None:
        """Add numbers of some rows to sums over the rows of each joint code."""
        for total, joint in zip(sums, cells, strict=True):
            for out, weight in zip(total, weights, strict=True):
                out += np.bincount(joint, weight, minlength=out.size)

    def blocks(self, sums: Sequence[Floats]) -> list[Floats]:
        """Sums over the rows of each cell of each block."""
        found: list[Any] = [None] * self.n_blocks
        for group, total in zip(self._groups, sums, strict=True):
            if group.is_plain:
                # the last field, then the one before it, of what is left
                left = total
                for block, size in reversed(
                    [*zip((b for b, _ in group.blocks), group.shape, strict=True)]
                ):
                    table = left.reshape(len(left), -1, size)
                    found[block] = np.ones(table.shape[1]) @ table
                    left = table @ np.ones(size)
                continue
            table = total.reshape(len(total), *group.shape)
            for block, axes in group.blocks:
                found[block] = _marginal(table, axes)
        return found

    def sums(self, weights: Floats) -> list[Floats]:
        """Sums of numbers over the rows of each cell of each block."""
        sums = self.empty(len(weights))
        for rows, cells in self.chunks():
            self.add(sums, weights[:, rows], cells)
        return self.blocks(sums)


def _marginal(table: Floats, axes: tuple[int, ...]) -> Floats:
    """Sums over all axes of a group's tables but two, of shape (n_outputs, -1).

    The outer axes by products with ones, which are several times as fast as sums, and
    as exact where all numbers are whole.
    """
    first, last = min(axes), max(axes)
    shape = table.shape[1:]
    before, after = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    inner: Floats = table.reshape(len(table), before, -1)
    if before > 1:
        inner = np.ones(before) @ inner
    if after > 1:
        inner = inner.reshape(len(table), -1, after) @ np.ones(after)
    inner = inner.reshape(len(table), shape[first], -1, shape[last]).sum(axis=2)
    if axes[0] > axes[1]:
        inner = inner.swapaxes(1, 2)
    return inner.reshape(len(table), -1)


def _packed(n_cells: list[int], limit: int) -> list[tuple[int, ...]]:
    """Features by group, so that each group has few cells: the largest first."""
    groups: list[list[int]] = []
    sizes: list[int] = []
    for k in sorted(range(len(n_cells)), key=lambda k: (-n_cells[k], k)):
        fits = [g for g, size in enumerate(sizes) if size * n_cells[k] <= limit]
        if fits:
            # where least room is left
            g = max(fits, key=lambda g: sizes[g])
            groups[g].append(k)
            sizes[g] *= n_cells[k]
        else:
            groups.append([k])
            sizes.append(n_cells[k])
    return [tuple(group) for group in groups]


def _covered(
    pairs: Sequence[tuple[int, int]], widths: list[int], limit: int
) -> list[tuple[tuple[int, ...], list[int]]]:
    """Groups of features that hold all pairs, each in one; greedily."""
    left = {pair: p for p, pair in enumerate(pairs)}
    found = []
    while left:
        fields = list(next(iter(left)))
        size = widths[fields[0]] * widths[fields[1]]
        while True:
            gains = {
                k: sum((a, k) in left or (k, a) in left for a in fields)
                for k in {k for pair in left for k in pair} - set(fields)
                if size * widths[k] <= limit
            }
            best = max(gains, key=lambda k: (gains[k], -k), default=None)
            if best is None or not gains[best]:
                break
            fields.append(best)
            size *= widths[best]
        inside = [
            left.pop(pair)
            for a, b in combinations(fields, 2)
            for pair in ((a, b), (b, a))
            if pair in left
        ]
        found.append((tuple(fields), inside))
    return found


def _joint_codes(
    codes: NDArray[Any], group: _Group, merged: Sequence[Indices] | None
) -> NDArray[Any]:
    n_cells = int(np.prod(group.shape))
    dtype = np.min_scalar_type(n_cells - 1)
    joint = np.zeros(len(codes), dtype=dtype)
    for k, size in zip(group.fields, group.shape, strict=True):
        joint *= np.array(size, dtype=dtype) if size < n_cells else dtype.type(1)
        cells = codes[:, k]
        joint += (cells if merged is None else merged[k][cells]).astype(dtype)
    return joint
