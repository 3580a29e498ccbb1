"""Quilts of chains and of networks, against enumeration."""

import copy
import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import MarkovQuilt
from skpuffer.distributions._weak_cache import MEMORY, life_of
from skpuffer.exceptions import ScenarioError, Statement, UnsupportedError
from skpuffer.privacy_loss import renyi_divergence
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    BayesianNetworkScenario,
    MarkovChainScenario,
    MaxInfluence,
)
from skpuffer.scenarios._bayesian_network import Graph
from skpuffer.scenarios._markov._chains import irreducible_stationary
from skpuffer.scenarios._markov._quilts import ChainQuilts, chain_influence, mixing
from skpuffer.scenarios._quilts import _sides
from skpuffer.scenarios._quilts._base import measure_of, relative_error
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "markov_quilt.json").read_text("utf-8")
)
CHAIN = ORACLES["chain"]
ORDERS = st.sampled_from([1.5, 2.0, 8.0, math.inf])


def release(n, **options):
    known = Sensitivity(add_remove={1: 1.0, 2: 1.0}, replace={1: 1.0, 2: 1.0})
    return QueryRelease(
        **{
            "query": lambda X, y: X.sum(),
            "n_records": n,
            "dim": 1,
            "sensitivity": known,
            **options,
        }
    )


@st.composite
def laws(draw, k, zeros=True):
    weights = draw(st.lists(st.integers(0 if zeros else 1, 9), min_size=k, max_size=k))
    assume(sum(weights))
    return np.array(weights, dtype=float) / sum(weights)


@st.composite
def chains(draw, zeros=True):
    k = draw(st.integers(2, 3))
    transition = np.array([draw(laws(k, zeros)) for _ in range(k)])
    return draw(laws(k, zeros)), transition


def joint_of(initial, transition, n):
    """Table of all outcomes of a chain, by enumeration."""
    k = len(initial)
    joint = np.zeros((k,) * n)
    for x in itertools.product(range(k), repeat=n):
        steps = [transition[a, b] for a, b in itertools.pairwise(x)]
        joint[x] = initial[x[0]] * math.prod(steps)
    return joint


def told(joint, index, quilt, alpha):
    """Influence of a quilt by its definition, or None if there is no secret."""
    k = joint.shape[index]
    rest = tuple(at for at in range(joint.ndim) if at not in (index, *quilt))
    table = joint.sum(axis=rest)
    table = np.moveaxis(table, sorted((index, *quilt)).index(index), 0).reshape(k, -1)
    masses = table.sum(axis=1)
    pairs = [(a, b) for a, b in itertools.permutations(np.flatnonzero(masses > 0), 2)]
    if not pairs:
        return None
    rows = {a: table[a] / masses[a] for a in np.flatnonzero(masses > 0)}
    if alpha == "total_variation":
        return max(np.abs(rows[a] - rows[b]).sum() / 2 for a, b in pairs)
    return max(renyi_divergence(rows[a], rows[b], alpha) for a, b in pairs)


def quilts_of(index, n):
    """All quilts of one record of a chain: (a, b, size)."""
    for a in (None, *range(1, index + 1)):
        for b in (None, *range(1, n - index)):
            left = 0 if a is None else index - a + 1
            right = n - 1 if b is None else index + b - 1
            yield a, b, right - left + 1


def positions(index, a, b):
    return ([] if a is None else [index - a]) + ([] if b is None else [index + b])


# -- reference values ---------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["influence"]["rows"])
def test_influences_of_reference(row):
    index, n = ORACLES["influence"]["index"], ORACLES["influence"]["n_records"]
    quilts = ChainQuilts(CHAIN["initial"], CHAIN["transition"], n)
    of = (index, row["a"], row["b"])
    assert quilts.influence(*of) == pytest.approx(row["exact"], abs=6e-11)
    if "approximate" in row:
        bound = quilts.approximate().influence(*of)
        assert bound == pytest.approx(row["approximate"], abs=6e-11)
    if "total_variation" in row:
        found = quilts.influence(*of, order="total_variation")
        assert found == pytest.approx(row["total_variation"], abs=6e-11)


def test_mixing_of_reference():
    least, gap = mixing(np.array(CHAIN["transition"]))
    assert least == pytest.approx(ORACLES["mixing"]["least_mass"], rel=1e-12)
    assert gap == pytest.approx(ORACLES["mixing"]["gap"], rel=1e-12)


