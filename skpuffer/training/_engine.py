"""Engine: the loop that executes a gradient release."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.draws import spawned
from skpuffer.kernel.numbers import (
    check_count,
    check_non_negative,
    check_option,
    check_positive,
    check_real,
)
from skpuffer.kernel.run import (
    Covered,
    draws_exactly,
    noise_grid,
    noise_rows,
    to_grid,
    with_room_for_grid,
)
from skpuffer.kernel.sampling import FullBatchSampling
from skpuffer.noise import strategies as make
from skpuffer.releases._bins import FreshBinsSampling
from skpuffer.utils._threads import threadpool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from skpuffer.kernel.gradients import GradientRelease
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.noise.strategies import NoiseStrategy

    from ._base import Gradients


#: So many standard deviations of its noise a gain must be above, to be one. Found on
#: four drawn tables of 600 to 8,000 records, at budgets from 0.3 to 3.
_SURE = 1.0


#: Share of a run that warms up, under the schedule of that name.
_WARM_UP = 0.05


def _warm_up_and_cosine(step: int, n_steps: int) -> float:
    """Rise on a line for a twentieth of the run, then fall on half a cosine."""
    warm = int(_WARM_UP * n_steps)
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / (n_steps - warm))) / 2


#: Factor of the learning rate at a share ``t / n_steps`` of the run, or at step t, by
#: name.
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda step, n_steps: 1.0,
    "invscaling": lambda step, n_steps: 1 / math.sqrt(step + 1),
    "linear": lambda step, n_steps: 1 - step / n_steps,
    "cosine": lambda step, n_steps: (1 + math.cos(math.pi * step / n_steps)) / 2,
    "warmup_cosine": _warm_up_and_cosine,
}


@dataclass(frozen=True, kw_only=True)
class Recalibration:
    """Last steps of a run, which find how long its parameters should be.

    Gradients are clipped to another norm there, with their noise in the same ratio, so
    that a record weighs as much against the noise as in any other step.

    Parameters
    ----------
    n_steps : int
        How many of the last steps they are, 2 at least: a grid of as many factors.
    clip_norm : float
        Norm to which gradients are clipped there.
    shortest : float, default=0.2
        Least of the factors, in (0, 1); the largest is one.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks (temperature scaling).

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease, Optimiser, Recalibration
    >>> last = Recalibration(n_steps=4, clip_norm=2.0)
    >>> optimiser = Optimiser(learning_rate=0.5, recalibration=last)
    >>> run = GradientRelease(
    ...     n_records=1000, n_steps=20, sampling="full_batch", optimiser=optimiser
    ... )
    >>> run.n_steps, run.optimiser.recalibration.n_steps
    (20, 4)
    """

    n_steps: int
    clip_norm: float
    shortest: float = 0.2

    def __post_init__(self) -> None:
        if check_count(n_steps=self.n_steps) < 2:
            raise value_error(
                "training.recalibration_steps_too_few", n_steps=self.n_steps
            )
        check_positive(clip_norm=self.clip_norm)
        if not check_positive(shortest=self.shortest) < 1:
            raise value_error(
                "training.recalibration_shortest_out_of_range", shortest=self.shortest
            )


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """Follow noisy mean gradients by stochastic gradient descent.

    Parameters
    ----------
    learning_rate : float
        Positive.
    schedule : {'constant', 'invscaling', 'linear', 'cosine', 'warmup_cosine'}, \
