"""Layout of a summary: the released vector, coordinate by coordinate, and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_count, check_probability
from skpuffer.releases import PublicContext
from skpuffer.schema import Number
from skpuffer.utils._bounds import (
    Bounds,
    are_empirical,
    check_bounds,
    data_bounds,
    declared_bounds,
    resolve_bounds,
)

from ._cells import Bins, Grouped, Levels, Ones, Signs, Stacked
from ._count_tree import (
    CountTree,
    Parts,
    consistent_leaves,
    nearest_counts,
)
from ._mean import Moments
from ._private_statistic import grid_quantiles, usable_counts
from ._schema import Column, check_levels

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.schema import Schema


#: Column label of group sizes that no column was asked for.
RECORDS = "records"

#: Statistics that are affine in the released vector, in groups too.
_AFFINE = ("count", "histogram")


@dataclass(frozen=True)
class ColumnRequest:
    """Column and the statistics asked of it.

    Parameters
    ----------
    position : int
        In the encoded table.
    levels : tuple or None
        Of a categorical column.
    edges : tuple of float or None
        Public grid.
    boolean : bool
        Whether it is numeric and holds only zeros and ones.
    """

    name: Hashable
    position: int
    statistics: tuple[str, ...]
    levels: tuple | None = None
    bounds: tuple[float, float] | None = None
    edges: tuple[float, ...] | None = None
    boolean: bool = False

    @property
    def cells(self) -> tuple | None:
        """Levels to count records by, or None for a grid."""
        return (False, True) if self.boolean else self.levels

    @property
    def is_complete(self) -> bool:
        """Whether every record is in one of the bins or levels."""
        # what is not listed is at the level None, where there is one
        return self.levels is None or None in self.levels

    def asks(self, *statistics: str) -> bool:
        """Whether any of these statistics is asked of the column."""
        return any(name in self.statistics for name in statistics)


@dataclass(frozen=True)
class SummaryLayout:
    """Layout of the vector that a summary releases; all of it is public.

    It is made from parameters, names and types of columns. What reads the vector back
    has nothing but this layout and the noisy numbers.

    Parameters
    ----------
    by : tuple of Column
        Categorical; positions are those in the encoded table.
    unit_order : float, default=2
        Order by which the noise of a tree of d levels has units of d**(1 / order).
    nonnegative : bool, default=False
        Whether counts are read back as the nearest that are not negative and agree.
    """

    columns: tuple[ColumnRequest, ...]
    by: tuple[Column, ...] = ()
    quantiles: tuple[float, ...] = ()
    unit_order: float = 2.0
    nonnegative: bool = False

    # -- what is released ---------------------------------------------------------

    @cached_property
    def blocks(self) -> dict[Any, Any]:
        """Blocks of coordinates by name, within one cell."""
        # What two statistics need is released once: a variance needs the mean anyway,
        # and rates of levels, quantiles and histograms are read off the same counts.
        # Each block less leaves more of the budget to the others.
        blocks = {}
        if self.by and self._divides:
            blocks["count"] = Ones()
        spread = [c for c in self.columns if c.asks("std", "var")]
        centre = [c for c in self.columns if c.asks("mean") and c not in spread]
        for order, chosen in ((1, centre), (2, spread)):
            if chosen:
                blocks["moments", order] = Moments(
                    tuple(c.position for c in chosen),
                    Bounds(*zip(*(c.bounds for c in chosen), strict=True)),
                    order,
                )
        signs = [c for c in self.columns if c.asks("rate") and c.levels is None]
        if signs:
            blocks["signs"] = Signs(tuple(c.position for c in signs))
        for column in self.columns:
            by_level = column.levels is not None and column.asks("rate")
            if column.asks("histogram") or by_level:
                blocks["cells", column.name] = (
                    Bins(column.position, column.edges)
                    if column.cells is None
                    else Levels(column.position, len(column.cells))
                )
            elif column.asks("quantile", "median"):
                blocks["tree", column.name] = CountTree(column.position, column.edges)
        # A record is in a node of each level, and yet no other block shall have less of
        # the budget for it. Trees alone count in ones, as whole numbers.
        trees = {key: b for key, b in blocks.items() if key[0] == "tree"}
        if len(trees) < len(blocks) or len({b.depth for b in trees.values()}) > 1:
            for key, tree in trees.items():
                blocks[key] = replace(tree, unit=tree.depth ** (1 / self.unit_order))
        return blocks

    @property
    def _divides(self):
        """Whether group sizes are needed: to be shown, or to divide by."""
        shown = not self.columns or any(c.asks("count") for c in self.columns)
        return shown or any(c.asks("mean", "std", "var", "rate") for c in self.columns)

    @cached_property
    def contribution(self) -> Stacked | Grouped:
        """Contribution of one record to the released vector."""
        block = Stacked(tuple(self.blocks.values()))
        if not self.by:
            return block
        return Grouped(
            tuple(c.position for c in self.by),
            tuple(len(c.levels) for c in self.by),
            block,
        )

    # -- how it is read back ------------------------------------------------------

    def read(
        self, value: Floats, noise_std: Floats, n_records: int
    ) -> dict[tuple[Hashable, str], Floats]:
        """Read the statistics off the noisy vector.

        Parameters
        ----------
        value : ndarray of shape (dim,)
            Mean contribution, in data units, with noise.
        noise_std : ndarray of shape (dim,)
            Standard deviation of that noise.

        Returns
        -------
        dict of {(column, statistic): ndarray of shape (n_cells,)}
        """
        # Noise was drawn in these units, and shares are read without them: a mean in
        # [-1, 1], a share of records in [0, 1].
        units = np.asarray(self.contribution.units)
        n_cells = self.contribution.n_cells if self.by else 1
        noisy = _NoisyBlocks(
            self._split(value / units, n_cells),
            self._split(noise_std / units, n_cells),
            n_records,
            grouped=bool(self.by),
        )
        if self.nonnegative:
            self._make_nonnegative(noisy)
        found = {}
        for column in self.columns:
            for name in column.statistics:
                for label, values in self._statistic(noisy, column, name):
                    found[column.name, label] = values
        # sizes were paid for to divide by, so they may as well be shown
        if "count" in self.blocks and not any(c.asks("count") for c in self.columns):
            found = {(RECORDS, "count"): noisy.counts, **found}
        return found

    def is_affine(self, statistic: str) -> bool:
        """Whether a statistic that :meth:`read` found is affine in the noisy vector."""
        # in groups, means and rates are ratios of two noisy numbers
        known = _AFFINE if self.by else (*_AFFINE, "mean", "rate")
        return statistic.partition("[")[0] in known

    def frame(self, found: dict[tuple[Hashable, str], Floats]) -> pd.DataFrame:
        """Make a table of statistics as :meth:`read` found them, or of some of them."""
        return self._grouped_frame(found) if self.by else self._plain_frame(found)

    def _split(self, vector, n_cells):
        """Coordinates by block, each of shape (n_cells, dim of the block)."""
        # cells of the cross-table as rows, as `Grouped` lays them out
        ends = np.cumsum([block.dim for block in self.blocks.values()])
        pieces = np.split(vector.reshape(n_cells, -1), ends[:-1], axis=1)
        return dict(zip(self.blocks, pieces, strict=True))

    def _statistic(self, noisy, column, name):
        """Pairs of a label and its values, one for each cell of the cross-table."""
        if name == "count":
            yield name, noisy.counts
        elif name in ("mean", "std", "var"):
            yield name, self._moment(noisy, column, name)
        elif name == "rate" and column.levels is None:
            at = self.blocks["signs"].positions.index(column.position)
            # from a mean of signs in [-1, 1] to a rate in [0, 1]
            yield name, 0.5 + 0.5 * noisy.ratio("signs")[:, at]
        elif name == "rate":
            rates = noisy.ratio(("cells", column.name))
            for level, values in zip(column.levels, rates.T, strict=True):
                yield f"rate[{level}]", values
        elif name == "histogram":
            counts = noisy.n_records * noisy.shares["cells", column.name]
            for label, values in zip(_cell_labels(column), counts.T, strict=True):
                yield f"histogram{label}", values
        else:
            median = name == "median"
            levels = (0.5,) if median else self.quantiles
            found = self._quantiles(noisy, column, levels)
            for q, values in zip(levels, found.T, strict=True):
                yield ("median" if median else f"{100 * q:.10g}%"), values

    def _moment(self, noisy, column, name):
        """One of 'mean', 'std' and 'var' of a column, from its noisy moments."""
        key = next(
            key
            for key in self.blocks
            if key[0] == "moments" and column.position in self.blocks[key].positions
        )
        block, ratios = self.blocks[key], noisy.ratio(key)
        at = block.positions.index(column.position)
        n = len(block.positions)
        if name == "mean":
            return block.means(ratios[:, :n])[:, at]
        variance = block.variances(ratios[:, :n], ratios[:, n:])[:, at]
        return variance if name == "var" else np.sqrt(variance)

    def _quantiles(self, noisy, column, levels):
        """Quantiles of a column in each cell, of shape (n_cells, n_levels)."""
        # Without groups the bins of a column share all records, whose number is public.
        # In a group their own sum is the total, noisy as it is: bins and a separate
        # count would not agree, and shares would not sum to one.
        if ("tree", column.name) in self.blocks:
            tree = self.blocks["tree", column.name]
            key, top = ("tree", column.name), slice(tree.sizes[0])
            known = None if self.by else np.ones(1) / tree.unit
            shares = tree.unit * consistent_leaves(tree, noisy.shares[key], known)
            noise = tree.unit * noisy.noise[key][:, top]
        else:
            shares = noisy.shares["cells", column.name]
            noise = noisy.noise["cells", column.name]
        totals = np.ones(len(shares))
        if self.by:
            # standard deviation, at most, of the sum of a group's bins: of independent
            # noises, some of which are averaged with those of levels below
            noise, n = np.linalg.norm(noise, axis=1), noisy.n_records
            totals = usable_counts(n * shares.sum(axis=1), n * noise) / n
        return np.array(
            [
                grid_quantiles(row, total, column.edges, levels)
                for row, total in zip(shares, totals, strict=True)
            ]
        )

    def _make_nonnegative(self, noisy):
        """Replace counts by the nearest that are not negative and agree."""
        cells = [key for key in self.blocks if key[0] == "cells"]
        counted = "count" in self.blocks
        if not cells and not counted:
            return
        by_name = {column.name: column for column in self.columns}
        # all of them in records, with the same noise
        sizes, parts = nearest_counts(
            noisy.shares["count"][:, 0] if counted else None,
            [Parts(noisy.shares[key], by_name[key[1]].is_complete) for key in cells],
            1.0,
            not self.by or all(None in c.levels for c in self.by),
        )
        if counted:
            noisy.shares["count"] = sizes[:, None]
        noisy.shares |= dict(zip(cells, parts, strict=True))

    @cached_property
    def _groups(self):
        """Index of the groups."""
        names = [column.name for column in self.by]
        # Every combination of public levels is a row, empty or not: which occur is
        # private.
        # as objects: whole numbers stay whole beside the level of missing values
        levels = [
            pd.Index(c.levels, dtype=object if None in c.levels else None)
            for c in self.by
        ]
        index = pd.MultiIndex.from_product(levels, names=names)
        return index.get_level_values(0) if len(names) == 1 else index

    def _grouped_frame(self, found):
        """Groups as rows, pairs (column, statistic) as columns."""
        columns = pd.MultiIndex.from_tuples(list(found), names=["column", "statistic"])
        values = np.reshape(list(found.values()), (len(found), len(self._groups))).T
        return pd.DataFrame(values, self._groups, columns)

    def _plain_frame(self, found):
        """Statistics as rows, columns as columns."""
        labels = list(dict.fromkeys(label for _, label in found))
        # statistics in the order they were first asked for
        names = [column.name for column in self.columns]
        table = [
            [
                found[name, label][0] if (name, label) in found else np.nan
                for name in names
            ]
            for label in labels
        ]
        index = pd.Index(labels, name="statistic")
        return pd.DataFrame(table, index, pd.Index(names, name="column"), dtype=float)


class _NoisyBlocks:
    """Noisy vector, split into blocks, and its ratios to usable group sizes."""

    def __init__(
        self,
        shares: dict[str, Floats],
        noise: dict[str, Floats],
        n_records: int,
        grouped: bool,
    ):
        self.shares, self.noise, self.n_records = shares, noise, n_records
        self._grouped = grouped

    @property
    def counts(self) -> Floats:
        """Group sizes; the public number of records without groups."""
        if not self._grouped:
            return np.array([float(self.n_records)])
        return self.n_records * self.shares["count"][:, 0]

    def ratio(self, key: str) -> Floats:
        """Means within groups."""
        if not self._grouped:
            return self.shares[key]
        # a ratio of two noisy numbers, NaN where the lower one is mostly noise
        noise = self.n_records * self.noise["count"][:, 0]
        sizes = usable_counts(self.counts, noise) / self.n_records
        return self.shares[key] / sizes[:, None]


def _cell_labels(column):
    """Labels of a column's bins or levels, as they are printed."""
    if column.cells is not None:
        return [f"[{level}]" for level in column.cells]
    # closed below and open above, the last one closed, as `Bins` counts
    edges = column.edges
    last = len(edges) - 2
    return [
        f"[{low:.12g}, {high:.12g}{']' if i == last else ')'}"
        for i, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True))
    ]


