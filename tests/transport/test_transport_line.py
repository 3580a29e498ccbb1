import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.transport import _line, _masses, quantile_coupling, wasserstein_distance
from tests.refused import refused

LINE_CASES = [
    "flu",
    "three_atoms",
    "two_records_correlated",
    "two_records_anticorrelated",
    "average_of_two_1_against_2",
    "average_of_two_1_against_100",
    "average_of_two_2_against_100",
    "rare_far_atom",
]


def laws(max_atoms=6, max_count=4):
    """Laws with integer atoms and counts: everything about them is exact."""
    atom = st.tuples(st.integers(-20, 20), st.integers(1, max_count))
    return st.lists(atom, min_size=1, max_size=max_atoms).map(
        lambda atoms: tuple(np.array(atoms).T)
    )


orders = st.sampled_from([1.0, 1.5, 2.0, 4.0, 30.0, math.inf])


def between(u, v, p):
    return wasserstein_distance(u[0], v[0], u[1], v[1], p)


@pytest.mark.parametrize("name", LINE_CASES)
def test_reference_values(oracles, name):
    (case,) = (case for case in oracles["line"] if case["name"] == name)
    args = case["u"], case["v"], case["u_weights"], case["v_weights"]
    turned = [list(reversed(part)) for part in args]
    assert "inf" in case
    for order in {"inf", "2", "1"} & set(case):
        expected = pytest.approx(case[order], rel=1e-9)
        assert wasserstein_distance(*args, p=float(order)) == expected
        assert wasserstein_distance(*turned, p=float(order)) == expected


def test_line_cases_are_all_tested(oracles):
    assert [case["name"] for case in oracles["line"]] == LINE_CASES


def test_reference_coupling(oracles):
    flu = oracles["line"][0]
    x, y, mass = quantile_coupling(
        flu["u"], flu["v"], flu["u_weights"], flu["v_weights"]
    )
    np.testing.assert_array_equal(np.c_[x, y], np.array(oracles["flu_coupling"])[:, :2])
    np.testing.assert_allclose(mass, np.array(oracles["flu_coupling"])[:, 2])


@given(laws(), laws())
def test_coupling_has_both_marginals(u, v):
    x, y, mass = quantile_coupling(u[0], v[0], u[1], v[1])
    assert np.all(np.diff(x) >= 0) and np.all(np.diff(y) >= 0)
    assert np.all(mass > 0) and len(np.unique(np.c_[x, y], axis=0)) == len(x)
    for atoms, (values, counts) in ((x, u), (y, v)):
        for value in np.unique(values):
            expected = counts[values == value].sum() / counts.sum()
            assert mass[atoms == value].sum() == pytest.approx(expected, abs=1e-14)
    cost = math.sqrt(mass @ (x - y) ** 2)
    assert cost == pytest.approx(between(u, v, 2), rel=1e-9, abs=1e-12)


@given(laws(max_atoms=3, max_count=3), laws(max_atoms=3, max_count=3), orders)
def test_agrees_with_brute_force(brute_force, u, v, p):
    costs = np.abs(np.subtract.outer(u[0], v[0]))
    expected = brute_force(costs, u[1], v[1], p)
    assert between(u, v, p) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(laws(), laws(), laws(), orders)
def test_is_a_metric(u, v, w, p):
    assert between(u, v, p) == pytest.approx(between(v, u, p), rel=1e-12)
    assert between(u, u, p) == 0
    through = between(u, w, p) + between(w, v, p)
    assert between(u, v, p) <= through * (1 + 1e-9) + 1e-12


@given(laws(), laws())
def test_grows_with_the_order(u, v):
    distances = [between(u, v, p) for p in (1, 1.5, 2, 5, 20, 21, 200, math.inf)]
    for low, high in zip(distances, distances[1:], strict=False):
        assert low <= high * (1 + 1e-12)
    # every atom that meets another shares at least 1 / (24 * 24) with it
    assert distances[-2] >= distances[-1] * 576 ** (-1 / 200) * (1 - 1e-12)


@given(laws(), laws(), orders, st.integers(-50, 50), st.sampled_from([-3, -0.5, 2, 7]))
def test_shift_and_scale(u, v, p, shift, scale):
    moved = [(scale * (values + shift), counts) for values, counts in (u, v)]
    expected = abs(scale) * between(u, v, p)
    assert between(*moved, p) == pytest.approx(expected, rel=1e-12)
    assert between(u, (u[0] + shift, u[1]), p) == pytest.approx(abs(shift), rel=1e-12)


@given(laws(), laws())
def test_infinite_order_meets_the_criterion_on_distribution_functions(u, v):
    """W_inf <= z exactly when F(t) <= G(t + z) and G(t) <= F(t + z) for all t."""

    def cdf(law, t):
        values, counts = law
        return Fraction(int(counts[values <= t].sum()), int(counts.sum()))

    def holds(z):
        return all(
            cdf(first, t) <= cdf(second, t + z)
            for first, second in ((u, v), (v, u))
            for t in first[0]
        )

    distance = between(u, v, math.inf)
    assert holds(distance)
    assert distance == 0 or not holds(distance - 1)


