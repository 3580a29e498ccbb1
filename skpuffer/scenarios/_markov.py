"""Records that follow one another as a Markov chain."""

import math
from dataclasses import dataclass
from functools import lru_cache

import joblib
import numpy as np
import pandas as pd
from scipy import sparse

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.utils._checks import check_masses, check_option, check_real

from ._base import BoundScenario, Scenario, same_rows
from ._chain_quilts import chain_influence
from ._facts import Influence, QueryLaws, RecordShifts, arbitrary_coupling
from ._markov_laws import (
    TINY,
    SumLaw,
    exact_entries,
    exact_sum_laws,
    float_sum_laws,
    lattice_of,
    law_error,
    marginal_laws,
    stationary_law,
    window_delta,
    window_sum_laws,
)
from ._priors import bound_arrays

__all__ = ["MarkovChainScenario"]

# What exact laws may cost: about a second of multiplying long integers, and so many
# comparisons of them.
_MULTIPLICATIONS = 5e8
_COMPARISONS = 2e6
# What laws in floats may cost: products, and numbers held.
_PRODUCTS = 6e9
_NUMBERS = 3e7
_TABLES = 6e7
# Pairs of secrets that are compared one by one.
_PAIRS = 100_000


class MarkovChainScenario(Scenario):
    """The secret is the state of a chain at one time, and its neighbours give it away.

    Record `t` of the table is the state at time `t` of a Markov chain, such as a time
    series of activities or of readings in bins. Nobody who sees the release shall tell
    which of two states the chain was in at any one time.

    Parameters
    ----------
    transition : array-like of shape (n_states, n_states), or a list of these
        Row-stochastic: entry (a, b) is the probability of b after a. A list is a
        finite set of beliefs, and the promise holds for each.
    initial : array-like of shape (n_states,), 'stationary' or list of these, \
            default='stationary'
        Law of the first record; one for all chains, or one for each.
    states : array-like of shape (n_states,) or (n_states, n_features), default=None
        The records that the states stand for, in the order of `transition`. None
        numbers them from zero.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: two states at the same time, or any state at any
        time and any other.
    protected : array-like of int, default=None
        Times at which the state is secret, from zero. None is all.
    event_delta : float, default=1e-9
        Mass, for each pair of secrets, that may be left out where laws of the whole
        series are out of reach; the certificate then states what was left out. Zero
        asks for all of it, which for long series leaves group privacy.

    See Also
    --------
    BayesianNetworkScenario : Other dependencies than a chain.

    Notes
    -----
    *Sums over records* of contributions that are whole multiples of one vector (counts,
    means of readings in equal bins, any histogram of two states) have exact laws by
    dynamic programming: in integers where the transition probabilities are short
    decimals or fractions and the series is short (a few hundred records), else in
    floats that never subtract and with a margin for round-off, which can overstate
    W_inf by one step of the lattice and never understates it. That reaches a few
    thousand records of two states.

    *Long series* are cut: with the states known at a distance of `width` records to
    both sides of the secret, what lies beyond does not depend on it. The two worlds
    agree on these two states but with a probability that falls geometrically in
    `width`, and the smallest width is taken for which it is at most `event_delta`.
    Laws of the sum inside the window, given the states at its ends, then stand for
    those of the whole sum. Their distances are not smaller than those of the whole
    sum outside the event.

    *Other queries* are bounded by how many records differ: those of the window, or all.

    With ``pairs='all'`` there are no windows.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 and Definition 4.2;
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data,
    for the dependence of a chain on what surrounds a secret.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import MarkovChainScenario
    >>> scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    >>> count = QueryRelease(
    ...     contribution=lambda X, y: X, is_sum=True, n_records=50, dim=1
    ... )
    >>> accountant = GeneralWasserstein(epsilon=1, alpha=float("inf"), noise="laplace")
    >>> accountant.calibrate(count, scenario).certificate.sensitivity
    7.0
    """

    def __init__(
        self,
        transition,
        initial="stationary",
        *,
        states=None,
        pairs="same_index",
        protected=None,
        event_delta=1e-9,
    ):
        self.transition = transition
        self.initial = initial
        self.states = states
        self.pairs = pairs
        self.protected = protected
        self.event_delta = event_delta

    def check(self):
        """Check the parameters; see the class."""
        check_option(("same_index", "all"), pairs=self.pairs)
        delta = check_real(event_delta=self.event_delta)
        if not 0 <= delta < 1:
            raise ValueError(
                "The parameter 'event_delta' must be in the range [0, 1). "
                f"Got {self.event_delta!r}."
            )
        self.chains()
        self._states()
        if self.protected is not None:
            times = np.asarray(self.protected)
            whole = times.ndim == 1 and times.size and times.dtype.kind in "iu"
            if not whole or times.min() < 0 or len(np.unique(times)) < len(times):
                raise ValueError(
                    "The parameter 'protected' must list different times, as integers "
                    f"from 0. Got {self.protected!r}."
                )

    def chains(self, n=None):
        """Return the chains that the series may be.

        Parameters
        ----------
        n : int, default=None
            Length of the series. The chains are those of every length.

        Returns
        -------
        list of (ndarray of shape (n_states,), ndarray of shape (n_states, n_states))
            Law of the first record, and transition probabilities.

        Raises
        ------
        ScenarioError
            If a row is not a law, shapes differ, or a chain has several stationary
            laws where one is asked for.
        """
        matrices = self._matrices()
        laws = self._initial_laws(len(matrices), len(matrices[0]))
        return [
            (self._stationary(matrix) if law is None else law, matrix)
            for law, matrix in zip(laws, matrices, strict=True)
        ]

    def _matrices(self):
        try:
            array = np.asarray(self.transition, dtype=float)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.ndim == 2:
            array = array[None]
        if array.ndim != 3 or array.size == 0 or array.shape[1] != array.shape[2]:
            raise ScenarioError(
                "The parameter 'transition' must be a square matrix, or a list of "
                f"square matrices of one size. Got shape {np.shape(array)}."
            )
        if array.shape[1] < 2:
            raise ScenarioError(
                "The parameter 'transition' has one state: there is no secret."
            )
        for matrix in array:
            for a, row in enumerate(matrix):
                try:
                    check_masses(len(row), transition=row)
                except ValueError as error:
                    raise ScenarioError(
                        f"The row {a} of the parameter 'transition' is not a law of "
                        f"the next state. {error}"
                    ) from None
        # laws sum to one up to the round-off of their entries, which errors allow for
        sums = array.sum(axis=2, keepdims=True)
        off = np.abs(sums - 1) > array.shape[2] * np.finfo(float).eps
        return list(np.where(off, array / sums, array))

    def _initial_laws(self, n_chains, n_states):
        """Laws of the first record, None where it is the stationary one."""
        given = self.initial
        if given is None:
            raise ScenarioError(
                "The parameter 'initial' must be 'stationary' or a law of the first "
                "record. Got None."
            )
        several = not isinstance(given, str) and any(
            isinstance(law, str) or np.ndim(law) > 0 for law in given
        )
        laws = list(given) if several else [given] * n_chains
        if len(laws) != n_chains:
            raise ScenarioError(
                f"The parameter 'initial' has {len(laws)} laws for {n_chains} chains: "
                "give one for all, or one for each."
            )
        return [self._initial_law(law, n_states) for law in laws]

    @staticmethod
    def _initial_law(law, n_states):
        if isinstance(law, str):
            check_option(("stationary",), initial=law)
            return None
        try:
            return check_masses(n_states, initial=np.asarray(law, dtype=float))
        except (TypeError, ValueError) as error:
            raise ScenarioError(
                "The parameter 'initial' must be 'stationary' or a law of the "
                f"{n_states} states. {error}"
            ) from None

    @staticmethod
    def _stationary(matrix):
        try:
            return np.array(stationary_law(matrix))
        except ValueError:
            raise ScenarioError(
                "The chain has several stationary laws, as it falls apart into classes "
                "of states: give the law of the first record as 'initial'."
            ) from None

    def _states(self):
        """The records that states stand for, of shape (n_states, n_features)."""
        k = len(self._matrices()[0])
        if self.states is None:
            return np.arange(float(k))[:, None]
        try:
            states = np.asarray(self.states, dtype=float)
        except (TypeError, ValueError):
            raise ScenarioError(
                "The parameter 'states' must hold numbers: encode the labels as the "
                f"table does. Got {self.states!r}."
            ) from None
        states = states[:, None] if states.ndim == 1 else states
        if states.ndim != 2 or len(states) != k:
            raise ScenarioError(
                f"The parameter 'states' must have one record for each of the {k} "
                f"states of 'transition'. Got shape {states.shape}."
            )
        if not np.all(np.isfinite(states)):
            raise ScenarioError("The parameter 'states' must be finite.")
        if len(np.unique(states, axis=0)) < k:
            raise ScenarioError("The parameter 'states' names a record twice.")
        return states

    def _state_rows(self, context):
        """States in the form the query reads, of shape (n_states, n_features)."""
        rows, names = self._states(), context.feature_names
        if names is not None and len(names) == rows.shape[1]:
            rows = pd.DataFrame(rows, columns=list(names))
        return bound_arrays(context, rows)[0]

    def declared_bounds(self, feature_names, n_features, feature_map=None):
        """Return the range of each feature over the states."""
        rows = self._state_rows(
            PublicContext(
                n_records=1,
                feature_names=feature_names,
                n_features=n_features,
                feature_map=feature_map,
            )
        )
        return rows.min(axis=0), rows.max(axis=0)

    def bind(self, context):
        """Meet the public facts of a table; see :class:`Scenario`."""
        self.check()
        return BoundMarkovChain(self, context)

    def __repr__(self):
        try:
            shape = np.shape(self.transition) or (0,)
        except ValueError:  # ragged
            shape = (len(self.transition),)
        chain = f"<{shape[0]} {'chains' if len(shape) == 3 else 'states'}>"
        first = self.initial if isinstance(self.initial, str) else "<given>"
        parts = [chain, f"initial={first!r}", f"pairs={self.pairs!r}"]
        if self.protected is not None:
            parts.append(f"protected=<{len(self.protected)} times>")
        parts.append(f"event_delta={self.event_delta!r}")
        return f"MarkovChainScenario({', '.join(parts)})"


