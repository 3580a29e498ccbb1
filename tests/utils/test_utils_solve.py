"""Roots on the safe side, also where a function is flat, steep, or rough."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.kernel.curves import log_delta_of_orders, mirrored
from skpuffer.kernel.noise import root_above, smallest_argument
from skpuffer.noise import (
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
)


@given(st.floats(1e-250, 0.9), st.floats(1e-6, 1e6))
def test_root_of_an_exponential(target, rate):
    found = smallest_argument(lambda x: math.exp(-rate * x), target)
    assert math.exp(-rate * found) <= target
    assert found == pytest.approx(-math.log(target) / rate, rel=1e-12, abs=2e-15)


def test_root_of_what_is_rough_or_infinite():
    def rough(x):
        return math.inf if x < 0.5 else (1 + 1e-9 * math.sin(1e12 * x)) / x

    found = root_above(rough, 1.0, 0.1, 10.0)
    assert rough(found) <= 1
    assert found == pytest.approx(1, abs=1e-8)
    # a jump over the target
    step = root_above(lambda x: 2.0 if x < 3 else 0.5, 1.0, 0.0, 8.0)
    assert step == pytest.approx(3, rel=1e-12) and step >= 3


@pytest.mark.parametrize(
    "noise",
    [GaussianNoise(), GeneralizedGaussianNoise(beta=3), GeneralizedCauchyNoise()],
)
@pytest.mark.parametrize("less", [1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("u", [1e-4, 1.0])
def test_an_epsilon_next_to_zero(noise, less, u):
    delta = noise.delta(0.0, u) * (1 - less)
    epsilon = noise.epsilon(delta, u)
    assert epsilon < 1e-8
    assert noise.delta(epsilon, u) <= delta


def test_a_mirrored_trade_off():
    noise = GaussianNoise()
    epsilon = np.array([-math.inf, -30.0, -1.0, 0.0, 1.0, math.inf])
    found = mirrored(epsilon, noise.delta(np.abs(epsilon), 0.7))
    np.testing.assert_allclose(found, noise.delta(epsilon, 0.7), rtol=1e-12)


def test_orders_without_a_finite_cost_say_nothing():
    alphas, costs = np.array([2.0, 4.0, math.inf]), np.array([math.inf, 1.0, 0.0])
    alone = log_delta_of_orders(np.array([4.0]), np.array([1.0]), 3.0)
    assert log_delta_of_orders(alphas, costs, 3.0) == alone < 0
    assert log_delta_of_orders(alphas[:1], costs[:1], 3.0) == 0
