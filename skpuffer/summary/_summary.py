"""Statistics of a mixed table, many in one release."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer._template import _plan
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.schema import Number
from skpuffer.utils._bounds import BOUNDS_LEAK, are_empirical
from skpuffer.utils._reading import is_frame, read_numbers, read_table, row_count
from skpuffer.utils._sklearn import StrOptions

from ._layout import (
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
)
from ._schema import (
    Column,
    SchemaEncoder,
    TableEncoder,
    check_levels,
    column_kinds,
    lazy_kinds,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


class PrivateSummary(PrivateEstimatorMixin):
    """Counts, means, spreads, rates, quantiles and histograms of a mixed table.

    Everything asked for is one release: one calibration covers all statistics of all
    columns and groups. Groups are disjoint, so however many there are, they cost what
    one costs (parallel composition).

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    statistics : list of str, or dict of {column: list of str}, \
            default=('count', 'mean', 'std')
        Of 'count', 'mean', 'std', 'var', 'rate', 'quantile', 'median' and 'histogram'.
        A list is for all columns; what it names has to make sense for numeric ones,
        and categorical columns take 'count', 'rate' and 'histogram' of it; boolean
        ones take all but 'quantile' and 'median'. The rate of a numeric or boolean
        column is the share of records where it is positive; of a categorical one, the
        share of each level.
    by : str, int or list of these, default=None
        Columns that span the groups; each needs public `categories`. Every
        combination is a row of the result, whether or not there are such records.
    columns : list, default=None
        Columns to summarise: names, or positions in an array (counted without a secret
        column). None takes all but those of `by`, or the keys of `statistics`.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of numeric columns: numbers, or arrays with an entry for each
        column of the table, all lows before all highs. (Of two columns a list of pairs
        could be either, and is refused.) What lies outside is clipped. Columns without
        one take the range the scenario declares (that of its public prior).
        ``'empirical'`` reads them off the private data, warns, and leaves an estimate
        for a certificate. Boolean columns need none, and keys that are no columns are
        passed over.
    categories : dict of {column: list}, default=None
        Public levels of categorical columns; keys that are no columns of the table are
        passed over, so that a whole code book may be given. None among them is the
        level of missing values and of all that is not listed. Boolean columns in `by`
        need none.
    bins : int, array-like or dict of {column: int or array-like}, default=20
        Public grid of histograms and quantiles: a number of bins of equal width within
        the bounds, or edges, which need no bounds. A `schema` that says how a number is
        cut goes before a number for all, and amounts are cut by their logarithm. For a
        column whose quantiles are asked, but no histogram, the bins are cut into 512
        or nearly as many (4096 from 50,000 records for each group on), unless edges
        were given.
    quantiles : tuple of float, default=(0.25, 0.5, 0.75)
        Levels of the statistic 'quantile', in (0, 1).
    nonnegative : bool, default=False
        Whether counts are the nearest to the noisy ones that could be those of a table:
        none negative, bins and levels of a column summing up to the size of their
        group, and groups to the number of records (or to no more, where a value may
        count as nothing). Together they are never further from the true counts, but
        they are no longer unbiased: small ones tend to be too large.
    schema : Schema, default=None
        Public code book of the table, instead of `bounds` and `categories`: raw columns
        are read by it, texts and gaps among them. A missing value is counted at the
        level that its column has for it, None, or read as the column's `fill`. The
        target is a column like the others where it is named. See
        :class:`~skpuffer.schema.Schema`.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    result_ : pandas.DataFrame
        The statistics, whatever kind of frame was given. Without `by`: statistics as
        rows, columns as columns, NaN where a statistic was not asked. With `by`: groups
        as rows, pairs (column, statistic) as columns; group sizes that means and rates
        divide by come with them, as ``('records', 'count')`` unless 'count' is asked.
    result_std_ : pandas.DataFrame
        Standard deviation that the noise gives `result_`, exactly, without what
        is no affine function of it: spreads, quantiles, and ratios in groups.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to the stacked moments and counts.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : callable
        Public map from raw columns to numbers and codes; only with a `schema`.
    n_features_in_ : int
        Number of columns of the table, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if all are strings.

    See Also
    --------
    PrivateMean : Means of numeric features.
    PrivateQuantile : Quantiles without a grid, whose error falls with the budget.
    PrivateStandardScaler : Means and standard deviations, as a transformer.

    Notes
    -----
    *What is released.* Sums over records, divided by the public number of records: of
    each bounded column mapped to u in [-1, 1] (for means), of u and u^2 - 1/2 (for
    standard deviations and variances), of indicators as plus or minus one (for rates of
    numeric columns), and of ones by bin or level (for the rest). Each coordinate gets
    the same noise in these units, so a column's noise is in proportion to its range.
    Statistics of one column share what they can: 'mean' comes for free with 'std', and
    the median and other quantiles are read off the counts of its histogram, where that
    is asked.

    *Quantiles* without a histogram are read off a fine grid: bins, runs of 8 of them
    and runs of 64 are counted, and the counts that agree best with all of these are
    taken, so that a cumulative count has little more noise than one of few bins. The
    noise of these counts is so much larger that other statistics have no more of it.

    *Counts.* Without `by` the number of records is public by assumption, and the
    statistic 'count' says it without noise. Counts of groups and bins are noisy. They
    are neither rounded nor clipped, and so unbiased, unless `nonnegative` asks for
    more; so are means and rates without `by`, which may fall outside their range where
    the noise is large. Variances are clipped to what is possible.

    *Groups.* Means, deviations and rates of a group divide by its noisy size. They are
    NaN where that is below one, or below twice the standard deviation of its noise.

    *Missing values* of categorical columns, and values that `categories` does not list,
    have the level None where it is listed. Without it they count as nothing: such a
    record is in no group of that column, and in no count of its levels. Those of
    numeric columns are refused, unless a `schema` says how they are read; the refusal
    depends on the data and is not covered by the promise, it is for the eyes of the
    curator.

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
        self.random_state = random_state

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
        named = tuple(name for name in named if isinstance(name, str))
        position = scenario.secret_position(named, len(named)) if named else None
        if position is not None:
            raise _secret(named[position])

    def _check_named(self, named):
        """Refuse columns that the code book lacks, and groups by numbers."""
        schema = self.schema
        known = [*schema.names, *([] if schema.target is None else [schema.target])]
        bins = list(self.bins) if isinstance(self.bins, dict) else []
        asked = list(self.statistics) if isinstance(self.statistics, dict) else []
        by = as_list(self.by)
        parameters = {"by": by, "columns": as_list(self.columns)}
        for parameter, names in {
            **parameters,
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
            if isinstance(schema[name], Number):
                raise value_error("summary.by_is_number", name=name)

    def _read_by(self, schema):
        named = [*as_list(self.by), *as_list(self.columns)]
        if isinstance(self.statistics, dict):
            named += list(self.statistics)
        elif self.columns is None:
            named += schema.names
        # the target is a column like the others, where it is named
        table = schema.with_target(None)
        return SchemaEncoder(table.select([n for n in table.names if n in named]))

    def _reads_missing(self) -> bool:
        return self.schema is not None or bool(self.categories)

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
        layout = self._make_layout(task, context, encoder.columns)
        # Without groups 'count' is the public number of records: a release of no
        # coordinates, for which nobody should be told a budget was spent.
        if not layout.blocks:
            raise value_error("summary.nothing_private_asked")
        n = context.n_records
        contribution = layout.contribution
        # Counts alone are released as the whole numbers they are, so that discrete
        # Laplace noise may be used. Sums with moments among them are divided by the
        # number of records, which is public.
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
            n_records=n,
            dim=contribution.dim,
            name="counts" if counts else "summary",
            context=SummaryContext(**facts, layout=layout),
            assumptions=(Statement("assume.values_clipped_levels_public"),),
        )

    def _make_layout(self, task, context, columns):
        """Layout of the release: what is asked of which column, and its bounds."""
        by = as_list(self.by)
        order = as_list(self.columns) or [c.name for c in columns if c.name not in by]
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
            grids = schema_grids(self.bins, task.context.feature_map.schema)
        requests = {}
        # of groups, as if all had as many records: how many they have is private
        n_cells = math.prod(len(c.levels) for c in columns if c.name in by)
        n_bins = quantile_bins(context.n_records / n_cells)
        for position, column in enumerate(columns):
            if not wanted.get(column.name):
                continue
            pair = bounds[column.name]
            requests[column.name] = ColumnRequest(
                name=column.name,
                position=position,
                statistics=wanted[column.name],
                levels=column.levels,
                bounds=pair,
                edges=public_grid(
                    grids,
                    column,
                    wanted[column.name],
                    pair,
                    None if has_edges(self.bins, column) else n_bins,
                ),
                boolean=column.boolean and column.levels is None,
            )
        places = {column.name: i for i, column in enumerate(columns)}
        return SummaryLayout(
            columns=tuple(requests[name] for name in order if name in requests),
            by=tuple(replace(columns[places[n]], position=places[n]) for n in by),
            quantiles=tuple(np.atleast_1d(self.quantiles).astype(float).tolist()),
            unit_order=task.accountant.unit_order,
            nonnegative=self.nonnegative,
        )

    def _publish(self, value, release):
        # post-processing of the noisy vector and public scales only
        found = _read(value, self.noise_.std(value.size), release)
        self.result_ = release.context.layout.frame(found)

    _affine_attributes = ("result_",)
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector, release):
        # between two vectors that are so far apart; of what is no affine function of
        # them nothing is said
        with np.errstate(all="ignore"):
            moved, origin = (
                _read(each, vector, release) for each in (vector, np.zeros_like(vector))
            )
            apart = {
                key: moved[key] - origin[key]
                for key in moved
                if release.context.layout.is_affine(key[1])
            }
        return {"result_": release.context.layout.frame(apart)}

    # -- post-processing ----------------------------------------------------------

    def to_crosstab(
        self, statistic: str = "count", column: Hashable = None
    ) -> pd.DataFrame:
        """Arrange one statistic of the groups as a cross-table.

        Parameters
        ----------
        statistic : str, default='count'
            As in the columns of `result_`.
        column : str or int, default=None
            The column summarised. None will do for counts, and where only one column
            has the statistic.

        Returns
        -------
        pandas.DataFrame
            The first column of `by` as rows, the others as columns.

        Raises
        ------
        ValueError
            If there are fewer than two columns in `by`, or the statistic is not there
            or not unique.
        """
        check_is_fitted(self)
        if len(as_list(self.by)) < 2:
            raise value_error("summary.crosstab_needs_two_columns", by=self.by)
        found = [
            key
            for key in self.result_.columns
            if key[1] == statistic and column in (None, key[0])
        ]
        if not found or (len(found) > 1 and statistic != "count"):
            known = list(self.result_.columns)
            raise value_error(
                "summary.crosstab_statistic_not_unique",
                statistic=statistic,
                column=column,
                n_found=len(found),
                known=known,
            )
        values = self.result_[found[0]]
        table = values.unstack(list(values.index.names[1:]))
        # in the order of the categories, which unstacking sorts away
        rows = values.index.get_level_values(0).unique()
        heads = values.index.droplevel(0).unique()
        return table.reindex(index=rows, columns=heads)


def _secret(name: object) -> ValueError:
    return ValueError(Statement("summary.secret_column_summarised", name=name))


def _is_secret(scenario, name):
    return scenario is not None and scenario.secret_position((name,), 1) is not None


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
    layout, n = release.context.layout, release.n_records
    # what was released is either counts or means; the layout reads means
    to_mean = 1 / n / _factor(layout, n)
    return layout.read(to_mean * value, to_mean * noise, n)


def _factor(layout, n_records):
    """Factor of the sum of contributions that is released: a mean, unless of counts."""
    return 1.0 if layout.contribution.is_count else 1 / n_records
