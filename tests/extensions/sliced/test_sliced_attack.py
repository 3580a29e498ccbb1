"""Whoever sees the whole vector learns more than any slice: attack and bound."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from skpuffer.accountants import GeneralWasserstein, SlicedWasserstein
from skpuffer.audit import allowed_roc, largest_auc
from skpuffer.distributions import PointMass
from skpuffer.exceptions import UncertifiedError
from skpuffer.privacy import Certificate
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from tests.attack import assert_beaten, assert_tight
from tests.refused import refused as is_refused

ALPHA, DIM = 4.0, 9
MOVE = np.array([2.0, -1.0, 2.0, *[0.0] * (DIM - 3)])
RELEASE = QueryRelease(query=lambda X, y: X, n_records=5, dim=DIM)
SCENARIO = LawsScenario([(PointMass(np.zeros(DIM)), PointMass(MOVE))])


def worlds(noise):
    """Noisy outputs of the second point, and of the first."""
    return [
        lambda n, rng, at=at: at + noise.sample((n, DIM), rng)
        for at in (MOVE, 0.0 * MOVE)
    ]


def toward_the_second(outputs):
    return outputs @ MOVE


@pytest.fixture(scope="module")
def found():
    accountant = SlicedWasserstein(1.0, ALPHA, profile="uniform")
    return accountant.calibrate(RELEASE, SCENARIO)


def test_what_slices_promise_is_not_what_the_vector_keeps(found):
    """In nine dimensions an average over slices of 1 is worth 9 of the vector."""
    assert found.certificate.epsilon == 1
    assert found.certificate.rpp_epsilon == pytest.approx(DIM)
    # the least and the most that a full promise at this epsilon may be
    same = GeneralWasserstein(1.0, ALPHA).calibrate(RELEASE, SCENARIO).certificate
    stated = Certificate(notion="renyi_pufferfish", epsilon=1.0, alpha=ALPHA)
    attacked = {"rng": np.random.default_rng(0), "n_draws": 20_000}
    for full in (same, stated):
        samplers = worlds(found.noise)
        assert_beaten(full, *samplers, score=toward_the_second, **attacked)


def test_the_vector_keeps_what_is_reported_of_it(found):
    """And 0.7 of the noise would not."""
    assert_tight(
        found.certificate.after_processing(),
        found.noise,
        worlds,
        seed=1,
        score=lambda noise: toward_the_second,
        n_draws=20_000,
    )


def test_accuracy_of_the_likelier_point(found):
    """Of two points that are equally likely: sqrt(d eps / (2 alpha)) deviations."""
    rng, n = np.random.default_rng(2), 20_000
    second, first = (draw(n, rng) @ MOVE for draw in worlds(found.noise))
    half = MOVE @ MOVE / 2
    right = int(np.sum(second > half) + np.sum(first <= half))
    accuracy = norm.cdf(math.sqrt(DIM / (2 * ALPHA)))
    assert 1e-6 < binom.cdf(right, 2 * n, accuracy) < 1 - 1e-6
    # more than the loosest full promise at this epsilon allows
    stated = Certificate(notion="renyi_pufferfish", epsilon=1.0, alpha=ALPHA)
    fpr, tpr = allowed_roc(stated)
    allowed = (1 + float(np.max(tpr - fpr))) / 2
    assert binom.sf(right - 1, 2 * n, allowed) < 1e-6
    fpr, tpr = allowed_roc(found.certificate.after_processing())
    assert accuracy <= (1 + float(np.max(tpr - fpr))) / 2 + 1e-3


@pytest.mark.every_run
@pytest.mark.parametrize("aggregation", ["average", "joint"])
def test_slices_allow_an_attacker_anything(aggregation):
    """Nothing follows for whoever sees more than a slice."""
    accountant = SlicedWasserstein(1.0, ALPHA, aggregation, profile="uniform")
    certificate = accountant.calibrate(RELEASE, SCENARIO).certificate
    for refused in (certificate, certificate.to_sliced_approximate(1e-5)):
        with is_refused(UncertifiedError, "audit.slices_bound_no_attack"):
            largest_auc(refused)
    assert 0.5 < largest_auc(certificate.after_processing()) < 1