@dataclass(frozen=True, kw_only=True)
class SummaryContext(PublicContext):
    """Public facts of a table, and the layout of its summary."""

    layout: SummaryLayout | None = field(default=None)


# -- parameters of a summary: their checks, and what they say of each column -----------


#: Statistics of numeric columns, and those of them that others have as well.
NUMERIC = ("count", "mean", "std", "var", "rate", "quantile", "median", "histogram")
BOOLEAN = ("count", "mean", "std", "var", "rate", "histogram")
CATEGORICAL = ("count", "rate", "histogram")

#: Bins of a column that a dict of `bins` does not name.
DEFAULT_BINS = 20


def quantile_bins(n_records: float) -> int:
    """Return the number of bins of a grid that quantiles are read off.

    Parameters
    ----------
    n_records : float
        Public number of records that share the grid.
    """
    # Between edges, records are taken to lie evenly, which is wrong by the root of
    # their number: eight times as many bins, of eight times less each, cost a fourth
    # level of counts.
    return 512 if n_records < 50_000 else 4096


_MOMENTS = {"mean", "std", "var"}
_GRID = {"quantile", "median", "histogram"}


def as_list(value: Any) -> list[Any]:
    """List of names, given none, one or several."""
    if value is None:
        return []
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value]
    return [v.item() if isinstance(v, np.generic) else v for v in value]


