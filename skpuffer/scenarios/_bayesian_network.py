"""Directed acyclic graphs, d-separation and Markov quilts."""

import itertools
import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.facts import Adjacency, Fact
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    check_count,
    check_extent,
    check_finite,
    check_option,
)
from skpuffer.releases import PublicContext
from skpuffer.utils._checks import check_masses

from ._base import (
    TARGETS_OF_RECORDS,
    AnyRelease,
    BoundScenario,
    Scenario,
    offers,
    restating,
    stated,
)
from ._facts import MaxInfluence
from ._quilts._base import ListedQuilts


@dataclass(frozen=True)
class Graph:
    """Directed acyclic graph over positions."""

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
            raise scenario_error(
                "network.parents_cyclic", left=[names[at] for at in sorted(left)]
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
        """Return the nodes that are not d-separated from `at`, given others.

        Koller and Friedman (2009), Probabilistic graphical models, Algorithm 3.1.

        Examples
        --------
        >>> from skpuffer.scenarios._bayesian_network import Graph
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
        """Yield quilts of at most `most` nodes with near sets, the trivial one first.

        Quilts with a node that the others already separate are left out.
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


# -- small Bayesian networks over records, or over the parameters of columns -----------


class BoundNetwork(BoundScenario):
    """Facts of a network; see :class:`BayesianNetworkScenario`."""

    target_assumption = TARGETS_OF_RECORDS

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        nodes = scenario._nodes()
        self.names = list(nodes)
        self.graph = Graph.of(nodes)
        self.positions = [self.names.index(p) for p in scenario._protected(nodes)]
        if scenario.level == "record" and len(self.names) != context.n_records:
            raise scenario_error(
                "network.nodes_differ_from_records",
                n_names=len(self.names),
                n_records=context.n_records,
            )
        self.joints = scenario._joints()
        self.quilts = tuple(self._quilts(*joint) for joint in self.joints)

    def _quilts(self, joint: Floats, possible: Booleans) -> ListedQuilts:
        """Quilts of all protected nodes under one belief."""
        moves = self.scenario.moves
        # what each node adds to a near set
        sizes = np.array([1 if moves is None else moves[n] for n in self.names], float)
        records = [
            record
            for at in self.positions
            if (record := self._quilts_of(at, joint, possible, sizes)) is not None
        ]
        if not records:
            raise scenario_error("network.no_pair_possible")
        described = {
            "level": self.scenario.level,
            "parents": {
                str(self.names[at]): [str(self.names[p]) for p in of]
                for at, of in enumerate(self.graph.parents)
            },
        }
        # roundings in a mass: one factor for each node, and the sums over the rest
        return ListedQuilts(records, described, joint.ndim + 40)

    def _quilts_of(
        self, at: int, joint: Floats, possible: Booleans, weights: Floats
    ) -> tuple[Any, ...] | None:
        """Quilts of one node as `ListedQuilts` has them; None if it has one value."""
        others = tuple(axis for axis in range(joint.ndim) if axis != at)
        masses = joint.sum(axis=others)
        # different values that both have mass
        compared = (
            (masses > 0)[:, None] & (masses > 0) & ~np.eye(len(masses), dtype=bool)
        )
        if not compared.any():
            return None
        whole = self.scenario.level == "attribute" and self.scenario.moves is None
        sizes, quilts, tables = [], [], []
        for quilt, near in self.graph.quilts(at, int(self.scenario.max_quilt)):
            # the joint distribution of the node and the quilt, the node's axis first
            kept = (at, *quilt)
            rest = tuple(axis for axis in range(joint.ndim) if axis not in kept)
            table, on = (
                np.moveaxis(np.asarray(found), sorted(kept).index(at), 0).reshape(
                    len(masses), -1
                )
                for found in (joint.sum(axis=rest), possible.any(axis=rest))
            )
            # given each value of the node; one without mass is not compared
            with np.errstate(invalid="ignore", divide="ignore"):
                tables.append((np.nan_to_num(table / masses[:, None]), on))
            # a column that changes may change every record
            n = self.context.n_records
            sizes.append(float(n) if whole else float(weights[list(near)].sum()))
            quilts.append(quilt)
        return at, sizes, quilts, tables, compared

    # -- facts -----------------------------------------------------------------------

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts: set[type[Fact]] = set()
        # near nodes are covered by noise, so their moves must be bounded: by what is
        # declared of a query, or by the release for any records
        declared = self.scenario.moves is not None
        if release.is_one_output if declared else release.is_bounded:
            facts.add(MaxInfluence)
        if release.is_bounded:
            facts.add(Adjacency)
        return frozenset(facts)

    @offers(MaxInfluence)
    def _influence(self, release: AnyRelease, norm: float) -> MaxInfluence:
        by_column, move = self.scenario.moves is not None, math.inf
        if by_column:
            # the l1 norm bounds every other, and the smallest unit makes most of a move
            move = 1.0 if release.units is None else 1 / min(release.units)
        return MaxInfluence(
            quilts=self.quilts,
            move=move,
            of_output=by_column,
            assumptions=self.statements(),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        count = self.context.n_records
        if self.scenario.level == "record":
            # What changes with the secret is its ancestors, and what these or it lead
            # to. The others have all of their parents among them: they are independent
            # of these, and may be taken as equal whatever the secret.
            count = max(len(self.graph.connected(at, ())) for at in self.positions)
        return Adjacency.arbitrary(count, self.statements())

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        beliefs = (
            Statement("assume.network_one")
            if len(self.joints) == 1
            else Statement("assume.network_one_of_several")
        )
        secrets = [self.names[at] for at in self.positions]
        if self.scenario.level == "record":
            return (
                Statement(
                    "assume.network_of_records",
                    n_records=len(self.names),
                    beliefs=beliefs,
                    secrets=secrets,
                ),
            )
        sentences: tuple[Statement, ...] = (
            Statement("assume.network_of_columns", beliefs=beliefs, secrets=secrets),
        )
        if self.scenario.moves is not None:
            sentences += (Statement("assume.network_moves_bounded"),)
        return sentences


#: Entries of the joint table that may be enumerated.
_MAX_OUTCOMES = 2**20


class BayesianNetworkScenario(Scenario):
    """The secret is one node of a small Bayesian network, through its neighbours.

    Nodes are records (``level='record'``), such as members of a household, or
    parameters that each govern one column (``level='attribute'``). The latter is
    distributional attribute privacy: a property of the population is secret.

    Parameters
    ----------
    parents : dict of {node: sequence of node}
        Each node and what it depends on, without cycles; records in table order.
    tables : dict of {node: array-like}, or a list of these
        Conditional probabilities of each node, of shape (values of its parents in
        order ..., values of the node). The promise holds for each belief of a list.
    level : {'record', 'attribute'}, default='record'
        Meaning of the nodes.
    protected : sequence of node or None, default=None
        Nodes whose value is secret. None is all.
    moves : dict of {node: float} or None, default=None
        At the level of attributes: how far the output moves at most, in l1, when the
        node's whole column changes.
    max_quilt : int, default=3
        Most nodes in a quilt. Smaller values are faster and equally sound.

    Notes
    -----
    Quilts are found by d-separation. Their max-influence enumerates all outcomes, a
    million at most. At the level of attributes each column depends on the parameters
    through its own only.

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

    _bound = BoundNetwork

    def __init__(
        self,
        parents: Mapping[Hashable, Sequence[Hashable]],
        tables: Mapping[Hashable, ArrayLike] | Sequence[Mapping[Hashable, ArrayLike]],
        *,
        level: str = "record",
        protected: Sequence[Hashable] | None = None,
        moves: Mapping[Hashable, float] | None = None,
        max_quilt: int = 3,
    ) -> None:
        self.parents = parents
        self.tables = tables
        self.level = level
        self.protected = protected
        self.moves = moves
        self.max_quilt = max_quilt

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("record", "attribute"), level=self.level)
        check_count(max_quilt=self.max_quilt)
        nodes = self._nodes()
        self._joints()
        for name in self._protected(nodes):
            if name not in nodes:
                raise scenario_error("network.protected_not_a_node", name=name)
        if self.level == "record" and self.moves is not None:
            raise scenario_error("network.moves_at_record_level")
        if self.moves is not None:
            if not isinstance(self.moves, dict) or set(self.moves) != set(nodes):
                raise scenario_error(
                    "network.moves_not_one_per_node",
                    nodes=list(nodes),
                    moves=self.moves,
                )
            for value in self.moves.values():
                if math.isinf(check_extent(moves=value)):
                    raise scenario_error("network.moves_not_finite", moves=value)

    def _protected(self, nodes: dict[Any, Any]) -> list[Any]:
        if self.protected is None:
            return list(nodes)
        given = self.protected
        if not np.iterable(given) or not all(
            isinstance(one, Hashable) for one in given
        ):
            raise scenario_error("network.protected_not_a_list", given=given)
        return list(given)

    def _nodes(self) -> dict[Any, Any]:
        """Nodes and their parents, by name."""
        if not isinstance(self.parents, dict) or len(self.parents) < 1:
            raise scenario_error("network.parents_not_a_dict", parents=self.parents)
        for name, of in self.parents.items():
            if not np.iterable(of) or not all(isinstance(one, Hashable) for one in of):
                raise scenario_error(
                    "network.parents_not_a_sequence", name=name, parents=of
                )
        nodes = {name: tuple(of) for name, of in self.parents.items()}
        for name, of in nodes.items():
            strangers = [p for p in of if p not in nodes]
            if strangers or len(set(of)) < len(of) or name in of:
                raise scenario_error(
                    "network.parents_repeated_or_self", name=name, parents=of
                )
        return nodes

    def _joints(self) -> list[tuple[Floats, Booleans]]:
        """Masses of all outcomes under each belief, and which can occur."""
        nodes = self._nodes()
        Graph.of(nodes)  # raises if there is a cycle
        given = self.tables
        several = np.iterable(given) and not isinstance(given, dict)
        beliefs: list[Any] = list(given) if several else [given]
        if not beliefs:
            raise scenario_error("network.tables_empty")
        return [self._joint(nodes, tables) for tables in beliefs]

    @staticmethod
    def _joint(
        nodes: dict[Any, Any], tables: dict[Any, Any]
    ) -> tuple[Floats, Booleans]:
        """Masses of all outcomes, an axis for each node, and which can occur."""
        if not isinstance(tables, dict) or set(tables) != set(nodes):
            raise scenario_error("network.tables_not_one_per_node")
        arrays = {name: stated(check_finite, tables=tables[name]) for name in nodes}
        names = list(nodes)
        counts = {n: arrays[n].shape[-1] if arrays[n].ndim else 0 for n in names}
        for name, of in nodes.items():
            shape = (*(counts[p] for p in of), counts[name])
            if arrays[name].shape != shape:
                raise scenario_error(
                    "network.table_shape_invalid",
                    shape=shape,
                    name=name,
                    nodes=(*of, name),
                    given_shape=arrays[name].shape,
                )
            for row in arrays[name].reshape(-1, counts[name]):
                with restating("network.node_table_invalid", name=name):
                    check_masses(len(row), counts=False, tables=row)
        outcomes = math.prod(counts.values())
        if outcomes > _MAX_OUTCOMES or len(names) > 32:
            raise scenario_error(
                "network.too_many_outcomes",
                outcomes=outcomes,
                max_outcomes=_MAX_OUTCOMES,
            )
        joint = np.ones(tuple(counts.values()))
        possible = np.ones(joint.shape, dtype=bool)  # masses underflow, this does not
        for at, (name, of) in enumerate(nodes.items()):
            # chain rule: times P(node | parents), its axes put in the joint's order
            axes = [*(names.index(p) for p in of), at]
            order = np.argsort(axes)
            lengths = [1] * len(names)
            for axis in axes:
                lengths[axis] = counts[names[axis]]
            factor = arrays[name].transpose(order).reshape(lengths)
            joint, possible = joint * factor, possible & (factor > 0)
        # rows sum to one up to round-off, and so does their product
        return joint / joint.sum(), possible

    def __repr__(self) -> str:
        beliefs = 1 if isinstance(self.tables, dict) else len(self.tables)
        parts = [f"<{len(self.parents)} nodes>", f"level={self.level!r}"]
        if beliefs > 1:
            parts.insert(1, f"<{beliefs} beliefs>")
        if self.protected is not None:
            parts.append(f"protected={list(self.protected)!r}")
        parts.append(f"max_quilt={self.max_quilt!r}")
        return f"BayesianNetworkScenario({', '.join(parts)})"
