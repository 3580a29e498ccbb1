"""Parameters of a summary: their checks, and what they say of each column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_count, check_probability
from skpuffer.schema import Number
from skpuffer.utils._bounds import (
    are_empirical,
    check_bounds,
    data_bounds,
    declared_bounds,
    resolve_bounds,
)

from ._schema import check_levels

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.releases import PublicContext
    from skpuffer.schema import Schema

    from ._schema import Column

__all__ = [
    "CATEGORICAL",
    "NUMERIC",
    "as_list",
    "check_summary",
    "has_edges",
    "public_bounds",
    "public_grid",
    "quantile_bins",
    "requested",
    "schema_grids",
]

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
            raise ValueError(
                Statement(
                    "summary.statistics_unknown",
                    numeric=list(NUMERIC),
                    names=names,
                )
            )
    by = as_list(summary.by)
    columns = as_list(summary.columns)
    for parameter, names in (("by", by), ("columns", columns)):
        if not all(isinstance(name, Hashable) for name in names):
            raise ValueError(
                Statement(
                    "summary.column_names_invalid", parameter=parameter, names=names
                )
            )
        if len(set(names)) < len(names):
            raise ValueError(
                Statement(
                    "summary.column_named_twice", parameter=parameter, names=names
                )
            )
    # a column that spans the groups is the same for all records of one
    both = set(by) & {*columns, *(asked if isinstance(asked, dict) else ())}
    if both:
        raise ValueError(
            Statement("summary.by_also_summarised", both=sorted(both, key=str))
        )
    if isinstance(asked, dict) and not set(columns) <= set(asked):
        raise ValueError(
            Statement(
                "summary.columns_without_statistics",
                columns=[name for name in columns if name not in asked],
            )
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
        raise ValueError(Statement("summary.bins_invalid", grid=grid))


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
        raise ValueError(
            Statement(
                "summary.statistic_impossible_for_column",
                impossible=impossible,
                name=column.name,
                kind=kind,
                possible=list(possible),
            )
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
    summary : PrivateSummary
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
        raise ValueError(Statement("summary.columns_without_bounds", missing=missing))
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
    schema : Schema

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
    bins : int, array-like or dict
    column : Column
    wanted : sequence of str
        Statistics.
    bounds : pair of float or None
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