# -- one chain, against its definition ----------------------------------------------


@given(chains(), st.integers(2, 5), st.sampled_from([1.5, 8.0, math.inf, "tv"]))
def test_influence_is_the_divergence_of_the_quilt(chain, n, order):
    order = "total_variation" if order == "tv" else order
    joint = joint_of(*chain, n)
    assume(told(joint, n - 1, (), order) is not None)
    quilts = ChainQuilts(*chain, n)
    for index in range(n):
        for a, b, size in quilts_of(index, n):
            assert quilts.size(index, a, b) == size
            expected = told(joint, index, positions(index, a, b), order)
            found = quilts.influence(index, a, b, order)
            if expected is None:
                assert found <= 0
            else:
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)
                assert found >= expected


@pytest.mark.parametrize("by", ["exact", "approximate"])
@given(chains(), st.integers(2, 12), ORDERS, st.floats(0.05, 3.0))
def test_search_finds_what_enumeration_finds(by, chain, n, order, slope):
    try:
        quilts = ChainQuilts(*chain, n)
        quilts = quilts if by == "exact" else quilts.approximate()
    except (ScenarioError, UnsupportedError):
        assume(False)
    prices = [
        min(
            quilts.influence(index, a, b, order) + slope * size
            for a, b, size in quilts_of(index, n)
        )
        for index in range(n)
    ]
    found = quilts.worst(order, lambda sizes: slope * sizes)
    assert found.price == pytest.approx(max(prices), rel=1e-9)
    # a second call starts from what is known by now
    again = quilts.worst(order, lambda sizes: slope * sizes)
    assert again.price == pytest.approx(found.price, rel=1e-11)


@given(
    chains(zeros=False),
    st.integers(4, 30),
    ORDERS,
    st.floats(0.01, 3.0),
    st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=1)),
)
def test_records_between_the_ends_stand_for_each_other(chain, n, order, slope, some):
    """Few records at an end are listed here: as all of them, to the last bit."""
    _, transition = chain
    initial = irreducible_stationary(transition)
    found = []
    for reach in (1, n):
        quilts = ChainQuilts(initial, transition, n, some)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_sides, "_FIRST_END", reach)
            for cost in (slope, slope / 7, 0.01 * slope):
                found.append(quilts.worst(order, lambda sizes, c=cost: c * sizes))
    assert found[:3] == found[3:]


@given(st.integers(5, 400), st.floats(0.05, 4.0), st.floats(0.05, 4.0), st.data())
def test_the_dearest_between_the_ends_is_found_by_bisection(n, early, late, data):
    """Against all records one by one, where quilts of one side matter everywhere."""
    quilts = ChainQuilts([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], n)
    influence = {(None, 1): early, (1, None): late, (1, 1): early + late + 1.0}
    known = data.draw(st.permutations(list(influence)))
    quilts._of_quilt = lambda measure, a, b: _sides._InfluenceOfEach(
        a or 0, n - (b or 0), np.array([influence[a, b]])
    )
    slope = data.draw(st.floats(0.001, 0.5))
    known = known[: data.draw(st.integers(0, 3))]
    bounds = [
        min(
            [slope * n]
            + [
                influence[a, b] + slope * quilts.size(i, a, b)
                for a, b in known
                if (a is None or i >= a) and (b is None or i < n - b)
            ]
        )
        for i in range(n)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sides, "_FIRST_END", 1)
        prices = _sides._Prices(quilts, measure_of(2.0), lambda x: slope * x, known)
    index, price, number = prices.largest()
    assert (index, price) == (int(np.argmax(bounds)), max(bounds))
    assert number is None or known[number] in influence
    for i, bound in enumerate(bounds):
        assert prices.of(i)[0] == bound


def test_a_million_records_are_searched_as_a_thousand():
    for initial in ("stationary", [1.0, 0.0]):
        scenario = MarkovChainScenario(CHAIN["transition"], initial)
        scales = [
            MarkovQuilt().calibrate(release(n), scenario).noise.scale
            for n in (10**3, 10**6)
        ]
        assert scales[0] == pytest.approx(scales[1], rel=1e-9)


