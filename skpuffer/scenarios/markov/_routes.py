"""Which way to the laws of a sum along a chain can be afforded, and its result."""

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.distributions._lattice_sum import SumLaw, law_error
from skpuffer.distributions._weak_cache import remembered_with

from ._chains import Chains, exact_entries
from ._sums import TINY, exact_sum_laws, float_sum_laws, window_sum_laws

__all__ = ["SumProblem", "laws_of", "within_reach"]

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


@dataclass(frozen=True)
class SumProblem:
    """Laws to compute: all of it public."""

    chains: Chains
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
    """Laws by chain and secret, as :class:`OutputDistributions` has them."""

    laws: tuple
    secrets: tuple
    pairs: tuple
    lost: float = 0.0
    windows: bool = False


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


def within_reach(life, problem):
    """Whether the laws of a sum can be computed, for less than computing them."""
    # that no atom is too light is known only once the laws are computed
    ways = _ways(problem)
    if problem.lossy or (ways and ways[0][0] is _exact_laws):
        return bool(ways)
    return laws_of(life, problem) is not None


@remembered_with(1)
def laws_of(life, problem):
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
