"""Sums of gradients over two workers of joblib, beside those of one process.

    python -m benchmarks.spread_sums [--quick]

A step of full-batch training, without its noise: seconds of the wall clock, the least
of turns that alternate in one process, by one BLAS thread each. ``first`` is the first
step of two workers, which are started and sent the records in it. A ratio below one is
a gain; a half is all there is. On a machine whose cores are busy with other things
(``load``) there is none: then ``work``, the processor seconds of all processes over
those of one alone, tells what spreading adds.

Stores the figures with versions in ``benchmarks/results/spread_sums.csv``. ``--quick``
takes small tables, checks that the sums are the same to the last digit, and stores
nothing.
"""

import argparse
import os
import time

import numpy as np
import pandas as pd
from joblib import parallel_config

from benchmarks._report import print_table, versions, write_csv
from skpuffer.releases import GradientRelease
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    PerceptronGradients,
)
from skpuffer.training._workers import SpreadSums
from skpuffer.utils._threads import threadpool

MODELS = {
    "two classes": lambda X, y: LinearGradients(Logistic(), X, y % 2, data_norm=5.0),
    "ten classes": lambda X, y: LinearGradients(
        Multinomial(), X, y, n_classes=10, data_norm=5.0
    ),
    "perceptron": lambda X, y: PerceptronGradients(
        Multinomial(), X, y, n_classes=10, n_hidden=32, data_norm=5.0
    ),
}


def processor_seconds():
    """Of this process and its workers, in ticks of a hundredth of a second."""
    import psutil

    process = psutil.Process()
    times = [p.cpu_times() for p in [process, *process.children(recursive=True)]]
    return sum(t.user + t.system for t in times)


def seconds(call, *arguments):
    start, work = time.perf_counter(), processor_seconds()
    found = call(*arguments)
    took = time.perf_counter() - start
    return took, processor_seconds() - work, found


def figures(sizes, backends, n_turns):
    rng = np.random.default_rng(0)
    for n, d in sizes:
        X, y = rng.normal(size=(n, d)), rng.integers(0, 10, n)
        release = GradientRelease(n_records=n, n_steps=1, sampling="full_batch")
        for model, make in MODELS.items():
            gradients = make(X, y)
            at = 0.1 * rng.normal(size=gradients.dim)
            for backend in backends:
                turns = []
                with (
                    threadpool().limit(limits=1, user_api="blas"),
                    parallel_config(backend),
                    SpreadSums(gradients, 2) as sums,
                ):
                    for _ in range(n_turns):
                        *alone, one = seconds(gradients.clipped_sum, at, None, release)
                        *spread, two = seconds(sums, at, None, release)
                        turns.append([*alone, *spread])
                        np.testing.assert_array_equal(one, two)
                # workers are started in the first turn, and find rows in some more
                least, work = np.min(turns[1:], axis=0), np.sum(turns[3:], axis=0)
                yield {
                    "model": model,
                    "backend": backend,
                    "n_records": n,
                    "n_features": d,
                    "alone": least[0],
                    "spread": least[2],
                    "ratio": least[2] / least[0],
                    # of fewer ticks the ratio is nothing
                    "work": work[3] / work[1] if work[1] > 0.5 else np.nan,
                    "first": turns[0][2],
                    "load": os.getloadavg()[0],
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        found = figures([(20_000, 5)], ["threading", "loky"], 4)
    else:
        from dask.distributed import Client, LocalCluster

        sizes = [(20_000, 20), (300_000, 50)]
        found = list(figures(sizes, ["threading", "loky"], 12))
        # not before: it takes time of its own
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        )
        with cluster, Client(cluster):
            found += figures(sizes, ["dask"], 12)
    frame = pd.DataFrame(found)
    print_table(
        [
            [
                f"{r.model}, {r.backend}",
                f"{r.n_records:,} x {r.n_features}",
                f"{1000 * r.alone:.1f} ms",
                f"{1000 * r.spread:.1f} ms",
                f"{r.ratio:.2f}",
                f"{r.work:.2f}",
                f"{r.first:.1f} s",
            ]
            for r in frame.itertuples()
        ],
        ["model, back end", "table", "alone", "two workers", "ratio", "work", "first"],
    )
    if options.quick:
        return
    for package, version in versions("numpy", "joblib", "distributed").items():
        frame[package] = version
    write_csv(frame, "spread_sums.csv")


if __name__ == "__main__":
    main()
