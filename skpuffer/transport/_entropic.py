"""Entropic W_inf: a radius, and what the couplings within it pay for being coupled.

An exact flow decides which pairs may hold mass, so scaling converges geometrically.
"""

import heapq

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    Integers,
    check_at_least_one,
    check_count,
    check_non_negative,
    check_positive,
    unit_near,
)

from ._line import _shares
from ._masses import check_points, common_masses, finest_grid, merge, round_to_grid
from ._radius import _TIE, Transport, send, smallest_radius

# Scalings between two readings of the potentials.
_STEPS = 10
# Mass that may be missing where scaling stops.
_MISSING = 1e-11


def entropic_distance(
    U: ArrayLike,
    V: ArrayLike,
    entropy: float,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_cells: float = 4e6,
) -> float:
    """Return the entropic W_inf between two discrete distributions.

    The least ``t + entropy * KL(coupling || product of the two)`` over couplings that
    move no mass further than t. It is at least W_inf, its limit as `entropy` falls to
    zero.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms; they, their weights, `ord` and the scale are as for
        `bottleneck_distance`.
    entropy : float
        Cost of a nat of divergence from the product, above zero, in scaled coordinates.
    tol : float, default=1e-3
        By which share the result may exceed the least value. 0 tries all radii.
    max_iter : int, default=1000
        Most scalings of the coupling at one radius.
    max_cells : float, default=4e6
        Most pairs of atoms. Beyond, the atoms are rounded to a grid, and their moves
        added.

    Returns
    -------
    distance : float
        In scaled coordinates. Not below W_inf, however early the scaling stops.

    Notes
    -----
    Potentials of an unfinished scaling bound the divergence from below. It is no norm
    of a shift: scale coordinates and `entropy` together. A distribution's distance from
    itself is above zero.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, appendix A.5. Sinkhorn and
    Knopp (1967), Concerning nonnegative matrices and doubly stochastic matrices.

    Examples
    --------
    >>> from skpuffer.transport import entropic_distance
    >>> round(entropic_distance([[0], [1], [2]], [[0.5], [1.5], [3]], entropy=0.01), 6)
    1.010986
    """
    cost = check_positive(entropy=entropy)
    check_non_negative(tol=tol)
    n_steps = check_count(max_iter=max_iter)
    check_at_least_one(max_cells=max_cells)
    norm = check_at_least_one(ord=ord)
    U, V = check_points(coordinate_scale, U=U, V=V)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    (U, a), (V, b) = merge(U, a), merge(V, b)
    rounding = 0.0
    if len(U) * len(V) > max_cells:
        # Couplings of the cells are ones of the atoms, at the same divergence, if the
        # atoms within two cells meet independently.
        corner, width = finest_grid(U, V, max_cells)
        for points in (U, V):
            off = (points - round_to_grid(points, corner, width)) / width
            rounding += width * np.linalg.norm(off, ord=norm, axis=1).max()
        U, a = merge(round_to_grid(U, corner, width), a)
        V, b = merge(round_to_grid(V, corner, width), b)
    # a power of two: lengths whose squares neither vanish nor overflow
    unit = unit_near(np.concatenate([U, V]))
    search = _Radii(U / unit, a, V / unit, b, norm, n_steps)
    return search.least_value(cost / unit, tol) * unit + float(rounding)


class _Radii:
    """Radii that let all mass through, and the least divergence within each."""

    def __init__(
        self,
        U: Floats,
        a: Integers,
        V: Floats,
        b: Integers,
        norm: float,
        max_iter: int,
    ) -> None:
        self.max_iter = max_iter
        self.a, self.b = _shares(a), _shares(b)
        self.lengths = _lengths(U, V, norm)
        self.least, _, _ = smallest_radius(U, a, V, b, norm, np.inf)
        radii = np.unique(self.lengths)
        first = int(np.searchsorted(radii, self.least * (1 - _TIE)))
        # What travels within the first such radius does so within all larger ones.
        while not (plan := send(*self._within(radii[first]), a, b)).complete:
            first += 1
        self.plan: Transport = plan
        self.radii: Floats = radii[first:]

    def least_value(self, cost: float, tol: float) -> float:
        """Least radius plus cost times divergence, but for a share `tol`."""
        # The divergence falls with the radius: between two radii the value is at least
        # the next radius plus what the larger one costs. The most promising gap first.
        radii = self.radii
        last = len(radii) - 1
        divergences = {0: self.divergence(0), last: 0.0}
        best = min(radii[k] + cost * found for k, found in divergences.items())
        gaps: list[tuple[float, int, int]] = []

        def consider(low: int, high: int) -> None:
            if high - low > 1:
                bound = radii[low + 1] + cost * divergences[high]
                heapq.heappush(gaps, (float(bound), low, high))

        consider(0, last)
        while gaps:
            bound, low, high = heapq.heappop(gaps)
            if bound >= best * (1 - tol):
                break
            # no radius from the best value on can be better
            end = min(radii[high], best)
            middle = int(np.searchsorted(radii, (radii[low] + end) / 2))
            middle = min(max(middle, low + 1), high - 1)
            divergences[middle] = self.divergence(middle)
            best = min(best, radii[middle] + cost * divergences[middle])
            consider(low, middle)
            consider(middle, high)
        return float(max(best, self.least))

    def divergence(self, at: int) -> float:
        """Least divergence from the product of a coupling within a radius, in nats."""
        n, m = self.lengths.shape
        i, j = self._within(self.radii[at])
        if len(i) == n * m:
            return 0.0
        # A pair holds mass in some coupling if and only if mass can be sent along it
        # and back: a cycle of the residual network. Others would be scaled to zero, at
        # a rate of 1/k.
        tails = np.concatenate([i, self.plan.j + n])
        heads = np.concatenate([j + n, self.plan.i])
        residual = csr_array(
            (np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(n + m, n + m)
        )
        _, part = connected_components(residual, connection="strong")
        some = part[i] == part[j + n]
        return self._scaled(i[some], j[some])

    def _within(self, radius: float) -> tuple[Indices, Indices]:
        """Pairs of atoms within a radius."""
        i, j = np.nonzero(self.lengths <= radius * (1 + _TIE))
        return i, j

    def _scaled(self, i: Indices, j: Indices) -> float:
        """Scale the product to a coupling on some pairs; return its divergence."""
        a, b = self.a, self.b
        shape = (len(a), len(b))
        density = csr_array((np.ones(len(i)), (i, j)), shape=shape)
        i = np.repeat(np.arange(len(a)), np.diff(density.indptr))
        j = density.indices
        # logarithms of the factors of rows and columns: the factors may overflow
        f, g = np.zeros(len(a)), np.zeros(len(b))
        for _ in range(0, self.max_iter, _STEPS):
            density.data = np.exp(f[i] + g[j])
            u, v = np.ones(len(a)), np.ones(len(b))
            for _ in range(_STEPS):
                u = 1 / (density @ (b * v))
                v = 1 / (density.T @ (a * u))
            f, g = f + np.log(u), g + np.log(v)
            # columns are right by now, and rows nearly
            if a @ np.abs(u * (density @ (b * v)) - 1) <= _MISSING:
                break
        # the dual value, which is the divergence where rows and columns are right
        return max(0.0, float(a @ f + b @ g))


def _lengths(U: Floats, V: Floats, norm: float) -> Floats:
    """Distances of all pairs of atoms, of shape (n, m)."""
    fast = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}.get(norm)
    if fast is not None:
        lengths: Floats = cdist(U, V, fast)
    else:
        lengths = cdist(U, V, "minkowski", p=norm)
    return lengths
