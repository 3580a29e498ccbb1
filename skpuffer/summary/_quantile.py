"""Private quantiles of columns, as exact as ranks allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skpuffer._template._weights import with_weights, without_weights
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.numbers import check_positive, check_probability
from skpuffer.kernel.run import noisy_scores
from skpuffer.releases import SelectionRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.utils._sklearn import StrOptions

from ._mean import BoundedColumnsMixin, marks_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


#: Candidates of a grid at most.
MOST = 2**24

# Steps of the public grid between the bounds where no resolution is given, and parts of
# one step. A value that many records hold is one step, whose share of the bounds is its
# odds before any record is read: of finer steps it would take more records to be found.
_FINE, _IN_STEP = 2**40, 2**20

# Within which a value is a multiple of the resolution, in steps: those that are written
# in decimals are rounded.
_SAME = 1e-8

# Weights are read in parts of the largest, so that sums of them are exact.
_PARTS = 2.0**20


class Halving(NamedTuple):
    """Choice of one quantile among the records between two that were chosen before.

    Parameters
    ----------
    place : int
        Place of its level, in order.
    level : float
        Level of the quantile among these records, in (0, 1).
    left, right : int
        Places of the two; -1 and the number of levels stand for the bounds.
    """

    place: int
    level: float
    left: int
    right: int


def halvings(levels: tuple[float, ...]) -> list[list[Halving]]:
    """Return the `Halving`s of each round, so that each choice halves the rest."""
    ends = [0.0, *levels, 1.0]  # of the place p the one at p + 1
    rounds, open_ranges = [], [(-1, len(levels))]
    while open_ranges:
        chosen, inside = [], []
        for left, right in open_ranges:
            place = (left + right) // 2
            low, high = ends[left + 1], ends[right + 1]
            level = (ends[place + 1] - low) / (high - low)
            chosen.append(Halving(place, level, left, right))
            inside += [(left, place), (place, right)]
        rounds.append(chosen)
        open_ranges = [(a, b) for a, b in inside if b - a > 1]
    return rounds


@dataclass(frozen=True)
class RankScores:
    """Scores of the values of a column as its quantiles.

    With L records below a value and G above it, its score for the quantile at the
    ``max((1 - q) L - q (n - L), q G - (1 - q) (n - G), 0)``, with n the records of the
    table at hand: the distance to the quantile's rank. Candidates are the ends of 2**40
    equal steps between the bounds, or the multiples of a resolution from the lower
    bound; records are rounded to these. The middle one of several quantiles is chosen
    first, and those on either side in later rounds, among the records between earlier
    choices.

    Parameters
    ----------
    position : int
        Position of the column.
    levels : tuple of float
        In (0, 1), increasing, one choice each.
    low, high : float
        Public bounds: what lies outside is read as the nearer one.
    mark : int or None, default=None
        Column that is one where the value is missing: such a record is passed over.
        None if none ever is.
    weighted : bool, default=False
        Whether the last two columns are the weight of each record, in [0, 1], and what
        it lacks of one. L, G and n are then sums of weights.

    Notes
    -----
    A record that is added or removed moves ``(1 - q) L - q (n - L)`` by 1 - q or -q,
    and ``q G - (1 - q) (n - G)`` by q or -(1 - q). So no score moves by more than
    max(q, 1 - q), and the range is at most twice that. For the median it is one: what
    scores lose on one side of the record they gain on the other. If a record is
    replaced, either moves by one at most, and the range is at most two. The number of
    records need not be public. A record of weight s moves by s times as much when it is
    added or removed; when replaced, the move is linear in both weights, and largest
    where each is zero or one.

    Given the choices of earlier rounds, those of one are made on disjoint records. A
    record that is added or removed is among those of one choice only. One that is
    replaced may move two choices.

    With several levels, or no resolution, records of a multiple are spread evenly over
    the cell about it, and what is chosen is read as the nearest multiple.

    References
    ----------
    Kaplan, Schnapp and Stemmer (2022), Differentially private approximate quantiles.

    Examples
    --------
    >>> from skpuffer.summary._quantile import RankScores
    >>> RankScores(0, (0.25,), 0.0, 1.0).ranges("add_remove")
    (1.5,)
    >>> RankScores(0, (0.25, 0.5, 0.75), 0.0, 1.0).ranges("add_remove")
    (1.0, 1.0)
    """

    position: int
    levels: tuple[float, ...]
    low: float
    high: float
    resolution: float | None = None
    mark: int | None = None
    weighted: bool = False

    @property
    def dim(self) -> int:
        """Number of choices."""
        return len(self.levels)

    @property
    def is_finite(self) -> bool:
        """Whether a grid of values is chosen from, by their scores alone."""
        return self.resolution is not None and self.dim == 1

    #: Cells and multiples are public.
    on_grid: ClassVar[bool] = True

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return how far scores move apart with one record, for each round."""
        found = []
        for chosen in halvings(self.levels):
            alone = sorted(2 * max(one.level, 1 - one.level) for one in chosen)
            # what is not known to cost less is a record that is replaced: among the
            # records of one choice, or from those of one to those of another
            across = sum(alone[-2:]) if len(alone) > 1 else 0.0
            found.append(alone[-1] if relation == "add_remove" else max(2.0, across))
        return tuple(found)

    def choose(self, X: Any, noise: Noise, rng: np.random.Generator) -> Floats:
        """Choose a value for each level, by scores with noise of their own."""
        X, weights = np.asarray(X), None
        if self.mark is not None:
            X = X[X[:, self.mark] == 0]
        if self.weighted:
            X, weights = without_weights(X)
            weights = np.rint(weights * _PARTS) / _PARTS
        # a map that changed since it was read may hold NaN: as any other number
        x = np.nan_to_num(X[:, self.position], nan=self.high)
        x = np.clip(x, self.low, self.high)
        # in steps from the lower bound; as written in decimals, a multiple may be off
        width = self.high - self.low
        if self.resolution is None:
            size, steps = _FINE + 1, np.rint((x - self.low) / width * _FINE)
        else:
            size = grid_size(self.low, self.high, self.resolution)
            steps = (x - self.low) / self.resolution
        nearest = np.rint(steps)
        steps = np.where(np.abs(steps - nearest) < _SAME, nearest, steps)
        if self.is_finite:
            below, upto = (
                np.cumsum(np.bincount(side(steps).astype(int), weights, size))
                for side in (np.floor, np.ceil)
            )
            whole, below = below[-1], np.concatenate([[0], below[: size - 1]])
            level = self.levels[0]
            at = _chosen(below, upto[:size], level, whole, 0.0, noise, rng)
            found = np.array([at])
        else:
            # a multiple is the middle of a step, over which its records are spread
            half = _IN_STEP // 2
            ends = np.rint(steps * _IN_STEP).astype(np.int64) + half
            tied = steps == nearest
            ends[tied] += rng.integers(-half, half, np.count_nonzero(tied))
            # an upper bound beyond the last multiple is beyond all cells
            ends, reached = _in_order(np.minimum(ends, size * _IN_STEP), weights)
            inside = self._between(ends, reached, size * _IN_STEP, noise, rng)
            found = inside // _IN_STEP
        if self.resolution is None:
            return np.minimum(self.low + width * (found / _FINE), self.high)
        values: Floats = np.minimum(self.low + self.resolution * found, self.high)
        return values

    def _between(
        self,
        ends: Indices,
        reached: Floats | Indices,
        size: int,
        noise: Noise,
        rng: np.random.Generator,
    ) -> Indices:
        """Choose cells of a grid, by sorted records at the ends of cells.

        `reached` are the weights of the first records, of none and of all.
        """
        # by place, from the lower bound to the upper one: a cell, and the records
        # below it
        cells = np.zeros(self.dim + 2, dtype=np.int64)
        cells[-1] = size - 1
        below = np.zeros(self.dim + 2, dtype=np.intp)
        below[-1] = len(ends)
        for chosen in halvings(self.levels):
            for one in chosen:
                left, right = one.left + 1, one.right + 1
                first = below[left]
                inside = ends[first : below[right]]
                edges = np.concatenate([[cells[left]], inside, [cells[right] + 1]])
                widths = np.diff(edges)
                with np.errstate(divide="ignore"):
                    # a cell between two records is as likely as any other of these
                    measure = np.log(widths)
                ranks = reached[first : below[right] + 1] - reached[first]
                n = ranks[-1]
                at = _chosen(ranks, ranks, one.level, n, measure, noise, rng)
                cells[one.place + 1] = edges[at] + rng.integers(widths[at])
                below[one.place + 1] = first + at
        return cells[1:-1]


