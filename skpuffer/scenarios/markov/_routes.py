"""Algorithm for the distribution of a sum along a chain, chosen by cost."""

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.distributions._lattice_sum import LatticeSum, mass_error
from skpuffer.distributions._weak_cache import remembered_with

from ._chains import Chains, exact_entries
from ._sums import (
    TINY,
    exact_sum_distributions,
    float_sum_distributions,
    window_sum_distributions,
)

__all__ = ["SumProblem", "computable", "sum_distributions"]

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
class _SumDistributions:
    """Distributions by chain and secret, as :class:`OutputDistributions` has them."""

    distributions: tuple
    secrets: tuple
    pairs: tuple
    lost: float = 0.0
    windows: bool = False


def _affordable(problem):
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
def sum_distributions(life: object, problem: SumProblem) -> "_SumDistributions | None":
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


def _size(problem):
    """Numbers of protected times, of states and of values of the sum."""
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
        # a polynomial holds one mass for each value of the sum, each with n times the
        # bits of the denominator
        digits = problem.chains.n * math.log2(max(steps[1], 2)) * sums / 30
        # Karatsuba's multiplication of integers of so many 30-bit digits
        if times * k * digits**1.585 > _MULTIPLICATIONS:
            return False
    return True


def _exact_distributions(problem, initial, transition):
    """Distributions in exact integers; nothing is lost."""
    distributions = exact_sum_distributions(
        exact_entries(initial[None])[0][0],
        exact_entries(transition),
        np.array(problem.weights),
        problem.chains.n,
        problem.positions,
    )
    return distributions, 0.0


def _float_affordable(problem):
    # a convolution of lengths t and sums - t costs their product, sums² / 6 on average
    times, k, sums = _size(problem)
    return (
        times * k * sums**2 / 6 <= _PRODUCTS
        and times * k * sums <= _NUMBERS
        and problem.chains.n * k * sums <= _TABLES
        and (problem.pairs == "same_index" or _n_pairs(problem) <= _PAIRS)
    )


def _float_distributions(problem, initial, transition):
    """Distributions in floats, and the mass of atoms too light to be computed."""
    weights = np.array(problem.weights)
    return float_sum_distributions(
        initial, transition, weights, problem.chains.n, problem.positions
    )


def _window_affordable(problem):
    k, width, high = len(problem.weights), problem.width, max(problem.weights)
    # windows inside by both ends and the secret; at the edges by one end, on either
    # side, with a part that is shorter
    inside, edges = k**3, 2 * min(width, problem.chains.n) * k**2
    part = width * high + 1
    return (inside + edges / 2) * part**2 <= _PRODUCTS and (
        2 * inside + 1.5 * edges
    ) * part <= _NUMBERS


def _window_distributions(problem, initial, transition):
    """Distributions inside windows, and the mass of atoms too light to be computed."""
    weights = np.array(problem.weights)
    return window_sum_distributions(
        initial, transition, weights, problem.chains.n, problem.width
    )


def _assemble(problem, found, lost, windows):
    """Distributions by chain and secret, with the pairs of secrets."""
    k, n = len(problem.weights), problem.chains.n
    origin, direction = np.array(problem.origin), np.array(problem.direction)
    # As many steps as the longest recursion has. Of a window the origin is arbitrary,
    # as both distributions of a pair have it in common.
    length = 2 * problem.width if windows else n
    error = mass_error(length, k, length * max(problem.weights) + 1)
    origin = origin * (1 if windows else n)

    def distribution(parts):
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
    return _SumDistributions(distributions, secrets, tuple(pairs), lost, windows)
