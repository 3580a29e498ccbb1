"""Errors of the statistics of a summary: of noise, of sampling, and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ._count_tree import consistent_leaves
from ._gaps import ratio_interval, ratio_std
from ._presented import cell_labels
from ._private_statistic import usable_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from skpuffer.kernel.numbers import Booleans, Floats, Indices


#: Column label of group sizes that no column was asked for.
RECORDS = "records"

# Draws of noise by which the errors of a distribution function are measured, of a tree
# of counts, whose noise is known: they have no part in what is released.
_DRAWS = 400


# Level of an interval of one deviation, and how many edges of a grid it holds at least
# where the grid adds little to its length; and the noise, in errors of sampling, that
# does so too.
_ONE, _FINE, _NOISY = float(2 * stats.norm.cdf(1) - 1), 10, 0.5


@dataclass(frozen=True)
class Errors:
    """Errors of one statistic in each group.

    Parameters
    ----------
    estimate : ndarray of shape (n_cells,)
        As released, whatever it is projected to; NaN where nothing is known.
    noise, sample : ndarray of shape (n_cells,)
        Standard deviations by the noise, and by the sampling of records.
    low : float, default=-inf
    high : float, default=inf
        Between which it is known to lie.
    is_wide : ndarray of bool of shape (n_cells,), default=False
        Where `sample` is a bound that may be far from attained.
    is_root : bool, default=False
        Whether all of these are of the square of the statistic.
        Deviations of the two parts of a ratio about an `origin`, in units of the lower.
    """

    estimate: Floats
    noise: Floats
    sample: Floats
    low: float = -math.inf
    high: float = math.inf
    is_wide: Booleans | bool = False
    is_root: bool = False
    origin: float = 0.0
    above: Floats | None = None
    below: Floats | None = None

    def interval(self, level: float, of: str, width: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals."""
        sample = np.zeros_like(self.sample)
        if of == "population":
            sample = stats.norm.isf((1 - level) / 2) * self.sample
        if self.above is None or self.below is None:
            half = np.hypot(width * self.noise, sample)
            low, high = self.estimate - half, self.estimate + half
        else:
            ends = ratio_interval(
                self.estimate - self.origin, self.above, self.below, sample, width
            )
            low, high = (self.origin + end for end in ends)
        # where nothing is known, all that may be
        low = np.where(np.isnan(low), self.low, low)
        high = np.where(np.isnan(high), self.high, high)
        low, high = (np.clip(end, self.low, self.high) for end in (low, high))
        return (np.sqrt(low), np.sqrt(high)) if self.is_root else (low, high)

    def wide(self, of: str) -> Booleans:
        """Return where an interval may be longer than it need be."""
        found = np.broadcast_to(self.is_wide, self.estimate.shape)
        return found if of == "population" else np.zeros_like(found)

    def times(self, factor: Any) -> Errors:
        """Return the errors of a positive multiple."""
        scaled = {
            name: factor * getattr(self, name)
            for name in ("estimate", "noise", "sample", "low", "high")
        }
        return replace(self, **scaled)

    def moved(self, origin: Any, factor: Any) -> Errors:
        """Return the errors of a positive multiple, added to public numbers."""
        found = self.times(factor)
        ends = ("estimate", "low", "high")
        return replace(found, **{name: origin + getattr(found, name) for name in ends})

    def std_error(self, of: str) -> Floats:
        """Return standard errors."""
        found = self.noise if of == "table" else np.hypot(self.noise, self.sample)
        if not self.is_root:
            return found
        # of the root to the first order, and never more than that of the whole
        root = np.sqrt(np.maximum(self.estimate, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            least: Floats = np.fmin(found / (2 * root), np.sqrt(found))
        return least


@dataclass(frozen=True)
class QuantileErrors:
    """Errors of a quantile in each group, by those of the distribution function.

    At the true quantile the function is the level, so the quantile lies between the
    edges at which the released function is within its error.

    Parameters
    ----------
    estimate : ndarray of shape (n_cells,)
    edges : ndarray of shape (n_edges,)
    excess : ndarray of shape (n_cells, n_edges)
        Noisy number of records below an edge, less their number below the quantile.
    noise : ndarray of shape (n_cells, n_edges)
        Standard deviation of the noise of that.
    sample : ndarray of shape (n_cells,)
        And by sampling, at the quantile.
    """

    estimate: Floats
    edges: Floats
    excess: Floats
    noise: Floats
    sample: Floats

    def interval(self, level: float, of: str, width: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals; see :meth:`Errors.interval`."""
        first, final = self._within(level, of, width)
        low = self.edges[np.maximum(first - 1, 0)]
        high = self.edges[np.minimum(final + 1, len(self.edges) - 1)]
        return np.fmin(low, self.estimate), np.fmax(high, self.estimate)

    def _within(self, level: float, of: str, width: float) -> tuple[Indices, Indices]:
        """First and last edge at which the function may be the level."""
        half = width * self.noise
        if of == "population":
            sample = stats.norm.isf((1 - level) / 2) * self.sample
            half = np.hypot(half, sample[:, None])
        reached, passed = self.excess + half >= 0, self.excess - half <= 0
        last = len(self.edges) - 1
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), last)
        final = np.where(passed.any(axis=1), last - passed[:, ::-1].argmax(axis=1), 0)
        return first, final

    def wide(self, of: str) -> Booleans:
        """Return where intervals are wide, by a coarse grid or a noisy function."""
        first, final = self._within(_ONE, of, 1.0)
        within = self.noise.max(axis=1, initial=0.0, where=self._is_near(first, final))
        noisy = (of == "table") | (within > _NOISY * self.sample)
        found: Booleans = noisy | (final - first < _FINE)
        return found

    def _is_near(self, first: Indices, final: Indices) -> Booleans:
        """Whether an edge is between two others of its cell, or next to them."""
        at = np.arange(len(self.edges))
        near: Booleans = (at >= first[:, None] - 1) & (at <= final[:, None] + 1)
        return near

    def std_error(self, of: str) -> Floats:
        """Return standard errors: of a normal distribution with the same interval."""
        low, high = self.interval(_ONE, of, 1.0)
        found: Floats = (high - low) / 2
        return found


def errors_of(
    layout: Any,
    value: Floats,
    noise_std: Floats,
    n_records: int,
    quantiles: bool = True,
) -> dict[tuple[Hashable, str], Errors | QuantileErrors]:
    """Return the errors of all statistics of a summary that have some, by label.

    They are in the units of the columns; 'mode' and 'n_unique' have none.

    Sampling errors are of records drawn independently. A variance that was not released
    is bounded by that of a column at both of its bounds, and a fourth moment by the
    variance times the square of the range.
    """
    noisy = layout.noisy(value, noise_std, n_records)
    found: dict[Any, Any] = {}
    sizes, spread = noisy.sizes
    # with a number of records that is private, counts are as of independent arrivals
    total = n_records if layout.most_records is None else None
    fixed = sizes if not layout.by else None
    found[RECORDS, "count"] = _count_errors(sizes, spread, fixed, total)
    for column in layout.columns:
        for label, errors in _of_column(layout, noisy, column, n_records, total):
            found[column.name, label] = errors
        levels = layout.quantile_levels(column) if quantiles else {}
        if levels:
            of_levels = _of_quantiles(layout, noisy, column, n_records, levels)
            found |= {(column.name, label): errors for label, errors in of_levels}
    return found


def _of_column(
    layout: Any, noisy: Any, column: Any, n: int, total: int | None
) -> Iterator[tuple[str, Any]]:
    """Pairs of labels and errors of the statistics of one column."""
    answers, spread = noisy.answers(column)
    size = usable_counts(answers, spread)
    # public sizes have no sampling error
    fixed = answers if not (layout.by or column.has_gaps) else None
    yield "count", _count_errors(answers, spread, fixed, total)
    sizes, sizes_std = noisy.sizes
    yield "size", _count_errors(sizes, sizes_std, None if layout.by else sizes, total)
    if column.asks("mean", "sum", "std", "var"):
        yield from _of_moments(layout, noisy, column, n, total)
    if column.asks("rate") and column.levels is None:
        _, key, at = layout.place(column, "rate")
        ratio = noisy.ratio(key, column, [at])[:, 0]
        above = 0.5 * n * noisy.noise[key][:, at]
        rate = 0.5 + 0.5 * ratio
        yield "rate", _ratio(rate, above, spread, size, rate * size, 0.5)
    if column.asks("rate", "histogram") and ("cells", column.name) in layout.blocks:
        key = ("cells", column.name)
        held, noise = n * noisy.shares[key], n * noisy.noise[key]
        for at, label in enumerate(cell_labels(column)):
            cell, error = held[:, at], noise[:, at]
            yield f"histogram{label}", _count_errors(cell, error, None, total)
            if column.levels is None or column.levels[at] is not None:
                errors = _ratio(cell / size, error, spread, size, cell, 0.0)
                yield f"rate{label}", errors


def _count_errors(
    counts: Floats, noise: Floats, fixed: Floats | None, total: int | None
) -> Errors:
    """Errors of numbers of records of a public total, if any; `fixed` of all."""
    if fixed is not None:
        return Errors(counts, noise, np.zeros_like(counts), 0.0)
    if total is None:
        return Errors(counts, noise, np.sqrt(np.maximum(counts, 0.0) + 2), 0.0)
    sample = total * _of_share(counts, np.full_like(counts, total))
    return Errors(counts, noise, sample, 0.0, total)


def _ratio(
    rate: Floats,
    above: Floats,
    below: Floats,
    size: Floats,
    counts: Floats,
    origin: float,
) -> Errors:
    """Errors of a share of `size` records, of which so many deviate about an origin."""
    return Errors(
        rate,
        ratio_std(rate - origin, above, below, size),
        _of_share(counts, size),
        0.0,
        1.0,
        origin=origin,
        above=above / size,
        below=below / size,
    )


def _of_share(counts: Floats, size: Floats) -> Floats:
    """Sampling error of a share, by the share with two more records on either side."""
    share = np.clip((counts + 2) / (size + 4), 0.0, 1.0)
    found: Floats = np.sqrt(share * (1 - share) / size)
    return found


def _of_moments(
    layout: Any, noisy: Any, column: Any, n: int, total: int | None
) -> Iterator[tuple[str, Errors]]:
    """Errors of the mean, sum, variance and deviation of a column."""
    has_second = column.asks("std", "var")
    block, key, at = layout.place(column, "std" if has_second else "mean")
    answers, spread = noisy.answers(column)
    size = usable_counts(answers, spread)
    middle, half = float(block.bounds.middle[at]), float(block.bounds.half[at])
    first = noisy.ratio(key, column, [at])[:, 0]
    above = n * noisy.noise[key][:, at]
    first_std = ratio_std(first, above, spread, size)
    # what the mean may be, as far as the noise goes, and what its variance may be then
    inside = np.clip(first, -1.0, 1.0)
    nearest = np.maximum(np.abs(inside) - first_std, 0.0)
    # with two more records at either bound
    nearest = np.minimum(nearest, 1.0) * size / (size + 4)
    variance, is_wide = 1 - nearest**2, np.full(len(first), True)
    if has_second:
        at_two = at + len(block.positions)
        second = noisy.ratio(key, column, [at_two])[:, 0]
        raw = second + 0.5 - first**2
        # by both moments and by what both are divided by
        raw_std = np.sqrt(
            (n * noisy.noise[key][:, at_two] / size) ** 2
            + (2 * first * above / size) ** 2
            + ((2 * first**2 - second) * spread / size) ** 2
        )
        # no less than what the noise hides
        least = np.minimum(np.maximum(raw, raw_std), variance)
        is_wide = ~(raw >= 2 * raw_std)
        variance = least
        fourth = variance * ((1 + np.abs(inside)) ** 2 - variance)
        errors = (
            half**2 * raw,
            half**2 * raw_std,
            half**2 * np.sqrt(np.maximum(fourth, 0.0) / size),
            0.0,
            half**2,
            np.full(len(raw), True),
        )
        yield "var", Errors(*errors)
        yield "std", Errors(*errors, is_root=True)
    sample = half * np.sqrt(variance / size)
    mean = middle + half * first
    low, high = middle - half, middle + half
    yield (
        "mean",
        Errors(
            mean,
            half * first_std,
            sample,
            low,
            high,
            is_wide,
            origin=middle,
            above=half * above / size,
            below=spread / size,
        ),
    )
    summed, noise = layout.sums(noisy, column)
    most = math.inf if total is None else float(total)
    there = np.clip(answers, 1.0, most)
    # where no mean is known, as of values at both bounds
    farthest = max(abs(low), abs(high))
    of_size = np.sqrt(there * (1 - there / most))
    of_size = of_size * np.where(np.isnan(mean), farthest, np.abs(mean))
    of_values = half * np.sqrt(np.where(np.isnan(variance), 1.0, variance) * there)
    # of no records it is zero
    ends = min(0.0, low) and most * low, max(0.0, high) and most * high
    yield "sum", Errors(summed, noise, np.hypot(of_values, of_size), *ends, is_wide)


def _of_quantiles(
    layout: Any, noisy: Any, column: Any, n: int, levels: dict[str, float]
) -> Iterator[tuple[str, QuantileErrors]]:
    """Errors of the quantiles of a column, by those of its distribution function."""
    tree = layout.blocks.get(("tree", column.name))
    key = ("cells", column.name) if tree is None else ("tree", column.name)
    answers, spread = (None, None) if layout.are_counted else noisy.answers(column)

    def leaves(nodes: Floats, total: Any) -> Floats:
        if tree is None:
            return nodes
        total = None if total is None else total / tree.unit
        found: Floats = tree.unit * consistent_leaves(tree, nodes, total)
        return found

    errors = quantile_errors(
        leaves,
        n * noisy.shares[key],
        n * noisy.noise[key],
        np.asarray(column.edges, dtype=float),
        [*levels.values()],
        [layout.quantiles_of(noisy, column, (q,))[:, 0] for q in levels.values()],
        answers,
        None if spread is None else float(spread[0]),
    )
    yield from zip(levels, errors, strict=True)


def quantile_errors(
    leaves: Callable[[Floats, Any], Floats],
    nodes: Floats,
    noise: Floats,
    edges: Floats,
    levels: Sequence[float],
    estimates: Sequence[Floats],
    totals: Floats | None = None,
    total_std: float | None = None,
) -> Iterator[QuantileErrors]:
    """Yield the errors of quantiles by those of noisy counts.

    `leaves` returns counts of bins, linear in noisy counts of shape (n, n_nodes) and in
    totals of shape (n,) or None.
    """
    rng = np.random.default_rng(0)
    counts = leaves(nodes, totals)
    whole = counts.sum(axis=1) if totals is None else totals
    reached = np.cumsum(counts, axis=1)
    n_cells = len(counts)
    found = np.empty((len(levels), n_cells, counts.shape[1]))
    for cell in range(n_cells):
        # draws of its noise, below each edge and in all
        drawn = rng.normal(size=(_DRAWS, nodes.shape[1])) * noise[cell]
        of_all = None if total_std is None else rng.normal(size=_DRAWS) * total_std
        moved = np.cumsum(leaves(drawn, of_all), axis=1)
        total = moved[:, -1:] if of_all is None else of_all[:, None]
        for at, level in enumerate(levels):
            found[at, cell] = (moved - level * total).std(axis=0)
    zero, size = np.zeros((n_cells, 1)), np.abs(whole[:, None])
    for level, estimate, deviations in zip(levels, estimates, found, strict=True):
        excess = reached - level * whole[:, None]
        yield QuantileErrors(
            estimate,
            edges,
            # below the first edge nothing is, and below the last all
            np.hstack([-level * size, excess[:, :-1], (1 - level) * size]),
            np.hstack([zero, deviations[:, :-1], zero]),
            np.sqrt(np.maximum(whole, 1.0) * level * (1 - level)),
        )
