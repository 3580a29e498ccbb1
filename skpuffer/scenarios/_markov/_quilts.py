"""Markov quilts of a chain, with exact influences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.distributions._lattice_sum import LatticeSum, mass_error
from skpuffer.distributions._weak_cache import MEMORY, remembered_with
from skpuffer.exceptions import (
    ScenarioError,
    Statement,
    scenario_error,
    unsupported_error,
)
from skpuffer.kernel.numbers import Booleans, Floats, Indices, Numbers
from skpuffer.kernel.plain import to_plain
from skpuffer.scenarios._facts import MaxInfluence
from skpuffer.scenarios._quilts._base import (
    Influence,
    RenyiInfluence,
    measure_of,
    relative_error,
)
from skpuffer.scenarios._quilts._sides import SideQuilts

from ._chains import (
    TINY,
    Chains,
    exact_entries,
    exact_sum_distributions,
    float_sum_distributions,
    irreducible_stationary,
    settling_marginals,
    window_sum_distributions,
)


class MixingQuilts(SideQuilts):
    """Markov quilts of one chain, with max-influences bounded by its mixing time.

    Two numbers of the chain suffice: its least stationary mass pi_min, and the gap g
    of its multiplicative reversibilisation. After t steps each mass is within a factor
    1 -+ exp(-g t / 2) / pi_min of the stationary one, wherever the chain began.

    References
    ----------
    Song, Wang and Chaudhuri (2017), section 4.4.2. For finite orders and for total
    variation, what follows from a max-divergence: that of randomised response.
    """

    def __init__(self, chain: Any) -> None:
        super().__init__(chain.n_records, chain._protected_records())
        self._chain = chain
        self.least_mass, self.gap = mixing(chain.transition)

    def _measure(self, order: float | str) -> Influence:
        # without `table`: what is known here are bounds, not distributions
        return cast(Influence, _PureBound(measure_of(order)))

    # one bound for all pairs of values
    def _compared(self) -> Booleans:
        return np.ones((1, 1, 1), dtype=bool)

    @property
    def _settled(self) -> int:
        return 0

    def _bound(self, steps: Indices | list[int]) -> Floats:
        # masses within 1 -+ r of the stationary ones: a log-ratio of at most
        # log((1 + r) / (1 - r)) = 2 artanh(r)
        off = np.exp(-self.gap * np.asarray(steps, float) / 2) / self.least_mass
        with np.errstate(invalid="ignore"):
            value = 2 * np.arctanh(np.where(off < 1, off, 0.0))
        return np.where(off < 1, value, math.inf)[:, None, None]

    def _after(self, measure: Influence, max_lag: int) -> Floats:
        return self._bound(np.arange(1, max_lag + 1))

    # By Bayes' rule an earlier record x given a later one z has, relative to its
    # marginal, the density P^t(x, z) / P(X_i = z): a ratio of two numbers that are each
    # within 1 -+ r of the stationary mass of z. Two such densities differ by twice the
    # log-ratio.
    def _before(self, measure: Influence, i: int, max_lag: int) -> Floats:
        return 2 * self._bound(np.arange(1, max_lag + 1))

    def _before_each(self, measure: Influence, a: int) -> Floats:
        return 2 * self._bound([a])

    def _error(
        self, measure: Influence, i: Indices | int, steps: Indices | int
    ) -> Floats | float:
        return measure.error(1, 1)

    def approximate(self) -> MixingQuilts:
        """Return itself."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": "mixing_markov_chain",
            "least_mass": self.least_mass,
            "gap": self.gap,
            "n_records": self.n_records,
        }


