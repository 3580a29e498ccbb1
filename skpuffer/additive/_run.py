"""One run of an additive model: noisy histograms, a basis of them, noisy rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from skpuffer.exceptions import Statement
from skpuffer.releases import AdaptiveRelease, Optimiser, Sensitivity, Stage
from skpuffer.training import OptimiserRun

from ._basis import (
    Basis,
    ShapeFunction,
    cell_labels,
    cell_masses,
    make_basis,
    merged_cells,
)
from ._codes import CodedRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.releases import PublicContext
    from skpuffer.schema import Binning
    from skpuffer.training import Loss


def probabilities_of(scores: Floats, clip: float) -> Floats:
    """Probabilities of classes from scores."""
    if scores.ndim == 1:
        raw = np.column_stack([expit(-scores), expit(scores)])
        return corrected(raw, np.abs(1 - raw), clip)
    raw = softmax(scores, axis=1)
    # |e_j - p|^2 = 1 - 2 p_j + |p|^2
    squares = 1 - 2 * raw + np.sum(raw**2, axis=1, keepdims=True)
    return corrected(raw, np.sqrt(np.maximum(squares, 0.0)), clip)


def corrected(probabilities: Floats, residuals: Floats, clip: float) -> Floats:
    """Undo in part what clipped residuals do to probabilities.

    Where a residual of class j is scaled down by a_j, the fit is stationary at
    probabilities p that obey P_j proportional to p_j / a_j. Divided by the root of a_j:
    the full power suits labels that are noisy, none such that are separable. The order
    of the classes stays, for any clip norm of at least a half.
    """
    odds = probabilities * np.sqrt(np.maximum(residuals / clip, 1.0))
    shares: Floats = odds / np.sum(odds, axis=1, keepdims=True)
    return shares


def clipped_curvature(scores: Floats, clip: float) -> Floats:
    """Mean derivative of clipped residuals by the scores, by output.

    For labels that follow the scores' own probabilities; a clipped residual does not
    move.
    """
    if scores.shape[1] == 1:
        p = np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        unclipped = np.sum(p * (1 - p <= clip), axis=1)
        return np.array([np.mean(p[:, 0] * p[:, 1] * unclipped)])
    p = softmax(scores, axis=1)
    squares = 1 - 2 * p + np.sum(p**2, axis=1, keepdims=True)
    unclipped = np.sum(p * (squares <= clip**2), axis=1, keepdims=True)
    curvature: Floats = np.mean(p * (1 - p) * unclipped, axis=0)
    return curvature


#: Rows that are drawn from the released masses to find how curved the loss is.
_DRAWS = 1000


def mean_curvature(
    basis: Basis,
    functions: Sequence[Floats],
    intercept: Floats,
    clip: float,
    *,
    classification: bool,
) -> Floats:
    """Mean curvature of the loss of clipped residuals, by output.

    Over rows drawn from the released masses as if features were independent.
    """
    if not classification:
        return np.ones(intercept.size)
    rng = np.random.default_rng(0)
    scores = np.tile(intercept, (_DRAWS, 1))
    for function, masses in zip(functions, basis.masses, strict=True):
        shares = np.maximum(masses, 0.0)
        scores += function[rng.choice(masses.size, _DRAWS, p=shares / shares.sum())]
    return clipped_curvature(scores, clip)


def standard_errors(
    basis: Basis,
    plan: RoundPlan,
    n_rounds: int,
    deviation: float,
    n_records: float,
    curvature: Floats,
) -> list[Floats]:
    """Standard deviation that the noise of the rounds gives each function.

    To first order a round moves parameter j by the noise and by minus ``n * curvature *
    s_j`` times what noise has made of it before, s_j the variance of its column under
    the masses. So the mean of the last iterates has a variance in closed form.
    Correlation between features is left out.
    """
    # noise in units of the sum of residuals times rows
    noise = deviation * plan.clip * LARGEST_NORM
    pairs = zip(basis.masses, basis.tables, strict=True)
    variances = np.concatenate([masses @ table**2 for masses, table in pairs])
    pull = n_records * np.multiply.outer(variances, curvature)
    spread = _spread_of_average(pull, plan.step, plan.momentum, n_rounds)
    parts = zip(basis.tables, basis.split(spread), strict=True)
    return [noise * np.sqrt(table**2 @ part) for table, part in parts]


def _spread_of_average(
    pull: Floats, step: float, momentum: float, n_rounds: int
) -> Floats:
    """Variance of the mean of the last iterates, for noise of variance one a round."""
    n_averaged = int(np.ceil(AVERAGE * n_rounds))
    velocity, moved = np.ones_like(pull), step * np.ones_like(pull)
    # sums of the answers up to each round after the noise
    sums = [np.zeros_like(pull), moved]
    for _ in range(n_rounds - 1):
        velocity = momentum * velocity - pull * moved
        moved = moved + step * velocity
        sums.append(sums[-1] + moved)
    total = np.zeros_like(pull)
    for left in range(1, n_rounds + 1):
        # noise that `left` iterates feel, of which the first are not averaged
        before = max(0, left - n_averaged)
        total += ((sums[left] - sums[before]) / n_averaged) ** 2
    return total


#: Part of the privacy, in mu squared, that the histograms take.
HISTOGRAM_SHARE = 0.05
#: Coarse cells of a pair, at most, less those that centring takes.
_PAIR_WIDTH = 49

_HISTOGRAMS, _ROUNDS = 0, 1


@dataclass(frozen=True)
class Problem:
    """Public facts of an additive model that is to be fitted.

    Parameters
    ----------
    binning : Binning
        Binning of the features.
    pairs : tuple of (int, int)
        Positions of features that interact.
    """

    binning: Binning
    pairs: tuple[tuple[int, int], ...]
    loss: Loss
    n_outputs: int

    @property
    def most_parameters(self) -> int:
        """Number of parameters, however many directions the basis keeps."""
        features = sum(n - 1 for n in self.binning.n_cells)
        pairs = _PAIR_WIDTH * len(self.pairs)
        return (features + pairs + 1) * self.n_outputs


def additive_release(
    problem: Problem,
    context: PublicContext,
    *,
    layout: dict[str, Any],
    rounds: int | None,
    assumptions: tuple[Statement, ...],
) -> AdaptiveRelease:
    """Release of histograms and rounds as one mechanism.

    One record is in one cell of each of K histograms: sqrt(K) in l2 if it is added or
    removed, sqrt(2 K) if it is replaced. A sum of a round is in units of the largest
    addend, so it moves by one, or by two. A record of a smaller weight moves both by
    less.
    """
    k, n = len(problem.binning.n_cells), context.n_records
    histograms = Sensitivity(
        add_remove={1.0: k, 2.0: math.sqrt(k), math.inf: 1.0},
        replace={1.0: 2.0 * k, 2.0: math.sqrt(2 * k), math.inf: 1.0},
        relabel={1.0: 0.0, 2.0: 0.0, math.inf: 0.0},
    )
    # two, not sqrt(2): centred rows may point away from each other
    sums = Sensitivity(add_remove={2.0: 1.0}, replace={2.0: 2.0})
    rounds = n_rounds(n, k) if rounds is None else rounds
    cells = sum(problem.binning.n_cells)
    return AdaptiveRelease(
        n_records=n,
        stages=(
            Stage("histograms of the features", cells, histograms, HISTOGRAM_SHARE),
            Stage(
                "sums of residuals",
                problem.most_parameters,
                sums,
                1 - HISTOGRAM_SHARE,
                rounds,
            ),
        ),
        **layout,
        name="additive model",
        context=context,
        assumptions=assumptions,
    )


@dataclass(frozen=True)
class AdditiveRun:
    """All that leaves a run, and what is made of it.

    Parameters
    ----------
    histograms : list of ndarray of shape (n_cells,)
        Noisy counts of each feature.
    deviation : float
        Deviation of their noise.
    masses : list of ndarray of shape (n_cells,)
    merged : list of ndarray of int of shape (n_cells,)
        Coarse cells, where features interact.
    functions : list of ndarray of shape (n_cells, n_outputs)
        Functions of features and pairs.
    errors : list of ndarray of shape (n_cells, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """

    histograms: list[Floats]
    deviation: float
    masses: list[Floats]
    merged: list[Indices]
    basis: Basis
    plan: RoundPlan
    rounds: int
    functions: list[Floats]
    errors: list[Floats]
    intercept: Floats

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """All released numbers as one vector."""
        held = [*self.histograms, *self.functions, self.intercept]
        return np.concatenate([np.ravel(values) for values in held]).astype(
            np.float64 if dtype is None else dtype
        )

    def shape_functions(self, problem: Problem, unit: float) -> list[ShapeFunction]:
        """Shape functions of features, then of pairs."""
        binning = problem.binning
        found = []
        for b, (scores, errors) in enumerate(
            zip(self.functions, self.errors, strict=True)
        ):
            features: tuple[int, ...] = (b,)
            if b >= len(binning.n_cells):
                features = problem.pairs[b - len(binning.n_cells)]
            labels = tuple(binning.labels(k) for k in features)
            merged = None
            if len(features) > 1:
                merged = tuple(self.merged[k] for k in features)
                pairs = zip(labels, merged, strict=True)
                labels = tuple(cell_labels(*pair) for pair in pairs)
            shape: tuple[int, ...] = tuple(map(len, labels))
            if problem.n_outputs > 1:
                shape = (*shape, problem.n_outputs)
            found.append(
                ShapeFunction(
                    features=tuple(binning.names[k] for k in features),
                    cells=labels,
                    scores=unit * scores.reshape(shape),
                    standard_errors=unit * errors.reshape(shape),
                    masses=self.basis.masses[b].reshape(shape[: len(features)]),
                    merged=merged,
                )
            )
        return found


def execute(
    problem: Problem,
    release: AdaptiveRelease,
    codes: NDArray[Any],
    y: Any,
    noise: Noise,
    rng: np.random.Generator,
    weights: Floats | None = None,
) -> AdditiveRun:
    """Execute the release; all that is returned is noisy or public.

    A class of -1, or a target of NaN, stands for none.
    """
    binning, n = problem.binning, float(release.n_records)
    if weights is not None:
        # in whole parts, towards zero: sums are exact, and no record weighs more
        weights = np.trunc(weights * _PARTS) / _PARTS
    exact = [
        np.bincount(codes[:, k], weights, minlength=size)
        for k, size in enumerate(binning.n_cells)
    ]
    flat = release.noisy(_HISTOGRAMS, np.concatenate(exact), noise, rng)
    histograms = np.split(flat, np.cumsum(binning.n_cells)[:-1])
    deviation = release.deviation(_HISTOGRAMS, noise)
    if weights is not None:
        # every histogram holds every weight once; the fewer its cells, the less noisy
        totals = [float(counts.sum()) for counts in histograms]
        total = np.average(totals, weights=1 / np.array(binning.n_cells))
        n = float(np.clip(total, 1.0, n))
    rounds = release.stages[_ROUNDS].times
    # how far one record, added, shifts all sums together in units of their noise
    each = release.deviation(_ROUNDS, noise)
    mu = math.sqrt(rounds) / each if each else math.inf

    # of noisy values and public facts, from here to the sums
    masses = [cell_masses(counts, deviation, n) for counts in histograms]
    merged = [
        merged_cells(*about)
        for about in zip(masses, binning.kinds, binning.has_missing, strict=True)
    ]
    basis = make_basis(
        masses,
        binning.kinds,
        binning.has_missing,
        pairs=problem.pairs,
        merged=merged,
        n_records=n,
        mu=mu,
    )
    plan = round_plan(
        n_records=n,
        mu=mu,
        rounds=rounds,
        steepest=basis.steepest,
        smoothness=problem.loss.smoothness,
        classification=problem.loss.classification,
    )
    sums = ResidualSums(
        CodedRows(codes, binning.n_cells, problem.pairs, merged),
        y,
        basis,
        problem.loss,
        n_outputs=problem.n_outputs,
        clip=plan.clip,
        weights=weights,
    )
    whole = np.zeros(release.stages[_ROUNDS].dim)

    def noisy(total: Floats) -> Floats:
        # directions that the basis does not keep are accounted for all the same
        whole[: total.size] = total
        released: Floats = release.noisy(_ROUNDS, whole, noise, rng)[: total.size]
        return released

    held = run_rounds(sums, plan, rounds, noisy).reshape(-1, problem.n_outputs)
    functions, intercept = basis.functions(held[:-1]), INTERCEPT * held[-1]
    curvature = mean_curvature(
        basis,
        functions,
        intercept,
        plan.clip,
        classification=problem.loss.classification,
    )
    errors = standard_errors(basis, plan, rounds, each, n, curvature)
    return AdditiveRun(
        histograms=histograms,
        deviation=deviation,
        masses=masses,
        merged=merged,
        basis=basis,
        plan=plan,
        rounds=rounds,
        functions=functions,
        errors=errors,
        intercept=intercept,
    )


# -- noisy rounds of gradient descent over the coded rows of an additive model ---------


#: Value of the constant column beside rows of mean squared norm one.
INTERCEPT = 0.25
#: Share of the rounds, counted from the last, whose iterates are averaged.
AVERAGE = 0.3
#: Deviation that the noise may give the score of a row of norm one.
REACH = 1.0

# Found on six tables of 426 to 75,000 records at budgets from 0.1 to 10; accuracy is
# flat around each of them.
_FEWEST, _MOST = 50, 100
_AFFORDABLE = 10**8  # cells read in all, beyond which more rounds are not worth it
_FURTHEST = 10.0  # steps in the long run, in units of what is stable
_CLIPS = (0.5, 0.75)  # within which the clip norm of residuals of classes lies
# of numbers: from the first one, as the root of n * mu over the steepest direction's
# share, where that is larger than this
_REGRESSION_CLIPS, _MUCH, _REGRESSION_REACH = (0.2, 0.5), 8000.0, 0.3
_MOST_MOMENTUM = 0.9


@dataclass(frozen=True)
class RoundPlan:
    """Hyperparameters of the rounds.

    Parameters
    ----------
    clip : float
        Norm to which a record's residual is clipped.
    step : float
        Step size for a sum of clipped residuals times rows.
    momentum : float
        Momentum of the heavy ball.
    """

    clip: float
    step: float
    momentum: float


def n_rounds(n_records: int, n_features: int) -> int:
    """Number of rounds: more than 50 where a table is read quickly."""
    return int(np.clip(_AFFORDABLE // (n_records * n_features), _FEWEST, _MOST))


def round_plan(
    *,
    n_records: float,
    mu: float,
    rounds: int,
    steepest: float,
    smoothness: float,
    classification: bool,
) -> RoundPlan:
    """Plan rounds in which noise and signal are in balance.

    As in :func:`skpuffer.training.run_defaults`: residuals that always point the same
    way carry the parameters by ``clip * rate * rounds``, while the noise alone gives
    the score of a row of norm one a deviation of that over ``n * mu``. The two are
    about one.
    """
    steepest = float(np.clip(steepest, 0.1, 1.0))
    stable = 2 / (smoothness * steepest)
    furthest = _FURTHEST * stable
    reach = REACH * n_records * mu * min(1.0, 0.5 / smoothness)
    if classification:
        clip = float(np.clip(reach / (rounds * furthest), *_CLIPS))
    else:
        # what is clipped pulls skewed targets to their median: less where it costs less
        least, most = _REGRESSION_CLIPS
        growth = math.sqrt(n_records * mu / (_MUCH * steepest))
        clip = float(np.clip(least * growth, least, most))
        reach = _REGRESSION_REACH * reach
    rate = min(reach / (clip * rounds), furthest)
    # steps longer than is stable are made of shorter ones that follow each other
    momentum = min(max(0.0, 1 - stable / rate), _MOST_MOMENTUM)
    step = (1 - momentum) * rate / n_records
    return RoundPlan(float(clip), float(step), float(momentum))


#: Norm to which the weight of a record cuts its row, the constant column included.
LARGEST_NORM = float(np.sqrt(1 + INTERCEPT**2))

#: Residuals are whole numbers of this many parts of their clip norm, so that sums of
#: them are exact, whatever their order.
_PARTS = 2.0**20

#: What floating point may add to the norm of a row, and more.
_SLACK = 1 + 1e-12


class ResidualSums:
    """Sums over records of weighted, clipped residuals times rows, at given scores.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Class indices, or targets in [-1, 1]. Where there is none, -1 or NaN, a record
        adds nothing.
    clip : float
        Norm to which the residuals of a record are clipped.
    weights : ndarray of shape (n,), default=None
        Weights of the records, in [0, 1]; None is one for all.

    Notes
    -----
    A record adds ``residual * (row, 0.25)`` over ``clip * LARGEST_NORM``, times the
    weight that cuts the norm of its row: a vector of norm at most one. This weight
    depends on the row alone, so that probabilities given a row are not changed.
    """

    def __init__(
        self,
        rows: CodedRows,
        y: Any,
        basis: Basis,
        loss: Loss,
        *,
        n_outputs: int,
        clip: float,
        weights: Floats | None = None,
    ):
        self.rows, self.basis = rows, basis
        counted = y >= 0 if loss.classification else ~np.isnan(y)
        self.y = y if np.all(counted) else np.where(counted, y, 0)
        self.loss, self.n_outputs, self.clip = loss, n_outputs, clip
        self._weights = self._row_weights()
        self._weights *= counted if weights is None else counted * weights

    @property
    def dim(self) -> int:
        """Number of parameters: those of the blocks, then the intercepts."""
        return (self.basis.dim + 1) * self.n_outputs

    def _row_weights(self) -> Floats:
        squares = [np.sum(t**2, axis=1, keepdims=True) for t in self.basis.tables]
        tables = self.rows.tables(squares)
        weights = np.empty(self.rows.n_rows)
        for chunk, cells in self.rows.chunks():
            norms = np.sqrt(self.rows.values(tables, cells)[0] + INTERCEPT**2)
            weights[chunk] = np.minimum(1.0, LARGEST_NORM / norms)
        return weights

    def __call__(self, parameters: Floats) -> Floats:
        """Sum at these parameters; one record moves it by at most one, in l2."""
        held = parameters.reshape(-1, self.n_outputs)
        functions = self.basis.functions(held[:-1])
        tables = self.rows.tables(functions)
        # within the tables of the first group: no addition for each row
        tables[0] += INTERCEPT * held[-1][:, None]
        sums = self.rows.empty(self.n_outputs)
        for chunk, cells in self.rows.chunks():
            scores = self.rows.values(tables, cells)
            self.rows.add(sums, self._parts(scores, chunk), cells)
        blocks = self.rows.blocks(sums)
        total = self.basis.project([block.T for block in blocks])
        # every block holds every record once
        constant = INTERCEPT * blocks[0].sum(axis=1)
        whole = np.concatenate([total, constant[None]]) / (
            _PARTS * LARGEST_NORM * _SLACK
        )
        return whole.ravel()

    def _parts(self, scores: Floats, chunk: slice) -> Floats:
        """Weighted, clipped residuals of some rows, as whole numbers of parts."""
        y, weights = self.y[chunk], self._weights[chunk]
        if self.n_outputs == 1:
            residuals = self.loss.derivative(scores[0], y)[None]
            # minus the derivative, in units of the clip norm
            residuals *= -1 / self.clip
            np.clip(residuals, -1.0, 1.0, out=residuals)
            residuals *= weights * _PARTS
        else:
            residuals = self.loss.derivative(scores.T, y).T
            residuals *= -1 / self.clip
            norms = np.sqrt(np.sum(residuals**2, axis=0))
            residuals *= weights * _PARTS / np.maximum(1.0, norms)
        # towards zero, so that no norm grows
        return np.trunc(residuals, out=residuals)


def run_rounds(
    sums: ResidualSums,
    plan: RoundPlan,
    n_rounds: int,
    noisy: Callable[[Floats], Floats],
) -> Floats:
    """Run the rounds and average the last iterates."""
    # a step for a sum of residuals times rows, where the sum is in units of its largest
    # addend
    rate = plan.step * plan.clip * LARGEST_NORM
    optimiser = Optimiser(learning_rate=rate, momentum=plan.momentum, average=AVERAGE)
    run = OptimiserRun(optimiser, np.zeros(sums.dim), n_rounds)
    for _ in range(n_rounds):
        # post-processing from here on: the optimiser sees nothing but noisy sums
        run.step(-noisy(sums(run.parameters)))
    return run.result()
