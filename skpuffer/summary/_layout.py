"""Layout of a summary: the released vector, coordinate by coordinate, and back."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_count, check_probability
from skpuffer.kernel.queries import stacked_sensitivity
from skpuffer.releases import PublicContext
from skpuffer.schema import Date, Number
from skpuffer.utils._bounds import (
    Bounds,
    are_empirical,
    check_bounds,
    data_bounds,
    declared_bounds,
    resolve_bounds,
)

from ._cells import Bins, Grouped, Level, Levels, Signs
from ._count_tree import (
    CountTree,
    Parts,
    consistent_leaves,
    nearest_counts,
)
from ._errors import RECORDS, Errors, QuantileErrors, errors_of
from ._gaps import Gaps, Ones, Stacked, count_weight, gap_weight
from ._mean import Moments, bounded_variance
from ._presented import cell_labels, plain_table, presented
from ._private_statistic import grid_quantiles, usable_counts
from ._schema import Column, check_levels
from ._weighted import Weighted

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.schema import Schema


#: Statistics that are affine in the released vector, in groups too.
_AFFINE = ("count", "size", "histogram")


@dataclass(frozen=True)
class ColumnRequest:
    """Column and the statistics asked of it.

    Parameters
    ----------
    position : int
        In the encoded table.
    levels : tuple or None
        Levels of a categorical column.
    edges : tuple of float or None
        Public grid.
    boolean : bool
        Whether it is numeric and holds only zeros and ones.
    mark : int or None
        Position of the column that is one where a value is missing; None if none is.
    whole : bool
        Whether each cell of its grid is one whole number.
    values : tuple of float or None
        Edges about each whole number, where these are counted one by one.
    number : Number or None
        Its entry in a code book.
    """

    name: Hashable
    position: int
    statistics: tuple[str, ...]
    levels: tuple | None = None
    bounds: tuple[float, float] | None = None
    edges: tuple[float, ...] | None = None
    boolean: bool = False
    mark: int | None = None
    whole: bool = False
    values: tuple[float, ...] | None = None
    number: Number | None = None

    @property
    def cells(self) -> tuple | None:
        """Levels to count records by, or None for a grid."""
        return (False, True) if self.boolean else self.levels

    @property
    def is_complete(self) -> bool:
        """Whether every record is in one of the bins or levels."""
        # what is not listed is at the level None, where there is one
        return self.mark is None if self.levels is None else None in self.levels

    @property
    def has_gaps(self) -> bool:
        """Whether values may be missing, of levels at the level None."""
        return self.mark is not None or None in (self.levels or ())

    @property
    def tally(self) -> tuple[str, Hashable]:
        """Block of the counts of each level, or of each whole number."""
        own = self.cells is None and self.values != self.edges
        return "values" if own else "cells", self.name

    def bins(self, edges: tuple[float, ...]) -> Bins:
        """Counts of a grid's bins, of dates by their whole units."""
        if isinstance(self.number, Date):
            # whether a unit reaches an edge is whether a moment reaches the next unit
            inner = tuple(float(math.ceil(edge)) for edge in edges[1:-1])
            edges = (edges[0], *inner, max(edges[-1], *inner[-1:]))
        return Bins(self.position, edges, self.mark)

    def asks(self, *statistics: str) -> bool:
        """Whether any of these statistics is asked of the column."""
        return any(name in self.statistics for name in statistics)


