"""How far the bounds of runs in bins are above the truth, by family and bandwidth.

    python -m benchmarks.allocation_bounds [--quick]

Records draw one of 100 bins and keep it; noise is correlated by a strategy. The noise
that is promised at delta = 1e-5 of a record added or removed, by bounds of Markov
chains, beside that by Monte Carlo with its interval, which is no promise; and at the
noise that is promised, each direction's bound beside an estimate with fresh draws. No
bound may be below an estimate by more than chance makes it.

Rows are stored in ``benchmarks/results/`` as they are found, and a row that is there is
not made again: remove the file to start afresh. ``--quick`` takes one row and stores
nothing.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._allocation import DELTA, Run, least_scale, sampled_scale
from benchmarks.random_allocation import Stored
from skpuffer.noise import GaussianNoise, Shift
from skpuffer.noise.strategies import (
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
)
from skpuffer.privacy_loss.allocation import CorrelatedAllocationPair, sampled_delta

N_BATCHES = 100
#: Strategies by bandwidth, for a number of steps.
FAMILIES = {
    "BSR": lambda p, n: banded_square_root(p),
    "BISR": lambda p, n: banded_inverse_square_root(p),
    "BandMF": lambda p, n: banded_matrix_factorization(n, p, N_BATCHES),
    "BandInvMF": lambda p, n: banded_inverse_factorization(n, p, N_BATCHES),
}
#: Draws, which are moved to where losses are large, for the noise and for the check:
#: worth some hundred times as many plain ones.
DRAWS, FRESH_DRAWS = 50_000, 200_000
#: Where the search begins, in roots of the number of epochs.
_START = 1.3


def cells(quick):
    """Family, bandwidth, epochs and epsilon, in the order in which they are made."""
    if quick:
        return [("BSR", 4, 1, 1.0)]
    return [
        (family, bandwidth, n_epochs, epsilon)
        for epsilon in (1.0, 2.0)
        for n_epochs in (1, 10)
        for family, bandwidth in (
            *((family, 4) for family in FAMILIES),
            ("BLT", 0),
            *((family, p) for p in (16, 64) for family in FAMILIES),
        )
    ]


def run_of(family, bandwidth, n_epochs):
    """The run of a cell."""
    n_steps = N_BATCHES * n_epochs
    if family == "BLT":
        strategy = buffered_linear_toeplitz(n_steps, n_batches=N_BATCHES)
    else:
        strategy = FAMILIES[family](bandwidth, n_steps)
    return Run(f"{family}, p = {bandwidth}", strategy, N_BATCHES, n_epochs)


def bounds(run, sigma, epsilon):
    """The bounds of both directions."""
    curve = GaussianNoise(sigma).curve(Shift(1.0))
    pair = CorrelatedAllocationPair(curve, run.strategy, run.n_batches, run.n_steps)
    at = np.array([epsilon])
    return float(pair.delta(at)[0]), float(pair.reverse(at)[0])


def excess(run, epsilon, n_samples, n_fresh):
    """Noise by the bounds and by Monte Carlo, and both divergences by both."""
    rough = sampled_scale(run, epsilon, _START * run.n_epochs**0.5, n_samples // 10)
    sampled = sampled_scale(run, epsilon, rough.sigma, n_samples)
    began = time.process_time()
    sigma = least_scale(
        lambda sigma: max(bounds(run, sigma, epsilon)),
        1.04 * sampled.sigma,
        step=0.03,
        near=2e-3,
    )
    row = {
        "sigma": sigma,
        "sampled": sampled.sigma,
        "low": sampled.low,
        "high": sampled.high,
        "excess": sigma / sampled.sigma - 1,
        "seconds": round(time.process_time() - began, 1),
    }
    for direction, bound in zip(
        ("remove", "add"), bounds(run, sigma, epsilon), strict=True
    ):
        fresh = sampled_delta(
            run.gram(sigma),
            epsilon,
            direction,
            n_samples=n_fresh,
            rng=np.random.default_rng(7),
        )
        row |= {
            f"bound_{direction}": bound,
            f"estimate_{direction}": fresh.estimate,
            f"error_{direction}": fresh.error,
        }
    return row


def measure(quick):
    """Make the rows that are not there yet."""
    key = ["family", "bandwidth", "n_epochs", "epsilon"]
    stored = Stored("allocation_bounds.csv", key, quick)
    n_samples, n_fresh = (5_000, 10_000) if quick else (DRAWS, FRESH_DRAWS)
    for cell in cells(quick):
        row = dict(zip(key, cell, strict=True))
        if row not in stored:
            run = run_of(*cell[:3])
            stored.add(row | excess(run, cell[3], n_samples, n_fresh))
    return stored.frame


def check(frame):
    """What must hold: no bound is below an estimate, nor noise below its interval."""
    for direction in ("remove", "add"):
        low = frame[f"estimate_{direction}"] - 4 * frame[f"error_{direction}"]
        assert (frame[f"bound_{direction}"] >= low).all(), direction
        assert (frame[f"bound_{direction}"] <= DELTA).all(), direction
    assert (frame["sigma"] >= frame["low"]).all()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        frame = measure(quick)
    check(frame)
    print(f"{len(frame)} rows, excess up to {frame['excess'].max():.1%}")


if __name__ == "__main__":
    main()
