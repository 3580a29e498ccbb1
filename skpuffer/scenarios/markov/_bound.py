"""The facts that a Markov chain offers about a query."""

import math

import numpy as np
from scipy import sparse

from skpuffer.distributions._lattice_sum import lattice_of
from skpuffer.distributions._weak_cache import life_of
from skpuffer.exceptions import ScenarioError
from skpuffer.releases import QueryRelease
from skpuffer.scenarios._base import (
    TARGETS_OF_RECORDS,
    BoundScenario,
    matched_rows,
    offers,
    protected_records,
)
from skpuffer.scenarios._coupling import coupling_in_table, same_table
from skpuffer.scenarios._facts import (
    Adjacency,
    MaxInfluence,
    OutputDistributions,
    arbitrary_coupling,
)

from ._chains import Chains, marginal_laws, smallest_window
from ._quilts import chain_influence
from ._routes import SumProblem, laws_of, within_reach

__all__ = ["BoundMarkovChain"]


class BoundMarkovChain(BoundScenario):
    """The facts a Markov chain offers; see :class:`MarkovChainScenario`."""

    target_assumption = TARGETS_OF_RECORDS

    def __init__(self, scenario, context):
        super().__init__(scenario, context)
        n = context.n_records
        self.chains = scenario.chains()
        self.n_states = len(self.chains[0][0])
        self.positions = tuple(protected_records(scenario.protected, n))
        self.rows = scenario._state_rows(context)
        possible = [
            (marginal_laws(*chain, n)[list(self.positions)] > 0).sum(axis=1)
            for chain in self.chains
        ]
        least = 2 if scenario.pairs == "same_index" else 0
        if not any(np.any(count >= least) for count in possible):
            raise ScenarioError(
                "No chain gives two states a positive probability at one protected "
                "time, so there is nothing to keep apart."
            )
        self.width, self.delta = self._window()

    def _window(self):
        """Smallest width of a window with what happens outside it, or (None, 0)."""
        n, scenario = self.context.n_records, self.scenario
        if scenario.pairs == "all":
            return None, 0.0
        return smallest_window(
            life_of(scenario), Chains(self.chains, n), float(scenario.event_delta)
        )

    def check_rows(self, X):
        """Return the states that records are; refuse others."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        # a series has few states, and each is compared once
        distinct, inverse = np.unique(X, axis=0, return_inverse=True)
        states = matched_rows(distinct, self.rows)
        if np.any(states < 0):
            raise ScenarioError(
                "The data has records that are none of the states of the chain: give "
                "the records that states stand for, as they reach this estimator, in "
                "the parameter 'states' of the scenario, or bin the data as they are."
            )
        return self.rows[states[inverse.ravel()]]

    # -- facts --------------------------------------------------------------------

    def provides(self, release):
        facts = set()
        if release.sensitivity is not None or self._values(release) is not None:
            facts.add(Adjacency)
            if self.scenario.pairs == "same_index" and isinstance(
                release, QueryRelease
            ):
                facts.add(MaxInfluence)
        problem = self._problem(release)
        if problem is not None and within_reach(life_of(self.scenario), problem):
            facts.add(OutputDistributions)
        return frozenset(facts)

    def _values(self, release):
        """What each state contributes, of shape (n_states, dim), or None."""
        contribution = release.contribution
        if contribution is None or getattr(contribution, "needs_target", False):
            return None
        if not release.moves_with_contributions:
            return None
        values = np.asarray(contribution(self.rows, None), dtype=float)
        if not np.all(np.isfinite(values)):
            raise ScenarioError(
                f"The release {release.name!r} is not finite on the states: look for "
                "states that the query cannot take."
            )
        return values.reshape(self.n_states, -1)

    def _problem(self, release):
        """Laws of the sum to compute, or None if it has no lattice."""
        if not isinstance(release, QueryRelease) or not release.is_sum:
            return None
        values = self._values(release)
        lattice = None if values is None else lattice_of(values)
        if lattice is None:
            return None
        origin, direction, weights = lattice
        units = release.unit_array
        return SumProblem(
            chains=Chains(self.chains, self.context.n_records),
            positions=self.positions,
            pairs=self.scenario.pairs,
            origin=tuple((origin * units).tolist()),
            direction=tuple((direction * units).tolist()),
            weights=tuple(weights.tolist()),
            width=self.width,
            outside=self.delta,
            lossy=self.scenario.event_delta > 0,
        )

    @offers(OutputDistributions)
    def _output_distributions(self, release, norm):
        laws = laws_of(life_of(self.scenario), self._problem(release))
        if laws is None:
            raise ScenarioError(
                f"Some values of the release {release.name!r} are too unlikely under "
                "the chain for their probabilities to be computed. Use MarkovQuilt, "
                "which needs no laws, or coarser states."
            )
        delta = laws.lost + (self.delta if laws.windows else 0.0)
        return OutputDistributions(
            laws=laws.laws,
            secrets=laws.secrets,
            pairs=laws.pairs,
            scale=abs(release.factor),
            delta=delta,
            assumptions=self.statements(self.width if laws.windows else None),
        )

    @offers(Adjacency)
    def _adjacency(self, release, norm):
        n, width = self.context.n_records, self.width
        count, delta = n, 0.0
        if width is not None and 2 * width - 1 < n:
            count, delta = 2 * width - 1, self.delta
        coupling, shared = arbitrary_coupling("replace", n), ()
        if count < n:
            coupling = coupling_in_table(
                self, "chain", self.chains, self.positions, width
            )
            shared = same_table(coupling, self.scenario.table)
        return Adjacency(
            count=count,
            shift=self._reach(release, norm),
            relation="replace",
            coupling_id=coupling,
            count_is_certain=count == n or delta == 0,
            delta=delta,
            assumptions=(*self.statements(width if count < n else None), *shared),
        )

    def _reach(self, release, norm):
        """How far one record moves its contribution from state to state, at most."""
        values = self._values(release)
        if values is None:
            return math.inf
        gaps = values[:, None] - values[None]
        return float(np.linalg.norm(gaps, release.shift_norm(norm), axis=2).max())

    @offers(MaxInfluence)
    def _influence(self, release, norm):
        return chain_influence(
            self.chains,
            self.context.n_records,
            shift=self._reach(release, norm),
            protected=self.scenario.protected,
            assumptions=self.statements(),
            life=life_of(self.scenario),
        )

    def statements(self, width=None):
        """What the chain assumes of the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        pair = {
            "same_index": "two states at the same time",
            "all": "any state at any time and any other",
        }[scenario.pairs]
        times = "any time"
        if scenario.protected is not None:
            times = f"{len(self.positions)} of the {n} times"
        chain = "a Markov chain with the stated probabilities"
        if len(self.chains) > 1:
            chain = f"one of {len(self.chains)} stated Markov chains"
        window = (
            f"the worlds of a pair agree on all records {width} or more steps from the "
            "secret, except for the stated event",
        )
        return (
            f"the secret is the state at {times}; kept apart are {pair}",
            f"the {n} records, in the order of the table, are {chain}, and each is one "
            f"of its {self.n_states} states",
            f"the number of records ({n}) is public",
            *(() if width is None else window),
        )
