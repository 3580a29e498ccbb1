"""How far one record moves means and products of rows in a ball."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from skpuffer.decomposition._pca import (
    SecondMoments,
    noisy_spectrum,
    schema_norm,
    spectrum_edge,
    usual_norm,
)
from skpuffer.schema import Schema
from skpuffer.utils._bounds import Bounds

NORMS = (1.0, 2.0, math.inf)


def moments(d, weight=0.5):
    return SecondMoments((0.0,) * d, 1.0, weight)


def largest(function, d, n_starts=6):
    """Largest value of a function of rows in the unit ball, searched for."""
    rng, best = np.random.default_rng(0), 0.0
    for _ in range(n_starts):
        found = minimize(lambda x: -function(x), rng.normal(size=d), method="BFGS")
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("weight", [0.0, 0.5])
@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_published_sensitivities_are_attained_and_not_exceeded(d, weight):
    """Numbers of the specification; in l1 they are bounds."""
    contribution = moments(d, weight)
    said = contribution.sensitivity
    expected = {
        "add_remove": math.sqrt(1 + weight**2 - 1 / d),
        "replace": (2 + weight**2) / math.sqrt(2),
    }
    for relation, value in expected.items():
        assert said.value(relation, 2, contribution.dim) == pytest.approx(value)

    def alone(x, norm=2):
        return np.linalg.norm(contribution(x[None])[0], norm)

    def apart(x, norm=2):
        first, second = contribution(x.reshape(2, -1))
        return np.linalg.norm(first - second, norm)

    assert largest(alone, d) == pytest.approx(expected["add_remove"], rel=1e-4)
    assert largest(apart, 2 * d) == pytest.approx(expected["replace"], rel=1e-4)
    for relation, function, size in (
        ("add_remove", alone, d),
        ("replace", apart, 2 * d),
    ):
        bound = said.value(relation, 1, contribution.dim)
        found = largest(lambda x, f=function: f(x, 1), size, 3)
        assert 0.6 * bound < found <= bound


def test_one_column_is_covered_as_well():
    """At one column the largest contribution is that of a row in the centre."""
    for weight in (0.0, 0.5):
        contribution = moments(1, weight)
        points = contribution(np.linspace(-3, 3, 301)[:, None])
        apart = np.linalg.norm(points[:, None] - points, axis=2).max()
        said = contribution.sensitivity
        assert np.linalg.norm(points, axis=1).max() == pytest.approx(
            said.value("add_remove", 2, contribution.dim)
        )
        assert apart <= said.value("replace", 2, contribution.dim)


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 5),
    weight=st.sampled_from([0.0, 0.5, 1.4]),
    norm=st.sampled_from(NORMS),
    reach=st.floats(0.01, 3),
)
def test_moves_of_features_bound_those_of_contributions(seed, d, weight, norm, reach):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3, 0, d)
    bounds = Bounds(tuple(low), tuple(low + rng.uniform(0.5, 5, d)))
    contribution = SecondMoments(
        tuple(rng.normal(size=d)), rng.uniform(0.5, 3), weight, bounds
    )
    gaps = reach * rng.random((50, d)) * (rng.random((50, d)) < 0.7)
    first = rng.uniform(-4, 6, (50, d))
    second = first + gaps * rng.choice([-1, 1], (50, d))
    apart = np.linalg.norm(contribution(first) - contribution(second), norm, axis=1)
    assert np.all(apart <= contribution.move(gaps, norm) * (1 + 1e-9) + 1e-12)


@pytest.mark.parametrize("t", [0.1, 0.5, 0.9, 1.3, 5.0])
def test_a_move_is_attained(t):
    contribution = moments(2)
    said = contribution.move(np.array([[t, 0.0]]), 2.0)[0]
    angle = np.linspace(0, 2 * math.pi, 721)
    around = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = (np.linspace(0, 1, 41)[:, None, None] * around).reshape(-1, 2)
    start = np.array([[1.0, 0.0]])
    near = np.linalg.norm(rows - start, axis=1) <= t
    apart = np.linalg.norm(contribution(rows[near]) - contribution(start), axis=1)
    assert apart.max() == pytest.approx(said, rel=0.02)


@given(seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([0.0, 0.5]))
def test_sums_are_those_of_the_contributions_and_are_read_back(seed, weight):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4))
    contribution = SecondMoments((0.1, 0.2, 0.0, -1.0), 2.0, weight)
    total = contribution.total(X)
    np.testing.assert_allclose(total, contribution(X).sum(axis=0), atol=1e-9)
    mean, products = contribution.moments(total, 30)
    z = contribution.rows(X)
    np.testing.assert_allclose(mean, bool(weight) * z.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(products, z.T @ z / 30, atol=1e-12)
    assert np.linalg.norm(z, axis=1).max() <= 1 + 1e-12


def test_eigenvalues_are_less_what_noise_adds():
    """One of 1 is seen at 1 + d s**2, and those of noise up to 2 s sqrt(d)."""
    d, s = 300, 0.01
    rng = np.random.default_rng(0)
    noise = np.triu(rng.normal(0, s, (d, d)), 1)
    noise += noise.T + np.diag(rng.normal(0, math.sqrt(2) * s, d))
    truth = np.zeros((d, d))
    truth[3, 3] = 1.0
    variances, components, _ = noisy_spectrum(truth + noise, s)
    seen = np.linalg.eigvalsh(truth + noise)[-1]
    assert seen == pytest.approx(1 + d * s**2, abs=0.05)
    assert variances[0] == pytest.approx(1.0, abs=0.04)
    assert spectrum_edge(s, d) == pytest.approx(0.01 * 2 * math.sqrt(300))
    assert np.count_nonzero(variances) <= 3  # the edge is a limit
    assert components[0, 3] > 0.9
    np.testing.assert_allclose(components @ components.T, np.eye(d), atol=1e-9)


def test_without_noise_the_spectrum_is_exact():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    variances, components, trace = noisy_spectrum(A @ A.T, 0.0)
    np.testing.assert_allclose((components.T * variances) @ components, A @ A.T)
    assert trace == pytest.approx(np.trace(A @ A.T))


@pytest.mark.parametrize("half", [np.ones(40), np.array([3.0, 1, 1, 0.1])])
def test_few_rows_are_longer_than_usual(half):
    rows = half * np.random.default_rng(0).uniform(-1, 1, (20_000, len(half)))
    longer = np.linalg.norm(rows, axis=1) > usual_norm(half)
    assert 0 < longer.mean() < 0.05
    assert usual_norm(1e200 * half) == pytest.approx(1e200 * usual_norm(half))


def test_a_number_alone_is_within_its_bounds_and_a_level_of_length_one():
    share = 1 / 3 + 2 * math.sqrt(4 / 45)
    assert usual_norm(np.array([5.0])) == pytest.approx(5 * math.sqrt(share))
    assert usual_norm(np.ones(2)) < math.sqrt(2)
    schema = Schema({"sex": ["F", "M"], "race": ["a", "b"]})
    assert schema_norm(schema) == pytest.approx(math.sqrt(2))