def test_records_near_a_known_first_one_share_its_quilts():
    """A few searches do for hundreds of records, and find what one for each does."""
    slow, n, slope = [[0.99, 0.01], [0.02, 0.98]], 700, 1e-3
    found = []
    for shared in (True, False):
        quilts = ChainQuilts([1.0, 0.0], slow, n)
        if not shared:
            quilts._first = lambda measure: None
        searched, search = [], quilts._search

        def counted(*rest, searched=searched, search=search):
            searched.append(rest[2])
            return search(*rest)

        quilts._search = counted
        found.append(quilts.worst(2.0, lambda sizes: slope * sizes))
        assert (len(searched) < 10) is shared
        # the quilt that is named is of that price
        index, (earlier, later) = found[-1].index, found[-1].quilt
        told = quilts.influence(index, index - earlier, later - index, 2.0)
        size = quilts.size(index, index - earlier, later - index)
        assert found[-1].price == pytest.approx(told + slope * size, rel=1e-12)
        assert found[-1].size == size
    assert found[0].price == pytest.approx(found[1].price, rel=1e-9)


@given(chains(), st.integers(2, 12), ORDERS, st.floats(0.05, 3.0), st.integers(1, 4))
def test_no_quilt_is_further_away_than_asked(chain, n, order, slope, furthest):
    try:
        quilts = ChainQuilts(*chain, n)
    except ScenarioError:
        assume(False)

    def cost(sizes):
        return slope * sizes

    # quilts that a search without limits knows are none of one with limits
    quilts.worst(order, cost)
    found = quilts.worst(order, cost, max_distance=furthest)
    assert all(abs(at - found.index) <= furthest for at in found.quilt)
    fresh = ChainQuilts(*chain, n).worst(order, cost, max_distance=furthest)
    assert found.price == pytest.approx(fresh.price, rel=1e-9)


def test_long_chains_are_searched_as_short_ones():
    """Beyond the first blocks, away from the start and without a stationary start."""
    slow = np.array([[0.99, 0.01, 0.0], [0.0, 0.98, 0.02], [0.02, 0.0, 0.98]])
    n = 700
    quilts = ChainQuilts([0.0, 0.5, 0.5], slow, n)
    slope = 0.002
    found = quilts.worst(2.0, lambda sizes: slope * sizes)
    index = found.index
    best = math.inf
    for a in range(1, index + 1, 13):
        for b in (None, *range(1, n - index, 9)):
            price = quilts.influence(index, a, b, 2.0)
            best = min(best, price + slope * quilts.size(index, a, b))
        MEMORY.clear()
    assert found.price <= best
    assert found.price >= 0.9 * best


@given(chains(zeros=False), st.integers(2, 8), ORDERS)
def test_further_quilts_tell_less(chain, n, order):
    quilts = ChainQuilts(*chain, n)
    index = n // 2
    for b in range(1, n - index - 1):
        near = quilts.influence(index, None, b, order)
        assert quilts.influence(index, None, b + 1, order) <= near + 1e-12
    for a in range(1, index):
        near = quilts.influence(index, a, None, order)
        assert quilts.influence(index, a + 1, None, order) <= near + 1e-12


@given(chains(zeros=False), st.integers(2, 40), st.integers(0, 39))
def test_bounds_by_mixing_are_bounds(chain, n, index):
    index = min(index, n - 1)
    exact = ChainQuilts(*chain, n)
    try:
        bound = exact.approximate()
    except UnsupportedError:
        return
    for order in (1.5, 4.0, math.inf, "total_variation"):
        for a, b, _ in itertools.islice(quilts_of(index, n), 0, None, 7):
            if a is None and b is None:
                continue
            above = bound.influence(index, a, b, order)
            assert exact.influence(index, a, b, order) <= above + 1e-11


def test_orders_are_ordered():
    quilts = ChainQuilts([0.5, 0.5], [[0.6, 0.4], [0.3, 0.7]], 30)
    found = [quilts.influence(10, 3, 4, a) for a in (1.1, 1.5, 2, 8, 64, math.inf)]
    assert found == sorted(found)


def test_a_transition_never_seen():
    """Next to the secret everything is told; two steps away not any more."""
    transition = np.array([[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.3, 0.3, 0.4]])
    quilts = ChainQuilts(irreducible_stationary(transition), transition, 30)
    assert quilts.influence(15, None, 1) == math.inf
    assert quilts.influence(15, 1, None) == math.inf
    assert quilts.influence(15, 1, 1, 2.0) == math.inf
    assert quilts.influence(15, 2, 2) < math.inf
    assert quilts.influence(15, None, 1, "total_variation") < 1
    assert quilts.worst(math.inf, lambda sizes: sizes / 25).size < 30


