"""One run of an additive model: noisy histograms, a basis of them, noisy rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from skpuffer.exceptions import Statement
from skpuffer.releases import AdaptiveRelease, Sensitivity, Stage

from ._basis import Basis, cell_masses, make_basis
from ._codes import CodedRows
from ._interactions import merged_cells
from ._rounds import (
    AVERAGE,
    INTERCEPT,
    LARGEST_NORM,
    ResidualSums,
    RoundPlan,
    n_rounds,
    round_plan,
    run_rounds,
)
from ._shapes import ShapeFunction, cell_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import Noise
    from skpuffer.releases import PublicContext
    from skpuffer.schema import Binning
    from skpuffer.training import Loss

    from ._basis import Basis
    from ._rounds import RoundPlan

__all__ = ["AdditiveRun", "Problem", "additive_release", "execute"]


def probabilities_of(scores: Floats, clip: float) -> Floats:
    """Probabilities of classes from scores.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, n_classes)
        Log-odds of the second class of two, or softmax logits.
    clip : float
        Norm to which residuals were clipped in training.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
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

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    residuals : ndarray of shape (n, n_classes)
        Norm of the residual of a record of each class.
    clip : float

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    odds = probabilities * np.sqrt(np.maximum(residuals / clip, 1.0))
    shares: Floats = odds / np.sum(odds, axis=1, keepdims=True)
    return shares


def clipped_curvature(scores: Floats, clip: float) -> Floats:
    """Mean derivative of clipped residuals by the scores, by output.

    Of labels that follow the scores' own probabilities; a residual that is clipped does
    not move.

    Parameters
    ----------
    scores : ndarray of shape (n, n_outputs)
        One output is the log-odds of the second of two classes.
    clip : float

    Returns
    -------
    ndarray of shape (n_outputs,)
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

    Over rows drawn from the released masses as if features were independent, with a
    fixed seed: of released numbers alone.

    Parameters
    ----------
    basis : Basis
    functions : sequence of ndarray of shape (n_cells, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    clip : float
    classification : bool

    Returns
    -------
    ndarray of shape (n_outputs,)
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
    n_records: int,
    curvature: Floats,
) -> list[Floats]:
    """Standard deviation that the noise of the rounds gives each function.

    Parameters
    ----------
    basis : Basis
    plan : RoundPlan
    n_rounds : int
    deviation : float
        Of the noise of each coordinate of a round.
    n_records : int
    curvature : ndarray of shape (n_outputs,)

    Returns
    -------
    list of ndarray of shape (n_cells, n_outputs)

    Notes
    -----
    To first order a round moves parameter j by the noise and by minus ``n * curvature *
    s_j`` times what noise has made of it before, s_j the variance of its column under
    the masses. The answer to one unit of noise is the same whenever it comes, so the
    mean of the last iterates has a variance in closed form. Correlation between
    features is left out.
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
        Of the features.
    pairs : tuple of (int, int)
        Positions of features that interact.
    loss : Loss
    n_outputs : int
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

    Parameters
    ----------
    problem : Problem
    context : PublicContext
    layout : dict
        `relation` and `norm` by which the shares are laid out.
    rounds : int or None
        None is by the rule.
    assumptions : tuple of Statement

    Returns
    -------
    AdaptiveRelease

    Notes
    -----
    One record is in one cell of each of K histograms: sqrt(K) in l2 if it comes or
    goes, sqrt(2 K) if it becomes another. A sum of a round is in units of the largest
    addend, so it moves by one, or by two.
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
        Of their noise.
    masses : list of ndarray of shape (n_cells,)
    merged : list of ndarray of int of shape (n_cells,)
        Coarse cells, where features interact.
    basis : Basis
    plan : RoundPlan
    rounds : int
    functions : list of ndarray of shape (n_cells, n_outputs)
        Of features and pairs.
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
        """Shape functions of features, then of pairs.

        Parameters
        ----------
        problem : Problem
        unit : float
            Of a score.
        """
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
) -> AdditiveRun:
    """Execute the release, with everything between its stages.

    Parameters
    ----------
    problem : Problem
    release : AdaptiveRelease
        Of :func:`additive_release`.
    codes : ndarray of int of shape (n, n_features)
    y : ndarray of shape (n,)
        Classes by index, or targets in [-1, 1]; -1 or NaN where there is none.
    noise : Noise
        As calibrated.
    rng : numpy.random.Generator

    Returns
    -------
    AdditiveRun
        Of noisy values and public facts alone.
    """
    binning, n = problem.binning, release.n_records
    exact = [
        np.bincount(codes[:, k], minlength=size)
        for k, size in enumerate(binning.n_cells)
    ]
    flat = release.noisy(_HISTOGRAMS, np.concatenate(exact), noise, rng)
    histograms = np.split(flat, np.cumsum(binning.n_cells)[:-1])
    deviation = release.deviation(_HISTOGRAMS, noise)
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
