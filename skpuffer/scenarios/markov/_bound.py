"""Facts of a Markov chain bound to a table."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy import sparse

from skpuffer.distributions._lattice_sum import lattice_of
from skpuffer.distributions._weak_cache import life_of, remembered_with
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import (
    Adjacency,
    Fact,
    MaxInfluence,
    OutputDistributions,
    arbitrary_coupling,
)
from skpuffer.kernel.numbers import Floats, lengths_of
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios._base import (
    TARGETS_OF_RECORDS,
    AnyRelease,
    BoundScenario,
    Rows,
    matched_rows,
    offers,
    protected_records,
)
from skpuffer.scenarios._coupling import coupling_in_table, same_table

from ._chains import Chains, settling_marginals, smallest_window
from ._quilts import chain_influence
from ._routes import SumProblem, computable, sum_distributions

__all__ = ["BoundMarkovChain"]


# Numbers in the transitions of pairs of states that are worth the time.
_MOST_NUMBERS = 200_000

#: Above what rounding may take off a probability here.
_ROUNDED = 1e-14


class Meeting(NamedTuple):
    """Bounds of how likely coupled chains differ, each of shape (n,).

    Parameters
    ----------
    count : ndarray
        In more than 0, 1, ... records.
    distance : ndarray
        In any record that is 0, 1, ... or more steps from the secret.
    """

    count: Floats
    distance: Floats


@remembered_with(1)
def meeting(life: object, chains: Chains) -> Meeting | None:
    """Bound in how many records coupled chains differ, and how far from the secret.

    The chains differ at one time. On either side of it they are coupled step by step,
    the next states being the same with the largest probability there is, until they
    meet; from then on they are one. Given the state at that time the two sides are
    independent.

    Parameters
    ----------
    life : object
        What keeps the result; see `life_of`.
    chains : Chains

    Returns
    -------
    Meeting or None
        The largest over chains, times and pairs of states. None where it would take too
        long.
    """
    found = [_of_chain(*chain, chains.n) for chain in chains.chains]
    if any(one is None for one in found):
        return None
    return Meeting(*np.max(found, axis=0))


def _of_chain(initial: Floats, transition: Floats, n: int) -> Meeting | None:
    known = settling_marginals(initial, transition, n)
    # once they have settled all steps are alike backwards
    marginals = np.concatenate([known.masses, known.masses[-1:]])[:n]
    if np.allclose(marginals, initial, rtol=1e-12, atol=0):
        marginals = marginals[:2]  # they had from the start
    # by Bayes' rule, the chain in reversed time; no row for a state without mass
    backwards = [
        np.divide(
            (before[:, None] * transition).T,
            now[:, None],
            out=np.zeros_like(transition),
            where=now[:, None] > 0,
        )
        for before, now in zip(marginals, marginals[1:], strict=False)
    ]
    if len(backwards) * len(initial) ** 4 > _MOST_NUMBERS:
        return None
    left = _survival(backwards, n, known.drift)
    right = _survival([transition], n)
    # further on both are level
    m = min(n, len(left) + len(right))
    left, right = (np.pad(one, (0, m - len(one)), "edge") for one in (left, right))
    # more than k differ, with the secret's own, if k or more do on both sides together:
    # l on the left and k - l or more on the right, or more than k on the left
    beyond = np.append(left[1:], left[-1])
    both = np.maximum(scipy.signal.fftconvolve(left[:-1] - left[1:], right)[:m], 0.0)
    count = np.minimum(1.0, both + beyond + _ROUNDED)
    distance = np.minimum(1.0, left + right - left * right + _ROUNDED)
    return Meeting(*(np.pad(one, (0, n - m), "edge") for one in (count, distance)))


def _survival(steps: Sequence[Floats], n: int, drift: float = 0.0) -> Floats:
    """Bound how likely chains have not met after 0, 1, ... steps, at worst.

    The steps are known to a relative error of `drift`, beyond rounding.
    """
    pairs = np.array([_apart(step) for step in steps])
    k = len(steps[0])
    states, found = 1.0 - np.eye(k), [1.0]
    # the worst step each time: exact where all of them are alike
    while len(found) < n and found[-1] > _ROUNDED:
        states = np.einsum("sabcd,cd->sab", pairs, states).max(axis=0)
        # what two states have beyond each other, and its total, drift by so much
        rounded = _ROUNDED + 10 * drift * found[-1]
        found.append(min(found[-1], float(states.max()) * (1 + 1e-9) + rounded))
    return np.array(found)


def _apart(step: Floats) -> Floats:
    """Probabilities to go from two states to two that differ, coupled to be the same.

    What either has beyond the other's probability is drawn independently.
    """
    first, second = step[:, None, :], step[None, :, :]
    same = np.minimum(first, second)
    one, other = first - same, second - same
    total = other.sum(axis=2)
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return one[..., :, None] * other[..., None, :] * scale[..., None, None]


class BoundMarkovChain(BoundScenario):
    """Facts of a Markov chain; see :class:`MarkovChainScenario`."""

    target_assumption = TARGETS_OF_RECORDS

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        n = context.n_records
        self.chains = scenario.chains()
        self.n_states = len(self.chains[0][0])
        self.positions = tuple(protected_records(scenario.protected, n))
        self.rows = scenario._state_rows(context)
        # number of states with a positive probability, by chain and protected time
        possible = [
            (settling_marginals(*chain, n).at(self.positions)[0] > 0).sum(axis=1)
            for chain in self.chains
        ]
        # secrets of a pair are states at one time, or at any two
        apart = np.max if scenario.pairs == "same_index" else np.sum
        if max(apart(count) for count in possible) < 2:
            raise ScenarioError(Statement("markov.no_pair_possible"))
        self.width, self.delta = self._window()
        # the last sum asked about: of a long series its distributions may take more
        # memory than all that is cached
        self._sum = None, None

    def _window(self):
        """Smallest width of a window and the event outside it, or (None, 0)."""
        n, scenario = self.context.n_records, self.scenario
        if scenario.pairs == "all":
            return None, 0.0
        width, delta = smallest_window(
            life_of(scenario), Chains(self.chains, n), float(scenario.event_delta)
        )
        return width, float(delta)

    def check_rows(self, X: Rows) -> Rows:
        """Return the states that records are; refuse others."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        # a series has few states, and each is compared once
        distinct, inverse = np.unique(X, axis=0, return_inverse=True)
        states = matched_rows(distinct, self.rows)
        if np.any(states < 0):
            raise ScenarioError(Statement("markov.records_not_states"))
        return self.rows[states[inverse.ravel()]]

    # -- facts --------------------------------------------------------------------

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts = set()
        if release.is_bounded or self._values(release) is not None:
            facts.add(Adjacency)
            # influence compares the values of one record
            if self.scenario.pairs == "same_index":
                facts.add(MaxInfluence)
        problem = self._problem(release)
        if problem is not None and computable(life_of(self.scenario), problem):
            facts.add(OutputDistributions)
        return frozenset(facts)

    def _values(self, release):
        """Contribution of each state, of shape (n_states, dim), or None."""
        contribution = release.contribution
        if contribution is None or getattr(contribution, "needs_target", False):
            return None
        if not release.moves_with_contributions:
            return None
        values = np.asarray(contribution(self.rows, None), dtype=float)
        if not np.all(np.isfinite(values)):
            raise ScenarioError(
                Statement("markov.release_not_finite", name=release.name)
            )
        return values.reshape(self.n_states, -1)

    def _problem(self, release):
        """The sum whose distributions are asked for, or None if it has no lattice."""
        if not isinstance(release, QueryRelease) or not release.is_sum:
            return None
        values = self._values(release)
        lattice = None if values is None else lattice_of(values)
        if lattice is None:
            return None
        # all that the distributions depend on, as one key of the cache
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
    def _output_distributions(
        self, release: AnyRelease, norm: float
    ) -> OutputDistributions:
        problem = self._problem(release)
        if self._sum[0] != problem:
            found = sum_distributions(life_of(self.scenario), problem)
            self._sum = problem, found
        found = self._sum[1]
        if found is None:
            raise ScenarioError(
                Statement("markov.values_too_unlikely", name=release.name)
            )
        # atoms that were too light, and the event on which coupled chains differ
        # outside of the window
        delta = found.lost + (self.delta if found.windows else 0.0)
        return OutputDistributions(
            distributions=found.distributions,
            secrets=found.secrets,
            pairs=found.pairs,
            scale=abs(release.factor),
            delta=delta,
            assumptions=self.statements(self.width if found.windows else None),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        n, width = self.context.n_records, self.width
        # all records may differ, by any coupling; or those of a window, by that of its
        # ends or step by step
        count, delta, window = n, 0.0, None
        coupling, shared = arbitrary_coupling("replace", n), ()
        if width is not None and 2 * width - 1 < n:
            # the secret, and less than `width` records on either side of it
            window, delta = 2 * width - 1, self.delta
            count, met = window, self._met(window)
            if met is not None:
                count, width, delta = met
                window = 2 * width - 1
            coupling = coupling_in_table(
                self, "chain", self.chains, self.positions, width, met is None
            )
            shared = same_table(coupling, self.scenario.table)
        return Adjacency(
            count=count,
            move=self._record_sensitivity(release, norm),
            relation="replace",
            coupling_id=coupling,
            count_is_certain=count == n or delta == 0,
            # of a query nobody asks for it
            survival=None if isinstance(release, QueryRelease) else self._survival(),
            delta=delta,
            sequences=(np.arange(n),),
            window=window,
            assumptions=(*self.statements(width if window else None, count), *shared),
        )

    def _met(self, window):
        """Fewer records than a window has that differ, by chains that meet.

        With the width of their own window, as one coupling serves what reads the number
        and what reads the window, and the mass of the event in which more differ or
        further out. None if there are no fewer.
        """
        n, rare = self.context.n_records, float(self.scenario.event_delta)
        law = meeting(life_of(self.scenario), Chains(self.chains, n))
        if law is None or not rare:
            return None
        # Both fall; the last entry is for none so rare. More records and further ones
        # are two events: of two releases that are added up each may read another.
        half = rare / 2
        count, width = (int(np.append(p <= half, True).argmax()) for p in law)
        if count >= window or 2 * width - 1 >= n:
            return None
        return count, width, float(law.count[count] + law.distance[width])

    def _survival(self):
        """Law of the number of records that differ, if all may be left to chance."""
        scenario, n = self.scenario, self.context.n_records
        # what is weighed by it does not add up, so a table with a name has none
        if scenario.pairs == "all" or not scenario.event_delta or scenario.table:
            return None
        if n == 1:
            return None
        law = meeting(life_of(scenario), Chains(self.chains, n))
        return None if law is None else law.count

    def _record_sensitivity(self, release, norm):
        """Sensitivity of one record's contribution: largest gap between states."""
        values = self._values(release)
        if values is None:
            return math.inf
        # a record may go from any state to any other
        gaps = values[:, None] - values[None]
        return float(lengths_of(gaps, release.shift_norm(norm)).max())

    @offers(MaxInfluence)
    def _influence(self, release: AnyRelease, norm: float) -> MaxInfluence:
        return chain_influence(
            self.chains,
            self.context.n_records,
            move=self._record_sensitivity(release, norm),
            protected=self.scenario.protected,
            assumptions=self.statements(),
            life=life_of(self.scenario),
        )

    def statements(
        self, width: int | None = None, count: int | None = None
    ) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        pair = {
            "same_index": Statement("assume.markov_states_same_time"),
            "all": Statement("assume.markov_states_any_time"),
        }[scenario.pairs]
        times = Statement("assume.markov_any_time")
        if scenario.protected is not None:
            times = Statement(
                "assume.markov_some_times", n_positions=len(self.positions), n=n
            )
        chain = Statement("assume.markov_stated_chain")
        if len(self.chains) > 1:
            chain = Statement("assume.markov_one_of_chains", n_chains=len(self.chains))
        window = (
            Statement("assume.markov_agree_outside_window", width=width)
            if count is None
            else Statement(
                "assume.markov_agree_outside_all_but", width=width, count=count
            ),
        )
        return (
            Statement("assume.markov_secret_state", times=times, pair=pair),
            Statement(
                "assume.markov_records_are_chain",
                n=n,
                chain=chain,
                n_states=self.n_states,
            ),
            Statement("assume.joint_count_public", n=n),
            *(() if width is None else window),
        )
