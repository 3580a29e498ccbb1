"""Attacks on votes: labels and noisy counts from two worlds that differ in a record."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skpuffer.accountants import PrivacyLoss
from skpuffer.ensemble import PATEAggregator, PATEClassifier, noisy_argmax
from skpuffer.ensemble._session import VoteSession
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario

from .attack import assert_beaten, assert_tight, assert_within, weakened

HERE, THERE = [25, 25, 0], [24, 26, 0]


def certificate_of(noise, n_queries, **changes):
    release = VoteRelease(
        n_records=50, n_teachers=50, n_classes=3, n_queries=n_queries, **changes
    )
    return PrivacyLoss(delta=1e-5).certify(noise, release, RecordScenario())


@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize(
    "noise",
    [
        LaplaceNoise(1.4),
        GaussianNoise(1.2),
        GeneralizedGaussianNoise(1.5, beta=1.5),
        GeneralizedGaussianNoise(2.0, beta=3.0),
    ],
    ids=["laplace", "gaussian", "1.5", "3"],
)
def test_labels_do_not_beat_the_certificate(noise, n_queries):
    # it covers the counts. Of votes that a record turns over, the label says which of
    # the two worlds is likelier, and that is all that guessing takes: of one query, as
    # much as the counts. Of several it is less: the counts also say how much likelier.
    turned = [25, 24, 1], [24, 25, 1]

    def labels(counts, noise):
        def draw(n, rng):
            found = noisy_argmax(np.tile(counts, (n * n_queries, 1)), noise, rng)
            return (found == 0).reshape(n, n_queries)

        return draw

    assert_tight(
        certificate_of(noise, n_queries),
        noise,
        lambda noise: [labels(counts, noise) for counts in turned],
        # queries alike: how often the first class leads is all there is to know
        score=lambda noise: lambda outputs: outputs.sum(axis=1),
        seed=0,
        n_draws=20_000,
    )


def aggregator(rng=None):
    return PATEAggregator(
        accountant=PrivacyLoss(2.0, 0.05),
        n_teachers=50,
        n_classes=3,
        n_queries=5,
        random_state=rng,
    )


def answered(votes, release, noise):
    """All noisy counts of sessions, as an aggregator or teachers have them."""

    def draw(n, rng):
        sessions = (VoteSession(release, noise, rng) for _ in range(n))
        return np.stack([each.histograms(votes).ravel() for each in sessions])

    return draw


def test_counts_attain_the_certificate_but_do_not_beat_it():
    direction = np.tile(np.subtract(HERE, THERE), 5)
    fitted = aggregator().calibrate()
    assert_tight(
        fitted.certificate_,
        fitted.noise_,
        lambda noise: [
            answered(np.tile(counts, (5, 1)), fitted.release_, noise)
            for counts in (HERE, THERE)
        ],
        score=lambda noise: lambda outputs: outputs @ direction,
        seed=0,
        n_draws=3000,
    )


def test_the_published_claim_of_one_shift_is_broken():
    # accounting a moved vote as one coordinate promises less than the counts give away
    noise, n_queries = GaussianNoise(4.0), 20
    claimed = certificate_of(noise, n_queries, relation="add_remove_vote")

    def counts(mean):
        def draw(n, rng):
            votes = np.tile(np.asarray(mean, float), (n, n_queries, 1))
            return (votes + noise.sample(votes.shape, rng)).reshape(n, -1)

        return draw

    direction = np.tile(np.subtract(HERE, THERE), n_queries)
    arguments = {
        "n_draws": 20_000,
        "score": lambda outputs: outputs @ direction,
        "rng": np.random.default_rng(0),
    }
    worlds = counts(HERE), counts(THERE)
    assert_beaten(claimed, *worlds, **arguments)
    assert_within(certificate_of(noise, n_queries), *worlds, **arguments)


@pytest.mark.slow
def test_whole_classifiers_do_not_beat_the_certificate(n_trials):
    # one record a teacher, which repeats its label: the strongest record there is
    n, n_queries = 4, 4
    X = np.zeros((n, 1))
    y = np.tile([0, 1], n // 2)
    other = y.copy()
    other[0] = 1
    asked = np.arange(n_queries, dtype=float)[:, None]

    def pate(rng):
        return PATEClassifier(
            KNeighborsClassifier(1),
            n_teachers=n,
            n_queries=n_queries,
            classes=[0, 1],
            accountant=PrivacyLoss(2.0, 0.05),
            random_state=rng,
        )

    def draws(target):
        def draw(n_draws, rng):
            return np.stack(
                [
                    pate(rng).fit(X, target).noisy_votes(asked).ravel()
                    for _ in range(n_draws)
                ]
            )

        return draw

    fitted = pate(np.random.default_rng(0)).fit(X, y)
    direction = np.tile([1.0, -1.0], n_queries)
    options = {
        "score": lambda outputs: outputs @ direction,
        "rng": np.random.default_rng(0),
    }
    n_draws = n_trials(6000, least=300)
    worlds = draws(y), draws(other)
    assert_within(fitted.certificate_, *worlds, n_draws=n_draws, **options)
    # what less noise would have shown, to the same attacker
    worlds = [
        answered(
            np.tile(np.bincount(target), (n_queries, 1)),
            fitted.release_,
            weakened(fitted.noise_),
        )
        for target in (y, other)
    ]
    assert_beaten(fitted.certificate_, *worlds, n_draws=6000, **options)
