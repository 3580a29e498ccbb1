import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skpuffer.transport import (
    BottleneckResult,
    _radius,
    bottleneck_distance,
    bottleneck_transport,
    wasserstein_distance,
)
from skpuffer.transport import (
    _radius as _flow,
)
from tests.refused import refused

METRICS = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}
norms = st.sampled_from(list(METRICS))


def laws(max_atoms=5, max_count=3, reach=6):
    atom = st.tuples(
        st.integers(-reach, reach),
        st.integers(-reach, reach),
        st.integers(1, max_count),
    )
    return st.lists(atom, min_size=1, max_size=max_atoms).map(
        lambda atoms: (np.array(atoms)[:, :2], np.array(atoms)[:, 2])
    )


def between(u, v, **options):
    return bottleneck_distance(u[0], v[0], u[1], v[1], **options)


@pytest.mark.parametrize("case", [0, 1, 2])
def test_reference_values(oracles, case):
    case = oracles["plane"][case]
    U, V = np.array(case["u"]), np.array(case["v"])
    weights = case["u_weights"], case["v_weights"]
    distance = bottleneck_distance(U, V, *weights)
    assert distance == pytest.approx(case["inf"], rel=1e-12)
    assert bottleneck_distance(V, U, *weights[::-1]) == distance
    costs = cdist(U, V)
    for order in {"1", "2", "4"} & set(case):
        # what is below W_inf for the reason that it is of a finite order
        chosen = linear_sum_assignment(costs ** int(order))
        average = np.mean(costs[chosen] ** int(order)) ** (1 / int(order))
        assert average == pytest.approx(case[order], rel=1e-9)
        assert average < distance
    if "longest_of_plan_1" in case:
        longest = costs[linear_sum_assignment(costs)].max()
        assert longest == pytest.approx(case["longest_of_plan_1"])
        assert distance < longest


@given(laws(max_atoms=3), laws(max_atoms=3), norms)
def test_agrees_with_brute_force(brute_force, u, v, norm):
    costs = cdist(u[0], v[0], METRICS[norm])
    expected = brute_force(costs, u[1], v[1], math.inf)
    assert between(u, v, ord=norm) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, 40, math.inf])
@pytest.mark.parametrize("shape", [(9, 9, 2), (12, 6, 3), (8, 12, 5)])
def test_agrees_with_brute_force_on_reals(brute_force, norm, shape):
    n, m, d = shape
    rng = np.random.default_rng(n)
    U, V = rng.random((n, d)), rng.normal(0.5, 0.4, (m, d))
    costs = np.linalg.norm(U[:, None] - V, ord=norm, axis=2)
    expected = brute_force(costs, np.ones(n, int), np.ones(m, int), math.inf)
    # powers of distances this small or large would leave the range of floats
    for scale in (1.0, 1e-160, 1e140):
        distance = bottleneck_distance(U * scale, V * scale, ord=norm)
        assert distance == pytest.approx(expected * scale, rel=1e-11, abs=0)


@given(laws(max_atoms=12, max_count=40), laws(max_atoms=12, max_count=40))
def test_agrees_with_the_line(u, v):
    """Points of a line in the plane, where the monotone coupling knows better."""
    line = [(points[:, 0], counts) for points, counts in (u, v)]
    expected = wasserstein_distance(line[0][0], line[1][0], line[0][1], line[1][1])
    flat = [(np.c_[values, np.zeros(len(values))], n) for values, n in line]
    assert between(*flat) == expected
    slanted = [(np.c_[3 * values, 4 * values], n) for values, n in line]
    assert between(*slanted) == pytest.approx(5 * expected, rel=1e-12)
    columns = [(values[:, None], n) for values, n in line]
    assert between(*columns) == expected


@given(laws(), laws(), laws(), norms)
def test_is_a_metric(u, v, w, norm):
    distance = between(u, v, ord=norm)
    assert distance == pytest.approx(between(v, u, ord=norm), rel=1e-12)
    assert between(u, u, ord=norm) == 0
    through = between(u, w, ord=norm) + between(w, v, ord=norm)
    assert distance <= through * (1 + 1e-12)


@given(laws(), laws())
def test_norms_are_ordered(u, v):
    largest, euclidean, total = (between(u, v, ord=ord) for ord in (math.inf, 2, 1))
    assert largest <= euclidean * (1 + 1e-12)
    assert euclidean <= total * (1 + 1e-12)
    assert total <= math.sqrt(2) * euclidean * (1 + 1e-12)
    for column in (0, 1):
        marginal = wasserstein_distance(u[0][:, column], v[0][:, column], u[1], v[1])
        assert marginal <= largest