def check_summary(summary: Any) -> None:
    """Check the parameters of a summary before any data is seen.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    # Here from the parameters alone: no table has been seen yet, so an error may quote
    # whatever it likes.
    asked = summary.statistics
    for names in asked.values() if isinstance(asked, dict) else [asked]:
        names = as_list(names)
        unknown = [name for name in names if name not in NUMERIC]
        if unknown or (not names and not summary.by):
            raise value_error(
                "summary.statistics_unknown", numeric=list(NUMERIC), names=names
            )
    by = as_list(summary.by)
    columns = as_list(summary.columns)
    for parameter, names in (("by", by), ("columns", columns)):
        if not all(isinstance(name, Hashable) for name in names):
            raise value_error(
                "summary.column_names_invalid", parameter=parameter, names=names
            )
        if len(set(names)) < len(names):
            raise value_error(
                "summary.column_named_twice", parameter=parameter, names=names
            )
    # a column that spans the groups is the same for all records of one
    both = set(by) & {*columns, *(asked if isinstance(asked, dict) else ())}
    if both:
        raise value_error("summary.by_also_summarised", both=sorted(both, key=str))
    if isinstance(asked, dict) and not set(columns) <= set(asked):
        raise value_error(
            "summary.columns_without_statistics",
            columns=[name for name in columns if name not in asked],
        )
    for q in np.ravel(np.asarray(summary.quantiles, dtype=object)):
        check_probability(quantiles=q)
    for name, levels in (summary.categories or {}).items():
        check_levels(name, levels)
    check_bounds(summary.bounds)
    bins = summary.bins
    for grid in bins.values() if isinstance(bins, dict) else [bins]:
        _check_grid(grid)


def _check_grid(grid):
    """Check one value of `bins`: a number of bins, or edges."""
    if np.ndim(grid) == 0:
        check_count(bins=grid)
        return
    edges = np.asarray(grid, dtype=float)
    if (
        edges.ndim != 1
        or edges.size < 2
        or not np.all(np.isfinite(edges))
        or not np.all(np.diff(edges) > 0)
    ):
        raise value_error("summary.bins_invalid", grid=grid)


def requested(statistics: Any, column: Column) -> tuple[str, ...]:
    """Return the statistics asked of a column, as a tuple.

    Raises
    ------
    ValueError
        If one was asked of it by name that it cannot have.
    """
    # A list of statistics is for all columns, and each takes of it what makes sense; a
    # dict names this very column, where what makes none is a mistake.
    kind, possible = "numeric", NUMERIC
    if column.levels is not None:
        kind, possible = "categorical", CATEGORICAL
    elif column.boolean:
        kind, possible = "boolean", BOOLEAN
    named = isinstance(statistics, dict)
    names = as_list(statistics.get(column.name) if named else statistics)
    impossible = [name for name in names if name not in possible]
    if named and impossible:
        raise value_error(
            "summary.statistic_impossible_for_column",
            impossible=impossible,
            name=column.name,
            kind=kind,
            possible=list(possible),
        )
    return tuple(name for name in dict.fromkeys(names) if name in possible)


def public_bounds(
    summary: Any,
    task: Task,
    context: PublicContext,
    wanted: dict[Hashable, tuple[str, ...]],
) -> dict[Hashable, tuple[float, float] | None]:
    """Return a pair (low, high) for each column, or None where it needs none.

    Parameters
    ----------
    task : Task
        Its `reading` is the encoder, its `X` encoded.
    context : PublicContext
        Of the columns that are read.
    wanted : dict of {column: tuple of str}

    Raises
    ------
    ValueError
        If a column needs bounds and nobody knows any.
    """
    columns = task.reading.columns
    # Moments need bounds for their sensitivity to be finite, and a grid whose edges are
    # not given for these to be public; rates and counts need none.
    needing = {
        column.name
        for column in columns
        if column.levels is None
        and (
            _MOMENTS & set(wanted[column.name])
            or (
                _GRID & set(wanted[column.name])
                and _edges(summary.bins, column) is None
            )
        )
    }
    # the type of a boolean column bounds it
    known = {column.name: (0.0, 1.0) for column in columns if column.boolean}
    if summary.schema is not None:
        known = {n: (summary.schema[n].low, summary.schema[n].high) for n in needing}
    missing = needing - known.keys()
    given = summary.bounds
    if isinstance(given, dict):
        known |= {name: tuple(map(float, pair)) for name, pair in given.items()}
    elif are_empirical(given):
        # The one place where private rows are read: by that word only, with a warning,
        # and a certificate that says the guarantee is an estimate.
        if missing:
            known |= _by_name(columns, data_bounds(task.X))
    elif given is not None:
        # Arrays have one number for each column of the table, whether it is read or
        # not; a dict speaks of columns by name.
        table = resolve_bounds(given, task.reading.n_columns)
        pairs = table.select([column.position for column in columns])
        known |= _by_name(columns, pairs)
    # what the user gives goes before what the scenario declares
    if needing - known.keys():
        declared = declared_bounds(task.scenario, context, len(columns))
        if declared is not None:
            known = _by_name(columns, declared) | known
    missing = [
        column.name for column in columns if column.name in needing - known.keys()
    ]
    if missing:
        raise value_error("summary.columns_without_bounds", missing=missing)
    return {c.name: known[c.name] if c.name in needing else None for c in columns}


def _by_name(columns, bounds):
    pairs = zip(bounds.low, bounds.high, strict=True)
    return {column.name: pair for column, pair in zip(columns, pairs, strict=True)}


def _edges(bins, column):
    """Edges given outright for a column, or None."""
    grid = bins.get(column.name) if isinstance(bins, dict) else bins
    return None if grid is None or np.ndim(grid) == 0 else grid


def schema_grids(bins: Any, schema: Schema) -> dict[Hashable, Any]:
    """Return the grid of each number of a code book, as `bins` has them.

    Parameters
    ----------
    bins : int, array-like or dict
        The parameter of a summary. What it says of a column by name goes first, then
        what the code book does.

    Returns
    -------
    dict of {column: int or array-like}
    """
    named = bins if isinstance(bins, dict) else {}
    usual = DEFAULT_BINS if isinstance(bins, dict) else bins
    found: dict[Hashable, Any] = {}
    for name in schema.names:
        column = schema[name]
        if not isinstance(column, Number):
            continue
        cut = column.bins is not None or column.amount
        # edges are said outright, a number is what is usual
        if name in named or np.ndim(usual) or not cut:
            found[name] = named.get(name, usual)
        else:
            cells = schema.select([name]).binning(n_amount_bins=int(usual))
            found[name] = cells.edges[0]
    return found


def public_grid(
    bins: Any,
    column: Column,
    wanted: Sequence[str],
    bounds: tuple[float, float] | None,
    n_quantile_bins: int | None = None,
) -> tuple[float, ...] | None:
    """Return the edges of a numeric column's bins as a tuple, or None.

    Parameters
    ----------
    wanted : sequence of str
        Statistics.
    n_quantile_bins : int or None, default=None
        Into how many, or nearly as many, bins are cut for quantiles. None is for edges
        that somebody asked for, and no others.
    """
    if column.levels is not None or column.boolean or not _GRID & set(wanted):
        return None
    # edges from public bounds, never from where the data lie
    edges = _edges(bins, column)
    if edges is None:
        count = bins.get(column.name, DEFAULT_BINS) if isinstance(bins, dict) else bins
        edges = np.linspace(*bounds, int(count) + 1)
    edges = np.asarray(edges, dtype=float)
    if "histogram" not in wanted and n_quantile_bins is not None:
        edges = _refined(edges, n_quantile_bins)
    return tuple(edges.tolist())


def _refined(edges, n_bins):
    """Edges of a grid for quantiles alone: each bin is cut into as many equal parts."""
    parts = max(1, n_bins // (len(edges) - 1))
    inner = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(parts) / parts)
    found = np.append(inner, edges[-1])
    # of bins so narrow that there is nothing between their edges
    return found if np.all(np.diff(found) > 0) else edges


def has_edges(bins: Any, column: Column) -> bool:
    """Whether edges are given outright for a column."""
    return _edges(bins, column) is not None
