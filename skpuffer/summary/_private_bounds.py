"""Private bounds of columns: where counts of a wide public grid are not noise alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._intervals import interval_width
from skpuffer._template._reading import validate_features, without_secret
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    scenario_error,
    value_error,
)
from skpuffer.kernel.numbers import check_finite, check_positive, check_probability
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.utils._bounds import Bounds, check_bounds
from skpuffer.utils._reading import is_frame, read_table, to_pandas
from skpuffer.utils._sklearn import Interval

from ._cells import Bins
from ._found_bounds import fit_within, plan_within
from ._gaps import Stacked
from ._mean import marks_of, without_marks
from ._scaler import ColumnwiseMixin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import BoundsLike, RandomState, Table

# Larger than any number one comes across, and of a size that can be squared.
_WIDE = 2.0**40

# How likely noise takes a bound one cell too far, next to cells that hold records: it
# costs a factor of two.
_ONE_CELL = 0.05


class PrivateBounds(ColumnwiseMixin, PrivateEstimatorMixin):
    """Find bounds of features whose public bounds are far too wide.

    It counts the records between powers of two, with noise, and takes the smallest and
    the largest cell whose count is more than noise.
    ``PrivateMean(bounds=PrivateBounds())`` releases bounds and means within them under
    one certificate, as does any estimator with that parameter. As a first step of a
    :class:`~skpuffer.compose.PrivatePipeline` it maps the columns to [-1, 1].

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise; or, as the
        `bounds` of another estimator, a part of that one's budget by expected error.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public range, as wide as can be. Values outside are counted in the outermost
        cells. None takes the range the scenario declares, else (-2**40, 2**40).
    grid : array-like of shape (n_edges,), default=None
        Public increasing edges of the cells, instead of `bounds`. None is zero, the
        ends of the range and the powers of two between, from `resolution` on.
    resolution : float, default=2**-20
        Smallest positive edge.
    coverage : float, default=1.0
        Share of the counted records that the bounds hold, in (0, 1]. Half of the rest
        may lie beyond either bound. One takes all cells that are not noise.
    false_positive : float, default=1e-4
        Probability, in (0, 1), that noise alone sets a bound of any feature, which may
        then be far too wide.
    scale : bool, default=True
        Whether `transform` maps the bounds to [-1, 1] after it has clipped to them.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. Bounds are found of its numbers.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (n_features,)
        All lows and all highs, edges of the grid. A feature of which no count is more
        than noise has its whole public range; a column that is no number has NaN.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to all counts.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read; with a `schema`. Levels keep their
        bounds (0, 1). `transform` also returns the marks of missing numbers.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    Two thresholds follow from the noise alone. An empty cell of any feature exceeds the
    first with probability `false_positive`. From the cells that clear it the bounds
    grow outwards while the next count clears a second one, which noise exceeds with
    probability 0.05. A few records far from all others are not found, and are clipped.
    A computation with the bounds on the same records is a second release.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.compose import PrivatePipeline
    >>> from skpuffer.summary import PrivateBounds, PrivateMean
    >>> X = np.random.default_rng(0).exponential(1000, size=(100_000, 1))
    >>> PrivateBounds().fit(X).bounds_
    (array([0.]), array([16384.]))
    >>> model = PrivatePipeline(
    ...     [("bounds", PrivateBounds()), ("mean", PrivateMean(bounds=(-1, 1)))],
    ...     accountant=PrivacyLoss(epsilon=1.0, delta=1e-5),
    ... ).fit(X)
    >>> (mean,) = model["bounds"].inverse_transform([model["mean"].mean_])
    >>> bool(abs(mean[0] - X.mean()) < 5)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, None],
        "grid": ["array-like", None],
        "resolution": [Interval(Real, 0, None, closed="neither")],
        "coverage": [Interval(Real, 0, 1, closed="right")],
        "false_positive": [Interval(Real, 0, 1, closed="neither")],
        "scale": ["boolean"],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        grid: ArrayLike | None = None,
        resolution: float = 2.0**-20,
        coverage: float = 1.0,
        false_positive: float = 1e-4,
        scale: bool = True,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.grid = grid
        self.resolution = resolution
        self.coverage = coverage
        self.false_positive = false_positive
        self.scale = scale
        self.schema = schema
        self.random_state = random_state

    # its own bounds are public
    _finder = None

    #: Of another estimator, whose parameter `bounds` this is.
    _fit_within, _plan_within = fit_within, plan_within

    # what is released is counts, and nothing divides by the number of records
    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        check_bounds(self.bounds)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_grid_counts")
        check_positive(resolution=self.resolution)
        check_probability(false_positive=self.false_positive)
        if self.coverage != 1:
            check_probability(coverage=self.coverage)
        if self.grid is not None:
            grid = check_finite(grid=self.grid)
            if grid.ndim != 1 or grid.size < 3 or not np.all(np.diff(grid) > 0):
                raise value_error("summary.bounds_grid_invalid", grid=self.grid)

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context
        bounds = self._public_bounds(task)
        if self.schema is None and (bounds is None or self.grid is not None):
            grid = (-_WIDE, _WIDE) if self.grid is None else np.asarray(self.grid)
            bounds = Bounds(
                *((float(grid[at]),) * context.n_features for at in (0, -1))
            )
        assert bounds is not None  # those of a code book are
        marks = marks_of(context)
        others = task.reading or ()
        numbers = [at for at in range(context.n_features) if at not in others]
        if self.schema is not None:
            numbers = _number_positions(context.feature_map.schema)
        cells = _Cells(
            tuple(
                Bins(at, self._edges(bounds.low[at], bounds.high[at]), marks.get(at))
                for at in numbers
            )
        )
        if not cells.blocks:
            raise value_error("summary.bounds_of_no_number")
        return QueryRelease(
            contribution=cells,
            is_sum=True,
            is_integer=True,
            sensitivity=cells.sensitivity,
            n_records=context.n_records,
            dim=cells.dim,
            name="counts by magnitude",
            context=replace(context, bounds=bounds),
            assumptions=(Statement("assume.values_clipped_to_grid"),),
        )

    def _edges(self, low: float, high: float) -> tuple[float, ...]:
        """Public edges of the cells of one feature, from its range."""
        if self.grid is None:
            least = math.ceil(math.log2(self.resolution))
            most = math.ceil(math.log2(max(abs(low), abs(high))))
            powers = 2.0 ** np.arange(least, most + 1)
            grid = np.concatenate([-powers[::-1], [0.0], powers])
        else:
            grid = np.asarray(self.grid, dtype=float)
        inside = grid[(low < grid) & (grid < high)]
        return (low, *inside.tolist(), high)

    def _publish(self, value: Any, release: Any) -> None:
        bounds, blocks = release.context.bounds, release.contribution.blocks
        low, high = np.array(bounds.low), np.array(bounds.high)
        if self.schema is None:
            numbers = [block.position for block in blocks]
            others = sorted({*range(len(low))} - {*numbers})
            low[others] = high[others] = math.nan
        core = upper_quantile(self.noise_, self.false_positive / value.size)
        next_to = upper_quantile(self.noise_, _ONE_CELL)
        widths = np.broadcast_to(self.noise_.std(value.size), value.shape)
        ends = np.cumsum([block.dim for block in blocks])[:-1]
        for block, counts, width in zip(
            blocks, np.split(value, ends), np.split(widths, ends), strict=True
        ):
            found = occupied(counts, core * width, next_to * width, self.coverage)
            if found is not None:
                low[block.position] = block.edges[found[0]]
                high[block.position] = block.edges[found[1] + 1]
        self._ranges = low, high
        kept = without_marks(release.context)
        self.bounds_ = low[kept], high[kept]

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        # by the types of columns, which are public
        others = () if self.schema is not None else _other_columns(X)
        X, y, _ = validate_features(self, _numbers_of(X, others), y)
        return X, y, others

    def _read(self, X: Table) -> Floats:
        check_is_fitted(self)
        if self._others:
            X = _numbers_of(without_secret(self, X), self._others)
        return super()._read(X)

    @property
    def _others(self) -> list[int]:
        """Positions of columns of a data frame that are no numbers."""
        return np.flatnonzero(np.isnan(self._ranges[0])).tolist()

    @property
    def _pairs(self) -> dict[Any, tuple[float, float]]:
        """Bounds of each number, by name or else by position."""
        low, high = self._ranges
        names = getattr(self, "feature_names_in_", range(len(low)))
        if self.schema is not None:
            names = self.feature_map_.names
        pairs = zip(names, low.tolist(), high.tolist(), strict=True)
        return {name: (a, b) for name, a, b in pairs if a < b}

    # -- post-processing ----------------------------------------------------------

    def to_schema(self) -> Schema:
        """Return the schema with the bounds that were found.

        Without a `schema`, one of numbers that are never missing.

        Returns
        -------
        Schema
        """
        check_is_fitted(self)
        low, high = self._ranges
        if self.schema is None:
            found = self._pairs.items()
            return Schema({name: Number(*of, missing=False) for name, of in found})
        columns = {name: self.schema[name] for name in self.schema.names}
        numbers = [n for n, one in columns.items() if not isinstance(one, Category)]
        for name, at in zip(numbers, _number_positions(self.schema), strict=True):
            # bounds of dates are dates, and stay
            if type(number := columns[name]) is Number:
                columns[name] = _narrowed(number, float(low[at]), float(high[at]))
        target = self.schema.target
        if target is not None:
            columns[target] = self.schema[target]
        return Schema(columns, target=target, size=self.schema.size)

    def transform(self, X: Table) -> Any:
        """Clip to the bounds, and map these to [-1, 1] unless `scale` is false.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is dropped.

        Returns
        -------
        {ndarray, DataFrame} of shape (n_records, n_features)
            A data frame if some of its columns are no numbers, which stay as they are.
        """
        rows = self._read(X)
        low, high = self._ranges
        mapped = (
            Bounds(tuple(low), tuple(high)).normalise(rows)
            if self.scale
            else np.clip(rows, low, high)
        )
        if not self._others:
            return mapped
        table = to_pandas(read_table(without_secret(self, X))).copy()
        for at in {*range(table.shape[1])} - {*self._others}:
            table.isetitem(at, mapped[:, at])
        return table

    def inverse_transform(self, X: Table) -> Floats:
        """Map [-1, 1] back to the bounds, unless `scale` is false.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)

        Returns
        -------
        ndarray of shape (n_records, n_features)
        """
        check_is_fitted(self)
        low, high = self._ranges
        rows = self._read_mapped(X, len(low))
        if self.scale:
            bounds = Bounds(tuple(low), tuple(high))
            rows = bounds.middle + bounds.half * rows
        return rows