class BoundMarkovChain(BoundScenario):
    """The facts a Markov chain offers; see :class:`MarkovChainScenario`."""

    _facts = {
        QueryLaws: "_query_laws",
        RecordShifts: "_record_shifts",
        Influence: "_influence",
    }

    def __init__(self, scenario, context):
        super().__init__(scenario, context)
        n = context.n_records
        self.chains = scenario.chains(n)
        self.n_states = len(self.chains[0][0])
        self.positions = tuple(range(n))
        if scenario.protected is not None:
            self.positions = tuple(sorted(int(t) for t in scenario.protected))
            if self.positions[-1] >= n:
                raise ScenarioError(
                    f"The parameter 'protected' names the time {self.positions[-1]}, "
                    f"but the table has {n} records, counted from 0."
                )
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
        return _smallest_window(_Chains(self.chains, n), float(scenario.event_delta))

    def check_rows(self, X):
        """Refuse records that are none of the states."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        # a series has few states, and each is compared once
        if not np.all(same_rows(np.unique(X, axis=0)[:, None], self.rows).any(axis=1)):
            raise ScenarioError(
                "The data has records that are none of the states of the chain: give "
                "the records that states stand for, as they reach this estimator, in "
                "the parameter 'states' of the scenario, or bin the data as they are."
            )

    # -- facts --------------------------------------------------------------------

    def provides(self, release):
        facts = set()
        if release.sensitivity is not None or self._values(release) is not None:
            facts.add(RecordShifts)
            if self.scenario.pairs == "same_index" and isinstance(
                release, QueryRelease
            ):
                facts.add(Influence)
        problem = self._problem(release)
        if problem is not None and self._within_reach(problem):
            facts.add(QueryLaws)
        return frozenset(facts)

    @staticmethod
    def _within_reach(problem):
        # that no atom is too light is known only once the laws are computed
        ways = _ways(problem)
        if problem.lossy or (ways and ways[0][0] is _exact_laws):
            return bool(ways)
        return _laws_of(problem) is not None

    def _values(self, release):
        """What each state contributes, of shape (n_states, dim), or None."""
        contribution = release.contribution
        if contribution is None or getattr(contribution, "needs_target", False):
            return None
        alone = getattr(release, "modulus", None) is None
        if alone and not getattr(release, "is_sum", False):
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
        units = 1.0 if release.units is None else np.asarray(release.units)
        return _Problem(
            chains=_Chains(self.chains, self.context.n_records),
            positions=self.positions,
            pairs=self.scenario.pairs,
            origin=tuple((origin * units).tolist()),
            direction=tuple((direction * units).tolist()),
            weights=tuple(weights.tolist()),
            width=self.width,
            outside=self.delta,
            lossy=self.scenario.event_delta > 0,
        )

    def _query_laws(self, release, norm):
        laws = _laws_of(self._problem(release))
        if laws is None:
            raise ScenarioError(
                f"Some values of the release {release.name!r} are too unlikely under "
                "the chain for their probabilities to be computed. Use MarkovQuilt, "
                "which needs no laws, or coarser states."
            )
        delta = laws.lost + (self.delta if laws.windows else 0.0)
        return QueryLaws(
            laws=laws.laws,
            secrets=laws.secrets,
            pairs=laws.pairs,
            scale=abs(release.factor),
            delta=delta,
            assumptions=self.statements(self.width if laws.windows else None),
        )

    def _record_shifts(self, release, norm):
        n, width = self.context.n_records, self.width
        count, delta = n, 0.0
        if width is not None and 2 * width - 1 < n:
            count, delta = 2 * width - 1, self.delta
        coupling = arbitrary_coupling("replace", n)
        if count < n:
            coupling, names = None, self.context.feature_names
            if names is not None:
                key = [self.chains, names, n, self.positions, width]
                coupling = f"chain:{joblib.hash(key)}"
        return RecordShifts(
            count=count,
            shift=self._reach(release, norm),
            relation="replace",
            coupling_id=coupling,
            count_is_certain=count == n,
            delta=delta,
            assumptions=self.statements(width if count < n else None),
        )

    def _reach(self, release, norm):
        """How far one record moves its contribution from state to state, at most."""
        values = self._values(release)
        if values is None:
            return math.inf
        gaps = values[:, None] - values[None]
        return float(np.linalg.norm(gaps, release.shift_norm(norm), axis=2).max())

    def _influence(self, release, norm):
        return chain_influence(
            self.chains,
            self.context.n_records,
            shift=self._reach(release, norm),
            protected=self.scenario.protected,
            assumptions=self.statements(),
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
            "secret, but for the stated event",
        )
        return (
            f"the secret is the state at {times}; kept apart are {pair}",
            f"the {n} records, in the order of the table, are {chain}, and each is one "
            f"of its {self.n_states} states",
            f"the number of records ({n}) is public",
            *(() if width is None else window),
        )


class _Chains:
    """Chains and a length, comparable by content."""

    def __init__(self, chains, n):
        self.chains, self.n = chains, n
        self._key = (n, *(part.tobytes() for chain in chains for part in chain))

    def __eq__(self, other):
        return isinstance(other, _Chains) and self._key == other._key

    def __hash__(self):
        return hash(self._key)


@dataclass(frozen=True)
class _Problem:
    """Laws to compute: all of it public."""

    chains: _Chains
    positions: tuple
    pairs: str
    origin: tuple
    direction: tuple
    weights: tuple
    width: int | None
    outside: float
    lossy: bool


@dataclass(frozen=True)
class _Laws:
    """Laws by chain and secret, as :class:`QueryLaws` has them."""

    laws: tuple
    secrets: tuple
    pairs: tuple
    lost: float = 0.0
    windows: bool = False


@lru_cache(maxsize=64)
def _smallest_window(chains, event_delta):
    """Smallest width for which the event is rare enough, and its mass."""
    marginals = [marginal_laws(*chain, chains.n) for chain in chains.chains]

    def delta(width):
        return max(
            window_delta(laws, transition, width)
            for laws, (_, transition) in zip(marginals, chains.chains, strict=True)
        )

    high = 1
    while delta(high) > event_delta:
        high *= 2
        if 2 * high - 1 >= chains.n:
            break
    low = high // 2  # the distance of the ends falls with the width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= event_delta else (middle, high)
    found = delta(high)
    return (high, found) if found <= event_delta else (None, 0.0)


def _ways(problem):
    """Ways to the laws of a sum that can be afforded, and whether by windows."""
    ways = [(_exact_laws, False), (_float_laws, False)]
    if problem.width is not None:
        # a window that leaves nothing out is as good as the whole, and shorter
        ways.insert(1 if problem.outside == 0 else 2, (_window_laws, True))
    able = {
        _exact_laws: _exact_affordable,
        _float_laws: _float_affordable,
        _window_laws: _window_affordable,
    }
    return [(way, windows) for way, windows in ways if able[way](problem)]


# Laws depend on the chain and the query only, and a search over budgets asks for the
# same ones at every candidate and every fold.
@lru_cache(maxsize=8)
def _laws_of(problem):
    """Laws of a sum under the chains, or None where they are out of reach."""
    for way, windows in _ways(problem):
        found, lost = [], 0.0
        for chain in problem.chains.chains:
            laws, missing = way(problem, *chain)
            found.append(laws)
            lost = max(lost, missing)
        if lost == 0 or (problem.lossy and lost < TINY**0.5):
            return _assemble(problem, found, lost, windows)
    return None


def _size(problem):
    """Numbers of protected times, of states and of sums."""
    k = len(problem.weights)
    return len(problem.positions), k, problem.chains.n * max(problem.weights) + 1


def _n_pairs(problem):
    times, k, _ = _size(problem)
    return times * k * k if problem.pairs == "same_index" else (times * k) ** 2 / 2


def _exact_affordable(problem):
    """Whether the sums are few and the probabilities short fractions."""
    times, k, sums = _size(problem)
    if _n_pairs(problem) * sums > _COMPARISONS:
        return False
    for initial, transition in problem.chains.chains:
        steps, first = exact_entries(transition), exact_entries(initial[None])
        if steps is None or first is None:
            return False
        digits = problem.chains.n * math.log2(max(steps[1], 2)) * sums / 30
        if times * k * digits**1.585 > _MULTIPLICATIONS:
            return False
    return True


def _exact_laws(problem, initial, transition):
    """Laws in exact integers; nothing is lost."""
    laws = exact_sum_laws(
        exact_entries(initial[None])[0][0],
        exact_entries(transition),
        np.array(problem.weights),
        problem.chains.n,
        problem.positions,
    )
    return laws, 0.0


def _float_affordable(problem):
    times, k, sums = _size(problem)
    return (
        times * k * sums**2 / 6 <= _PRODUCTS
        and times * k * sums <= _NUMBERS
        and problem.chains.n * k * sums <= _TABLES
        and (problem.pairs == "same_index" or _n_pairs(problem) <= _PAIRS)
    )


def _float_laws(problem, initial, transition):
    """Laws in floats, and the mass of atoms too light to be computed."""
    weights = np.array(problem.weights)
    return float_sum_laws(
        initial, transition, weights, problem.chains.n, problem.positions
    )


def _window_affordable(problem):
    k, width, high = len(problem.weights), problem.width, max(problem.weights)
    inside, edges = k**3, 2 * min(width, problem.chains.n) * k**2
    part = width * high + 1
    return (inside + edges / 2) * part**2 <= _PRODUCTS and (
        2 * inside + 1.5 * edges
    ) * part <= _NUMBERS


def _window_laws(problem, initial, transition):
    """Laws inside windows, and the mass of atoms too light to be computed."""
    weights = np.array(problem.weights)
    return window_sum_laws(
        initial, transition, weights, problem.chains.n, problem.width
    )


def _assemble(problem, found, lost, windows):
    """Put laws by secret, and pair the secrets."""
    k, n = len(problem.weights), problem.chains.n
    origin, direction = np.array(problem.origin), np.array(problem.direction)
    length = 2 * problem.width if windows else n
    error = law_error(length, k, length * max(problem.weights) + 1)
    origin = origin * (1 if windows else n)

    def law(parts):
        if parts is None:
            return None
        steps, masses = parts
        exact = masses.dtype == object
        return SumLaw(steps, masses, origin, direction, 0.0 if exact else error)

    places = tuple(found[0])
    secrets = tuple((place, state) for place in places for state in range(k))
    laws = tuple(
        tuple(law(parts) for place in places for parts in chain[place])
        for chain in found
    )
    total = len(secrets)
    if problem.pairs == "all":
        pairs = [(i, j) for i in range(total) for j in range(i + 1, total)]
    else:
        pairs = [
            (base + a, base + b)
            for base in range(0, total, k)
            for a in range(k)
            for b in range(a + 1, k)
        ]
    return _Laws(laws, secrets, tuple(pairs), lost, windows)