default='constant'
        How the learning rate falls: as one over the square root of the number of steps,
        on a line to zero, or on half a cosine, maybe after a rise.
    momentum : float, default=0.0
        In [0, 1): share of the last direction that is kept, ``v = momentum v + g``.
    nesterov : bool, default=False
        Whether to step along ``g + momentum v`` instead of v.
    average : float, default=0.0
        In [0, 1]: share of the run, counted from its end, whose iterates are averaged.
        Zero (or False) returns the last one.
    l2 : float, default=0.0
        Coefficient of half the squared norm of the parameters; an implicit step.
    penalise_all : bool, default=False
        Whether `l2` is for intercepts and biases too.
    radius : float, default=None
        Parameters are projected onto the l2 ball of this radius after each step.
    restart : bool, default=False
        Whether the direction of a parameter that is not penalised is forgotten when the
        gradient turns against it.
    recalibration : Recalibration, default=None
        The last steps of a run, if they are others.

    References
    ----------
    Sutskever et al. (2013), Initialization and momentum; Rakhlin, Shamir, Sridharan
    (2012), Averages of the end of a run; O'Donoghue and Candès (2015), Adaptive
    restart.

    Examples
    --------
    >>> from skpuffer.releases import Optimiser
    >>> optimiser = Optimiser(learning_rate=0.5, schedule="linear")
    >>> optimiser.step_sizes(4)
    [0.5, 0.375, 0.25, 0.125]
    """

    learning_rate: float
    schedule: str = "constant"
    momentum: float = 0.0
    nesterov: bool = False
    average: float = 0.0
    l2: float = 0.0
    penalise_all: bool = False
    radius: float | None = None
    restart: bool = False
    recalibration: Recalibration | None = None

    def __post_init__(self) -> None:
        # of any size: training itself says when a step overflows
        if not 0 < check_real(learning_rate=self.learning_rate) < math.inf:
            raise value_error(
                "training.learning_rate_out_of_range", learning_rate=self.learning_rate
            )
        check_option(tuple(SCHEDULES), schedule=self.schedule)
        # at one, no gradient would ever be forgotten
        if not 0 <= check_real(momentum=self.momentum) < 1:
            raise value_error("training.momentum_out_of_range", momentum=self.momentum)
        if not 0 <= check_real(average=float(self.average)) <= 1:
            raise value_error("training.average_out_of_range", average=self.average)
        # a negative penalty divides by zero at some step size, or turns the step around
        check_non_negative(l2=self.l2)
        if self.radius is not None:
            check_positive(radius=self.radius)
        if not isinstance(self.recalibration, Recalibration | None):
            raise type_error(
                "training.recalibration_wrong_type", recalibration=self.recalibration
            )
        if self.recalibration is not None and self.radius is not None:
            raise value_error("training.recalibration_with_radius")

    def step_sizes(self, n_steps: int) -> list[float]:
        """Return the learning rate at each step of a run, by the schedule."""
        # by the step's number alone, never by a loss: the data has no say in it
        schedule = SCHEDULES[self.schedule]
        return [self.learning_rate * schedule(step, n_steps) for step in range(n_steps)]

    def contractions(
        self, n_steps: int, smoothness: float, *, all_penalised: bool = True
    ) -> list[float]:
        """Return a Lipschitz constant of each step of a run in the iterate.

        For a step against the exact gradient of a convex mean loss, with the penalty
        and the projection: two runs with the same noise come no further apart than by
        this factor.

        Parameters
        ----------
        n_steps : int
        smoothness : float
            Lipschitz constant of the gradient of the mean loss; infinity if it has
            none.
        all_penalised : bool, default=True
            Whether `l2` is for all parameters: others need not contract.

        Returns
        -------
        list of float
            At most one where the step is no longer than ``2 / smoothness``. Infinite
            with momentum.

        References
        ----------
        Hardt, Recht and Singer (2016), Train faster, generalize better, Lemma 3.7.
        """
        smoothness = check_non_negative(smoothness=smoothness)
        if self.momentum:
            return [math.inf] * n_steps
        penalty = self.l2 if all_penalised else 0.0
        # the curvature is anywhere from zero to the smoothness; a projection is
        # 1-Lipschitz
        return [
            max(1.0, step * smoothness - 1) / (1 + step * penalty)
            for step in self.step_sizes(n_steps)
        ]


class RecalibrationRun:
    """State of the last steps of a run, which find a factor of all parameters.

    Gradients are taken at multiples of the parameters, on a grid up to one, and read
    along them alone. Labels stay what they are.

    Parameters
    ----------
    recalibration : Recalibration
        One of :mod:`skpuffer.releases`.
    initial : ndarray of shape (dim,)
        Parameters that only noisy gradients made.
    penalised : ndarray of bool of shape (dim,), default=None
        Which of them `l2` is for; None for all.
    l2 : float, default=0.0
        Coefficient of half their squared length.
    deviation : float, default=0.0
        Standard deviation of a coordinate of the noisy mean gradients.

    Notes
    -----
    By the trapezoidal rule, the sum of the slopes between a factor and one is how much
    the loss falls. The factor is returned of which it falls most less one deviation of
    noise.
    """

    def __init__(
        self,
        recalibration: Recalibration,
        initial: Floats,
        penalised: Booleans | None = None,
        l2: float = 0.0,
        deviation: float = 0.0,
    ):
        rule = recalibration
        # from one down, which is where the parameters are
        self._factors = np.linspace(1.0, rule.shortest, rule.n_steps)
        self._initial = initial
        squares = initial**2 if penalised is None else initial[penalised] ** 2
        self._penalty = l2 * float(np.sum(squares))
        self._deviation = deviation * float(np.linalg.norm(initial))
        self._slopes: list[float] = []

    @property
    def parameters(self) -> Floats:
        """Where the next gradient is taken, of shape (dim,)."""
        at = min(len(self._slopes), len(self._factors) - 1)
        found: Floats = self._factors[at] * self._initial
        return found

    def step(self, gradient: Floats) -> None:
        """Take the slope along the parameters of one more noisy mean gradient."""
        factor = self._factors[len(self._slopes)]
        self._slopes.append(float(gradient @ self._initial) + factor * self._penalty)

    def result(self) -> Floats:
        """Return the parameters at the factor that was found."""
        slopes = np.array(self._slopes)
        # what overflowed is found at the end of the run
        if len(slopes) < 2 or not np.all(np.isfinite(slopes)):
            return self._initial.copy()
        step = self._factors[0] - self._factors[1]
        falls = step * np.cumsum((slopes[1:] + slopes[:-1]) / 2)
        # an end of the way counts half, and all between whole
        noise = step * self._deviation * np.sqrt(np.arange(1, len(slopes)) - 0.5)
        sure = np.concatenate([[0.0], falls - _SURE * noise])
        found: Floats = self._factors[int(np.argmax(sure))] * self._initial
        return found


class Step(NamedTuple):
    """Batch, clipped sum and noise of one step, for tests. Private, not to be released.

    Parameters
    ----------
    index : ndarray of shape (size,) or None
        Rows of the batch; None for all.
    clipped_sum : ndarray of shape (dim,)
    noise : ndarray of shape (dim,)

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease, Optimiser
    >>> from skpuffer.training import LinearGradients, Squared, train
    >>> gradients = LinearGradients(Squared(), [[1.0], [0.0]], [0.5, 0.0])
    >>> run = GradientRelease(
    ...     n_records=2,
    ...     n_steps=3,
    ...     sampling="full_batch",
    ...     optimiser=Optimiser(learning_rate=0.5),
    ... )
    >>> steps = []
    >>> rng = np.random.default_rng(0)
    >>> released = train(gradients, run, GaussianNoise(), rng, record=steps)
    >>> len(steps), steps[0].index, steps[0].clipped_sum.tolist()
    (3, None, [-0.5, -0.5])
    """

    index: Indices | None  # type: ignore[assignment] # for `tuple.index`
    clipped_sum: Floats
    noise: Floats


def train(
    gradients: Gradients,
    release: GradientRelease,
    noise: Noise,
    rng: np.random.Generator,
    *,
    initial: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    record: list[Step] | None = None,
) -> Floats:
    """Execute a gradient release.

    Each step draws a batch by the release's sampling scheme, sums its clipped
    gradients, adds noise also to empty batches, divides by the public divisor, and
    follows the optimiser.

    Parameters
    ----------
    gradients : Gradients
        The model on its records.
    release : GradientRelease
        The release accounted for, with the optimiser that makes parameters of it.
    noise : Noise
        Added to each sum of clipped gradients, in their unit; with
        ``noise_position='update'`` to each iterate. A `noise_correlation` of the
        release mixes such draws.
    rng : numpy.random.Generator
    initial : array-like of shape (dim,), default=None
        Starting parameters, which must be public or released before. None is those of
        the model, which depend on no data.
    n_jobs : int, default=None
        Workers that sum up gradients of all records, as in joblib. The result is the
        same to the last digit.
    verbose : bool, default=False
        Whether to show a progress bar.
    record : list, default=None
        Gets a ``Step`` for each step. For tests: it is private.

    Returns
    -------
    parameters : ndarray of shape (dim,), float64

    Raises
    ------
    ValueError
        If the release is not one of these gradients, or the parameters overflow.

    Notes
    -----
    The generator spawns three: for the starting parameters, the batches and the noise,
    in this order. No draw depends on the data, so a run can be replayed.

    The possible rounding error of a sum is taken off the clip norm, 3 % in float32 and
    next to nothing in float64; see `Rows.slack`. Without a seed, sums and noise are
    rounded to one public grid; see :mod:`skpuffer.noise`.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    Choquette-Choo et al. (2023), (Amplified) banded matrix factorization.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import GradientRelease, Optimiser
    >>> from skpuffer.training import LinearGradients, Logistic, train
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> gradients = LinearGradients(Logistic(), X, X[:, 0] > 0)
    >>> release = GradientRelease(
    ...     n_records=1000,
    ...     batch_size=100,
    ...     n_steps=50,
    ...     optimiser=Optimiser(learning_rate=1.0),
    ... )
    >>> parameters = train(gradients, release, GaussianNoise(1.0), rng)
    >>> coef, intercept = gradients.split(parameters)
    >>> bool(coef[0, 0] > 10 * abs(coef[0, 1]))
    True
    """
    # nothing is drawn and no gradient taken before release and model fit each other
    _check(gradients, release, noise, initial)
    # Streams of their own: how much one of them is read depends on settings, and must
    # not shift the others.
    start_rng, batch_rng, noise_rng = spawned(rng, 3)
    if initial is None:
        initial = gradients.initial(start_rng)
    # post-processing: it sees nothing but noisy sums
    optimiser: Optimiser = release.optimiser
    penalised = None if optimiser.penalise_all else gradients.penalised
    last, n_first = optimiser.recalibration, release.n_steps
    if last is not None:
        n_first -= last.n_steps
    run: Any = OptimiserRun(optimiser, initial, n_first, penalised)
    clipping, share = release, 1.0
    on_update = release.noise_position == "update"
    # what overflows is looked for at the end
    with (
        threadpool().limit(limits=1, user_api="blas"),
        _clipped_sums(gradients, release, n_jobs) as clipped_sum,
        np.errstate(over="ignore", under="ignore", invalid="ignore"),
    ):
        # public and fixed: never the size of the batch that was drawn, which tells of
        # the table
        divisor = release.divisor
        # the last axis is the coordinates: one row of noise a step
        strategy, n_rows = release.noise_correlation, release.n_steps
        if strategy is not None:
            n_rows = strategy.n_rows(release.n_steps)
        # of an update, what the noise is added to is no sum, and stays as it is
        grid = None
        if draws_exactly(noise, noise_rng) and not on_update:
            noise = _with_room(noise, release, gradients.dim)
            grid = noise_grid(noise, release.n_records)
        draws = noise_rows(noise, gradients.dim, n_rows, noise_rng)
        if strategy is not None:
            # The scale is that of the draws, as it is accounted for, by this very
            # strategy. What it keeps of them is as private as they are, and gone with
            # the run.
            draws = strategy.stream(draws, release.n_steps)
        batches = release.sampling.batches(release, batch_rng)  # type: ignore[union-attr] # a scheme
        # an empty batch is a step as well: that it was empty must not show
        for step, index in enumerate(_shown(batches, release) if verbose else batches):
            if step == n_first:
                # not none, or the batches would have ended
                clipping, share = _other_clipping(release)
                run = RecalibrationRun(
                    last,  # type: ignore[arg-type]
                    run.result(),
                    penalised,
                    optimiser.l2,
                    float(np.max(noise.std())) / (share * divisor),
                )
            # no record adds more to it than the clip norm of the release
            total = share * clipped_sum(run.parameters, index, clipping)
            draw = next(draws)
            if grid is not None:
                total, draw = to_grid(total, grid), to_grid(draw, grid)
            if record is not None:
                record.append(Step(index, total, draw))
            # The optimiser sees the noisy sum alone. Whatever it makes of it is
            # post-processing; an update is noisy before anything is made of it.
            if on_update:
                run.step(total / divisor, draw)
            else:
                run.step((total + draw) / (share * divisor))
        parameters: Floats = run.result()
    # of noisy numbers alone, so the refusal tells no more than they do
    if not np.all(np.isfinite(parameters)):
        raise value_error("training.parameters_overflowed")
    return parameters


@contextmanager
def _clipped_sums(
    gradients: Gradients, release: GradientRelease, n_jobs: int | None
) -> Iterator[Callable[[Floats, Any, GradientRelease], Floats]]:
    """Yield what makes sums of clipped gradients: these gradients here, or workers."""
    # batches that are drawn are small
    is_full = isinstance(release.sampling, FullBatchSampling)
    n_workers = effective_n_jobs(n_jobs) if is_full else 1
    if n_workers > 1:
        # wanted by few: not at import
        from ._workers import SpreadSums, most_workers

        n_workers = min(n_workers, most_workers(gradients))
        if n_workers > 1:
            with SpreadSums(gradients, n_workers) as sums:
                yield sums
            return
    yield gradients.clipped_sum


def _with_room(noise: Noise, release: GradientRelease, dim: int) -> Noise:
    """Noise that covers the rounding of sums to its grid too, by next to nothing."""
    # a record moves a sum by the clip norm at least, where it counts as any record
    sensitivity = release.total_clip_norm
    covered = Covered(release.n_records, sensitivity, release.clip_order, dim)
    larger = with_room_for_grid(noise, covered)
    return noise if larger is None else larger


def _other_clipping(release: GradientRelease) -> tuple[GradientRelease, float]:
    """Release whose clip norm the last steps take, and what sums are multiplied by.

    By the ratio of the two clip norms, rounded down: each record then adds to a sum no
    more than the release says, and noise hides as much of it.
    """
    norm: Any = release.optimiser.recalibration.clip_norm
    whole = float(release.total_clip_norm)
    return replace(release, clip_norm=norm), whole / norm * (1 - 2.0**-50)


def _check(
    gradients: Gradients,
    release: GradientRelease,
    noise: Noise,
    initial: ArrayLike | None,
) -> None:
    """Check that release, gradients, noise and initial parameters belong together."""
    # optional in a release, as accounting needs none; execution does
    if release.optimiser is None:
        raise value_error("training.optimiser_missing", name=release.name)
    if release.optimiser.recalibration is not None and not gradients.is_linear:
        raise value_error("training.recalibration_needs_linear_model")
    # the larger of the two, as a batch drawn with replacement may exceed the table
    n_rows = gradients.most_rows * release.batch_size  # type: ignore[operator] # not None
    gradients.rows.check_size(max(gradients.rows.n_records, n_rows))
    # rates and divisors, and so the noise, rest on this number
    if gradients.n_records != release.n_records:
        raise value_error(
            "training.record_count_differs",
            n_records=release.n_records,
            n_rows=gradients.n_records,
        )
    # what bounds moves of gradients must be about these, or the noise is too little
    if release.record is not None:
        release.record.check(gradients)
    for name, dim in (("release", release.dim), ("noise", noise.dim)):
        if dim not in (None, gradients.dim):
            raise value_error(
                "training.dimension_differs",
                name=name,
                dim=dim,
                n_parameters=gradients.dim,
            )
    if initial is None:
        return
    initial = np.asarray(initial, dtype=np.float64)
    if initial.shape != (gradients.dim,) or not np.all(np.isfinite(initial)):
        raise value_error(
            "training.initial_invalid", dim=gradients.dim, shape=initial.shape
        )


def _shown(
    steps: Iterator[Indices | None], release: GradientRelease
) -> Iterator[Indices | None]:
    """The steps, with a progress bar."""
    from tqdm.auto import tqdm  # a display, wanted by few: not at import

    shown: Iterator[Indices | None] = tqdm(
        steps, total=release.n_steps, desc=release.name, unit="step"
    )
    return shown


# -- runs of an optimiser on noisy gradients: their defaults, and their steps ----------
# The defaults follow from public facts, and the steps from noisy sums: both are
# post-processing throughout.


#: Clip norm that is short enough for any noise.
LEAST_CLIP_NORM = 0.3

# Found on five data sets of 133 to 75,000 records and 2 to 10 classes, at budgets from
# 0.5 to 8; accuracy is flat around each of them.
_SCORE_NOISE = 1.2  # standard deviation that the noise may give a logistic score
_LARGEST_CLIP_NORM = 0.75
_FEWEST_STEPS, _MANY_STEPS, _MOST_STEPS = 50, 100, 200
_AFFORDABLE = 10**6  # records read in all, beyond which more steps are not worth it
_USUAL_MOMENTUM, _MOST_MOMENTUM = 0.5, 0.95
_AVERAGE = 0.3

# Of regressions, found on nine tables of 330 to 26,000 records and 5 to 58 columns, two
# with skewed targets, at budgets from 0.1 to 3.
_REGRESSION_NOISE, _FEW, _REGRESSION_GROWTH = 0.4, 50.0, 0.35
_SHORTEST_OF_REGRESSION, _MANY = 0.1, 1000.0

# Found on these and on eight tables more, of rare and overlapping classes among them:
# how many steps train for each that recalibrates, and how many times the noise of one
# sum records must be for them to be worth their own (over the root of the number of
# parameters too).
_TRAINING_FOR_ONE_MORE, _FEWEST_RECALIBRATING = 10, 4
_RECALIBRATED_FROM, _RECALIBRATED_BY_PARAMETER = 100.0, 25.0


def travel(n_records: int, multiplier: float, smoothness: float) -> float:
    """How far parameters may travel before noise weighs in scores."""
    return _SCORE_NOISE * min(1.0, 0.5 / smoothness) * n_records / multiplier


class OptimiserRun:
    """State of one run of stochastic gradient descent.

    Parameters
    ----------
    optimiser : Optimiser
        One of :mod:`skpuffer.releases`.
    initial : ndarray of shape (dim,)
        Starting parameters: public, or released before.
    n_steps : int
    penalised : ndarray of bool of shape (dim,), default=None
        Which parameters the optimiser's `l2` is for; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Optimiser
    >>> from skpuffer.training import OptimiserRun
    >>> run = OptimiserRun(Optimiser(learning_rate=0.5), np.zeros(1), n_steps=2)
    >>> run.step(np.array([-2.0])), run.step(np.array([1.0]))
    (array([1.]), array([0.5]))
    >>> run.result()
    array([0.5])
    """

    def __init__(
        self,
        optimiser: Optimiser,
        initial: ArrayLike,
        n_steps: int,
        penalised: Booleans | None = None,
    ):
        self._optimiser = optimiser
        self._done = 0
        #: Current iterate, of shape (dim,).
        # into the ball, as a start outside of it would count in an average
        self.parameters = self._project(np.array(initial, dtype=np.float64))
        self._velocity = np.zeros_like(self.parameters)
        weight = 1.0 if penalised is None else np.asarray(penalised, dtype=np.float64)
        restarts = optimiser.restart and optimiser.momentum > 0
        self._free = None if penalised is None or not restarts else ~penalised
        self._l2 = optimiser.l2 * weight
        # rounded up, so that any positive share averages one iterate at least
        n_averaged = math.ceil(float(optimiser.average) * n_steps)
        self._first_averaged = n_steps - n_averaged
        self._sum = np.zeros_like(self.parameters)
        self._rates = optimiser.step_sizes(n_steps)

    def step(self, gradient: Floats, noise: Floats | None = None) -> Floats:
        """Return the parameters after one more noisy mean gradient, as a new array.

        `noise` is added to the updated parameters, where it is not in the gradient.
        """
        optimiser = self._optimiser
        # Sutskever et al. (2013), with the velocity in units of gradients and not of
        # steps
        if optimiser.momentum:
            if self._free is not None:
                self._velocity[self._free & (self._velocity * gradient < 0)] = 0.0
            self._velocity = optimiser.momentum * self._velocity + gradient
            if optimiser.nesterov:
                gradient = gradient + optimiser.momentum * self._velocity
            else:
                gradient = self._velocity
        rate = self._rates[self._done]
        moved = self.parameters - rate * gradient
        if optimiser.l2:
            # implicitly, so that no penalty is too strong for the learning rate; over
            # 1 - momentum, as much as momentum makes of the other gradient
            moved = moved / (1 + rate / (1 - optimiser.momentum) * self._l2)
        # after the penalty, so that the iterate is in the ball whatever came before
        self.parameters = self._project(moved)
        # outside of it then, so that nothing but post-processing follows the noise
        if noise is not None:
            self.parameters = self.parameters + noise
        # added up as they come: no iterate has to be kept
        if self._done >= self._first_averaged:
            self._sum += self.parameters
        self._done += 1
        return self.parameters

    def result(self) -> Floats:
        """Return the last iterate, or the mean of the last ones."""
        n_averaged = self._done - self._first_averaged
        # asked before the average begins, or of a run that averages nothing
        if n_averaged <= 0:
            return self.parameters.copy()
        return self._sum / n_averaged

    def _project(self, parameters: Floats) -> Floats:
        """Project onto the l2 ball of the optimiser's radius, if it has one."""
        radius = self._optimiser.radius
        if radius is not None:
            length = np.linalg.norm(parameters)
            # scaled, not cut: the nearest point of the ball lies on the way to the
            # origin
            if length > radius:
                parameters = parameters * (radius / length)
        return parameters