def test_a_chain_that_never_mixes_leaves_the_trivial_quilt():
    for transition in ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]):
        quilts = ChainQuilts([0.5, 0.5], transition, 25)
        found = quilts.worst(math.inf, lambda sizes: sizes / 25)
        assert (found.price, found.size, found.quilt) == (1.0, 25.0, ())
        with refused(UnsupportedError, "markov.no_spectral_gap"):
            quilts.approximate()


def test_a_chain_that_leaves_a_state_for_good_has_no_mixing_time():
    quilts = ChainQuilts([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]], 25)
    with refused(UnsupportedError, "markov.no_spectral_gap"):
        quilts.approximate()


def test_masses_that_underflow_do_not_pass_for_impossible():
    tiny = 1e-300
    transition = np.array([[1.0, tiny], [tiny, 1.0]])
    quilts = ChainQuilts([0.5, 0.5], transition, 6)
    assert quilts.influence(3, None, 1) > 600
    cycle = np.array([[0.0, 1.0, 0.0], [tiny, 0.0, 1.0], [1.0, 0.0, 0.0]])
    quilts = ChainQuilts([1 / 3] * 3, cycle, 9)
    assert quilts.influence(4, None, 3) == math.inf


def test_only_what_is_protected_counts():
    transition, n = np.array([[0.9, 0.1], [0.2, 0.8]]), 60
    law = irreducible_stationary(transition)
    every = ChainQuilts(law, transition, n)
    last = ChainQuilts(law, transition, n, protected=[n - 1])
    cost = lambda sizes: sizes / 20  # noqa: E731
    found = last.worst(math.inf, cost)
    assert found.index == n - 1
    assert found.price < every.worst(math.inf, cost).price
    with refused(ScenarioError, "quilt.no_protected_record_varies"):
        ChainQuilts([1.0, 0.0], transition, n, protected=[0])
    pairs = np.zeros((2, 2))
    with refused(ScenarioError, "quilt.no_protected_record_varies"):
        ChainQuilts(law, transition, n, pairs=pairs)


@given(laws(3, zeros=False), st.lists(laws(3, zeros=False), min_size=3, max_size=3))
def test_a_pair_of_values_is_one_in_either_order(law, rows):
    """Whoever knows one value must not tell it from the other, nor the other way."""
    transition, n = np.array(rows), 4
    joint = joint_of(law, transition, n)
    for a, b in itertools.permutations(range(3), 2):
        pairs = np.zeros((3, 3), dtype=bool)
        pairs[a, b] = True
        quilts = ChainQuilts(law, transition, n, pairs=pairs)
        either = joint[:, [a, b]]  # of the record at one
        for before, after, _ in quilts_of(1, n):
            expected = told(either, 1, positions(1, before, after), 2.0)
            found = quilts.influence(1, before, after, 2.0)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_distance_may_be_limited():
    transition, n = np.array([[0.9, 0.1], [0.2, 0.8]]), 60
    quilts = ChainQuilts(irreducible_stationary(transition), transition, n)
    cost = lambda sizes: sizes / 22  # noqa: E731
    free = quilts.worst(math.inf, cost)
    near = quilts.worst(math.inf, cost, max_distance=4)
    assert near.price > free.price
    assert all(abs(at - near.index) <= 4 for at in near.quilt)


def test_a_ceiling_changes_nothing_below_it():
    quilts = ChainQuilts(CHAIN["initial"], CHAIN["transition"], 80)
    cost = lambda sizes: sizes / 22  # noqa: E731
    free = quilts.worst(math.inf, cost).price
    fresh = ChainQuilts(CHAIN["initial"], CHAIN["transition"], 80)
    assert fresh.worst(math.inf, cost, ceiling=1.1 * free).price == pytest.approx(free)
    fresh = ChainQuilts(CHAIN["initial"], CHAIN["transition"], 80)
    assert fresh.worst(math.inf, cost, ceiling=0.9 * free).price >= 0.9 * free


def test_several_chains_are_each_at_their_best():
    fast, slow = [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]]
    cost = lambda sizes: sizes / 30  # noqa: E731
    prices = [
        chain_influence([([0.5, 0.5], step)], 40).worst(math.inf, cost).price
        for step in (fast, slow)
    ]
    both = chain_influence([([0.5, 0.5], step) for step in (fast, slow)], 40)
    assert both.worst(math.inf, cost).price == max(prices)


