"""Attacks on votes: labels and noisy counts from two worlds that differ in a record."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skpuffer.accountants import PrivacyLoss
from skpuffer.ensemble import PATEAggregator, PATEClassifier, noisy_argmax
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario

from .attack import attack

HERE, THERE = [25, 25, 0], [24, 26, 0]


def certificate_of(noise, n_queries, **changes):
    release = VoteRelease(
        n_records=50, n_teachers=50, n_classes=3, n_queries=n_queries, **changes
    )
    return PrivacyLoss(delta=1e-5).certify(noise, release, RecordScenario())


@pytest.mark.parametrize(
    "noise",
    [
        LaplaceNoise(6.0),
        GaussianNoise(5.0),
        GeneralizedGaussianNoise(7.0, beta=1.5),
        GeneralizedGaussianNoise(7.0, beta=3.0),
    ],
    ids=["laplace", "gaussian", "1.5", "3"],
)
def test_labels_do_not_beat_the_certificate(noise):
    n_queries = 20
    certificate = certificate_of(noise, n_queries)

    def labels(counts):
        def draw(n, rng):
            found = noisy_argmax(np.tile(counts, (n * n_queries, 1)), noise, rng)
            return (found == 0).reshape(n, n_queries)

        return draw

    report = attack(
        labels(HERE),
        labels(THERE),
        certificate,
        n_draws=20_000,
        # queries alike: how often the first class leads is all there is to know
        score=lambda outputs: outputs.sum(axis=1),
        rng=np.random.default_rng(0),
    )
    assert not report.broken, str(report)
    assert max(f.lower for f in report.findings) > 0.1  # he does learn something


def aggregator(rng=None):
    return PATEAggregator(
        accountant=PrivacyLoss(4.0, 1e-5),
        n_teachers=50,
        n_classes=3,
        n_queries=5,
        random_state=rng,
    )


def histograms(counts):
    """All noisy counts of fresh aggregators."""

    def draw(n, rng):
        votes = np.tile(counts, (5, 1))
        return np.stack([aggregator(rng).histograms(votes).ravel() for _ in range(n)])

    return draw


def test_counts_attain_the_certificate_but_do_not_beat_it():
    direction = np.tile(np.subtract(HERE, THERE), 5)
    report = attack(
        histograms(HERE),
        histograms(THERE),
        aggregator().calibrate().certificate_,
        n_draws=3000,
        score=lambda outputs: outputs @ direction,
        rng=np.random.default_rng(0),
    )
    assert not report.broken, str(report)
    zero = next(f for f in report.findings if f.epsilon == 0)
    assert zero.lower > 0.5 * zero.allowed


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
    assert attack(counts(HERE), counts(THERE), claimed, **arguments).broken
    sound = certificate_of(noise, n_queries)
    assert not attack(counts(HERE), counts(THERE), sound, **arguments).broken


@pytest.mark.slow
def test_whole_classifiers_do_not_beat_the_certificate(n_trials):
    # one record a teacher, which repeats its label: the strongest record there is
    n, n_queries = 10, 4
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

    certificate = pate(np.random.default_rng(0)).fit(X, y).certificate_
    direction = np.tile([1.0, -1.0], n_queries)
    report = attack(
        draws(y),
        draws(other),
        certificate,
        n_draws=n_trials(6000, least=600),
        score=lambda outputs: outputs @ direction,
        rng=np.random.default_rng(0),
    )
    assert not report.broken, str(report)
