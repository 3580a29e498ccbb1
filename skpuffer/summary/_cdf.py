"""Private distribution functions of columns, on a fine public grid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

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
    """Distribution function of each feature, and any number of quantiles off it.

    Bins of a fine public grid are counted, runs of about 8 of them, runs of 64, and so
    on up, each count with noise; the distribution function is that of the counts which
    agree best with all of these. So a cumulative share has the noise of a few counts
    only, wherever it lies, and quantiles at all levels cost what one does.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret to protect. None is one record, added or removed: differential
        privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    bins : int or array-like of shape (n_bins + 1,), default=None
        Public grid: a number of bins of equal width within the bounds of each feature,
        or edges for all of them, which need no bounds. For whole numbers, edges half
        way between them tell them apart. None is 512, and 4096 from 50,000 records on,
        where their number is not private.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features, as for :class:`PrivateQuantile`.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, with which `fit` takes a
        `sample_weight`. Weights are clipped to them, and noise covers a record of the
        largest. Shares are then those of all weights.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `bounds` are its own. For dates, results are numbers of units, which
        :meth:`~skpuffer.schema.Date.present` makes into dates. See
        :class:`~skpuffer.schema.Schema`.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    edges_ : list of ndarray of shape (n_bins + 1,)
        Public grid of each feature.
    levels_ : list of ndarray of shape (n_bins + 1,)
        Share of records below each edge, from 0 to 1 and non-decreasing; of those that
        have a value, where a number of the `schema` may be missing.
    n_answers_ : ndarray of shape (n_features,)
        Records that have a value, or the sum of their weights: all records without
        noise, where none is missing, their number is public and weights do not differ.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to all counts.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read, whose names are
        ``feature_map_.names``; only with a `schema`. Features are all of them but the
        marks of missing numbers, ``feature_map_.marks``.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateQuantile : A few quantiles without a grid, which err less.

    Notes
    -----
    Shares need the number of records, which is public by assumption. Where it is
    private, or records have weights, the sum of noisy bins takes its place.

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
        """Share of records up to each value, interpolated between edges.

        Parameters
        ----------
        values : array-like of shape (n_values, n_features)

        Returns
        -------
        ndarray of shape (n_values, n_features)
            In [0, 1], and non-decreasing in the values of a feature.

        Raises
        ------
        ValueError
            If there is not one column for each feature.
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
        """Quantiles of each feature.

        Parameters
        ----------
        levels : float or array-like of shape (n_quantiles,)
            In (0, 1).

        Returns
        -------
        ndarray of shape (n_quantiles, n_features) or (n_features,)
            Of one dimension if `levels` is a number. Non-decreasing in the levels.

        Raises
        ------
        ValueError
            If a level is not in (0, 1).
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
            Whether an interval is for the population that the records were drawn from,
            independently, or for this very table, read without noise.
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
            If intervals are asked for the population where records have weights, are
            rows of units or depend on each other by the scenario; or if quantiles of
            the family of noise are not known.

        Notes
        -----
        A quantile lies where the distribution function may be its level, as far as the
        noise of the counts and the sampling of records go.

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
        width = self.noise_.interval_width(level)
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