def test_what_was_found_is_kept_and_not_pickled():
    arguments = [([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]])], 40
    life = life_of(MarkovChainScenario(np.eye(2)))
    fact = chain_influence(*arguments, life=life)
    assert chain_influence(*arguments, life=life).quilts[0] is fact.quilts[0]
    assert chain_influence(*arguments).quilts[0] is not fact.quilts[0]
    cost = lambda sizes: sizes / 30  # noqa: E731
    found = fact.worst(2.0, cost)
    again = pickle.loads(pickle.dumps(fact))
    assert not again.quilts[0]._known
    assert again.worst(2.0, cost).price == found.price
    assert copy.deepcopy(fact).worst(2.0, cost).price == found.price


@given(chains(zeros=False))
def test_stationary_law(chain):
    law = irreducible_stationary(chain[1])
    assert law @ chain[1] == pytest.approx(law, rel=1e-12)


# -- networks -----------------------------------------------------------------------


def chain_network(initial, transition, n, **options):
    parents = {t: (t - 1,) if t else () for t in range(n)}
    tables = {t: transition if t else initial for t in range(n)}
    return BayesianNetworkScenario(parents, tables, **options)


@given(
    chains(),
    st.integers(2, 5),
    ORDERS,
    st.floats(0.05, 2.0),
    st.sampled_from([None, 1, 2]),
)
def test_a_chain_is_a_network(chain, n, order, slope, near):
    try:
        quilts = ChainQuilts(*chain, n)
    except ScenarioError:
        assume(False)
    query = release(n)
    fact = chain_network(*chain, n).bind(query.context).fact(MaxInfluence, query)
    cost = lambda sizes: slope * sizes  # noqa: E731
    expected = quilts.worst(order, cost, max_distance=near).price
    found = fact.worst(order, cost, max_distance=near).price
    assert found == pytest.approx(expected, rel=1e-9)


@st.composite
def networks(draw):
    n = draw(st.integers(2, 5))
    parents = {t: tuple(p for p in range(t) if draw(st.booleans())) for t in range(n)}
    tables = {}
    for t, of in parents.items():
        rows = [draw(laws(2, zeros=False)) for _ in range(2 ** len(of))]
        tables[t] = np.array(rows).reshape((2,) * (len(of) + 1))
    return parents, tables


@given(networks(), st.data())
def test_separation_is_independence(network, data):
    parents, tables = network
    n = len(parents)
    ((joint, _),) = BayesianNetworkScenario(parents, tables)._joints()
    assert joint.sum() == pytest.approx(1.0)
    graph = Graph.of(parents)
    at = data.draw(st.integers(0, n - 1))
    given_nodes = data.draw(st.sets(st.integers(0, n - 1).filter(lambda x: x != at)))
    linked = graph.connected(at, given_nodes)
    far = [t for t in range(n) if t not in linked and t not in given_nodes]
    kept = (at, *sorted(given_nodes), *far)
    rest = tuple(t for t in range(n) if t not in kept)
    order = np.argsort(np.argsort(kept))
    table = joint.sum(axis=rest).transpose(order)
    table = table.reshape(2, 2 ** len(given_nodes), -1)
    # P(at, far | given) is the product of its margins
    product = table.sum(axis=2, keepdims=True) * table.sum(axis=0, keepdims=True)
    assert table * table.sum(axis=(0, 2), keepdims=True) == pytest.approx(product)


@given(networks(), ORDERS)
def test_networks_tell_what_their_tables_say(network, order):
    parents, tables = network
    n = len(parents)
    scenario = BayesianNetworkScenario(parents, tables, max_quilt=2)
    ((joint, _),) = scenario._joints()
    (listed,) = scenario.bind(release(n).context).quilts
    for record, (sizes, found) in zip(
        listed._records, listed.influences(order), strict=True
    ):
        index, _, quilts, *_ = record
        assert sizes[0] == n and quilts[0] == ()
        for size, quilt, value in zip(sizes, quilts, found, strict=True):
            assert size == len(Graph.of(parents).connected(index, quilt)) or not quilt
            expected = told(joint, index, quilt, order) if quilt else 0.0
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-11)
            assert value >= expected


