"""Attacks on runs accounted for by caps at every history, executed by the engine."""

import itertools
import math

import numpy as np
import pytest

from skpuffer.accountants import HistoryUniformCap
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import RecordScenario
from skpuffer.training import LinearGradients, Squared, train

from ..attack import assert_tight, with_share_of_noise

#: Small, so that each record matters; three of four are the secret.
N, K, STEPS = 4, 3, 2


def pulling(signs):
    """A table whose records pull by the clip norm in either direction, or not."""
    signs = np.asarray(signs, dtype=float)
    return LinearGradients(
        Squared(), np.abs(signs)[:, None], -1e6 * signs, intercept_scale=0.0
    )


def runs(signs, noise, n_runs, rng):
    """Sums of the steps of many runs, and the noise on them, each added up."""
    record = []
    long = GradientRelease(
        n_records=N,
        n_steps=n_runs * STEPS,
        sampling="full_batch",
        optimiser=Optimiser(learning_rate=1e-3),
    )
    train(pulling(signs), long, noise, rng, record=record)
    drawn = np.array([[float(s.clipped_sum[0]), float(s.noise[0])] for s in record])
    by_run = drawn.reshape(n_runs, STEPS, 2).sum(axis=1)
    return by_run[:, 0], by_run[:, 1]


def test_the_worst_case_is_what_an_attacker_sees():
    """Records that pull one way or the other, all of them in every batch."""
    release = GradientRelease(n_records=N, n_steps=STEPS, sampling="full_batch")
    scenario = RecordScenario(k=K, relation="replace")
    found = HistoryUniformCap(2.0, 4.0).calibrate(release, scenario)
    n_runs, rng = 10_000, np.random.default_rng(1)
    worlds = [
        runs([sign] * K + [0] * (N - K), found.noise, n_runs, rng) for sign in (1, -1)
    ]
    assert_tight(
        found.certificate,
        found.noise,
        with_share_of_noise(worlds, found.noise),
        seed=2,
        n_draws=n_runs,
        # of steps with equal noise the sum tells as much as all of them
        score=lambda noise: lambda outputs: outputs[:, 0],
    )


def renyi_of_seen_batches(batches, moved, sigma, alpha):
    """Rényi divergence if each batch, equally likely, is released beside the sum."""
    shifts = [2 * sum(i < moved for i in batch) / sigma for batch in batches]
    moments = [math.exp(alpha * (alpha - 1) * s**2 / 2) for s in shifts]
    return math.log(np.mean(moments)) / (alpha - 1)


@pytest.mark.parametrize("sampling", ["fixed_size", "with_replacement"])
def test_log_moments_are_those_of_all_batches(sampling):
    """Of batches that may be seen, counted one by one."""
    every = {
        "fixed_size": list(itertools.combinations(range(5), 3)),
        "with_replacement": list(itertools.product(range(5), repeat=3)),
    }[sampling]
    release = GradientRelease(n_records=5, batch_size=3, n_steps=1, sampling=sampling)
    for k, sigma, alpha in ((1, 2.0, 2.0), (2, 1.0, 3.5), (4, 3.0, 8.0)):
        accountant = HistoryUniformCap(alpha=alpha, subsampling="log_moment")
        scenario = RecordScenario(k=k, relation="replace")
        found = accountant.certify(GaussianNoise(sigma), release, scenario).epsilon
        exact = renyi_of_seen_batches(every, k, sigma, alpha)
        assert found == pytest.approx(exact, rel=1e-9)
