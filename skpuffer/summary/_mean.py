"""Private means, and the mixin of estimators of moments: public bounds of features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats

from skpuffer._template import _plan
from skpuffer._template._elsewhere import Part
from skpuffer._template._intervals import interval_width
from skpuffer._template._lazy_tables import clipped, encoded, number
from skpuffer._template._units import is_limited
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import (
    Statement,
    scenario_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_option
from skpuffer.kernel.queries import stacked_sensitivity
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, RecordScenario
from skpuffer.utils._bounds import BOUNDS_LEAK, Bounds, check_bounds, resolve_bounds
from skpuffer.utils._reading import slices
from skpuffer.utils._sklearn import StrOptions

from ._gaps import (
    Gaps,
    MomentsWithGaps,
    Ones,
    Stacked,
    count_weight,
    gap_weight,
    of_each_record,
    ratio_interval,
)
from ._weighted import weighted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from skpuffer._template._lazy_tables import LazyColumn, LazyTable
    from skpuffer._template._weights import Weighting
    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices, Numbers
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


#: What is taken for granted of values beyond the bounds.
CLIPPED = Statement("assume.values_clipped")


class BoundedColumnsMixin:
    """Mixin for estimators with the parameter `bounds` that release moments."""

    bounds: BoundsLike
    schema: Schema | None

    #: What counts once: a parameter of the estimators that tell rows and units apart.
    weight: str = "row"

    # in the units of the data, in which means are read
    _schema_scale = "raw"

    def _check_parameters(self, scenario: Scenario) -> None:
        # as far as parameters go: how many columns there are is not known yet
        check_bounds(self.bounds)
        # before the data is read, as nothing in it could help
        known = self.bounds is not None or self.schema is not None
        if not known and scenario.any_records:
            raise unsupported_error(
                "bounds.features_without_bounds", owner=type(self).__name__
            )

    def _reads_units(self) -> bool:
        return self.weight == "unit"

    def _leaks(self) -> tuple[Statement, ...]:
        # only 'empirical' is a text: the range of a column is its two outermost records
        return (BOUNDS_LEAK,) if isinstance(self.bounds, str) else ()

    def _column_names(self, context: Any) -> Any:
        """Names of the columns that are read, where they are known; else positions."""
        if self.schema is not None:
            return context.feature_map.names
        if context.feature_names is not None:
            return np.array(context.feature_names, dtype=object)
        return np.arange(context.n_features)

    def _public_bounds(self, task: Task) -> Bounds | None:
        """Bounds of the features: given, of the code book, or declared, if any are."""
        context: Any = task.context
        given = self.bounds
        if self.schema is not None:
            # of the columns that it makes, levels among them
            given = context.feature_map.low, context.feature_map.high
        # the data is passed for 'empirical' alone, which voids the promise: see
        # `_leaks`
        return resolve_bounds(
            given,
            context.n_features,
            scenario=task.scenario,
            context=context,
            X=task.X,
        )

    def _lazy_columns(
        self, table: LazyTable, y: Any, encoding: Any
    ) -> tuple[list[LazyColumn], None, tuple[str, ...]]:
        """Return the columns of a lazy data frame as they are read, and their names."""
        if y is not None:
            raise value_error("summary.lazy_target_given", owner=type(self).__name__)
        if encoding is not None:
            return encoded(table, encoding), None, encoding.schema.names
        return [number(table, name) for name in table.names], None, table.names

    def _moment_release(
        self, task: Task, *, order: int, name: str, query: Callable[..., Any]
    ) -> QueryRelease:
        """The release of the moments up to an order: a sum, where bounds are known.

        Without bounds it is the query itself, whose output distributions the scenario
        has to know.
        """
        context: Any  # of a fit, which knows the number of features
        scenario, context = task.scenario, task.context
        d, n = context.n_features, divisor_of(context)
        bounds = self._public_bounds(task)
        # what publishes the vector has no data, so the bounds travel with the release
        context = replace(context, bounds=bounds)
        # distributions that a user states are of one output, and this would be another
        if bounds is not None and order > 1 and isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_with_bounds")
        marks = marks_of(context)
        if marks and isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_with_gaps", n_columns=len(marks))
        # Nothing bounds a record: only the distributions of the output can set noise.
        # The matrix lets a Gaussian prior find them.
        if bounds is None:
            return QueryRelease(
                query=query,
                linear=Averages(n, d) if order == 1 else None,  # type: ignore[arg-type] # an array when asked
                n_records=context.n_records,
                dim=order * d,
                name=name,
                context=context,
            )
        moments: Any = Moments(tuple(range(d)), bounds, order)
        varies = task.weighting is not None and task.weighting.varies
        if marks or varies or context.size == "private":
            moments = _beside_gaps(task, bounds, marks, order)
        if task.weighting is not None:
            moments = weighted(
                moments,
                weighting=task.weighting,
                relation=relation_of(scenario),
                norm=task.accountant.unit_order,
                lacking=context.size != "private",
            )
        return QueryRelease(
            contribution=moments,
            is_sum=True,
            # where the number of records is public, a mean is a sum times a constant
            factor=1 / n,
            dim=moments.dim,
            # noise in proportion to each column's range, so that no wide column drowns
            # others
            units=moments.units,
            # in these units every column is a number in [-1, 1]
            sensitivity=moments.sensitivity.times(1 / n),
            n_records=context.n_records,
            name=name,
            context=context,
            assumptions=(CLIPPED,),
        )

    def _publish_means(self, value: Floats, release: Any) -> None:
        """Set `mean_`: of all columns, over the records that have a value."""
        bounds = release.context.bounds
        self._ratio: Any = None
        if not has_ratios(release):
            self.mean_ = self._read_off(value, release)["mean_"]  # type: ignore[attr-defined]
            if self.clip and bounds is not None:  # type: ignore[attr-defined]
                self.mean_ = np.clip(self.mean_, bounds.low, bounds.high)
            return
        # ratios, whose deviations depend on what was released
        noise = self.noise_.std(value.size)  # type: ignore[attr-defined]
        n, held = divisor_of(release.context), release.contribution
        read = held.read(value, noise, n)
        self.mean_ = bounds.middle + bounds.half * read.first
        if self.clip:  # type: ignore[attr-defined]
            self.mean_ = np.clip(self.mean_, bounds.low, bounds.high)
        if np.isfinite(noise).all():
            self.mean_std_ = bounds.half * read.first_std
            # of which intervals are read when they are asked for
            self._ratio = (bounds, read)
        total, spread = (float(n * each) for each in held.total(value, noise))
        if (weighting := weighting_in(release)) is not None and weighting.varies:
            self.weight_sum_ = weighting.largest * total
        elif release.context.size == "private":
            self.size_ = total
            if math.isfinite(spread):
                self.size_std_ = spread


def _beside_gaps(
    task: Task, bounds: Bounds, marks: dict[int, int], order: int
) -> MomentsWithGaps:
    """Contribution to the moments of all columns, and to what their means divide by."""
    numbers, missing = tuple(marks), tuple(marks.values())
    others = sorted({*range(len(bounds.low))} - {*numbers, *missing})
    blocks: list[Any] = []
    if others:
        blocks.append(Moments(tuple(others), bounds.select(others), order))
    if numbers:
        blocks.append(Moments(numbers, bounds.select(numbers), order, missing))
    relation, norm = relation_of(task.scenario), task.accountant.unit_order
    weight = gap_weight(_SENSITIVITY[order], relation, task.accountant.unit_orders)
    blocks.append(Gaps(numbers, missing, (weight,) * len(numbers)))
    if task.context.size == "private":
        blocks.append(Ones(count_weight(Stacked(tuple(blocks)).sensitivity, norm)))
    return MomentsWithGaps(tuple(blocks))


def divisor_of(context: Any) -> int:
    """Return the public number that divides sums over records, or one."""
    return 1 if context.size == "private" else context.n_records


def weighting_in(release: Any) -> Weighting | None:
    """Return what is public of the weights of a release, or None."""
    found: Weighting | None = getattr(release.contribution, "weighting", None)
    return found


def has_ratios(release: Any) -> bool:
    """Whether means are ratios of two noisy numbers, of which one is a count."""
    weighting = weighting_in(release)
    varies = weighting is not None and weighting.varies
    sized = release.context.size == "private"
    return varies or sized or bool(marks_of(release.context))


def marks_of(context: Any) -> dict[int, int]:
    """Return columns of a code book that have gaps; see :class:`Encoding`."""
    marks: dict[int, int] = getattr(context.feature_map, "marks", {})
    return marks


def without_marks(context: Any) -> list[int]:
    """Return positions of the columns that are no marks of missing numbers."""
    marks = set(marks_of(context).values())
    return [at for at in range(context.n_features) if at not in marks]


class PrivateMean(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Estimate the mean of each feature.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped, and noise is in proportion to
        the range. None takes the scenario's range; without one only a scenario that
        knows the output's distributions can account. 'empirical' reads the private
        data and warns. A :class:`PrivateBounds` spends a part of the budget.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. Means of numbers are of the values that are there. A level becomes a
        feature, whose mean is its share of all records.
    clip : bool, default=False
        Whether means are clipped to the bounds: closer to the exact ones, but biased.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest. Means are then ratios of
        two noisy sums.
    weight : {'row', 'unit'}, default='row'
        Whether each row counts once, or each unit with the mean of its rows (for
        ``RecordScenario(max_rows=)``), with the noise of as many records as units.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy means, unbiased for the clipped data unless `clip`. With missing values or
        weights they are ratios of two noisy numbers, NaN where hardly any value is.
    n_answers_ : ndarray of shape (n_features,)
        Noisy number of records with a value of each feature; with a `schema` by which
        some may be missing.
    size_, size_std_ : float
        Noisy number of records (or units) and its standard deviation; where it is
        private.
    weight_sum_ : float
        Noisy sum of the weights; only with `weight_bounds` that differ.
    mean_std_ : ndarray of shape (n_features,)
        Standard deviation of the noise of `mean_` before `clip`; of ratios to the first
        order (delta method).
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise of the means in the units of the data. With missing values or a
        private number of records it is that of the sums over all records.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateMean
    >>> X = np.random.default_rng(0).uniform(0, 10, size=(10_000, 2))
    >>> summary = PrivateMean(bounds=(0, 10)).fit(X)
    >>> summary.mean_.shape
    (2,)
    >>> round(summary.certificate_.sensitivity, 6)  # in l1, in half-ranges
    0.0002
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "clip": ["boolean"],
        "weight": [StrOptions({"row", "unit"})],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        schema: Schema | None = None,
        clip: bool = False,
        weight_bounds: tuple[float, float] | None = None,
        weight: str = "row",
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.schema = schema
        self.clip = clip
        self.weight_bounds = weight_bounds
        self.weight = weight
        self.random_state = random_state

    fit = WeightedFit()

    _takes_any_size = True

    def _release(self, task: Task) -> QueryRelease:
        return self._moment_release(task, order=1, name="mean", query=column_means)

    _affine_attributes = ("mean_",)

    def confidence_interval(
        self, level: float = 0.95, *, of: str = "population"
    ) -> dict[str, tuple[Any, Any]]:
        """Return intervals around the means.

        It is post-processing and costs no budget.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each mean by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            Whether an interval is for the mean of the population of independent
            records, or of this very table, clipped. The former assumes the largest
            spread within the bounds; a :class:`PrivateSummary` of 'mean' and 'std' has
            shorter ones.

        Returns
        -------
        dict of {str: (low, high)}
            By Fieller's theorem for ratios; the bounds where nothing is known.

        Raises
        ------
        UnsupportedError
            If there are no bounds, or records have weights, are rows of units or depend
            on each other ('population'); or if quantiles of the noise are not known.
        """
        of_table = _plan.confidence_interval(self, level)
        check_option(("population", "table"), of=of)
        if of == "population":
            check_independent(self)
            if self._of_sample is None:
                raise unsupported_error("summary.no_population_without_bounds")
        if self._ratio is None and of == "table":
            return of_table
        mean, spread = self.mean_, np.zeros(len(self.mean_))
        of_sample = float(stats.norm.isf((1 - level) / 2))
        if of == "population":
            low, high, sizes = self._of_sample
            # as near to the middle as the noise allows
            middle = (low + high) / 2
            near = np.clip(middle, mean - self.mean_std_, mean + self.mean_std_)
            # and with two more records at either bound
            near = middle + (np.clip(near, low, high) - middle) * sizes / (sizes + 4)
            spread = np.sqrt((high - near) * (near - low) / sizes)
        if self._ratio is not None:
            bounds, read = self._ratio
            apart = read.first - read.origin
            above = np.maximum(read.first_std**2 - (apart * read.below) ** 2, 0.0)
            ends = ratio_interval(
                apart,
                np.sqrt(above),
                read.below,
                of_sample * spread / bounds.half,
                interval_width(self.noise_, level),
            )
            low, high = (
                bounds.middle + bounds.half * np.clip(read.origin + end, -1.0, 1.0)
                for end in ends
            )
            # where nothing is known, all that may be; and around what was released
            low = np.fmin(np.where(np.isnan(low), bounds.low, low), mean)
            high = np.fmax(np.where(np.isnan(high), bounds.high, high), mean)
            return {"mean_": (low, high)}
        least, most = of_table["mean_"]
        half = np.hypot((most - least) / 2, of_sample * spread)
        return {"mean_": (mean - half, mean + half)}

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        return {} if has_ratios(release) else {"mean_": vector}

    def _offsets(self, release: Any) -> dict[str, Any]:
        # released about the middles of the bounds, which are public and added back
        bounds = release.context.bounds
        return {} if bounds is None else {"mean_": bounds.middle}

    def _foreseen(
        self, noise: Any, release: Any, n_records: int | None
    ) -> dict[str, Any]:
        weighted = weighting_in(release) is not None
        if n_records is None or weighted or not has_ratios(release):
            return self._deviations(noise, release)
        bounds, marks = release.context.bounds, marks_of(release.context)
        row = bounds.middle + bounds.half / 2
        row[list(marks.values())] = 0.0
        means = release.contribution.sums(row[None]).ravel() * release.units
        widths = noise.std(means.size)
        if not np.isfinite(widths).all():
            return {}
        value, n = n_records * release.factor * means, divisor_of(release.context)
        read = release.contribution.read(value, widths, n)
        deviations = bounds.half * read.first_std
        return {"mean_": deviations[without_marks(release.context)]}

    def _publish(self, value: Any, release: Any) -> None:
        self._publish_means(value, release)
        context = release.context
        bounds, marks = context.bounds, marks_of(context)
        self._of_sample: Any = None
        if bounds is None:
            return
        # the noisy number of records where it is private
        known = getattr(self, "size_", divisor_of(context))
        sizes = np.full(len(self.mean_), float(known))
        # marks are zeros and ones, whose mean is the share of gaps
        for at, mark in marks.items():
            sizes[at] *= max(0.0, 1 - self.mean_[mark])
        if marks:
            kept = without_marks(context)
            bounds = bounds.select(kept)
            self.mean_, sizes = self.mean_[kept], sizes[kept]
            if weighting_in(release) is None:
                self.n_answers_ = sizes
            if hasattr(self, "mean_std_"):
                self.mean_std_ = self.mean_std_[kept]
            if self._ratio is not None:
                self._ratio = (bounds, self._ratio[1].select(kept))
        self._of_sample = (
            np.array(bounds.low),
            np.array(bounds.high),
            np.maximum(sizes, 1.0),
        )


def check_independent(estimator: Any, weights: bool = True) -> None:
    """Refuse intervals for the population where records are not drawn independently."""
    scenario = getattr(estimator, "scenario", None) or RecordScenario()
    # sizes that are public are a limit too
    by_units = scenario.reads_sizes or is_limited(scenario)
    of_rows = by_units and getattr(estimator, "weight", "row") == "row"
    weighted = weights and getattr(estimator, "weight_bounds", None) is not None
    if weighted or of_rows or not scenario.independent_records:
        raise unsupported_error("summary.no_population_of_such_records")


# -- first and second moments of columns: contributions of records, and reading back ---


#: Smallest share of the squared half-range that a positive variance is given.
MINIMAL_VARIANCE = 1e-6

# Numbers worked on at once: an array of so many, and what is made of it, fit the cache
# that all cores share; smaller ones pay for more calls than the nearer cache saves.
_BLOCK = 2**17

# Columns that are read together where each lies in one piece: of more, runs are short.
_FEW_COLUMNS = 16

# One column, u in [-1, 1]. Alone, the squared l2 norm of (u, u^2 - 1/2) is u^4 + 1/4
# and its l1 norm |u| + |u^2 - 1/2|, both largest at |u| = 1. Apart, with d = |u - v|
# and s = |u + v| <= 2 - d: the squared l2 norm is d^2 (1 + s^2) <= d^2 (1 + (2 - d)^2),
# largest at d = 2, and the l1 norm d (1 + s) <= d (3 - d), largest at d = 3/2.
_SENSITIVITY = {
    1: Sensitivity(
        add_remove={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
        replace={1.0: 2.0, 2.0: 2.0, math.inf: 2.0},
    ),
    2: Sensitivity(
        add_remove={1.0: 1.5, 2.0: math.sqrt(1.25), math.inf: 1.0},
        replace={1.0: 2.25, 2.0: 2.0, math.inf: 2.0},
    ),
}


@dataclass(frozen=True)
class Moments:
    """Contribution of a record to the first moments of columns, or to the second too.

    With ``u = (clip(x) - middle) / half`` in [-1, 1], a record adds u, and
    ``u**2 - 1/2`` for second moments: centred, because a smaller range takes less
    noise and the constant is public. A record whose value is missing adds nothing.

    Parameters
    ----------
    positions : tuple of int
        Columns of the encoded table.
    bounds : Bounds
        Bounds of these columns.
    order : {1, 2}
        Up to which moment.
    marks : tuple of int, default=()
        Columns that are one where these are missing, and zero elsewhere; none if no
        value is ever missing.
    """

    positions: tuple[int, ...]
    bounds: Bounds
    order: int = 1
    marks: tuple[int, ...] = ()

    is_count = False

    @property
    def dim(self) -> int:
        """Number of coordinates: all first moments, then all second ones."""
        return self.order * len(self.positions)

    @property
    def units(self) -> tuple[float, ...]:
        """Units of the coordinates: half-ranges, then their squares."""
        # second moments are in squared units; noise is in proportion to both
        half = self.bounds.half
        return tuple(
            np.concatenate([half**k for k in range(1, self.order + 1)]).tolist()
        )

    @property
    def sensitivity(self) -> Sensitivity:
        """See :class:`Sensitivity`."""
        # one record is in every column
        return stacked_sensitivity(self.by_column.values())

    @property
    def by_column(self) -> dict[int, Sensitivity]:
        """Sensitivity of the contributions of each column, by its position."""
        return dict.fromkeys(self.positions, _SENSITIVITY[self.order])

    def __call__(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        return of_each_record(self, X)

    @property
    def n_parts(self) -> int:
        """Number of :meth:`parts`."""
        return self.dim + (len(self.marks) if self.order == 2 else 0)

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Numbers whose sums are asked of an engine: each u, then each u**2."""
        bounds = zip(self.bounds.middle, self.bounds.half, strict=True)
        # clipped, whatever the record holds: the table of sensitivities rests on [-1,
        # 1]; centred before that, so that no rounding leaves it
        u = [
            clipped(columns[at] - float(middle), -half, half) / float(half)
            for at, (middle, half) in zip(self.positions, bounds, strict=True)
        ]
        if self.marks:
            present = [1.0 - columns[at] for at in self.marks]
            u = [v * there for v, there in zip(u, present, strict=True)]
        if self.order == 1:
            return [Part(v) for v in u]
        missing = [Part(columns[at] > 0, is_count=True) for at in self.marks]
        return [*map(Part, u), *(Part(v * v) for v in u), *missing]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of :meth:`parts`."""
        first, second, missing = np.split(sums, [len(self.positions), self.dim], axis=1)
        if self.order == 1:
            return first
        values = counts - missing if self.marks else counts
        return np.hstack([first, second - values / 2])

    def sums(
        self,
        X: Floats,
        cells: Indices | None = None,
        n_cells: int = 1,
        weights: Floats | None = None,
    ) -> Floats:
        """Sums of contributions over the records of each cell, of shape (n_cells, dim).

        Cells count from 0, and None puts all records in one. Weights of None are one.
        """
        n = len(self.positions)
        # what lies column by column is read in long runs of few of them
        width = _FEW_COLUMNS if X.flags.f_contiguous else n
        parts = [
            np.split(some._sums(X, cells, n_cells, weights), self.order, axis=1)
            for some in map(self._some, slices(n, width))
        ]
        # all first moments, then all second ones
        return np.hstack([np.hstack(moment) for moment in zip(*parts, strict=True)])

    def _some(self, part: slice) -> Moments:
        """Moments of some of the columns."""
        if part == slice(0, len(self.positions)):
            return self
        places = range(*part.indices(len(self.positions)))
        return replace(
            self,
            positions=self.positions[part],
            bounds=self.bounds.select(places),
            marks=self.marks[part],
        )

    def _sums(
        self,
        X: Floats,
        cells: Indices | None,
        n_cells: int,
        weights: Floats | None,
    ) -> Floats:
        """Sums of contributions of columns that are read together."""
        first = np.zeros((n_cells, len(self.positions)))
        second = np.zeros_like(first)
        records = np.zeros((n_cells, len(self.marks) or 1))
        least = 1 if cells is None else first.size
        reading = _Centred(self.positions, self.bounds, X, least)
        inverse = 1 / reading.half
        for rows, u in reading.blocks():
            ones = reading.ones[: len(u)]
            within = None if cells is None else cells[rows]
            share = None if weights is None else weights[rows]
            if self.marks:
                present = 1.0 - X[rows, _columns(self.marks)]
                np.multiply(u, present, out=u)
            first += _cell_sums(u, ones, within, n_cells, share)
            if self.order == 2:
                scale = inverse if np.ndim(inverse) == 0 else inverse[: len(u)]
                np.square(np.multiply(u, scale, out=u), out=u)
                second += _cell_sums(u, ones, within, n_cells, share)
                records += (
                    _cell_sums(present, ones, within, n_cells, share)
                    if self.marks
                    else _cell_sizes(len(u), within, n_cells, share)
                )
        # centred values are summed before they are scaled: one pass less
        first /= self.bounds.half
        return first if self.order == 1 else np.hstack([first, second - records / 2])

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of each contribution to moves of its record's features."""
        unsure = gaps[:, list(self.marks)] > 0
        # clipping moves no two values apart, and u lies in an interval of length 2
        gaps = np.minimum(gaps[:, list(self.positions)] / self.bounds.half, 2.0)
        # the norm of a stacked vector is that of its columns' norms
        columns = gaps if self.order == 1 else _pair_move(gaps, norm)
        if self.marks:
            # a value that comes or goes moves as a record that is added or removed
            alone = _SENSITIVITY[self.order].value("add_remove", norm, self.order)
            columns = np.where(unsure, np.maximum(columns, alone), columns)
        moves: Floats = np.linalg.norm(columns, norm, axis=1)
        return moves

    def means(self, first: Floats) -> Floats:
        """Means in data units from first moments, of shape (..., n_columns)."""
        # post-processing by public numbers
        return self.bounds.middle + self.bounds.half * first

    def variances(
        self, first: Floats, second: Floats, least: float | Floats = 0.0
    ) -> Floats:
        """Variances in data units from moments; see :func:`bounded_variance`."""
        # in units of the squared half-range
        share = bounded_variance(first, second, least)
        return self.bounds.half**2 * share


