"""W_inf between discrete distributions in several dimensions: bottleneck transport.

The smallest t such that all mass can travel along pairs of atoms at most t apart.
"""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from skpuffer.kernel.numbers import check_at_least_one, check_real

from ._line import wasserstein_distance
from ._masses import check_points, common_masses
from ._radius import smallest_radius


@dataclass(frozen=True)
class BottleneckResult:
    """Result of `bottleneck_transport`.

    Parameters
    ----------
    distance : float
        W_inf, or an upper bound on it.
    exact : bool
        Whether `distance` is W_inf itself.
    grid_width : float
        Width of the grid to which atoms were rounded, in the unit of the (scaled)
        coordinates; 0.0 if they were not.

    Examples
    --------
    >>> from skpuffer.transport import bottleneck_transport
    >>> found = bottleneck_transport([[0, 0], [0, 1]], [[1, 0], [3, 1]])
    >>> found.distance, found.exact
    (3.0, True)
    """

    distance: float
    exact: bool
    grid_width: float


def bottleneck_distance(
    U: ArrayLike,
    V: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    max_cells: float = 2.5e7,
) -> float:
    """W_inf between two discrete distributions whose atoms are rows.

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
        If points are not finite or differ in dimension, if the weights of a
        distribution are not masses, if `ord` or `max_cells` is below one, or if a scale
        is not positive.

    See Also
    --------
    bottleneck_transport : The same, and whether it is exact.
    wasserstein_distance : Distributions on the line.

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
    U: ArrayLike,
    V: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    max_cells: float = 2.5e7,
    ceiling: float = math.inf,
) -> BottleneckResult:
    """W_inf between two discrete distributions in d dimensions, and how it was found.

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
    Only pairs within the distance under test are held, and of many a few for each atom:
    those a flow needs. So the distance is often exact for distributions of many atoms.
    Where more than `max_cells` pairs are that close and a few do not let all mass
    through that all of them might, both distributions are rounded to the centres of
    the finest grid that leaves at most `max_cells` pairs of cells, and what the
    rounding moved the atoms by is added: at most ``h * d**(1 / ord)`` for a grid of
    width h, by the triangle inequality for W_inf.

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
    norm = check_at_least_one(ord=ord)
    check_at_least_one(max_cells=max_cells)
    ceiling = check_real(ceiling=ceiling)
    U, V = check_points(coordinate_scale, U=U, V=V)
    # In one coordinate every norm is the absolute value, and the monotone coupling is
    # optimal: a sort instead of a search over flows.
    if U.shape[1] == 1:
        distance = wasserstein_distance(U[:, 0], V[:, 0], u_weights, v_weights)
        return BottleneckResult(distance, exact=True, grid_width=0.0)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    distance, _, width = smallest_radius(U, a, V, b, norm, max_cells, ceiling=ceiling)
    return BottleneckResult(distance, exact=width == 0, grid_width=width)
