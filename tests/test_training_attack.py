"""Attacks on whole training runs: canaries, in two worlds and in one run.

The attacker sees every noisy sum of a run, which is more than the parameters say. His
canary's gradient is as long as the clip norm wherever it is, all others are zero or
against it, and he knows how batches are drawn.
"""

import math

import numpy as np
import pytest
from scipy import stats

from skpuffer.accountants import PrivacyLoss
from skpuffer.noise import GaussianNoise
from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.training import LinearGradients, Optimiser, Squared, train

from .attack import attack

N, BATCH, STEPS = 20, 5, 4


def pulling(n_records, *signs):
    """A table whose first records pull as hard as they may, the others not at all."""
    X = np.zeros((n_records, 1))
    y = np.zeros(n_records)
    X[: len(signs), 0] = np.abs(signs)  # a zero row is as good as absent
    y[: len(signs)] = -1e6 * np.array(signs)
    return LinearGradients(Squared(), X, y, intercept_scale=0.0)


def transcripts(release, signs, scale, n_runs, seed):
    """Noisy sums of so many runs, of shape (n_runs, n_steps)."""
    gradients, rng = pulling(release.n_records, *signs), np.random.default_rng(seed)
    out = np.empty((n_runs, release.n_steps))
    for run in range(n_runs):
        record = []
        train(
            gradients,
            release,
            GaussianNoise(scale),
            Optimiser(learning_rate=1e-3),
            rng,
            record=record,
        )
        out[run] = [float((step.clipped_sum + step.noise)[0]) for step in record]
    return out


def log_likelihood(sums, release, sign, scale):
    """Log-likelihood of the noisy sums, steps as independent, up to a constant."""
    n, size = release.n_records, release.batch_size
    if release.sampling == "full_batch":
        hits = [0.0, 1.0]
    elif release.sampling == "with_replacement":
        hits = stats.binom.pmf(np.arange(size + 1), size, 1 / n)
    else:
        hits = [1 - release.divisor / n, release.divisor / n]
    likelihood = sum(
        p * np.exp(-((sums - sign * j) ** 2) / (2 * scale**2))
        for j, p in enumerate(hits)
    )
    return np.log(likelihood).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("sampling", SAMPLING_SCHEMES)
def test_no_canary_beats_the_certificate(sampling, relation, n_trials):
    release = GradientRelease(
        n_records=N,
        batch_size=None if sampling == "full_batch" else BATCH,
        n_steps=STEPS,
        sampling=sampling,
    )
    scale = 1.0
    certificate = PrivacyLoss(delta=1e-5).certify(
        GaussianNoise(scale), release, RecordScenario(relation=relation)
    )
    other = 0 if relation == "add_remove" else -1
    n_runs = n_trials(20_000, least=1500)

    def score(sums):
        return log_likelihood(sums, release, 1, scale) - log_likelihood(
            sums, release, other, scale
        )

    report = attack(
        lambda n, rng: transcripts(release, (1,), scale, n, rng),
        lambda n, rng: transcripts(release, (other,), scale, n, rng),
        certificate,
        n_draws=n_runs,
        score=score,
        rng=np.random.default_rng(0),
    )
    assert not report.broken, report.worst
    # and the attacker is no straw man: he finds what half the noise would have shown
    if sampling == "full_batch":
        assert max(f.lower for f in report.findings) > 0.3


#: Gradients of a household of three in either world.
HOUSEHOLDS = {
    "leaves": ("add_remove", (1, 1, 1), (0, 0, 0)),
    "one comes, two go": ("add_remove", (1, 1, 0), (0, 0, -1)),
    "others come": ("replace", (1, 1, 1), (-1, -1, -1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", HOUSEHOLDS)
def test_no_household_beats_the_certificate(how, n_trials):
    relation, first, second = HOUSEHOLDS[how]
    release = GradientRelease(n_records=N, batch_size=BATCH, n_steps=STEPS)
    noise = GaussianNoise(1.0)

    def log_density(sums, signs):
        sign, size = np.sign(sum(signs)), int(np.abs(signs).sum())
        weights = stats.binom.pmf(np.arange(size + 1), size, release.sampling_rate)
        mixed = sum(
            w * np.exp(-((sums - sign * j) ** 2) / 2) for j, w in enumerate(weights)
        )
        return np.log(mixed).sum(axis=1)

    accountant = PrivacyLoss(delta=1e-5)
    broken = {}
    for k in (1, 3):
        report = attack(
            lambda n, rng: transcripts(release, first, 1.0, n, rng),
            lambda n, rng: transcripts(release, second, 1.0, n, rng),
            accountant.certify(noise, release, RecordScenario(k, relation)),
            n_draws=n_trials(20_000, least=1500),
            score=lambda sums: log_density(sums, first) - log_density(sums, second),
            rng=np.random.default_rng(0),
        )
        broken[k] = report.broken
    # that of a single record does not cover all three
    assert broken == {1: True, 3: False}


def one_run_p_value(epsilon, delta, n_canaries, n_guesses, n_right):
    """How likely so many right guesses are under (epsilon, delta), at most.

    Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run,
    Theorem 5.2: each canary is in or out by its own coin.
    """
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    law = stats.binom(n_guesses, p)
    tail = law.sf(n_right - 1)
    gained = [
        2 * (law.cdf(n_right - 1) - law.cdf(n_right - i - 1)) / i
        for i in range(1, n_right + 1)
    ]
    return tail + delta * n_canaries * max(gained)


def one_run(scale, sampling, seed, n_canaries=1000):
    """Canaries in coordinates of their own; returns who was in, and their scores."""
    rng = np.random.default_rng(seed)
    inside = rng.integers(0, 2, size=n_canaries)
    X = np.diag(inside.astype(float))
    gradients = LinearGradients(
        Squared(), X, np.full(n_canaries, -1e6), intercept_scale=0.0
    )
    release = GradientRelease(
        n_records=n_canaries,
        batch_size=None if sampling == "full_batch" else n_canaries // 4,
        n_steps=STEPS,
        sampling=sampling,
    )
    record = []
    train(
        gradients,
        release,
        GaussianNoise(scale),
        Optimiser(learning_rate=1e-3),
        rng,
        record=record,
    )
    scores = sum(step.clipped_sum + step.noise for step in record)
    return release, inside, scores


@pytest.mark.parametrize("sampling", SAMPLING_SCHEMES)
def test_one_run_of_many_canaries_does_not_refute_the_certificate(sampling):
    scale = 2.0
    release, inside, scores = one_run(scale, sampling, seed=1)
    certificate = PrivacyLoss(delta=1e-5).certify(
        GaussianNoise(scale), release, RecordScenario()
    )
    n_guesses = 200
    sure = np.argsort(np.abs(scores - np.median(scores)))[-n_guesses:]
    right = int(np.sum((scores[sure] > np.median(scores)) == inside[sure]))
    p_value = one_run_p_value(
        certificate.epsilon, certificate.delta, len(inside), n_guesses, right
    )
    assert p_value > 1e-6
    assert right > n_guesses / 2  # the guesses are good ones


def test_one_run_refutes_a_certificate_of_too_little_noise():
    release, inside, scores = one_run(0.5, "full_batch", seed=1)
    promised = PrivacyLoss(delta=1e-10).certify(
        GaussianNoise(8.0), release, RecordScenario()
    )
    sure = np.argsort(np.abs(scores - np.median(scores)))[-200:]
    right = int(np.sum((scores[sure] > np.median(scores)) == inside[sure]))
    p_value = one_run_p_value(promised.epsilon, 1e-10, len(inside), 200, right)
    assert p_value < 1e-6
