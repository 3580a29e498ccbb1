"""Votes on queries that are fixed in advance are one vector, for any accountant."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
)
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import UnsupportedError
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario, SimulatorScenario
from tests.refused import refused, says, warned

from ..attack import assert_tight, promise_of

N, N_QUERIES = 12, 4
ASKED = np.linspace(0.0, 1.0, N_QUERIES)[:, None]
LEVELS = np.arange(N)[:, None] / N


def table(flipped, rng):
    """Rows whose labels say where they are, and in so many the other way round."""
    y = (LEVELS[:, 0] > 0.5).astype(int)
    y[:flipped] ^= 1
    return LEVELS, y


#: The secret is whether two labels are turned over.
WORLDS = SimulatorScenario(
    table, lambda a, b, rng: (table(a, rng), table(b, rng)), secrets=[0, 2], n_draws=3
)


def model(scenario, accountant, **options):
    options = {"n_teachers": N, "n_queries": N_QUERIES, **options}
    return PATEClassifier(
        KNeighborsClassifier(1),
        unlabeled=ASKED,
        scenario=scenario,
        accountant=accountant,
        classes=[0, 1],
        **options,
    )


def test_one_vector_costs_what_the_queries_do():
    release = VoteRelease(
        n_records=N,
        n_teachers=N,
        n_classes=2,
        n_queries=N_QUERIES,
        query=lambda X, y: np.zeros((N_QUERIES, 2)),
    )
    assert release.stacked().sensitivity.value("replace", 2, None) ** 2 == (
        pytest.approx(2 * N_QUERIES)
    )
    for k in (1, 3):
        scenario = RecordScenario(k, "replace")
        stacked = GroupPrivacy(1.0, delta=1e-5).calibrate(release, scenario)
        one_by_one = PrivacyLoss(1.0, 1e-5).calibrate(release, scenario)
        assert stacked.noise.scale == pytest.approx(one_by_one.noise.scale, rel=1e-6)


def test_a_coupled_simulation_sets_the_noise_of_a_student():
    accountant = GeneralWasserstein(1.0, 2.0)
    with warned(UserWarning, "scenario.samples_only_estimate"):
        fitted = model(WORLDS, accountant).fit(*table(2, None))
    certificate = fitted.certificate_
    # two teachers of a record each turn over, in each of the queries
    assert certificate.sensitivity == pytest.approx(2 * np.sqrt(2 * N_QUERIES))
    assert not certificate.certified and not certificate.composable
    assert says(certificate.assumptions, "assume.queries_fixed_before_votes")
    assert fitted.noisy_votes_.shape == (N_QUERIES, 2)
    assert fitted.predict(ASKED).shape == (N_QUERIES,)
    # what was run is what was accounted for, and nothing of it is kept
    assert fitted.release_.query is None
    clusters = model(WORLDS, accountant, student="clusters", n_queries=2)
    with warned(UserWarning, "scenario.samples_only_estimate"):
        assert clusters.fit(*table(2, None)).noisy_votes_.shape == (2, 2)


def test_noise_of_fixed_votes_is_fresh_in_every_fit():
    # each teacher has one record, so that counts are the same whoever is dealt which
    asked = model(WORLDS, GeneralWasserstein(1.0, 2.0))
    with warned(UserWarning, "scenario.samples_only_estimate"):
        first, other = (asked.fit(*table(2, None)).noisy_votes_ for _ in range(2))
    assert not np.array_equal(first, other)


def test_an_attack_on_fixed_votes():
    """Of certain simulated tables the couplings are exact, and so is the attack."""
    accountant = DistributionAwareWasserstein(1.0, 2.0, noise="gaussian")
    votes = [
        np.array([[N - 2 * flipped, 2 * flipped]] * N_QUERIES) for flipped in (0, 1)
    ]
    release = VoteRelease(
        n_records=N,
        n_teachers=N,
        n_classes=2,
        n_queries=N_QUERIES,
        query=lambda X, y: votes[int(np.asarray(y)[0])],
    )
    found = accountant.calibrate(release, WORLDS)
    moved = (votes[0] - votes[1]).ravel()

    def worlds(noise):
        def answered(counts):
            return lambda n, rng: counts.ravel() + noise.sample((n, counts.size), rng)

        return [answered(counts) for counts in votes]

    promise = found.certificate
    assert promise.sensitivity == pytest.approx(np.linalg.norm(moved))
    # an estimate promises nothing, so its curve is attacked
    assert_tight(
        promise_of(promise.curve),
        found.noise,
        worlds,
        score=lambda noise: lambda outputs: outputs @ moved,
        seed=0,
        n_draws=20_000,
    )


def test_votes_that_are_not_fixed_are_refused():
    plain = {"n_records": N, "n_teachers": N, "n_classes": 2, "n_queries": 3}
    with refused(UnsupportedError, "accountant.remedy_other_accountants"):
        GroupPrivacy().calibrate(VoteRelease(**plain), RecordScenario())
    with refused(ValueError, "pate.query_with_threshold"):
        VoteRelease(**plain, threshold=4.0, query=lambda X, y: np.zeros((3, 2)))
    # with a threshold the queries that are answered depend on the noise
    with refused(
        UnsupportedError,
        "accountant.does_not_answer_for_release",
        owner="GeneralWasserstein",
    ):
        model(WORLDS, GeneralWasserstein(), threshold=4.0).fit(*table(2, None))