@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=40),
    st.lists(st.integers(-30, 30), min_size=1, max_size=40),
    orders,
)
def test_no_weights_is_a_count_of_one_each(x, y, p):
    plain = wasserstein_distance(x, y, p=p)
    ones = [1] * len(x), [1] * len(y)
    assert plain == pytest.approx(wasserstein_distance(x, y, *ones, p=p), rel=1e-12)
    half = wasserstein_distance(x, y, u_weights=[5] * len(x), p=p)
    assert plain == pytest.approx(half, rel=1e-12)
    merged, counts = np.unique(x, return_counts=True)
    merged = wasserstein_distance(merged, y, u_weights=counts, p=p)
    assert plain == pytest.approx(merged, rel=1e-12)


@pytest.mark.parametrize("block, stretch", [(4, 2), (6, 3), (8, 8)])
def test_blocks_change_nothing(monkeypatch, block, stretch):
    """Bounds that skip blocks, and cuts shared by both laws, at every alignment."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_line, "_BLOCK", block)
    monkeypatch.setattr(_line, "_STRETCH", stretch)
    for _ in range(300):
        x, y = (rng.integers(0, 40, size) for size in rng.integers(1, 33, size=2))
        y += rng.integers(0, 3)
        met = quantile_coupling(x, y)
        assert wasserstein_distance(x, y) == np.abs(met[0] - met[1]).max()


@pytest.mark.parametrize("n, m", [(50_000, 50_000), (50_000, 49_983), (60_000, 20_000)])
def test_many_atoms_agree_with_the_coupling(n, m):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=n), 1.1 * rng.normal(size=m) + 0.3
    first, second, mass = quantile_coupling(x, y)
    gaps = np.abs(first - second)
    assert wasserstein_distance(x, y) == gaps.max()
    for p in (1, 2, 3.5):
        expected = (mass @ gaps**p) ** (1 / p)
        assert wasserstein_distance(x, y, p=p) == pytest.approx(expected, rel=1e-9)
    # the whole of one law shifted is as far everywhere: no block can be skipped
    assert wasserstein_distance(x, x + 1) == pytest.approx(1, rel=1e-12)


def test_high_orders_neither_overflow_nor_vanish():
    assert wasserstein_distance([0.0, 0.0], [3e200, 4e200], p=300) == pytest.approx(
        4e200 * 0.5 ** (1 / 300), rel=1e-9
    )
    near = wasserstein_distance([0.0], [1e-200], p=2)
    assert near == pytest.approx(1e-200, rel=1e-9, abs=0)


# Masses. What is checked is that a mass can neither be lost nor invented.


def test_float_weights_of_one_denominator_are_exact():
    tenths = [0.1] * 10
    assert sum(tenths) != 1
    x = np.arange(10.0)
    y = np.repeat([2.0, 7.0], 5)
    assert wasserstein_distance(x, y, tenths) == wasserstein_distance(x, y) == 2
    assert wasserstein_distance(x, [2, 7], tenths, [0.5, 0.5]) == 2
    counts = np.arange(1, 1001)
    shares = counts / counts.sum()
    x = np.random.default_rng(0).normal(size=1000)
    assert wasserstein_distance(x, x + 1, shares, counts) == pytest.approx(1)
    # summed in another order, the same masses still meet
    thirds = [0.1 + 0.2, 0.7]
    assert wasserstein_distance([0, 5], [0, 5], thirds, [0.3, 0.7]) == 0


def test_a_sliver_that_is_meant_counts():
    for sliver in (1e-10, 1e-14, Fraction(1, 10**30)):
        half = Fraction(1, 2) if isinstance(sliver, Fraction) else 0.5
        moved = [half - sliver, half + sliver]
        assert wasserstein_distance([0, 9], [0, 9], moved, [half, half]) == 9
        assert wasserstein_distance([0, 9], [0, 9], [1, 1], moved) == 9


@given(st.integers(0, 2**32 - 1))
def test_float_weights_without_denominator_are_taken_literally(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(3, 9, size=2)
    x, y = rng.integers(0, 50, n), rng.integers(0, 50, m)
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    exact_a, exact_b = ([Fraction(w) for w in part] for part in (a, b))
    exact_a = [w / sum(exact_a) for w in exact_a]
    exact_b = [w / sum(exact_b) for w in exact_b]
    for p in (1, math.inf):
        expected = wasserstein_distance(x, y, exact_a, exact_b, p=p)
        assert wasserstein_distance(x, y, a, b, p=p) == pytest.approx(expected)


def test_float_weights_over_the_whole_range_of_floats():
    tiny = [5e-324, 1e-200, 1.0]
    assert wasserstein_distance([7, 3, 0], [0], tiny) == 7
    assert wasserstein_distance([7, 3, 0], [0], [0.0, 1e-200, 1.0]) == 3
    mean = wasserstein_distance([7, 3, 0], [0], tiny, p=1)
    assert mean == pytest.approx(3e-200, rel=1e-9, abs=0)


@pytest.mark.parametrize("p", [2, math.inf])
def test_counts_beyond_64_bits(p):
    # coprime totals near 1e10: their common multiple is near 1e20
    u, v = [10**9, 9 * 10**9 + 19], [5 * 10**9, 5 * 10**9 + 33]
    expected = wasserstein_distance(
        [0, 3],
        [1, 7],
        [Fraction(w, sum(u)) for w in u],
        [Fraction(w, sum(v)) for w in v],
        p,
    )
    assert wasserstein_distance([0, 3], [1, 7], u, v, p) == expected
    huge = np.array([2**63, 2**63], dtype=np.uint64)
    assert wasserstein_distance([0, 1], [0, 1], huge, [1, 1], p) == 0
    assert wasserstein_distance([0, 1], [0, 1], [10**40, 10**40], [1, 1], p) == 0
    unequal = wasserstein_distance([0, 1], [0, 1], [10**40, 10**40 + 1], [1, 1])
    assert unequal == 1


def test_common_masses_have_one_total():
    a, b = _masses.common_masses(2, [2, 4], 3, None)
    assert a.tolist() == [1, 2] and b.tolist() == [1, 1, 1]
    a, b = _masses.common_masses(2, [0.25, 0.75], 2, [Fraction(1, 3), Fraction(2, 3)])
    assert a.tolist() == [3, 9] and b.tolist() == [4, 8]
    assert a.dtype == b.dtype == np.int64


def test_masses_that_do_not_make_a_law_have_no_denominator():
    """Each is a quarter or two, but they are three quarters together."""
    assert _masses._from_denominator(np.array([0.5, 0.25, 0.25])).tolist() == [2, 1, 1]
    assert _masses._from_denominator(np.array([0.5, 0.25])) is None
    assert _masses._from_denominator(np.array([0.5, 0.25, 0.5])) is None


def test_atoms_of_mass_zero_do_not_count():
    assert wasserstein_distance([0, 99], [1], [1, 0]) == 1
    assert wasserstein_distance([0, 99], [1], [1.0, 0.0]) == 1
    assert quantile_coupling([0, 99], [1], [1, 0])[0].tolist() == [0]


def test_accepts_what_holds_numbers():
    u = pd.Series([0.0, 1.0], index=[7, 3])
    assert wasserstein_distance(u, [2, 3], pd.Series([1, 1], index=[1, 2])) == 2
    assert type(wasserstein_distance(u, [2, 3])) is float
    assert type(wasserstein_distance(u, [2, 3], p=2)) is float
    assert type(wasserstein_distance(u, [2, 3], [1, 1])) is float


@pytest.mark.parametrize(
    "arguments, code, parameters",
    [
        (
            dict(u_values=[0.0, np.nan]),
            "transport.values_not_finite",
            {"name": "u_values"},
        ),
        (
            dict(v_values=[-np.inf, 0.0]),
            "transport.values_not_finite",
            {"name": "v_values"},
        ),
        (
            dict(u_values=[np.nan, 0.0], u_weights=[0, 1]),
            "transport.values_not_finite",
            {"name": "u_values"},
        ),
        (
            dict(u_values=[]),
            "transport.values_not_one_dimensional",
            {"name": "u_values"},
        ),
        (
            dict(v_values=[[0.0, 1.0]]),
            "transport.values_not_one_dimensional",
            {"name": "v_values"},
        ),
        (dict(p=0.5), "parameter.below_one", {"name": "p"}),
        (dict(p=np.nan), "parameter.is_nan", {"name": "p"}),
        (
            dict(u_weights=[0.5, 0.4]),
            "parameter.masses_not_sum_one",
            {"name": "u_weights"},
        ),
        (dict(v_weights=[1, -1]), "transport.masses_invalid", {"name": "v_weights"}),
        (dict(v_weights=[0, 0]), "transport.masses_invalid", {"name": "v_weights"}),
        (
            dict(u_weights=[np.nan, 1.0]),
            "transport.masses_invalid",
            {"name": "u_weights"},
        ),
        (
            dict(u_weights=[1, 1, 1]),
            "transport.masses_count_differs",
            {"name": "u_weights"},
        ),
        (
            dict(u_weights=[Fraction(1, 2), Fraction(1, 3)]),
            "transport.masses_not_sum_one",
            {"name": "u_weights"},
        ),
        (
            dict(u_weights=[Fraction(3, 2), Fraction(-1, 2)]),
            "transport.masses_invalid",
            {"name": "u_weights"},
        ),
        (
            dict(u_weights=[Fraction(1)]),
            "transport.masses_count_differs",
            {"name": "u_weights"},
        ),
    ],
)
def test_errors_name_the_parameter(arguments, code, parameters):
    arguments = dict(u_values=[0.0, 1.0], v_values=[0.0, 1.0]) | arguments
    with refused(ValueError, code, **parameters):
        wasserstein_distance(**arguments)
    if "p" not in arguments:
        with refused(ValueError, code, **parameters):
            quantile_coupling(**arguments)