@dataclass(frozen=True)
class _PureBound:
    """Bound of an influence in another measure from one of the max-divergence."""

    measure: Influence

    def one(self, bound: Numbers) -> Numbers:
        """Return the bound in the measure wanted."""
        if not isinstance(self.measure, RenyiInfluence):
            # randomised response with this max-divergence has the most total variation
            return np.tanh(bound / 2)
        alpha = self.measure.alpha
        if math.isinf(alpha):
            return bound
        # Rényi divergence of randomised response, the largest for a max-divergence e:
        # log((e^(alpha e) + e^((1 - alpha) e)) / (1 + e^e)) / (alpha - 1)
        e = np.minimum(bound, 1e6)
        value = np.logaddexp(alpha * e, (1 - alpha) * e) - np.logaddexp(0, e)
        return np.where(bound < 1e6, np.minimum(value / (alpha - 1), bound), bound)

    def joint(self, first: Numbers, second: Numbers) -> Numbers:
        """Return the bound of two independent parts in the measure wanted."""
        return self.one(first + second)

    def error(self, n_states: int, steps: int | Indices) -> Floats | float:
        """Bound of the round-off of a value."""
        return self.measure.error(n_states, steps)


def mixing(transition: Floats) -> tuple[float, float]:
    """Least stationary mass, and spectral gap 1 - lambda_2(P P*), P* in reversed time.

    A chain that is reducible or has no gap raises UnsupportedError: it need not mix.
    """
    stationary = irreducible_stationary(transition)
    gap = 0.0
    if stationary is not None:
        root = np.sqrt(stationary)
        # the singular values of D^(1/2) P D^(-1/2) squared are the eigenvalues of P P*
        values = np.linalg.svd(root[:, None] * transition / root, compute_uv=False)
        second = values[1] if len(values) > 1 else 0.0
        off = relative_error(len(stationary), len(stationary))
        gap = float(1.0 - second**2 - off)
    if stationary is None or gap <= 1e-9:
        raise unsupported_error("markov.no_spectral_gap")
    return float(stationary.min()), gap