@given(laws(), laws(), st.integers(-30, 30), st.sampled_from([-3, 0.25, 7]))
def test_shift_and_scale(u, v, shift, scale):
    moved = [(scale * (points + [shift, 2]), counts) for points, counts in (u, v)]
    expected = abs(scale) * between(u, v)
    assert between(*moved) == pytest.approx(expected, rel=1e-12)
    carried = u[0] + [3, 4 + shift]
    assert between(u, (carried, u[1])) == pytest.approx(math.hypot(3, 4 + shift))


@given(laws(), laws())
def test_repeated_rows_are_counts(u, v):
    expected = between(u, v)
    rows = np.repeat(u[0], u[1], axis=0), np.repeat(v[0], v[1], axis=0)
    assert bottleneck_distance(*rows) == expected
    assert bottleneck_distance(rows[0], v[0], None, v[1]) == expected
    shares = [counts / counts.sum() for _, counts in (u, v)]
    assert bottleneck_distance(u[0], v[0], *shares) == expected
    fractions = [Fraction(int(w), int(u[1].sum())) for w in u[1]]
    assert bottleneck_distance(u[0], v[0], fractions, v[1] * 10**12) == expected


def test_coordinate_scale_divides():
    U, V = [[0, 0], [4, 10]], [[2, 0], [4, 30]]
    assert bottleneck_distance(U, V) == 20
    assert bottleneck_distance(U, V, coordinate_scale=[1, 10]) == 2
    assert bottleneck_distance(U, V, coordinate_scale=[4, 40]) == 0.5
    assert bottleneck_distance([[0.0]], [[3.0]], coordinate_scale=[2]) == 1.5


@pytest.mark.parametrize("capacity", [1, 2, 7, 300])
def test_masses_beyond_the_capacity_of_the_solver(monkeypatch, capacity):
    """Small capacities take the flow through as many scales as large masses do."""
    rng = np.random.default_rng(capacity)
    cases = []
    for _ in range(25):
        n, m = rng.integers(1, 9, size=2)
        U, V = rng.integers(0, 6, (n, 2)), rng.integers(0, 6, (m, 2))
        weights = rng.integers(1, 40, n), rng.integers(1, 40, m)
        cases.append((U, V, *weights, bottleneck_distance(U, V, *weights)))
    assert len({case[-1] for case in cases}) > 5
    monkeypatch.setattr(_flow, "_CAPACITY", capacity)
    for *arguments, expected in cases:
        assert bottleneck_distance(*arguments) == expected


@pytest.mark.parametrize("zeros", [10, 17, 30])
def test_large_counts_agree_with_the_line(zeros):
    rng = np.random.default_rng(zeros)
    for _ in range(10):
        x, y = rng.integers(0, 100, 7), rng.integers(0, 100, 5)
        # large totals without common factor, so nothing cancels
        u = [int(w) * 10**zeros + 1 for w in rng.integers(1, 9, 7)]
        v = [int(w) * 10**zeros + 3 for w in rng.integers(1, 9, 5)]
        expected = wasserstein_distance(x, y, u, v)
        U, V = np.c_[x, 0 * x], np.c_[y, 0 * y]
        assert bottleneck_distance(U, V, u, v) == expected
        # one unit of mass in a total of 1e30 decides
        V = np.r_[V, [[1000, 0]]]
        expected = wasserstein_distance(x, V[:, 0], u, [*v, 1])
        assert bottleneck_distance(U, V, u, [*v, 1]) == expected > 800


def test_float_weights_without_denominator():
    rng = np.random.default_rng(5)
    for _ in range(10):
        x, y = rng.integers(0, 100, 9), rng.integers(0, 100, 8)
        a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(8))
        expected = wasserstein_distance(x, y, a, b)
        U, V = np.c_[x, 0 * x], np.c_[y, 0 * y]
        assert bottleneck_distance(U, V, a, b) == expected


@pytest.mark.parametrize("cuts_alone", [0, 1, 2])
def test_bisection_changes_nothing(monkeypatch, cuts_alone):
    rng = np.random.default_rng(3)
    cases = []
    for n, m in ((40, 40), (60, 45), (30, 70)):
        for spread in (1, 2):
            U, V = rng.random((n, 2)), spread * rng.random((m, 2))
            cases.append((U, V, bottleneck_distance(U, V)))
    monkeypatch.setattr(_radius, "_CUTS_ALONE", cuts_alone)
    for U, V, expected in cases:
        assert bottleneck_distance(U, V) == expected


