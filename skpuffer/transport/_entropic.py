"""Entropic W_inf: a radius, and what the couplings within it pay for being coupled.

The least ``t + entropy * KL(coupling || product)`` over radii t and couplings that move
no mass further than t. Sinkhorn scaling finds the divergence within one radius, and is
hand-written: POT's solvers take finite costs, where a mask is an infinite one, and on a
mask that only just lets all mass through they converge like 1/k at best. Whether a
radius lets all mass through, and which pairs of atoms may hold any of it, is settled
here by the exact flow instead. On the pairs that are left scaling converges
geometrically, and its residual decides nothing.
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
    """Entropic W_inf between two discrete distributions whose atoms are rows.

    The least ``t + entropy * KL(coupling || product of the two)`` over couplings that
    move no mass further than t. It is never below W_inf, which is its limit as
    `entropy` falls to zero, and never above the longest distance of two atoms.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, as for `bottleneck_distance`.
    entropy : float
        Cost of a nat of divergence from the product, above zero, in the unit of the
        (scaled) coordinates.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `bottleneck_distance`.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided before the norm is taken.
    tol : float, default=1e-3
        By which share the result may exceed the least value, so that not every distance
        of two atoms has to be tried. 0 tries all that may be better.
    max_iter : int, default=1000
        Most scalings of the coupling at one radius.
    max_cells : float, default=4e6
        Most pairs of atoms. Beyond, the atoms are rounded to a grid, and what that
        moved them by is added.

    Returns
    -------
    distance : float
        In the unit of the (scaled) coordinates. Not below W_inf, however early the
        scaling stops.

    Raises
    ------
    ValueError
        As `bottleneck_distance`, or if `entropy` is not above zero or `tol` below it.

    See Also
    --------
    bottleneck_distance : W_inf itself, which is less and takes less time.

    Notes
    -----
    Potentials of an unfinished scaling bound the divergence from below, which is never
    negative. So a result may fall short of the least value by what is missing there,
    and still covers the radius.

    It is no norm of a shift: coordinates and `entropy` have to be scaled together. The
    distance of a distribution from itself is above zero.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, appendix A.5. Sinkhorn and
    Knopp (1967), Concerning nonnegative matrices and doubly stochastic matrices, for
    scaling with zeros.

    Examples
    --------
    >>> from skpuffer.transport import entropic_distance
    >>> U, V = [[0], [1], [2]], [[0.5], [1.5], [3]]
    >>> round(entropic_distance(U, V, entropy=0.01), 6)
    1.010986
    >>> round(entropic_distance(U, U, entropy=0.1), 6)
    0.109861
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
        """Least radius plus cost times divergence, but for a share `tol`.

        Returns
        -------
        float
            Not below the least radius.
        """
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
        """Least divergence from the product of a coupling within a radius, in nats.

        Parameters
        ----------
        at : int
            Position of the radius.

        Returns
        -------
        float
            At least 0, and below the least where scaling did not finish.
        """
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
