"""Statistics of a mixed table, many in one release."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer._template._intervals import interval_width
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import (
    Statement,
    scenario_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_option, check_probability
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import LawsScenario, MarkovChainScenario
from skpuffer.schema import Number
from skpuffer.schema._binning import are_whole
from skpuffer.schema._dates import date_part
from skpuffer.utils._bounds import BOUNDS_LEAK, are_empirical
from skpuffer.utils._reading import is_frame, read_numbers, read_table, row_count
from skpuffer.utils._sklearn import Interval, StrOptions

from ._keys import by_key, fit_by_keys, named_groups, unlisted
from ._layout import (
    ADDITIVE,
    CATEGORICAL,
    ColumnRequest,
    SummaryContext,
    SummaryLayout,
    as_list,
    check_summary,
    has_edges,
    public_bounds,
    public_grid,
    quantile_bins,
    requested,
    schema_grids,
    whole_values,
)
from ._mean import check_independent, divisor_of, relation_of
from ._schema import (
    Column,
    SchemaEncoder,
    TableEncoder,
    check_levels,
    column_kinds,
    lazy_kinds,
)
from ._weighted import weighted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


class PrivateSummary(PrivateEstimatorMixin):
    """Release counts, means, spreads, rates, quantiles and histograms of a mixed table.

    All statistics of all columns and groups are one release with one calibration.
    Groups are disjoint, so they cost what one costs (parallel composition).

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    statistics : list of str, or dict of {column: list of str}, \
            default=('count', 'mean', 'std')
        A list is for all columns, and each takes what it can have. Categorical columns
        have 'count', 'size', 'rate', 'histogram', 'mode' and 'n_unique'. Numeric ones
        have 'count', 'size', 'mean', 'sum', 'std', 'var', 'rate', 'histogram',
        'quantile', 'median', 'min' and 'max'; whole numbers of a `schema` also 'mode'
        and 'n_unique'. See the notes.
    by : str, int or list of these, default=None
        Columns that span the groups. With public `categories` of each, every
        combination is a row of the result. Otherwise the combinations that enough
        records have are released first. With a `schema` also parts of dates, such as
        'month' or ``'day.month'``. See the notes.
    columns : list, default=None
        Columns to summarise, by name or position (without a secret column). None takes
        all but those of `by`, or the keys of `statistics`.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of numeric columns: numbers, arrays with an entry for each column,
        or a dict. Values outside are clipped. Other columns take the scenario's range;
        boolean ones need none. 'empirical' reads the private data and warns. A
        :class:`PrivateBounds` spends a part of the budget.
    categories : dict of {column: list}, default=None
        Public levels of categorical columns; other keys are ignored. None among them is
        the level of missing and unlisted values. Boolean columns in `by` need none.
    bins : int, array-like or dict of {column: int or array-like}, default=20
        Public grid of histograms and quantiles: a number of bins of equal width, or
        edges, which need no bounds. A `schema` that says how a number is cut goes
        before a number. Without a histogram, quantiles use about 512 bins (4096 from
        50,000 records a group on). Whole numbers of a `schema` are a bin each, if
        fewer.
    quantiles : tuple of float, default=(0.25, 0.5, 0.75)
        Levels of the statistic 'quantile', in (0, 1).
    nonnegative : bool, default=False
        Whether counts are the nearest to the noisy ones that could be those of a table:
        none negative, and sums agree. They are never further from the true counts, all
        together, but biased: small ones tend to be too large.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, instead
        of `bounds` and `categories`. A missing number is left out, unless its column
        has a `fill`; a missing level is the level None. The target is a column too if
        named.
    clip : bool, default=False
        Whether counts, rates and means are clipped to their ranges: closer to the exact
        ones, but biased.
    key_share : float, default=0.25
        Share of epsilon and of delta, in (0, 1), for finding the groups where
        `categories` do not list them.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest. Statistics are then
        those of weighted records, and counts are sums of weights.
    weight : {'row', 'unit'}, default='row'
        Whether each row counts once, or each unit with the mean of what its rows add
        (for ``RecordScenario(max_rows=)``), with the noise of as many records as units.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    result_ : pandas.DataFrame
        The statistics. Without `by`: statistics as rows, columns as columns, NaN where
        not asked. With `by`: groups as rows, pairs (column, statistic) as columns, and
        the divisors of means and rates as ``('records', 'count')``. Statistics of dates
        are timestamps, those of times and all 'std' of both are lengths of time.
    result_std_ : pandas.DataFrame
        Standard deviation of the noise of `result_`, without quantiles and modes; of
        spreads and ratios to the first order (delta method), and of counts before
        `nonnegative`.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the stacked moments and counts.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : callable
        Public map from raw columns to numbers and codes; with a `schema`.
    n_features_in_ : int
        Number of columns of the table, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if all are strings.

    See Also
    --------
    PrivateMean : Means of numeric features.
    PrivateQuantile : Quantiles without a grid, whose error falls with the budget.

    Notes
    -----
    *The release* are sums over records, divided by the public number of records: of
    each bounded column mapped to u in [-1, 1] (means), of u and u^2 - 1/2 (spreads), of
    indicators as plus or minus one (rates of numeric columns), and of ones by bin or
    level (the rest). Each coordinate gets the same noise in these units. 'mean' and
    'sum' come for free with 'std', and quantiles with a histogram.

    *Statistics.* 'size' is the number of records, 'count' of those with a value. The
    rate of a numeric column is the share of positive values. 'min' and 'max' are the
    quantiles at 0.01 and 0.99. Dates and times have no 'sum', 'var' and 'rate'; boolean
    columns no quantiles and extremes. Up to 4096 whole numbers have a 'mode'.

    *Levels.* 'mode' and 'n_unique' are read off noisy counts of each level, the level
    None apart. A level counts as met where its count is above a half and above
    ``max(2, log(10 k) / sqrt(2))`` standard deviations of the noise, with k levels.
    With a chance of 5 % at most any level that nobody has is counted (Laplace and
    Gaussian noise), and n_unique tends to be too small. Without a level met the mode is
    missing.

    *Quantiles* without a histogram are read off a fine grid, as in :class:`PrivateCDF`.
    Other statistics have no more noise for it.

    *Counts.* Without `by` the number of records is public by assumption, and 'size' has
    no noise. With ``size='private'`` in the scenario or the schema it is released with
    noise. Counts of groups and bins are neither rounded nor clipped, and unbiased, but
    for `nonnegative` and `clip`. Means, deviations and rates of a group divide by its
    noisy size, and are NaN where that is below one or below twice the deviation of its
    noise.

    *Parts of dates.* Years, quarters, months and days are those between the public
    bounds of the column. A date outside is in the nearest one, a missing one in the
    level None or at the `fill`; in no group where the column declares that none is
    missing. Dates themselves are summarised only where `columns` or `statistics` name
    them.

    *Groups that nobody listed* are released with a probability that grows with their
    number of records: at the defaults hardly ever below 30 records, and nearly always
    from 60 on. This is two releases under one certificate. It takes a
    :class:`~skpuffer.scenarios.RecordScenario` with ``k=1`` and an accountant with a
    delta. Under ``relation='replace'`` a record moves two groups, and each costs half
    as much. `max_rows` groups of each unit are counted, each once.

    *Missing values.* The level None is a group and a bin of a histogram, but 'count'
    and rates leave it out. Without that level such records are in no group of the
    column, but in the number that rates divide by. Statistics of numbers that a
    `schema` says may be missing are of the values that are there, as in SQL and pandas:
    they divide by a noisy number, and are NaN where that is mostly noise. Without a
    `schema` missing numbers are refused; the refusal depends on the data and is not
    covered by the promise.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam (2022), Differentially private partition
    selection.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.summary import PrivateSummary
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(
    ...     {
    ...         "age": rng.integers(18, 81, size=100_000),
    ...         "smoker": rng.choice(["no", "yes"], p=[0.8, 0.2], size=100_000),
    ...     }
    ... )
    >>> summary = PrivateSummary(
    ...     statistics=["mean", "std"],
    ...     by="smoker",
    ...     bounds={"age": (18, 80)},
    ...     categories={"smoker": ["no", "yes"]},
    ... ).fit(table)
    >>> summary.result_["age"].round(0)
    statistic  mean   std
    smoker
    no         49.0  18.0
    yes        49.0  18.0

    A monthly series of hourly loads:

    >>> from skpuffer.schema import Date, Number, Schema
    >>> hours = pd.date_range("2024-01-01", "2024-03-31 23:00", freq="h")
    >>> loads = pd.DataFrame({"at": hours, "load": rng.normal(40, 5, len(hours))})
    >>> book = Schema(
    ...     {
    ...         "at": Date("2024-01-01", "2024-03-31", unit="hour", missing=False),
    ...         "load": Number(0, 80, missing=False),
    ...     }
    ... )
    >>> by_month = PrivateSummary(statistics=["mean"], by="month", schema=book)
    >>> by_month.fit(loads).result_["load", "mean"].round(-1)
    month
    2024-01    40.0
    2024-02    40.0
    2024-03    40.0
    Freq: M, Name: (load, mean), dtype: float64
    """

    _parameter_constraints: dict = {
        **PrivateEstimatorMixin._parameter_constraints,
        "statistics": ["array-like", dict, str],
        "by": ["array-like", str, Integral, None],
        "columns": ["array-like", str, Integral, None],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "categories": [dict, None],
        "bins": ["array-like", dict, Integral],
        "quantiles": ["array-like", Real],
        "nonnegative": ["boolean"],
        "clip": ["boolean"],
        "key_share": [Interval(Real, 0, 1, closed="neither")],
        "weight": [StrOptions({"row", "unit"})],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        statistics: Sequence[str] | Mapping[Hashable, Sequence[str]] = (
            "count",
            "mean",
            "std",
        ),
        by: Hashable | Sequence[Hashable] = None,
        columns: Sequence[Hashable] | None = None,
        bounds: BoundsLike = None,
        categories: Mapping[Hashable, Sequence[Hashable]] | None = None,
        bins: int | ArrayLike | Mapping[Hashable, int | ArrayLike] = 20,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
        nonnegative: bool = False,
        schema: Schema | None = None,
        clip: bool = False,
        key_share: float = 0.25,
        weight_bounds: tuple[float, float] | None = None,
        weight: str = "row",
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.statistics = statistics
        self.by = by
        self.columns = columns
        self.bounds = bounds
        self.categories = categories
        self.bins = bins
        self.quantiles = quantiles
        self.nonnegative = nonnegative
        self.schema = schema
        self.clip = clip
        self.key_share = key_share
        self.weight_bounds = weight_bounds
        self.weight = weight
        self.random_state = random_state

    fit = WeightedFit()

    _takes_any_size = True

    def _fit_steps(
        self, X, y, secret, groups, feature_map, approve, given, weights=None
    ):
        if not unlisted(self, X):
            super()._fit_steps(
                X, y, secret, groups, feature_map, approve, given, weights
            )
            return
        if feature_map is not None or approve is not None:
            raise unsupported_error("summary.keys_need_whole_fit")
        # keys are counted by rows, or by units with one of each
        if self.weight_bounds is not None or self.weight == "unit":
            raise unsupported_error("weights.groups_unlisted")
        opening = self._opening(y)
        fit_by_keys(self, opening, X, y, secret, groups)

    def _bounded_columns(self, table):
        """Return the columns of a data frame whose bounds matter; see `_finder`."""
        asked = self.statistics if isinstance(self.statistics, dict) else None
        named = self.columns if asked is None else asked
        names = table.columns if named is None else as_list(named)
        left_out = {*as_list(self.by), *(self.categories or {})}
        return [name for name in names if name not in left_out]

    # -- checks: from the parameters and the table's dtypes, never its rows --------

    def _check_parameters(self, scenario):
        check_summary(self)
        # A scenario of explicit distributions states those of one vector. It cannot
        # know that of moments and counts stacked in an order the parameters decide.
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_stacked_moments")
        named = [*as_list(self.by), *as_list(self.columns)]
        if isinstance(self.statistics, dict):
            named += list(self.statistics)
        # positions count without the secret column, so only names can name it
        if self.schema is not None:
            self._check_named(named)
            parts = self._parts(self.schema)
            if isinstance(scenario, MarkovChainScenario):
                dates = [p.name for p in parts if p.name != scenario.times]
                if dates:
                    raise scenario_error("summary.dates_are_no_states", names=dates)
            named += [part.name for part in parts]
        named = tuple(name for name in named if isinstance(name, str))
        for position in scenario.left_out(named, len(named)) if named else ():
            raise _secret(named[position])

    def _check_named(self, named):
        """Refuse columns that the code book lacks, and groups by numbers."""
        schema = self.schema
        known = [*schema.names, *([] if schema.target is None else [schema.target])]
        bins = list(self.bins) if isinstance(self.bins, dict) else []
        asked = list(self.statistics) if isinstance(self.statistics, dict) else []
        by = as_list(self.by)
        # keys of other columns in `by` are released
        for parameter, names in {
            "columns": as_list(self.columns),
            "statistics": asked,
            "bins": bins,
        }.items():
            unknown = [name for name in names if name not in known]
            if unknown:
                raise value_error(
                    "summary.columns_not_in_schema",
                    parameter=parameter,
                    unknown=unknown,
                    known=known,
                )
        for name in by:
            if name in known and isinstance(schema[name], Number):
                raise value_error("summary.by_is_number", name=name)

    def _parts(self, schema):
        """Columns of levels that the groups make of dates."""
        found = [date_part(schema, name) for name in as_list(self.by)]
        return tuple(part for part in found if part is not None)

    def _read_by(self, schema):
        parts = self._parts(schema)
        named = [*as_list(self.by), *as_list(self.columns), *(p.name for p in parts)]
        if isinstance(self.statistics, dict):
            named += list(self.statistics)
        elif self.columns is None:
            named += schema.names
        # the target is a column like the others, where it is named
        table = schema.with_target(None)
        for name in as_list(self.by):
            if name not in table.names and date_part(schema, name) is None:
                raise value_error("summary.by_levels_not_public", name=name)
        kept = table.select([n for n in table.names if n in named])
        return SchemaEncoder(kept, parts)

    def _reads_missing(self) -> bool:
        return self.schema is not None or bool(self.categories)

    def _refuses_missing(self) -> bool:
        # numbers are refused, whatever is a level of others
        return True

    def _reads_units(self):
        return self.weight == "unit"

    def _leaks(self):
        return (BOUNDS_LEAK,) if are_empirical(self.bounds) else ()

    def _validate(self, X, y):
        """Check the table, and encode the columns that are read."""
        if self.schema is not None:
            # encoded already, by the code book
            return validate_data(self, X), None, None
        # Columns of a frame keep their own types, each read by its own rule below;
        # scikit-learn would make one array of objects of them all.
        X = read_table(X)
        if is_frame(X):
            validate_data(self, X, skip_check_array=True)
            if row_count(X) == 0:
                raise value_error("summary.table_empty")
        else:
            if not self.categories:
                X = read_numbers(X)
            # numbers are checked by column: those that are not read may be missing
            X = validate_data(self, X, dtype=None, ensure_all_finite=False)
        # public: names, positions and levels as the parameters give them
        encoder = self._make_encoder(column_kinds(X))
        return encoder(X), None, encoder

    def _lazy_columns(self, table, y, encoder):
        """Return the columns of a lazy data frame as they are read, and their names."""
        if y is not None:
            raise value_error("summary.summary_target_given")
        if encoder is not None:
            return encoder.lazy_columns(table), encoder, encoder.schema.names
        encoder = self._make_encoder(lazy_kinds(table))
        return encoder.lazy_columns(table), encoder, table.names

    def _make_encoder(self, kinds):
        """Encoder of the columns that are read, from names and dtypes alone."""
        names = list(kinds)
        by = as_list(self.by)
        columns = as_list(self.columns)
        if self.columns is None:
            listed = self.statistics if isinstance(self.statistics, dict) else names
            columns = [name for name in listed if name not in by]
        # bounds and categories may be a code book that speaks of more columns
        for parameter in ("statistics", "bins"):
            value = getattr(self, parameter)
            if isinstance(value, dict):
                self._require(names, **{parameter: list(value)})
        self._require(names, by=by, columns=columns)
        given = self.categories or {}
        found = []
        for position, name in enumerate(names):
            if name not in by and name not in columns:
                continue
            levels = check_levels(name, given[name]) if name in given else None
            boolean = kinds[name] == "boolean"
            # Which levels occur is itself private: groups that appear only if somebody
            # is in them would tell of that one record, so the list must be given.
            if name in by and levels is None:
                if not boolean:
                    raise value_error("summary.by_levels_not_public", name=name)
                levels = (False, True)
            if levels is None and kinds[name] == "other":
                raise value_error("summary.column_not_numeric", name=name)
            found.append(Column(name, position, levels, boolean))
        return TableEncoder(tuple(found), len(names))

    def _require(self, names, **named):
        """Refuse columns that are not there."""
        for parameter, wanted in named.items():
            for name in wanted:
                if name in names:
                    continue
                if parameter in ("by", "columns", "statistics"):
                    if _is_secret(self.scenario, name):
                        raise _secret(name)
                elif _is_secret(self.scenario, name):
                    continue  # public facts of the whole table, the secret included
                raise value_error(
                    "summary.column_not_in_data",
                    parameter=parameter,
                    name=name,
                    names=names,
                )

    # -- the release --------------------------------------------------------------

    def _release(self, task):
        if self.schema is not None:
            task = replace(task, reading=task.context.feature_map)
        encoder = task.reading
        context = _narrowed(task, encoder)
        layout = self._make_layout(task, context, encoder)
        # Without groups 'count' is the public number of records: a release of no
        # coordinates, for which nobody should be told a budget was spent.
        if not layout.blocks:
            raise value_error("summary.nothing_private_asked")
        n = divisor_of(context)
        contribution = layout.contribution
        # Counts alone are released as the whole numbers they are, so that discrete
        # Laplace noise may be used. Sums with moments among them are divided by the
        # number of records, where that is public.
        counts = contribution.is_count
        factor = _factor(layout, n)
        facts = {f.name: getattr(context, f.name) for f in fields(PublicContext)}
        # Noise in proportion to the units gives each coordinate the same share of the
        # budget, whatever its range; counts are all in one unit already.
        units = None if counts else contribution.units
        return QueryRelease(
            contribution=contribution,
            is_sum=True,
            factor=factor,
            is_integer=counts,
            units=units,
            sensitivity=contribution.sensitivity.times(factor),
            n_records=context.n_records,
            dim=contribution.dim,
            name="counts" if counts else "summary",
            context=SummaryContext(**facts, layout=layout),
            assumptions=(Statement("assume.values_clipped_levels_public"),),
        )

    def _make_layout(self, task, context, encoder):
        """Layout of the release: what is asked of which column, and its bounds."""
        columns = encoder.columns
        by = as_list(self.by)
        # a date that makes the groups is much the same in each
        spent = [*by, *(part.name for part in getattr(encoder, "parts", ()))]
        if isinstance(self.statistics, dict):
            spent = by
        order = as_list(self.columns) or [
            c.name for c in columns if c.name not in spent
        ]
        wanted = {
            column.name: requested(self.statistics, column)
            for column in columns
            if column.name in order
        }
        bounds = public_bounds(
            self,
            task,
            context,
            {c.name: wanted.get(c.name, ()) for c in columns},
        )
        # A list of statistics is passed over where a column cannot have one; a column
        # that is left with none was asked for by mistake, unless nobody named it.
        left_out = [name for name in order if not wanted[name]]
        if left_out and (self.columns is not None or len(left_out) == len(order)):
            raise value_error(
                "summary.columns_statistics_inapplicable",
                left_out=left_out,
                categorical=list(CATEGORICAL),
            )
        grids = self.bins
        if self.schema is not None:
            grids = schema_grids(self.bins, encoder.schema)
        requests = {}
        # of groups, as if all had as many records: how many they have is private
        n_cells = math.prod(len(c.levels) for c in columns if c.name in by)
        n_bins = quantile_bins(divisor_of(context) / n_cells)
        for position, column in enumerate(columns):
            if not wanted.get(column.name):
                continue
            pair = bounds[column.name]
            number = column.number
            edges = public_grid(
                grids,
                column,
                wanted[column.name],
                pair,
                None if has_edges(self.bins, column) else n_bins,
                number,
            )
            values = None
            if {"mode", "n_unique"} & set(wanted[column.name]):
                values = whole_values(number)
                # one grid for all, unless another was asked for
                if values is not None and "histogram" not in wanted[column.name]:
                    edges = values
            requests[column.name] = ColumnRequest(
                name=column.name,
                position=position,
                statistics=wanted[column.name],
                levels=column.levels,
                bounds=pair,
                edges=edges,
                boolean=column.boolean and column.levels is None,
                mark=column.mark,
                whole=edges is not None and are_whole(number, np.asarray(edges)),
                values=values,
                number=number,
            )
        places = {column.name: i for i, column in enumerate(columns)}
        return SummaryLayout(
            columns=tuple(requests[name] for name in order if name in requests),
            by=tuple(replace(columns[places[n]], position=places[n]) for n in by),
            quantiles=tuple(np.atleast_1d(self.quantiles).astype(float).tolist()),
            unit_order=task.accountant.unit_order,
            unit_orders=task.accountant.unit_orders,
            relation=relation_of(task.scenario),
            nonnegative=self.nonnegative,
            clip=self.clip,
            weigh=None
            if task.weighting is None
            else partial(
                weighted,
                weighting=task.weighting,
                relation=relation_of(task.scenario),
                norm=task.accountant.unit_order,
            ),
            most_records=context.n_records if context.size == "private" else None,
        )

    def _publish(self, value, release):
        # post-processing of the noisy vector and public scales only
        layout, noise = release.context.layout, self.noise_.std(value.size)
        found = _read(value, noise, release)
        self.result_ = layout.frame(found)
        # of which errors are read when they are asked for
        self._held = (layout, found, _in_means(value, noise, release))

    #: Groups that were released, where nobody listed them.
    _keys = None

    _affine_attributes = ("result_",)

    def _linear_parts(self, vector, release):
        return {"result_": release.context.layout.frame(_apart(vector, release))}

    def _deviations(self, noise, release, value=None):
        if value is None:
            return self._foreseen(noise, release, None)
        return self._deviations_at(noise, release, value, lambda *key: True)

    def _foreseen(self, noise, release, n_records):
        layout = release.context.layout
        if n_records is None or layout.weigh is not None:
            # of these, what was released does not matter
            known = layout.is_known_beforehand
            return self._deviations_at(noise, release, np.ones(release.dim), known)
        value = n_records * release.factor * layout.made_up_means()
        return self._deviations_at(noise, release, value, layout.is_foreseen)

    def _deviations_at(self, noise, release, value, is_shown):
        """Deviations of some statistics, as if so much had been released."""
        widths, layout = noise.std(release.dim), release.context.layout
        # some families have no variance
        if not np.isfinite(widths).all():
            return {}
        held = _in_means(value, widths, release)
        found = {
            key: errors.std_error("table")
            for key, errors in layout.errors(*held, quantiles=False).items()
            if is_shown(*key)
        }
        exact = replace(layout, nonnegative=False)
        shown = {key: found[key] for key in exact.read(*held) if key in found}
        return {"result_": layout.frame(shown, spread=True)}

    # -- errors: post-processing --------------------------------------------------

    def confidence_interval(
        self, level: float = 0.95, *, of: str = "population"
    ) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
        """Return intervals around the statistics; it costs no budget.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each entry by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            Whether an interval is for the population of independent records, or for
            this very table without noise.

        Returns
        -------
        dict of {str: (low, high)}
            Two tables as `result_`, without 'mode' and 'n_unique'; the widest interval
            where nothing is known.

        Raises
        ------
        UnsupportedError
            If records have weights, are rows of units or depend on each other
            ('population'); or if quantiles of the noise are not known.
        """
        check_is_fitted(self)
        found = self._errors(level, of)
        low, high = (
            self._shown(self._held[0].frame(found[end])) for end in ("low", "high")
        )
        return {"result_": (low, high)}

    def _errors(self, level, of):
        """Ends of intervals, standard errors, and what is wide, by column and label."""
        check_option(("population", "table"), of=of)
        level = check_probability(level=level)
        if of == "population":
            check_independent(self)
        width = interval_width(self.noise_, level)
        layout, read, held = self._held
        errors = layout.errors(*held)
        found = {name: {} for name in ("estimate", "std_error", "low", "high", "wide")}
        for key, values in read.items():
            if key not in errors:
                continue
            low, high = errors[key].interval(level, of, width)
            # around what was released, which may be projected
            found["low"][key] = np.fmin(low, values)
            found["high"][key] = np.fmax(high, values)
            found["estimate"][key] = values
            found["std_error"][key] = errors[key].std_error(of)
            found["wide"][key] = errors[key].wide(of)
        return found

    def to_frame(self, level: float = 0.95, *, of: str = "population") -> pd.DataFrame:
        """Return the statistics as a tidy table, a number a row, with errors.

        Parameters
        ----------
        level, of : float and str
            As in :meth:`confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            With the columns of `by`, 'column', 'statistic', 'estimate', 'std_error',
            'low', 'high', 'n' and 'wide'. `n` is the noisy or public number of records,
            else NaN. An interval is wide where a bound stands for a spread that was not
            released or is noise, and of a quantile where the grid is coarse.
        """
        check_is_fitted(self)
        layout, _, held = self._held
        return self._named(layout.tidy(self._errors(level, of), *held))

    def compare(
        self, against: Hashable, level: float = 0.95, *, of: str = "population"
    ) -> pd.DataFrame:
        """Return how other groups differ from one, as a tidy table; it costs no budget.

        Parameters
        ----------
        against : object
            A group, as in the index of `result_`: a value of `by`, or a tuple of them.
        level : float, default=0.95
            Confidence level of each difference by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            As in :meth:`confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            As of :meth:`to_frame`: 'estimate' is the statistic of a group less that of
            `against`. Statistics that add up over groups, such as counts, are left out.

        Notes
        -----
        Errors of groups are independent, and intervals are made of those of both groups
        (Zou and Donner, 2008). Where the noise of groups is correlated, half widths are
        added up.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from skpuffer.summary import PrivateSummary
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"sex": ["F", "M"] * 5000})
        >>> table["pay"] = 20 + 4 * (table.sex == "M") + rng.normal(size=10_000)
        >>> summary = PrivateSummary(
        ...     by="sex",
        ...     statistics=["mean", "std"],
        ...     bounds={"pay": (0, 50)},
        ...     categories={"sex": ["F", "M"]},
        ... ).fit(table)
        >>> found = summary.compare("F").set_index("statistic").loc["mean"]
        >>> found.sex, bool(found.low < 4 < found.high)
        ('M', True)
        """
        check_is_fitted(self)
        if not as_list(self.by):
            raise value_error("summary.compare_without_groups")
        index = list(self.result_.index)
        if against not in index:
            raise value_error(
                "summary.compare_group_unknown", against=against, groups=index
            )
        at = index.index(against)
        layout, _, held = self._held
        found = self._errors(level, of)
        kinds = "covariance", "factor"
        correlated = any(hasattr(self.noise_, kind) for kind in kinds)
        together = np.add if correlated else np.hypot
        differences = {kind: {} for kind in found}
        for key, values in found["estimate"].items():
            if key[1].partition("[")[0] in ADDITIVE:
                continue
            low, high = found["low"][key], found["high"][key]
            error = found["std_error"][key]
            wide = found["wide"][key]
            apart = values - values[at]
            below = together(values - low, high[at] - values[at])
            above = together(high - values, values[at] - low[at])
            differences["estimate"][key] = apart
            differences["std_error"][key] = together(error, error[at])
            # where nothing is known of a group, all that may be
            farthest = low - high[at], high - low[at]
            nearest = apart - below, apart + above
            for end, known, most in zip(
                ("low", "high"), nearest, farthest, strict=True
            ):
                differences[end][key] = np.where(np.isnan(known), most, known)
            differences["wide"][key] = wide | wide[at]
        frame = self._named(layout.tidy(differences, *held, spread=True))
        rows = np.arange(len(frame)) % len(index) != at
        return frame[rows].reset_index(drop=True)

    def _named(self, frame):
        """A tidy table of groups, by their keys where these were released."""
        if self._keys is None:
            return frame
        return named_groups(
            frame, self._keys, self._held[0].by[0].name, as_list(self.by)
        )

    def _shown(self, table):
        """A table of groups, by their keys where these were released."""
        if self._keys is None:
            return table
        return by_key(table, self._keys, as_list(self.by))

    # -- post-processing ----------------------------------------------------------

    def to_crosstab(
        self,
        statistic: str = "count",
        column: Hashable = None,
        *,
        margins: bool = False,
        deviations: bool = False,
    ) -> pd.DataFrame:
        """Arrange one statistic of the groups as a cross-table.

        Parameters
        ----------
        statistic : str, default='count'
            As in the columns of `result_`.
        column : str or int, default=None
            The column summarised. None is for counts, or where one column has the
            statistic.
        margins : bool, default=False
            Whether sums of rows and columns are added, as 'All': of counts, sizes, sums
            and histograms alone. They agree with the cells, and have the noise of all
            of them.
        deviations : bool, default=False
            Whether the standard deviations of `result_std_` are arranged instead.

        Returns
        -------
        pandas.DataFrame
            The first column of `by` as rows, the others as columns.
        """
        check_is_fitted(self)
        if len(as_list(self.by)) < 2:
            raise value_error("summary.crosstab_needs_two_columns", by=self.by)
        held = self.result_std_ if deviations else self.result_
        found = [
            key
            for key in held.columns
            if key[1] == statistic and column in (None, key[0])
        ]
        if not found or (len(found) > 1 and statistic != "count"):
            known = list(held.columns)
            raise value_error(
                "summary.crosstab_statistic_not_unique",
                statistic=statistic,
                column=column,
                n_found=len(found),
                known=known,
            )
        if margins and statistic.partition("[")[0] not in ADDITIVE:
            raise value_error("summary.margins_do_not_add_up", statistic=statistic)
        values = held[found[0]]
        table = values.unstack(list(values.index.names[1:]))
        # in the order of the categories, which unstacking sorts away
        rows = values.index.get_level_values(0).unique()
        heads = values.index.droplevel(0).unique()
        table = table.reindex(index=rows, columns=heads)
        if not margins:
            return table
        # as `pandas.crosstab` calls them; of more than two columns, at the first
        last = ("All", *[""] * (heads.nlevels - 1)) if heads.nlevels > 1 else "All"
        index = table.index.append(pd.Index(["All"], dtype=object)).set_names(
            table.index.names
        )
        # noise of cells is independent, or its deviations add up at most
        independent = np.ndim(getattr(self.noise_, "covariance", 0.0)) < 2
        power = 2 if deviations and independent else 1
        table = table**power
        table = pd.concat([table, table.sum().to_frame().T]).set_axis(index, axis=0)
        table[last] = table.sum(axis=1)
        return (table ** (1 / power)).rename_axis(columns=heads.names)


def _secret(name: object) -> ValueError:
    return ValueError(Statement("summary.secret_column_summarised", name=name))


def _is_secret(scenario, name):
    return scenario is not None and bool(scenario.left_out((name,), 1))


def _narrowed(task, encoder):
    """Public context, narrowed to the columns that are read and encoded."""
    context = task.context
    if isinstance(encoder, SchemaEncoder):
        return context
    names = context.feature_names
    # A prior in raw columns meets the query by the same encoder, so that both are
    # compared in the same units. Scenarios of numbers, such as Gaussian ones, cannot
    # pass through a map: they are given the columns as they are, where they are.
    as_they_are = context.feature_map is None and encoder.is_identity(
        named=names is not None
    )
    # of a public prior; rows of an empirical one are private
    encoder = replace(encoder, strict=not task.scenario.needs_empirical)
    if context.feature_map is not None:
        encoder = replace(encoder, before=context.feature_map)
    elif names is not None:
        # columns that are not read are no part of the query, so none of the prior
        # either
        names = tuple(column.name for column in encoder.columns)
    return replace(
        context,
        feature_names=names,
        n_features=len(encoder.columns),
        feature_map=None if as_they_are else encoder,
    )


def _read(value, noise, release):
    """Statistics of a released vector whose noise has these deviations."""
    return release.context.layout.read(*_in_means(value, noise, release))


def _apart(vector, release):
    """Statistics of two vectors that are so far apart, less each other.

    Of what is more than one coordinate nothing is said.
    """
    layout = replace(release.context.layout, nonnegative=False, clip=False)
    with np.errstate(all="ignore"):
        moved, origin = (
            _read(each, vector, release) for each in (vector, np.zeros_like(vector))
        )
        return {
            key: moved[key] - origin[key] for key in moved if layout.is_affine(*key)
        }


def _in_means(value, noise, release):
    """Vector of means and the deviations of its noise, and what sums are divided by."""
    layout, n = release.context.layout, divisor_of(release.context)
    # what was released is either counts or means; the layout reads means
    to_mean = 1 / n / _factor(layout, n)
    return to_mean * value, to_mean * noise, n


def _factor(layout, n_records):
    """Factor of the sum of contributions that is released: a mean, unless of counts."""
    return 1.0 if layout.contribution.is_count else 1 / n_records
