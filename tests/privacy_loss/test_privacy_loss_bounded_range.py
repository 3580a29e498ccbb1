"""What a mechanism of bounded range costs, beside all two-point pairs of that range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.noise import GumbelNoise
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import BoundedRangePair, PrivacyLossCurve
from tests.refused import refused

ETAS = st.floats(1e-4, 30)


def two_points(eta, t):
    """Probabilities of losses t and t - eta under either distribution."""
    first = -np.expm1(t - eta) / -np.expm1(-eta)
    p = np.array([first, 1 - first])
    return p, p * np.exp([-t, eta - t])


@given(ETAS, st.floats(0, 1), st.floats(0, 1))
def test_delta_is_the_largest_of_two_point_pairs(eta, part, share):
    epsilon = part * eta
    found = float(BoundedRangePair(eta).delta(epsilon))
    for t in (share * eta, (eta + epsilon) / 2):
        p, q = two_points(eta, t)
        stick = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        back = np.maximum(q - np.exp(epsilon) * p, 0).sum()
        assert max(stick, back) <= found * (1 + 1e-6) + 1e-12
    # the last one attains it
    assert stick == pytest.approx(found, rel=1e-6, abs=1e-12)
    assert BoundedRangePair(eta).reverse(epsilon) == found


@given(ETAS, st.floats(1.01, 200))
def test_renyi_cost_is_the_largest_of_two_point_pairs(eta, alpha):
    pair = BoundedRangePair(eta)
    found = pair.renyi(alpha)
    ts = np.linspace(0, eta, 400)[1:-1]
    up = np.log(-np.expm1(ts - eta) / -np.expm1(-eta)) + (alpha - 1) * ts
    down = np.log(np.exp(ts - eta) * np.expm1(-ts) / np.expm1(-eta))
    costs = np.logaddexp(up, down + (alpha - 1) * (ts - eta)) / (alpha - 1)
    assert costs.max() <= found + 1e-9 * eta
    assert found <= min(eta, alpha * eta**2 / 8) * (1 + 1e-12)
    # the grid of ts comes near to the largest
    assert found <= costs.max() + 0.02 * eta


def test_oracles():
    # total variation tanh(eta / 4); order two of eta = log 4 at exp(t) = 2.5
    assert BoundedRangePair(2.0).delta(0.0) == pytest.approx(math.tanh(0.5))
    assert BoundedRangePair(math.log(4)).renyi(2) == pytest.approx(math.log(25 / 16))
    assert BoundedRangePair(0.3).renyi(math.inf) == 0.3
    np.testing.assert_array_equal(BoundedRangePair(1.0).delta([1.0, 2.0]), 0.0)


def test_small_ranges_cost_half_of_a_gaussian():
    # alpha eta^2 / 8, which is that of zero-concentrated privacy
    assert BoundedRangePair(1e-4).renyi(2) == pytest.approx(2e-8 / 8, rel=1e-3)


def test_many_choices_compose():
    curve = PrivacyLossCurve(((BoundedRangePair(0.1), 100),))
    # below basic composition (10), and about that of as many Gaussian losses
    assert 1.5 < curve.epsilon(1e-5) < 3.0
    assert PrivacyLossCurve(((BoundedRangePair(0.7), 1),)).epsilon(1e-12) <= 0.7001


@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=4), st.floats(0, 1))
def test_independent_choices_stay_below_the_composed_curve(etas, share):
    curve = PrivacyLossCurve(tuple((BoundedRangePair(eta), 1) for eta in etas))
    p, q = np.ones(1), np.ones(1)
    for eta in etas:
        a, b = two_points(eta, share * eta)
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    for epsilon in (0.0, 0.3 * sum(etas), 0.9 * sum(etas)):
        stick = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        assert stick <= curve.delta(epsilon) * (1 + 1e-9) + 1e-12


def test_it_is_written_and_read_back():
    curve = PrivacyLossCurve(((BoundedRangePair(0.5), 3),))
    assert from_plain(curve.to_dict()) == curve
    assert from_plain(GumbelNoise(2.0).to_dict()) == GumbelNoise(2.0)


@pytest.mark.parametrize("eta", [0, -1, math.nan, "1"])
def test_a_range_that_is_none_is_refused(eta):
    with refused(
        (ValueError, TypeError),
        ("parameter.is_nan", "parameter.not_positive", "parameter.not_real_number"),
    ):
        BoundedRangePair(eta)
