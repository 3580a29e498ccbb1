"""What accountants of additive noise make of a bound on the move of an output."""

import math

import pytest

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.distributions import PointMass, Samples
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.kernel.sums import SensitivityBound, claim_of_bound, shift_of
from skpuffer.noise import GaussianNoise, Shift
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, RecordScenario
from tests.refused import refused


def query(**options):
    options = {"sensitivity": Sensitivity(add_remove={2: 1.0})} | options
    return QueryRelease(
        **{"query": lambda X, y: X.sum(axis=0), "n_records": 9, "dim": 1} | options
    )


def claimed(noise, bound, alpha=None, delta=None):
    """What the rule claims of a noise against a bound, at an order or with a delta."""
    return claim_of_bound(
        noise,
        bound,
        query(),
        alpha=2.0 if alpha is None and delta is None else alpha,
        delta=delta,
        noise_delta=None if delta is None else delta - bound.delta,
        composable=True,
        source=Statement("source.group_privacy_one_coupling"),
    )


@pytest.mark.parametrize(
    "budget, known, expected",
    [
        ({}, {}, Notion.RENYI_PUFFERFISH),
        ({}, {"arbitrary": True}, Notion.RENYI_DP),
        ({}, {"delta": 0.1}, Notion.APPROXIMATE_RENYI_PUFFERFISH),
        ({"alpha": math.inf}, {}, Notion.PURE_PUFFERFISH),
        (
            {"alpha": math.inf},
            {"arbitrary": True},
            Notion.PURE_DP,
        ),
        (
            {"alpha": math.inf},
            {"delta": 0.1},
            Notion.APPROXIMATE_RENYI_PUFFERFISH,
        ),
        ({"delta": 0.2}, {}, Notion.APPROXIMATE_PUFFERFISH),
        ({"delta": 0.2}, {"arbitrary": True}, Notion.APPROXIMATE_DP),
        ({"delta": 0.2}, {"delta": 0.1}, Notion.APPROXIMATE_PUFFERFISH),
        ({}, {"certified": False}, Notion.ESTIMATED),
        ({"delta": 0.2}, {"certified": False, "arbitrary": True}, Notion.ESTIMATED),
    ],
)
def test_the_notion_says_no_more_than_the_bound(budget, known, expected):
    bound = SensitivityBound(1.0, 2.0, **known)
    assert claimed(GaussianNoise(1.0), bound, **budget).notion is expected


def test_the_shift_is_the_ball_in_the_units_of_the_release():
    release = query(dim=2, units=(1.0, 5.0))
    shift = shift_of(SensitivityBound(3.0, 1.0), release)
    assert shift == Shift(3.0, norm=1.0, dim=2, weights=(1.0, 5.0))


def test_delta_is_shared_with_the_event():
    accountant = GeneralWasserstein(delta=0.3)
    assert accountant._noise_delta(SensitivityBound(1.0, 2)) == 0.3
    left = accountant._noise_delta(SensitivityBound(1.0, 2, delta=0.1))
    assert left == pytest.approx(0.2)
    for delta in (0.3, 0.4):
        with refused(ValueError, "event.mass_above_delta"):
            accountant._noise_delta(SensitivityBound(1.0, 2, delta=delta))


def test_a_value_that_changes_is_a_record_that_leaves_and_one_that_comes():
    noise = GaussianNoise(2.0)
    for relation, factor in (("replace", 1.0), ("add_remove", 2.0)):
        bound = SensitivityBound(1.0, 2.0, relation=relation)
        epsilon = claimed(noise, bound, alpha=4.0).rpp_epsilon
        assert epsilon == pytest.approx(4 / 2 * (factor / 2) ** 2)
    for known in ({"certified": False}, {"delta": 0.1}):
        bound = SensitivityBound(1.0, 2.0, **known)
        assert claimed(noise, bound, alpha=4.0).rpp_epsilon == math.inf


def test_nothing_bounds_the_move():
    with refused(UnsupportedError, "accountant.remedy_bound_record"):
        GroupPrivacy().calibrate(query(sensitivity=None), RecordScenario())
    wide = query(dim=None)
    laplace = GroupPrivacy(alpha=math.inf, noise="laplace")
    with refused(InfiniteDistanceError, "release.vector_length_unknown"):
        laplace.calibrate(wide, RecordScenario())


def test_samples_that_do_not_move_are_no_ground_for_no_noise():
    still = LawsScenario([(Samples([0.0, 1.0]), Samples([1.0, 0.0]))])
    with refused(UnsupportedError, "noise.samples_do_not_move"):
        GeneralWasserstein().calibrate(query(), still)
    known = LawsScenario([(PointMass(1.0), PointMass(1.0))])
    found = GeneralWasserstein().calibrate(query(), known)
    assert found.noise.is_zero and found.certificate.epsilon == 0.0


def test_only_one_record_is_compared_with_one_record():
    for k, expected in ((1, None), (2, None)):
        found = GroupPrivacy().calibrate(query(), RecordScenario(k=k)).certificate
        assert found.record_sensitivity is expected  # there are no others to compare
    laws = LawsScenario([(PointMass(0.0), PointMass(0.5))])
    found = GeneralWasserstein().calibrate(query(), laws).certificate
    assert found.record_sensitivity == 2.0 and found.gain == 4.0
