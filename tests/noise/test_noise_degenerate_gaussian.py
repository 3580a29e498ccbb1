"""Gaussian noise on a subspace: what it hides, and what it never does."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.exceptions import Statement
from skpuffer.noise import CorrelatedGaussianNoise, DegenerateGaussianNoise, Shift
from skpuffer.noise._correlated_gaussian import ROUNDED
from tests.refused import refused

FACTOR = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])


def test_lengths_are_those_of_the_factor():
    noise = DegenerateGaussianNoise(2.0, factor=FACTOR)
    weights = np.array([[1.0, -3.0], [0.5, 0.0], [0.0, 0.0]])
    lengths = np.linalg.norm(noise.whitened(weights @ FACTOR.T), axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(weights, axis=1) / 2)
    np.testing.assert_allclose(noise.covariance_matrix(3), 4 * FACTOR @ FACTOR.T)
    np.testing.assert_allclose(noise.variance(3), [4, 20, 0])


def test_it_is_correlated_noise_where_there_is_any():
    inner = CorrelatedGaussianNoise(covariance=FACTOR[:2] @ FACTOR[:2].T)
    noise = DegenerateGaussianNoise(factor=FACTOR)
    moves = np.random.default_rng(0).normal(size=(20, 2))
    padded = np.column_stack([moves, np.zeros(20)])
    np.testing.assert_allclose(
        np.linalg.norm(noise.whitened(padded), axis=1),
        np.linalg.norm(inner.whitened(moves), axis=1),
    )


@given(st.floats(1e-12, 1e12), st.floats(1e-12, 1.0))
def test_no_move_off_the_subspace_is_hidden(length, off):
    """However short it is, and however little of it is off."""
    noise = DegenerateGaussianNoise(factor=[[1.0], [1.0]])
    moves = length * np.array([[1.0, 1.0], [1.0, 1.0 + off], [0.0, off]])
    found = np.linalg.norm(noise.whitened(moves), axis=1)
    assert found[0] == pytest.approx(length)
    assert np.all(np.isinf(found[1:]))


def test_a_short_move_off_the_subspace_is_not_hidden_beside_a_long_one():
    noise = DegenerateGaussianNoise(factor=FACTOR)
    inside, outside = FACTOR @ [1.0, 2.0], np.array([0.0, 0.0, 1e-9])
    tilted = np.array([[1.0], [2.0], [2.0]])
    moves = np.array([1e12 * inside, outside, inside, inside + outside])
    lengths = np.linalg.norm(noise.whitened(moves), axis=1)
    np.testing.assert_allclose(lengths, [5**0.5 * 1e12, np.inf, 5**0.5, np.inf])
    # where all coordinates have noise, and only together none
    noise = DegenerateGaussianNoise(factor=tilted)
    moves = np.array([1e15 * tilted[:, 0], [1e-3, 0.0, 0.0], tilted[:, 0]])
    lengths = np.linalg.norm(noise.whitened(moves), axis=1)
    np.testing.assert_allclose(lengths, [1e15, np.inf, 1.0])


def test_a_move_is_off_as_soon_as_rounding_does_not_explain_it():
    """Half of what one coordinate moves more than the other is off the diagonal."""
    noise = DegenerateGaussianNoise(factor=[[1.0], [1.0]])
    moves = 1.0 + np.array([[0.0, ROUNDED], [0.0, 3 * ROUNDED]])
    assert np.isinf(noise.whitened(moves)[:, 0]).tolist() == [False, True]


def test_coordinates_without_noise_are_exact():
    noise = DegenerateGaussianNoise(factor=FACTOR)
    assert np.all(np.isinf(noise.whitened(np.array([[1.0, 2.0, 1e-300]]))))
    draws = noise.sample((50_000, 3), np.random.default_rng(1))
    assert np.all(draws[:, 2] == 0)
    np.testing.assert_allclose(
        np.cov(draws.T)[:2, :2], (FACTOR @ FACTOR.T)[:2, :2], rtol=0.05
    )


def test_a_ball_leaves_the_subspace():
    noise = DegenerateGaussianNoise(factor=FACTOR)
    assert noise.renyi(2, Shift(1e-9, dim=3)) == math.inf
    assert noise.renyi(2, Shift(0.0, dim=3)) == 0
    # a length without a direction may be of any move
    assert noise.renyi(2, np.array([0.0, 1e-9])).tolist() == [0, math.inf]


@pytest.mark.parametrize(
    "options, said",
    [
        ({"factor": np.eye(2)}, Statement("gaussian.factor_shape_wrong")),
        ({"factor": [1.0, 2.0]}, Statement("gaussian.factor_shape_wrong")),
        (
            {"factor": [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]},
            Statement("gaussian.factor_columns_dependent"),
        ),
        (
            {"factor": [[math.nan], [1.0]]},
            Statement("parameter.array_not_finite", name="factor"),
        ),
        (
            {"factor": FACTOR, "scale": (1.0, 1.0, 1.0)},
            Statement("gaussian.scale_with_factor"),
        ),
        ({"factor": np.zeros((2, 1))}, Statement("gaussian.factor_columns_dependent")),
    ],
)
def test_bad_parameters(options, said):
    with refused(ValueError, said.code, **said.parameters):
        DegenerateGaussianNoise(**options)


def test_units_are_of_the_coordinates():
    noise = DegenerateGaussianNoise(2.0, factor=[[1.0], [2.0]])
    made = noise.in_units([1.0, 3.0])
    units = np.outer([1.0, 3.0], [1.0, 3.0])
    np.testing.assert_allclose(
        made.covariance_matrix(2), units * noise.covariance_matrix(2)
    )
    assert noise.in_units(2.0).std(2) == pytest.approx(2 * noise.std(2))
    with refused(ValueError, "gaussian.factor_units_mismatch", dim=2):
        noise.in_units([1.0, 2.0, 3.0])
