"""W_inf between discrete distributions in several dimensions: bottleneck transport."""

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
        Width of the grid to which atoms were rounded, in scaled coordinates; 0.0 if
        none.

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
    """Return W_inf between two discrete distributions whose atoms are rows.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, one a row; rows may repeat.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses. None gives every atom the same mass. Integers are counts.
        `fractions.Fraction` objects and floats must sum to one.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided first.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once (about 90 bytes each). Beyond, the
        result is an upper bound.

    Returns
    -------
    distance : float
        In the unit of the coordinates: W_inf, or an upper bound of it.

    See Also
    --------
    bottleneck_transport : The same, and whether it is exact.

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
    """Return W_inf between two discrete distributions, and whether it is exact.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, as for `bottleneck_distance`.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `bottleneck_distance`.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided first.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once.
    ceiling : float, default=inf
        The search ends with an infinite distance once it is known to reach this.

    Returns
    -------
    result : BottleneckResult

    Notes
    -----
    If more than `max_cells` pairs of atoms are needed, both distributions are rounded
    to the finest grid that fits. The moves by rounding are added: at most
    ``h * d**(1 / ord)`` for a grid of width h.

    The search goes from below. A distance that does not let all mass through leaves a
    set of atoms with more mass than its neighbours, which bounds W_inf from below.

    Examples
    --------
    >>> from skpuffer.transport import bottleneck_transport
    >>> bottleneck_transport([[0, 0], [1, 0]], [[0, 2], [1, 1]])
    BottleneckResult(distance=2.0, exact=True, grid_width=0.0)
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
