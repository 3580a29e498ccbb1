"""Gaussian noise of least total variance that covers given moves: a convex programme.

Of N(0, S) the moves v_i cost at most one unit each if v_i' S^-1 v_i <= 1, which is
S >= v_i v_i' by Schur's complement: linear in S. The programme is

    least trace of S with S >= v_i v_i' for all i                               (P)
    largest g(p)^2, g(p) = tr M_p^(1/2), M_p = sum_i p_i v_i v_i', sum_i p_i = 1  (D)

whose values are equal. With q_i = v_i' M_p^(-1/2) v_i the matrix S = max(q) M_p^(1/2)
obeys (P) and has the trace max(q) g(p), so that max(q) / g(p) - 1 bounds the relative
gap of either to the optimum.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    Noise,
)
from skpuffer.noise._correlated_gaussian import ROUNDED

from ._moves import Image, OpenPair, OutputMoves

#: Relative gap at which the search ends, and above which no shape is least.
GAP = 1e-9
LARGEST_GAP = 1e-6

#: Most rounds of all.
_ROUNDS = 50_000

#: Rounds between steps of second order, and most unknowns for which they pay.
_EVERY = 8
_COUPLED = 820

#: Moves that may have weight after such a step: near binding, and so many a coordinate.
_CANDIDATES = 0.9
_MOST = 12
_WEIGHTLESS = 1e-6

#: Share of its weight that a move keeps in any step.
_LEFT = 1e-10

#: Eigenvalues from which on the model is of use, for moves of a length of one.
_FLAT = 1e-50


@dataclass(frozen=True, eq=False)
class LeastShape:
    """Shape of the noise of least total variance that covers given moves.

    Parameters
    ----------
    matrix : ndarray of shape (dim, dim)
        The shape S, with v' S^-1 v at most one for each move v. Its rank is that of the
        moves.
    weights : ndarray of shape (n_moves,)
        Weights of the moves, at which the dual value is.
    dual : float
        No shape that covers the moves has a trace below.
    gap : float
        Relative gap of the trace to `dual`, at least as large as that to the optimum.
    rounds : int
        Rounds it took.
    """

    matrix: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    dual: float
    gap: float
    rounds: int

    @property
    def trace(self) -> float:
        """Total variance."""
        return float(np.trace(self.matrix))


def least_shape(
    moves: Floats,
    *,
    diagonal: bool = False,
    gap: float = GAP,
    enough: int = 2000,
    power: float = 2.0,
    newton: bool = True,
) -> LeastShape:
    """Return the shape of least trace that covers moves, or the least diagonal one.

    The search ends at the relative `gap`, or at 1e-6 after `enough` rounds. `power`, in
    (0, 2], is that of the multiplicative update; `newton` puts steps of second order
    between. The shape covers the moves whatever its gap is. For a diagonal one,
    diagonals take the place of M_p and its root.

    Notes
    -----
    Weights are multiplied by q_i^power and divided by their sum. With x_i = p_i^(1/2)
    the dual g is the nuclear norm of diag(x) V (of the diagonal programme: the sum of
    its columns' lengths), which is convex with derivatives x_i q_i; hence it never
    falls for powers up to 2, as s(r) = log E_p q^r is convex with s(0) = 0.
    """
    axes = np.eye(moves.shape[1])[:, np.any(moves != 0, axis=0)]
    basis = axes if diagonal else span_of(moves)
    rows = moves @ basis
    length = np.abs(rows).max()
    rows = rows / length
    p = np.full(len(rows), 1 / len(rows))
    roots = _roots_by_column if diagonal else _roots
    # directions that the model couples: none of a diagonal shape
    rank = basis.shape[1]
    coupled = (np.arange(rank),) * 2 if diagonal else np.triu_indices(rank)
    second_order = newton and len(coupled[0]) <= _COUPLED
    best = _State(np.inf, p, 0.0, None)
    count = 0
    while True:
        count += 1
        root = roots(rows, p)
        q = root.lengths(rows)
        g, largest = root.trace, float(q.max())
        if largest / g < best.ratio:
            best = _State(largest / g, p, largest, root)
        done = best.ratio <= 1 + (gap if count < enough else max(gap, LARGEST_GAP))
        if done or count >= _ROUNDS:
            break
        if second_order and count % _EVERY == 0:
            p = _newton(rows, p, q, root, coupled, roots)
            continue
        p = p * (q / g) ** power
        p /= p.sum()
    assert best.root is not None
    matrix = best.largest * length**2 * (basis @ best.root.matrix @ basis.T)
    return LeastShape(
        (matrix + matrix.T) / 2,
        best.p,
        (length * best.root.trace) ** 2,
        max(best.ratio - 1, 0.0),
        count,
    )


def span_of(moves: Floats) -> Floats:
    """Orthonormal basis, of shape (dim, rank), of the span of moves.

    No move leaves it by more than rounding of its own length.
    """
    lengths = np.linalg.norm(moves, axis=1)
    unit = moves[lengths > 0] / lengths[lengths > 0][:, None]
    # of the transposed product where that is smaller, without another case: thin
    left, values, axes = np.linalg.svd(unit, full_matrices=False)
    # by rows, what is left of each unit move beyond the first 1, 2, ... directions
    parts = (left * values) ** 2
    beyond = np.sqrt(np.cumsum(parts[:, ::-1], axis=1)[:, ::-1].max(axis=0))
    rank = int(np.sum(beyond > ROUNDED / 4))
    return np.asarray(axes[: max(rank, 1)].T)


@dataclass(frozen=True, eq=False)
class _Root:
    """M^(1/2), by its eigenvalues and eigenvectors, one a row."""

    values: Floats
    axes: Floats

    @property
    def trace(self) -> float:
        return float(self.values.sum())

    @property
    def matrix(self) -> Floats:
        return np.asarray((self.axes.T * self.values) @ self.axes)

    def lengths(self, rows: Floats) -> Floats:
        """Return v' M^(-1/2) v for each row v."""
        along = rows @ self.axes.T
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            parts = np.where(along == 0, 0.0, along**2 / self.values)
        q = np.asarray(parts.sum(axis=1))
        if len(self.values) < rows.shape[1]:
            # fewer moves than directions left: others may leave their span
            off = np.linalg.norm(rows - along @ self.axes, axis=1)
            q[off > ROUNDED * np.linalg.norm(rows, axis=1)] = np.inf
        return q


@dataclass(frozen=True, eq=False)
class _State:
    """Best round so far: its ratio max(q) / g, weights, max(q) and root of M."""

    ratio: float
    p: Floats
    largest: float
    root: _Root | None


def _roots(rows: Floats, p: Floats) -> _Root:
    # by singular values of diag(p)^(1/2) V: those of M itself would lose half of the
    # digits, and with them every move that is 1e-8 of the longest
    some = p > 0
    weighted = np.sqrt(p[some])[:, None] * rows[some]
    if len(weighted) > 20 * rows.shape[1]:
        weighted = np.asarray(np.linalg.qr(weighted, mode="r"))
    _, values, axes = np.linalg.svd(weighted, full_matrices=False)
    return _Root(values, axes)


def _roots_by_column(rows: Floats, p: Floats) -> _Root:
    # the diagonal of M in place of M
    return _Root(np.sqrt(p @ rows**2), np.eye(rows.shape[1]))


def _newton(
    rows: Floats,
    p: Floats,
    q: Floats,
    root: _Root,
    coupled: tuple[Indices, Indices],
    roots: Callable[[Floats, Floats], _Root],
) -> Floats:
    """Weights after a step to the top of the dual's model of second order."""
    near = np.flatnonzero((q > root.trace * _CANDIDATES) | (p > _WEIGHTLESS))
    near = near[np.argsort(-q[near], kind="stable")[: _MOST * rows.shape[1]]]
    whole = len(root.values) == rows.shape[1] and float(root.values.min()) > _FLAT
    if not (whole and np.all(np.isfinite(q))):
        return p
    along = rows[near] @ root.axes.T
    (a, b), s = coupled, root.values
    # each pair of directions once, those of two directions counted twice
    weight = np.where(a == b, 1.0, 2.0) / (s[a] * s[b] * (s[a] + s[b]))
    features = along[:, a] * along[:, b] * np.sqrt(weight)
    target = np.where(a == b, 1.5 * np.sqrt(2 * s[a]), 0.0)
    # weights add up to one
    sure = 1e3 * float(np.linalg.norm(target))
    system = np.vstack([features.T, np.full(len(near), sure)])
    try:
        found, _ = nnls(system, np.append(target, sure))
    except (RuntimeError, np.linalg.LinAlgError):
        # it did not converge, or moves depend on each other: the update by itself does
        return p
    if found.sum() <= 0:
        return p
    goal = np.zeros(len(p))
    goal[near] = found / found.sum()
    # A model is good near by: back until the dual does not fall. Nothing loses all of
    # its weight, which no update would give back.
    step = 1.0 - _LEFT
    while step > 1e-3:
        tried = (1 - step) * p + step * goal
        if roots(rows, tried).trace >= root.trace:
            return np.asarray(tried)
        step /= 2
    return p


# -- shape of noise for distributions: couplings and the shape in turn -----------------


#: Floor while a shape is sought, where none is asked for.
_SEEK = 1e-6

#: Gap of the programme between rounds.
_MEANWHILE = 1e-3

#: A round that gains less is the last.
_GAIN = 1e-4

#: Only couplings within this share of the longest move are planned anew.
_BINDING = 0.9


@dataclass(frozen=True, eq=False)
class FoundShape:
    """Moves of couplings that were found, and the least shape that covers them.

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)
        Those of one coupling for each pair.
    matrix : ndarray of shape (dim, dim)
        Covers the moves; it may be of lower rank.
    floored : ndarray of shape (dim, dim)
        Covers the moves, with the floor asked for.
    gap : float
        Relative gap of the trace of `matrix` to the least for these moves.
    rounds : tuple of float
        Traces by rounds of the start that was best, the floor included.
    """

    moves: Floats = field(repr=False)
    matrix: Floats = field(repr=False)
    floored: Floats = field(repr=False)
    gap: float = 0.0
    rounds: tuple[float, ...] = ()


def found_shape(
    outputs: OutputMoves, floor: float, rounds: int, event: float = 0.0
) -> FoundShape:
    """Find couplings of all pairs and the shape of least trace that covers them.

    A mass `event` of each pair may be left out, and every direction has at least the
    share `floor` of the mean variance. The result is no worse than the round shape, and
    a partial optimum: the problem over both is not convex.
    """
    best: tuple[float, Floats, Floats, tuple[float, ...]] | None = None
    # plans of one start serve the next ones, where they are good enough for them
    plans: list[Floats | None] = [None] * len(outputs.pairs)
    for start in _starts(outputs):
        found = _from(start, outputs, floor or _SEEK, rounds, event, plans)
        if best is None or found[0] < best[0]:
            best = found
        if not (outputs.is_open or event):
            break
    assert best is not None
    _, floored, moves, traces = best
    moves = _unique(moves)
    # at the last digits other couplings would do better anyhow
    least = least_shape(moves, gap=LARGEST_GAP / 2 if outputs.is_open else GAP)
    if floor:
        # with the moves that are, the programme to its last digits may do better
        sharper = _covering(_floored(least.matrix, floor), moves)
        if np.trace(sharper) < np.trace(floored):
            floored = sharper
    return FoundShape(moves, least.matrix, floored, least.gap, traces)


def _from(
    start: Floats,
    outputs: OutputMoves,
    floor: float,
    rounds: int,
    event: float,
    plans: list[Floats | None],
) -> tuple[float, Floats, Floats, tuple[float, ...]]:
    """Least trace from one start, its shape, its moves, and the traces by rounds."""
    shape = _floored(start, floor)
    best, kept = np.inf, (shape, np.zeros((0, outputs.dim)))
    traces = []
    for _ in range(rounds + 1):
        image = image_of(shape)
        _plan_anew(outputs, image, plans, event)
        moves = np.concatenate([plan for plan in plans if plan is not None])
        longest = float(np.linalg.norm(image(moves), axis=1).max())
        trace = float(np.trace(shape)) * longest**2
        traces.append(trace)
        if trace >= best * (1 - _GAIN):
            break
        best, kept = trace, (longest**2 * shape, moves)
        least = least_shape(_unique(moves), gap=_MEANWHILE)
        shape = _floored(least.matrix, floor)
        if not (outputs.is_open or event):
            # nothing to plan: the moves are what they are
            covering = _covering(shape, moves)
            if np.trace(covering) < best:
                best, kept = float(np.trace(covering)), (covering, moves)
            break
    return best, *kept, tuple(traces)


def _plan_anew(
    outputs: OutputMoves, image: Image, plans: list[Floats | None], event: float
) -> None:
    """Plan pairs anew, but not couplings of short moves: any coupling is valid."""
    lengths = [
        np.inf if plan is None else np.linalg.norm(image(plan), axis=1).max()
        for plan in plans
    ]
    least = 0.0
    # the longest first: once it is planned, those that are shorter need no plan
    for i in sorted(range(len(plans)), key=lambda i: -lengths[i]):
        if lengths[i] < _BINDING * least:
            continue
        plan = outputs.pairs[i].kept(image, event)
        plans[i] = plan
        least = max(least, float(np.linalg.norm(image(plan), axis=1).max()))


def image_of(shape: Floats) -> Image:
    """Linear map into coordinates in which a shape is the unit ball."""
    factor = np.asarray(np.linalg.cholesky(shape), dtype=float)
    return partial(_solved, factor)


def _solved(factor: Floats, moves: Floats) -> Floats:
    return np.asarray(solve_triangular(factor, moves.T, lower=True).T)


def _starts(outputs: OutputMoves) -> Iterator[Floats]:
    """Shapes to start from; any is sound."""
    dim = outputs.dim
    yield np.eye(dim)
    if not outputs.is_open:
        return
    pairs = [
        pair.shortest() if isinstance(pair, OpenPair) else pair.steps
        for pair in outputs.pairs
    ]
    second = sum(moves.T @ moves / len(moves) for moves in pairs)
    if np.any(second):
        yield np.asarray(second)
    if np.any(outputs.means):
        yield least_shape(outputs.means, gap=_MEANWHILE).matrix


def _floored(shape: Floats, floor: float) -> Floats:
    """Add a share of the mean variance to the variance of every direction."""
    dim = len(shape)
    return np.asarray(shape + floor * np.trace(shape) / dim * np.eye(dim))


def _covering(shape: Floats, moves: Floats) -> Floats:
    """Return the least multiple of a shape that covers moves."""
    lengths = np.linalg.norm(image_of(shape)(moves), axis=1)
    return np.asarray(float(lengths.max()) ** 2 * shape)


def _unique(moves: Floats) -> Floats:
    """Moves that are not zero, each once."""
    return np.unique(moves[np.any(moves != 0, axis=1)], axis=0)


# -- how long the moves of the output are in the norm of a Gaussian noise --------------


#: Gaussian noises, by exact type: another one may mean something else by its fields.
GAUSSIAN = (GaussianNoise, CorrelatedGaussianNoise, DegenerateGaussianNoise)

_EPS = float(np.finfo(float).eps)

#: Lengths are rounded up by this, and by what solving for them may have lost.
_ROUND_UP = 1e-12

# Least variance over the largest of a direction, for couplings: where there is no noise
# a coupling is sought that needs none.
_LEAST = 1e-16


@dataclass(frozen=True, eq=False)
class Cover:
    """Moves of one coupling for each pair, and their length in the norm of a noise.

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)
        In the units of the release.
    nominal : float
        Largest length of a move in standard deviations of the noise, rounded up.
    mu : float
        The same of all that is within the room of a move.
    """

    moves: Floats = field(repr=False)
    nominal: float
    mu: float

    @property
    def radius(self) -> float:
        """Largest length of a move in l2."""
        return float(np.linalg.norm(self.moves, axis=1).max())


def cover(
    noise: Noise, outputs: OutputMoves, units: Floats, event: float, room: float
) -> Cover:
    """Couple the outputs so that the longest move is shortest in the norm of a noise.

    A mass `event` of each pair may be left out, and each move be `room` off, in l2.
    """
    image = _image(noise, units)
    # of all that is within a room of them the longest may be another move's
    few = room > 0
    moves = np.concatenate([pair.kept(image, event, few) for pair in outputs.pairs])
    nominal = float(_lengths(noise, moves * units).max()) * _rounding(noise, units)
    mu = nominal
    if room:
        covariance = covariance_in_units(noise, units)
        within = float(longest_within(moves, covariance, room).max())
        mu = max(nominal, within * (1 + _ROUND_UP))
    return Cover(moves, nominal, mu)


def covariance_in_units(noise: Noise, units: Floats) -> Floats:
    """Covariance of a Gaussian noise in the units of the release."""
    assert isinstance(noise, GaussianNoise)
    return noise.covariance_matrix(len(units)) / np.outer(units, units)


def _lengths(noise: Noise, moves: Floats) -> Floats:
    """Lengths of moves, in the units of the output, in standard deviations."""
    assert isinstance(noise, GaussianNoise)
    with np.errstate(divide="ignore", invalid="ignore"):
        whitened = noise.whitened(moves)
    # no noise, and no move that it would have to hide; else the loss has no bound
    still = np.all(moves == 0, axis=1)
    lengths = np.linalg.norm(np.where(np.isnan(whitened), 0.0, whitened), axis=1)
    return np.where(still, 0.0, lengths)


def _image(noise: Noise, units: Floats) -> Image:
    """Map in whose l2 norm couplings are sought; any gives a coupling."""
    values, axes = np.linalg.eigh(covariance_in_units(noise, units))
    if values[-1] <= 0:
        return lambda moves: moves
    # directions without noise are far too long, but finite
    weights = 1 / np.sqrt(np.maximum(values / values[-1], _LEAST))
    if values[0] > values[-1] * 1e-13 and type(noise) is not DegenerateGaussianNoise:
        deviation = math.sqrt(values[-1])
        return lambda moves: deviation * _whitened(noise, moves * units)
    return lambda moves: moves @ axes * weights


def _whitened(noise: Noise, moves: Floats) -> Floats:
    assert isinstance(noise, GaussianNoise)
    return noise.whitened(moves)


def _rounding(noise: Noise, units: Floats) -> float:
    """Factor by which lengths are rounded up, for what solving may have lost."""
    if type(noise) is not CorrelatedGaussianNoise:
        return 1 + _ROUND_UP
    # triangular systems lose no more than the condition of the factor (Higham 2002,
    # Accuracy and stability of numerical algorithms, Theorem 8.5)
    covariance = np.asarray(noise.covariance)
    deviations = np.sqrt(np.diag(covariance))
    values = np.linalg.eigvalsh(covariance / np.outer(deviations, deviations))
    condition = math.sqrt(values[-1] / max(values[0], _LEAST))
    return 1 + _ROUND_UP + 8 * len(values) * _EPS * condition


# -- room for moves that are a little off ----------------------------------------------
# Room for moves that are a little off: shapes that allow for it, and what it costs.


#: Halvings of the bracket of a multiplier: any point of it gives a bound.
_HALVINGS = 60

#: Least distance of the multiplier from the largest eigenvalue, in parts of it.
_NEAREST = 1e-12

_MACHINE_EPS = float(np.finfo(float).eps)


def with_room(shape: Floats, room: float) -> Floats:
    """Return the shape that covers what a shape covers, and all within `room` t of it.

    (1 + a) S + (1 + 1/a) t² I with a = t (dim / tr S)^(1/2). Its trace is
    ((tr S)^(1/2) + t dim^(1/2))², which is least where there is one move.

    Notes
    -----
    For vectors v and w and any a > 0, (v + w)(v + w)' <= (1 + a) v v' + (1 + 1/a) w w',
    and w w' <= t² I where the length of w is at most t.
    """
    if room == 0:
        return shape
    dim, trace = len(shape), float(np.trace(shape))
    if trace == 0:
        return room**2 * dim * np.eye(dim)
    a = room * math.sqrt(dim / trace)
    return np.asarray((1 + a) * shape + (1 + 1 / a) * room**2 * np.eye(dim))


def longest_within(moves: Floats, covariance: Floats, room: float) -> Floats:
    """Longest of the moves within a distance of each, in a noise's norm, rounded up.

    Bounds of max (v + w)' C^-1 (v + w) over w of a length of at most `room`, as
    lengths. Infinite where the noise has no variance in some direction.

    Notes
    -----
    By Lagrangian duality, for every l above the largest eigenvalue of A = C^-1,

        max (v + w)' A (v + w) <= l room² + sum_j a_j v_j² l / (l - a_j)

    along the eigenvectors of A, with equality at the best l (the trust-region problem
    has no gap).
    """
    values, axes = np.linalg.eigh(covariance)
    # what rounding may have added to an eigenvalue is no variance
    values = values - 8 * len(values) * _MACHINE_EPS * np.abs(values).max()
    if values[0] <= 0:
        return np.full(len(moves), np.inf)
    a = 1 / values
    squares = (moves @ axes) ** 2
    # the multiplier is a[0] + t, and the derivative grows with t
    gaps = a[0] - a
    # no nearer to the eigenvalue than this: any multiplier gives a bound
    least = _NEAREST * a[0]
    high = np.maximum(np.sqrt(squares @ a**2) / room, least)
    low = np.full(len(moves), least)

    def falls(t: Floats) -> Floats:
        slopes = (a / (t[:, None] + gaps)) ** 2
        return np.asarray((squares * slopes).sum(axis=1) > room**2)

    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = falls(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    multiplier = a[0] + high
    terms = squares * a * (multiplier[:, None] / (high[:, None] + gaps))
    bound = multiplier * room**2 + terms.sum(axis=1)
    return np.asarray(np.sqrt(bound))
