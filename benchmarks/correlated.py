"""Records that depend on each other: seconds to account for them, and errors.

    python -m benchmarks.correlated [--quick] [--data DIR]

CPU seconds on one thread, nothing remembered in between:

* the noise of a mean by Markov quilts, for chains of 10,000 and 100,000 records;
* the exact laws of a count over a chain, by window for long ones;
* the radius within which two laws of 500 points in the plane are, but for a small mass;
* the move of a logistic regression under a Gaussian series.

With a directory that holds them (``--data``, or the environment variable
SKPUFFER_TEST_DATA): mean absolute error of the mean of real series at epsilon = 1 by
three mechanisms, as a ratio to group privacy. The prior is learnt on the first half,
each transition counted once more, and the second half is released.

Stores the figures with versions in ``benchmarks/results/correlated.csv``; ``--quick``
takes short series and stores nothing.
"""

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import GaussianScenario, MarkovChainScenario
from skpuffer.transport import near_radius

PURE = {"epsilon": 1.0, "alpha": math.inf, "noise": "laplace"}


def seconds(ask):
    """CPU seconds of one question, asked for the first time."""
    start = time.process_time()
    ask()
    return time.process_time() - start


def sticky(k, stay, rng):
    """A chain of k states that stays with a probability, else goes anywhere."""
    chain = rng.dirichlet(np.ones(k), size=k) * (1 - stay)
    return chain + stay * np.eye(k)


def mean_of(values, n):
    values = np.asarray(values, dtype=float)
    return QueryRelease(
        contribution=lambda X, y: values[np.asarray(X, dtype=int)],
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=1,
    )


def speed(quick):
    """Seconds of each task, by name."""
    rng = np.random.default_rng(0)
    tasks = {}
    sizes = [(2000, 4)] if quick else [(10_000, 4), (10_000, 10), (100_000, 4)]
    for n, k in sizes:
        scenario = MarkovChainScenario(sticky(k, 0.5, rng))
        tasks[f"quilts, {n:,} records of {k} states"] = lambda n=n, k=k, s=scenario: (
            MarkovQuilt(1.0).calibrate(mean_of(range(k), n), s)
        )
    lengths = [(50, 2)] if quick else [(100, 2), (1000, 2), (10_000, 2), (10_000, 10)]
    for n, k in lengths:
        scenario = MarkovChainScenario(sticky(k, 0.5, rng))
        tasks[f"laws of a sum, {n:,} records of {k} states"] = (
            lambda n=n, k=k, s=scenario: GeneralWasserstein(**PURE).calibrate(
                mean_of(range(k), n), s
            )
        )
    n = 50 if quick else 500
    U, V = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    tasks[f"near radius, {n} x {n} points"] = lambda: near_radius(U, V, 0.01)
    n = 50 if quick else 1000
    times = np.arange(n)
    scenario = GaussianScenario(
        covariance=0.7 ** np.abs(times[:, None] - times),
        covariance_of="records",
        domain=(-1, 1),
    )
    model = PrivateLogisticRegression(scenario, GroupPrivacy(1.0, 4.0))
    X = rng.normal(size=(n, 1))
    tasks[f"logistic regression, Gaussian series of {n:,}"] = lambda: model.fit(
        X, times % 2
    )
    return {name: seconds(task) for name, task in tasks.items()}


def series(data):
    """Codes, values of the states and name of each real series."""
    for name, column, per_unit, width, k in (
        ("household_power_hourly", "Global_active_power_filled", 60, 0.5, 10),
        ("household_power_minute_26days", "Global_active_power", 1, 0.8, 12),
    ):
        table = pd.read_csv(data / f"{name}.csv.gz")
        codes = (table[column].to_numpy() / per_unit / width).astype(int)
        yield name, np.minimum(codes, k - 1), (np.arange(k) + 0.5) * width
    parts, table = [], pd.read_csv(data / "activity_older_people.csv.gz")
    for _, trial in table.groupby("trial", sort=False):
        clock = trial["time_s"].to_numpy()
        grid = np.arange(0.0, clock.max() + 1e-9, 5.0)
        last = np.searchsorted(clock, grid, side="right") - 1
        parts.append(trial["activity"].to_numpy()[last] - 1)
    lying = np.array([0.0, 0.0, 1.0, 0.0])
    yield "activity_older_people, every 5 s", np.concatenate(parts), lying


def errors(data, quick):
    """Mean absolute error over that of group privacy, by series and mechanism."""
    found = {}
    for name, codes, values in series(data):
        codes = codes[: 4000 if quick else None]
        half, k = len(codes) // 2, len(values)
        counts = np.ones((k, k))
        np.add.at(counts, (codes[: half - 1], codes[1:half]), 1)
        chain = counts / counts.sum(axis=1, keepdims=True)
        release = mean_of(values, len(codes) - half)
        scales = {
            label: accountant.calibrate(release, MarkovChainScenario(chain, **options))
            for label, accountant, options in (
                ("group", GroupPrivacy(**PURE), {"event_delta": 0.0}),
                ("quilts", MarkovQuilt(1.0), {}),
                ("quilts, by the gap", MarkovQuilt(1.0, method="approximate"), {}),
                ("wasserstein", GeneralWasserstein(**PURE), {"event_delta": 1e-6}),
            )
        }
        # Laplace noise: its mean absolute size is its scale
        group = scales.pop("group").noise.scale
        for label, found_noise in scales.items():
            found[f"{name}: {label}"] = found_noise.noise.scale / group
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", default=os.environ.get("SKPUFFER_TEST_DATA"))
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = [
            ("seconds", name, value) for name, value in speed(options.quick).items()
        ]
        if options.data and Path(options.data).is_dir():
            ratios = errors(Path(options.data), options.quick)
            rows += [("error / group", name, value) for name, value in ratios.items()]
        else:
            print("no data: real series are left out")
    print_table([(n, kind, f"{v:.4g}") for kind, n, v in rows], ("", "what", "value"))
    if not options.quick:
        frame = pd.DataFrame(rows, columns=["what", "case", "value"])
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(frame.assign(**used), "correlated.csv")


if __name__ == "__main__":
    main()
