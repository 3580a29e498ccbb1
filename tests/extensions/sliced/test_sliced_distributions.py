"""W_inf between projections of distributions of every kind."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from skpuffer.distributions import (
    Continuous,
    Discrete,
    Gaussian,
    PointMass,
    Samples,
    Support,
    distribution_distance,
    sliced_distribution_distances,
)
from skpuffer.distributions._lattice_sum import LatticeSum
from skpuffer.extensions.sliced import _moves as module
from skpuffer.transport import SliceProfile
from tests.refused import refused

ORACLES = Path(__file__).parents[2] / "oracles" / "sliced.json"
AXES = SliceProfile.basis(2)


def of(u, v, profile=AXES, **options):
    (row,) = sliced_distribution_distances([(u, v)], profile, **options)
    return row.tolist()


@pytest.mark.every_run
def test_a_linear_query_of_gaussians():
    case = json.loads(ORACLES.read_text("utf-8"))["OT-06"]
    matrix, covariance = np.array(case["map"]), np.array(case["covariance"])
    projected = matrix @ covariance @ matrix.T
    np.testing.assert_allclose(projected, case["projected"])
    u, v = (Gaussian(matrix @ mean, projected) for mean in case["means"])
    profile = SliceProfile.finite([case["direction"], [0.8, -0.6]])
    assert of(u, v, profile)[0] == pytest.approx(case["sensitivity"])
    assert np.sum(np.square(of(u, v, profile))) == pytest.approx(case["squared_length"])


def test_gaussians_of_unequal_variance_along_a_slice():
    u, v = Gaussian([0, 0], np.eye(2)), Gaussian([1, 2], np.diag([1.0, 1.5]))
    assert of(u, v) == of(v, u) == [1.0, np.inf]
    # unequal covariances whose projections agree
    turned = Gaussian([3, 0], [[1, 0.5], [0.5, 1]])
    assert of(u, turned) == [3.0, 0.0]
    assert of(u, turned, SliceProfile.finite([[1, 0], [0.6, 0.8]])) == [3.0, np.inf]


def test_a_direction_of_almost_no_variance_is_not_excused():
    u = Gaussian([0, 0], np.diag([1.0, 0.0]))
    v = Gaussian([0, 1], [[1.0, 0.0], [0.0, 1e-14]])
    assert of(u, v) == [0.0, np.inf]
    assert of(u, Gaussian([0, 1], np.diag([1.0, 0.0]))) == [0.0, 1.0]


def test_gaussians_are_infinitely_far_from_points():
    gaussian = Gaussian([0, 0], np.eye(2))
    for points in (PointMass([0, 0]), Support([[0, 0]]), Discrete([[0, 0], [1, 1]])):
        assert of(gaussian, points) == of(points, gaussian) == [np.inf, np.inf]


def test_points_of_all_kinds():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 12, 2))
    counts = rng.integers(1, 5, 12)
    profile = SliceProfile.sampled(2, 9)
    u, v = Discrete(x, counts), Samples(y)
    point, support = PointMass([1.0, 2.0]), Support(y)
    pairs = [(u, v), (u, point), (v, u), (u, support), (support, support)]
    found = sliced_distribution_distances(pairs, profile)
    assert found.shape == (5, 9)
    for row, (p, q) in zip(found, pairs, strict=True):
        for value, direction in zip(row, profile.directions, strict=True):
            one, other = (
                type(z)(float(z.points[0] @ direction))
                if isinstance(z, PointMass)
                else type(z)(z.points @ direction, z.weights)
                for z in (p, q)
            )
            assert value == pytest.approx(distribution_distance(one, other))
        assert row.max() <= distribution_distance(p, q) * (1 + 1e-9)


def test_units():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 2))
    units = [2.0, 0.5]
    for kind in (Samples, Support):
        found = of(kind(x), kind(y), units=units)
        assert found == pytest.approx(of(kind(x / units), kind(y / units)))
    u, v = Gaussian([0, 0], np.eye(2)), Gaussian([1, 1], np.eye(2))
    assert of(u, v, units=units) == [0.5, 2.0]


def test_on_the_line_every_distance_is_known():
    line = SliceProfile.basis(1)
    pairs = [
        (Continuous(stats.expon(0)), Continuous(stats.expon(0.5))),
        (Continuous(stats.uniform(0, 1)), PointMass(0.0)),
        (Continuous(stats.norm(0, 1)), Gaussian(2.0, 1.0)),
        (Gaussian(0.0, 1.0), Gaussian(2.0, 4.0)),
    ]
    for pair in pairs:
        expected = distribution_distance(*pair)
        assert of(*pair, line) == [expected]
        assert of(*pair, line, units=[2.0]) == [expected / 2]


def test_lattice_sums_by_their_steps():
    origin, direction = np.zeros(2), np.array([0.5, -1.0])
    masses = np.array([1, 2, 1], dtype=object)
    u = LatticeSum(np.arange(3), masses, origin, direction)
    v = LatticeSum(np.arange(3) + 2, masses, origin, direction)
    assert of(u, v) == [1.0, 2.0]
    assert of(u, v, units=[1.0, 2.0]) == [1.0, 1.0]
    # of another progression it is a distribution on points
    w = LatticeSum(np.arange(3), masses, origin, np.array([0.5, 1.0]))
    assert of(u, w) == [0.0, 2.0]


def test_distances_are_computed_once(monkeypatch):
    calls = []
    honest = module.sliced_distances
    monkeypatch.setattr(
        module,
        "sliced_distances",
        lambda worlds, *args, **options: (
            calls.append(len(worlds)) or honest(worlds, *args, **options)
        ),
    )
    u, v, w = Samples([0.0, 1.0]), Samples([2.0, 5.0]), Samples([3.0, 9.0])
    line = SliceProfile.basis(1)
    first = sliced_distribution_distances([(u, v), (v, w), (u, w)], line)
    assert calls == [3]
    again = sliced_distribution_distances([(u, w), (u, v)], line)
    assert calls == [3]
    assert again.tolist() == [first[2].tolist(), first[0].tolist()]
    again[:] = 0  # what a caller does with it changes nothing
    assert sliced_distribution_distances([(u, w)], line).tolist() == [first[2].tolist()]
    assert sliced_distribution_distances([], line).shape == (0, 1)


def test_refusals():
    pair = PointMass([0, 0]), PointMass([1, 1])
    with refused(ValueError, "distribution.profile_infinite"):
        sliced_distribution_distances([pair], SliceProfile.uniform(2))
    with refused(ValueError, "distribution.profile_dimension_mismatch", profile_dim=3):
        sliced_distribution_distances([pair], SliceProfile.basis(3))
