"""Laws of an output and the distances between them."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import GeneralWasserstein
from skpuffer.distributions import (
    Discrete,
    Gaussian,
    PointMass,
    Samples,
    Support,
    distribution_distance,
)
from skpuffer.distributions._distributions import _support_diameter, largest_distance
from skpuffer.exceptions import InfiniteDistanceError, ScenarioError
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario, OutputDistributions
from tests.refused import refused

atoms = st.lists(st.integers(-9, 9), min_size=1, max_size=8)
RELEASE = QueryRelease(query=lambda X, y: X, n_records=4, dim=1, name="count")


def calibrate(*pairs, release=RELEASE, **options):
    return GeneralWasserstein(**options).calibrate(release, LawsScenario(list(pairs)))


@given(atoms, atoms)
def test_any_law_on_a_support_is_at_least_as_far(x, y):
    known = distribution_distance(Discrete(x), Discrete(y))
    for u, v in (
        (Support(x), Support(y)),
        (Support(x), Discrete(y)),
        (Discrete(x), Support(y)),
    ):
        assert known <= distribution_distance(u, v)
        assert distribution_distance(u, v) == max(abs(a - b) for a in x for b in y)


@given(atoms, atoms, atoms)
def test_a_distance_is_a_distance(x, y, z):
    u, v, w = Discrete(x), Discrete(y), Discrete(z)
    assert distribution_distance(u, u) == 0.0
    assert distribution_distance(u, v) == distribution_distance(v, u)
    assert distribution_distance(u, w) <= distribution_distance(
        u, v
    ) + distribution_distance(v, w)
    assert distribution_distance(u, v) >= abs(u.mean - v.mean)[0] - 1e-12


@given(atoms, atoms, st.sampled_from([1, 2, math.inf]))
def test_units_divide_displacements(x, y, norm):
    n = min(len(x), len(y))
    u = np.column_stack([x[:n], y[:n]]).astype(float)
    v = u + [3.0, 40.0]
    assert distribution_distance(
        Discrete(u), Discrete(v), norm, units=(1.0, 10.0)
    ) == pytest.approx(np.linalg.norm([3.0, 4.0], ord=norm))
    assert distribution_distance(
        Support(u), Support(u), norm, units=(2.0, 2.0)
    ) == pytest.approx(distribution_distance(Support(u), Support(u), norm) / 2)


@pytest.mark.parametrize("law", [Discrete, Support])
@pytest.mark.parametrize("move", [[5.0], [5.0, 0.0], [0.0, 50.0]], ids=str)
def test_any_coordinate_may_reach_the_ceiling(law, move):
    units = (1.0, 10.0)[: len(move)]
    still = PointMass(np.zeros(len(move)))
    pairs = [(still, still), (law([[0.0] * len(move)]), law([move]))]
    assert largest_distance(pairs, units=units, ceiling=5.0) == (math.inf, 1)
    assert largest_distance(pairs, units=units, ceiling=6.0) == (5.0, 1)


def test_a_distance_may_reach_the_ceiling_where_no_coordinate_does():
    pair = Discrete([[0.0, 0.0], [1.0, 0.0]]), Discrete([[4.0, 4.0], [5.0, 4.0]])
    found = [distribution_distance(*pair, ceiling=ceiling) for ceiling in (5.0, 6.0)]
    assert found == [math.inf, pytest.approx(math.sqrt(32))]


def test_gaussian_laws():
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    u, v = Gaussian([0.0, 0.0], covariance), Gaussian([3.0, 4.0], covariance)
    assert distribution_distance(u, v) == pytest.approx(5.0)
    assert distribution_distance(u, v, norm=1) == pytest.approx(7.0)
    assert distribution_distance(u, v, units=(3.0, 1.0)) == pytest.approx(math.sqrt(17))
    assert calibrate((Gaussian(0, 4), Gaussian(1, 4))).certificate.sensitivity == 1.0


@pytest.mark.parametrize(
    "pair",
    [
        (Gaussian(0.0, 1.0), Gaussian(0.0, 1.3**2)),
        (Gaussian(0.0, 1.0), PointMass(0.0)),
        (PointMass(0.0), Gaussian(0.0, 1.0)),
    ],
)
def test_an_infinite_distance_names_who_can_bear_it(pair):
    assert distribution_distance(*pair) == math.inf
    with pytest.raises(InfiniteDistanceError) as caught:
        calibrate((PointMass(0), PointMass(1)), pair)
    for word in ("'count'", "infinite", "GeneralWasserstein", "GroupPrivacy"):
        assert word in str(caught.value)
    assert "approximate" in str(caught.value)
    assert "distribution-aware" in str(caught.value)


def test_samples_of_unequal_gaussians_look_finite_and_are_labelled():
    """Where the true distance is infinite a sample shows some number: an estimate."""
    rng = np.random.default_rng(0)
    laws = Samples(rng.normal(0, 1, 1000)), Samples(rng.normal(1, 1.3, 1000))
    found = calibrate(laws)
    assert 0 < found.certificate.sensitivity < 10
    assert found.certificate.notion is Notion.ESTIMATED
    # one estimated law among known ones is enough
    mixed = calibrate((PointMass(0), PointMass(1)), (PointMass(0), laws[0]))
    assert mixed.certificate.notion is Notion.ESTIMATED


def test_a_rare_atom_counts_whatever_its_mass():
    rare = Discrete([0.0, 1e6], [1 - 1e-13, 1e-13])
    assert distribution_distance(rare, PointMass(0.0)) == 1e6
    assert (
        distribution_distance(Discrete([0.0, 5.0], [1.0, 0.0]), PointMass(0.0)) == 0.0
    )


def test_masses_that_were_meant_to_be_equal():
    u = Discrete([0, 1], [0.1 + 0.2, 0.7])
    assert distribution_distance(u, Discrete([0, 1], [0.3, 0.7])) == 0.0
    thirds = [Fraction(1, 3), Fraction(2, 3)]
    assert (
        distribution_distance(Discrete([0, 1], thirds), Discrete([0, 1], [1, 2])) == 0.0
    )


def test_a_caller_cannot_change_a_law():
    points, mean = np.array([0.0, 1.0]), np.array([0.0])
    law, gaussian = Discrete(points), Gaussian(mean, 1.0)
    points[1] = mean[0] = 9.0
    assert distribution_distance(law, Discrete([0.0, 1.0])) == 0.0
    assert gaussian.mean[0] == 0.0
    for array in (law.points, gaussian.mean, gaussian.covariance):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


def test_laws_are_shared_by_clones_and_survive_pickling():
    law = Discrete([0, 1], [1, 3])
    scenario = LawsScenario([(law, PointMass(2))])
    assert clone(scenario).laws[0][0] is law
    again = pickle.loads(pickle.dumps(scenario))
    assert distribution_distance(again.laws[0][0], copy.deepcopy(law)) == 0.0
    assert (
        GeneralWasserstein().calibrate(RELEASE, again).certificate
        == GeneralWasserstein().calibrate(RELEASE, scenario).certificate
    )


def test_draws_follow_the_law():
    rng = np.random.default_rng(1)
    law = Discrete([[0, 0], [1, 2]], [1, 3])
    draws = law.sample(20_000, rng)
    assert draws.shape == (20_000, 2)
    assert draws.mean(axis=0) == pytest.approx(law.mean, abs=0.03)
    draws = Gaussian([1.0, 2.0], [[1, 0.5], [0.5, 1]]).sample(20_000, rng)
    assert np.cov(draws.T)[0, 1] == pytest.approx(0.5, abs=0.05)


def test_the_fact():
    fact = (
        LawsScenario([(PointMass(0), PointMass(1)), (PointMass(5), PointMass(7))])
        .bind(RELEASE.context)
        .fact(OutputDistributions, RELEASE)
    )
    assert [(i, j) for _, i, j, _, _ in fact.pairs_of_distributions()] == [
        (0, 1),
        (2, 3),
    ]
    assert fact.certified and not fact.common_part_removed


@pytest.mark.parametrize(
    "laws",
    [
        [],
        None,
        3,
        [(PointMass(0),)],
        [(PointMass(0), 1.0)],
        [PointMass(0), PointMass(1)],
        [(PointMass(0), PointMass([0, 1]))],
    ],
)
def test_bad_laws(laws):
    with refused(ScenarioError, ("laws.dimensions_mixed", "laws.pairs_not_a_list")):
        LawsScenario(laws).check()


def test_laws_of_another_dimension_than_the_release():
    with refused(
        ScenarioError,
        "laws.dimension_differs_from_release",
        n_coordinates=2,
        name="count",
        n_numbers=1,
    ):
        calibrate((PointMass([0, 0]), PointMass([1, 0])))
    with refused(
        ValueError, "distribution.coordinates_unequal", first_dim=1, second_dim=2
    ):
        distribution_distance(PointMass(0), PointMass([0, 0]))


@pytest.mark.parametrize(
    "make, code, parameters",
    [
        (lambda: Discrete([]), "distribution.points_of_wrong_shape", {}),
        (
            lambda: Discrete([0, math.nan]),
            "parameter.array_not_finite",
            {"name": "points"},
        ),
        (
            lambda: Discrete([0, math.inf]),
            "parameter.array_not_finite",
            {"name": "points"},
        ),
        (
            lambda: Discrete(np.zeros((2, 2, 2))),
            "distribution.points_of_wrong_shape",
            {},
        ),
        (
            lambda: Discrete([0, 1], [0.5, 0.6]),
            "parameter.masses_not_sum_one",
            {"name": "weights"},
        ),
        (
            lambda: Discrete([0, 1], [-1, 2]),
            "transport.masses_invalid",
            {"name": "weights"},
        ),
        (
            lambda: Discrete([0, 1], [0, 0]),
            "transport.masses_invalid",
            {"name": "weights"},
        ),
        (
            lambda: Discrete([0, 1], [0.5, math.nan]),
            "transport.masses_invalid",
            {"name": "weights"},
        ),
        (
            lambda: Discrete([0, 1], [1]),
            "transport.masses_count_differs",
            {"name": "weights"},
        ),
        (
            lambda: Gaussian(0, -1.0),
            "parameter.covariance_not_positive_definite",
            {"name": "covariance"},
        ),
        (lambda: Gaussian([0, 0], 1.0), "distribution.covariance_of_wrong_shape", {}),
        (
            lambda: Gaussian([0, 0], [[1, 0.5], [0.2, 1]]),
            "parameter.covariance_not_symmetric",
            {"name": "covariance"},
        ),
        (
            lambda: Gaussian(0, -1e-11),
            "parameter.covariance_not_positive_definite",
            {"name": "covariance", "kind": "semi-definite"},
        ),
        (
            lambda: Gaussian([0, 0], [[1e-9, 5e-10], [-5e-10, 1e-9]]),
            "parameter.covariance_not_symmetric",
            {"name": "covariance"},
        ),
        (
            lambda: Gaussian(math.nan, 1.0),
            "parameter.array_not_finite",
            {"name": "mean"},
        ),
    ],
)
def test_bad_law(make, code, parameters):
    with refused(ValueError, code, **parameters):
        make()


@pytest.mark.parametrize("norm, largest", [(1.0, 14.0), (2.0, 10.0), (math.inf, 8.0)])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_diameter_of_supports_is_found_block_by_block(norm, largest, block):
    x, y = np.array([[0.0, 0.0], [1, 1], [2, 0], [0, 3]]), np.array([[3.0, 3], [8, 6]])
    assert _support_diameter(x, y, norm, block) == pytest.approx(largest, rel=1e-12)
    # the farthest in the last block of rows
    assert _support_diameter(-x, -y, norm, block) == pytest.approx(largest, rel=1e-12)
