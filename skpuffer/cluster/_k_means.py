"""K-means whose centres are released with noise, round by round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skpuffer._raw_tables import check_size
from skpuffer.accountants._layout import stage_layout
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import PrivacyWarning, Statement, UnsupportedError
from skpuffer.kernel.numbers import check_count, check_option
from skpuffer.releases import AdaptiveRelease, PublicContext
from skpuffer.schema import Number
from skpuffer.utils._bounds import BOUNDS_LEAK, Bounds, check_bounds, resolve_bounds
from skpuffer.utils._reading import validate_rows
from skpuffer.utils._sklearn import Interval, StrOptions
from skpuffer.utils._warn import warn

from ._cells import nearest, squared_distances
from ._rounds import AUTO_ROUNDS, Plan, noisy_centres, noisy_mean

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Encoding, Schema
    from skpuffer.utils._types import BoundsLike, RandomState, Table

__all__ = ["PrivateKMeans"]


@dataclass(frozen=True)
class BoundedColumns:
    """Numbers, scaled to [-1, 1] by their bounds.

    Parameters
    ----------
    bounds : Bounds
    """

    bounds: Bounds

    @property
    def box(self) -> Bounds:
        """Bounds of what is clustered."""
        d = len(self.bounds.low)
        return Bounds((-1.0,) * d, (1.0,) * d)

    def scaled(self, X: Floats) -> Floats:
        """Return rows to cluster."""
        return self.bounds.normalise(X)

    def raw(self, places: Floats) -> Floats:
        """Return places in the units of the data."""
        found: Floats = self.bounds.middle + places * self.bounds.half
        return found


@dataclass(frozen=True)
class EncodedColumns:
    """Rows of a code book: numbers in [-1, 1], amounts by their logarithm, levels 0, 1.

    Parameters
    ----------
    encoding : Encoding
        With the scale 'box'.
    """

    encoding: Encoding

    @property
    def box(self) -> Bounds:
        """Bounds of what is clustered."""
        return Bounds(tuple(self.encoding.low), tuple(self.encoding.high))

    def scaled(self, X: Floats) -> Floats:
        """Return rows to cluster: as they have been encoded."""
        return np.clip(X, self.encoding.low, self.encoding.high)

    def raw(self, places: Floats) -> Floats:
        """Return places in the units of the code book, levels as they are."""
        found, at = places.copy(), 0
        schema = self.encoding.schema
        for name in schema.names:
            column = schema[name]
            if isinstance(column, Number):
                low, high = column.scale(np.array([column.low, column.high]))
                middle, half = (low + high) / 2, (high - low) / 2
                found[:, at] = column.unscale(middle + places[:, at] * half)
                at += 1
            else:
                at += len(column.levels)
            at += column.missing_level
        return found


class PrivateKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    PrivateEstimatorMixin,
):
    """k-means clustering by noisy counts and sums of cells.

    It starts from many public centres, which two noisy rounds move to where records
    are; those with more records than noise makes are clustered to `n_clusters`, and
    three more rounds move these. Centres are in the units of the data, distances in
    half-ranges of the features: those of :class:`~sklearn.cluster.KMeans` on rows that
    are scaled to [-1, 1] by their bounds.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; no value of the data may decide on it.
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario. Its
        noise must be Gaussian, or Laplace noise for a pure promise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features: numbers, or arrays of shape (n_features,), all
        lows before all highs; in a dict by name for a data frame, else by position,
        where keys that are no columns are passed over. What lies outside is clipped.
        None takes the range the scenario declares (that of its public prior), as a
        dict does for columns it lacks. ``'empirical'`` reads the range off the private
        data, warns, and leaves an estimate for a certificate.
    schema : Schema, default=None
        Public code book of the table, in place of `bounds`. With it, raw columns are
        read, texts and gaps among them: numbers scaled by their bounds, amounts by
        those of their logarithm, and each level of a category as a column of 0 and 1.
    n_init_centers : int or '4k', default='4k'
        Public centres to start from; ``'4k'`` is four for each cluster.
    schedule : pair of int or 'auto', default='auto'
        Rounds on the many centres, and on the final ones: ``'auto'`` is (2, 3), or
        (1, 2) with Laplace noise, which pays for each by itself. Half of the budget
        goes to either.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_columns)
        Noisy centres, within the bounds and in the units of the data. With a `schema`
        its columns are those of the encoding: a level's is the share of the level.
    counts_ : ndarray of shape (n_clusters,)
        Noisy numbers of records in the cells of the last round, at least zero.
    counts_std_ : float
        Standard deviation of the noise in each count; zero where all centres are one,
        of all records.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise, in units of each round.
    release_ : AdaptiveRelease
        The rounds as they were accounted for, with their units.
    accountant_ : Accountant
        The accountant that set the noise.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    sklearn.cluster.KMeans : Without privacy.

    Notes
    -----
    A round releases, for each cell, a weighted count and the sum of its records'
    differences from the centre, clipped. Where the noise of a count is many times
    what an average cell holds, by public facts alone, no cluster could be found: all
    centres are then one noisy mean, and a warning says so.

    Cells of private rows, and their inertia, stay with the caller of `predict` and
    `score`; nothing of them is kept.

    References
    ----------
    Su, Cao, Li, Bertino and Jin (2016), Differentially private k-means clustering;
    Dong, Roth and Su (2022), Gaussian differential privacy, for the rounds together.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skpuffer.cluster import PrivateKMeans
    >>> X, _ = make_blobs(10_000, centers=[[-5, 0], [5, 0]], random_state=0)
    >>> model = PrivateKMeans(n_clusters=2, bounds=(-10, 10)).fit(X)
    >>> bool(abs(abs(model.cluster_centers_[:, 0]) - 5).max() < 0.5)
    True
    >>> model.predict(X).shape
    (10000,)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "n_init_centers": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"4k"}),
        ],
        "schedule": ["array-like", StrOptions({"auto"})],
    }

    # rows in the same scale whatever is read
    _schema_scale = "box"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        bounds: BoundsLike = None,
        schema: Schema | None = None,
        n_init_centers: int | str = "4k",
        schedule: tuple[int, int] | str = "auto",
        random_state: RandomState = None,
    ):
        self.n_clusters = n_clusters
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.schema = schema
        self.n_init_centers = n_init_centers
        self.schedule = schedule
        self.random_state = random_state

    # -- the fit ------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        k = check_count(n_clusters=self.n_clusters)
        # words apart from numbers, by plain code: arrays have no single truth value
        if isinstance(self.n_init_centers, str):
            check_option(("4k",), n_init_centers=self.n_init_centers)
        else:
            check_count(n_init_centers=self.n_init_centers, least=k)
        if isinstance(self.schedule, str):
            check_option(("auto",), schedule=self.schedule)
        else:
            _check_schedule(self.schedule)
        check_bounds(self.bounds)
        if self.schema is None and self.bounds is None and scenario.any_records:
            raise _no_bounds()

    def _leaks(self) -> tuple[Statement, ...]:
        # only 'empirical' is a text: the range of a column is its two outermost records
        return (BOUNDS_LEAK,) if isinstance(self.bounds, str) else ()

    def _read_columns(self, task: Task) -> BoundedColumns | EncodedColumns:
        """How columns are scaled, from public facts."""
        context: Any = task.context  # of a fit, which knows the number of features
        if self.schema is not None:
            return EncodedColumns(context.feature_map)
        bounds = resolve_bounds(
            self.bounds,
            context.n_features,
            scenario=task.scenario,
            context=context,
            X=task.X,
        )
        if bounds is None:
            raise _no_bounds()
        return BoundedColumns(bounds)

    def _plan(self, n_records: int, columns: Any, norm: float) -> Plan:
        """Rounds from parameters and public facts."""
        k = int(self.n_clusters)
        many = 4 * k if isinstance(self.n_init_centers, str) else self.n_init_centers
        auto = isinstance(self.schedule, str)
        rounds: Any = AUTO_ROUNDS[norm] if auto else self.schedule
        first, last = map(int, rounds)
        return Plan(n_records, k, int(many), columns.box, (first, last), norm)

    def _release(self, task: Task) -> AdaptiveRelease:
        context, k = task.context, int(self.n_clusters)
        if k > context.n_records:
            raise ValueError(
                Statement(
                    "cluster.fewer_samples_than_clusters",
                    n_records=context.n_records,
                    k=k,
                )
            )
        check_size(self, context.n_records)
        columns = self._read_columns(task)
        layout = stage_layout(task.accountant, task.scenario)
        return AdaptiveRelease(
            n_records=context.n_records,
            stages=self._plan(context.n_records, columns, layout.norm).stages,
            relation=layout.relation,
            norm=layout.norm,
            name="rounds of k-means",
            # what publishes has no data, so how columns are read travels along
            context=replace(context, bounds=columns),
            assumptions=(Statement("assume.values_clipped"),),
        )

    def _announce_noise(self, release: Any, noise: Noise) -> None:
        plan = self._plan(release.n_records, release.context.bounds, release.norm)
        if not plan.can_learn(release.deviation(0, noise)):
            warn(
                Statement(
                    "cluster.noise_merges_centres",
                    owner=type(self).__name__,
                    n_clusters=plan.n_clusters,
                    n_records=plan.n_records,
                ),
                PrivacyWarning,
            )

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        columns = release.context.bounds
        plan = self._plan(release.n_records, columns, release.norm)
        # read off the noise, which is public
        learns = plan.can_learn(release.deviation(0, noise))
        run = noisy_centres if learns else noisy_mean
        found = run(columns.scaled(task.X), plan, release, noise, rng)
        return np.column_stack([found.counts, found.places])

    def _publish(self, value: Any, release: Any) -> None:
        # no count is below zero
        self.counts_ = np.maximum(value[:, 0], 0.0)
        self._columns, self._places = release.context.bounds, value[:, 1:]
        plan = self._plan(release.n_records, self._columns, release.norm)
        noise = release.deviation(-1, self.noise_) / plan.sums[-1].weight
        learnt = plan.can_learn(release.deviation(0, self.noise_))
        self.counts_std_ = noise if learnt else 0.0
        self.cluster_centers_ = self._columns.raw(self._places)
        # public: the context it had may hold private rows
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)
        self._n_features_out = len(value)

    # -- post-processing ----------------------------------------------------------

    def _rows(self, X: Table) -> Floats:
        """Rows in the scale of the centres."""
        check_is_fitted(self)
        X = self._without_secret(X)
        rows = validate_rows(self, X, dtype=np.float64, reset=False)
        scaled: Floats = self._columns.scaled(rows)
        return scaled

    def predict(self, X: Table) -> Indices:
        """Return the nearest centre of each record.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is dropped.

        Returns
        -------
        ndarray of int of shape (n_records,)
            Of equally near centres the first.
        """
        return nearest(self._rows(X), self._places)

    def transform(self, X: Table) -> Floats:
        """Return the distance of each record to each centre, in half-ranges.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is dropped.

        Returns
        -------
        ndarray of shape (n_records, n_clusters)
        """
        distances: Floats = np.sqrt(squared_distances(self._rows(X), self._places))
        return distances

    def score(self, X: Table, y: ArrayLike | None = None) -> float:
        """Return minus the sum of squared distances to the nearest centres.

        Exact, for whoever holds the records: of private ones it is not to be released.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is dropped.
        y : None
            Ignored.

        Returns
        -------
        float
            In squares of half-ranges.
        """
        distances = squared_distances(self._rows(X), self._places)
        return -float(distances.min(axis=1).sum())

    def fit_predict(
        self, X: Table, y: ArrayLike | None = None, **fit_params: Any
    ) -> Indices:
        """Fit, and return the cell of each record: for whoever holds the records.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
        y : None
            Ignored.
        **fit_params : dict
            As of :meth:`fit`.

        Returns
        -------
        ndarray of int of shape (n_records,)
        """
        return self.fit(X, y, **fit_params).predict(X)


def _check_schedule(schedule: Any) -> None:
    """Refuse what is no pair of positive counts."""
    numbers = tuple(schedule) if np.ndim(schedule) == 1 else ()
    if len(numbers) != 2:
        raise ValueError(Statement("cluster.schedule_not_a_pair", schedule=schedule))
    for number in numbers:
        check_count(schedule=number)


def _no_bounds() -> UnsupportedError:
    return UnsupportedError(Statement("cluster.bounds_missing"))
