"""From Rényi orders to (epsilon, delta): reference values and orderings."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.exceptions import Statement
from skpuffer.privacy_loss import (
    GaussianCurve,
    RenyiCurve,
    approximate_renyi_to_approximate,
    renyi_to_approximate,
    renyi_to_delta,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_conversions.json").read_text("utf-8")
)
orders = st.floats(1.01, 500)
costs = st.floats(0, 20)
deltas = st.floats(1e-12, 0.9)


@pytest.mark.parametrize("row", ORACLES["renyi"], ids=lambda row: row["conversion"])
def test_reference_conversions(row):
    value = renyi_to_approximate(
        row["alpha"], row["epsilon"], row["delta"], row["conversion"]
    )
    assert value == pytest.approx(row["value"], rel=1e-12)


def test_reference_approximate_conversion():
    row = ORACLES["approximate_renyi"]
    epsilon, delta = approximate_renyi_to_approximate(
        row["alpha"], row["epsilon"], row["delta_event"], conversion="basic"
    )
    assert [epsilon, delta] == pytest.approx(row["value"], rel=1e-12)


def test_reference_gaussian_curve():
    row = ORACLES["gaussian"]
    curve = GaussianCurve(row["shift"] / row["scale"])
    delta = row["delta"]
    at = row["basic_order"]
    basic = renyi_to_approximate(at, curve.renyi(at), delta, "basic")
    assert basic == pytest.approx(row["basic"], rel=1e-9)
    grid = 1 + np.geomspace(0.1, 1000, 20_000)
    all_costs = [curve.renyi(a) for a in grid]
    assert renyi_to_approximate(grid, all_costs, delta, "basic") == pytest.approx(
        row["basic"], rel=1e-6
    )
    assert renyi_to_approximate(grid, all_costs, delta) == pytest.approx(
        row["tight"], abs=row["tight_tolerance"]
    )
    assert curve.epsilon(delta) == pytest.approx(row["exact"], rel=1e-9)
    assert curve.delta(row["epsilon"]) == pytest.approx(
        row["delta_at_epsilon"], rel=1e-9
    )


@given(orders, costs, deltas)
def test_tight_is_never_worse_than_basic(alpha, epsilon, delta):
    tight = renyi_to_approximate(alpha, epsilon, delta)
    assert 0 <= tight <= renyi_to_approximate(alpha, epsilon, delta, "basic")


@given(orders, costs, deltas)
def test_there_and_back(alpha, cost, delta):
    epsilon = renyi_to_approximate(alpha, cost, delta)
    back = renyi_to_delta(alpha, cost, epsilon)
    assert back <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert back == pytest.approx(delta, rel=1e-9, abs=0)


@given(st.floats(0.01, 5), deltas)
def test_exact_gaussian_is_never_worse_than_tight(mu, delta):
    exact = GaussianCurve(mu)
    grid = np.unique(np.concatenate([1 + np.geomspace(1e-3, 1e5, 200), [2.0, 3.0]]))
    tabulated = RenyiCurve(tuple(grid), tuple(exact.renyi(a) for a in grid))
    assert exact.epsilon(delta) <= tabulated.epsilon(delta)
    assert exact.delta(exact.epsilon(delta)) <= delta
    epsilon = exact.epsilon(delta) + 0.1
    assert exact.delta(epsilon) <= tabulated.delta(epsilon)


def test_a_pure_promise_passes_through():
    assert renyi_to_approximate(math.inf, 0.7, 1e-6) == 0.7
    assert renyi_to_approximate([2, math.inf], [0.69, 0.7], 1e-6) == 0.7
    assert renyi_to_delta(math.inf, 0.7, 0.7) == 0.0
    assert renyi_to_delta(math.inf, 0.7, 0.6) == 1.0


def test_event_mass_and_conversion_mass_add():
    epsilon, delta = approximate_renyi_to_approximate(
        10, 0.3, 0.01, delta_conversion=1e-4
    )
    assert delta == pytest.approx(0.01 + 0.99 * 1e-4)
    assert epsilon == renyi_to_approximate(10, 0.3, 1e-4)
    assert approximate_renyi_to_approximate(10, 0.3, 0.7)[1] == 1.0


@pytest.mark.parametrize(
    "alpha, epsilon, delta, said",
    [
        (1.0, 0.3, 1e-5, Statement("curve.orders_costs_out_of_range")),
        (math.nan, 0.3, 1e-5, Statement("curve.orders_costs_out_of_range")),
        (2.0, -0.1, 1e-5, Statement("curve.orders_costs_out_of_range")),
        ([], [], 1e-5, Statement("curve.orders_costs_out_of_range")),
        (2.0, 0.3, 0.0, Statement("parameter.probability_out_of_range", name="delta")),
        (2.0, 0.3, 1.0, Statement("parameter.probability_out_of_range", name="delta")),
    ],
)
def test_bad_input(alpha, epsilon, delta, said):
    with refused(ValueError, said.code, **said.parameters):
        renyi_to_approximate(alpha, epsilon, delta)


def test_unknown_conversion():
    with refused(ValueError, "parameter.option_unknown", name="conversion"):
        renyi_to_approximate(2, 0.3, 1e-5, "loose")


@pytest.mark.parametrize("delta_event", [-0.1, 1.5, math.nan])
@pytest.mark.parametrize("delta_conversion", [None, 0.1])
def test_the_mass_of_an_event_is_a_probability(delta_event, delta_conversion):
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        approximate_renyi_to_approximate(
            2.0, 0.3, delta_event, delta_conversion=delta_conversion
        )
