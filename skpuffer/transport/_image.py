"""Near transport in the image of a linear map: W_inf for correlated noise."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Integers, check_at_least_one, check_real

from ._line import _atoms, _merge, wasserstein_distance
from ._masses import (
    _LARGEST_DENOMINATOR,
    check_points,
    common_masses,
    merge,
    moved_to_zero,
)
from ._plan import TransportPlan, as_rows
from ._radius import _search, smallest_radius

# Pairwise distances on the line that are few enough to sort: bisection ends there.
_FEW = 1_000_000


@dataclass(frozen=True, eq=False)
class NearResult:
    """Result of `near_transport`.

    Parameters
    ----------
    radius : float
        The smallest radius, or an upper bound on it.
    exact : bool
        Whether `radius` is the smallest itself.
    grid_width : float
        Width of the grid to which atoms were rounded, in scaled coordinates; 0.0 if
        none.
    kept : TransportPlan or None
        Mass of at least ``1 - delta`` within the radius; None if atoms were rounded.

    Examples
    --------
    >>> from skpuffer.transport import near_transport
    >>> found = near_transport([0, 5], [0, 9], 0.1, [0.9, 0.1], [0.9, 0.1])
    >>> found.radius, found.exact, float(found.kept.mass.sum())
    (0.0, True, 0.9)
    """

    radius: float
    exact: bool
    grid_width: float
    kept: TransportPlan | None


def near_radius(
    U: ArrayLike,
    V: ArrayLike,
    delta: float | Fraction,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    max_cells: float = 2.5e7,
) -> float:
    """Return the smallest z such that a coupling moves at most a mass delta beyond z.

    Parameters
    ----------
    U, V : array-like of shape (n,) and (m,), or (n, d) and (m, d)
        Atoms: values on the line, or one point a row; atoms may repeat.
    delta : float or fractions.Fraction
        Mass that may travel any distance, in [0, 1). At zero this is W_inf.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses. None gives every atom the same mass. Integers are counts.
        `fractions.Fraction` objects and floats must sum to one.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided first.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once. Beyond, the result is an upper
        bound.

    Returns
    -------
    radius : float
        In the unit of the coordinates: the near radius, or an upper bound of it.

    See Also
    --------
    near_transport : The same with the mass that was kept, and whether it is exact.

    Notes
    -----
    Masses and `delta` are read as by `wasserstein_distance`. On the line, each atom in
    order takes the lowest mass still free within reach, which matches as much mass as
    any coupling does. In more dimensions the mass matched is a maximum flow.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Definition 4.2. Glover (1967),
    Maximum matching in a convex bipartite graph.

    Examples
    --------
    >>> from skpuffer.transport import near_radius
    >>> healthy, infected = [0.2, 0.225, 0.5, 0.075], [0.075, 0.5, 0.225, 0.2]
    >>> near_radius([0, 1, 2, 3], [1, 2, 3, 4], 0.125, healthy, infected)
    1.0
    """
    return near_transport(
        U,
        V,
        delta,
        u_weights,
        v_weights,
        ord,
        coordinate_scale=coordinate_scale,
        max_cells=max_cells,
    ).radius


def near_transport(
    U: ArrayLike,
    V: ArrayLike,
    delta: float | Fraction,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    max_cells: float = 2.5e7,
) -> NearResult:
    """Return the near radius, how it was found, and the coupling of the mass it keeps.

    Parameters
    ----------
    U, V : array-like of shape (n,) and (m,), or (n, d) and (m, d)
        Atoms; all parameters are those of `near_radius`.
    delta : float or fractions.Fraction
        Mass that may travel any distance, in [0, 1).
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses.
    ord : float, default=2
        Norm of the difference of two atoms, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided first.
    max_cells : float, default=2.5e7
        Most pairs of atoms held in memory at once.

    Returns
    -------
    result : NearResult

    Notes
    -----
    Where more than `max_cells` pairs of atoms are within reach, both distributions are
    rounded to a grid and their moves added as for `bottleneck_transport`.

    Examples
    --------
    >>> from skpuffer.transport import near_transport
    >>> result = near_transport([[0, 0], [5, 5]], [[0, 1]], 0.5)
    >>> result.radius, result.kept.x.tolist(), result.kept.mass.tolist()
    (1.0, [[0.0, 0.0]], [0.5])
    """
    norm = check_at_least_one(ord=ord)
    check_at_least_one(max_cells=max_cells)
    share = _fraction(delta)
    raw_u, raw_v, line = as_rows(U, V)
    U, V = check_points(U=raw_u, V=raw_v)
    scale, origin = np.ones(1), np.zeros(1)
    if coordinate_scale is not None:
        *_, origin = moved_to_zero(U, V)
        scale = np.asarray(coordinate_scale, float)
        U, V = check_points(coordinate_scale, U=U, V=V)
    if U.shape[1] == 1:
        radius, plan = _on_the_line(U[:, 0], V[:, 0], u_weights, v_weights, share)
        x, y, counts, total = plan
        # the radius is of scaled coordinates, the plan of atoms as they were given
        x, y = x * scale + origin, y * scale + origin
        if not line:
            x, y = x[:, None], y[:, None]
        return NearResult(radius, True, 0.0, TransportPlan(x, y, counts, total))
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    total = int(a.sum())
    # Rounded down: masses are integers, and no more than delta may be left out.
    spare = math.floor(share * total)
    radius, found, width = smallest_radius(U, a, V, b, norm, max_cells, spare)
    # atoms that were rounded to a grid leave a bound, and no plan of their own
    kept = None
    if found is not None:
        x, y, counts = found
        x, y = x * scale + origin, y * scale + origin
        kept = TransportPlan(x, y, counts, total)
    return NearResult(radius, width == 0, width, kept)


def _fraction(delta: float | Fraction) -> Fraction:
    """Return delta as the fraction that was meant."""
    if not isinstance(delta, Rational):
        check_real(delta=delta)
    if not 0 <= delta < 1:
        raise value_error("audit.delta_out_of_range", delta=delta)
    if isinstance(delta, Rational):
        return Fraction(delta)
    delta = float(delta)
    # 0.1 means 1/10, which the float next to it is not.
    simple = Fraction(delta).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if float(simple) == delta else Fraction(delta)


def _on_the_line(
    x: Floats,
    y: Floats,
    u_weights: ArrayLike | None,
    v_weights: ArrayLike | None,
    share: Fraction,
) -> tuple[float, tuple[Floats, Floats, Integers, int]]:
    """Near radius on the line, by bisection over greedy matchings."""
    # Sorted and merged: one integer mass for each value.
    x, a, y, b = _atoms(x, u_weights, y, v_weights)
    x, a = _merge(x, a)
    y, b = _merge(y, b)
    total = int(a.sum())
    need = total - math.floor(share * total)
    lists = x.tolist(), a.tolist(), y.tolist(), b.tolist()
    # Within W_inf all mass is kept. From here on `high` keeps enough and `low` does
    # not, unless zero is the answer.
    low, high = 0.0, wasserstein_distance(x, y, a, b)
    if high > 0 and not _keeps_enough(*lists, low, need):
        # The radius is one of the pairwise distances. Halve until few are in between.
        while (candidates := _gaps(x, y, low, high)) is None:
            middle = (low + high) / 2
            if _keeps_enough(*lists, middle, need):
                high = middle
            else:
                low = middle
        # the last is `high`, or the largest distance below it that any pair has
        first, last = 0, len(candidates) - 1
        while first < last:
            middle = (first + last) // 2
            if _keeps_enough(*lists, candidates[middle], need):
                last = middle
            else:
                first = middle + 1
        low = float(candidates[first])
    # the matching at the radius that was found: what is kept within it
    steps = list(_greedy(*lists, low))
    i, j, counts = (np.array(part) for part in zip(*steps, strict=True))
    return low, (x[i], y[j], counts, total)


def _greedy(
    x: list[float], a: list[int], y: list[float], b: list[int], radius: float
) -> Iterator[tuple[int, int, int]]:
    """Return the greedy maximum matching of sorted atoms within a radius."""
    j, free = 0, b[0]
    for i, (value, left) in enumerate(zip(x, a, strict=True)):
        # Too low for this atom is too low for all that follow.
        while value - y[j] > radius:
            j += 1
            if j == len(y):
                return
            free = b[j]
        # The lowest mass within reach is taken first. By exchange no coupling keeps
        # more (Glover 1967): what is higher stays free for later atoms, whose windows
        # reach higher.
        while left and y[j] - value <= radius:
            share = min(left, free)
            yield i, j, share
            left -= share
            free -= share
            if not free:
                j += 1
                if j == len(y):
                    return
                free = b[j]


def _keeps_enough(
    x: list[float],
    a: list[int],
    y: list[float],
    b: list[int],
    radius: float,
    need: int,
) -> bool:
    """Whether the greedy matching within the radius keeps a mass of `need`."""
    return sum(share for _, _, share in _greedy(x, a, y, b, radius)) >= need


def _gaps(x: Floats, y: Floats, low: float, high: float) -> Floats | None:
    """Return sorted pairwise distances in (low, high] of sorted atoms, or None.

    None if there are too many.
    """
    pieces, size = [], 0
    # Distances y - x above zero, then x - y, as the same with signs reversed.
    for one, other in ((x, y), (-x[::-1], -y[::-1])):
        # one further on either side, as sums and differences round differently
        first = np.maximum(np.searchsorted(other, one + low) - 1, 0)
        last = np.searchsorted(other, one + high, "right") + 1
        counts = np.minimum(last, len(other)) - first
        size += int(counts.sum())
        pieces.append((one, other, first, counts))
    few = max(_FEW, 8 * (len(x) + len(y)))
    if size > few and low < (low + high) / 2 < high:
        return None
    found = []
    for one, other, first, counts in pieces:
        # All windows in one array, without a loop over atoms: entry k of the window of
        # atom i is other[first[i] + k].
        starts = np.cumsum(counts) - counts
        where = np.arange(counts.sum()) - np.repeat(starts - first, counts)
        found.append(other[where] - np.repeat(one, counts))
    # without those that the wider windows took in
    gaps = np.concatenate(found)
    return np.unique(gaps[(gaps > low) & (gaps <= high)])


def near_plan_in_image(
    U: ArrayLike,
    V: ArrayLike,
    image: Callable[[Floats], Floats],
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    delta: float | Fraction = 0,
) -> TransportPlan:
    """Return the coupling whose longest move is shortest in the image of a linear map.

    Parameters
    ----------
    U, V : array-like of shape (n, d) and (m, d)
        Atoms, one a row.
    image : callable
        Linear map of rows, from shape (k, d) to shape (k, r).
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `bottleneck_transport`.
    delta : float or fractions.Fraction, default=0
        Mass that may be left out, in [0, 1).

    Returns
    -------
    plan : TransportPlan
        Plan of a mass of at least ``1 - delta``: a coupling, or a part of one, for any
        map.

    Notes
    -----
    All pairs of atoms that are close are held at once.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.transport import near_plan_in_image
    >>> U, V = [[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> tall = near_plan_in_image(U, V, lambda rows: rows * [1.0, 10.0])
    >>> np.abs(tall.displacements).max(axis=0)
    array([1., 0.])
    """
    share = _fraction(delta)
    U, V = check_points(U=U, V=V)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    total = int(a.sum())
    U, a = merge(U, a)
    V, b = merge(V, b)
    # images relative to one atom: a mean far from zero would cost digits
    origin = U[:1]
    found = _search(
        image(U - origin),
        a,
        image(V - origin),
        b,
        2.0,
        math.inf,
        # rounded down: no more than delta may be left out
        math.floor(share * total),
        math.inf,
    )
    assert found is not None  # no number of pairs is too many
    _, kept = found
    assert kept is not None  # no distance is too long
    i, j, counts = kept
    return TransportPlan(U[i], V[j], counts, total)