@dataclass(frozen=True)
class SummaryLayout:
    """Layout of the vector that a summary releases; all of it is public.

    It is made from parameters, names and types of columns alone.

    Parameters
    ----------
    by : tuple of Column
        Categorical; positions are those in the encoded table.
    unit_order : float, default=2
        Order of the norm in which the noise measures moves.
    unit_orders : tuple of float, default=()
        Orders of all norms in which it may do so. None is the one.
    relation : {'add_remove', 'replace'}, default='add_remove'
        How neighbouring tables differ, by which gaps are weighted.
    nonnegative : bool, default=False
        Whether counts are read back as the nearest that are not negative and agree.
    clip : bool, default=False
        Whether each statistic is clipped to its public domain.
    weigh : callable, default=None
        Makes the contribution one of records with weights. None leaves it as it is.
    most_records : int, default=None
        Public bound of a private number of records. None is where it is public.
    """

    columns: tuple[ColumnRequest, ...]
    by: tuple[Column, ...] = ()
    quantiles: tuple[float, ...] = ()
    unit_order: float = 2.0
    unit_orders: tuple[float, ...] = ()
    relation: str = "add_remove"
    nonnegative: bool = False
    clip: bool = False
    weigh: Any = None
    most_records: int | None = None

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
        centre = [c for c in self.columns if c.asks("mean", "sum") and c not in spread]
        signs = [c for c in self.columns if c.asks("rate") and c.levels is None]
        for has_gaps in (False, True):
            for order, asked in ((1, centre), (2, spread)):
                chosen = [c for c in asked if c.has_gaps == has_gaps]
                if chosen:
                    blocks["moments", order, has_gaps] = Moments(
                        tuple(c.position for c in chosen),
                        Bounds(*zip(*(c.bounds for c in chosen), strict=True)),
                        order,
                        _marks(chosen),
                    )
            chosen = [c for c in signs if c.has_gaps == has_gaps]
            if chosen:
                places = tuple(c.position for c in chosen)
                blocks["signs", has_gaps] = Signs(places, _marks(chosen))
        for column in self.columns:
            by_level = column.levels is not None and column.asks("rate")
            tallied = column.asks(*_TALLIED)
            if tallied and column.tally[0] == "values":
                blocks[column.tally] = column.bins(column.values)
                tallied = False
            if column.asks("histogram") or by_level or tallied:
                blocks["cells", column.name] = (
                    column.bins(column.edges)
                    if column.cells is None
                    else Levels(column.position, len(column.cells))
                )
            elif column.has_gaps and column.levels and column.asks("count"):
                # who has none of the levels
                code = column.levels.index(None)
                blocks["none", column.name] = Level(column.position, 1, code)
            elif column.asks(*_QUANTILES):
                bins = column.bins(column.edges)
                blocks["tree", column.name] = CountTree(
                    bins.position, bins.edges, mark=bins.mark
                )
        # A record is in a node of each level, and yet no other block shall have less of
        # the budget for it. Trees alone count in ones, as whole numbers.
        trees = {key: b for key, b in blocks.items() if key[0] == "tree"}
        if len(trees) < len(blocks) or len({b.depth for b in trees.values()}) > 1:
            for key, tree in trees.items():
                blocks[key] = replace(tree, unit=tree.depth ** (1 / self.unit_order))
        gaps = [c for c in self.columns if c.mark is not None and self._divides_by(c)]
        if gaps:
            blocks["gaps"] = Gaps(
                tuple(c.position for c in gaps),
                _marks(gaps),
                tuple(self._gap_weight(c, blocks.values()) for c in gaps),
            )
        if self._is_counted and self._divides:
            beside = Stacked(tuple(blocks.values()))
            # counts alone stay whole numbers
            weight = 1.0
            if not beside.is_count:
                weight = count_weight(beside.sensitivity, self.unit_order)
            blocks["count"] = Ones(weight)
        return blocks

    @property
    def _is_counted(self):
        """Whether the number of all records is a noisy one, beside the others."""
        return self.most_records is not None and not self.by

    @property
    def are_counted(self) -> bool:
        """Whether numbers of records are noisy, in all or by groups."""
        return bool(self.by) or self._is_counted

    def _gap_weight(self, column, blocks):
        """Weight of a gap of a column, beside what its values add."""
        # counts alone stay whole numbers
        if all(block.is_count for block in blocks):
            return 1.0
        held = [b.by_column for b in blocks]
        held = [by[column.position] for by in held if column.position in by]
        if not held:
            return 1.0
        # A record that leaves one group for another is in both as one that comes or
        # goes, and pays more for that than for any gap within.
        relation = "add_remove" if self.by else self.relation
        orders = self.unit_orders or (self.unit_order,)
        return gap_weight(stacked_sensitivity(held), relation, orders)

    @property
    def _divides(self):
        """Whether group sizes are needed: to be shown, or to divide by."""
        shown = not self.columns or any(c.asks("size") for c in self.columns)
        return shown or any(map(self._divides_by, self.columns))

    def _divides_by(self, column):
        """Whether the records that have a value are counted, by groups."""
        # quantiles of a group are shares of the sum of its bins
        other = () if self.are_counted else _QUANTILES
        return column.asks("count", "mean", "sum", "std", "var", "rate", *other)

    @cached_property
    def contribution(self) -> Stacked | Grouped | Weighted:
        """Contribution of one record to the released vector."""
        block = Stacked(tuple(self.blocks.values()))
        if self.by:
            block = Grouped(
                tuple(c.position for c in self.by),
                tuple(len(c.levels) for c in self.by),
                block,
            )
        # counts of records are weighted themselves
        lacking = not self.are_counted
        return block if self.weigh is None else self.weigh(block, lacking=lacking)

    def made_up_means(self) -> Floats:
        """Return the mean contribution to a complete made-up table, in units."""
        sizes = [len(column.levels) for column in self.by]
        n_cells = math.prod(sizes)
        held = [[x for x in c.levels or () if x is not None] for c in self.columns]
        turns = 2 * max(1, min(max(map(len, held), default=1), MOST_VALUES // n_cells))
        cell, turn = np.divmod(np.arange(n_cells * turns), turns)
        places = [column.position for column in (*self.by, *self.columns)]
        places += [c.mark for c in self.columns if c.mark is not None]
        rows = np.zeros((len(cell), 1 + max(places, default=0)))
        groups = np.unravel_index(cell, sizes) if sizes else ()
        for column, codes in zip(self.by, groups, strict=True):
            rows[:, column.position] = codes
        for column, levels in zip(self.columns, held, strict=True):
            if column.levels is None:
                low, high = column.bounds or (-1.0, 1.0)
                values = np.array([low / 2 + high / 2, high])
            else:
                values = np.array([column.levels.index(x) for x in levels] or [0])
            rows[:, column.position] = values[turn % len(values)]
        units = np.asarray(self.contribution.units) / len(rows)
        means: Floats = self.contribution.sums(rows).ravel() * units
        return means

    @property
    def _weighting(self):
        """What is public of weights that differ, or None."""
        found = getattr(self.contribution, "weighting", None)
        return found if found is not None and found.varies else None

    @property
    def _lacking(self):
        """Whether the weight of all records is a noisy number."""
        return getattr(self.contribution, "lack", None) is not None

    def _in_weights(self, found):
        """Counts as sums of weights, which were in units of the largest."""
        return {
            key: self._weight * values if _is_count(key[1]) else values
            for key, values in found.items()
        }

    @property
    def _weight(self):
        """Largest weight, in units of which counts are read."""
        found = getattr(self.contribution, "weighting", None)
        return 1.0 if found is None else found.largest

    # -- how it is read back ------------------------------------------------------

    def read(
        self, value: Floats, noise_std: Floats, n_records: int
    ) -> dict[tuple[Hashable, str], Floats]:
        """Read the statistics off the noisy vector."""
        noisy = self.noisy(value, noise_std, n_records)
        if self.nonnegative:
            self._make_nonnegative(noisy)
        found = {}
        for column in self.columns:
            for name in column.statistics:
                for label, values in self._statistic(noisy, column, name):
                    if self.clip and name in _DOMAINS:
                        domain = _DOMAINS[name](column, self.most_records or n_records)
                        values = np.clip(values, *domain)
                    found[column.name, label] = values
            # what a mean divides by was paid for, and says how far it is to be trusted
            if self._is_ratio(column):
                for label, values in self._statistic(noisy, column, "count"):
                    found.setdefault((column.name, label), values)
        # sizes were paid for to divide by, so they may as well be shown
        sizes = self.by and "count" in self.blocks
        if sizes and not any(c.asks(*_SIZES) for c in self.columns):
            counts = noisy.counts
            if self.clip:
                counts = np.clip(counts, 0, self.most_records or n_records)
            found = {(RECORDS, "count"): counts, **found}
        return self._in_weights(found)

    def errors(
        self, value: Floats, noise_std: Floats, n_records: int, quantiles: bool = True
    ) -> dict[tuple[Hashable, str], Errors | QuantileErrors]:
        """Return the errors of what :meth:`read` gives, but of modes and 'n_unique'."""
        exact = replace(self, nonnegative=False, clip=False)
        return {
            key: found.times(self._weight) if _is_count(key[1]) else found
            for key, found in errors_of(
                exact, value, noise_std, n_records, quantiles
            ).items()
        }

    def _is_ratio(self, column):
        """Whether means of a column divide by a count of its own that is noisy."""
        noisy = column.has_gaps or self._lacking or self._is_counted
        return noisy and self._divides_by(column)

    def place(self, column: ColumnRequest, name: str) -> tuple[Any, Any, int]:
        """Block of a column's first moments or signs, its key, and the coordinate."""
        kind = "signs" if name == "rate" else "moments"
        key, block = next(
            (key, block)
            for key, block in self.blocks.items()
            if key[0] == kind and column.position in block.positions
        )
        return block, key, block.positions.index(column.position)

    def is_affine(self, name: Hashable, statistic: str) -> bool:
        """Whether a statistic that :meth:`read` found is one coordinate, scaled."""
        # in groups, and where values may be missing, means and rates are ratios of two
        # noisy numbers; those with a value are of two that are taken from each other
        has_gaps = any(c.name == name and c.has_gaps for c in self.columns)
        ratios = self.are_counted or has_gaps or self._lacking
        known = _AFFINE if ratios else (*_AFFINE, "mean", "rate", "sum")
        kind = statistic.partition("[")[0]
        if self._lacking and kind == "size":
            return False
        return kind in known and not ((has_gaps or self._lacking) and kind == "count")

    def is_known_beforehand(self, name: Hashable, statistic: str) -> bool:
        """Whether the deviation of a statistic is known before anything is released."""
        return self.is_affine(name, statistic) or _is_count(statistic)

    def is_foreseen(self, name: Hashable, statistic: str) -> bool:
        """Whether it is known well enough by a table that is made up.

        Deviations of spreads depend on how large these are.
        """
        known = statistic.partition("[")[0] in ("mean", "rate")
        return known or self.is_known_beforehand(name, statistic)

    def frame(
        self, found: dict[tuple[Hashable, str], Floats], spread: bool = False
    ) -> pd.DataFrame:
        """Make a table of statistics as :meth:`read` found them, or of some of them."""
        by_name = {column.name: column for column in self.columns}
        shown: dict[Any, Any] = {
            key: presented(by_name[key[0]], key[1], values, spread)
            if key[0] in by_name
            else values
            for key, values in found.items()
        }
        if self.by:
            return self._grouped_frame(shown)
        labels = list(dict.fromkeys(label for _, label in found))
        # statistics in the order they were first asked for
        cells = {key: values[0] for key, values in shown.items()}
        return plain_table(cells, list(by_name), labels)

    def tidy(
        self,
        tables: dict[str, dict[tuple[Hashable, str], Any]],
        value: Floats,
        noise_std: Floats,
        n_records: int,
        spread: bool = False,
    ) -> pd.DataFrame:
        """Make a tidy table, a number a row, of several tables of statistics."""
        noisy = replace(self, nonnegative=False).noisy(value, noise_std, n_records)
        by_name = {column.name: column for column in self.columns}
        parts = []
        for name, label in tables["estimate"]:
            column = by_name.get(name)
            rows = {"column": name, "statistic": label}
            for kind, table in tables.items():
                values = table[name, label]
                if column is not None and kind != "wide":
                    distance = spread or kind == "std_error"
                    values = presented(column, label, values, distance)
                rows[kind] = values
            sizes = noisy.sizes if column is None else noisy.answers(column)
            rows["n"] = sizes[0]
            part = pd.DataFrame(rows, self.groups if self.by else None)
            parts.append(part.reset_index() if self.by else part)
        last = ["n", "wide"]
        if not parts:
            # of modes and numbers of values alone there are no errors
            groups = self.groups.names if self.by else []
            kinds = [kind for kind in tables if kind not in last]
            names = [*groups, "column", "statistic", *kinds, *last]
            return pd.DataFrame(columns=names)
        found = pd.concat(parts, ignore_index=True)
        return found[[name for name in found if name not in last] + last]

    def noisy(self, value: Floats, noise_std: Floats, n_records: int) -> NoisyBlocks:
        """Noisy vector by block, in arguments of :meth:`read`."""
        # Noise was drawn in these units, and shares are read without them: a mean in
        # [-1, 1], a share of records in [0, 1].
        units = np.asarray(self.contribution.units)
        n_cells = self.contribution.n_cells if self.by else 1
        total = None
        if self._lacking:
            share = self.contribution.total(value, noise_std)
            total = tuple(np.array([n_records * each]) for each in share)
            value, noise_std, units = value[:-1], noise_std[:-1], units[:-1]
        shares, noise = (
            self._split(each / units, n_cells) for each in (value, noise_std)
        )
        for each in (shares, noise) if "count" in self.blocks else ():
            (unit,) = self.blocks["count"].units
            each["count"] = unit * each["count"]
        return NoisyBlocks(
            shares,
            noise,
            n_records,
            grouped=self.are_counted,
            gaps=self.blocks.get("gaps"),
            total=total,
        )

    def _split(self, vector, n_cells):
        """Coordinates by block, each of shape (n_cells, dim of the block)."""
        # cells of the cross-table as rows, as `Grouped` lays them out
        ends = np.cumsum([block.dim for block in self.blocks.values()])
        pieces = np.split(vector.reshape(n_cells, -1), ends[:-1], axis=1)
        return dict(zip(self.blocks, pieces, strict=True))

    def _statistic(self, noisy, column, name):
        """Pairs of a label and its values, one for each cell of the cross-table."""
        if name == "size":
            yield name, noisy.counts
        elif name == "count":
            counts = noisy.answers(column)[0]
            yield name, np.clip(counts, 0, noisy.counts) if self.nonnegative else counts
        elif name in ("mean", "std", "var"):
            yield name, self._moment(noisy, column, name)
        elif name == "sum":
            yield name, self.sums(noisy, column)[0]
        elif name in _TALLIED:
            yield name, self._tallied(noisy, column, name)
        elif name == "rate" and column.levels is None:
            _, key, at = self.place(column, name)
            # from a mean of signs in [-1, 1] to a rate in [0, 1]
            yield name, 0.5 + 0.5 * noisy.ratio(key, column, [at])[:, 0]
        elif name == "rate":
            rates = noisy.ratio(("cells", column.name), column)
            for level, values in zip(column.levels, rates.T, strict=True):
                if level is not None:
                    yield f"rate[{level}]", values
        elif name == "histogram":
            counts = noisy.n_records * noisy.shares["cells", column.name]
            for label, values in zip(cell_labels(column), counts.T, strict=True):
                yield f"histogram{label}", values
        else:
            asked = self.quantile_levels(column, name)
            found = self.quantiles_of(noisy, column, tuple(asked.values()))
            yield from zip(asked, found.T, strict=True)

    def quantile_levels(self, column: ColumnRequest, *names: str) -> dict[str, float]:
        """Labels and levels of the quantiles that are asked of a column, or of some."""
        found = {}
        for name in names or column.statistics:
            if name == "quantile":
                found |= {f"{100 * q:.10g}%": q for q in self.quantiles}
            elif name in _LEVELS:
                found[name] = _LEVELS[name]
        return found

    def _moment(self, noisy, column, name):
        """One of 'mean', 'std' and 'var' of a column, from its noisy moments."""
        block, key, at = self.place(column, name)
        places = range(at, block.dim, len(block.positions))
        ratios = noisy.ratio(key, column, list(places))
        middle, half = block.bounds.middle[at], block.bounds.half[at]
        if name == "mean":
            return middle + half * ratios[:, 0]
        variance = half**2 * bounded_variance(ratios[:, 0], ratios[:, 1])
        return variance if name == "var" else np.sqrt(variance)

    def sums(self, noisy: NoisyBlocks, column: ColumnRequest) -> tuple[Floats, Floats]:
        """Sum of the values in each cell, and the deviation of its noise."""
        block, key, at = self.place(column, "sum")
        middle, half = block.bounds.middle[at], noisy.n_records * block.bounds.half[at]
        # of the values' distances from the middle, which is added for each of them
        answers, spread = noisy.answers(column)
        return (
            middle * answers + half * noisy.shares[key][:, at],
            np.hypot(middle * spread, half * noisy.noise[key][:, at]),
        )

    def _tallied(self, noisy, column, name):
        """The mode of a column in each cell, or how many values it has there."""
        key = column.tally
        counts, noise = (
            noisy.n_records * each[key] for each in (noisy.shares, noisy.noise)
        )
        # half a record of weight one
        least = 0.5 / self._weight
        seen = counts > np.maximum(least, seen_deviations(counts.shape[1]) * noise)
        if column.levels is not None and None in column.levels:
            seen[:, column.levels.index(None)] = False
        if name == "n_unique":
            return seen.sum(axis=1).astype(float)
        places = np.where(seen, counts, -np.inf).argmax(axis=1)
        found = places.astype(float)
        if column.cells is None:
            found = (np.asarray(column.values)[:-1] + 0.5)[places]
        return np.where(seen.any(axis=1), found, np.nan)

    def quantiles_of(
        self, noisy: NoisyBlocks, column: ColumnRequest, levels: Sequence[float]
    ) -> Floats:
        """Quantiles of a column in each cell, of shape (n_cells, n_levels)."""
        # Without groups the bins of a column share all records, whose number is public,
        # but for those whose value is missing, which are counted. In a group their own
        # sum is the total, noisy as it is: bins and a separate count would not agree,
        # and shares would not sum to one. So it is where their number is private.
        known = None
        if not self.are_counted:
            known = usable_counts(*noisy.answers(column)) / noisy.n_records
        if ("tree", column.name) in self.blocks:
            tree = self.blocks["tree", column.name]
            key, top = ("tree", column.name), slice(tree.sizes[0])
            total = None if known is None else known / tree.unit
            shares = tree.unit * consistent_leaves(tree, noisy.shares[key], total)
            noise = tree.unit * noisy.noise[key][:, top]
        else:
            shares = noisy.shares["cells", column.name]
            noise = noisy.noise["cells", column.name]
        totals = known
        if totals is None:
            # standard deviation, at most, of the sum of a group's bins: of independent
            # noises, some of which are averaged with those of levels below
            noise, n = np.linalg.norm(noise, axis=1), noisy.n_records
            totals = usable_counts(n * shares.sum(axis=1), n * noise) / n
        found = np.array(
            [
                grid_quantiles(row, total, column.edges, levels)
                for row, total in zip(shares, totals, strict=True)
            ]
        )
        if not column.whole:
            return found
        # and no negative zero
        whole = np.rint(found) + 0.0
        return np.clip(whole, column.edges[0] + 0.5, column.edges[-1] - 0.5)

    def _make_nonnegative(self, noisy):
        """Replace counts by the nearest that are not negative and agree."""
        cells = [key for key in self.blocks if key[0] in ("cells", "values")]
        counted = "count" in self.blocks
        if not cells and not counted:
            return
        by_name = {column.name: column for column in self.columns}
        # all of them in records, with the same noise
        sizes, parts = nearest_counts(
            noisy.shares["count"][:, 0] if counted else None,
            [Parts(noisy.shares[key], by_name[key[1]].is_complete) for key in cells],
            float(self.most_records or 1),
            # of a public number of records, unless these have weights
            (not self.by or all(None in c.levels for c in self.by))
            and self._weighting is None
            and self.most_records is None,
        )
        if counted:
            noisy.shares["count"] = sizes[:, None]
        noisy.shares |= dict(zip(cells, parts, strict=True))

    @cached_property
    def groups(self) -> pd.Index:
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
        held = {i: np.asarray(values) for i, values in enumerate(found.values())}
        return pd.DataFrame(held, self.groups).set_axis(columns, axis=1)


def _is_count(label):
    """Whether a statistic is a number of records, or their sum: with weights, those."""
    return label.partition("[")[0] in (*_AFFINE, "sum")


def _marks(columns):
    """Positions of what says which values are missing, if any may be."""
    return tuple(c.mark for c in columns if c.has_gaps)


class NoisyBlocks:
    """Noisy vector, split into blocks, and its ratios to usable group sizes."""

    def __init__(
        self,
        shares: dict[str, Floats],
        noise: dict[str, Floats],
        n_records: int,
        grouped: bool,
        gaps: Gaps | None,
        total: tuple[Floats, Floats] | None = None,
    ):
        # weight of all records, where they are not counted, and its deviation
        n = np.array([float(n_records)])
        self.total = (n, np.zeros(1)) if total is None else total
        self._certain = not grouped and total is None
        self.shares, self.noise, self.n_records = shares, noise, n_records
        self._grouped, self._gaps = grouped, gaps

    @property
    def counts(self) -> Floats:
        """Noisy sizes; without groups the public number of records, or their weight."""
        return self.sizes[0]

    @property
    def sizes(self) -> tuple[Floats, Floats]:
        """The same, and the deviation of their noise; NaN where none were released."""
        if not self._grouped:
            return self.total
        if "count" not in self.shares:
            unknown = np.full(len(next(iter(self.shares.values()))), np.nan)
            return unknown, unknown
        n = self.n_records
        return n * self.shares["count"][:, 0], n * self.noise["count"][:, 0]

    def answers(self, column: ColumnRequest) -> tuple[Floats, Floats]:
        """Records of each group that have a value, and the deviation of their noise."""
        (counts, noise), n = self.sizes, self.n_records
        if column.levels is not None and column.has_gaps:
            # those without a level are counted alone, or as another level is
            at = column.levels.index(None)
            for key, place in (("none", 0), ("cells", at)):
                if (held := (key, column.name)) in self.shares:
                    counts = counts - n * self.shares[held][:, place]
                    noise = np.hypot(noise, n * self.noise[held][:, place])
        # gaps are counted of columns that need it; of others all records are meant
        known = () if self._gaps is None else self._gaps.positions
        if column.has_gaps and self._gaps is not None and column.position in known:
            at = known.index(column.position)
            unit = n * self._gaps.units[at]
            counts = counts - unit * self.shares["gaps"][:, at]
            noise = np.hypot(noise, unit * self.noise["gaps"][:, at])
        return counts, noise

    def ratio(
        self, key: Any, column: ColumnRequest, places: list[int] | None = None
    ) -> Floats:
        """Means of some coordinates of a block, over the records that have a value."""
        shares = self.shares[key] if places is None else self.shares[key][:, places]
        if self._certain and not column.has_gaps:
            return shares
        # a ratio of two noisy numbers, NaN where the lower one is mostly noise
        sizes = usable_counts(*self.answers(column)) / self.n_records
        return shares / sizes[:, None]


@dataclass(frozen=True, kw_only=True)
class SummaryContext(PublicContext):
    """Public facts of a table, and the layout of its summary."""

    layout: SummaryLayout | None = field(default=None)


# -- parameters of a summary: their checks, and what they say of each column -----------


#: Statistics of numeric columns, and those of them that others have as well.
_SIZES = ("count", "size")
_TALLIED = ("mode", "n_unique")
_QUANTILES = ("quantile", "median", "min", "max")
_BOUNDED = (*_SIZES, "mean", "sum", "std", "var", "rate", "histogram")
_DATED = (*_SIZES, "mean", "std", "histogram", *_QUANTILES)
CATEGORICAL = (*_SIZES, "rate", "histogram", *_TALLIED)
STATISTICS = (*_BOUNDED, *_QUANTILES, *_TALLIED)
KINDS = {
    "categorical": CATEGORICAL,
    "boolean": (*_BOUNDED, *_TALLIED),
    "numeric": (*_BOUNDED, *_QUANTILES),
    "of few whole numbers": STATISTICS,
    "a date": _DATED,
    "a date of few values": (*_DATED, *_TALLIED),
}

#: Statistics that add up over groups.
ADDITIVE = (*_SIZES, "sum", "histogram")

#: Levels of the quantiles that have a name of their own.
_LEVELS = {"median": 0.5, "min": 0.01, "max": 0.99}

#: Whole numbers that are counted one by one, at most.
MOST_VALUES = 4096


def seen_deviations(n_levels: int) -> float:
    """Return how many deviations of its noise a count must have to be more than noise.

    Noise with no heavier tail than Laplace noise, ``exp(-sqrt(2) t) / 2`` above t
    deviations, exceeds it in any of `n_levels` empty counts with at most 5 %.
    """
    return max(2.0, math.log(10 * n_levels) / math.sqrt(2))


#: Bins of a column that a dict of `bins` does not name.
DEFAULT_BINS = 20


def quantile_bins(n_records: float) -> int:
    """Return the number of bins of a grid that quantiles are read off."""
    # Between edges, records are taken to lie evenly, which is wrong by the root of
    # their number: eight times as many bins, of eight times less each, cost a fourth
    # level of counts.
    return 512 if n_records < 50_000 else 4096


# Public domains of statistics; others are within theirs as they are read.
_DOMAINS = {
    "count": lambda column, n_records: (0, n_records),
    "histogram": lambda column, n_records: (0, n_records),
    "rate": lambda column, n_records: (0, 1),
    "mean": lambda column, n_records: column.bounds,
    "sum": lambda column, n_records: (
        n_records * min(0.0, column.bounds[0]),
        n_records * max(0.0, column.bounds[1]),
    ),
}

_MOMENTS = {"mean", "sum", "std", "var"}
_GRID = {*_QUANTILES, "histogram"}


def as_list(value: Any) -> list[Any]:
    """List of names, given none, one or several."""
    if value is None:
        return []
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value]
    return [v.item() if isinstance(v, np.generic) else v for v in value]


def check_summary(summary: Any) -> None:
    """Check the parameters of a summary before any data is seen."""
    # Here from the parameters alone: no table has been seen yet, so an error may quote
    # whatever it likes.
    asked = summary.statistics
    for names in asked.values() if isinstance(asked, dict) else [asked]:
        names = as_list(names)
        unknown = [name for name in names if name not in STATISTICS]
        if unknown or (not names and not summary.by):
            raise value_error(
                "summary.statistics_unknown", numeric=list(STATISTICS), names=names
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
    for name, grid in bins.items() if isinstance(bins, dict) else [(None, bins)]:
        _check_grid(_in_units(summary.schema, name, grid))


def _in_units(schema, name, grid):
    """One value of `bins`, dates among its edges as numbers of units."""
    entry = schema[name] if schema is not None and name in schema else None
    return entry.units(grid) if isinstance(entry, Date) and np.ndim(grid) else grid


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
    """Return the statistics asked of a column, as a tuple."""
    # A list of statistics is for all columns, and each takes of it what makes sense; a
    # dict names this very column, where what makes none is a mistake.
    kind = _kind(column)
    possible = KINDS[kind]
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


def _kind(column):
    """Kind of a column, by which it has statistics."""
    if column.levels is not None:
        return "categorical"
    if column.boolean:
        return "boolean"
    few = whole_values(column.number) is not None
    if isinstance(column.number, Date):
        return "a date of few values" if few else "a date"
    return "of few whole numbers" if few else "numeric"


def whole_values(number: Number | None) -> tuple[float, ...] | None:
    """Return edges about each whole number of a code book's entry, if there are few."""
    if number is None or number.whole_range is None:
        return None
    # however the entry says that a grid is cut
    low, high = number.whole_range
    if high - low >= MOST_VALUES or high >= 2**52 or low <= -(2**52):
        return None
    return tuple((np.arange(low, high + 2) - 0.5).tolist())


def public_bounds(
    summary: Any,
    task: Task,
    context: PublicContext,
    wanted: dict[Hashable, tuple[str, ...]],
) -> dict[Hashable, tuple[float, float] | None]:
    """Return a pair (low, high) for each column, or None where it needs none."""
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
        known = {n: summary.schema[n].ends for n in needing}
    missing = needing - known.keys()
    given = summary.bounds
    if isinstance(given, dict):
        known |= {name: tuple(map(float, pair)) for name, pair in given.items()}
    elif are_empirical(given):
        # The one place where private rows are read: by that word only, with a warning,
        # and a certificate that says the guarantee is an estimate.
        if missing:
            known |= _by_name(columns, data_bounds(task.X))
    elif given is not None and summary.schema is None:
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
    """Return the grid of each number of a code book, as `bins` has them."""
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
            found[name] = _in_units(schema, name, named.get(name, usual))
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
    number: Number | None = None,
) -> tuple[float, ...] | None:
    """Return the edges of a numeric column's bins as a tuple, or None."""
    if column.levels is not None or column.boolean or not _GRID & set(wanted):
        return None
    # edges from public bounds, never from where the data lie
    edges = _edges(bins, column)
    if edges is None:
        count = bins.get(column.name, DEFAULT_BINS) if isinstance(bins, dict) else bins
        edges = np.linspace(*bounds, int(count) + 1)
    edges = np.asarray(edges, dtype=float)
    if "histogram" not in wanted and n_quantile_bins is not None:
        whole = None if number is None else number.whole_edges(n_quantile_bins)
        edges = _refined(edges, n_quantile_bins) if whole is None else whole
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
