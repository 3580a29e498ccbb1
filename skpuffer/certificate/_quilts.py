"""Markov quilts, tried one by one: influences, and the costs of near sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._noise import Floats, NotRecomputableError, noise_shift, number

#: Quilts of all records together that are tried.
_MOST_QUILTS = 200_000

#: By how much masses may miss a sum of one.
_OFF = 1e-9

#: Price and size of the near set of the worst record's best quilt.
WorstQuilt = tuple[float, float]

#: Size of the near set, and distributions of the quilt given two values of the record,
#: side by side where there is more than one quilt variable.
_Quilt = tuple[float, list[tuple[Floats, Floats]]]


def worst_quilt(curve: dict[str, Any], order: float) -> WorstQuilt:
    """Return the largest price over the records of the cheapest quilt of each."""
    if curve["method"] != "exact":
        raise NotRecomputableError("influences are bounded by a mixing time")
    costs: dict[float, float] = {}

    def cost(size: float) -> float:
        if size not in costs:
            costs[size] = sum(_cost(part, order, size) for part in curve["parts"])
        return costs[size]

    worst = (-math.inf, math.nan)
    for quilts in curve["quilts"]:
        # the schema leaves their data open, and it is read as they are tried
        try:
            for record in _records(quilts, curve["max_distance"]):
                worst = max(worst, _cheapest(record, order, cost))
        except (KeyError, TypeError, ValueError, IndexError):
            raise NotRecomputableError(
                f"the data of {quilts['kind']!r} is not as it should be"
            ) from None
    return worst


def _check_masses(*laws: Floats) -> None:
    """Refuse to compare what is no distribution: smaller masses seem to tell less."""
    if any(np.any(p < 0) or abs(math.fsum(p) - 1) > _OFF for p in laws):
        raise NotRecomputableError("masses under a quilt do not sum to 1")


def _cheapest(
    record: Iterator[_Quilt], order: float, cost: Callable[[float], float]
) -> WorstQuilt:
    best = (math.inf, math.nan)
    for size, compared in record:
        influence = max((_divergence(p, q, order) for p, q in compared), default=0.0)
        best = min(best, (influence + cost(size), size))
    return best


def _cost(part: dict[str, Any], order: float, size: float) -> float:
    if part["kind"] != "quilt_part":
        raise NotRecomputableError("a run is composed anew for each size of a near set")
    shift = {
        "radius": part["move"] * size + part["slack"],
        "norm": {"laplace": 1.0}.get(part["noise"]["family"], 2.0),
        "dim": part["dim"],
        "structure": "vector",
        "weights": part["units"],
    }
    return noise_shift(part["noise"], shift).renyi(order)


def _divergence(p: Floats, q: Floats, order: float) -> float:
    there = p > 0
    if np.any(q[there] <= 0):
        return math.inf
    losses = np.log(p[there]) - np.log(q[there])
    if math.isinf(order):
        return float(losses.max())
    mean = np.sum(np.exp(np.log(q[there]) + order * losses))
    return float(np.log(mean)) / (order - 1)


def _records(quilts: dict[str, Any], most: float | None) -> Iterator[Iterator[_Quilt]]:
    kind = quilts["kind"]
    if kind == "listed_quilts":
        return _listed(quilts, most)
    if kind == "markov_chain":
        return _of_chain(quilts, most)
    raise NotRecomputableError(f"influences of {kind!r} have no second path here")


def _listed(quilts: dict[str, Any], most: float | None) -> Iterator[Iterator[_Quilt]]:
    for index, sizes, members, tables, compared in quilts["records"]:
        pairs = np.argwhere(np.array(compared, bool))

        def options(
            index: int = index, rest: Any = (sizes, members, tables), pairs: Any = pairs
        ) -> Iterator[_Quilt]:
            for size, quilt, (masses, _) in zip(*rest, strict=True):
                if most is not None and any(abs(q - index) > most for q in quilt):
                    continue
                rows = np.array(masses, float)
                told = [(rows[a], rows[b]) for a, b in pairs] if quilt else []
                _check_masses(*itertools.chain.from_iterable(told))
                yield number(size), told

        yield options()


def _of_chain(quilts: dict[str, Any], most: float | None) -> Iterator[Iterator[_Quilt]]:
    n, initial = int(quilts["n_records"]), np.array(quilts["initial"], float)
    step = np.array(quilts["transition"], float)
    _check_masses(initial, *step)
    records = range(n) if quilts["protected"] is None else quilts["protected"]
    if len(records) * n * n > _MOST_QUILTS:
        raise NotRecomputableError("there are too many quilts to try one by one")
    powers = [np.eye(len(initial))]
    for _ in range(n - 1):
        powers.append(powers[-1] @ step)
    pairs = np.ones((len(initial),) * 2, bool)
    if quilts["pairs"] is not None:
        pairs = np.array(quilts["pairs"], bool)
    np.fill_diagonal(pairs, False)
    compared = np.argwhere(pairs)
    far = n if most is None else int(most)
    for i in records:
        yield _near(int(i), n, far, initial, powers, compared)


def _near(
    i: int, n: int, far: int, initial: Floats, powers: list[Floats], compared: Any
) -> Iterator[_Quilt]:
    """Quilts of the records a before and b after one, of which one may be missing."""
    here = initial @ powers[i]
    earlier = [None, *range(1, min(i, far) + 1)]
    later = [None, *range(1, min(n - 1 - i, far) + 1)]
    for a, b in itertools.product(earlier, later):
        size = (i if a is None else a - 1) + 1 + (n - 1 - i if b is None else b - 1)
        told = []
        for x, y in compared:
            if not (here[x] > 0 and here[y] > 0):
                continue
            sides = [_sides(a, b, i, v, here, initial, powers) for v in (x, y)]
            told.append((sides[0], sides[1]))
        yield float(size), told


def _sides(
    a: int | None,
    b: int | None,
    i: int,
    value: int,
    here: Floats,
    initial: Floats,
    powers: list[Floats],
) -> Floats:
    """Joint distribution of the two sides given the value, which parts them."""
    left = right = np.ones(1)
    if a is not None:
        # by Bayes' rule, backwards along the chain
        left = (initial @ powers[i - a]) * powers[a][:, value] / here[value]
    if b is not None:
        right = powers[b][value]
    return np.outer(left, right).ravel()
