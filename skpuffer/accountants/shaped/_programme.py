"""Gaussian noise of least total variance that covers given moves: a convex programme.

Of N(0, S) the moves v_i cost at most one unit each if v_i' S^-1 v_i <= 1, which is
S >= v_i v_i' by Schur's complement: linear in S. The programme is

    least trace of S with S >= v_i v_i' for all i                               (P)
    largest g(p)^2, g(p) = tr M_p^(1/2), M_p = sum_i p_i v_i v_i', sum_i p_i = 1  (D)

whose values are equal. With q_i = v_i' M_p^(-1/2) v_i the matrix S = max(q) M_p^(1/2)
obeys (P) and has the trace max(q) g(p), so that max(q) / g(p) - 1 bounds the relative
gap of either to the optimum.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.noise._degenerate_gaussian import ROUNDED

__all__ = ["LeastShape", "least_shape", "span_of"]

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
        The shape S, with v' S^-1 v at most one for each move v. Of the rank of the
        moves.
    weights : ndarray of shape (n_moves,)
        Of the moves, at which the dual value is.
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

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)
        Of which one at least is not zero.
    diagonal : bool, default=False
        Whether the shape must be diagonal. Then diagonals take the place of M_p and its
        root, and everything else is the same.
    gap : float, default=1e-9
        Relative gap at which the search ends.
    enough : int, default=2000
        Rounds after which a gap of 1e-6 will do.
    power : float, default=2.0
        Power of the multiplicative update, in (0, 2]; 2 takes the fewest rounds.
    newton : bool, default=True
        Whether steps of second order go in between, which need few rounds.

    Returns
    -------
    LeastShape
        Which covers the moves whatever its gap is.

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
    """Orthonormal basis of the span of moves.

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)

    Returns
    -------
    ndarray of shape (dim, rank)
        Of the fewest columns that no move leaves by more than rounding of its own
        length: a short move counts as much as a long one.
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
    """Weights after a step to the top of the dual's model of second order.

    Along eigenvectors of M^(1/2), of eigenvalues s, the derivative of q_i by p_j is
    minus sum_ab c_ia c_ib c_ja c_jb / (s_a s_b (s_a + s_b)), which is -F_i . F_j for
    F_i = c_ia c_ib / (s_a s_b (s_a + s_b))^(1/2). As q = F h with h = (2 s_a)^(1/2) on
    the diagonal and sum_i p_i F_i = h / 2, the model is least squares of
    sum_i p_i F_i to 3 h / 2 over weights, which are not negative.
    """
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