def test_quilts_of_more_nodes_never_cost_more():
    grid = {0: (), 1: (0,), 2: (0,), 3: (1, 2), 4: (3,), 5: (3, 4)}
    rng = np.random.default_rng(0)
    tables = {t: rng.dirichlet([2, 2], size=(2,) * len(p)) for t, p in grid.items()}
    query = release(6)
    prices = []
    for most in (1, 2, 3):
        scenario = BayesianNetworkScenario(grid, tables, max_quilt=most)
        fact = scenario.bind(query.context).fact(MaxInfluence, query)
        prices.append(fact.worst(math.inf, lambda sizes: sizes).price)
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] < prices[0]


def test_independent_parts_are_far_without_a_quilt():
    parents = {0: (), 1: (0,), 2: (), 3: (2,), 4: ()}
    rng = np.random.default_rng(0)
    tables = {t: rng.dirichlet([1, 1], size=(2,) * len(p)) for t, p in parents.items()}
    query = release(5)
    bound = BayesianNetworkScenario(parents, tables).bind(query.context)
    fact = bound.fact(MaxInfluence, query)
    # of which there may be millions
    assert "quilts" not in repr(fact)
    assert fact.worst(math.inf, lambda sizes: 1e-6 * sizes).size <= 2
    assert bound.fact(Adjacency, query).count == 2


def test_columns_move_as_much_as_they_are_said_to():
    """Parameters of three columns, of which the last is linked with the first only."""
    parents = {"age": (), "income": ("age",), "rent": ("income",)}
    step = [[0.6, 0.4], [0.3, 0.7]]
    tables = {"age": [0.5, 0.5], "income": step, "rent": step}
    moves = {"age": 3.0, "income": 1.0, "rent": 0.5}
    options = {"level": "attribute", "protected": ["rent"]}
    query = release(1000, sensitivity=None)
    told_of = BayesianNetworkScenario(parents, tables, moves=moves, **options)
    fact = told_of.bind(query.context).fact(MaxInfluence, query)
    assert fact.of_output
    ((sizes, told),) = fact.quilts[0].influences(math.inf)
    assert sizes.tolist() == [4.5, 3.5, 1.5] or sizes.tolist() == [4.5, 1.5, 0.5]
    assert told[0] == 0
    # without, a column may change every record, and no quilt gains anything
    plain = BayesianNetworkScenario(parents, tables, **options)
    assert plain.bind(query.context).provides(query) == frozenset()
    query = release(1000)
    fact = plain.bind(query.context).fact(MaxInfluence, query)
    assert set(fact.quilts[0].influences(2.0)[0][0]) == {1000.0}
    assert plain.bind(query.context).fact(Adjacency, query).count == 1000


@pytest.mark.parametrize("norm, units", [(1, (0.1, 10.0)), (2, (4.0, 4.0)), (1, None)])
def test_moves_of_columns_are_in_the_outputs_own_units(norm, units):
    scenario = BayesianNetworkScenario(
        {"age": ()}, {"age": [0.5, 0.5]}, level="attribute", moves={"age": 3.0}
    )
    query = QueryRelease(
        query=lambda X, y: X.sum(axis=0), n_records=5, dim=2, units=units
    )
    noise = {1: "laplace", 2: "gaussian"}[norm]
    found = MarkovQuilt(1.0, 2.0, noise=noise).calibrate(query, scenario)
    smallest = 1.0 if units is None else min(units)
    assert found.certificate.sensitivity == pytest.approx(3.0 / smallest)
    # the column may move the coordinate of least noise by all of it
    least = type(found.noise)(float(np.min(found.noise.scale)))
    assert least.renyi(2.0, 3.0) <= 1.0 + 1e-9


def test_networks_are_parameters():
    scenario = chain_network([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], 3, protected=[1])
    assert clone(scenario).get_params().keys() == scenario.get_params().keys()
    assert repr(scenario) == (
        "BayesianNetworkScenario(<3 nodes>, level='record', protected=[1], max_quilt=3)"
    )
    query = release(3)
    bound = scenario.bind(query.context)
    (sentence,) = bound.fact(MaxInfluence, query).assumptions
    assert sentence.code == "assume.network_of_records"
    assert sentence.parameters["n_records"] == 3
    assert sentence.parameters["secrets"] == [1]
    with refused(UnsupportedError, "quilt.network_has_no_mixing"):
        bound.quilts[0].approximate()


