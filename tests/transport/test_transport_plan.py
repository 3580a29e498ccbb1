"""Transport plans: exact marginals whatever the solver, least cost if it did well."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from skpuffer.transport import (
    _plan,
    bottleneck_distance,
    quantile_coupling,
    transport_distance,
    transport_plan,
    wasserstein_distance,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_transport.json").read_text("utf-8")
)
METRICS = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}
SOLVERS = ["scipy", "pot"]


def laws(max_atoms=6, max_count=4, reach=6):
    atom = st.tuples(
        st.integers(-reach, reach),
        st.integers(-reach, reach),
        st.integers(1, max_count),
    )
    return st.lists(atom, min_size=1, max_size=max_atoms).map(
        lambda atoms: (np.array(atoms)[:, :2], np.array(atoms)[:, 2])
    )


@pytest.fixture(params=SOLVERS)
def solver(request):
    if request.param == "pot":
        pytest.importorskip("ot")
    return request.param


def assert_is_coupling(plan, u, v):
    """Every atom sends and receives exactly its mass, in integers."""
    for atoms, (points, masses) in ((plan.x, u), (plan.y, v)):
        points = np.reshape(points, (len(points), -1))
        atoms = np.reshape(atoms, (len(atoms), -1))
        masses = np.ones(len(points), int) if masses is None else np.asarray(masses)
        total = sum(int(w) for w in masses)
        for point in np.unique(points, axis=0):
            there = [int(w) for w in masses[(points == point).all(axis=1)]]
            here = [int(w) for w in plan.counts[(atoms == point).all(axis=1)]]
            assert Fraction(sum(here), plan.total) == Fraction(sum(there), total)
    assert np.all(plan.counts > 0)
    assert plan.mass.sum() == pytest.approx(1)


def total_cost(plan, p, norm=2):
    return plan.distance(p, norm) ** p


def test_reference_distances():
    case = ORACLES["plane"]
    for order, expected in case["distances"].items():
        found = transport_distance(case["u"], case["v"], float(order))
        assert found == pytest.approx(expected, rel=1e-9)


def test_the_plan_of_w1_may_move_further_than_needed(solver):
    case = ORACLES["longest_of_plan_1"]
    plan = transport_plan(case["u"], case["v"], cost=1, solver=solver)
    assert plan.optimal
    assert plan.distance(p=math.inf) == pytest.approx(case["longest"], rel=1e-9)
    shortest = bottleneck_distance(case["u"], case["v"])
    assert shortest == pytest.approx(case["inf"], rel=1e-9)
    # a higher power comes closer to it
    far = transport_plan(case["u"], case["v"], cost=40, solver=solver)
    assert far.distance(p=math.inf) == pytest.approx(case["inf"], rel=1e-9)


@given(
    laws(),
    laws(),
    st.sampled_from([0.5, 1.0, 2.0, 5.0]),
    st.sampled_from(list(METRICS)),
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_exact_marginals_at_the_least_cost(brute_force, solver, u, v, p, norm):
    if solver == "pot":
        pytest.importorskip("ot")
    plan = transport_plan(u[0], v[0], u[1], v[1], p, norm, solver=solver)
    assert plan.optimal
    assert_is_coupling(plan, u, v)
    costs = cdist(u[0], v[0], METRICS[norm])
    expected = brute_force(costs, u[1], v[1], p)
    assert plan.distance(p, norm) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("weights", [None, "counts", "floats", "huge"])
def test_reals_have_exact_marginals(solver, weights):
    rng = np.random.default_rng(3)
    U, V = rng.normal(size=(60, 3)), rng.normal(size=(45, 3)) + 1
    a = b = None
    if weights == "counts":
        a, b = rng.integers(1, 9, 60), rng.integers(1, 9, 45)
    if weights == "floats":
        a, b = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(45))
    if weights == "huge":
        a = [int(w) * 10**25 + 1 for w in rng.integers(1, 9, 60)]
        b = [int(w) * 10**25 + 3 for w in rng.integers(1, 9, 45)]
    plan = transport_plan(U, V, a, b, solver=solver)
    assert plan.optimal
    if weights == "floats":
        # their binary values, normalised exactly
        a, b = (np.array([Fraction(w) for w in side]) for side in (a, b))
        for atoms, points, masses in ((plan.x, U, a), (plan.y, V, b)):
            for point, mass in zip(points, masses, strict=True):
                here = plan.counts[(atoms == point).all(axis=1)]
                sent = Fraction(sum(int(w) for w in here), plan.total)
                assert sent == mass / sum(masses)
    else:
        a, b = (None if w is None else np.array(w, dtype=object) for w in (a, b))
        assert_is_coupling(plan, (U, a), (V, b))
    ot = pytest.importorskip("ot")
    shares = [
        np.full(n, 1 / n) if w is None else np.array(w / w.sum(), dtype=float)
        for n, w in ((60, a), (45, b))
    ]
    expected = ot.emd2(*shares, ot.dist(U, V))
    assert total_cost(plan, 2) == pytest.approx(expected, rel=1e-9)


def test_the_line_needs_no_solver(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("the quantile coupling is optimal already")

    monkeypatch.setattr(_plan, "_cheapest", refuse)
    u, v = ([0, 1, 5], [2, 5, 3]), ([0, 2, 4], [4, 4, 2])
    plan = transport_plan(u[0], v[0], u[1], v[1], cost=3)
    x, y, mass = quantile_coupling(u[0], v[0], u[1], v[1])
    np.testing.assert_array_equal(plan.x, x)
    np.testing.assert_array_equal(plan.y, y)
    np.testing.assert_allclose(plan.mass, mass)
    rows = [np.array(law[0], float)[:, None] for law in (u, v)]
    assert transport_plan(*rows, u[1], v[1]).x.shape == (len(x), 1)
    for p in (1, 2.5, math.inf):
        expected = wasserstein_distance(u[0], v[0], u[1], v[1], p)
        assert transport_distance(*rows, p, u[1], v[1]) == expected
        assert plan.distance(p) == pytest.approx(expected)


def test_concave_costs_on_the_line_need_one(solver):
    # the mass in common stays where it is, which monotone couplings do not do
    plan = transport_plan([0, 1], [1, 2], cost=0.5, solver=solver)
    assert plan.distance(0.5) ** 0.5 == pytest.approx(math.sqrt(2) / 2)
    assert plan.distance(0.5) ** 0.5 < 1


@given(laws(), laws())
def test_a_cost_may_be_a_function(u, v):
    def cost(moves):
        return np.exp(np.abs(moves).sum(axis=-1) / 4)

    plan = transport_plan(u[0], v[0], u[1], v[1], cost)
    assert_is_coupling(plan, u, v)
    best = cost(plan.displacements) @ plan.mass
    for p in (1, 2, 6):
        other = transport_plan(u[0], v[0], u[1], v[1], p, 1)
        assert best <= (cost(other.displacements) @ other.mass) * (1 + 1e-9)


@given(laws(), laws(), st.floats(1, 20), st.floats(1, 20))
def test_distances_increase_with_the_order_up_to_the_bottleneck(u, v, p, q):
    p, q = sorted((p, q))
    low, high = (transport_distance(u[0], v[0], r, u[1], v[1]) for r in (p, q))
    assert low <= high * (1 + 1e-9)
    whole = transport_distance(u[0], v[0], math.inf, u[1], v[1])
    assert whole == bottleneck_distance(u[0], v[0], u[1], v[1])
    assert high <= whole * (1 + 1e-9)
    assert low == pytest.approx(transport_distance(v[0], u[0], p, v[1], u[1]), abs=1e-9)


@given(laws(), laws(), laws(), st.floats(1, 5))
def test_triangle_inequality(u, v, w, p):
    def distance(first, second):
        return transport_distance(first[0], second[0], p, first[1], second[1])

    assert distance(u, v) <= (distance(u, w) + distance(w, v)) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("max_cells", [1, 30, 400])
@pytest.mark.parametrize("cost", [1, 2.0, lambda moves: np.abs(moves).max(axis=-1)])
def test_too_many_pairs_are_coupled_by_cells(max_cells, cost):
    rng = np.random.default_rng(max_cells)
    U, V = rng.integers(0, 9, (70, 2)), rng.integers(3, 12, (50, 2))
    a, b = rng.integers(1, 5, 70), rng.integers(1, 5, 50)
    plan = transport_plan(U, V, a, b, cost, max_cells=max_cells)
    assert not plan.optimal
    assert_is_coupling(plan, (U, a), (V, b))
    assert plan.distance(2) >= transport_distance(U, V, 2, a, b) * (1 - 1e-9)
    if max_cells == 400:
        assert plan.distance(2) <= transport_distance(U, V, 2, a, b) + 2


@pytest.mark.parametrize("failure", ["nothing", "junk", "prices"])
def test_a_solver_that_fails_still_leaves_a_coupling(monkeypatch, failure):
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(12, 2)), rng.normal(size=(9, 2))
    a, b = rng.integers(1, 9, 12), rng.integers(1, 9, 9)

    def broken(costs, a, b):
        n, m = costs.shape
        used = np.zeros((n, m), bool)
        if failure != "nothing":
            used = rng.random((n, m)) < 0.1
        price = -np.inf if failure == "nothing" else np.nan_to_num(costs.max())
        return used, np.full(n, price), np.zeros(m), failure != "nothing"

    monkeypatch.setattr(_plan, "_prices_by_scipy", broken)
    plan = transport_plan(U, V, a, b, solver="scipy")
    assert_is_coupling(plan, (U, a), (V, b))
    assert not plan.optimal


def test_without_pot(monkeypatch):
    U, V, a = [[0, 0], [1, 0], [0, 3]], [[0, 1], [2, 2]], [1, 1, 2]
    expected = transport_plan(U, V, a)
    monkeypatch.setitem(sys.modules, "ot", None)
    monkeypatch.setitem(sys.modules, "ot.lp", None)
    plan = transport_plan(U, V, a)
    assert plan.optimal and plan.distance() == pytest.approx(expected.distance())
    with refused(ImportError, "dependency.pot_missing"):
        transport_plan(U, V, a, solver="pot")


def test_coordinate_scale_divides():
    U, V = [[0, 0], [4, 10]], [[2, 0], [4, 30]]
    assert transport_distance(U, V, math.inf, coordinate_scale=[1, 10]) == 2
    assert transport_distance(U, V, 1, coordinate_scale=[1, 10]) == pytest.approx(2)
    plan = transport_plan(U, V, cost=1, coordinate_scale=[1, 10])
    assert plan.x.tolist() == [[0, 0], [4, 10]]
    assert plan.distance(1, coordinate_scale=[1, 10]) == pytest.approx(2)
    assert transport_distance([[0.0]], [[3.0]], 2, coordinate_scale=[2]) == 1.5


def test_laws_at_one_place():
    U = np.ones((5, 3))
    plan = transport_plan(U, U[:2])
    assert plan.optimal and plan.distance() == 0 and plan.counts.sum() == plan.total
    assert type(transport_distance(U, U)) is float


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(cost=0), "transport.cost_invalid"),
        (dict(cost=math.inf), "transport.cost_invalid"),
        (dict(cost=lambda moves: moves), "transport.cost_shape_invalid"),
        (
            dict(cost=lambda moves: np.log(0 * moves[..., 0] + 0.0)),
            "transport.cost_not_finite",
        ),
        (dict(ord=0.5), "parameter.below_one"),
        (dict(solver="sinkhorn"), "parameter.option_unknown"),
        (dict(U=[0.0, 1.0]), "transport.points_shape_invalid"),
        (dict(V=[[0.0, np.nan]]), "transport.values_not_finite"),
        (dict(u_weights=[0.4, 0.5]), "parameter.masses_not_sum_one"),
        (dict(coordinate_scale=[1, 0]), "transport.coordinate_scale_invalid"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_errors_name_the_parameter(arguments, message):
    arguments = dict(U=[[0, 0], [1, 1]], V=[[0, 0], [1, 1]]) | arguments
    with refused(ValueError, message):
        transport_plan(**arguments)


def test_order_below_one():
    with refused(ValueError, "parameter.below_one", name="p"):
        transport_distance([[0, 0]], [[1, 1]], 0.5)
