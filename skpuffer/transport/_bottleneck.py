"""W_inf between discrete laws in several dimensions: bottleneck transport.

The smallest t such that all mass can travel along pairs of atoms at most t apart.
Hand-written because no library offers it: POT returns NaN for an infinite order.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from skpuffer.utils._checks import check_real

from ._flow import send
from ._line import wasserstein_distance
from ._masses import common_masses
from ._points import (
    check_points,
    finest_grid,
    merge,
    round_to_grid,
)

# Distances this close count as equal, so that ties survive the round-off of the norm.
_TIE = 1e-12
# Lower bounds from cuts nearly always meet the distance in fewer steps than this;
# then every other step bisects, which bounds the number of steps whatever the atoms.
_CUTS_ALONE = 12
# With more pairs than this multiple of max_cells, few are likely to be close, and
# counting those alone would take longer than the whole answer on a grid.
_WORTH_COUNTING = 40


@dataclass(frozen=True)
class BottleneckResult:
    """What `bottleneck_transport` found.

    Parameters
    ----------
    distance : float
        W_inf, or an upper bound on it.
    exact : bool
        Whether `distance` is W_inf itself.
    grid_width : float
        Width of the grid to which atoms were rounded, in the unit of the (scaled)
        coordinates; 0.0 if they were not.
    """

    distance: float
    exact: bool
    grid_width: float


def bottleneck_distance(
    U,
    V,
    u_weights=None,
    v_weights=None,
    ord=2,
    *,
    coordinate_scale=None,
    max_cells=2.5e7,
):
    """W_inf between two discrete laws whose atoms are rows.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, one a row; `n` and `m` may differ, rows may repeat.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses. None gives every atom the same mass. Integers are counts.
        `fractions.Fraction` objects and floats must sum to one.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided before the norm is taken.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once (about 90 bytes each). Beyond, the
        result is an upper bound.

    Returns
    -------
    distance : float
        In the unit of the coordinates. W_inf, or where `bottleneck_transport` says
        ``exact=False`` an upper bound.

    Raises
    ------
    ValueError
        If points are not finite or differ in dimension, if the weights of a law are not
        masses, if `ord` or `max_cells` is below one, or if a scale is not positive.

    See Also
    --------
    bottleneck_transport : The same with what was done to get it.
    wasserstein_distance : Laws on the line.

    Notes
    -----
    Masses are compared exactly, under the conventions of `wasserstein_distance`.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Definition 3.2.

    Examples
    --------
    >>> from skpuffer.transport import bottleneck_distance
    >>> bottleneck_distance([[0, 0], [1, 0]], [[0, 2], [1, 1]])
    2.0
    >>> bottleneck_distance([[0, 0], [1, 0]], [[0, 1]], [3, 1], ord=1)
    2.0
    """
    return bottleneck_transport(
        U,
        V,
        u_weights,
        v_weights,
        ord,
        coordinate_scale=coordinate_scale,
        max_cells=max_cells,
    ).distance


def bottleneck_transport(
    U,
    V,
    u_weights=None,
    v_weights=None,
    ord=2,
    *,
    coordinate_scale=None,
    max_cells=2.5e7,
    ceiling=math.inf,
):
    """W_inf between two discrete laws whose atoms are rows, and how it was found.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, as for `bottleneck_distance`.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `bottleneck_distance`.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided before the norm is taken.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once.
    ceiling : float, default=inf
        A distance from which on it does not matter how large it is: the search ends
        there, with an infinite distance for an answer.

    Returns
    -------
    result : BottleneckResult

    Raises
    ------
    ValueError
        As `bottleneck_distance`.

    Notes
    -----
    Only pairs within the distance under test are held, so laws of many atoms are often
    exact. Where more than `max_cells` pairs are that close, both laws are rounded to
    the centres of the finest grid that leaves at most `max_cells` pairs of cells, and
    what the rounding moved the atoms by is added: at most ``h * d**(1 / ord)`` for a
    grid of width h, by the triangle inequality for W_inf.

    The search goes from below. A distance that does not let all mass through leaves a
    set of atoms that holds more mass than its neighbours, and W_inf is at least the
    distance at which that set has neighbours enough.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import bottleneck_transport
    >>> bottleneck_transport([[0, 0], [1, 0]], [[0, 2], [1, 1]])
    BottleneckResult(distance=2.0, exact=True, grid_width=0.0)
    >>> rng = np.random.default_rng(0)
    >>> U, V = rng.random((300, 2)), rng.random((200, 2)) + 1
    >>> coarse = bottleneck_transport(U, V, max_cells=1000)
    >>> coarse.exact, coarse.distance >= bottleneck_transport(U, V).distance
    (False, True)
    """
    norm = check_real(ord=ord)
    if norm < 1:
        raise ValueError(f"The norm 'ord' must be in the range [1, inf]. Got {ord!r}.")
    if check_real(max_cells=max_cells) < 1:
        raise ValueError(
            f"The parameter 'max_cells' must be at least 1. Got {max_cells!r}."
        )
    ceiling = check_real(ceiling=ceiling)
    U, V = check_points(coordinate_scale, U=U, V=V)
    if U.shape[1] == 1:
        distance = wasserstein_distance(U[:, 0], V[:, 0], u_weights, v_weights)
        return BottleneckResult(distance, exact=True, grid_width=0.0)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    U, a = merge(U, a)
    V, b = merge(V, b)
    distance = _search(U, a, V, b, norm, max_cells, ceiling)
    if distance is not None:
        return BottleneckResult(distance, exact=True, grid_width=0.0)
    corner, width = finest_grid(U, V, max_cells)
    centres = [round_to_grid(points, corner, width) for points in (U, V)]
    moved = sum(
        width * _norm((points - rounded) / width, norm).max()
        for points, rounded in zip((U, V), centres, strict=True)
    )
    cells = [*merge(centres[0], a), *merge(centres[1], b)]
    # rounded laws are further apart than the ceiling by what rounding may have added
    distance = _search(*cells, norm, math.inf, ceiling + moved)
    return BottleneckResult(float(distance + moved), exact=False, grid_width=width)


def _search(U, a, V, b, norm, max_pairs, ceiling):
    """Return W_inf between distinct atoms, or None if it takes too many pairs.

    Returns
    -------
    distance : float or None
        The longest way that mass travels in a coupling that was found, hence never
        below W_inf; infinite as soon as W_inf is known to reach `ceiling`.
    """
    all_pairs = len(U) * len(V)
    if all_pairs > _WORTH_COUNTING * max_pairs:
        return None
    # powers of a distance neither vanish nor overflow near one
    unit = _unit(U, V)
    U, V = U / unit, V / unit
    tree_u, tree_v = KDTree(U), KDTree(V)
    low = max(_nearest(tree_v, U, norm).max(), _nearest(tree_u, V, norm).max())
    high = math.inf
    for step in itertools.count():
        if low * unit >= ceiling:
            return math.inf
        probe = low
        if step >= _CUTS_ALONE and step % 2:
            probe = 2 * low if math.isinf(high) else (low + high) / 2
        reach = probe * (1 + _TIE)
        if (
            all_pairs > max_pairs
            and tree_u.count_neighbors(tree_v, reach, p=norm) > max_pairs
        ):
            return None
        pairs = tree_u.sparse_distance_matrix(
            tree_v, reach, p=norm, output_type="ndarray"
        )
        plan = send(pairs["i"], pairs["j"], a, b)
        del pairs
        if plan.complete:
            longest = _norm(U[plan.i] - V[plan.j], norm).max()
            high = min(high, float(longest))
        else:
            stuck, short = plan.stuck, ~plan.reached
            low = max(
                _enough(_nearest(KDTree(U[stuck]), V, norm), b, a[stuck].sum()),
                _enough(_nearest(KDTree(V[short]), U, norm), a, b[short].sum()),
            )
        if high <= low * (1 + _TIE):
            return high * unit


def _unit(U, V):
    """Return a power of two near the smallest distance that matters."""
    nearest = max(
        _nearest(KDTree(V), U, math.inf).max(), _nearest(KDTree(U), V, math.inf).max()
    )
    spread = np.maximum(np.abs(U).max(), np.abs(V).max())
    return float(2.0 ** np.frexp(nearest or spread or 1.0)[1])


def _nearest(tree, points, norm):
    """Return the distance of each point to the nearest point of the tree."""
    return tree.query(points, p=norm)[0]


def _norm(differences, norm):
    return np.linalg.norm(differences, ord=norm, axis=1)


def _enough(distances, masses, need):
    """Return the least distance within which the masses add up to `need`."""
    order = np.argsort(distances)
    within = np.searchsorted(np.cumsum(masses[order]), need)
    return float(distances[order[within]])