class ChainQuilts(SideQuilts, kind="markov_chain"):
    """Markov quilts of one chain, with exact max-influences.

    Parameters
    ----------
    initial : ndarray of shape (k,)
    transition : ndarray of shape (k, k)
    protected : sequence of int or None, default=None
        Positions of the protected records; None is all.
    pairs : bool ndarray of shape (k, k) or None, default=None
        Which values must look alike; None is all.

    References
    ----------
    Song, Wang and Chaudhuri (2017), section 4.4.
    """

    def __init__(
        self,
        initial: ArrayLike,
        transition: ArrayLike,
        n_records: int,
        protected: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
    ) -> None:
        super().__init__(n_records, protected)
        initial = np.array(initial, dtype=float)
        transition = np.array(transition, dtype=float)
        # given masses may sum to one up to round-off only
        self.initial = initial / initial.sum()
        self.transition = transition / transition.sum(axis=1, keepdims=True)
        k = len(self.initial)
        self._pairs = np.ones((k, k), bool) if pairs is None else np.array(pairs, bool)
        # pairs must look alike in both directions; a value and itself do
        self._pairs = (self._pairs | self._pairs.T) & ~np.eye(k, dtype=bool)
        self._marginals = settling_marginals(self.initial, self.transition, n_records)
        if not len(self._concerned()):
            raise scenario_error("quilt.no_protected_record_varies")

    @property
    def _settled(self) -> int:
        return len(self._marginals.masses)

    def _compared(self) -> Booleans:
        # a value without probability at a time is no secret there
        on = self._marginals.possible
        return on[:, :, None] & on[:, None, :] & self._pairs

    def _power(self, max_lag: int) -> tuple[Floats, Booleans]:
        """Return P, P^2, ... up to `max_lag` at least, and where they have mass."""
        k = len(self.initial)
        none = np.empty((0, k, k)), np.empty((0, k, k), dtype=bool)
        powers, possible = MEMORY.held((self,), "powers", none)
        if len(powers) < max_lag:
            # at least twice as many as before, so that few copies are made
            max_lag = min(max(max_lag, 2 * len(powers)), self.n_records)
            more = np.empty((max_lag, k, k))
            on = np.empty((max_lag, k, k), dtype=bool)
            more[: len(powers)], on[: len(powers)] = powers, possible
            for t in range(len(powers), max_lag):
                if t == 0:
                    more[0], on[0] = self.transition, self.transition > 0
                else:
                    more[t], on[t] = more[t - 1] @ more[0], on[t - 1] @ on[0]
            powers, possible = more, on
            MEMORY.keep((self,), "powers", (powers, possible))
        return powers, possible

    def _after(self, measure: Influence, max_lag: int) -> Floats:
        key = ("after", measure)
        held: Floats | None = MEMORY.held((self,), key)
        if held is None or len(held) < max_lag:
            # row z of P^b is the distribution b later, given z now
            powers, possible = self._power(max_lag)
            # only the lags that are new
            done = 0 if held is None else len(held)
            more = measure.table(powers[done:], possible[done:])
            held = more if held is None else np.concatenate([held, more])
            MEMORY.keep((self,), key, held)
        return held

    def _backward(
        self,
        earlier: tuple[Floats, Booleans],
        power: tuple[Floats, Booleans],
        now: tuple[Floats, Booleans],
    ) -> tuple[Floats, Booleans]:
        """Distribution of an earlier record given a later one, by Bayes' rule."""
        (before, on), (step, arrows), (after, _) = earlier, power, now
        # P(X_t = x | X_(t+s) = z) = P(X_t = x) P^s(x, z) / P(X_(t+s) = z)
        weights = before[..., :, None] * step
        given = np.swapaxes(weights, -1, -2)
        with np.errstate(divide="ignore", invalid="ignore"):
            given = given / after[..., :, None]
        possible = np.swapaxes(on[..., :, None] & arrows, -1, -2)
        return np.nan_to_num(given, nan=0.0, posinf=0.0), possible

    def _before(self, measure: Influence, i: int, max_lag: int) -> Floats:
        # from the records at i - 1, i - 2, ... to the one at i
        powers, possible = self._power(max_lag)
        back = self._backward(
            self._marginals.at(i - 1 - np.arange(max_lag)),
            (powers[:max_lag], possible[:max_lag]),
            self._marginals.at(i),
        )
        return measure.table(*back)

    def _before_each(self, measure: Influence, a: int) -> Floats:
        powers, possible = self._power(a)
        # from the record at t to the one at t + a, until marginals are stationary
        at, marginals = (
            np.arange(min(self.n_records - a, self._settled)),
            self._marginals,
        )
        step = powers[a - 1], possible[a - 1]
        back = self._backward(marginals.at(at), step, marginals.at(at + a))
        return measure.table(*back)

    def _first(self, measure: Influence) -> Floats | None:
        # once laws have settled, what came first no longer matters
        reach = min(self._settled, self.n_records - 1)
        if reach < 2:
            return None

        def found() -> Floats:
            powers, possible = self._power(reach)
            back = self._backward(
                self._marginals.at(0),
                (powers[:reach], possible[:reach]),
                self._marginals.at(np.arange(1, reach + 1)),
            )
            return measure.table(*back)

        return MEMORY.found((self,), ("first", measure), found)

    def _error(
        self, measure: Influence, i: Indices | int, steps: Indices | int
    ) -> Floats | float:
        # as many products as lags, and as many again for the marginal
        steps = steps + np.minimum(i, self._settled)
        return measure.error(len(self.initial), steps, self._marginals.drift)

    def approximate(self) -> MixingQuilts:
        """Return the same quilts with influences bounded by the mixing time."""
        return self._mixing

    @cached_property
    def _mixing(self) -> MixingQuilts:
        return MixingQuilts(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": self.kind,
            "initial": to_plain(self.initial),
            "transition": to_plain(self.transition),
            "n_records": self.n_records,
            "protected": to_plain(self._protected_records()),
            "pairs": to_plain(self._pairs),
        }


def chain_influence(
    chains: Iterable[tuple[ArrayLike, ArrayLike]],
    n_records: int,
    *,
    move: float = math.inf,
    protected: Sequence[int] | None = None,
    assumptions: tuple[Statement, ...] = (),
    life: object = None,
) -> MaxInfluence:
    """Max-influence along Markov chains, one (initial, transition) for each prior.

    `move` is how far one record moves its contribution; quilts are kept with `life`.
    """
    among = None if protected is None else tuple(int(i) for i in protected)
    found: list[ChainQuilts] = []
    nothing: ScenarioError | None = None
    for initial, transition in chains:
        chain = np.asarray(initial, float), np.asarray(transition, float)
        try:
            found.append(_chain_quilts(life, Chains([chain], n_records), among))
        except ScenarioError as error:
            nothing = error  # under this belief there is nothing to keep apart
    if nothing is not None and not found:
        raise nothing
    return MaxInfluence(
        quilts=tuple(found),
        move=float(move),
        # near a record of a chain are those around it
        sequences=(np.arange(n_records),),
        assumptions=tuple(assumptions),
    )


