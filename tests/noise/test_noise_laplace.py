"""Laplace noise: the contract, and what is its own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.accountants._additive._base import _move, _move_at_delta
from skpuffer.kernel.noise import MagnitudeNoise
from skpuffer.noise import LaplaceNoise, Shift
from tests.refused import refused

from .contract import NoiseContract, examples


class TestLaplaceNoise(NoiseContract):
    family = LaplaceNoise
    unit = stats.laplace()
    attained_norms = (1,)


class FewestFormulas(LaplaceNoise):
    """What a family gets that supplies only what it must."""

    family = "fewest_formulas"

    def _u_for(self, alpha, epsilon):
        return _move.dispatch(object)(self, alpha, epsilon, 1.0)

    def _u_for_delta(self, epsilon, delta):
        return _move_at_delta.dispatch(object)(self, epsilon, delta, 1.0)

    _epsilon = MagnitudeNoise._epsilon


class TestNumericDefaults(NoiseContract):
    family = FewestFormulas
    unit = stats.laplace()
    attained_norms = (1,)

    @pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.4])
    def test_agree_with_closed_forms(self, delta):
        bare, closed = FewestFormulas(2.0), LaplaceNoise(2.0)
        assert bare.epsilon(delta, 3.0) == pytest.approx(closed.epsilon(delta, 3.0))
        assert scale_for_delta(bare, 1.0, delta, 3.0) == pytest.approx(
            scale_for_delta(closed, 1.0, delta, 3.0), rel=1e-9
        )
        assert scale_for(bare, math.inf, 0.3, 1.5) == pytest.approx(5.0, rel=1e-11)


def test_cost_at_the_ends_of_the_orders():
    noise = LaplaceNoise()
    u = 1.7
    kullback_leibler = u + math.exp(-u) - 1
    assert noise.renyi(1 + 1e-9, u) == pytest.approx(kullback_leibler, rel=1e-8)
    assert noise.renyi(1e12, u) == pytest.approx(u, rel=1e-11)
    assert noise.pure_epsilon(u) == u
    assert noise.renyi(1e308, u) == u


def test_cost_by_quadrature():
    assert LaplaceNoise().renyi(4.0, 1.0) == pytest.approx(0.8136892966, abs=1e-10)


@examples
@given(st.floats(1.0001, 1e6), st.floats(1e-12, 1.0))
def test_small_shifts_lose_no_digits(alpha, share):
    # the order the formula would lose, and the one after it
    u = 1e-4 * share / alpha
    cost = LaplaceNoise().renyi(alpha, u)
    known = alpha * u**2 / 2 * (1 - u / 3)
    assert cost == pytest.approx(known, rel=1e-8, abs=0)


def test_the_two_forms_of_the_formula_meet():
    # they take over from each other at (alpha - 1) u = 1
    alpha = 3.7
    u = 1 / (alpha - 1)
    below, above = LaplaceNoise().renyi(
        alpha, np.array([u * (1 - 1e-9), u * (1 + 1e-9)])
    )
    assert 0 < above - below < 1e-8


def hockey_stick_of_two_coordinates(epsilon, a, b):
    """Integral over the first coordinate of the divergence left to the second."""

    def integrand(x):
        loss = abs(x) - abs(x - a)
        return 0.5 * math.exp(-abs(x - a)) * LaplaceNoise().delta(epsilon - loss, b)

    ends = [-40.0, 0.0, *np.linspace(0, a, 9)[1:], a + 40.0]
    return sum(
        quad(integrand, low, high, epsabs=1e-12)[0]
        for low, high in zip(ends[:-1], ends[1:], strict=True)
    )


@pytest.mark.parametrize("epsilon", [-1.0, -0.2, 0.0, 0.3, 0.9, 1.4, 2.1])
@pytest.mark.parametrize("a, b", [(0.2, 1.8), (1.0, 1.0), (1.5, 0.5)])
def test_no_split_over_two_coordinates_has_a_larger_delta(epsilon, a, b):
    exact = hockey_stick_of_two_coordinates(epsilon, a, b)
    bound = LaplaceNoise().delta(epsilon, Shift(a + b, norm=1, dim=2))
    assert exact <= bound + 1e-10
    # the closed form behind the argument in the docstring
    e, q = abs(epsilon), math.exp((abs(epsilon) - a - b) / 2)
    if e < a + b:
        lost = q * min((a + b - e) / 4, min(a, b) / 2)
        closed = 1 - q - lost
        if epsilon < 0:
            closed = 1 - math.exp(epsilon) + math.exp(epsilon) * closed
        assert exact == pytest.approx(closed, abs=1e-9)


def test_an_l2_shift_is_never_taken_for_an_l1_shift():
    noise = LaplaceNoise(2.0)
    l2, l1 = Shift(1.0, norm=2, dim=9), Shift(3.0, norm=1, dim=9)
    assert noise.renyi(3, l2) == pytest.approx(noise.renyi(3, l1))
    assert scale_for(noise, 3, 0.1, l2) == pytest.approx(scale_for(noise, 3, 0.1, l1))
    with refused(ValueError, "noise.shift_norm_mismatch"):
        noise.renyi(3, Shift(1.0, norm=2, dim=None))
