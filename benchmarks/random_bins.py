"""Sampled privacy losses of records in random bins, against jax-privacy's.

    python -m benchmarks.random_bins [--quick]

Delta of a run whose noise is correlated by the square root of prefix sums, four
diagonals of it, and whose records keep one of 100 bins: ours draws as many numbers as
there are bins and weighs them, jax-privacy draws whole histories, one by one. Rows say
processor time on one thread for each sample, the standard error of delta, and the ratio
of times to the same standard error, which is what an estimate costs. ``--quick`` takes
few samples and stores nothing. Where jax-privacy is not installed its algorithm is
followed here, sample by sample, as it documents it; the column "peer" says which.

Stores the figures with versions in ``benchmarks/results/random_bins.csv``. What must
hold on every machine is checked in every run.
"""

import argparse
import math
import time
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pandas as pd
from scipy.signal import convolve
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.noise.strategies import banded_square_root
from skpuffer.privacy_loss.allocation import sampled_delta

BINS, DIAGONALS = 100, 4
#: Epochs, epsilon and a scale. Delta is large enough for the peer to see any loss that
#: counts: the less it is, the more a tilt gains.
RUNS = [(1, 1.0, 0.8), (10, 1.0, 2.5)]


def peer_losses(column, n_steps, sigma, positive, n_samples, seed):
    """Losses by jax-privacy: in the order with the record first, or the other one."""
    from jax_privacy.batch_selection import BallsInBinsSampling
    from jax_privacy.experimental.monte_carlo import sample_generation

    losses, _ = sample_generation.get_privacy_loss_sample(
        BallsInBinsSampling(iterations=n_steps, cycle_length=BINS),
        sigma,
        column,
        seed,
        positive,
        n_samples,
    )
    return losses


def documented_losses(column, n_steps, sigma, positive, n_samples, seed):
    """The same by what it documents: one history at a time, and all bins of each."""
    rng = np.random.default_rng(seed)
    steps = np.arange(n_steps)

    def mode(start):
        return convolve((steps % BINS == start).astype(float), column)[:n_steps]

    losses = np.empty(n_samples)
    modes = np.array([mode(start) for start in range(BINS)])
    squares = np.sum(modes**2, axis=1) / 2
    for i in range(n_samples):
        mean = mode(rng.integers(BINS)) if positive else 0.0
        sample = rng.normal(loc=mean, scale=sigma, size=n_steps)
        loss = logsumexp((modes @ sample - squares) / sigma**2) - math.log(BINS)
        losses[i] = loss if positive else -loss
    return losses


def compare(epochs, epsilon, sigma, direction, n_ours, n_theirs):
    """Times and errors of both at one question."""
    strategy, n_steps = banded_square_root(DIAGONALS), epochs * BINS
    rng = np.random.default_rng(0)
    start = time.process_time()
    means = strategy.means(BINS, n_steps)
    ours = sampled_delta(
        means @ means.T / sigma**2, epsilon, direction, n_samples=n_ours, rng=rng
    )
    our_time = (time.process_time() - start) / n_ours
    sampler, peer = documented_losses, "as documented"
    if find_spec("jax_privacy"):
        sampler, peer = peer_losses, "jax-privacy " + version("jax-privacy")
    start = time.process_time()
    losses = sampler(
        np.array(strategy.column), n_steps, sigma, direction == "remove", n_theirs, 1
    )
    values = -np.expm1(np.minimum(epsilon - losses, 0.0))
    their_time = (time.process_time() - start) / n_theirs
    their_error = values.std() / math.sqrt(n_theirs)
    far = 5 * math.hypot(ours.error, their_error)
    assert abs(values.mean() - ours.estimate) < far + 10 / n_theirs
    ratio = their_time / our_time
    spreads = values.var() / (ours.error**2 * n_ours)
    return {
        "direction": direction,
        "epochs": epochs,
        "epsilon": epsilon,
        "sigma": sigma,
        "delta": ours.estimate,
        "standard_error": ours.error,
        "n_samples": n_ours,
        "microseconds_a_sample": 1e6 * our_time,
        "peer": peer,
        "peer_microseconds_a_sample": 1e6 * their_time,
        "peer_standard_error": their_error,
        "peer_n_samples": n_theirs,
        "times_faster_a_sample": ratio,
        "times_faster_to_the_same_error": ratio * spreads,
    }


def main(argv=None):
    """Run the comparison and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    ours, theirs = (2000, 200) if quick else (200_000, 20_000)
    with threadpool_limits(1):
        rows = [
            compare(*run, direction, ours, theirs)
            for run in RUNS
            for direction in ("remove", "add")
        ]
    shown = [
        "direction",
        "epochs",
        "delta",
        "standard_error",
        "times_faster_a_sample",
        "times_faster_to_the_same_error",
    ]
    print_table(
        [
            [f"{row[k]:.3g}" if k != "direction" else row[k] for k in shown]
            for row in rows
        ],
        shown,
    )
    if not quick:
        packages = versions("numpy", "scipy")
        write_csv(
            pd.DataFrame([row | packages for row in rows]).round(12), "random_bins.csv"
        )


if __name__ == "__main__":
    main()
