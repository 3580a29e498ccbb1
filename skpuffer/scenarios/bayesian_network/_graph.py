"""Directed acyclic graphs, d-separation and Markov quilts."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skpuffer.exceptions import ScenarioError, Statement

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Directed acyclic graph over positions.

    Parameters
    ----------
    parents : tuple of tuple of int
    """

    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, nodes: Mapping[Any, Sequence[Any]]) -> "Graph":
        """Return the graph of named nodes, or raise if it has a cycle."""
        names = list(nodes)
        graph = cls(tuple(tuple(names.index(p) for p in of) for of in nodes.values()))
        left = set(range(len(names)))
        # Kahn's algorithm: remove nodes without parents until none is left
        while free := {at for at in left if not left & set(graph.parents[at])}:
            left -= free
        if left:
            raise ScenarioError(
                Statement(
                    "network.parents_cyclic", left=[names[at] for at in sorted(left)]
                )
            )
        return graph

    @property
    def children(self) -> list[list[int]]:
        """Children of each node."""
        found: list[list[int]] = [[] for _ in self.parents]
        for at, of in enumerate(self.parents):
            for parent in of:
                found[parent].append(at)
        return found

    def component(self, at: int) -> set[int]:
        """Return the connected component of a node."""
        children, found, left = self.children, {at}, [at]
        while left:
            here = left.pop()
            for other in (*self.parents[here], *children[here]):
                if other not in found:
                    found.add(other)
                    left.append(other)
        return found

    def connected(self, at: int, given: Collection[int]) -> set[int]:
        """Return the nodes that are not d-separated from one node, given others.

        Parameters
        ----------
        at : int
        given : collection of int

        Returns
        -------
        set of int
            With `at`, without `given`.

        References
        ----------
        Koller and Friedman (2009), Probabilistic graphical models, Algorithm 3.1.

        Examples
        --------
        >>> from skpuffer.scenarios.bayesian_network._graph import Graph
        >>> collider = Graph(((), (), (0, 1)))
        >>> collider.connected(0, ()), collider.connected(0, (2,))
        ({0, 2}, {0, 1})
        """
        # A trail is active at a collider if it or a descendant is given: these are the
        # ancestors of what is given, and it.
        given, children = set(given), self.children
        ancestors, left = set(), list(given)
        while left:
            here = left.pop()
            if here not in ancestors:
                ancestors.add(here)
                left.extend(self.parents[here])
        # Visits of a node from a child ("up") or from a parent ("down"). A node that is
        # not given passes trails on to its children, and from a child to its parents
        # too; an active collider sends those from a parent back up to its parents.
        seen, found, visits = set(), set(), [(at, "up")]
        while visits:
            visit = visits.pop()
            if visit in seen:
                continue
            seen.add(visit)
            here, direction = visit
            if here not in given:
                found.add(here)
                visits.extend((child, "down") for child in children[here])
                if direction == "up":
                    visits.extend((parent, "up") for parent in self.parents[here])
            if direction == "down" and here in ancestors:
                visits.extend((parent, "up") for parent in self.parents[here])
        return found

    def quilts(self, at: int, most: int) -> Iterator[tuple[tuple[int, ...], set[int]]]:
        """Yield the Markov quilts of a node and their near sets, the trivial one first.

        Quilts with a node that the others already separate are left out: without it
        the near set is the same and the influence smaller.

        Parameters
        ----------
        at : int
        most : int
            Largest number of nodes in a quilt.

        Yields
        ------
        quilt : tuple of int
        near : set of int
        """
        nodes = range(len(self.parents))
        yield (), set(nodes)
        # what no path leads to is independent: the empty quilt has it all beyond
        others = [node for node in self.component(at) if node != at]
        if len(others) < len(nodes) - 1:
            yield (), {at, *others}
        for size in range(1, min(most, len(others)) + 1):
            for quilt in itertools.combinations(sorted(others), size):
                # every node must still be connected to `at` given the others alone
                needed = all(
                    node in self.connected(at, set(quilt) - {node}) for node in quilt
                )
                if needed:
                    yield quilt, self.connected(at, quilt)
