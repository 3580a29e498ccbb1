"""Engine: the loop that executes a gradient release."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from skpuffer.exceptions import Statement
from skpuffer.kernel.draws import spawned
from skpuffer.kernel.rounding import (
    draws_exactly,
    noise_grid,
    to_grid,
    with_room_for_grid,
)
from skpuffer.kernel.run import noise_rows
from skpuffer.kernel.sampling import FullBatchSampling
from skpuffer.utils._threads import threadpool

from ._optimiser import OptimiserRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.kernel.gradients import GradientRelease, Optimiser, Recalibration

    from ._base import Gradients

__all__ = ["Step", "train"]


#: So many standard deviations of its noise a gain must be above, to be one. Found on
#: four drawn tables of 600 to 8,000 records, at budgets from 0.3 to 3.
_SURE = 1.0


class RecalibrationRun:
    """State of the last steps of a run, which find a factor of all parameters.

    Gradients are taken at multiples of the parameters, on a grid up to one, and read
    along them alone, so that one direction of their noise matters. Labels stay what
    they are.

    Parameters
    ----------
    recalibration : Recalibration
        Of :mod:`skpuffer.releases`.
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
    The sum of the slopes between a factor and one, by the trapezoidal rule, is how much
    the loss falls. Its noise is known, and grows with the way; returned is the factor
    of which the loss falls most when one standard deviation is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import Recalibration
    >>> from skpuffer.training._engine import RecalibrationRun
    >>> run = RecalibrationRun(
    ...     Recalibration(n_steps=3, clip_norm=1.0, shortest=0.5), np.array([2.0, 0.0])
    ... )
    >>> for _ in range(3):
    ...     run.step(run.parameters - np.array([1.5, 9.0]))
    >>> run.result()
    array([1.5, 0. ])
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
        """Take the slope along the parameters of one more noisy mean gradient.

        Parameters
        ----------
        gradient : ndarray of shape (dim,)
        """
        factor = self._factors[len(self._slopes)]
        self._slopes.append(float(gradient @ self._initial) + factor * self._penalty)

    def result(self) -> Floats:
        """Return the parameters at the factor that was found.

        Returns
        -------
        ndarray of shape (dim,)
            As they were where no other factor is better for sure.
        """
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
    A test may look at what was summed:

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

    At each step: a batch, by the sampling scheme of the release; the sum of its
    gradients, clipped as the release says; noise, correlated with that of other steps
    if the release says so, also where the batch is empty; the division by the public
    divisor of the release; a step of the optimiser.

    Parameters
    ----------
    gradients : Gradients
        The model on its records.
    release : GradientRelease
        What has been accounted for, with the optimiser that makes parameters of it.
    noise : Noise
        Added to each sum of clipped gradients, in their unit; with
        ``noise_position='update'`` to each iterate, in that of the parameters. Where
        the release has a `noise_correlation`, the strategy mixes such draws: the scale
        is theirs, not that of what is added.
    rng : numpy.random.Generator
    initial : array-like of shape (dim,), default=None
        Starting parameters, which must be public or released before: None for those of
        the model, which depend on no data.
    n_jobs : int, default=None
        Workers that sum up gradients of all records, as joblib has it; None is 1 unless
        in a ``joblib.parallel_config``. The result is the same to the last digit. It
        has no effect on batches that are drawn, nor on small tables.
    verbose : bool, default=False
        Whether to show a progress bar.
    record : list, default=None
        Gets a :class:`Step` for each step. For tests: it is private.

    Returns
    -------
    parameters : ndarray of shape (dim,), float64

    Raises
    ------
    ValueError
        If the release is not one of these gradients, the parameters overflow, or a
        model is recalibrated that is not linear.

    Notes
    -----
    The generator spawns three: for the starting parameters, for the batches and for the
    noise, in this order. The last two are read by nothing else, and no draw depends on
    the data, so a run can be replayed.

    Floating point rounds. What that may add to how far a record moves a sum is taken
    off the clip norm, 3 % in float32 and next to nothing in float64; see `Rows.slack`.
    Without a seed, sums and noise are rounded to one public grid; see
    :mod:`skpuffer.noise`. Linear algebra takes one thread, as blocks of rows are small:
    more cores are made use of by `n_jobs`. Workers get the records, and draw nothing.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    Choquette-Choo et al. (2023), (Amplified) banded matrix factorization: a unified
    approach to private training (noise that is correlated across steps).

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
    optimiser: Optimiser = release.optimiser  # type: ignore[assignment] # not None
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
        raise ValueError(Statement("training.parameters_overflowed"))
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
    larger = with_room_for_grid(
        noise, release.n_records, sensitivity, release.clip_order, dim
    )
    return noise if larger is None else larger


def _other_clipping(release: GradientRelease) -> tuple[GradientRelease, float]:
    """Release whose clip norm the last steps take, and what sums are multiplied by.

    By the ratio of the two clip norms, rounded down: each record then adds to a sum no
    more than the release says, and noise hides as much of it.
    """
    norm: Any = release.optimiser.recalibration.clip_norm  # type: ignore[union-attr] # not None
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
        raise ValueError(Statement("training.optimiser_missing", name=release.name))
    if release.optimiser.recalibration is not None and not gradients.is_linear:
        raise ValueError(Statement("training.recalibration_needs_linear_model"))
    # the larger of the two, as a batch drawn with replacement may exceed the table
    gradients.rows.check_size(max(release.n_records, release.batch_size))  # type: ignore[type-var, arg-type] # not None
    # rates and divisors, and so the noise, rest on this number
    if gradients.rows.n_records != release.n_records:
        raise ValueError(
            Statement(
                "training.record_count_differs",
                n_records=release.n_records,
                n_rows=gradients.rows.n_records,
            )
        )
    # what bounds moves of gradients must be about these, or the noise is too little
    if release.record is not None:
        release.record.check(gradients)
    for name, dim in (("release", release.dim), ("noise", noise.dim)):
        if dim not in (None, gradients.dim):
            raise ValueError(
                Statement(
                    "training.dimension_differs",
                    name=name,
                    dim=dim,
                    n_parameters=gradients.dim,
                )
            )
    if initial is None:
        return
    initial = np.asarray(initial, dtype=np.float64)
    if initial.shape != (gradients.dim,) or not np.all(np.isfinite(initial)):
        raise ValueError(
            Statement(
                "training.initial_invalid", dim=gradients.dim, shape=initial.shape
            )
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