@remembered_with(1)
def _chain_quilts(
    life: object, chains: Chains, protected: tuple[int, ...] | None
) -> ChainQuilts:
    """Quilts of a chain, kept with all that was found of them."""
    ((initial, transition),) = chains.chains
    return ChainQuilts(initial, transition, chains.n, protected)


# -- algorithm for the distribution of a sum along a chain, chosen by cost -------------


# Budget of exact distributions: about a second of multiplying long integers, and so
# many comparisons of them.
_MULTIPLICATIONS = 5e8
_COMPARISONS = 2e6
# Budget of distributions in floats: products, numbers held, and entries of tables.
_PRODUCTS = 6e9
_NUMBERS = 3e7
_TABLES = 6e7
# Pairs of secrets that are compared one by one.
_PAIRS = 100_000


@dataclass(frozen=True)
class SumProblem:
    """Sum of weights along Markov chains, whose distributions are asked for."""

    # all of it is public
    chains: Chains
    positions: tuple[int, ...]
    pairs: str
    origin: tuple[float, ...]
    direction: tuple[float, ...]
    weights: tuple[int, ...]
    width: int | None
    outside: float
    lossy: bool


@dataclass(frozen=True)
class SumDistributions:
    """Distributions by chain and secret, as :class:`OutputDistributions` has them."""

    distributions: tuple[tuple[LatticeSum | None, ...], ...]
    secrets: tuple[tuple[Any, int], ...]
    pairs: tuple[tuple[int, int], ...]
    lost: float = 0.0
    windows: bool = False


def _affordable(problem: SumProblem) -> list[tuple[Callable[..., Any], bool]]:
    """Algorithms whose cost is affordable, the best first, and whether by windows."""
    algorithms = [(_exact_distributions, False), (_float_distributions, False)]
    if problem.width is not None:
        # a window without an event outside it loses nothing, and is shorter
        algorithms.insert(
            1 if problem.outside == 0 else 2, (_window_distributions, True)
        )
    able = {
        _exact_distributions: _exact_affordable,
        _float_distributions: _float_affordable,
        _window_distributions: _window_affordable,
    }
    return [found for found in algorithms if able[found[0]](problem)]


def computable(life: object, problem: SumProblem) -> bool:
    """Whether the distributions of a sum can be computed, mostly without doing so."""
    # that no atom is too light is known only once the distributions are computed
    algorithms = _affordable(problem)
    if problem.lossy or (algorithms and algorithms[0][0] is _exact_distributions):
        return bool(algorithms)
    return sum_distributions(life, problem) is not None


@remembered_with(1)
def sum_distributions(life: object, problem: SumProblem) -> SumDistributions | None:
    """Distributions of a sum under the chains, or None if no algorithm gives them."""
    for algorithm, windows in _affordable(problem):
        found, lost = [], 0.0
        for chain in problem.chains.chains:
            distributions, missing = algorithm(problem, *chain)
            found.append(distributions)
            lost = max(lost, missing)
        # a mass that is left out must be negligible, and the user must allow for an
        # event
        if lost == 0 or (problem.lossy and lost < TINY**0.5):
            return _assemble(problem, found, lost, windows)
    return None


def _size(problem: SumProblem) -> tuple[int, int, int]:
    """Numbers of protected times, of states and of values of the sum."""
    k = len(problem.weights)
    return len(problem.positions), k, problem.chains.n * max(problem.weights) + 1


def _n_pairs(problem: SumProblem) -> float:
    times, k, _ = _size(problem)
    return times * k * k if problem.pairs == "same_index" else (times * k) ** 2 / 2


