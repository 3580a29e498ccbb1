"""Records that form a Markov chain."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike
from scipy import sparse

from skpuffer.distributions._lattice_sum import lattice_of
from skpuffer.distributions._weak_cache import life_of, remembered_with
from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.facts import (
    Adjacency,
    Fact,
    OutputDistributions,
    arbitrary_coupling,
)
from skpuffer.kernel.numbers import Floats, check_finite, check_option, lengths_of
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios._base import (
    TARGETS_OF_RECORDS,
    AnyRelease,
    BoundScenario,
    Rows,
    Scenario,
    coupling_in_table,
    matched_rows,
    offers,
    protected_records,
    restating,
    same_table,
    stated,
)
from skpuffer.scenarios._facts import MaxInfluence
from skpuffer.scenarios._priors._tables import bound_arrays
from skpuffer.utils._checks import check_masses, check_name, check_share, check_sizes

from ._chains import (
    Chains,
    settling_marginals,
    smallest_window,
    stationary_distribution,
)
from ._quilts import (
    SumDistributions,
    SumProblem,
    chain_influence,
    computable,
    sum_distributions,
)


class MarkovChainScenario(Scenario):
    """The secret is the state of a Markov chain at one time, through its neighbours.

    Record `t` of the table is the state at time `t`, such as a time series of
    activities. Which of two states the chain was in at any one time is secret.

    Parameters
    ----------
    transition : array-like of shape (n_states, n_states), or a list of these
        Row-stochastic: entry (a, b) is the probability of b after a. The promise holds
        for each belief of a list.
    initial : array-like of shape (n_states,), 'stationary' or list of these, \
            default='stationary'
        Distribution of the first record, one for all chains or for each.
    states : array-like of shape (n_states,) or (n_states, n_features), default=None
        Records that the states stand for, in the order of `transition`. None numbers
        them from zero, unless `cuts` is given.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: states at one time, or also at different times.
    protected : array-like of int, default=None
        Times at which the state is secret, from zero. None is all.
    event_delta : float, default=1e-9
        Mass that may be left out for each pair of secrets where exact distributions are
        out of reach; the certificate states it. Zero leaves group privacy for long
        series.
    table : str or None, default=None
        Public name of the table. Certificates of several releases on one named table
        may be added up (:func:`~skpuffer.privacy.compose`).
    cuts : dict of {column: array-like of shape (n_states - 1,)}, default=None
        In place of `states`: rising points that cut the readings of one column into
        states. A reading at a point belongs to the state above, a missing one to the
        last state.
    times : str, default=None
        With `cuts`, the column of the public time of each record, by which a release
        may be grouped. Records must be in the order of their times.

    Notes
    -----
    *Sums over records* of whole multiples of one vector (counts, histograms) have exact
    distributions by dynamic programming. Short series use integers; others, of up to a
    few thousand records of two states, use floats whose error never understates W_inf.

    *Long series* are cut at `width` records on both sides of the secret. The two tables
    of a pair are coupled to agree on the states there, except with a probability of at
    most `event_delta`. Distributions of the sum inside the window, given these states,
    stand for those of the whole sum: their distances are not smaller outside the event.

    *Other queries* are bounded by how many records differ: those of the window, or all.
    For training runs and votes without `table`,
    :class:`~skpuffer.accountants.PrivacyLoss` takes the mean over the number of records
    that differ until the coupled chains meet, where that needs less noise. With
    ``pairs='all'`` there are no windows.

    *Cuts.* A reading is believed to depend on nothing but its own state, so quilts and
    windows are those of the states. A record near the secret moves by all that a
    reading can.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 and Definition 4.2;
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data.

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
        transition: ArrayLike,
        initial: str | ArrayLike | Sequence[str | ArrayLike] = "stationary",
        *,
        states: ArrayLike | None = None,
        pairs: str = "same_index",
        protected: ArrayLike | None = None,
        event_delta: float = 1e-9,
        table: str | None = None,
        cuts: dict[Any, ArrayLike] | None = None,
        times: str | None = None,
    ) -> None:
        self.transition = transition
        self.initial = initial
        self.states = states
        self.pairs = pairs
        self.protected = protected
        self.event_delta = event_delta
        self.table = table
        self.cuts = cuts
        self.times = times

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("same_index", "all"), pairs=self.pairs)
        check_share(event_delta=self.event_delta)
        check_name(table=self.table)
        check_name(times=self.times)
        self.chains()
        if self.cuts is None:
            self._states()
        self.cut_column()
        protected_records(self.protected)

    def chains(self) -> list[tuple[Floats, Floats]]:
        """Return (initial, transition) of each Markov chain the series may follow."""
        matrices = self._matrices()
        first = self._initial_distributions(len(matrices), len(matrices[0]))
        return [
            (self._stationary(matrix) if initial is None else initial, matrix)
            for initial, matrix in zip(first, matrices, strict=True)
        ]

    def _matrices(self) -> list[Floats]:
        array = stated(check_finite, transition=self.transition)
        if array.ndim == 2:
            array = array[None]
        if array.ndim != 3 or array.size == 0 or array.shape[1] != array.shape[2]:
            raise scenario_error("markov.transition_not_square", shape=np.shape(array))
        if array.shape[1] < 2:
            raise scenario_error("markov.transition_one_state")
        for matrix in array:
            for a, row in enumerate(matrix):
                with restating("markov.transition_row_invalid", row=a):
                    check_masses(len(row), counts=False, transition=row)
        # distributions sum to one up to the round-off of their entries, which errors
        # allow for
        sums = array.sum(axis=2, keepdims=True)
        off = np.abs(sums - 1) > array.shape[2] * np.finfo(float).eps
        return list(np.where(off, array / sums, array))

    def _initial_distributions(self, n_chains: int, n_states: int) -> list[Any]:
        """Distributions of the first record, None where it is the stationary one."""
        given: Any = self.initial
        if given is None:
            raise scenario_error("markov.initial_missing")
        several = (
            not isinstance(given, str)
            and np.iterable(given)
            and any(np.iterable(one) for one in given)
        )
        listed = list(given) if several else [given] * n_chains
        if len(listed) != n_chains:
            raise scenario_error(
                "markov.initial_count_differs", n_listed=len(listed), n_chains=n_chains
            )
        return [self._initial_distribution(one, n_states) for one in listed]

    @staticmethod
    def _initial_distribution(
        given: Floats | list[Any] | str, n_states: int
    ) -> Floats | None:
        if isinstance(given, str):
            check_option(("stationary",), initial=given)
            return None
        with restating("markov.initial_invalid", n_states=n_states):
            return check_masses(n_states, counts=False, initial=given)

    @staticmethod
    def _stationary(matrix: Floats) -> Floats:
        try:
            return np.array(stationary_distribution(matrix))
        except ValueError:
            raise scenario_error("markov.stationary_needs_initial") from None

    def cut_column(self) -> tuple[Any, Floats] | None:
        """Return the column that is cut into states, and its points; or None."""
        if self.cuts is None:
            if self.times is not None:
                raise scenario_error("markov.times_without_cuts", times=self.times)
            return None
        if self.states is not None:
            raise scenario_error("markov.states_beside_cuts")
        if not isinstance(self.cuts, dict) or len(self.cuts) != 1:
            raise scenario_error("markov.cuts_not_of_one_column", cuts=self.cuts)
        ((column, given),) = self.cuts.items()
        points, k = stated(check_finite, cuts=given), len(self._matrices()[0])
        if points.shape != (k - 1,) or np.any(np.diff(points) <= 0):
            raise scenario_error("markov.cuts_invalid", k=k, n_cuts=k - 1)
        if column == self.times:
            raise scenario_error("markov.times_are_cut", times=self.times)
        return column, points

    def _states(self) -> Floats:
        """The records that states stand for, of shape (n_states, n_features)."""
        k = len(self._matrices()[0])
        if self.states is None:
            return np.arange(float(k))[:, None]
        # labels are encoded as the table encodes them
        states = stated(check_sizes, states=self.states)
        states = states[:, None] if states.ndim == 1 else states
        if states.ndim != 2 or len(states) != k:
            raise scenario_error("markov.states_shape_invalid", k=k, shape=states.shape)
        if len(np.unique(states, axis=0)) < k:
            raise scenario_error("markov.states_repeated")
        return states

    def _state_rows(self, context: PublicContext) -> Floats:
        """States in the form the query reads, of shape (n_states, n_features)."""
        rows, names = self._states(), context.feature_names
        if names is not None:
            if len(names) != rows.shape[1]:
                raise scenario_error(
                    "markov.states_features_differ",
                    names=list(names),
                    n_features=rows.shape[1],
                )
            rows = pd.DataFrame(rows, columns=list(names))
        return bound_arrays(context, rows)[0]

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the range of each feature over the states, where it is known."""
        if self.cuts is not None:
            return None
        rows = self._state_rows(context)
        return rows.min(axis=0), rows.max(axis=0)

    def __repr__(self) -> str:
        try:
            shape = np.shape(self.transition) or (0,)
        except ValueError:  # ragged
            rows: Any = self.transition
            shape = (len(rows),)
        chain = f"<{shape[0]} {'chains' if len(shape) == 3 else 'states'}>"
        first = self.initial if isinstance(self.initial, str) else "<given>"
        parts = [chain, f"initial={first!r}", f"pairs={self.pairs!r}"]
        if self.protected is not None:
            parts.append(f"protected=<{np.size(self.protected)} times>")
        parts.append(f"event_delta={self.event_delta!r}")
        for name in ("table", "cuts", "times"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"MarkovChainScenario({', '.join(parts)})"


# -- facts of a Markov chain bound to a table ------------------------------------------


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

    count: Floats  # type: ignore[assignment] # in place of `tuple.count`
    distance: Floats


@remembered_with(1)
def meeting(life: object, chains: Chains) -> Meeting | None:
    """Bound in how many records coupled chains differ, and how far from the secret.

    The chains differ at one time. On either side of it they are coupled step by step,
    the next states being the same with the largest probability, until they meet. Given
    the state at that time the two sides are independent. The largest over chains, times
    and pairs of states is returned, or None if that would take too long.
    """
    found = []
    for initial, transition in chains.chains:
        one = _of_chain(initial, transition, chains.n)
        if one is None:
            return None
        found.append(np.array(one))
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


class BoundMarkovChain(BoundScenario, of=MarkovChainScenario):
    """Facts of a Markov chain; see :class:`MarkovChainScenario`."""

    target_assumption = TARGETS_OF_RECORDS

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        n = context.n_records
        self.chains: list[tuple[Floats, Floats]] = scenario.chains()
        self.n_states = len(self.chains[0][0])
        self.positions = tuple(protected_records(scenario.protected, n))
        self.cut = scenario.cut_column()
        # of readings that are cut into states, how far each encoded column may move
        self.gaps = None if self.cut is None else self._gaps_of_readings()
        self.rows = None if self.cut is not None else scenario._state_rows(context)
        # number of states with a positive probability, by chain and protected time
        possible = [
            (settling_marginals(first, step, n).at(self.positions)[0] > 0).sum(axis=1)
            for first, step in self.chains
        ]
        # secrets of a pair are states at one time, or at any two
        apart = np.max if scenario.pairs == "same_index" else np.sum
        if max(apart(count) for count in possible) < 2:
            raise scenario_error("markov.no_pair_possible")
        self.width, self.delta = self._window()
        # the last sum asked about: of a long series its distributions may take more
        # memory than all that is cached
        self._sum: tuple[SumProblem | None, SumDistributions | None] = None, None

    def _window(self) -> tuple[Any, ...]:
        """Smallest width of a window and the event outside it, or (None, 0)."""
        n, scenario = self.context.n_records, self.scenario
        if scenario.pairs == "all":
            return None, 0.0
        width, delta = smallest_window(
            life_of(scenario), Chains(self.chains, n), float(scenario.event_delta)
        )
        return width, float(delta)

    def _gaps_of_readings(self) -> Floats:
        """Largest moves of a record whose time stays, of shape (1, n_columns)."""
        context, times = self.context, self.scenario.times
        column: Any = self.cut[0] if self.cut is not None else None
        names: Any = context.feature_names
        if names is None and context.n_features is not None:
            names = tuple(range(context.n_features))
        known = {column} if times is None else {column, times}
        if names is None or set(names) != known:
            raise scenario_error(
                "markov.cuts_of_other_columns",
                known=sorted(map(str, known)),
                names=None if names is None else list(names),
            )
        ranges = getattr(context.feature_map, "cell_ranges", None)
        if times is not None and ranges is not None:
            return np.asarray(ranges(column), dtype=float)[None]
        # nothing is known of how columns are made: all may move as far as they can
        return np.full((1, context.n_features or len(names)), math.inf)

    def check_rows(self, X: Rows) -> Rows:
        """Return the states that records are; refuse others."""
        if self.rows is None:
            self._check_order(X)
            return X
        given: Any = X
        table = given.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        # a series has few states, and each is compared once
        distinct, inverse = np.unique(table, axis=0, return_inverse=True)
        states = matched_rows(distinct, self.rows)
        if np.any(states < 0):
            raise scenario_error("markov.records_not_states")
        return self.rows[states[inverse.ravel()]]

    def _check_order(self, X: Any) -> None:
        """Refuse records that their public times put into another order."""
        times, read = self.scenario.times, None
        if times is not None:
            read = getattr(self.context.feature_map, "known_numbers", None)
        if read is not None and np.any(np.diff(read(X, times)) < 0):
            raise scenario_error("markov.times_not_in_order", times=times)

    # -- facts --------------------------------------------------------------------

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts: set[type[Fact]] = set()
        if release.is_bounded or self._values(release) is not None:
            facts.add(Adjacency)
            # influence compares the values of one record
            if self.scenario.pairs == "same_index":
                facts.add(MaxInfluence)
        problem = self._problem(release)
        if problem is not None and computable(life_of(self.scenario), problem):
            facts.add(OutputDistributions)
        return frozenset(facts)

    def _move_of_readings(self, release: Any, norm: float) -> float | None:
        """How far a contribution moves where a reading does, or None."""
        contribution = release.contribution
        move = getattr(contribution, "move", None)
        if self.gaps is None or move is None or not release.moves_with_contributions:
            return None
        if getattr(contribution, "needs_target", False):
            return None
        with np.errstate(invalid="ignore"):
            found = float(move(self.gaps, release.shift_norm(norm))[0])
        return found if math.isfinite(found) else None

    def _values(self, release: Any) -> Floats | None:
        """Contribution of each state, of shape (n_states, dim), or None."""
        contribution = release.contribution
        if (
            self.rows is None
            or contribution is None
            or getattr(contribution, "needs_target", False)
        ):
            return None
        if not release.moves_with_contributions:
            return None
        values = np.asarray(contribution(self.rows, None), dtype=float)
        if not np.all(np.isfinite(values)):
            raise scenario_error("markov.release_not_finite", name=release.name)
        return values.reshape(self.n_states, -1)

    def _problem(self, release: Any) -> SumProblem | None:
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
        self, release: QueryRelease, norm: float
    ) -> OutputDistributions:
        problem = self._problem(release)
        assert problem is not None  # see `provides`
        if self._sum[0] != problem:
            found = sum_distributions(life_of(self.scenario), problem)
            self._sum = problem, found
        found = self._sum[1]
        if found is None:
            raise scenario_error("markov.values_too_unlikely", name=release.name)
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
        count, delta = n, 0.0
        window: int | None = None
        coupling: str | None = arbitrary_coupling("replace", n)
        shared: tuple[Statement, ...] = ()
        if width is not None and 2 * width - 1 < n:
            # the secret, and less than `width` records on either side of it
            window, delta = 2 * width - 1, self.delta
            count, met = window, self._met(window)
            if met is not None:
                count, width, delta = met
                window = 2 * width - 1
            cut = self.scenario.cuts, self.scenario.times
            key = (self.chains, self.positions, width, met is None)
            coupling = coupling_in_table(
                self, "chain", *key, *([] if self.cut is None else [cut])
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

    def _met(self, window: int) -> tuple[int, int, float] | None:
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

    def _survival(self) -> Floats | None:
        """Law of the number of records that differ, if all may be left to chance."""
        scenario, n = self.scenario, self.context.n_records
        # what is weighed by it does not add up, so a table with a name has none
        if scenario.pairs == "all" or not scenario.event_delta or scenario.table:
            return None
        if n == 1:
            return None
        law = meeting(life_of(scenario), Chains(self.chains, n))
        return None if law is None else law.count

    def _record_sensitivity(self, release: Any, norm: float) -> float:
        """Sensitivity of one record's contribution: largest gap between states."""
        if (move := self._move_of_readings(release, norm)) is not None:
            return move
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
        records = Statement(
            "assume.markov_records_are_chain", n=n, chain=chain, n_states=self.n_states
        )
        public: tuple[Statement, ...] = ()
        if self.cut is not None:
            column, points = self.cut
            records = Statement(
                "assume.markov_readings_are_chain",
                n=n,
                chain=chain,
                column=column,
                cuts=points.tolist(),
            )
        if scenario.times is not None:
            public = (Statement("assume.markov_times_public", times=scenario.times),)
        return (
            Statement("assume.markov_secret_state", times=times, pair=pair),
            records,
            *public,
            Statement("assume.joint_count_public", n=n),
            *(() if width is None else window),
        )
