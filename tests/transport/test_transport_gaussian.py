import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.stats import norm

from skpuffer.transport import gaussian_wasserstein, wasserstein_distance
from tests.refused import refused

finite = st.floats(-10, 10)
deviations = st.floats(0, 10)


def random_cov(rng, d, rank=None):
    root = rng.normal(size=(d, rank or d))
    return root @ root.T


@given(finite, deviations, finite, deviations)
def test_one_coordinate(m, s, n, t):
    assert gaussian_wasserstein(m, s**2, n, s**2) == abs(m - n)
    distance = gaussian_wasserstein(m, s**2, n, t**2, p=2)
    assert distance == pytest.approx(math.hypot(m - n, s - t), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("d, rank", [(2, 2), (4, 4), (4, 2)])
def test_trace_formula(d, rank):
    rng = np.random.default_rng(d)
    mean_u, mean_v = rng.normal(size=(2, d))
    cov_u, cov_v = random_cov(rng, d), random_cov(rng, d, rank)
    root = np.real(sqrtm(cov_u))
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ cov_v @ root), 0)).sum()
    square = np.sum((mean_u - mean_v) ** 2) + np.trace(cov_u + cov_v) - 2 * cross
    distance = gaussian_wasserstein(mean_u, cov_u, mean_v, cov_v, p=2)
    # the trace takes roots of round-off where a covariance is singular
    assert distance == pytest.approx(math.sqrt(square), rel=1e-7)
    swapped = gaussian_wasserstein(mean_v, cov_v, mean_u, cov_u, p=2)
    assert swapped == pytest.approx(distance, rel=1e-12)


def test_agrees_with_pot():
    gaussian = pytest.importorskip("ot.gaussian")
    rng = np.random.default_rng(0)
    means, covs = rng.normal(size=(2, 3)), [random_cov(rng, 3) for _ in range(2)]
    expected = gaussian.bures_wasserstein_distance(*means, *covs)
    distance = gaussian_wasserstein(means[0], covs[0], means[1], covs[1], p=2)
    assert distance == pytest.approx(expected, rel=1e-6)


def test_agrees_with_quantiles_on_the_line():
    levels = (np.arange(200_000) + 0.5) / 200_000
    u, v = norm(1, 2).ppf(levels), norm(0, 3).ppf(levels)
    expected = wasserstein_distance(u, v, p=2)
    assert gaussian_wasserstein(1, 4, 0, 9, p=2) == pytest.approx(expected, rel=1e-3)


def test_no_cancellation_near_zero():
    cov = random_cov(np.random.default_rng(1), 5)
    assert gaussian_wasserstein(np.zeros(5), cov, np.zeros(5), cov, p=2) < 1e-13
    near = gaussian_wasserstein(0, 1, 0, (1 + 1e-9) ** 2, p=2)
    assert near == pytest.approx(1e-9, rel=1e-6, abs=0)


@pytest.mark.parametrize("ord, expected", [(1, 7), (2, 5), (math.inf, 4)])
def test_norm_of_the_shift(ord, expected):
    cov = [[2, 0.5], [0.5, 1]]
    distance = gaussian_wasserstein([0, 0], cov, [3, -4], cov, ord=ord)
    assert distance == expected
    assert type(distance) is float
    for scale in (1e-200, 1e200):
        shift = [3 * scale, -4 * scale]
        distance = gaussian_wasserstein([0, 0], cov, shift, cov, ord=ord)
        assert distance == pytest.approx(expected * scale, rel=1e-12, abs=0)


def test_unequal_covariances_are_infinitely_far():
    cov = np.array([[2, 0.5], [0.5, 1]])
    for change in ([[1e-9, 0], [0, 0]], [[0, 1e-9], [1e-9, 0]]):
        other = cov + change
        assert gaussian_wasserstein([0, 0], cov, [1, 0], other) == math.inf
        assert gaussian_wasserstein([0, 0], cov, [1, 0], other, p=2) < 1.1
    # round-off is forgiven, in the unit of each coordinate
    units = np.diag([1.0, 1e-6])
    small = units @ cov @ units
    assert gaussian_wasserstein([0, 0], small, [1, 0], small * (1 + 1e-15)) == 1
    other = small + [[0, 0], [0, 1e-20]]
    assert gaussian_wasserstein([0, 0], small, [1, 0], other) == math.inf


def test_point_masses():
    zero = np.zeros((2, 2))
    assert gaussian_wasserstein([0, 0], zero, [3, 4], zero) == 5
    assert gaussian_wasserstein([0, 0], zero, [3, 4], zero, p=2) == 5
    assert gaussian_wasserstein(0, 0, 0, 4) == math.inf
    assert gaussian_wasserstein(0, 0, 0, 4, p=2) == 2


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(p=1), "transport.gaussian_order_unsupported"),
        (dict(ord=0.5), "parameter.below_one"),
        (dict(p=2, ord=1), "transport.gaussian_norm_not_two"),
        (dict(mean_u=[0, 0, 0]), "transport.gaussian_covariance_shape_differs"),
        (dict(mean_u=[0], cov_u=1), "transport.gaussian_mean_lengths_differ"),
        (dict(mean_v=[0, np.nan]), "transport.gaussian_mean_invalid"),
        (dict(mean_v=[[0, 0]]), "transport.gaussian_mean_invalid"),
        (dict(cov_u=[[1, np.inf], [np.inf, 1]]), "parameter.array_not_finite"),
        (dict(cov_v=[[1, 0.5], [0.4, 1]]), "parameter.covariance_not_symmetric"),
        (dict(cov_v=[[1, 2], [2, 1]]), "parameter.covariance_not_positive_definite"),
        (
            dict(cov_v=[[1, 0], [0, -1e-3]]),
            "parameter.covariance_not_positive_definite",
        ),
    ],
)
def test_errors_name_the_parameter(arguments, message):
    identity = [[1, 0], [0, 1]]
    arguments = (
        dict(mean_u=[0, 0], cov_u=identity, mean_v=[1, 1], cov_v=identity) | arguments
    )
    with refused(ValueError, message):
        gaussian_wasserstein(**arguments)