def row_blocks(n_records: int, width: int, least: int = 1) -> Iterator[slice]:
    """Yield slices of consecutive rows, at least `least`, that fit the cache."""
    step = max(1, _BLOCK // max(1, width), least)
    for start in range(0, n_records, step):
        yield slice(start, min(start + step, n_records))


class _Centred:
    """Columns of a table less the middle of their bounds, clipped, block by block."""

    def __init__(
        self, positions: tuple[int, ...], bounds: Bounds, X: Floats, least: int
    ):
        self._X, self._columns = X, _columns(positions)
        self._blocks = list(row_blocks(len(X), len(positions), least))
        # Written out in every row, in the order of the table: an operation between a
        # table and a single row is several times as slow.
        self._shape = (self._blocks[0].stop if self._blocks else 0, len(positions))
        self._order: Literal["F", "C"] = "F" if X.flags.f_contiguous else "C"
        # by public bounds: what they have in common takes a pass less
        self._middle = self._rows(bounds.middle) if np.any(bounds.middle) else None
        same = np.all(bounds.half == bounds.half[0])
        self.half = bounds.half[0] if same else self._rows(bounds.half)
        self.ones = np.ones(self._shape[0])

    def _rows(self, row: Floats) -> Floats:
        rows = np.empty(self._shape, order=self._order)
        rows[:] = row
        return rows

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of each block, and its values: to be used before the next."""
        space, low = np.empty(self._shape, order=self._order), -self.half
        for rows in self._blocks:
            u = part = self._X[rows, self._columns]
            n, out = len(part), space[: len(part)]
            if self._middle is not None:
                # what overflows is far outside of the bounds, and clipped to them
                with np.errstate(over="ignore"):
                    u = np.subtract(part, self._middle[:n], out=out)
            if np.ndim(self.half) == 0:
                u = u.clip(low, self.half, out=out)
            else:
                u = np.minimum(u, self.half[:n], out=out)
                np.maximum(u, low[:n], out=u)
            yield rows, u


def _columns(positions: tuple[int, ...]) -> slice | list[int]:
    """Index of some columns: a slice, which copies nothing, where they are in a row."""
    first, n = positions[0], len(positions)
    in_a_row = positions == tuple(range(first, first + n))
    return slice(first, first + n) if in_a_row else list(positions)


def _cell_sums(
    values: Floats,
    ones: Floats,
    cells: Indices | None,
    n_cells: int,
    weights: Floats | None,
) -> Floats:
    """Sums of the rows of each cell, of shape (n_cells, n_columns)."""
    if cells is None:
        return ((ones if weights is None else weights) @ values)[None]
    columns = values.T if weights is None else values.T * weights
    return np.column_stack([np.bincount(cells, c, n_cells) for c in columns])


def _cell_sizes(
    n: int, cells: Indices | None, n_cells: int, weights: Floats | None
) -> Numbers:
    """Number of rows, of each cell in an array of shape (n_cells, 1)."""
    if weights is not None:
        return _cell_sums(weights[:, None], np.ones(n), cells, n_cells, None)
    if cells is None:
        return n
    sizes: Numbers = np.bincount(cells, minlength=n_cells)[:, None].astype(float)
    return sizes


def _pair_move(gaps: Floats, norm: float) -> Floats:
    """Sensitivity of (u, u^2 - 1/2) to moves of u in [-1, 1] by at most `gaps`.

    With d = |u - v| the second part moves by d |u + v| <= d (2 - d), which is attained.
    In l2 the norm of both grows with d, in l1 it does up to d = 3/2 and in the maximum
    norm the second part never exceeds the larger of the first and one.
    """
    # d (2 - d) is largest at d = 1, so a larger move allows for one as large as that
    first, second = gaps, np.where(gaps < 1, gaps * (2 - gaps), 1.0)
    in_l1 = np.where(gaps < 1.5, gaps * (3 - gaps), 2.25)
    if norm == 1:
        return in_l1
    if norm == 2:
        return gaps * np.sqrt(1 + (2 - gaps) ** 2)
    # each part at its largest; no norm exceeds that of order 1
    apart = np.linalg.norm(np.stack([first, second]), norm, axis=0)
    moves: Floats = np.minimum(apart, in_l1)
    return moves


@dataclass(frozen=True)
class Averages:
    """Matrix of the linear map from all records, stacked, to the column means.

    An array of its size is made only when a scenario asks for it.
    """

    n_records: int
    n_features: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """Return the matrix, of shape (n_features, n_records * n_features)."""
        # the same block for each record, side by side
        one = np.eye(self.n_features, dtype=dtype or float) / self.n_records
        return np.tile(one, self.n_records)


def bounded_variance(first: Numbers, second: Numbers, least: ArrayLike = 0.0) -> Floats:
    """Variance of u in [-1, 1] from noisy moments, projected to [least, 1].

    `first` is the mean of u and `second` that of ``u**2 - 1/2``. NaN stays NaN.
    """
    # E u² - (E u)², and no variance on [-1, 1] exceeds one; noise may leave that range
    return np.clip(second + 0.5 - np.square(first), np.minimum(least, 1.0), 1.0)


def relation_of(scenario: Scenario) -> str:
    """Return the relation of neighbouring tables by which gaps are weighted."""
    # where a secret is of the records that are there, a record may be another one
    of_records = getattr(scenario, "relation", None) == "add_remove"
    return "add_remove" if of_records else "replace"


def column_means(X: ArrayLike, y: ArrayLike | None = None) -> Floats:
    """Column means without noise: the query where no bounds are known."""
    means: Floats = np.asarray(X, dtype=float).mean(axis=0)
    return means


def column_moments(X: ArrayLike, y: ArrayLike | None = None) -> Floats:
    """Column means, then standard deviations, without noise, where no bounds are."""
    X = np.asarray(X, dtype=float)
    return np.concatenate([X.mean(axis=0), X.std(axis=0)])