def _in_order(
    ends: Indices, weights: Floats | None
) -> tuple[Indices, Floats | Indices]:
    """Sort records, and sum up the weights of those below each, and of all."""
    if weights is None:
        return np.sort(ends), np.arange(len(ends) + 1)
    order = np.argsort(ends, kind="stable")
    return ends[order], np.concatenate([[0.0], np.cumsum(weights[order])])


def _chosen(
    below: Floats | Indices,
    upto: Floats | Indices,
    level: float,
    n: float,
    measure: Floats | float,
    noise: Noise,
    rng: np.random.Generator,
) -> int:
    """Place of what is chosen, by the records below and up to each candidate."""
    rank = level * n
    # minus the distance of the rank of the quantile from those of a candidate
    score = -np.maximum(np.maximum(below - rank, rank - upto), 0.0)
    score /= noise.scale
    return int(np.argmax(noisy_scores(score + measure, noise, rng)))


def grid_size(low: float, high: float, resolution: float) -> int:
    """Number of multiples of a resolution within bounds, from the lower one."""
    # as written in decimals: a last one that rounding would put just outside
    return int(np.floor((high - low) / resolution * (1 + 1e-12))) + 1


class PrivateQuantile(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Choose quantiles of each feature by noisy ranks; the median by default.

    Each value is chosen by how many records lie on the wrong side of it. Its error in
    ranks is about the logarithm of the range over epsilon. The value is an end of one
    of 2**40 equal steps between the bounds, or a multiple of `resolution`.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        :class:`~skpuffer.accountants.PrivacyLoss`,
        :class:`~skpuffer.accountants.RenyiDP` or :class:`~skpuffer.accountants.Best`;
        or, for pure differential privacy,
        ``GroupPrivacy(alpha=float("inf"), noise="laplace")``. Scores have Gumbel or
        exponential noise. None is (1, 1e-5)-differential privacy by `PrivacyLoss` under
        a `RecordScenario`, and the same budget by `Best` otherwise.
    quantiles : float or array-like of float, default=0.5
        Levels in (0, 1). k levels of a feature cost what log2(k + 1) medians do,
        rounded up. For many, :class:`PrivateCDF` may cost less.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped. They may be wide: their
        logarithm counts. None takes the scenario's range. 'empirical' reads the private
        data and warns. A :class:`PrivateBounds` spends a part of the budget.
    resolution : float or array-like of shape (n_features,), default=None
        Public distance of the values that a feature can have, from its lower bound: 1
        for whole numbers. None is 1 for the whole numbers of a `schema` with at most
        2**24 values, else a 2**40th of the bounds. A coarser step, of about two ranks
        of the noise's scale, errs up to an eighth less.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest. Half of all weights then
        lie below a median.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. Results for dates are numbers of units, which
        :meth:`~skpuffer.schema.Date.present` makes into dates.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features) or (n_features,)
        Within the bounds, in the order of the levels; of one dimension if `quantiles`
        is a number.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : GumbelNoise or ExponentialNoise
        The noise that was added to scores, in records, of the largest weight.
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
    PrivateCDF : The whole distribution function at once, on a public grid.
    PrivateSummary : Quantiles by group and beside other statistics.

    Notes
    -----
    *Mechanism.* Between records it is the exponential mechanism (Gumbel noise on
    scores). On a resolution, a single quantile is chosen by permute-and-flip
    (exponential noise) where the accountant's scale for it is about as small.

    *Several quantiles* of one feature are chosen in rounds: the middle one first, then
    those on either side, among the records between earlier choices. Records of one
    round are disjoint, so a round costs what one choice does, and quantiles are in
    order.

    *Quantiles near the ends* cost more where records are added or removed: the range of
    the scores is ``2 max(q, 1 - q)`` then, and two where one is replaced.

    References
    ----------
    Smith (2011), Privacy-preserving statistical estimation with optimal convergence
    rates; Kaplan, Schnapp and Stemmer (2022), Differentially private approximate
    quantiles (rounds); McKenna and Sheldon (2020), Permute-and-flip.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateQuantile
    >>> X = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> quartiles = PrivateQuantile(quantiles=[0.25, 0.5, 0.75], bounds=(-1e3, 1e3))
    >>> found = quartiles.fit(X).quantiles_[:, 0]
    >>> bool(np.allclose(found, [-0.67, 0, 0.67], atol=0.02))
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "quantiles": ["array-like", float],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "resolution": ["array-like", float, int, None],
    }

    fit = WeightedFit()

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        quantiles: float | ArrayLike = 0.5,
        bounds: BoundsLike = None,
        resolution: float | ArrayLike | None = None,
        weight_bounds: tuple[float, float] | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.quantiles = quantiles
        self.bounds = bounds
        self.resolution = resolution
        self.weight_bounds = weight_bounds
        self.schema = schema
        self.random_state = random_state

    # choices need no number of records
    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("quantile.laws_for_scores")
        levels = np.asarray(self.quantiles, dtype=object)
        if levels.ndim > 1 or levels.size == 0:
            raise value_error("quantile.levels_out_of_range", quantiles=self.quantiles)
        for q in levels.ravel().tolist():
            check_probability(quantiles=q)
        if self.resolution is not None:
            steps = np.asarray(self.resolution, dtype=object)
            if steps.ndim > 1:
                raise value_error(
                    "quantile.resolution_invalid", resolution=self.resolution
                )
            for step in steps.ravel().tolist():
                check_positive(resolution=step)

    def _release(self, task: Task) -> SelectionRelease:
        context: Any = task.context
        bounds = self._public_bounds(task)
        if bounds is None:
            raise value_error("quantile.bounds_missing")
        # a level that is asked for twice is chosen once
        levels = tuple(np.unique(np.asarray(self.quantiles, float)).tolist())
        marks = marks_of(context)
        places = [at for at in range(len(bounds.low)) if at not in marks.values()]
        weighted = task.weighting is not None
        candidates = self._candidates(bounds.select(places), places, context)
        return SelectionRelease(
            n_records=context.n_records,
            scores=tuple(
                RankScores(place, levels, *of_one, marks.get(place), weighted)
                for place, of_one in zip(places, candidates, strict=True)
            ),
            name="quantiles",
            context=context,
            assumptions=(Statement("assume.values_clipped"),),
        )

    def _candidates(
        self, bounds: Any, places: list[int], context: Any
    ) -> list[tuple[float, float, float | None]]:
        """First, last and distance of the candidates of each feature."""
        lows, highs = list(bounds.low), list(bounds.high)
        d = len(lows)
        if self.resolution is None:
            found: list[tuple[float, float, float | None]]
            found = [(*pair, None) for pair in zip(lows, highs, strict=True)]
            if self.schema is not None:
                for position, low, high in context.feature_map.whole_numbers:
                    if high - low < MOST:
                        found[places.index(position)] = (low, high, 1.0)
            return found
        given = np.asarray(self.resolution, dtype=float)
        if given.ndim and given.size != d:
            raise value_error(
                "quantile.resolution_count_differs", size=given.size, n_features=d
            )
        steps = np.broadcast_to(given, d).tolist()
        for low, high, step in zip(lows, highs, steps, strict=True):
            size = grid_size(low, high, step)
            if not 2 <= size <= MOST:
                raise value_error(
                    "quantile.resolution_too_coarse"
                    if size < 2
                    else "quantile.resolution_too_fine",
                    step=step,
                    low=low,
                    high=high,
                    most=MOST,
                )
        return list(zip(lows, highs, steps, strict=True))

    def _check_weighted(self, task: Task, release: Any) -> None:
        # scores read the weights of rows, but a unit may have some on either side
        if task.context.of_units:
            super()._check_weighted(task, release)

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        X = task.X if task.weights is None else with_weights(task.X, task.weights)
        chosen: Floats = release.choose(X, noise, rng)
        return chosen

    def _publish(self, value: Any, release: Any) -> None:
        levels = np.asarray(self.quantiles, dtype=float)
        chosen = value.reshape(len(release.scores), -1).T
        # in the order asked for, of which the release has each level once
        found = chosen[np.unique(levels.ravel(), return_inverse=True)[1]]
        self.quantiles_ = found if levels.ndim else found[0]
