"""Accounting for votes: known values, closed forms, and a refuted published claim."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.noise import gaussian_epsilon
from skpuffer.noise import (
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import AttributeScenario, RecordScenario, SimulatorScenario
from tests.refused import refused

from .argmax_distribution import argmax_distribution, divergence

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "pate.json").read_text(encoding="utf-8")
)
BETAS = (1.0, 1.5, 2.0, 3.0)


def release(n_queries=1, **changes):
    return VoteRelease(
        **{
            "n_records": 100,
            "n_teachers": 100,
            "n_classes": 3,
            "n_queries": n_queries,
            **changes,
        }
    )


def noise_of(beta, scale):
    return GeneralizedGaussianNoise(scale, beta=beta)


def certify(noise, votes, scenario=None, accountant=None):
    accountant = PrivacyLoss(delta=1e-5) if accountant is None else accountant
    return accountant.certify(noise, votes, scenario or RecordScenario())


# -- known values -------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
def test_the_law_of_the_argmax(beta):
    oracle = ORACLES["argmax_distribution"]
    law = argmax_distribution(oracle["counts"], oracle["scale"], beta)
    expected = oracle["law"][f"{beta:g}"]
    np.testing.assert_allclose(law, expected, atol=oracle["tolerance"])
    np.testing.assert_allclose(
        argmax_distribution([3] * 4, 5.0, beta), 0.25, atol=1e-12
    )


@pytest.mark.parametrize("beta", BETAS)
def test_one_moved_vote_is_not_one_shift(beta):
    # published: the argmax of counts is as private as one number that moves by one
    oracle = ORACLES["moved_vote"]
    key, epsilon, scale = f"{beta:g}", oracle["epsilon"], oracle["scale"]
    exact = divergence(
        argmax_distribution([50, 48, 2], scale, beta),
        argmax_distribution([49, 49, 2], scale, beta),
        epsilon,
    )
    noise = noise_of(beta, scale)
    claimed = noise.delta(epsilon, 1.0)
    certified = certify(noise, release()).curve.delta(epsilon)
    tolerance = oracle["tolerance"]
    assert exact == pytest.approx(oracle["exact"][key], abs=tolerance)
    assert claimed == pytest.approx(oracle["one_coordinate"][key], abs=tolerance)
    # a grid rounds up, by parts in ten thousand at most
    assert certified == pytest.approx(oracle["two_coordinates"][key], rel=1e-4)
    assert claimed < exact <= certified


@pytest.mark.parametrize("beta", BETAS)
def test_one_vote_that_leaves_is_one_shift(beta):
    oracle = ORACLES["removed_vote"]
    epsilon, scale = oracle["epsilon"], oracle["scale"]
    exact = divergence(
        argmax_distribution([50, 48, 2], scale, beta),
        argmax_distribution([49, 48, 2], scale, beta),
        epsilon,
    )
    assert exact == pytest.approx(oracle["exact"][f"{beta:g}"], abs=oracle["tolerance"])
    left = release(relation="add_remove_vote")
    certified = certify(noise_of(beta, scale), left).curve.delta(epsilon)
    assert exact <= certified + 1e-12
    assert certified == pytest.approx(noise_of(beta, scale).delta(epsilon, 1.0))


@pytest.mark.parametrize(
    "beta, scale, n_queries, left, moved", ORACLES["epsilon_at_1e-5"]["rows"]
)
def test_known_epsilons(beta, scale, n_queries, left, moved):
    oracle, noise = ORACLES["epsilon_at_1e-5"], noise_of(beta, scale)
    near = {"abs": oracle["tolerance"], "rel": oracle["relative_tolerance"]}
    for relation, expected in (("add_remove_vote", left), ("replace_vote", moved)):
        votes = release(n_queries, relation=relation)
        assert certify(noise, votes).epsilon == pytest.approx(expected, **near)


@pytest.mark.parametrize("beta, scale", ORACLES["scale_for_100_queries"]["rows"])
def test_known_scales(beta, scale):
    accountant = PrivacyLoss(1.0, 1e-5, noise="generalized_gaussian", beta=beta)
    noise = accountant.calibrate(release(100), RecordScenario()).noise
    near = ORACLES["scale_for_100_queries"]["relative_tolerance"]
    assert noise.scale == pytest.approx(scale, rel=near)


# -- closed forms -------------------------------------------------------------------


@given(
    scale=st.floats(1.0, 100.0),
    n_queries=st.integers(1, 2000),
    k=st.integers(1, 20),
)
def test_gaussian_noise_has_one_number(scale, n_queries, k):
    certificate = certify(GaussianNoise(scale), release(n_queries), RecordScenario(k=k))
    assert isinstance(certificate.curve, GaussianCurve)
    mu = k * math.sqrt(2 * n_queries) / scale
    assert certificate.curve.mu == pytest.approx(mu)
    assert certificate.epsilon == pytest.approx(gaussian_epsilon(1e-5, mu))
    assert certificate.sensitivity == k
    assert certificate.norm == math.inf


@given(ratio=st.floats(0.5, 10.0), answers=st.integers(1, 50))
def test_the_threshold_is_charged_on_every_query(ratio, answers):
    votes = release(
        50, threshold=60.0, max_answers=answers, threshold_noise_ratio=ratio
    )
    certificate = certify(GaussianNoise(10.0), votes)
    mu = math.sqrt(2 * answers + 50 / ratio**2) / 10
    assert certificate.curve.mu == pytest.approx(mu)
    assert any("50 queries" in str(text) for text in certificate.assumptions)


def test_laplace_noise_at_most_adds_up():
    certificate = certify(LaplaceNoise(10.0), release(3))
    assert certificate.epsilon <= 3 * 2 / 10
    assert certificate.epsilon > 3 * 2 / 10 - 1e-3


def test_a_replaced_voter_is_one_that_leaves_and_one_that_comes():
    joined = release(4, relation="add_remove_vote")
    once = certify(GaussianNoise(5.0), joined)
    twice = certify(GaussianNoise(5.0), joined, RecordScenario(relation="replace"))
    moved = certify(GaussianNoise(5.0), release(4))
    assert once.epsilon < twice.epsilon == moved.epsilon


def test_whatever_a_record_does_it_has_one_vote():
    here = certify(GaussianNoise(5.0), release(4))
    replaced = certify(
        GaussianNoise(5.0), release(4), RecordScenario(relation="replace")
    )
    assert here.epsilon == replaced.epsilon


def test_no_more_teachers_change_than_there_are():
    few = release(n_teachers=7)
    some = certify(GaussianNoise(50.0), few, RecordScenario(k=7))
    many = certify(GaussianNoise(50.0), few, RecordScenario(k=300))
    assert some.epsilon == many.epsilon


# -- properties ---------------------------------------------------------------------


@settings(max_examples=15)
@given(
    n_queries=st.integers(2, 200),
    epsilon=st.floats(0.3, 8.0),
    beta=st.sampled_from([1.0, 1.5, 2.0]),
)
def test_calibration_and_certificate_are_inverse(n_queries, epsilon, beta):
    accountant = PrivacyLoss(epsilon, 1e-5, noise="generalized_gaussian", beta=beta)
    calibration = accountant.calibrate(release(n_queries), RecordScenario())
    back = accountant.certify(calibration.noise, release(n_queries), RecordScenario())
    assert calibration.certificate.epsilon == epsilon
    assert back.epsilon <= epsilon
    assert back.epsilon == pytest.approx(epsilon, rel=2e-3)


@settings(max_examples=10)
@given(scale=st.floats(2.0, 60.0), n_queries=st.integers(2, 100))
def test_ordered(scale, n_queries):
    noise = LaplaceNoise(scale)
    here = certify(noise, release(n_queries)).epsilon
    assert here <= certify(noise, release(n_queries + 1)).epsilon
    assert here <= certify(noise, release(n_queries), RecordScenario(k=2)).epsilon
    assert here >= certify(LaplaceNoise(1.1 * scale), release(n_queries)).epsilon
    tested = release(n_queries, threshold=1.0)
    assert here <= certify(noise, tested).epsilon
    added = RenyiDP(delta=1e-5)
    assert here <= certify(noise, release(n_queries), accountant=added).epsilon * 1.001


# -- scenarios ----------------------------------------------------------------------


def attribute(level, n=400):
    prior = pd.DataFrame({"secret": [0, 0, 1, 1], "value": [0.0, 0.5, 0.5, 1.0]})
    return AttributeScenario("secret", level=level, prior=prior, prior_as="law")


def test_a_secret_of_one_record_costs_one_vote_and_of_all_every_vote():
    noise = GaussianNoise(40.0)
    one = certify(noise, release(5), attribute("record"))
    assert one.epsilon == certify(noise, release(5)).epsilon
    assert one.certified
    every = certify(noise, release(5), attribute("dataset"))
    k = release().n_teachers
    assert every.epsilon == certify(noise, release(5), RecordScenario(k=k)).epsilon


def test_what_does_not_say_how_many_records_differ_is_refused():
    worlds = SimulatorScenario(
        lambda secret, rng: rng.normal(secret, size=(400, 1)), secrets=[0, 1]
    )
    with refused(UnsupportedError, "accountant.facts_not_offered"):
        PrivacyLoss().calibrate(release(), worlds)


def test_accountants_of_one_vector_say_who_would_do():
    answer = GroupPrivacy().supports(release(), RecordScenario())
    assert not answer
    assert "PrivacyLoss" in str(answer.reason)


def test_noise_of_many_scales_is_refused():
    with refused(UnsupportedError, "pate.votes_noise_scales_differ"):
        certify(GaussianNoise((1.0, 2.0, 3.0)), release())


def test_many_votes_take_log_concave_noise():
    noise = GeneralizedCauchyNoise(0.3, exponent=2.0)
    with refused(UnsupportedError, "pate.votes_noise_not_log_concave"):
        certify(noise, release(), RecordScenario(k=2))
    assert certify(noise, release()).epsilon > 0


def test_whole_votes_may_take_integer_noise():
    accountant = PrivacyLoss(2.0, 1e-5, noise="discrete_laplace")
    found = accountant.calibrate(release(), RecordScenario())
    assert found.certificate.epsilon == 2.0
    # as Laplace noise does for two counts that move by one
    assert 0.9 < found.noise.scale < 1.1
