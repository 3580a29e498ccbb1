"""Generalised Gaussian noise: what is its own, one coordinate."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skpuffer import accountants
from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise, Shift
from tests.refused import refused

from .contract import examples

betas = st.floats(1.0, 12.0)
shifts = st.floats(1e-4, 20.0)


def noise(beta, scale=1.0):
    return GeneralizedGaussianNoise(scale, beta=beta)


# -- the two families it contains ------------------------------------------------------


@pytest.mark.parametrize(
    "beta, twin",
    [(1, LaplaceNoise(2.0)), (2, GaussianNoise(2.0 / math.sqrt(2)))],
)
def test_coincides_with_laplace_and_gauss(beta, twin):
    ours = noise(beta, 2.0)
    epsilons, alphas = np.linspace(-3, 3, 25), np.array([1.01, 2.0, 64.0])
    vector = Shift(0.7, norm=2, dim=5)
    for shift in (0.7, vector):
        same = {"rtol": 1e-13, "atol": 1e-16}
        np.testing.assert_allclose(
            ours.delta(epsilons, shift), twin.delta(epsilons, shift), **same
        )
        np.testing.assert_allclose(
            ours.renyi(alphas, shift), twin.renyi(alphas, shift), **same
        )
        assert ours.epsilon(1e-5, shift) == pytest.approx(twin.epsilon(1e-5, shift))
        for ask in ("scale_for", "scale_for_delta"):
            args = (0.8, 1e-5) if ask == "scale_for_delta" else (3.0, 0.5)
            search = getattr(accountants, ask)
            found, expected = (search(n, *args, shift) for n in (ours, twin))
            ratio = ours.scale / twin.scale
            assert found == pytest.approx(ratio * expected, rel=1e-11)
        assert ours.evidence(shift) == ours.evidence(shift, renyi=True) == ()
    assert ours.variance() == pytest.approx(twin.variance())
    mu = ours.curve(vector).gaussian_mu
    assert mu == pytest.approx(twin.curve(vector).gaussian_mu)
    np.testing.assert_allclose(ours.sample(1000, 3), twin.sample(1000, 3))


@pytest.mark.parametrize("at", [1.0, 2.0])
def test_formulas_meet_those_of_the_two_families(at):
    near, twin = noise(at * (1 + 1e-7)), noise(at)
    for epsilon in (0.0, 0.3, 0.9):
        assert near.delta(epsilon, 1.3) == pytest.approx(
            twin.delta(epsilon, 1.3), rel=1e-5
        )
    for alpha in (1.01, 3.0, 20.0):
        assert near.renyi(alpha, 1.3) == pytest.approx(twin.renyi(alpha, 1.3), rel=1e-5)


def test_only_gauss_has_a_mu_and_only_laplace_a_pure_cost():
    for beta in (1.0, 1.5, 3.0):
        assert noise(beta).curve(1.0).gaussian_mu is None
    assert noise(1).pure_epsilon(0.7) == pytest.approx(0.7)
    for beta in (1.5, 2.0, 3.0):
        assert noise(beta).pure_epsilon(0.7) == math.inf
        assert noise(beta).epsilon(0.0, 0.7) == math.inf
        with refused(
            ValueError, ("gaussian.no_pure_epsilon", "shaped.beta_no_pure_epsilon")
        ):
            scale_for(noise(beta), math.inf, 1.0, 0.7)
        with refused(
            ValueError, ("gaussian.no_pure_epsilon", "shaped.beta_no_pure_epsilon")
        ):
            scale_for_delta(noise(beta), 1.0, 0.0, 0.7)


# -- the trade-off of one coordinate ---------------------------------------------------


@examples
@given(betas, shifts, st.floats(0, 20))
def test_trade_off_is_symmetric_and_convex(beta, u, epsilon):
    delta = noise(beta).delta(np.array([-epsilon, epsilon]), u)
    image = -math.expm1(-epsilon) + math.exp(-epsilon) * delta[1]
    assert delta[0] == pytest.approx(image, rel=1e-12, abs=1e-15)
    marks = epsilon + np.linspace(0, 1, 5)
    chords = np.diff(noise(beta).delta(marks, u)) / np.diff(np.exp(marks))
    assert np.all(np.diff(chords) >= -1e-12)


@examples
@given(betas, shifts, shifts, st.floats(0, 10), st.floats(1.001, 500))
def test_costs_grow_with_the_shift_and_fall_with_the_scale(beta, u, other, e, alpha):
    low, high = sorted((u, other))
    assert (
        noise(beta).delta(e, low) <= noise(beta).delta(e, high) * (1 + 1e-11) + 1e-300
    )
    assert noise(beta).renyi(alpha, low) <= noise(beta).renyi(alpha, high) * (1 + 1e-11)
    wide, narrow = noise(beta, 2.0), noise(beta, 1.0)
    assert wide.delta(e, u) <= narrow.delta(e, u) * (1 + 1e-11) + 1e-300


@examples
@given(st.floats(1.001, 8.0), shifts, st.floats(1e-12, 0.5))
def test_epsilon_is_the_least(beta, u, delta):
    epsilon = noise(beta).epsilon(delta, u)
    assert noise(beta).delta(epsilon, u) <= delta
    if epsilon > 1e-6:
        assert noise(beta).delta(epsilon * (1 - 1e-9), u) > delta


@examples
@given(
    st.floats(1.0, 60.0), st.floats(1e-8, 1e3), st.floats(1e-6, 1e3), st.floats(0, 9)
)
def test_extremes_are_numbers(beta, u, epsilon, power):
    found = noise(beta)
    assert 0 <= found.delta(epsilon, u) <= 1
    cost = found.renyi(1 + 10 ** (power - 4), u)
    assert cost > 0
    assert 0 <= found.loss_cdf(epsilon, u) <= 1


@pytest.mark.parametrize("beta", [1.2, 1.5, 3.0, 8.0])
@pytest.mark.parametrize("epsilon", [450.0, 520.0, 690.0])
def test_far_tails_keep_their_digits(beta, epsilon):
    # the loss is that large at zero, where half the mass lies below
    u = epsilon ** (1 / beta)
    moved = math.exp(epsilon) * noise(beta).cdf(-u)
    assert noise(beta).delta(epsilon, u) == pytest.approx(0.5 - moved, rel=1e-10)


def test_overflow_is_infinite_and_never_a_promise():
    found = noise(8.0).renyi(np.array([2.0, 40.0, 1e6, 1e80, math.inf]), 3.0)
    assert np.all(np.diff(found[:3]) > 0)
    assert found[-1] == math.inf and not np.any(np.isnan(found))
    assert np.all(found > 0)


def test_small_shifts_cost_their_fisher_information():
    for beta in (1.5, 3.0):
        for alpha in (1.01, 2.0, 50.0):
            expected = alpha * noise(beta).fisher_information / 2 * 1e-12
            found = noise(beta).renyi(alpha, 1e-6)
            assert found == pytest.approx(expected, rel=1e-4, abs=0)


@pytest.mark.parametrize("beta", [1.25, 1.5, 3.0])
def test_small_shifts_keep_their_digits(beta):
    # to first order the distance of the laws is the density at zero times the shift
    density = beta / (2 * math.gamma(1 / beta))
    for u in (1e-3, 1e-6, 1e-9):
        known = pytest.approx(density * u, rel=1e-3, abs=0)
        assert noise(beta).delta(0.0, u) == known
        epsilon = noise(beta).epsilon(1e-3 * u, u)
        assert 0.5 * u < epsilon < 20 * u


@pytest.mark.parametrize("u", [0.5, 1e-2, 1e-5, 1e-7])
def test_powers_too_small_for_a_float_are_no_promise(u):
    beta = 64.0
    density = beta / (2 * math.gamma(1 / beta))
    assert noise(beta).delta(0.0, u) == pytest.approx(density * u, rel=1e-12)
    x = np.linspace(-1.5, 1.6, 1_000_001)
    ahead = density * np.exp(-(np.abs(x) ** beta))
    behind = density * np.exp(-(np.abs(x - u) ** beta))
    for epsilon in (1e-4 * u, u, 10 * u, 100 * u):
        expected = np.trapezoid(np.maximum(ahead - np.exp(epsilon) * behind, 0.0), x)
        assert noise(beta).delta(epsilon, u) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("beta", [1.1, 1.5, 3.0])
@pytest.mark.parametrize("dim", [1, 7, None])
def test_an_l1_shift_costs_what_one_coordinate_does(beta, dim):
    shift = Shift(0.8, norm=1, dim=dim)
    for ask, args in (("delta", 0.4), ("renyi", 5.0), ("epsilon", 1e-4)):
        found, expected = (getattr(noise(beta), ask)(args, s) for s in (shift, 0.8))
        assert found == expected
    scalar = Shift(0.8, norm=math.inf, dim=dim, structure="scalar")
    assert noise(beta).delta(0.4, scalar) == noise(beta).delta(0.4, 0.8)
    assert noise(beta).evidence(shift) == noise(beta).evidence(0.8) == ()


# -- the law ---------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 1.3, 2.0, 4.0])
def test_law(beta):
    law, ours = stats.gennorm(beta, scale=1.7), noise(beta, 1.7)
    x, p = np.linspace(-4, 4, 17), np.linspace(0, 1, 11)
    np.testing.assert_allclose(ours.cdf(x), law.cdf(x), rtol=1e-10)
    np.testing.assert_allclose(ours.quantile(p[1:-1]), law.ppf(p[1:-1]), atol=1e-12)
    np.testing.assert_array_equal(ours.quantile([0.0, 1.0]), [-math.inf, math.inf])
    np.testing.assert_allclose(ours.tail(np.abs(x)), 2 * law.sf(np.abs(x)), rtol=1e-9)
    assert (
        type(ours.cdf(0.3)) is type(ours.tail(1)) is type(ours.quantile(0.2)) is float
    )


def test_law_of_several_scales():
    several = noise(1.5, (1.0, 2.0, 0.0))
    np.testing.assert_allclose(several.tail(2.0)[:2], noise(1.5).tail([2.0, 1.0]))
    assert several.tail(1e-9)[2] == 0.0
    assert several.cdf(0.0)[2] == 1.0
    assert several.quantile(0.9)[2] == 0.0
    assert several.fisher_information[2] == math.inf
    np.testing.assert_allclose(
        several.variance(), noise(1.5).variance() * np.array([1.0, 4.0, 0.0])
    )


def test_loss_of_the_sampled_noise():
    beta, u = 1.5, 0.8
    x = noise(beta).sample(20_000, 5)
    losses = np.abs(x - u) ** beta - np.abs(x) ** beta
    assert stats.kstest(losses, lambda y: noise(beta).loss_cdf(y, u)).pvalue > 0.01


def test_loss_of_a_vector():
    l2 = Shift(0.8, norm=2, dim=3)
    with refused(ValueError, "shaped.loss_depends_on_direction"):
        noise(1.5).loss_cdf(0.1, l2)
    assert noise(2.0).loss_cdf(0.1, l2) == noise(2.0).loss_cdf(0.1, 0.8)
    assert noise(1.5).loss_cdf(-1.0, 0.0) == 0.0
    assert noise(1.5).loss_cdf(0.0, 0.0) == 1.0
    assert noise(1.5).loss_cdf(5.0, math.inf) == 0.0


def test_atoms_of_laplace():
    u = 1.2
    jump = [noise(1).loss_cdf(y, u) for y in (-u - 1e-9, -u, u - 1e-9, u)]
    assert jump == pytest.approx([0, math.exp(-u) / 2, 0.5, 1.0], abs=1e-8)


# -- forms and bad input ---------------------------------------------------------------


def test_forms():
    found = GeneralizedGaussianNoise((1.0, 2.0), beta=3)
    assert found == pickle.loads(pickle.dumps(found)) and len({found, found}) == 1
    told = json.loads(json.dumps(found.to_dict()))
    assert told == {"family": "generalized_gaussian", "scale": [1.0, 2.0], "beta": 3.0}
    assert found.with_scale(4.0) == noise(3.0, 4.0)
    assert found.norm == 2.0 and noise(1.2).norm == 1.2
    assert GeneralizedGaussianNoise(1.0) == noise(2.0)


@pytest.mark.parametrize("beta", [0.99, 0.0, -1.0, math.inf, math.nan, 65.0])
def test_bad_shape(beta):
    with refused(ValueError, ("parameter.is_nan", "shaped.beta_out_of_range")):
        noise(beta)


@pytest.mark.parametrize("beta", ["2", None, True])
def test_shape_of_no_number(beta):
    with refused(TypeError, "parameter.not_real_number", name="beta"):
        noise(beta)


def test_bad_arguments_of_the_law():
    for call, name in (
        (lambda: noise(1.5).tail(-1.0), "'t'"),
        (lambda: noise(1.5).quantile(1.1), "'p'"),
        (lambda: noise(1.5).cdf(math.nan), "'x'"),
        (lambda: noise(1.5).loss_cdf(math.nan, 1.0), "'loss'"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


@pytest.mark.parametrize("beta", [1.2, 1.5, 3.0])
def test_a_cost_too_small_for_a_float_is_not_taken_for_none(beta):
    assert noise(beta).renyi(2.0, 1e-120) > 0
    assert noise(beta).renyi(2.0, 1e-200) == math.inf
