"""Private distribution functions of columns, on a fine public grid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._intervals import interval_width
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_finite,
    check_option,
    check_probability,
)
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.schema._columns import MOST_BINS
from skpuffer.utils._sklearn import StrOptions

from ._count_tree import CountTree, consistent_leaves
from ._errors import quantile_errors
from ._gaps import Gaps, Stacked
from ._layout import quantile_bins
from ._mean import (
    BoundedColumnsMixin,
    check_independent,
    divisor_of,
    marks_of,
    relation_of,
    weighting_in,
)
from ._private_statistic import level_quantiles, level_values, monotone_levels
from ._weighted import weighted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


class PrivateCDF(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Estimate each feature's distribution function and any number of quantiles.

    Bins of a fine public grid and runs of 8 and 64 bins (and so on) are counted with
    noise. The distribution function is that of the counts which agree best with all of
    these, so a cumulative share has the noise of a few counts only.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bins : int or array-like of shape (n_bins + 1,), default=None
        Public grid: a number of bins of equal width within the bounds, or edges for all
        features, which need no bounds. None is 512, and 4096 from 50,000 records on if
        their number is public. For whole numbers, put edges half way between them.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features, as for :class:`PrivateQuantile`.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest. Shares are of all
        weights.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. Results for dates are numbers of units, which
        :meth:`~skpuffer.schema.Date.present` makes into dates.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    edges_ : list of ndarray of shape (n_bins + 1,)
        Public grid of each feature.
    levels_ : list of ndarray of shape (n_bins + 1,)
        Share of records below each edge, from 0 to 1 and non-decreasing; of those with
        a value.
    n_answers_ : ndarray of shape (n_features,)
        Records that have a value, or the sum of their weights; without noise if public.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to all counts.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read; with a `schema`. Features are
        ``feature_map_.names`` without the marks of missing numbers.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateQuantile : A few quantiles without a grid, which err less.

    Notes
    -----
    If the number of records is private or records have weights, shares divide by the
    sum of noisy bins.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010), Boosting the accuracy of differentially
    private histograms through consistency.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateCDF
    >>> X = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> model = PrivateCDF(bounds=(-10, 10)).fit(X)
    >>> bool(np.allclose(model.quantiles([0.25, 0.5, 0.75])[:, 0], [-0.67, 0, 0.67], \
atol=0.02))
    True
    >>> bool(abs(model.cdf([[1.0]])[0, 0] - 0.84) < 0.01)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bins": ["array-like", int, None],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
    }

    fit = WeightedFit()

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bins: int | ArrayLike | None = None,
        bounds: BoundsLike = None,
        weight_bounds: tuple[float, float] | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bins = bins
        self.bounds = bounds
        self.weight_bounds = weight_bounds
        self.schema = schema
        self.random_state = random_state

    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        # edges say what is clipped, so that no bounds are missed
        if self.bins is None or np.ndim(self.bins) == 0:
            super()._check_parameters(scenario)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_grid_counts")
        if self.bins is None:
            return
        if np.ndim(self.bins) == 0:
            n_bins = check_count(bins=self.bins, least=2)
        else:
            edges = check_finite(bins=self.bins)
            flat = edges.ndim == 1 and edges.size >= 3
            if not flat or not np.all(np.diff(edges) > 0):
                raise value_error("summary.cdf_bins_invalid", bins=self.bins)
            n_bins = edges.size - 1
        if n_bins > MOST_BINS:
            raise value_error(
                "summary.cdf_bins_too_many", n_bins=n_bins, most_bins=MOST_BINS
            )

    def _grids(self, task: Task) -> list[Floats]:
        """Public edges of each feature."""
        context: Any = task.context
        if self.bins is not None and np.ndim(self.bins):
            return [np.asarray(self.bins, dtype=float)] * context.n_features
        bounds = self._public_bounds(task)
        if bounds is None:
            raise value_error("summary.cdf_bounds_missing")
        n_bins = self.bins
        if n_bins is None:
            n_bins = quantile_bins(divisor_of(context))
        grids = [
            np.linspace(low, high, int(np.asarray(n_bins)) + 1)
            for low, high in zip(bounds.low, bounds.high, strict=True)
        ]
        for position, grid in enumerate(grids):
            if not np.all(np.diff(grid) > 0):
                raise value_error(
                    "summary.cdf_bins_finer_than_floats",
                    n_bins=n_bins,
                    position=position,
                    low=grid[0],
                    high=grid[-1],
                )
        return grids

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context
        marks = marks_of(context)
        blocks: list[Any] = [
            CountTree(position, tuple(grid.tolist()), mark=marks.get(position))
            for position, grid in enumerate(self._grids(task))
            if position not in marks.values()
        ]
        weighting = task.weighting
        varies = weighting is not None and weighting.varies
        # of a private number of records there is nothing to take gaps from
        if marks and context.size != "private" and not varies:
            # beside a bin of a column, a gap costs nothing
            blocks.append(
                Gaps(tuple(marks), tuple(marks.values()), (1.0,) * len(marks))
            )
        trees: Any = Stacked(tuple(blocks))
        if weighting is not None:
            trees = weighted(
                trees,
                weighting=weighting,
                relation=relation_of(task.scenario),
                norm=task.accountant.unit_order,
                # bins sum up to all weights
                lacking=False,
            )
        return QueryRelease(
            contribution=trees,
            is_sum=True,
            is_integer=weighting is None,
            sensitivity=trees.sensitivity,
            n_records=context.n_records,
            dim=trees.dim,
            name="cumulative counts",
            context=context,
            assumptions=(Statement("assume.values_clipped_to_grid"),),
        )

    def _publish(self, value: Any, release: Any) -> None:
        weighting, held = weighting_in(release), release.contribution
        unit = 1.0 if weighting is None else weighting.largest
        blocks = (held if weighting is None else held.block).blocks
        ends = np.cumsum([block.dim for block in blocks])[:-1]
        pieces = np.split(value, ends)
        widths = np.split(
            np.broadcast_to(self.noise_.std(release.dim), value.shape), ends
        )
        trees = [block for block in blocks if isinstance(block, CountTree)]
        k = len(trees)
        answers = gap_std = None
        if not (weighting is not None and weighting.varies):
            answers, gap_std = self._answers(release, blocks, pieces, widths)
        # of no value at all, any will do
        totals = [None] * k if answers is None else np.maximum(answers, 1.0)[:, None]
        leaves = [
            consistent_leaves(tree, piece[None], total)[0]
            for tree, piece, total in zip(trees, pieces[:k], totals, strict=True)
        ]
        if answers is None:
            answers = np.array([counts.sum() for counts in leaves])
        self.edges_ = [np.array(tree.edges) for tree in trees]
        self.n_answers_ = unit * answers
        self.levels_ = [
            monotone_levels(counts, max(total, 1.0))
            for counts, total in zip(leaves, answers, strict=True)
        ]
        self._held = [*zip(trees, pieces[:k], widths[:k], strict=True)], gap_std, unit

    def _answers(
        self, release: Any, blocks: Any, pieces: list[Floats], widths: list[Floats]
    ) -> tuple[Floats | None, Floats | None]:
        """Return records that have a value, and the noise; None if bins say so."""
        if release.context.size == "private":
            return None, None
        trees = [block for block in blocks if isinstance(block, CountTree)]
        k, places = len(trees), {tree.position: i for i, tree in enumerate(trees)}
        answers, gap_std = np.full(k, float(release.n_records)), np.zeros(k)
        rest = (part[k:] for part in (blocks, pieces, widths))
        for gaps, piece, width in zip(*rest, strict=True):
            at = [places[position] for position in gaps.positions]
            answers[at] -= piece
            gap_std[at] = width
        return answers, gap_std

    # -- post-processing ----------------------------------------------------------

    def cdf(self, values: ArrayLike) -> Floats:
        """Return the share of records up to each value, interpolated between edges.

        Parameters
        ----------
        values : array-like of shape (n_values, n_features)

        Returns
        -------
        ndarray of shape (n_values, n_features)
            In [0, 1], and non-decreasing in the values of a feature.
        """
        check_is_fitted(self)
        x = np.asarray(values, dtype=float)
        if x.ndim != 2 or x.shape[1] != len(self.edges_):
            raise value_error(
                "summary.cdf_values_shape_invalid",
                n_features=len(self.edges_),
                shape=x.shape,
            )
        columns = [
            level_values(levels, edges, column)
            for column, edges, levels in zip(
                x.T, self.edges_, self.levels_, strict=True
            )
        ]
        return np.column_stack(columns)

    def quantiles(self, levels: ArrayLike) -> Floats:
        """Return quantiles of each feature.

        Parameters
        ----------
        levels : float or array-like of shape (n_quantiles,)
            In (0, 1).

        Returns
        -------
        ndarray of shape (n_quantiles, n_features) or (n_features,)
            Non-decreasing in the levels; of one dimension if `levels` is a number.
        """
        check_is_fitted(self)
        for q in np.ravel(np.asarray(levels, dtype=object)).tolist():
            check_probability(levels=q)
        asked = np.atleast_1d(np.asarray(levels, dtype=float))
        found = np.column_stack(
            [
                level_quantiles(of, edges, asked)
                for edges, of in zip(self.edges_, self.levels_, strict=True)
            ]
        )
        return found if np.ndim(levels) else found[0]

    def to_frame(
        self,
        level: float = 0.95,
        *,
        of: str = "population",
        levels: ArrayLike = (0.25, 0.5, 0.75),
    ) -> pd.DataFrame:
        """Return quantiles as a tidy table, one a row, with errors.

        It is post-processing and costs no budget.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each interval by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            Whether an interval is for the population of independent records, or for
            this very table without noise.
        levels : array-like of shape (n_quantiles,), default=(0.25, 0.5, 0.75)
            Levels of the quantiles, in (0, 1).

        Returns
        -------
        pandas.DataFrame
            With the columns 'column', 'statistic', 'estimate', 'std_error', 'low',
            'high', 'n' and 'wide', as :meth:`PrivateSummary.to_frame` has them.

        Raises
        ------
        UnsupportedError
            If records have weights, are rows of units or depend on each other
            ('population'); or if quantiles of the noise are not known.

        Examples
        --------
        >>> import numpy as np
        >>> from skpuffer.summary import PrivateCDF
        >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
        >>> found = PrivateCDF(bounds=(-10, 10)).fit(X).to_frame(levels=[0.5])
        >>> bool(found.low[0] < 0 < found.high[0] < 0.2)
        True
        """
        check_is_fitted(self)
        check_option(("population", "table"), of=of)
        level = check_probability(level=level)
        if of == "population":
            check_independent(self)
        width = interval_width(self.noise_, level)
        at = np.atleast_1d(np.asarray(levels, dtype=float)).tolist()
        asked = self.quantiles(at)
        held, gap_std, unit = self._held
        names = getattr(self, "feature_map_", self)
        names = getattr(names, "names", getattr(self, "feature_names_in_", None))
        rows = []
        for place, (tree, nodes, noise) in enumerate(held):
            total = total_std = None
            if gap_std is not None:
                total = self.n_answers_[place : place + 1] / unit
                total_std = float(gap_std[place]) or None
            errors = quantile_errors(
                partial(consistent_leaves, tree),
                nodes[None],
                noise[None],
                self.edges_[place],
                at,
                list(asked[:, place : place + 1]),
                total,
                total_std,
            )
            name = tree.position if names is None else names[tree.position]
            for q, error in zip(at, errors, strict=True):
                low, high = error.interval(level, of, width)
                row = {"column": name, "statistic": f"{100 * q:.10g}%"}
                row |= {"estimate": error.estimate[0]}
                row |= {"std_error": error.std_error(of)[0]}
                row |= {"low": low[0], "high": high[0]}
                rows.append(
                    row | {"n": self.n_answers_[place], "wide": error.wide(of)[0]}
                )
        return pd.DataFrame(rows)

    def median(self) -> Floats:
        """Median of each feature, of shape (n_features,)."""
        return self.quantiles(0.5)

    def interquartile_range(self) -> Floats:
        """Distance of the quartiles of each feature, of shape (n_features,)."""
        low, high = self.quantiles([0.25, 0.75])
        distance: Floats = high - low
        return distance