@dataclass(frozen=True)
class _Cells(Stacked):
    """Counts of which the outermost that are not noise are looked for."""

    # whether one is found depends on the noise of one count, not of all together
    error_dim = 1


def _other_columns(X: Any) -> tuple[int, ...]:
    """Positions of columns of a data frame that are no numbers, by their types."""
    table = read_table(X)
    if not is_frame(table):
        return ()
    types = to_pandas(table).dtypes
    return tuple(
        at
        for at, kind in enumerate(types)
        if not is_numeric_dtype(kind) or is_bool_dtype(kind)
    )


def _numbers_of(X: Any, others: Sequence[int]) -> Any:
    """Return a table with zeros in the place of columns that are no numbers."""
    if not others:
        return X
    table = to_pandas(read_table(X)).copy(deep=False)
    for at in others:
        table.isetitem(at, np.zeros(len(table)))
    return table


def _number_positions(schema: Any) -> list[int]:
    """Positions of numbers among the columns that a code book makes."""
    found, at = [], 0
    for name in schema.names:
        column = schema[name]
        if isinstance(column, Category):
            at += len(column.levels) + column.has_gaps
            continue
        found.append(at)
        at += 1 + column.has_gaps
    return found


def _narrowed(number: Number, low: float, high: float) -> Number:
    """A number of a code book with bounds that were found within its own."""
    fill = number.fill if number.fill is None else min(max(number.fill, low), high)
    bins = number.bins if number.bins is None or np.ndim(number.bins) == 0 else None
    return replace(number, low=low, high=high, fill=fill, bins=bins)


