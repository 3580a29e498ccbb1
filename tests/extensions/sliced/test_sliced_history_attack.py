"""Attacks on runs accounted for by caps at every history, executed by the engine."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom, norm

from skpuffer.accountants import HistoryUniformCap
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import RecordScenario
from skpuffer.training import LinearGradients, Squared, train
from tests.attack import assert_tight, with_share_of_noise

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


@pytest.mark.every_run
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


def renyi_of_hidden_batches(chances, move, alpha):
    """Rényi divergence of a noisy sum whose records pull one way or the other."""
    counts = np.arange(len(chances))
    far = 12 + move * counts[-1]
    x = np.linspace(-far, far, 8001)
    one, other = (
        logsumexp(np.log(chances)[:, None] + norm.logpdf(x - m[:, None]), axis=0)
        for m in (move * counts, -move * counts)
    )
    total = logsumexp(alpha * one + (1 - alpha) * other) + math.log(x[1] - x[0])
    return float(total) / (alpha - 1)


SLICES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("subsampling", ["mean_square", "log_moment"])
@pytest.mark.parametrize("sampling", ["fixed_size", "with_replacement", "full_batch"])
def test_no_direction_of_an_attacker_beats_caps_along_slices(
    sampling, subsampling, n_steps
):
    """Records pull along any direction; the slices of all steps are looked at."""
    n, size, k, alpha, sigma = 6, 3, 2, 3.0, 4.0
    batch = {} if sampling == "full_batch" else {"batch_size": size}
    release = GradientRelease(
        n_records=n, n_steps=n_steps, dim=2, sampling=sampling, **batch
    )
    chances = {
        "fixed_size": hypergeom.pmf(np.arange(k + 1), n, k, size),
        "with_replacement": binom.pmf(np.arange(size + 1), size, k / n),
        "full_batch": np.array([1e-300, 1e-300, 1.0]),
    }[sampling]
    along = {"averaging": "averaged", "slices": SLICES}
    if subsampling == "log_moment":
        along = {}  # a promise about all directions: the attacker looks along his own
    accountant = HistoryUniformCap(1.0, alpha, subsampling, **along)
    scenario = RecordScenario(k=k, relation="replace")
    angles = np.linspace(0, math.pi, 25)

    def worst(scale):
        pulls = [[math.cos(angle), math.sin(angle)] for angle in angles]
        seen = [np.abs(SLICES @ pull) for pull in pulls] if along else [np.ones(1)]
        return n_steps * max(
            np.mean([renyi_of_hidden_batches(chances, m / scale, alpha) for m in moves])
            for moves in seen
        )

    stated = accountant.certify(GaussianNoise(sigma), release, scenario).epsilon
    assert worst(sigma) <= stated * (1 + 1e-9)
    if sampling == "full_batch" and n_steps == 1:
        # nothing is hidden, so the attack is as good as the bound
        assert worst(0.7 * sigma) > stated
