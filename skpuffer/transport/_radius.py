"""Smallest radius of a coupling of two distributions, except for a spare mass."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from scipy.spatial import KDTree

from skpuffer.kernel.numbers import Booleans, Floats, Indices, Integers

from ._masses import finest_grid, merge, round_to_grid

# Capacities of two opposite edges are added by SciPy: their sum must fit in 32 bits.
_CAPACITY = 2**30 - 1
# Bits by which successive scales overlap: what one leaves over should fit in the next.
_SPARE_BITS = 8


@dataclass(frozen=True)
class Transport:
    """Maximum flow between two distributions, with a minimum cut if it is incomplete.

    Attributes
    ----------
    i, j : ndarray of shape (k,)
        Atoms of the first and of the second distribution that exchange mass.
    complete : bool
        Whether all the mass arrived.
    stuck, reached : ndarray of bool, of shape (n,) and (m,)
        If not complete, a set of atoms of the first distribution and all their
        neighbours in the second, which together hold less mass.
    mass : ndarray of shape (k,)
        Mass that `i` and `j` exchange, above zero, in the integers of the masses.
    """

    i: Indices
    j: Indices
    complete: bool
    stuck: Booleans
    reached: Booleans
    mass: Integers


def send(i: Indices, j: Indices, supply: Integers, demand: Integers) -> Transport:
    """Return a maximum flow of the integer masses `supply` to `demand` along edges.

    The two have the same total. Ford and Fulkerson (1956), Maximal flow through a
    network, with the integer scaling of Edmonds and Karp (1972).
    """
    # Capacity scaling: the leading bits of the masses first, then finer ones, until the
    # integers themselves have been sent.
    n, m = len(supply), len(demand)
    network = _Network(i, j, supply, demand)
    finer = max(1, _CAPACITY.bit_length() - _SPARE_BITS)
    most = int(max(supply.max(), demand.max()))
    shift = max(0, most.bit_length() - _CAPACITY.bit_length())
    while True:
        graph, clipped = network.residual(shift)
        net = maximum_flow(graph, 0, n + m + 1).flow[1 : n + 1, n + 1 : n + m + 1]
        progressed = network.add(net.tocoo(), shift)
        # a clipped capacity may still carry more at this scale
        if clipped and progressed:
            continue
        if shift == 0:
            break
        shift = max(0, shift - finer)
    complete = not network.supply.any()
    seen = np.zeros(n + m + 2, dtype=bool)
    if not complete:
        # minimum cut: what the source still reaches in the residual network
        graph, _ = network.residual(0)
        seen[breadth_first_order(graph, 0, return_predecessors=False)] = True
    return Transport(
        network.i_used,
        network.j_used,
        complete,
        seen[1 : n + 1],
        seen[n + 1 : -1],
        network.sent,
    )


class _Network:
    """Residual network: the mass still to send, and the flow booked on each edge."""

    def __init__(
        self, i: Indices, j: Indices, supply: Integers, demand: Integers
    ) -> None:
        self.i, self.j = i.astype(np.int32), j.astype(np.int32)
        self.supply, self.demand = supply.copy(), demand.copy()
        self.i_used = self.j_used = np.zeros(0, dtype=np.int64)
        self.sent = supply[:0]

    def residual(self, shift: int) -> tuple[Any, bool]:
        """Return the residual capacities over ``2**shift``, and if any was clipped.

        Node 0 is the source, then come the two distributions, and the sink last.
        """
        n, m = len(self.supply), len(self.demand)
        first, second = np.arange(1, n + 1), np.arange(n + 1, n + m + 1)
        source, sink = np.zeros(n, dtype=int), np.full(m, n + m + 1)
        # Edges, in the order of the capacities below: source to the first distribution
        # (the mass still to send), second distribution to sink (the mass still to
        # arrive), the allowed edges (free), and the same edges backwards where mass was
        # sent.
        tails = [source, second, self.i + 1, self.j_used + n + 1]
        heads = [first, sink, self.j + n + 1, self.i_used + 1]
        finite = [self.supply, self.demand, self.sent]
        finite = [amounts >> shift for amounts in finite]
        clipped = any((amounts > _CAPACITY).any() for amounts in finite)
        supply, demand, sent = (
            np.minimum(amounts, _CAPACITY).astype(np.int32) for amounts in finite
        )
        free = np.full(len(self.i), _CAPACITY, dtype=np.int32)
        capacity = np.concatenate([supply, demand, free, sent])
        tail = np.concatenate(tails, dtype=np.int32, casting="unsafe")
        head = np.concatenate(heads, dtype=np.int32, casting="unsafe")
        if not capacity.all():
            # the searches walk along stored edges, even those of capacity zero
            some = capacity > 0
            capacity, tail, head = capacity[some], tail[some], head[some]
        shape = (n + m + 2, n + m + 2)
        return csr_array((capacity, (tail, head)), shape=shape), clipped

    def add(self, net: Any, shift: int) -> bool:
        """Add a flow of the network ``residual(shift)``; return whether it is any."""
        m = len(self.demand)
        some = net.data != 0
        # Net flow between the distributions: above zero along an edge, below zero where
        # mass that was sent earlier is taken back.
        i, j = net.row[some].astype(np.int64), net.col[some].astype(np.int64)
        amounts = net.data[some].astype(self.supply.dtype) << shift
        # Flow is conserved at each atom, so what an atom sends in net is what it was
        # supplied with from the source; the same at the sink.
        np.subtract.at(self.supply, i, amounts)
        np.subtract.at(self.demand, j, amounts)
        # Edges as single numbers, to add what old and new flow send along each.
        keys = np.concatenate([self.i_used * m + self.j_used, i * m + j])
        amounts = np.concatenate([self.sent, amounts])
        keys, where = np.unique(keys, return_inverse=True)
        sent = np.zeros(len(keys), dtype=self.supply.dtype)
        np.add.at(sent, where, amounts)
        used = sent > 0
        self.sent = sent[used]
        self.i_used, self.j_used = np.divmod(keys[used], m)
        return len(i) > 0


# With fewer pairs within reach, in all or of an atom on average, all are taken.
_SMALL = 500_000
_FEW = 40
# Atoms among which that average is found.
_ASKED = 500
# Pairs drawn for each atom at first, and for each atom next to a cut.
_DRAWN = 6
_ADDED = 2
# Cuts that may lack pairs before all are taken: those of two distributions that match
# in few ways only.
_PATIENCE = 4


class Reach:
    """Pairs of atoms within a radius, for the search of the smallest one.

    `U` (n, d) and `V` (m, d) are distinct atoms, `norm` that of their differences.
    """

    def __init__(self, U: Floats, V: Floats, norm: float) -> None:
        self.U, self.V, self.norm = U, V, norm
        self.tree_u, self.tree_v = KDTree(U), KDTree(V)
        self._keys = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0)
        self._patience = _PATIENCE
        # The same pairs on every run. They steer the search and are no part of the
        # result.
        self._rng = np.random.default_rng(0)

    def pairs(
        self, radius: float, max_pairs: float
    ) -> tuple[Indices, Indices, bool] | None:
        """Return pairs within a radius and whether they are all; None if too many."""
        if self._draws(radius):
            if not len(self._keys):
                i, j = np.arange(len(self.U)), np.arange(len(self.V))
                self._draw(i, j, i, j, radius, _DRAWN)
            if len(self._keys) <= max_pairs:
                within = self._lengths <= radius
                return *np.divmod(self._keys[within], len(self.V)), False
        if (
            len(self.U) * len(self.V) > max_pairs
            and self.tree_u.count_neighbors(self.tree_v, radius, p=self.norm)
            > max_pairs
        ):
            return None
        found = self.tree_u.sparse_distance_matrix(
            self.tree_v, radius, p=self.norm, output_type="ndarray"
        )
        return found["i"], found["j"], True

    def add_across(self, stuck: Booleans, short: Booleans, radius: float) -> None:
        """Draw pairs within a radius across a cut between `stuck` and `short` atoms."""
        self._patience -= 1
        every_i, every_j = np.flatnonzero(stuck), np.flatnonzero(short)
        # only those with anyone across the cut within reach
        i = every_i[nearest(self.V[every_j], self.U[every_i], self.norm) <= radius]
        j = every_j[nearest(self.U[every_i], self.V[every_j], self.norm) <= radius]
        self._draw(i, j, every_i, every_j, radius, _ADDED)

    def _draws(self, radius: float) -> bool:
        """Whether pairs are drawn: all are too many, and not yet asked for."""
        if self._patience <= 0 or len(self.U) * len(self.V) < _SMALL:
            return False
        asked = self.U[:: max(1, len(self.U) // _ASKED)]
        counts = self.tree_v.query_ball_point(
            asked, radius, p=self.norm, return_length=True
        )
        return bool(np.mean(counts) > max(_FEW, _SMALL / len(self.U)))

    def _draw(
        self,
        i: Indices,
        j: Indices,
        every_i: Indices,
        every_j: Indices,
        radius: float,
        times: int,
    ) -> None:
        """Add pairs of each `i` with some of `every_j`, of each `j` with `every_i`.

        Some may be longer than the radius.
        """
        near_j = self._partners(self.U[i], self.V[every_j], radius, times)
        near_i = self._partners(self.V[j], self.U[every_i], radius, times)
        one = np.concatenate([np.tile(i, times + 1), every_i[near_i]])
        other = np.concatenate([every_j[near_j], np.tile(j, times + 1)])
        keys = np.concatenate([self._keys, one * len(self.V) + other])
        keys.sort()
        self._keys = keys[np.diff(keys, prepend=-1) > 0]
        one, other = np.divmod(self._keys, len(self.V))
        self._lengths = norms(self.U[one] - self.V[other], self.norm)

    def _partners(
        self, points: Floats, others: Floats, radius: float, times: int
    ) -> Indices:
        """Nearest of the others, then for each time one at random, mostly in reach."""
        tree = KDTree(others)
        partners = [tree.query(points, p=self.norm)[1]]
        for _ in range(times):
            drawn = self._rng.integers(len(others), size=len(points))
            apart = norms(points - others[drawn], self.norm)
            # Who is too far away says which way to go: what is nearest to a point on
            # the way, within reach.
            far = np.flatnonzero(apart > radius)
            share = radius * self._rng.random(len(far)) ** (1 / points.shape[1])
            ways = others[drawn[far]] - points[far]
            stops = points[far] + ways * (share / apart[far])[:, None]
            drawn[far] = tree.query(stops, p=self.norm)[1]
            partners.append(drawn)
        return np.concatenate(partners)


def nearest(others: Floats, points: Floats, norm: float) -> Floats:
    """Distance of each point to the nearest of the others."""
    distances: Floats = KDTree(others).query(points, p=norm)[0]
    return distances


def norms(differences: Floats, norm: float) -> Floats:
    """Norm of each row."""
    lengths: Floats = np.linalg.norm(differences, ord=norm, axis=1)
    return lengths


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
    """Return the near radius in several dimensions, on a grid if pairs are too many.

    The search goes from below. A radius that is too small leaves a set of atoms with
    more mass than its neighbours and the spare mass.

    Parameters
    ----------
    U, V : ndarray of shape (n, d) and (m, d)
        Atoms, which may repeat.
    a, b : ndarray of int of shape (n,) and (m,)
        Masses, of one sum.
    max_pairs : float
        Most pairs of atoms held at once, at least 1.
    spare : int, default=0
        Mass that may travel any distance, below the sum.
    ceiling : float, default=inf
        The radius is infinite once it is known to reach this.

    Returns
    -------
    radius : float
        Never below the smallest.
    kept : tuple of (x, y, counts) or None
        The mass within the radius; None with a grid or at the ceiling.
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
    """Near radius between distinct atoms, or None if it takes too many pairs."""
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
