"""K-means whose centres are released with noise, round by round."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._raw_tables import check_size
from skpuffer._template._reading import without_secret
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import PrivacyWarning, Statement, UnsupportedError, value_error
from skpuffer.kernel.numbers import check_count, check_option
from skpuffer.releases import AdaptiveRelease, PublicContext, Sensitivity, Stage
from skpuffer.schema import Number
from skpuffer.utils._bounds import BOUNDS_LEAK, Bounds, check_bounds, resolve_bounds
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import slices, validate_rows
from skpuffer.utils._silence import warn
from skpuffer.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Encoding, Schema
    from skpuffer.utils._types import BoundsLike, RandomState, Table


@dataclass(frozen=True)
class BoundedColumns:
    """Numbers, scaled to [-1, 1] by their bounds."""

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
            at += column.has_gaps
        return found


class PrivateKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    PrivateEstimatorMixin,
):
    """Cluster records by k-means on noisy counts and sums of cells.

    Many public centres are moved to where records are in two noisy rounds, clustered to
    `n_clusters`, and moved in three more. Centres are in the units of the data.
    Distances are those of :class:`~sklearn.cluster.KMeans` on rows scaled to [-1, 1] by
    their bounds.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, chosen without the data.
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting, with Gaussian noise, or Laplace noise for a pure promise.
        None is (1, 1e-5)-differential privacy by `PrivacyLoss` under a
        `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped. None takes the scenario's
        range. 'empirical' reads the private data and warns.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds`. Numbers are scaled by their bounds, amounts by those of their
        logarithm, and each level is a column of 0 and 1.
    n_init_centers : int or '4k', default='4k'
        Public centres to start from; ``'4k'`` is four for each cluster.
    schedule : pair of int or 'auto', default='auto'
        Rounds on the many centres, and on the final ones; half of the budget goes to
        either. ``'auto'`` is (2, 3), or (1, 2) with Laplace noise.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_columns)
        Noisy centres, within the bounds and in the units of the data, or in the columns
        of a schema's encoding.
    counts_ : ndarray of shape (n_clusters,)
        Noisy numbers of records in the cells of the last round, at least zero.
    counts_std_ : float
        Standard deviation of the noise in each count; zero where all centres are one.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise, in units of each round.
    release_ : AdaptiveRelease
        The rounds as they were accounted for, with their units.
    accountant_ : Accountant
        The accountant that set the noise.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    A round releases, for each cell, a weighted count and the sum of its records'
    clipped differences from the centre. Where the noise of a count is many times what
    an average cell holds, all centres are one noisy mean, and a warning says so. Cells
    of private rows and their inertia are private: do not release what `predict` and
    `score` return.

    References
    ----------
    Su, Cao, Li, Bertino and Jin (2016), Differentially private k-means clustering;
    Dong, Roth and Su (2022), Gaussian differential privacy.

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
            raise value_error(
                "cluster.fewer_samples_than_clusters", n_records=context.n_records, k=k
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
        X = without_secret(self, X)
        rows = validate_rows(self, X, dtype=np.float64, reset=False)
        scaled: Floats = self._columns.scaled(rows)
        return scaled

    def predict(self, X: Table) -> Indices:
        """Return the nearest centre of each record, of equally near ones the first."""
        return nearest(self._rows(X), self._places)

    def transform(self, X: Table) -> Floats:
        """Return the distance of each record to each centre, in half-ranges."""
        distances: Floats = np.sqrt(squared_distances(self._rows(X), self._places))
        return distances

    def score(self, X: Table, y: ArrayLike | None = None) -> float:
        """Return minus the sum of squared distances to centres; it is not private."""
        distances = squared_distances(self._rows(X), self._places)
        return -float(distances.min(axis=1).sum())

    def fit_predict(
        self, X: Table, y: ArrayLike | None = None, **fit_params: Any
    ) -> Indices:
        """Fit, and return the cell of each record; the result is not private."""
        return self.fit(X, y, **fit_params).predict(X)


def _check_schedule(schedule: Any) -> None:
    """Refuse what is no pair of positive counts."""
    numbers = tuple(schedule) if np.ndim(schedule) == 1 else ()
    if len(numbers) != 2:
        raise value_error("cluster.schedule_not_a_pair", schedule=schedule)
    for number in numbers:
        check_count(schedule=number)


def _no_bounds() -> UnsupportedError:
    return UnsupportedError(Statement("cluster.bounds_missing"))


# -- cells of centres: the nearest centre of a record, and sums of records by cell -----


#: Rows whose distances to all centres are held at once.
_BLOCK = 2**12

#: Clipped differences are whole multiples of this, so that their sums are exact in any
#: order, of up to 2**30 records: no record changes how those of others are rounded.
_GRAIN = 2.0**-20


def squared_distances(rows: Floats, centres: Floats) -> Floats:
    """Return squared distances of rows to centres, each of its own row alone.

    A matrix product would round the distance of a row by which rows are beside it, so
    that one record could move another one into another cell.
    """
    # rows along the fast axis: there are more of them than centres
    total = np.zeros((len(centres), len(rows)))
    gap = np.empty_like(total)
    columns = np.ascontiguousarray(rows.T)
    for column, places in zip(columns, centres.T, strict=True):
        np.subtract(column, places[:, None], out=gap)
        np.multiply(gap, gap, out=gap)
        total += gap
    return total.T


def nearest(rows: Floats, centres: Floats) -> Indices:
    """Return the nearest centre of each row, of equally near ones the first."""
    found: Indices = np.empty(len(rows), dtype=np.intp)
    for part in slices(len(rows), _BLOCK):
        found[part] = squared_distances(rows[part], centres).argmin(axis=1)
    return found


@dataclass(frozen=True)
class CellSums:
    """Counts of cells, and sums of records relative to the centres, clipped.

    A record fills the block of its cell with ``(weight, clip(row - centre, radius))``,
    and leaves all others at zero.

    Parameters
    ----------
    radius : float
        To which the difference of a record and its centre is clipped, in `norm`.
    norm : {2.0, 1.0}, default=2.0
        2 for Gaussian noise, 1 for Laplace noise.
    """

    radius: float
    n_columns: int
    norm: float = 2.0

    @property
    def weight(self) -> float:
        """Number that counts one record.

        The mean of a cell whose centre is off by l has the squared error
        ``(d + (l / a)**2) * s(a)**2`` by noise, for the weight a and the sensitivity s.
        It is least here, for the typical length of a clipped difference: `radius` in
        l2, and ``radius / sqrt(d)`` where it is clipped in l1.
        """
        power = -1 / 4 if self.norm == 2 else -2 / 3
        weight: float = self.radius * float(self.n_columns) ** power
        return weight

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sums to one record, whatever the centres are.

        A record that is replaced stays in its cell, where differences may be opposite,
        or moves to another, which changes two blocks.
        """
        a, length = self.weight, self.radius
        # largest norms of a clipped difference, in l2 and l1
        total = length * math.sqrt(self.n_columns) if self.norm == 2 else length
        block = math.hypot(a, length)
        return Sensitivity(
            add_remove={2: block, 1: a + total},
            replace={2: max(2 * length, math.sqrt(2) * block), 1: 2 * (a + total)},
        )

    def __call__(self, rows: Floats, centres: Floats) -> Floats:
        """Return the exact sums, which must not be released without noise.

        In each cell `weight` times the count, then the sum of clipped differences.
        """
        k = len(centres)
        sums = np.zeros((k, 1 + self.n_columns))
        for part in slices(len(rows), _BLOCK):
            cells = squared_distances(rows[part], centres).argmin(axis=1)
            moved = clip_rows(rows[part] - centres[cells], self.radius, self.norm)
            # toward zero, by which no norm grows
            moved = np.trunc(moved / _GRAIN) * _GRAIN
            sums[:, 0] += np.bincount(cells, minlength=k)
            for at, column in enumerate(moved.T, start=1):
                sums[:, at] += np.bincount(cells, weights=column, minlength=k)
        sums[:, 0] *= self.weight
        return sums


# -- rounds of private k-means as they are executed, and what each leaves behind -------


#: Part of the budget of the rounds on the many centres.
INITIAL_SHARE = 0.5

#: Clip radii of the first rounds of either kind, in units of the box; the last of each
#: is that of all rounds after them.
INITIAL_RADII = (0.4, 0.25)
FINAL_RADII = (0.2, 0.15)

#: The same under a pure promise, of which fewer rounds can be paid.
PURE_INITIAL_RADII = (0.3, 0.2)

#: Rounds on the many centres and on the final ones, by norm of the noise.
AUTO_ROUNDS = {2.0: (2, 3), 1.0: (1, 2)}

#: Points of the box for each public centre, at least so many in all.
_POINTS, _LEAST_POINTS = 50, 2000

#: How much nearer the middle every second point is: data is rarer near the corners.
_SHRUNK = 0.6

#: Standard deviations of a count that an average cell of the many centres must hold:
#: where it holds less, noise forbids learning where clusters are.
LEAST_COUNT = 0.06


@dataclass(frozen=True)
class Plan:
    """Rounds of private k-means, from public facts alone.

    Parameters
    ----------
    n_initial : int
        Public centres to start from, at least `n_clusters`.
    box : Bounds
        Box of the rows as they are clustered.
    rounds : (int, int)
        Numbers of rounds on the many centres, and on the final ones.
    norm : {2.0, 1.0}
        2 for Gaussian noise, 1 for Laplace noise.
    """

    n_records: int
    n_clusters: int
    n_initial: int
    box: Bounds
    rounds: tuple[int, int]
    norm: float

    @cached_property
    def sums(self) -> tuple[CellSums, ...]:
        """Sums of each round."""
        d = len(self.box.low)
        # length of the half-diagonal of the box
        half = float(np.linalg.norm(self.box.half, self.norm))
        initial = INITIAL_RADII if self.norm == 2 else PURE_INITIAL_RADII
        radii = [
            known[min(at, len(known) - 1)]
            for known, times in zip((initial, FINAL_RADII), self.rounds, strict=True)
            for at in range(times)
        ]
        return tuple(CellSums(radius * half, d, self.norm) for radius in radii)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The rounds as stages of a release."""
        first, last = self.rounds
        sizes = [self.n_initial] * first + [self.n_clusters] * last
        shares = [INITIAL_SHARE / first] * first + [(1 - INITIAL_SHARE) / last] * last
        return tuple(
            Stage(f"round {at}", k * (1 + sums.n_columns), sums.sensitivity, share)
            for at, (k, sums, share) in enumerate(
                zip(sizes, self.sums, shares, strict=True), start=1
            )
        )

    def can_learn(self, deviation: float) -> bool:
        """Whether the noise of the first round leaves the place of clusters visible."""
        count = deviation / self.sums[0].weight
        return self.n_records >= LEAST_COUNT * self.n_initial * count


# no data enters: the box and the number are public
@lru_cache(maxsize=64)
def public_centres(k: int, box: Bounds) -> Floats:
    """Return centres spread over a box, the same ones always."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(max(_LEAST_POINTS, _POINTS * k), len(box.low)))
    points[::2] *= _SHRUNK
    found = KMeans(k, n_init=1, random_state=0).fit(points).cluster_centers_
    centres: Floats = box.middle + found * box.half
    centres.flags.writeable = False
    return centres


#: Standard deviations of its noise that the count of a centre must exceed to be kept.
_KEPT = 1.5

#: Standard deviations that are taken off the count of a kept centre where centres are
#: merged, down to a tenth of one: what noise alone makes weighs nothing beside others.
_TAKEN_OFF, _LEAST_WEIGHT = 2.0, 0.1

#: Restarts of the clustering of noisy centres.
_RESTARTS = 10


class Centres(NamedTuple):
    """Centres, and the noisy counts of their cells.

    Parameters
    ----------
    places : ndarray of shape (k, d)
    counts : ndarray of shape (k,)
        They sum to the number of records; one may be below zero.
    """

    places: Floats
    counts: Floats


def moved(
    noisy: Floats,
    places: Floats,
    sums: CellSums,
    *,
    deviation: float,
    n_records: int,
    box: Bounds,
) -> Centres:
    """Return centres moved to the noisy means of their cells.

    Every step is shrunk by the factor of James and Stein (1961), positive part, and is
    no longer than the radius that differences were clipped to. Counts are made to sum
    to the public `n_records`.
    """
    k, d = places.shape
    counts = noisy[:, 0] / sums.weight
    counts = counts + (n_records - counts.sum()) / k
    # a count below its own noise says nothing, and must not be divided by
    floored = np.maximum(counts, deviation / sums.weight)[:, None]
    step = noisy[:, 1:] / floored
    length = np.linalg.norm(step, axis=1, keepdims=True)
    # of a step of zero nothing is left in any case
    length = np.maximum(length, np.finfo(float).tiny)
    noise = (deviation / floored) ** 2
    shrunk = np.maximum(0.0, 1 - max(0, d - 2) * noise / length**2)
    step = step * np.minimum(shrunk, sums.radius / length)
    return Centres(np.clip(places + step, box.low, box.high), counts)


def merged(centres: Centres, k: int, deviation: float) -> Floats:
    """Return k centres of the many that have more records than noise makes."""
    places, counts = centres
    kept = np.flatnonzero(counts > _KEPT * deviation)
    if len(kept) < k:
        kept = np.argsort(-counts, kind="stable")[:k]
    weights = np.maximum(
        counts[kept] - _TAKEN_OFF * deviation, _LEAST_WEIGHT * deviation
    )
    # a fixed seed: noisy values and public facts are all that goes in
    found = KMeans(k, n_init=_RESTARTS, random_state=0)
    with warnings.catch_warnings():
        # noise may have brought several of them to one corner of the box
        warnings.simplefilter("ignore", ConvergenceWarning)
        found.fit(places[kept], sample_weight=weights)
    clustered: Floats = found.cluster_centers_
    return clustered


#: Standard deviation of a mean about the middle of its bounds, in half-ranges, as far
#: as is known beforehand.
_PRIOR = 0.2


def noisy_centres(
    rows: Floats,
    plan: Plan,
    release: AdaptiveRelease,
    noise: Noise,
    rng: np.random.Generator,
) -> Centres:
    """Execute the rounds of a plan."""
    box, n = plan.box, plan.n_records
    found = Centres(public_centres(plan.n_initial, box), np.zeros(plan.n_initial))
    for at, sums in enumerate(plan.sums):
        deviation = release.deviation(at, noise)
        noisy = release.noisy(at, sums(rows, found.places), noise, rng)
        found = moved(
            noisy, found.places, sums, deviation=deviation, n_records=n, box=box
        )
        if at + 1 == plan.rounds[0]:
            places = merged(found, plan.n_clusters, deviation / sums.weight)
            found = Centres(places, np.zeros(plan.n_clusters))
    return found


def noisy_mean(
    rows: Floats,
    plan: Plan,
    release: AdaptiveRelease,
    noise: Noise,
    rng: np.random.Generator,
) -> Centres:
    """Execute the same rounds with all centres in one place; see `noisy_centres`.

    Each round observes the mean with noise of a known variance, which the Kalman filter
    puts together, beginning from the middle of the box.
    """
    n, k = plan.n_records, plan.n_clusters
    place, variance = plan.box.middle[None], (_PRIOR * plan.box.half) ** 2
    for at, sums in enumerate(plan.sums):
        several = plan.n_initial if at < plan.rounds[0] else k
        exact = sums(rows, np.repeat(place, several, axis=0))
        step = release.noisy(at, exact, noise, rng)[0, 1:] / n
        gain = variance / (variance + (release.deviation(at, noise) / n) ** 2)
        place = np.clip(place + gain * step, plan.box.low, plan.box.high)
        variance = (1 - gain) * variance
    counts = np.zeros(k)
    counts[0] = n
    return Centres(np.repeat(place, k, axis=0), counts)
