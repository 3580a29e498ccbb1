"""Divergences of projections, measured: oracles, orders and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skpuffer.accountants import GeneralWasserstein
from skpuffer.audit import slice_divergences
from skpuffer.distributions import Discrete, Gaussian, PointMass
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise, LaplaceNoise
from skpuffer.privacy_loss import gaussian_renyi_divergence
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario, OutputDistributions
from skpuffer.transport import SliceProfile
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "sliced_audit.json").read_text()
)
CROSSED = Discrete([[0, 0], [1, 1]]), Discrete([[0, 1], [1, 0]])


def around(n):
    angles = np.pi * np.arange(n) / n
    return SliceProfile.finite(np.column_stack([np.cos(angles), np.sin(angles)]))


@pytest.mark.every_run
@pytest.mark.parametrize("case", ORACLES["slices"], ids=lambda case: case["name"])
def test_slices_of_a_shift(case):
    laws = [Discrete(case["first"]), Discrete(case["second"])]
    noise = GaussianNoise(np.sqrt(case["variance"]))
    profile = SliceProfile.basis(laws[0].dim)
    found = slice_divergences(laws, noise, profile, alpha=case["alpha"])
    tolerance = case["tolerance"]
    if "values" in case:
        assert_allclose(found.values, case["values"], atol=tolerance)
    assert_allclose(found.averaged, case["averaged"], rtol=tolerance)
    assert_allclose(found.joint, case["joint"], rtol=tolerance)


def test_crossed_points_hide_from_their_slices():
    case = ORACLES["crossed"]
    noise = GaussianNoise(np.sqrt(case["variance"]))
    found = slice_divergences(CROSSED, noise, around(360), alpha=case["alpha"])
    for name in ("largest", "averaged", "joint"):
        assert_allclose(getattr(found, name), case[name], atol=case["tolerance"])
    assert found.averaged <= found.joint <= found.largest < case["full"]
    # along the axes there is nothing to see, and all is there
    axes = slice_divergences(CROSSED, noise, SliceProfile.basis(2), alpha=2)
    assert_allclose(axes.values, 0, atol=1e-9)


@pytest.mark.every_run
def test_a_gaussian_prior_adds_to_the_noise():
    case = ORACLES["gaussian_slice"]
    covariance = np.array(case["covariance"])
    laws = [Gaussian(case["move"], covariance), Gaussian([0.0, 0.0], covariance)]
    profile = SliceProfile.finite([[0.6, 0.8]], allow_degenerate=True)
    noise = GaussianNoise(np.sqrt(case["variance"]))
    found = slice_divergences(laws, noise, profile, alpha=case["alpha"])
    assert_allclose(found.values, case["value"], rtol=1e-9)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 4.0])
def test_two_gaussians_by_the_formula(alpha):
    laws = [Gaussian([1.0, 0.0], [[1, 0.3], [0.3, 0.5]]), Gaussian([0, 0], np.eye(2))]
    noise = CorrelatedGaussianNoise(covariance=[[0.4, 0.1], [0.1, 0.2]])
    added = noise.covariance_matrix(2)
    found = slice_divergences(laws, noise, around(5), alpha=alpha)
    for u, value in zip(found.profile.directions, found.values, strict=True):
        expected = gaussian_renyi_divergence(
            laws[0].mean @ u,
            u @ (laws[0].covariance + added) @ u,
            0.0,
            u @ (laws[1].covariance + added) @ u,
            alpha,
        )
        assert_allclose(value, expected, rtol=1e-8)


def test_a_wider_first_distribution_is_infinitely_far():
    laws = [Gaussian(0.0, 9.0), Gaussian(0.0, 0.0)]
    found = slice_divergences(laws, GaussianNoise(1.0), SliceProfile.basis(1), alpha=4)
    assert found.values[0] == found.averaged == found.joint == np.inf


@given(st.integers(0, 2**31), st.sampled_from([1.5, 3.0, 6.0]), st.floats(0.2, 2))
def test_no_slice_exceeds_the_whole_and_orders_hold(seed, alpha, scale):
    rng = np.random.default_rng(seed)
    laws = [Discrete(rng.normal(size=(4, 2)), rng.integers(1, 5, 4)) for _ in range(2)]
    release = QueryRelease(query=lambda X, y: X, n_records=9, dim=2)
    accountant = GeneralWasserstein(1.0, alpha)
    promise = accountant.certify(GaussianNoise(scale), release, LawsScenario([laws]))
    found = slice_divergences(laws, GaussianNoise(scale), around(6), alpha=alpha)
    assert np.all(found.values >= 0)
    assert found.averaged <= found.joint + 1e-12
    assert found.joint <= found.largest + 1e-12 <= promise.epsilon + 1e-9


def test_far_atoms_are_resolved():
    # a kink between two atoms that are a hundred deviations apart
    laws = [Discrete([0.0, 100.0]), Discrete([1.0, 101.0])]
    found = slice_divergences(laws, GaussianNoise(1.0), SliceProfile.basis(1), alpha=3)
    assert_allclose(found.values, 1.5, rtol=1e-6)


def test_refusals():
    noise, profile = GaussianNoise(1.0), SliceProfile.basis(2)
    points = [[0.0, 0.0], [1.0, 1.0]]
    with refused(UnsupportedError, "audit.profile_infinitely_many_slices"):
        slice_divergences(points, noise, SliceProfile.uniform(2), alpha=2)
    with refused(TypeError, "audit.profile_not_slice_profile"):
        slice_divergences(points, noise, np.eye(2), alpha=2)
    with refused(ValueError, "audit.profile_dimension_mismatch"):
        slice_divergences(points, noise, SliceProfile.basis(3), alpha=2)
    with refused(ValueError, "audit.slices_not_two_secrets"):
        slice_divergences([*points, [2.0, 2.0]], noise, profile, alpha=2)
    for alpha in (1.0, 0.5, np.inf, np.nan):
        with refused(
            ValueError,
            (
                "history.alpha_infinite",
                "parameter.is_nan",
                "parameter.renyi_order_out_of_range",
            ),
        ):
            slice_divergences(points, noise, profile, alpha=alpha)
    with refused(UnsupportedError, "audit.noise_not_gaussian", family="laplace"):
        slice_divergences(points, LaplaceNoise(1.0), profile, alpha=2)
    with refused(ValueError, "audit.divergence_off_grid"):
        slice_divergences([[0.0], [1e6]], noise, SliceProfile.basis(1), alpha=30)
    removed = OutputDistributions(
        distributions=((PointMass([0, 0]), PointMass([1, 1])),),
        secrets=(0, 1),
        pairs=((0, 1),),
        common_part_removed=True,
    )
    with refused(UnsupportedError, "audit.distributions_of_contribution_only"):
        slice_divergences(removed, noise, profile, alpha=2)
