"""Records of a training run: blocks of a batch, row norms, sums of bounded error."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from skpuffer.exceptions import value_error
from skpuffer.utils._clipping import (
    clip_rows,
    joint_norms,
    rounded_up,
    upper_norms,
)
from skpuffer.utils._reading import row_parts, slices

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import Array, Matrix


# Rows are read in blocks of so many bytes: few enough to stay in cache between the
# product that makes the scores and the one that makes the gradients, enough to pay for
# the calls. Sums over blocks of so many rows round little.
_BLOCK_BYTES = 2**21
_BLOCK_ROWS, _SPARSE_ROWS = 2**12, 2**17

# Blocks are added up in so many parts at most, and then the parts: enough for as many
# workers, and few sums to send.
_MOST_PARTS = 64

# A BLAS treats what is left over of so many rows with other instructions, that round
# otherwise; so does a product by a matrix within larger slices than these.
_ALIGNED = 64
_TILE = {"f": 8, "d": 64}

# Gradients in float32 are added up as such in batches of no more than so many rows, and
# in slices that, times the batch, are no more than this; in float64 otherwise.
_FLOAT32_ROWS, _FLOAT32_TERMS = 2**14, 2**19 - 3 * 2**14

# What sums in float64 may be off by, as a share of the clip norm.
_WIDE_SLACK = 2.0**-11


class Rows:
    """Records of a training run, read in cache-sized blocks.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        float32 stays so, all else becomes float64. It must not be changed while used.
    data_norm : float, default=None
        Public l2 norm to which longer rows are scaled down, and in units of which all
        are read; None leaves all as they are.

    Notes
    -----
    A row with an entry above :attr:`limit`, ``finfo(dtype).max ** (1 / 6)`` (2e51, or
    3e6 in float32), is scaled down until it has none, as its products would overflow.
    It is one fixed map of each record, so no record gains any further influence.
    """

    def __init__(self, X: Any, data_norm: float | None = None) -> None:
        self._sparse = sparse.issparse(X)
        # other orders are read many times as slowly, at every step
        X = X.tocsr() if self._sparse else np.asarray(X, order="C")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if self._sparse and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # entries stored in parts would be measured too short
        #: Largest magnitude of an entry. A gradient's length has at most five factors.
        self.limit = float(np.finfo(X.dtype).max) ** (1 / 6)
        if data_norm is not None and not 1 / self.limit <= data_norm <= self.limit:
            # in so small or large units products would lose their digits
            X = (clip_rows(X, data_norm) / data_norm).astype(X.dtype, copy=False)
            data_norm = None
        self._use(X)
        lengths = self._measure(2.0)
        # a length that overflows, and NaN, fail the comparison as well
        if not np.all(lengths <= self.limit):
            # a fixed map of each record on its own, so no other record's influence
            # changes
            self._use(clip_rows(self.X, self.limit, np.inf))
            lengths = self._measure(2.0)
        # what each row is multiplied by where it stands in a product
        self._units: Any = None
        if data_norm is not None:
            self._units = 1 / np.maximum(lengths, X.dtype.type(data_norm))
        self._lengths: dict[tuple[float, float], Array] = {}
        row_bytes = self.dtype.itemsize * max(1, self.n_features)
        size = _SPARSE_ROWS
        if not self._sparse:
            size = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // row_bytes))
        # rounded up to the alignment: whole blocks then need no padding
        self._block_size = aligned(size)
        self._slice_rows = 0
        self._buffer = self._tail = np.zeros((0, self.n_features), self.dtype)
        self._padded: Any = None

    def _use(self, X: Any) -> None:
        """Take a table, of which nothing is known."""
        self.X: Matrix = X
        self._measured: dict[float, Array] = {}
        self._mapped = _is_mapped(X.data if self._sparse else X)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.X.dtype

    @property
    def n_records(self) -> int:
        """Number of records."""
        n_records: int = self.X.shape[0]
        return n_records

    @property
    def n_features(self) -> int:
        """Number of features."""
        n_features: int = self.X.shape[1]
        return n_features

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled; of a message, numbers may lie between addresses."""
        self.__dict__.update(state)
        self._mapped = self._mapped and self.is_mapped
        if not self._sparse and not self._mapped:
            # a BLAS would copy each block of such
            self.X = np.require(self.X, requirements="A")

    @property
    def is_mapped(self) -> bool:
        """Whether the table lies in a file that other processes may read as well."""
        return _is_mapped(self.X.data if self._sparse else self.X)

    def __sizeof__(self) -> int:
        """Bytes in memory, by which a cluster decides how rows are sent."""
        X: Any = self.X
        held: int = X.data.nbytes + X.indices.nbytes if self._sparse else X.nbytes
        return object.__sizeof__(self) + held

    def norms(self, order: float, constant: float = 0.0) -> Array:
        """Return the norm of each row with a constant appended, rounded up."""
        # measured once; the norm with a constant follows from that without
        key = order, constant
        if key not in self._lengths:
            if constant == 0:
                found = self._measure(order)
                if self._units is not None:
                    found = rounded_up(found * self._units, self.dtype)
            else:
                joint = joint_norms(self.norms(order), abs(constant), order)
                found = rounded_up(joint, self.dtype)
            self._lengths[key] = found
        return self._lengths[key]

    def _measure(self, order: float) -> Array:
        """Norm of each row of the table, rounded up; by parts, with no copy of all."""
        if order not in self._measured:
            lengths = np.empty(self.n_records, self.dtype)
            for part in row_parts(self.X):
                # up, as a length too short would leave its gradient longer than the
                # clip norm
                lengths[part] = upper_norms(self.X[part], order)
            self._measured[order] = lengths
        return self._measured[order]

    def reader(self) -> Rows:
        """Return the same records, which may be read while these are."""
        own = copy.copy(self)
        own._buffer = own._tail = np.zeros((0, self.n_features), self.dtype)
        own._padded = None
        return own

    def parts(self, n_rows: int) -> list[slice]:
        """Return parts of a batch that are summed up on their own, and then added up.

        They follow from sizes alone, so that a sum is the same to the last digit.
        """
        n_blocks = -(-n_rows // self._block_size)
        # a few blocks each, if there are many
        size = self._block_size * max(1, -(-n_blocks // _MOST_PARTS))
        return list(slices(n_rows, size))

    def blocks(
        self, index: Indices | None = None, part: slice | None = None
    ) -> Iterator[tuple[Matrix, Any]]:
        """Yield blocks of a batch's rows, or of a part's, with which records they are.

        A block is to be read before the next one: its memory is used again.
        """
        n_rows = self.n_records if index is None else len(index)
        # how many float32 rows may be summed before they go to float64; 0 for none
        self._slice_rows = 0
        # by the size of the batch alone: which of its rows they are must not change
        # rounding
        if n_rows <= _FLOAT32_ROWS and not self._sparse:
            self._slice_rows = _FLOAT32_TERMS // max(1, n_rows)
        if n_rows == 0:
            return
        read = slice(0, n_rows) if part is None else part
        if self._sparse:
            found = self._sparse_blocks(index, read)
        elif index is None and not self._mapped:
            found = self._views(read)
        else:
            found = self._gathered(index, read)
        for rows, select in found:
            if self._mapped:
                self._check(rows, select)
            yield rows, select

    def _parted(self, read: slice) -> Iterator[slice]:
        """Blocks of what is read of a batch."""
        for part in slices(read.stop - read.start, self._block_size):
            yield slice(read.start + part.start, read.start + part.stop)

    def _sparse_blocks(
        self, index: Indices | None, read: slice
    ) -> Iterator[tuple[Matrix, Any]]:
        # a CSR matrix copies the rows it selects, so its blocks are few and long
        whole = read.stop - read.start == self.n_records <= self._block_size
        if index is None and whole and not self._mapped:
            yield self.X, slice(None)
            return
        for part in self._parted(read):
            select = part if index is None else index[part]
            yield self.X[select], select

    def _views(self, read: slice) -> Iterator[tuple[Array, slice]]:
        # whole blocks are views; what is left over is padded to the alignment
        for part in self._parted(read):
            if part.stop - part.start < self._block_size:
                yield self._last_rows(part.start), part
                return
            self._padded = self.X[part]
            yield self._padded, part

    def _gathered(
        self, index: Indices | None, read: slice
    ) -> Iterator[tuple[Array, Any]]:
        size = self._block_size
        largest = min(size, read.stop - read.start)
        if len(self._buffer) < largest:
            # the next batch may be larger
            room = aligned(min(size, largest + largest // 4))
            self._buffer = np.zeros((room, self.n_features), self.dtype)
        for part in self._parted(read):
            rows = self._buffer[: part.stop - part.start]
            if index is None:
                rows[:] = self.X[part]
            else:
                # any mode but the default writes into `out` without a second copy
                self.X.take(index[part], axis=0, out=rows, mode="clip")
            self._padded = self._buffer[: aligned(len(rows))]
            yield rows, part if index is None else index[part]

    def _last_rows(self, start: int) -> Array:
        """Rows from `start` on, copied once into a buffer padded to the alignment."""
        n_rows = self.n_records - start
        # the same rows at every full batch
        if not len(self._tail):
            self._tail = np.zeros((aligned(n_rows), self.n_features), self.dtype)
            self._tail[:n_rows] = self.X[start:]
        self._padded = self._tail
        return self._tail[:n_rows]

    def _check(self, rows: Matrix, select: Any) -> None:
        """Refuse rows, which nobody else can change, that are longer than measured."""
        for order, lengths in self._measured.items():
            # NaN is not shorter either
            if not np.all(upper_norms(rows, order) <= lengths[select]):
                raise value_error("gradient.memory_map_changed")

    def padded(self, rows: Matrix) -> Matrix:
        """Return the rows of the last block, padded for :func:`products`."""
        # sparse products go row by row, so no row's rounding depends on its neighbours
        return rows if self._sparse else self._padded

    def scores(
        self, rows: Matrix, select: Any, matrix: Array, out: Array | None = None
    ) -> Array:
        """Return products of the rows of the last block, in units, with a matrix.

        Beyond the first n rows there may be others, for :func:`products`.
        """
        found = products(self.padded(rows), matrix, out)
        if self._units is not None:
            units = self._units[select]
            own = found[: len(units)]
            own *= units if matrix.ndim == 1 else units[:, None]
        return found

    def in_units(self, factors: Array, select: Any, out: Array | None = None) -> Array:
        """Return factors of rows in units as such of the rows as they are stored."""
        if self._units is None:
            return factors
        units = self._units[select]
        units = units if factors.ndim == 1 else units[:, None]
        scaled: Array = np.multiply(factors, units, out=out)
        return scaled

    def add_up(self, rows: Matrix, factors: Array) -> Floats:
        """Return ``rows.T @ factors`` of a block, in float64."""
        size = self._slice_rows
        # float64: the wide slack covers any order of addition within a block
        total: Floats
        if rows.dtype != np.float32:
            total = rows.T.dot(factors)
            return total
        if size == 0:  # too many, or sparse
            total = rows.astype(np.float64).T.dot(factors.astype(np.float64))
            return total
        # whole slices in one call, as of large batches there are many
        stop = len(rows) // size * size
        total = np.zeros((rows.shape[1], *factors.shape[1:]))
        if stop:
            tall = rows[:stop].reshape(-1, size, rows.shape[1]).swapaxes(1, 2)
            wide = factors[:stop].reshape(stop // size, size, -1)
            sums = np.matmul(tall, wide).sum(axis=0, dtype=np.float64)
            total += sums.reshape(total.shape)
        if stop < len(rows):
            total += rows[stop:].T.dot(factors[stop:])
        return total

    @property
    def slack(self) -> float:
        """Rounding error of a sum of gradients, as a share of the clip norm.

        It is taken off the clip norm beforehand.

        An addition is rounded by a unit u times its result. For terms no longer than C,
        added up in slices of s, results have a length of up to C, 2 C, ... s C in each
        slice, so that m terms are off by up to u m (s + 1) C / 2, and by u m C from the
        products. Two neighbouring tables may be rounded in opposite directions. It is
        the same for all tables, as each record would move a clip norm that depended on
        them.
        """
        # for two tables u m (s + 1), and 2 u m from the products, where s m is no more
        # than the terms
        few = 2.0**-24 * (_FLOAT32_TERMS + 4 * _FLOAT32_ROWS)
        return _WIDE_SLACK + (few if self.dtype == np.float32 else 0.0)

    def check_size(self, n_rows: int) -> None:
        """Check that so many rows are added up within the slack."""
        size = self._block_size
        # the same bound for float64, with the block sums added up one after the other,
        # which takes no fewer additions than by parts
        if 2.0**-53 * n_rows * (size + n_rows / size + 4) > _WIDE_SLACK:
            raise value_error("gradient.sum_rounds_too_much", n_rows=n_rows)


def aligned(n_rows: int) -> int:
    """Round a number of rows up to whole alignments."""
    return -(-n_rows // _ALIGNED) * _ALIGNED


def _is_mapped(X: Any) -> bool:
    """Whether an array reads a memory map, which others may write to."""
    while X is not None:
        if isinstance(X, (np.memmap, mmap.mmap)):
            return True
        # of an array, or of a view of a buffer
        X = getattr(X, "base", None) if not isinstance(X, memoryview) else X.obj
    return False


def products(rows: Matrix, matrix: Array, out: Array | None = None) -> Array:
    """Return ``rows @ matrix``, rounded alike for a row wherever it stands.

    A record that is added or removed must not change how others are rounded, as a BLAS
    would for other sizes. `rows` are best those of :meth:`Rows.padded`, else they are
    copied; `out` has as many rows, rounded up to whole alignments, or more.
    """
    found: Array
    if sparse.issparse(rows):
        # one row at a time, by its own entries alone
        found = rows.dot(matrix)
        return found
    n_rows = len(rows)
    if rows.shape[1] == 1 and matrix.ndim > 1:
        # nothing is added up
        out = None if out is None else out[:n_rows]
        found = np.einsum("i,j->ij", rows[:, 0], matrix[0], out=out)
        return found
    if n_rows % _ALIGNED:
        # zeros for rows: their products are cut off again
        padded = np.zeros((aligned(n_rows), rows.shape[1]), rows.dtype)
        padded[:n_rows] = rows
        rows = padded
    if matrix.ndim == 1:
        found = rows.dot(matrix)[:n_rows]  # quicker to call than `@`
        return found
    # slices of one size, so that every row meets the same instructions
    tile = _TILE[rows.dtype.char]
    slices = rows.reshape(-1, tile, rows.shape[1])
    if out is not None:
        out = out[: len(rows)].reshape(-1, tile, matrix.shape[1])
    return np.matmul(slices, matrix, out=out).reshape(len(rows), -1)[:n_rows]


def largest_factor(clip_norm: float, lengths: Array, slack: float) -> Array:
    """Return ``clip_norm / lengths``, the largest norm of one factor of a gradient.

    It is less the `slack` and some units of the last place; infinite for length zero.
    """
    # rounding may lengthen what comes out; that much is taken off beforehand
    slack += 8 * float(np.finfo(lengths.dtype).eps)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return clip_norm * (1 - slack) / lengths


def clip_factors(factors: Array, caps: Array | float, order: float) -> Array:
    """Clip rows to a norm each: multiply them by ``min(1, cap / norm)``."""
    if factors.ndim == 1:
        clipped = np.minimum(factors, caps)
        return np.maximum(clipped, -caps, out=clipped)  # `clip` costs more than both
    # times min(1, cap / norm), as a division by what the norm exceeds the cap by
    excess = upper_norms(factors, order) / caps
    return factors / np.maximum(excess, 1)[:, None]
