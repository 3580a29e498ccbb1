"""Exact transport of integer masses along allowed edges, by maximum flow.

SciPy's solver holds capacities in 32 bits and wraps larger ones without a word, so
masses beyond that go through it a few bits at a time: the flow found so far becomes
the capacity of edges backwards, and the solver runs again on the residual network.

SciPy's ``maximum_bipartite_matching`` would do for atoms of equal masses, but took
minutes on 2000 uniform points in the plane where the flow takes milliseconds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from skpuffer.utils._types import Booleans, Indices, Integers

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
        neighbours in the second, which together hold less mass than the set does; else
        no atoms.
    mass : ndarray of shape (k,)
        What `i` and `j` exchange, above zero, in the integers of the masses.
    """

    i: Indices
    j: Indices
    complete: bool
    stuck: Booleans
    reached: Booleans
    mass: Integers


def send(i: Indices, j: Indices, supply: Integers, demand: Integers) -> Transport:
    """Maximum flow of the masses `supply` to the masses `demand` along edges (i, j).

    Parameters
    ----------
    i, j : ndarray of shape (k,)
        Ends of the distinct edges along which mass may travel.
    supply, demand : ndarray of shape (n,) and (m,), of int64 or of Python integers
        Masses with the same total.

    Returns
    -------
    transport : Transport

    References
    ----------
    Ford and Fulkerson (1956), Maximal flow through a network. The integer scaling is
    that of Edmonds and Karp (1972).
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