def upper_quantile(noise: Noise, probability: float) -> float:
    """Deviations that a count's noise exceeds with at most this probability.

    By the quantiles of the family, else by Cantelli's inequality.
    """
    if probability < 0.5:
        try:
            return interval_width(noise, 1 - 2 * probability)
        except UnsupportedError:
            pass
    return math.sqrt(1 / probability - 1)


def occupied(
    counts: Floats, core: Floats, next_to: Floats, coverage: float
) -> tuple[int, int] | None:
    """Return the first and the last cell that hold records, or None, from noisy counts.

    `core` and `next_to` are thresholds for a count anywhere, and beside cells that hold
    records.
    """
    # as a test: what is no number exceeds nothing
    (cells,) = np.nonzero(counts > core)
    if not cells.size:
        return None
    first, last = int(cells[0]), int(cells[-1])
    while first > 0 and counts[first - 1] > next_to[first - 1]:
        first -= 1
    while last < len(counts) - 1 and counts[last + 1] > next_to[last + 1]:
        last += 1
    held = np.maximum(counts[first : last + 1], 0.0)
    share = np.cumsum(held) / held.sum()
    beyond = (1 - coverage) / 2
    # cells that hold more than what may lie beyond, from either end
    kept = np.flatnonzero((share > beyond) & (share - held / held.sum() < 1 - beyond))
    return first + int(kept[0]), first + int(kept[-1])
