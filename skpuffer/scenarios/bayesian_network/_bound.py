"""Facts of a Bayesian network bound to a table."""

import math
from typing import Any

import numpy as np

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import (
    TARGETS_OF_RECORDS,
    AnyRelease,
    BoundScenario,
    offers,
)
from skpuffer.scenarios._facts import Adjacency, Fact, MaxInfluence
from skpuffer.scenarios.quilts._base import ListedQuilts

from ._graph import Graph

__all__ = ["BoundNetwork"]


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
            raise ScenarioError(
                Statement(
                    "network.nodes_differ_from_records",
                    n_names=len(self.names),
                    n_records=context.n_records,
                )
            )
        self.joints = scenario._joints()
        self.quilts = tuple(self._quilts(*joint) for joint in self.joints)

    def _quilts(self, joint, possible):
        """Quilts of all protected nodes under one belief."""
        sizes = self._sizes()
        records = [
            record
            for at in self.positions
            if (record := self._quilts_of(at, joint, possible, sizes)) is not None
        ]
        if not records:
            raise ScenarioError(Statement("network.no_pair_possible"))
        described = {
            "level": self.scenario.level,
            "parents": {
                str(self.names[at]): [str(self.names[p]) for p in of]
                for at, of in enumerate(self.graph.parents)
            },
        }
        # roundings in a mass: one factor for each node, and the sums over the rest
        return ListedQuilts(records, described, joint.ndim + 40)

    def _sizes(self):
        """Size that each node adds to a near set."""
        if self.scenario.moves is not None:
            return np.array([float(self.scenario.moves[n]) for n in self.names])
        return np.ones(len(self.names))

    def _quilts_of(self, at, joint, possible, weights):
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
                np.moveaxis(found, sorted(kept).index(at), 0).reshape(len(masses), -1)
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
        facts = set()
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
        sentences = (
            Statement("assume.network_of_columns", beliefs=beliefs, secrets=secrets),
        )
        if self.scenario.moves is not None:
            sentences += (Statement("assume.network_moves_bounded"),)
        return sentences