HALF = [0.5, 0.5]


@pytest.mark.parametrize(
    "options, said",
    [
        ({"parents": {}}, Statement("network.parents_not_a_dict")),
        ({"parents": {0: (), 1: (2,)}}, Statement("network.parents_repeated_or_self")),
        ({"parents": {0: (1,), 1: (0,)}}, Statement("network.parents_cyclic")),
        ({"tables": []}, Statement("network.tables_empty")),
        ({"tables": {0: HALF}}, Statement("network.tables_not_one_per_node")),
        ({"tables": {0: HALF, 1: HALF}}, Statement("network.table_shape_invalid")),
        (
            {"tables": {0: [0.5, 0.6], 1: [HALF, HALF]}},
            Statement("network.node_table_invalid"),
        ),
        (
            {"tables": {0: [1.5, -0.5], 1: [HALF, HALF]}},
            Statement("network.node_table_invalid"),
        ),
        ({"protected": [7]}, Statement("network.protected_not_a_node", name=7)),
        ({"moves": {0: 1.0, 1: 1.0}}, Statement("network.moves_at_record_level")),
        (
            {"level": "attribute", "moves": {0: 1.0}},
            Statement("network.moves_not_one_per_node"),
        ),
        (
            {"level": "attribute", "moves": {0: 1.0, 1: -1.0}},
            Statement("parameter.is_negative", name="moves"),
        ),
        ({"level": "table"}, Statement("parameter.option_unknown", name="level")),
        ({"max_quilt": 0}, Statement("parameter.count_too_small", name="max_quilt")),
    ],
)
def test_networks_that_are_none(options, said):
    good = {"parents": {0: (), 1: (0,)}, "tables": {0: HALF, 1: [HALF, HALF]}}
    scenario = BayesianNetworkScenario(**{**good, **options})
    with refused(ValueError, said.code, **said.parameters):
        scenario.bind(release(2).context)


def test_networks_out_of_reach():
    parents = {t: () for t in range(25)}
    scenario = BayesianNetworkScenario(parents, {t: HALF for t in parents})
    with refused(ScenarioError, "network.too_many_outcomes"):
        scenario.check()
    certain = BayesianNetworkScenario({0: ()}, {0: [1.0, 0.0]})
    with refused(ScenarioError, "network.no_pair_possible"):
        certain.bind(release(1).context)
    with refused(ScenarioError, "network.nodes_differ_from_records"):
        BayesianNetworkScenario({0: ()}, {0: HALF}).bind(release(2).context)


def test_a_belief_without_a_pair_is_skipped():
    mixing = ([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    stuck = ([1.0, 0.0], np.eye(2))
    alone, both = (chain_influence(c, 10) for c in ([mixing], [mixing, stuck]))
    assert both.worst(math.inf, np.asarray) == alone.worst(math.inf, np.asarray)
    with refused(ScenarioError, "quilt.no_protected_record_varies"):
        chain_influence([stuck], 10)


def test_one_node_alone_is_beyond_the_empty_quilt():
    # the first two are connected, the third is not
    graph = Graph([(), (0,), ()])
    assert list(graph.quilts(0, 0)) == [((), {0, 1, 2}), ((), {0, 1})]
    assert list(graph.quilts(2, 0)) == [((), {0, 1, 2}), ((), {2})]
    # connected with all others: nothing is beyond
    assert list(Graph([(), (0,), (0,)]).quilts(1, 0)) == [((), {0, 1, 2})]


@pytest.mark.parametrize("alpha, amplified", [(2.0, 3.0), (11.0, 2.1), (math.inf, 2.0)])
def test_round_off_is_amplified_by_the_order(alpha, amplified):
    found = measure_of(alpha).error(4, 10, drift=1e-3)
    known = amplified * (relative_error(4, 10) + 1e-3)
    # round-off is less than the tolerance there would be for numbers near zero
    assert found == pytest.approx(known, rel=1e-15, abs=0)


@pytest.mark.parametrize("parents", [("a", "a"), ("b",), ("c",)])
def test_parents_are_other_nodes_each_once(parents):
    tables = {"a": [0.5, 0.5], "b": np.full((2,) * (len(parents) + 1), 0.5)}
    network = BayesianNetworkScenario({"a": (), "b": parents}, tables)
    with refused(ScenarioError, "network.parents_repeated_or_self"):
        network.check()
