"""Whole curves: between the orders they hold, and composed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy_loss import GaussianCurve, RenyiCurve, compose_curves

mus = st.floats(0.01, 5)


@given(mus, st.lists(st.floats(1.001, 100), min_size=1, max_size=8, unique=True))
def test_between_orders_the_next_one_holds(mu, orders):
    exact = GaussianCurve(mu)
    orders = tuple(sorted(orders))
    held = RenyiCurve(orders, tuple(exact.renyi(a) for a in orders))
    for alpha in np.linspace(1.0001, orders[-1], 17):
        assert held.renyi(alpha) >= exact.renyi(alpha) * (1 - 1e-12)
    for alpha, cost in zip(orders, held.epsilons, strict=True):
        assert held.renyi(alpha) == cost
    assert held.renyi(orders[-1] * 1.01) == math.inf


@given(st.lists(mus, min_size=1, max_size=6), st.floats(1.01, 64))
def test_gaussian_curves_compose_exactly(parts, alpha):
    composed = compose_curves([GaussianCurve(mu) for mu in parts])
    total = math.sqrt(sum(mu**2 for mu in parts))
    assert composed.gaussian_mu == pytest.approx(total, rel=1e-12)
    assert composed.renyi(alpha) == pytest.approx(
        sum(GaussianCurve(mu).renyi(alpha) for mu in parts), rel=1e-9
    )
    known = GaussianCurve(total).delta(1.0)
    assert composed.delta(1.0) == pytest.approx(known, rel=1e-6, abs=0)


def test_two_equal_gaussians_cost_the_root_of_two():
    curve = GaussianNoise(3.0).curve(1.5)
    composed = compose_curves([curve, curve])
    assert composed.gaussian_mu == pytest.approx(0.5 * math.sqrt(2), rel=1e-12)


def test_laplace_curves_add_order_by_order():
    parts = [LaplaceNoise(1.0).curve(0.5), LaplaceNoise(2.0).curve(0.5)]
    composed = compose_curves(parts)
    assert composed.renyi(math.inf) == pytest.approx(0.75)
    assert composed.renyi(2.0) == pytest.approx(sum(c.renyi(2.0) for c in parts))
    # the pure cost of the sum is one the tabulated curve knows as well
    assert composed.epsilon(1e-12) <= 0.75 + 1e-9
    assert composed.delta(0.75) == 0.0


def test_mixed_families_never_promise_more_than_their_sum():
    parts = [LaplaceNoise(1.0).curve(0.5), GaussianNoise(1.0).curve(0.5)]
    composed = compose_curves(parts)
    assert composed.gaussian_mu is None
    for alpha in (1.3, 2.0, 7.7, 31.0):
        exact = sum(float(c.renyi(alpha)) for c in parts)
        assert exact <= composed.renyi(alpha) <= exact * 1.2
    # composing again with a tabulated curve adds a third part
    again = compose_curves([composed, parts[0]])
    assert again.renyi(2.0) == pytest.approx(
        composed.renyi(2.0) + parts[0].renyi(2.0), rel=1e-12
    )


def test_one_curve_is_itself():
    curve = GaussianCurve(0.3)
    assert compose_curves([curve]) is curve


def test_no_shift_costs_nothing():
    curve = GaussianCurve(0.0)
    assert curve.renyi(math.inf) == 0.0
    assert curve.delta(0.0) == 0.0
    assert curve.epsilon(0.5) == 0.0


def test_plain_data():
    for curve in (
        GaussianCurve(0.5),
        RenyiCurve((2, 4), (0.1, 0.2)),
        GaussianNoise(1.0).curve(Shift(1.0, dim=2)),
    ):
        assert json.loads(json.dumps(curve.to_dict())) == curve.to_dict()


@pytest.mark.parametrize(
    "orders, epsilons, message",
    [
        ((2, 3), (0.1,), "same length"),
        ((), (), "same length"),
        ((3, 2), (0.1, 0.2), "increasing"),
        ((2, 2), (0.1, 0.2), "increasing"),
        ((1, 2), (0.1, 0.2), "orders"),
        ((2, 3), (-0.1, 0.2), "non-negative"),
        ((2, 3), (math.nan, 0.2), "epsilons"),
    ],
)
def test_bad_renyi_curve(orders, epsilons, message):
    with pytest.raises(ValueError, match=message):
        RenyiCurve(orders, epsilons)


@pytest.mark.parametrize("mu", [-0.1, math.nan])
def test_bad_gaussian_curve(mu):
    with pytest.raises(ValueError, match="mu"):
        GaussianCurve(mu)


@pytest.mark.parametrize("curve", [GaussianCurve(0.5), RenyiCurve((2, 4), (0.1, 0.2))])
@pytest.mark.parametrize(
    "method, value, name",
    [
        ("renyi", 1.0, "alpha"),
        ("renyi", math.nan, "alpha"),
        ("delta", math.nan, "epsilon"),
        ("epsilon", -0.1, "delta"),
        ("epsilon", math.nan, "delta"),
    ],
)
def test_a_curve_is_asked_for_numbers_in_range(curve, method, value, name):
    with pytest.raises(ValueError, match=name):
        getattr(curve, method)(value)
