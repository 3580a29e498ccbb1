"""What correlated noise costs in time, and what it leaves in the sums of a run.

    python -m benchmarks.correlated_noise [--quick]

*Time.* Logistic regression of 100,000 records in batches of 1000, ten epochs of balls
in bins, with 20 and with 105 parameters: a whole run under each strategy, over the same
with independent noise. Bandwidth 16; CPU time on one thread, medians over rounds in
which all take turns.

*Errors.* Root mean square of the errors of the prefix sums, at unit sensitivity to a
record of the first batch, over that of independent noise: 1000 steps in ten epochs, and
in one. No sampling, which changes what a sensitivity costs and is accounted for
elsewhere.

``--quick`` takes runs of one epoch, checks what must hold on every machine, and stores
nothing.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.noise import GaussianNoise
from skpuffer.noise.strategies import (
    BandedRows,
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
    prefix_sum_tree,
    restarted,
)
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import LinearGradients, Logistic, train

RECORDS, BATCH, BANDWIDTH = 100_000, 1000, 16
BATCHES = RECORDS // BATCH
DIMENSIONS = (20, 105)

#: What a run with correlated noise may take, over one with independent noise.
MOST = 1.3


def strategies(n_steps):
    """Strategies by name, for a run of so many steps."""
    root = banded_square_root(BANDWIDTH)
    return {
        "independent": None,
        "banded square root": root,
        "banded inverse square root": banded_inverse_square_root(BANDWIDTH),
        "banded factorization": banded_matrix_factorization(n_steps, BANDWIDTH),
        "inverse factorization": banded_inverse_factorization(
            n_steps, BANDWIDTH, BATCHES
        ),
        "4 buffers": buffered_linear_toeplitz(n_steps, 4, BATCHES),
        "banded rows": BandedRows((*_rows(root, n_steps),)),
        "binary tree": prefix_sum_tree(n_steps),
        "restarted": restarted(root, every=BATCHES),
    }


def _rows(strategy, n_steps):
    """Rows of a Toeplitz strategy, one by one."""
    for step in range(n_steps):
        own = strategy.column[: step + 1]
        yield (*own, *[0.0] * (BANDWIDTH - len(own)))


def seconds_of_runs(n_steps, repeats):
    """Median seconds and shares, by the number of parameters and the strategy."""
    rng = np.random.default_rng(0)
    rows = []
    for dim in DIMENSIONS:
        X = rng.normal(size=(RECORDS, dim - 1)) / np.sqrt(dim)
        gradients = LinearGradients(Logistic(), X, (X[:, 0] > 0).astype(int))
        plain = GradientRelease(
            n_records=RECORDS,
            batch_size=BATCH,
            n_steps=n_steps,
            sampling="balls_in_bins",
            optimiser=Optimiser(learning_rate=1.0),
        )
        runs = {
            name: replace(plain, noise_correlation=strategy)
            for name, strategy in strategies(n_steps).items()
        }
        seconds = {name: [] for name in runs}
        for _ in range(repeats):
            # in turns, so that whatever else the machine does hits all alike
            for name, release in runs.items():
                start = time.process_time()
                train(gradients, release, GaussianNoise(1.0), np.random.default_rng(1))
                seconds[name].append(time.process_time() - start)
        for name, of_rounds in seconds.items():
            shares = np.divide(of_rounds, seconds["independent"])
            of_run = np.median(of_rounds), np.median(shares)
            rows.append(("seconds", name, dim, *of_run))
    return rows


def errors_of_sums(n_steps):
    """Errors at unit sensitivity, by the number of batches and the strategy."""
    rows = []
    for n_batches in (BATCHES, n_steps):
        independent = np.nan
        for name, strategy in strategies(n_steps).items():
            each = identity() if strategy is None else strategy
            error = each.mean_error(n_steps) * each.sensitivity(n_batches, n_steps)
            if strategy is None:
                independent = error
            rows.append(("error", name, n_batches, error, error / independent))
    return rows


def check(found):
    """What must hold on every machine."""
    shares = found.set_index("strategy").query("measure == 'seconds'")["share"]
    assert (shares < MOST).all(), shares
    errors = found.query("measure == 'error'").pivot_table(
        values="value", index="strategy", columns="setting"
    )
    optimised = {
        "banded factorization": "banded square root",
        "inverse factorization": "banded inverse square root",
    }
    for name, start in optimised.items():
        assert (errors.loc[name] <= errors.loc[start] * (1 + 1e-9)).all(), errors
    # rows are those of the square root
    np.testing.assert_allclose(
        errors.loc["banded rows"], errors.loc["banded square root"], rtol=1e-9
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    n_steps = BATCHES if options.quick else 10 * BATCHES
    with threadpool_limits(1):
        rows = seconds_of_runs(n_steps, repeats=5 if options.quick else 15)
    rows += errors_of_sums(n_steps)
    columns = ["measure", "strategy", "setting", "value", "share"]
    found = pd.DataFrame(rows, columns=columns)
    check(found)
    print_table(
        [
            [
                f"{r.measure}, {'dim' if r.measure == 'seconds' else 'batches'} "
                f"{r.setting}: {r.strategy}",
                f"{r.value:.3f}",
                f"{r.share:.2f}",
            ]
            for r in found.itertuples()
        ],
        ["", "", "/ independent"],
    )
    if not options.quick:
        write_csv(found.assign(**versions("numpy", "scipy")), "correlated_noise.csv")


if __name__ == "__main__":
    main()
