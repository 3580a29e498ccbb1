"""Small Bayesian networks over records, or over what governs the columns."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_count, check_masses, check_option, check_real

from ._base import BoundScenario, Scenario
from ._facts import Influence, RecordShifts, arbitrary_coupling
from ._quilts import ListedQuilts

__all__ = ["BayesianNetworkScenario"]

#: Entries of the joint table that may be enumerated.
_MAX_OUTCOMES = 2**20


class BayesianNetworkScenario(Scenario):
    """The secret is one node of a small network, and its neighbours give it away.

    The nodes are the records of the table (``level='record'``), such as the members of
    a household, or parameters that govern one column each (``level='attribute'``), such
    as a region's rate of a disease and of a treatment: distributional attribute
    privacy, where not a person but a property of the whole population is secret.

    Parameters
    ----------
    parents : dict of {node: sequence of node}
        Each node and what it depends on, without cycles. At the level of records, in
        the order of the table.
    tables : dict of {node: array-like}, or a list of these
        Conditional probabilities of each node, of shape (values of its parents in
        their order ..., values of the node): the last axis sums to one. A list is a
        finite set of beliefs, and the promise holds for each.
    level : {'record', 'attribute'}, default='record'
        What the nodes are.
    protected : sequence of node or None, default=None
        Nodes whose value is secret. None is all.
    moves : dict of {node: float} or None, default=None
        At the level of attributes: how far the output moves at most, in l1 and the
        output's own units, when the node's whole column changes.
    max_quilt : int, default=3
        Look for quilts of at most so many nodes. Fewer are faster, and never unsound.

    See Also
    --------
    MarkovChainScenario : Long chains.

    Notes
    -----
    Quilts are found by d-separation, and what they tell by enumerating all outcomes, a
    million of them at most. At the level of attributes each column depends on the
    parameters through its own only.

    References
    ----------
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data,
    section 4; Zhang, Ohrimenko and Cummings (2022), Attribute privacy, section 5.

    Examples
    --------
    A child's illness tells about its parents', and theirs about it:

    >>> from skpuffer.accountants import MarkovQuilt
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import BayesianNetworkScenario
    >>> scenario = BayesianNetworkScenario(
    ...     parents={"mother": (), "father": (), "child": ("mother", "father")},
    ...     tables={
    ...         "mother": [0.9, 0.1],
    ...         "father": [0.9, 0.1],
    ...         "child": [[[0.9, 0.1], [0.8, 0.2]], [[0.8, 0.2], [0.7, 0.3]]],
    ...     },
    ... )
    >>> count = QueryRelease(
    ...     query=lambda X, y: X.sum(),
    ...     n_records=3,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={1: 1.0}, replace={1: 1.0}),
    ... )
    >>> round(MarkovQuilt(epsilon=2.0).calibrate(count, scenario).noise.scale, 3)
    1.17
    """

    def __init__(
        self,
        parents,
        tables,
        *,
        level="record",
        protected=None,
        moves=None,
        max_quilt=3,
    ):
        self.parents = parents
        self.tables = tables
        self.level = level
        self.protected = protected
        self.moves = moves
        self.max_quilt = max_quilt

    def check(self):
        """Check the parameters; see the class."""
        check_option(("record", "attribute"), level=self.level)
        check_count(max_quilt=self.max_quilt)
        nodes = self._nodes()
        self._joints()
        for name in self._protected(nodes):
            if name not in nodes:
                raise ScenarioError(
                    f"The parameter 'protected' names {name!r}, which is no node of "
                    "'parents'."
                )
        if self.level == "record" and self.moves is not None:
            raise ScenarioError(
                "The parameter 'moves' goes with level='attribute': a record's move is "
                "known from the release. Omit it."
            )
        if self.moves is not None:
            if set(self.moves) != set(nodes):
                raise ScenarioError(
                    "The parameter 'moves' must name each node once. Got "
                    f"{list(self.moves)!r} for {list(nodes)!r}."
                )
            for value in self.moves.values():
                if not 0 <= check_real(moves=value) < math.inf:
                    raise ScenarioError(
                        "The parameter 'moves' must hold finite non-negative numbers. "
                        f"Got {value!r}."
                    )

    def _protected(self, nodes):
        return list(nodes) if self.protected is None else list(self.protected)

    def _nodes(self):
        """Return the nodes and their parents, by position."""
        if not isinstance(self.parents, dict) or len(self.parents) < 1:
            raise ScenarioError(
                "The parameter 'parents' must be a dict from each node to what it "
                f"depends on. Got {self.parents!r}."
            )
        nodes = {name: tuple(of) for name, of in self.parents.items()}
        for name, of in nodes.items():
            strangers = [p for p in of if p not in nodes]
            if strangers or len(set(of)) < len(of) or name in of:
                raise ScenarioError(
                    f"The parameter 'parents' of {name!r} must be other nodes, each "
                    f"once. Got {of!r}."
                )
        return nodes

    def _joints(self):
        """Return the masses of all outcomes under each belief, and which can occur."""
        nodes = self._nodes()
        Graph.of(nodes)  # raises if there is a cycle
        given = self.tables
        beliefs = [given] if isinstance(given, dict) else list(given)
        if not beliefs:
            raise ScenarioError("The parameter 'tables' holds no belief.")
        return [self._joint(nodes, tables) for tables in beliefs]

    @staticmethod
    def _joint(nodes, tables):
        if not isinstance(tables, dict) or set(tables) != set(nodes):
            raise ScenarioError(
                "The parameter 'tables' must hold one table for each node of 'parents'."
            )
        arrays = {name: np.asarray(tables[name], dtype=float) for name in nodes}
        names = list(nodes)
        counts = {n: arrays[n].shape[-1] if arrays[n].ndim else 0 for n in names}
        for name, of in nodes.items():
            shape = (*(counts[p] for p in of), counts[name])
            if arrays[name].shape != shape:
                raise ScenarioError(
                    f"The parameter 'tables' must have shape {shape} for {name!r}, an "
                    f"axis for each of {(*of, name)!r}. Got {arrays[name].shape}."
                )
            for row in arrays[name].reshape(-1, counts[name]):
                try:
                    check_masses(len(row), tables=row)
                except ValueError as error:
                    raise ScenarioError(f"For the node {name!r}: {error}") from None
        outcomes = math.prod(counts.values())
        if outcomes > _MAX_OUTCOMES or len(names) > 32:
            raise ScenarioError(
                f"The network has {outcomes} outcomes, more than the {_MAX_OUTCOMES} "
                "that can be enumerated. Split it where it falls apart, or use "
                "MarkovChainScenario for chains."
            )
        joint = np.ones(tuple(counts.values()))
        possible = np.ones(joint.shape, dtype=bool)  # masses underflow, this does not
        for at, (name, of) in enumerate(nodes.items()):
            axes = [*(names.index(p) for p in of), at]
            order = np.argsort(axes)
            shape = [1] * len(names)
            for axis in axes:
                shape[axis] = counts[names[axis]]
            factor = arrays[name].transpose(order).reshape(shape)
            joint, possible = joint * factor, possible & (factor > 0)
        return joint / joint.sum(), possible

    def bind(self, context):
        """Meet the public facts of a table; see :class:`Scenario`."""
        self.check()
        return BoundNetwork(self, context)

    def __repr__(self):
        beliefs = 1 if isinstance(self.tables, dict) else len(self.tables)
        parts = [f"<{len(self.parents)} nodes>", f"level={self.level!r}"]
        if beliefs > 1:
            parts.insert(1, f"<{beliefs} beliefs>")
        if self.protected is not None:
            parts.append(f"protected={list(self.protected)!r}")
        parts.append(f"max_quilt={self.max_quilt!r}")
        return f"BayesianNetworkScenario({', '.join(parts)})"


class BoundNetwork(BoundScenario):
    """The facts a network offers; see :class:`BayesianNetworkScenario`."""

    _facts = {Influence: "_influence", RecordShifts: "_record_shifts"}

    target_assumption = (
        "targets are no part of what is stated of the records; given all records, each "
        "depends on its own alone"
    )

    def __init__(self, scenario, context):
        super().__init__(scenario, context)
        nodes = scenario._nodes()
        self.names = list(nodes)
        self.graph = Graph.of(nodes)
        self.positions = [self.names.index(p) for p in scenario._protected(nodes)]
        if scenario.level == "record" and len(self.names) != context.n_records:
            raise ScenarioError(
                f"The network has {len(self.names)} nodes, but the table has "
                f"{context.n_records} records: at level='record' there is a node for "
                "each."
            )
        self.joints = scenario._joints()
        self.worlds = tuple(self._quilts(*joint) for joint in self.joints)

    def _quilts(self, joint, possible):
        sizes = self._sizes()
        records = [
            record
            for at in self.positions
            if (record := self._quilts_of(at, joint, possible, sizes)) is not None
        ]
        if not records:
            raise ScenarioError(
                "No protected node can have two different values, so there is nothing "
                "to keep secret."
            )
        described = {
            "kind": "bayesian_network",
            "level": self.scenario.level,
            "parents": {
                str(self.names[at]): [str(self.names[p]) for p in of]
                for at, of in enumerate(self.graph.parents)
            },
        }
        return ListedQuilts(records, described, joint.ndim + 40)

    def _sizes(self):
        """What each node adds to the size of a near set."""
        if self.scenario.moves is not None:
            return np.array([float(self.scenario.moves[n]) for n in self.names])
        return np.ones(len(self.names))

    def _quilts_of(self, at, joint, possible, weights):
        others = tuple(axis for axis in range(joint.ndim) if axis != at)
        masses = joint.sum(axis=others)
        compared = (
            (masses > 0)[:, None] & (masses > 0) & ~np.eye(len(masses), dtype=bool)
        )
        if not compared.any():
            return None
        whole = self.scenario.level == "attribute" and self.scenario.moves is None
        sizes, quilts, laws = [], [], []
        for quilt, near in self.graph.quilts(at, int(self.scenario.max_quilt)):
            kept = (at, *quilt)
            rest = tuple(axis for axis in range(joint.ndim) if axis not in kept)
            table, on = (
                np.moveaxis(found, sorted(kept).index(at), 0).reshape(len(masses), -1)
                for found in (joint.sum(axis=rest), possible.any(axis=rest))
            )
            with np.errstate(invalid="ignore", divide="ignore"):
                laws.append((np.nan_to_num(table / masses[:, None]), on))
            # a column that changes may change every record
            n = self.context.n_records
            sizes.append(float(n) if whole else float(weights[list(near)].sum()))
            quilts.append(quilt)
        return at, sizes, quilts, laws, compared

    # -- facts -----------------------------------------------------------------------

    def provides(self, release):
        if not isinstance(release, QueryRelease):
            return frozenset()
        facts = set()
        if self.scenario.moves is not None or release.sensitivity is not None:
            facts.add(Influence)
        if release.sensitivity is not None:
            facts.add(RecordShifts)
        return frozenset(facts)

    def _influence(self, release, norm):
        moved, shift = self.scenario.moves is not None, math.inf
        if moved:
            # l1 is the largest of the norms, and the smallest unit makes most of a move
            shift = 1.0 if release.units is None else 1 / min(release.units)
        return Influence(
            worlds=self.worlds,
            shift=shift,
            of_output=moved,
            assumptions=self._assumptions(),
        )

    def _record_shifts(self, release, norm):
        count = self.context.n_records
        if self.scenario.level == "record":
            count = max(len(self.graph.component(at)) for at in self.positions)
        return RecordShifts(
            count=count,
            shift=math.inf,
            relation="replace",
            coupling_id=arbitrary_coupling("replace", count),
            assumptions=self._assumptions(),
        )

    def _assumptions(self):
        beliefs = "the network" if len(self.joints) == 1 else "one of the networks"
        secrets = ", ".join(str(self.names[at]) for at in self.positions)
        if self.scenario.level == "record":
            return (
                f"the {len(self.names)} records, in the order of the table, follow "
                f"{beliefs} stated; secret is the value of any one of: {secrets}",
            )
        sentences = (
            f"the parameters of the columns follow {beliefs} stated, and each column "
            f"depends on them through its own only; secret is any one of: {secrets}",
        )
        if self.scenario.moves is not None:
            sentences += (
                "a column moves the output by no more than the parameter 'moves' says",
            )
        return sentences


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph over positions.

    Parameters
    ----------
    parents : tuple of tuple of int
    """

    parents: tuple

    @classmethod
    def of(cls, nodes):
        """Return the graph of nodes by name, or raise if it has a cycle."""
        names = list(nodes)
        graph = cls(tuple(tuple(names.index(p) for p in of) for of in nodes.values()))
        left = set(range(len(names)))
        while free := {at for at in left if not left & set(graph.parents[at])}:
            left -= free
        if left:
            raise ScenarioError(
                "The parameter 'parents' has a cycle through "
                f"{[names[at] for at in sorted(left)]!r}."
            )
        return graph

    @property
    def children(self):
        """Children of each node."""
        found = [[] for _ in self.parents]
        for at, of in enumerate(self.parents):
            for parent in of:
                found[parent].append(at)
        return found

    def component(self, at):
        """Return the nodes connected with one, itself among them."""
        children, found, left = self.children, {at}, [at]
        while left:
            here = left.pop()
            for other in (*self.parents[here], *children[here]):
                if other not in found:
                    found.add(other)
                    left.append(other)
        return found

    def connected(self, at, given):
        """Return the nodes not d-separated from one given others.

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
        >>> from skpuffer.scenarios._network import Graph
        >>> collider = Graph(((), (), (0, 1)))
        >>> collider.connected(0, ()), collider.connected(0, (2,))
        ({0, 2}, {0, 1})
        """
        given, children = set(given), self.children
        ancestors, left = set(), list(given)
        while left:
            here = left.pop()
            if here not in ancestors:
                ancestors.add(here)
                left.extend(self.parents[here])
        seen, found, ways = set(), set(), [(at, "up")]
        while ways:
            way = ways.pop()
            if way in seen:
                continue
            seen.add(way)
            here, direction = way
            if here not in given:
                found.add(here)
                ways.extend((child, "down") for child in children[here])
                if direction == "up":
                    ways.extend((parent, "up") for parent in self.parents[here])
            if direction == "down" and here in ancestors:
                ways.extend((parent, "up") for parent in self.parents[here])
        return found

    def quilts(self, at, most):
        """Go through the quilts of a node, the trivial one first.

        Quilts with a node that the others already separate are left out: without it
        the near set is the same and less is told.

        Parameters
        ----------
        at : int
        most : int
            Nodes of a quilt at most.

        Yields
        ------
        quilt : tuple of int
        near : set of int
        """
        nodes = range(len(self.parents))
        yield (), set(nodes)
        others = [node for node in self.component(at) if node != at]
        if len(others) < len(nodes) - 1:
            yield (), {at, *others}
        for size in range(1, min(most, len(others)) + 1):
            for quilt in itertools.combinations(sorted(others), size):
                needed = all(
                    node in self.connected(at, set(quilt) - {node}) for node in quilt
                )
                if needed:
                    yield quilt, self.connected(at, quilt)
