"""Gaussian noise: the contract, covariances, and what is its own."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise, LaplaceNoise, Shift
from tests.refused import refused

from .contract import NoiseContract, examples

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])


class TestGaussianNoise(NoiseContract):
    family = GaussianNoise
    unit = stats.norm()
    pure = False
    attained_norms = (1, 1.5, 2, 3, math.inf)


def cost_of(covariance, alpha, displacements):
    """Closed-form divergence of N(x, covariance) from N(0, covariance), by row x."""
    solved = np.linalg.solve(covariance, displacements.T).T
    return alpha / 2 * np.sum(displacements * solved, axis=1)


def circle(norm, n=40_001):
    angles = np.linspace(0, 2 * np.pi, n)
    ray = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return ray / np.linalg.norm(ray, ord=norm, axis=1, keepdims=True)


def test_pure_epsilon_is_infinite():
    assert GaussianNoise(5.0).pure_epsilon(1e-3) == math.inf


def test_mu_is_the_shift_in_standard_deviations():
    noise = GaussianNoise((1.0, 2.0))
    shift = Shift(3.0, norm=math.inf, dim=2)
    assert noise.curve(shift).gaussian_mu == pytest.approx(3 * math.hypot(1, 0.5))
    assert noise.curve(1.0).gaussian_mu == 1.0
    assert LaplaceNoise(2.0).curve(1.0).gaussian_mu is None


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("weights", [None, (0.3, 2.0)])
def test_no_displacement_costs_more_under_a_covariance(norm, weights):
    noise = CorrelatedGaussianNoise(1.5, covariance=COVARIANCE)
    shift = Shift(0.8, norm=norm, dim=2, weights=weights)
    moved = 0.8 * circle(norm) * (1.0 if weights is None else np.array(weights))
    worst = cost_of(1.5**2 * COVARIANCE, 3.0, moved).max()
    cost = noise.renyi(3.0, shift)
    assert worst <= cost * (1 + 1e-12)
    if norm in (1, 2):
        assert worst >= cost * (1 - 1e-6)
    else:
        # bounds are no looser than the ball around, a factor of 2 in two dimensions
        assert worst >= cost / 2


@examples
@given(
    st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4, math.inf])
)
def test_no_random_displacement_costs_more(dim, seed, norm):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim)) + np.eye(dim)
    covariance = root @ root.T + 1e-3 * np.eye(dim)
    moved = rng.normal(size=(500, dim)) * rng.uniform(size=dim) ** 3
    moved /= np.linalg.norm(moved, ord=norm, axis=1, keepdims=True)
    corners = np.sign(moved) if norm == math.inf else np.eye(dim)
    costs = cost_of(covariance, 2.0, np.concatenate([moved, corners]))
    cost = CorrelatedGaussianNoise(covariance=covariance).renyi(
        2, Shift(1.0, norm, dim)
    )
    assert costs.max() <= cost * (1 + 1e-9)
    if norm == 1:
        assert costs.max() == pytest.approx(cost)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_diagonal_covariance_is_a_scale_for_each_coordinate(norm):
    shift = Shift(0.9, norm=norm, dim=3, weights=(1.0, 2.0, 0.5))
    scale = np.array([0.5, 2.0, 1.5])
    diagonal = CorrelatedGaussianNoise(2.0, covariance=np.diag(scale**2))
    plain = GaussianNoise(2 * scale)
    assert diagonal.renyi(4, shift) == pytest.approx(plain.renyi(4, shift))
    assert diagonal.delta(0.3, shift) == pytest.approx(plain.delta(0.3, shift))
    assert diagonal.renyi(4, 0.7) == pytest.approx(plain.renyi(4, 0.7))
    scalar = Shift(0.9, norm, 3, structure="scalar", weights=(1.0, 2.0, 0.5))
    assert diagonal.renyi(4, scalar) == pytest.approx(plain.renyi(4, scalar))
    np.testing.assert_allclose(diagonal.variance(), plain.variance())


def test_whitened_ball_is_spherical():
    # in dimension d, unit covariance, the l-norm ball reaches d^(1/2 - 1/norm)
    noise = CorrelatedGaussianNoise(covariance=np.eye(5))
    for norm in (3, 7, math.inf):
        assert noise.curve(Shift(1.0, norm, 5)).gaussian_mu == pytest.approx(
            5 ** (1 / 2 - 1 / norm)
        )


def norm_of(values, order):
    """The norm of that order of a vector, written out."""
    return math.fsum(value**order for value in values) ** (1 / order)


@pytest.mark.parametrize("norm", [2.5, 4, 10])
def test_one_long_axis_costs_little_more_than_the_worst_displacement(norm):
    # orthogonal columns of lengths d: the worst y has y_i**(norm - 2) ~ d_i**2, and
    # Hölder's inequality on the Gram matrix gives the norm of order 2 norm/(norm - 1)
    lengths = (9.0, 1.0, 0.5, 0.2)
    noise = CorrelatedGaussianNoise(covariance=np.eye(4))
    mu = noise.curve(Shift(1.0, norm, 4, weights=lengths)).gaussian_mu
    exact = norm_of(lengths, 2 * norm / (norm - 2))
    holder = norm_of(lengths, 2 * norm / (norm - 1))
    assert exact <= mu * (1 + 1e-12)
    assert mu <= holder * (1 + 1e-12)


def test_correlated_sample():
    noise = CorrelatedGaussianNoise(2.0, covariance=COVARIANCE)
    draws = noise.sample((60_000, 2), np.random.default_rng(5))
    np.testing.assert_allclose(np.cov(draws.T), 4 * COVARIANCE, rtol=0.04)
    np.testing.assert_allclose(noise.variance(), 4 * np.diag(COVARIANCE))
    white = np.linalg.solve(np.linalg.cholesky(4 * COVARIANCE), draws.T)
    for coordinate in white:
        assert stats.kstest(coordinate, stats.norm.cdf).pvalue > 0.01
    assert noise.sample((3, 4, 2), 0).shape == (3, 4, 2)
    assert noise.sample(2, 0).shape == (2,)
    with refused(ValueError, "noise.sample_shape_mismatch"):
        noise.sample(3, 0)


def test_correlated_calibration_gives_a_multiplier():
    noise = CorrelatedGaussianNoise(3.0, covariance=COVARIANCE)
    shift = Shift(1.0, norm=2, dim=2)
    scale = scale_for(noise, 8, 0.5, shift)
    assert type(scale) is float
    assert 0.5 * (1 - 1e-9) <= noise.with_scale(scale).renyi(8, shift) <= 0.5
    scale = scale_for_delta(noise, 1.0, 1e-5, shift)
    assert 1e-5 * (1 - 1e-6) <= noise.with_scale(scale).delta(1.0, shift) <= 1e-5
    assert scale_for(noise, 8, 0.5, Shift(0.0, 2, 2)) == 0.0
    still = noise.with_scale(0.0)
    assert still.is_zero
    assert still.renyi(2, shift) == math.inf
    assert still.renyi(2, np.array([0.0, 1.0])).tolist() == [0.0, math.inf]


def test_correlated_noise_is_plain_data():
    noise = CorrelatedGaussianNoise(2.0, covariance=COVARIANCE)
    noise.sample(2, 0)  # what is computed on the way is no part of the value
    same = CorrelatedGaussianNoise(2.0, covariance=COVARIANCE.tolist())
    assert noise == same and hash(noise) == hash(same)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert noise != GaussianNoise(2.0) and noise.dim == 2
    told = json.loads(json.dumps(noise.to_dict()))
    np.testing.assert_array_equal(told["covariance"], COVARIANCE)


@pytest.mark.parametrize(
    "covariance, code",
    [
        ([1.0, 2.0], "parameter.covariance_not_square"),
        ([[1.0, 2.0]], "parameter.covariance_not_square"),
        (np.empty((0, 0)), "parameter.covariance_not_square"),
        ([[1.0, math.nan], [math.nan, 1.0]], "parameter.array_not_finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "parameter.covariance_not_symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "parameter.covariance_not_positive_definite"),
        ([[0.0, 0.0], [0.0, 0.0]], "parameter.covariance_not_positive_definite"),
        ([[1.0, 0.0], [0.0, 1e-13]], "parameter.covariance_condition_number"),
    ],
)
def test_bad_covariance(covariance, code):
    with refused(ValueError, code):
        CorrelatedGaussianNoise(covariance=covariance)


def test_covariance_takes_one_scale_and_its_own_dimension():
    with refused(ValueError, "gaussian.scale_with_covariance"):
        CorrelatedGaussianNoise((1.0, 2.0), covariance=COVARIANCE)
    with refused(ValueError, "noise.shift_dimension_mismatch", dim=3, noise_dim=2):
        CorrelatedGaussianNoise(covariance=COVARIANCE).renyi(2, Shift(1.0, dim=3))
    with refused(ValueError, "noise.variance_dimension_mismatch"):
        CorrelatedGaussianNoise(covariance=COVARIANCE).variance(3)


def test_an_l1_shift_is_served_and_an_unknown_dimension_is_not():
    noise = GaussianNoise(2.0)
    assert noise.renyi(2, Shift(1.0, norm=1, dim=None)) == noise.renyi(2, 1.0)
    with refused(ValueError, "noise.shift_norm_mismatch"):
        noise.renyi(2, Shift(1.0, norm=math.inf, dim=None))


def test_moves_of_single_coordinates_under_correlated_noise():
    noise = CorrelatedGaussianNoise(covariance=[[1.0, 0.9], [0.9, 1.0]])
    scalar = Shift(1.0, norm=2, dim=2, structure="scalar")
    # half the order times the largest entry of the precision's diagonal
    assert noise.renyi(2.0, scalar) == pytest.approx(1 / (1 - 0.9**2), rel=1e-12)
    # less than of any move of that length, along the direction of least variance
    anywhere = Shift(1.0, norm=2, dim=2)
    assert noise.renyi(2.0, anywhere) == pytest.approx(1 / (1 - 0.9), rel=1e-12)