@dataclass(frozen=True, kw_only=True)
class RunDefaults:
    """Hyperparameters of a training run on rows of norm one.

    Parameters
    ----------
    n_steps : int
        Number of noisy gradient sums, each of all records.
    clip_norm : float
        Norm to which an example's gradient is scaled down.
    learning_rate : float
        Step size for the mean of clipped gradients.
    momentum, average : float
        As in :class:`~skpuffer.releases.Optimiser`.
    recalibration : Recalibration or None
        The last ones of the steps, if they are others.
    """

    n_steps: int
    clip_norm: float
    learning_rate: float
    momentum: float
    average: float
    recalibration: Recalibration | None = None


def run_defaults(
    n_records: int,
    multiplier: float,
    smoothness: float,
    *,
    n_steps: int | None = None,
    clip_norm: float | None = None,
    schedule: str | None = None,
    longest_step: float | None = None,
    unclipped_norm: float | None = None,
    n_parameters: int = 1,
    regression: bool = False,
) -> RunDefaults:
    """Return hyperparameters from public facts that balance noise and signal.

    Parameters
    ----------
    n_records : int
    multiplier : float
        Standard deviation, in units of the clip norm, of the noise that one sum of all
        gradients would take alone. Several sums take sqrt(n_steps) times as much each.
    smoothness : float
        Lipschitz constant of the loss's derivative; infinity counts as one.
    n_steps, clip_norm : optional
        Values that were decided already; the rest is fitted to them.
    schedule : str, default=None
        As in :class:`~skpuffer.releases.Optimiser`; None is 'constant'.
    longest_step : float, default=None
        Longest step of a run of which only the last iterate is released, without
        momentum; None is any other run.
    unclipped_norm : float, default=None
        Clip norm that scales no gradient down, of a run that may end in recalibration;
        None is one that may not.
    n_parameters : int, default=1
        Read for that choice alone.
    regression : bool, default=False
        Whether scores are numbers in units of half the range of a target.

    Returns
    -------
    RunDefaults

    Notes
    -----
    *Distance.* If every clipped gradient pointed the same way, the parameters would
    travel ``R = C * rate * n_steps`` with the clip norm C, while noise gives the score
    of a row of norm one a standard deviation of ``R * multiplier / n_records``. R is
    chosen so that this is about one (less for more sharply curved losses). R follows
    from the number of records and the budget alone.

    *Clip norm.* It is 0.3. With many records the distance asks for more than stable
    steps can make in few epochs; then it grows, up to 0.75.

    *Steps.* A step of ``2 / smoothness`` is stable on any rows of norm one, and
    momentum makes it longer. Between 50 and 100 steps are taken, or 200 where they read
    no more than a million records, as many as keep the momentum at 0.5; otherwise it
    may grow to 0.95. The mean of the last third of the iterates is released. Where only
    the last one may be, 200 short steps are taken.

    *Recalibration.* Clipping biases scores towards the more certain side. Where the
    records are more than 100 times the noise of one sum, and than 25 times with the
    root of the number of parameters, a step in eleven comes last and clips nothing:
    together these find one factor of all parameters (see
    :class:`~skpuffer.releases.Recalibration`).

    *Regression.* R is 0.4 of the above, growing with the records over the noise of one
    sum to 1.2. The clip norm is 0.3 where they are 1000 times as many, shorter where
    they are fewer and longer where they are more: short ones lead to a median, not to
    the mean.

    *Schedule.* Where steps are shorter than the longest one for a part of the run, that
    one is made longer, so that they go as far together, within what is stable with a
    momentum of 0.95.

    Examples
    --------
    >>> from skpuffer.training import run_defaults
    >>> run_defaults(n_records=400, multiplier=4.0, smoothness=0.25).n_steps
    50
    >>> run_defaults(n_records=100_000, multiplier=4.0, smoothness=0.25).n_steps
    100
    """
    check_count(n_records=n_records)
    check_count(n_parameters=n_parameters)
    if unclipped_norm is not None:
        check_positive(unclipped_norm=unclipped_norm)
    check_positive(multiplier=multiplier)
    # nothing counts as more curved than the squared loss: a corner, which is sharp at
    # one score alone, says little of steps that go far
    smoothness = min(check_positive(smoothness=min(smoothness, 1.0)), 1.0)
    # R of the notes, solved for the noise that a score may have
    distance = travel(n_records, multiplier, smoothness)
    shortest = LEAST_CLIP_NORM
    if regression:
        many = n_records / multiplier
        noise = _REGRESSION_NOISE * (many / _FEW) ** _REGRESSION_GROWTH
        distance *= min(1.0, noise / _SCORE_NOISE)
        # as the root, so that noise and bias fall alike
        shortest = LEAST_CLIP_NORM * math.sqrt(many / _MANY)
        shortest = min(_LARGEST_CLIP_NORM, max(_SHORTEST_OF_REGRESSION, shortest))
    # momentum m makes steps 1 / (1 - m) times as long in the long run
    stable = 2 / smoothness
    usual, longest = stable / (1 - _USUAL_MOMENTUM), stable / (1 - _MOST_MOMENTUM)
    average, fewest = _AVERAGE, _FEWEST_STEPS
    if longest_step is not None:
        stable = usual = longest = min(stable, longest_step)
        # short steps take the place of the average: what one adds, the next ones calm
        average, fewest = 0.0, _MOST_STEPS
    least = _RECALIBRATED_BY_PARAMETER * math.sqrt(n_parameters)
    if min(1.0, 0.5 / smoothness) * n_records / multiplier < max(
        _RECALIBRATED_FROM, least
    ):
        unclipped_norm = None
    n_last = 0
    if n_steps is not None and unclipped_norm is not None:
        n_last = n_steps // (_TRAINING_FOR_ONE_MORE + 1)
        if n_last < _FEWEST_RECALIBRATING:
            n_last = 0
        n_steps -= n_last
    if n_steps is None:
        # no further in more steps than in few: more only make each a calmer one
        distance = min(distance, _LARGEST_CLIP_NORM * longest * _MANY_STEPS)
        most = max(_MANY_STEPS, min(_AFFORDABLE // n_records, _MOST_STEPS))
        wanted = min(distance / (LEAST_CLIP_NORM * usual), most)
        n_steps = max(fewest, math.ceil(wanted))
        if unclipped_norm is not None:
            n_last = n_steps // _TRAINING_FOR_ONE_MORE
    # what the distance needs at the longest step, within the two norms of the notes
    if clip_norm is None:
        least = max(shortest, distance / (n_steps * longest))
        clip_norm = min(_LARGEST_CLIP_NORM, least)
    # R = C * rate * n_steps of the notes, solved for the rate
    rate = distance / (clip_norm * n_steps)
    if schedule is not None:
        factor = SCHEDULES[check_option(tuple(SCHEDULES), schedule=schedule)]
        # with the mean step of the run in the place of the rate
        rate /= sum(factor(step, n_steps) for step in range(n_steps)) / n_steps
    rate = min(rate, longest)
    # steps longer than is stable are made of shorter ones that follow each other
    momentum = max(0.0, 1 - stable / rate)
    total, recalibration = n_steps + n_last, None
    if n_last:
        recalibration = Recalibration(n_steps=n_last, clip_norm=unclipped_norm)  # type: ignore[arg-type] # not None
    return RunDefaults(
        n_steps=total,
        clip_norm=clip_norm,
        learning_rate=(1 - momentum) * rate,
        momentum=momentum,
        average=average,
        recalibration=recalibration,
    )


# -- correlation of noise, as a user asks for it who does not know the run yet ---------


# Diagonals of what is made by its name: of more of them there is less to gain than of
# the first ones, and accounting for them takes longer.
_BANDWIDTH = 4

#: Strategies by their names, each made for a number of steps, of batches of an epoch
#: and of diagonals.
NOISE_CORRELATIONS: dict[str, Callable[[int, int, int], NoiseStrategy]] = {
    "banded_square_root": lambda n, b, p: make.banded_square_root(p),
    "banded_inverse_square_root": lambda n, b, p: make.banded_inverse_square_root(p),
    "banded_matrix_factorization": (
        lambda n, b, p: make.banded_matrix_factorization(n, p, b)
    ),
    "banded_inverse_factorization": (
        lambda n, b, p: make.banded_inverse_factorization(n, p, b)
    ),
    "buffered_linear_toeplitz": (
        lambda n, b, p: make.buffered_linear_toeplitz(n, n_batches=b)
    ),
    "prefix_sum_tree": lambda n, b, p: make.prefix_sum_tree(n),
}


def strategy_of_run(asked: Any, release: GradientRelease) -> NoiseStrategy | None:
    """Return the strategy for a run, given it or its name; None is independent noise.

    Banded strategies made by their names have four diagonals, or as many as an epoch
    has steps. It is None where every step is an epoch.
    """
    if not isinstance(asked, str):
        strategy: NoiseStrategy = asked
        return strategy
    named = NOISE_CORRELATIONS[
        check_option(tuple(NOISE_CORRELATIONS), noise_correlation=asked)
    ]
    n_batches, n_steps = release.steps_per_epoch, release.n_steps
    if n_batches == 1:
        return None
    width = min(_BANDWIDTH, n_batches)
    # bins that are dealt anew must find noise that is independent of the last ones'
    if isinstance(release.sampling, FreshBinsSampling):
        return make.restarted(named(n_batches, n_batches, width), every=n_batches)
    return named(n_steps, n_batches, width)