def test_starts_above_the_nearest_neighbours():
    """Everyone has a neighbour at once; it is the masses that do not fit."""
    U, V = [[0, 0], [10, 0]], [[0, 0], [10, 0]]
    assert bottleneck_distance(U, V, [1, 1], [1, 3]) == 10
    assert bottleneck_distance(U, V, [1, 1], [2, 2]) == 0


@pytest.mark.parametrize("norm", [1, 2, 3, math.inf])
@pytest.mark.parametrize("max_cells", [1, 40, 900, 2500])
def test_grid_bounds_from_above(norm, max_cells):
    rng = np.random.default_rng(max_cells)
    U, V = rng.normal(size=(120, 3)), rng.normal(size=(100, 3)) + [0, 0, 1]
    counts = rng.integers(1, 5, 120)
    exact = bottleneck_transport(U, V, counts, ord=norm)
    assert exact == BottleneckResult(exact.distance, True, 0.0)
    coarse = bottleneck_transport(U, V, counts, ord=norm, max_cells=max_cells)
    assert not coarse.exact and coarse.grid_width > 0
    assert exact.distance <= coarse.distance
    moved = coarse.grid_width * 3 ** (1 / norm)
    assert coarse.distance <= exact.distance + 2 * moved * (1 + 1e-12)


def test_grid_is_as_fine_as_allowed():
    rng = np.random.default_rng(0)
    U, V = rng.random((500, 2)), rng.random((400, 2)) + 0.3
    widths = [
        bottleneck_transport(U, V, max_cells=cells).grid_width
        for cells in (10, 100, 1000, 10_000)
    ]
    assert np.all(np.diff(widths) < 0)
    # by area: 10_000 pairs are some 100 cells a law, over a square of side 1
    assert widths[-1] < 0.13


def test_only_close_pairs_count_against_the_limit():
    """Two thousand atoms a law, but few within reach of each other."""
    rng = np.random.default_rng(0)
    U = rng.random((2000, 2))
    V = U + rng.uniform(-1e-3, 1e-3, (2000, 2))
    result = bottleneck_transport(U, V, max_cells=2e5)
    assert result.exact and result.distance == bottleneck_distance(U, V)
    assert result.distance <= math.sqrt(2) * 1e-3
    assert not bottleneck_transport(U, V, max_cells=1e3).exact


def test_all_atoms_in_one_place():
    U = np.ones((5, 3))
    assert bottleneck_transport(U, U[:2]) == BottleneckResult(0.0, True, 0.0)
    assert bottleneck_distance(np.zeros((3, 2)), [[0, 0]], [0, 0, 1]) == 0
    assert bottleneck_distance([[0, 0], [9, 9]], [[3, 4]], [1, 0]) == 5
    assert type(bottleneck_distance(U, U)) is float


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(U=[0.0, 1.0]), "transport.points_shape_invalid"),
        (dict(V=np.empty((0, 2))), "transport.points_shape_invalid"),
        (dict(U=[[0.0, np.nan]]), "transport.values_not_finite"),
        (dict(V=[[0.0, np.inf]]), "transport.values_not_finite"),
        (dict(V=[[0.0]]), "transport.points_column_counts_differ"),
        (dict(ord=0.5), "parameter.below_one"),
        (dict(u_weights=[0.4, 0.5]), "parameter.masses_not_sum_one"),
        (dict(v_weights=[1, -1]), "transport.masses_invalid"),
        (dict(max_cells=0), "parameter.below_one"),
        (dict(coordinate_scale=[1, 0]), "transport.coordinate_scale_invalid"),
        (dict(coordinate_scale=[1]), "transport.coordinate_scale_invalid"),
    ],
)
def test_errors_name_the_parameter(arguments, message):
    arguments = dict(U=[[0, 0], [1, 1]], V=[[0, 0], [1, 1]]) | arguments
    with refused(ValueError, message):
        bottleneck_transport(**arguments)
    with refused(ValueError, message):
        bottleneck_distance(**arguments)


@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.2, 2.0))
def test_a_ceiling_ends_the_search_and_changes_nothing_below(seed, share):
    rng = np.random.default_rng(seed)
    U, V = rng.random((20, 2)), rng.random((15, 2)) + 0.3
    exact = bottleneck_distance(U, V)
    for max_cells in (2.5e7, 50):
        full = bottleneck_transport(U, V, max_cells=max_cells).distance
        cut = bottleneck_transport(
            U, V, max_cells=max_cells, ceiling=share * exact
        ).distance
        if share > 1:
            assert cut == full
        else:
            assert cut == full or math.isinf(cut)
    if share < 1:
        assert math.isinf(bottleneck_transport(U, V, ceiling=share * exact).distance)
