"""Shape of noise for distributions: couplings and the shape in turn."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular

from skpuffer.kernel.numbers import Floats

from ._moves import Image, OpenPair, OutputMoves
from ._programme import GAP, LARGEST_GAP, least_shape

__all__ = ["FoundShape", "found_shape"]

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

    Parameters
    ----------
    outputs : OutputMoves
        Complete, with some move that is not zero.
    floor : float
        Share of the mean variance that every direction has at least.
    rounds : int
        Most rounds from each start.
    event : float, default=0.0
        Mass of each pair that may be left out.

    Returns
    -------
    FoundShape
        No worse than the round shape, and a partial optimum: the problem over both is
        not convex.
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
