"""Smallest radius within which two distributions can be coupled, except a spare mass.

With nothing to spare it is W_inf: bottleneck transport. Hand-written because no
library offers it: POT returns NaN for an infinite order.
"""

import math

import numpy as np

from skpuffer.utils._types import Floats, Indices, Integers

from ._flow import send
from ._points import finest_grid, merge, round_to_grid
from ._reach import Reach, nearest, norms

# Distances this close count as equal, so that ties survive the round-off of the norm.
_TIE = 1e-12
# Lower bounds from minimum cuts nearly always meet the radius in fewer steps than this;
# after that every other step bisects, which bounds the number of steps for any atoms.
_CUTS_ALONE = 12
# With more pairs than this multiple of those that may be held, finding the few that
# matter would take longer than the whole answer on a grid.
_WORTH_SEARCHING = 400


def smallest_radius(
    U: Floats,
    a: Integers,
    V: Floats,
    b: Integers,
    norm: float,
    max_pairs: float,
    spare: int = 0,
    ceiling: float = math.inf,
) -> tuple[float, tuple[Floats, Floats, Integers] | None, float]:
    """Near radius in several dimensions, on a grid where pairs of atoms are too many.

    The search goes from below. A radius that does not let enough mass through leaves a
    set of atoms that holds more mass than its neighbours and what is to spare, so the
    smallest is at least that at which the set has neighbours enough.

    Parameters
    ----------
    U, V : ndarray of shape (n, d) and (m, d)
        Atoms, which may repeat.
    a, b : ndarray of int of shape (n,) and (m,)
        Masses, of one sum.
    norm : float
    max_pairs : float
        Most pairs of atoms held at once, at least 1.
    spare : int, default=0
        Mass that may travel any distance, below the sum.
    ceiling : float, default=inf
        A radius from which on it does not matter how large it is.

    Returns
    -------
    radius : float
        Never below the smallest. Infinite as soon as it is known to reach `ceiling`.
    kept : tuple of (x, y, counts) or None
        The mass within the radius, by pairs of atoms; None if there is a grid or the
        ceiling was reached.
    grid_width : float
        Zero if the atoms were not rounded: then the radius is the smallest itself.
    """
    U, a = merge(U, a)
    V, b = merge(V, b)
    found = _search(U, a, V, b, norm, max_pairs, spare, ceiling)
    if found is not None:
        radius, kept = found
        if kept is None:
            return radius, None, 0.0
        i, j, counts = kept
        return radius, (U[i], V[j], counts), 0.0
    corner, width = finest_grid(U, V, max_pairs)
    centres = [round_to_grid(points, corner, width) for points in (U, V)]
    # Triangle inequality: a coupling of the rounded distributions, glued to the two
    # roundings, keeps the same mass within the sum of the three distances. In units of
    # the width the powers of the norm neither vanish nor overflow.
    rounding = sum(
        width * norms((points - rounded) / width, norm).max()
        for points, rounded in zip((U, V), centres, strict=True)
    )
    # rounded distributions are further apart than the ceiling by what rounding may have
    # added
    ceiling += rounding
    (U, a), (V, b) = merge(centres[0], a), merge(centres[1], b)
    found = _search(U, a, V, b, norm, math.inf, spare, ceiling)
    assert found is not None  # no number of pairs is too many
    radius, _ = found
    return float(radius + rounding), None, width


def _search(
    U: Floats,
    a: Integers,
    V: Floats,
    b: Integers,
    norm: float,
    max_pairs: float,
    spare: int,
    ceiling: float,
) -> tuple[float, tuple[Indices, Indices, Integers] | None] | None:
    """Near radius between distinct atoms, or None if it takes too many pairs.

    Returns
    -------
    radius : float
        Longest displacement of the mass kept by a coupling that was found.
    kept : tuple of (i, j, counts) or None
        That mass; None once the radius is known to reach the ceiling.
    """
    need = int(a.sum()) - spare
    all_pairs = len(U) * len(V)
    if all_pairs > _WORTH_SEARCHING * max_pairs:
        return None
    # rescaled: powers of a distance near one neither vanish nor overflow
    unit = _unit(U, V)
    U, V = U / unit, V / unit
    reach = Reach(U, V, norm)
    # what has no neighbour within the radius cannot be kept
    low = max(
        _radius_of_mass(reach.tree_v.query(U, p=norm)[0], a, need),
        _radius_of_mass(reach.tree_u.query(V, p=norm)[0], b, need),
    )
    high, kept = math.inf, None
    step = -1
    while True:
        step += 1
        if low * unit >= ceiling:
            return math.inf, None
        # `low` is a lower bound, so that it is the radius if it lets enough through. In
        # case the cuts raise it slowly, every other step tries the middle of the
        # bracket instead, or twice `low` while there is no upper end.
        probe = low
        if step >= _CUTS_ALONE and step % 2:
            probe = 2 * low if math.isinf(high) else (low + high) / 2
        radius = probe * (1 + _TIE)
        pairs = reach.pairs(radius, max_pairs)
        if pairs is None:
            return None
        i, j, all_of_them = pairs
        # Maximum flow among the pairs within the radius: the most mass any coupling
        # keeps.
        plan = send(i, j, a, b)
        del pairs, i, j
        if plan.mass.sum() >= need:
            # What was kept may be shorter than the radius, and some of it may be
            # spared.
            lengths = norms(U[plan.i] - V[plan.j], norm)
            longest = _radius_of_mass(lengths, plan.mass, need)
            if longest < high:
                within = lengths <= longest
                high = longest
                kept = plan.i[within], plan.j[within], plan.mass[within]
        else:
            # Minimum cut (Hall's theorem): more mass than its neighbours hold. Whatever
            # pairs the cut is of, the radius at which a set has neighbours enough is a
            # lower bound.
            stuck, short = plan.stuck, ~plan.reached
            bound = max(
                _radius_of_mass(nearest(U[stuck], V, norm), b, a[stuck].sum() - spare),
                _radius_of_mass(nearest(V[short], U, norm), a, b[short].sum() - spare),
            )
            low = max(low, bound)
            if not all_of_them:
                reach.add_across(stuck, short, max(probe, low) * (1 + _TIE))
        if high <= low * (1 + _TIE):
            return high * unit, kept


def _unit(U: Floats, V: Floats) -> float:
    """Power of two near the smallest distance that matters."""
    furthest = max(nearest(V, U, math.inf).max(), nearest(U, V, math.inf).max())
    spread = np.maximum(np.abs(U).max(), np.abs(V).max())
    return float(2.0 ** np.frexp(furthest or spread or 1.0)[1])


def _radius_of_mass(distances: Floats, masses: Integers, need: int) -> float:
    """Least distance within which the masses add up to `need`."""
    order = np.argsort(distances)
    within = np.searchsorted(np.cumsum(masses[order]), need)
    return float(distances[order[within]])
