"""Private statistics of any kind: a function of the table, released with noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator
from sklearn.isotonic import isotonic_regression

from skpuffer._template import _plan
from skpuffer._template._foreign_code import StatedSensitivityMixin, VectorQuery
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, value_error
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.utils._silence import unquoted
from skpuffer.utils._sklearn import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import RandomState


#: Function of a table, which returns numbers.
Statistic: TypeAlias = Callable[[Any], Any]


class PrivateStatistic(StatedSensitivityMixin, PrivateEstimatorMixin):
    """Release any function of the table with noise: a statistic of your own.

    How far the function may move must be known. Give a `sensitivity`, or a scenario
    that knows its distributions or simulates whole tables, such as
    :class:`~skpuffer.scenarios.SimulatorScenario`.

    Parameters
    ----------
    statistic : callable, default=None
        Takes the table and returns an array whose shape does not depend on the records.
        The table is a data frame or an array of floats, without the secret. None is the
        mean and the (population) standard deviation of each column.
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    units : array-like of shape (n_outputs,), default=None
        Public unit of each number, such as half of its range. Its noise is in
        proportion to the unit.
    sensitivity : float or Sensitivity, default=None
        How far the numbers move at most when one record changes, in `units`. A number
        is the l2 norm; a :class:`~skpuffer.releases.Sensitivity` distinguishes
        relations and norms. The certificate states it as an assumption, which you must
        prove.
    n_outputs : int, default=None
        Public number of outputs, where neither `units` nor the scenario says it.
        Laplace noise and :class:`~skpuffer.accountants.SlicedWasserstein` need it.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read. A level
        becomes a column of zeros and ones; ``feature_map_.names`` says which.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    value_ : ndarray or float
        The noisy numbers, in the shape that `statistic` gave them.
    value_std_ : ndarray or float
        Standard deviation that the noise gives `value_`, exactly.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    The function runs without output, and its errors are withheld. A random one needs a
    fixed seed, so that two tables differ in their records only.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.distributions import PointMass
    >>> from skpuffer.scenarios import LawsScenario
    >>> from skpuffer.summary import PrivateStatistic
    >>> def summary(table):
    ...     age = table["age"]
    ...     return [age.mean(), age.std(ddof=0), (table["amount"] > 0).mean()]
    >>> scenario = LawsScenario(
    ...     [(PointMass([39.0, 13.0, 0.10]), PointMass([37.0, 14.0, 0.05]))]
    ... )
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(17, 91, 500), "amount": 0.0})
    >>> model = PrivateStatistic(
    ...     summary, scenario, GeneralWasserstein(1.0, 4.0), units=[36.5, 36.5, 0.5]
    ... ).fit(table)
    >>> model.value_.shape
    (3,)
    >>> model.noise_.std(3).round(2).tolist()
    [6.05, 6.05, 0.08]
    """

    # in the units of the data, in which statistics are read
    _schema_scale = "raw"

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "statistic": [callable, None],
        "units": ["array-like", None],
        "sensitivity": [Real, Sensitivity, None],
        "n_outputs": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        statistic: Statistic | None = None,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        units: ArrayLike | None = None,
        sensitivity: Sensitivity | float | None = None,
        n_outputs: int | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.statistic = statistic
        self.scenario = scenario
        self.accountant = accountant
        self.units = units
        self.sensitivity = sensitivity
        self.n_outputs = n_outputs
        self.schema = schema
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        if self.statistic is not None and not callable(self.statistic):
            raise value_error(
                "summary.statistic_not_a_function", statistic=self.statistic
            )
        self._check_stated(scenario)

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context
        names = context.feature_names
        if context.feature_map is not None:
            # of the columns that are read, where it has names for them
            names = getattr(context.feature_map, "names", None)
        statistic = _means_and_deviations if self.statistic is None else self.statistic
        dim = self._public_length(task.scenario)
        return QueryRelease(
            query=_StatisticQuery(statistic, names, dim),
            name=_name_of(statistic),
            n_records=context.n_records,
            dim=dim,
            units=self._stated_units(),
            sensitivity=self._stated_sensitivity(),
            context=context,
            assumptions=(
                Statement("assume.released_shape_public"),
                *self._stated_assumptions(),
            ),
        )

    _affine_attributes = ("value_",)
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        # the query kept the shape; of the values there is the noisy vector only
        (array,) = release.query.split(vector)
        return {"value_": array}

    def _publish(self, value: Any, release: Any) -> None:
        self.value_ = self._read_off(value, release)["value_"]


class _StatisticQuery(VectorQuery):
    """Query that computes a function of one table."""

    _parameter, _source = "statistic", "table"

    def __init__(self, statistic: Statistic, names: Any, dim: int | None):
        super().__init__(dim)
        self._statistic = statistic
        self._names = None if names is None else list(names)

    def __call__(self, X: Floats, y: Any) -> Floats:
        """Return the stacked numbers of one table."""
        table: Any = X
        if self._names is not None:
            table = pd.DataFrame(X, columns=self._names)
        found = unquoted(
            Statement("summary.owner_statistic_parameter"), self._statistic, table
        )
        return self._stacked([found])


def _means_and_deviations(table: Any) -> Floats:
    """Means, and standard deviations of the population, of the columns."""
    rows = np.asarray(table, dtype=float)
    return np.array([rows.mean(axis=0), rows.std(axis=0)])


def _name_of(statistic: Statistic) -> str:
    if statistic is _means_and_deviations:
        return "means and standard deviations"
    name = getattr(statistic, "__name__", type(statistic).__name__)
    return "statistic" if name == "<lambda>" else str(name)


# -- statistics from noisy counts: post-processing, which costs nothing ----------------


# Halvings of a bin, to the last digit.
_HALVINGS = 52


def usable_counts(counts: ArrayLike, noise_std: ArrayLike) -> Floats:
    """Noisy counts fit to divide by, and NaN for the others.

    A count is fit if it is at least one and at least twice the standard deviation of
    its own noise. The rule reads noisy values and public scales only.
    """
    # a division by a noisy count close to zero would be unbounded, whatever it divides
    counts = np.asarray(counts, dtype=float)
    least = np.maximum(1.0, 2 * np.asarray(noise_std))
    return np.where(counts >= least, counts, np.nan)


def monotone_levels(counts: ArrayLike, total: float) -> Floats:
    """Distribution function at the edges of a noisy histogram, monotone from 0 to 1.

    By isotonic regression of `counts` over `total`, in the same unit.
    """
    # Noisy bins may be negative, so their cumulative shares may fall. Take the monotone
    # ones nearest in least squares (pooling adjacent violators): they use all bins,
    # where a running maximum would keep the largest error.
    inner = np.cumsum(counts)[:-1] / total
    if inner.size:
        inner = isotonic_regression(inner, y_min=0.0, y_max=1.0)
    # known without noise: nothing lies below the first edge, all below the last
    return np.concatenate([[0.0], inner, [1.0]])


def grid_quantiles(
    counts: ArrayLike, total: float, edges: ArrayLike, quantiles: ArrayLike
) -> Floats:
    """Quantiles of a column from its noisy histogram on a public grid.

    The noisy distribution function is made monotone and interpolated inside bins by
    monotone cubic polynomials (Fritsch and Butland, 1984), over each run of bins of
    which none is empty. A total of NaN gives NaN.
    """
    if np.isnan(total):
        return np.full(np.shape(quantiles), np.nan)
    return level_quantiles(monotone_levels(counts, total), edges, quantiles)


def level_quantiles(levels: Floats, edges: ArrayLike, quantiles: ArrayLike) -> Floats:
    """Quantiles by `levels` at edges; see :func:`grid_quantiles`."""
    edges, quantiles = np.asarray(edges, dtype=float), np.asarray(quantiles, float)
    # the first edge at which the level is reached; the bin below it has mass
    upper = np.clip(np.searchsorted(levels, quantiles), 1, len(levels) - 1)
    low, high = edges[upper - 1], edges[upper]
    for at, distribution in _runs(levels, edges, upper - 1):
        for _ in range(_HALVINGS):
            middle = (low[at] + high[at]) / 2
            below = distribution(middle) < quantiles[at]
            low[at] = np.where(below, middle, low[at])
            high[at] = np.where(below, high[at], middle)
    # the upper end, so that an edge stays what it is
    values: Floats = high
    return values


def level_values(levels: Floats, edges: ArrayLike, values: ArrayLike) -> Floats:
    """Distribution function at any values: the inverse of :func:`level_quantiles`."""
    edges = np.asarray(edges, dtype=float)
    x = np.clip(np.asarray(values, dtype=float), edges[0], edges[-1])
    bins = np.clip(np.searchsorted(edges, x), 1, len(edges) - 1) - 1
    # of a bin without mass, and else in between
    found: Floats = levels[bins].copy()
    for at, distribution in _runs(levels, edges, bins):
        low, high = levels[bins[at]], levels[bins[at] + 1]
        found[at] = np.clip(distribution(x[at]), low, high)
    # known at the ends, and not up to rounding
    found[x == edges[0]] = levels[0]
    found[x == edges[-1]] = levels[-1]
    return found


def _runs(
    levels: Floats, edges: Floats, bins: Indices
) -> Iterator[tuple[Indices, PchipInterpolator]]:
    """Places of what lies in one run of bins with mass, and the function over it."""
    flat = np.diff(levels) <= 0
    empty = np.flatnonzero(flat)
    begins, ends = np.append(-1, empty) + 1, np.append(empty, len(flat))
    run = np.where(flat[bins], -1, np.searchsorted(empty, bins))
    for one in np.unique(run[run >= 0]):
        (at,) = np.nonzero(run == one)
        of_run = slice(begins[one], ends[one] + 1)
        # a tiny count has a tiny slope, whose inverse is infinite
        with np.errstate(over="ignore"):
            curve = PchipInterpolator(edges[of_run], levels[of_run])
        yield at, curve
