"""Continuous laws of a query's output."""

import math

import numpy as np
import pytest
from scipy import stats

from skpuffer.accountants import GeneralWasserstein
from skpuffer.distributions import Continuous, Discrete, Gaussian, distribution_distance
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from tests.refused import refused


def test_same_family():
    u, v = Continuous(stats.gamma(2, 1, 3)), Continuous(stats.gamma(2, 5, scale=3))
    assert distribution_distance(u, v) == 4
    assert distribution_distance(u, v, units=[2.0]) == 2


def test_gaussian_laws_are_continuous():
    normal = Gaussian(1.0, 4.0)
    assert distribution_distance(normal, Continuous(stats.norm(4, 2))) == 3
    assert distribution_distance(Continuous(stats.norm(4, 2)), normal) == 3
    assert distribution_distance(normal, Continuous(stats.norm(4, 3))) == math.inf
    # a point mass is no continuous law of SciPy's, and infinitely far by the bound
    with refused(ValueError, "distribution.coordinates_unequal"):
        distribution_distance(Gaussian([0.0, 1.0], np.eye(2)), Continuous(stats.norm()))


def test_supports_bound_the_distance_to_atoms():
    flat, atoms = Continuous(stats.uniform(0, 2)), Discrete([1.0, 5.0])
    assert distribution_distance(flat, atoms) == distribution_distance(atoms, flat) == 5
    assert distribution_distance(flat, Discrete([-5.0, 1.0])) == 7
    assert distribution_distance(Continuous(stats.expon()), atoms) == math.inf


def test_draws_follow_the_law():
    law = Continuous(stats.gamma(2))
    draws = law.sample(20_000, np.random.default_rng(0))
    assert draws.shape == (20_000, 1) and law.dim == 1
    assert stats.kstest(draws[:, 0], law.distribution.cdf).pvalue > 0.01
    assert law.mean == pytest.approx([2.0])


def test_only_frozen_continuous_laws():
    for bad in (stats.norm, stats.poisson(3), 1.0):
        with refused(TypeError, "distribution.not_frozen_continuous"):
            Continuous(bad)


def test_serves_a_scenario():
    laws = [Continuous(stats.beta(2, 3)), Continuous(stats.beta(2, 3, loc=0.25))]
    release = QueryRelease(query=lambda X, y: X.mean(), n_records=4, dim=1)
    accountant = GeneralWasserstein(epsilon=1.0, alpha=math.inf, noise="laplace")
    calibration = accountant.calibrate(release, LawsScenario([tuple(laws)]))
    assert calibration.noise.scale == pytest.approx(0.25)
    assert calibration.noise.pure_epsilon(0.25) <= 1


def test_disjoint_histograms_are_far_apart():
    """A class whose laws differ by more than shapes, location and scale."""
    laws = [
        Continuous(stats.rv_histogram(([2, 1], np.array([0.0, 0.5, 1.0]) + at))())
        for at in (0.0, 5.0)
    ]
    release = QueryRelease(query=lambda X, y: X.mean(), n_records=4, dim=1)
    accountant = GeneralWasserstein(epsilon=1.0, alpha=math.inf, noise="laplace")
    calibration = accountant.calibrate(release, LawsScenario([tuple(laws)]))
    assert calibration.noise.scale >= 5