def _exact_affordable(problem: SumProblem) -> bool:
    """Whether the sums are few and the probabilities short fractions."""
    times, k, sums = _size(problem)
    if _n_pairs(problem) * sums > _COMPARISONS:
        return False
    for initial, transition in problem.chains.chains:
        steps, first = exact_entries(transition), exact_entries(initial[None])
        if steps is None or first is None:
            return False
        # a polynomial holds one mass for each value of the sum, each with n times the
        # bits of the denominator
        digits = problem.chains.n * math.log2(max(steps[1], 2)) * sums / 30
        # Karatsuba's multiplication of integers of so many 30-bit digits
        if times * k * digits**1.585 > _MULTIPLICATIONS:
            return False
    return True


def _exact_distributions(
    problem: SumProblem, initial: Floats, transition: Floats
) -> tuple[Any, ...]:
    """Distributions in exact integers; nothing is lost."""
    first, steps = exact_entries(initial[None]), exact_entries(transition)
    assert first is not None and steps is not None  # see `_exact_affordable`
    distributions = exact_sum_distributions(
        first[0][0],
        steps,
        np.array(problem.weights),
        problem.chains.n,
        problem.positions,
    )
    return distributions, 0.0


def _float_affordable(problem: SumProblem) -> bool:
    # a convolution of lengths t and sums - t costs their product, sums² / 6 on average
    times, k, sums = _size(problem)
    return (
        times * k * sums**2 / 6 <= _PRODUCTS
        and times * k * sums <= _NUMBERS
        and problem.chains.n * k * sums <= _TABLES
        and (problem.pairs == "same_index" or _n_pairs(problem) <= _PAIRS)
    )


def _float_distributions(
    problem: SumProblem, initial: Floats, transition: Floats
) -> tuple[Any, ...]:
    """Distributions in floats, and the mass of atoms too light to be computed."""
    weights = np.array(problem.weights)
    return float_sum_distributions(
        initial, transition, weights, problem.chains.n, problem.positions
    )


def _window_affordable(problem: SumProblem) -> bool:
    k, width, high = len(problem.weights), problem.width, max(problem.weights)
    assert width is not None  # see `_affordable`
    # windows inside by both ends and the secret; at the edges by one end, on either
    # side, with a part that is shorter
    inside, edges = k**3, 2 * min(width, problem.chains.n) * k**2
    part = width * high + 1
    return (inside + edges / 2) * part**2 <= _PRODUCTS and (
        2 * inside + 1.5 * edges
    ) * part <= _NUMBERS


def _window_distributions(
    problem: SumProblem, initial: Floats, transition: Floats
) -> tuple[Any, ...]:
    """Distributions inside windows, and the mass of atoms too light to be computed."""
    assert problem.width is not None  # see `_affordable`
    weights = np.array(problem.weights)
    return window_sum_distributions(
        initial, transition, weights, problem.chains.n, problem.width
    )


def _assemble(
    problem: SumProblem, found: list[Any], lost: float, windows: bool
) -> SumDistributions:
    """Distributions by chain and secret, with the pairs of secrets."""
    k, n = len(problem.weights), problem.chains.n
    origin, direction = np.array(problem.origin), np.array(problem.direction)
    # As many steps as the longest recursion has. Of a window the origin is arbitrary,
    # as both distributions of a pair have it in common.
    length = n
    if windows:
        assert problem.width is not None  # see `_affordable`
        length = 2 * problem.width
    error = mass_error(length, k, length * max(problem.weights) + 1)
    origin = origin * (1 if windows else n)

    def distribution(parts: tuple[Any, ...] | None) -> LatticeSum | None:
        if parts is None:
            return None
        steps, masses = parts
        exact = masses.dtype == object
        return LatticeSum(steps, masses, origin, direction, 0.0 if exact else error)

    # secrets in the order of places and states, k in a row at each place
    places = tuple(found[0])
    secrets = tuple((place, state) for place in places for state in range(k))
    distributions = tuple(
        tuple(distribution(parts) for place in places for parts in chain[place])
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
    return SumDistributions(distributions, secrets, tuple(pairs), lost, windows)
