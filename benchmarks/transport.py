"""Speed of the Wasserstein distances, as ratios to what cannot be avoided.

    python -m benchmarks.transport [--quick] [--repeats N] [--data DIR]

On the line, the yardstick is two `np.sort` calls on the same values, taken in turn with
ours in one run; values of single precision and weights too. In the plane, W_inf of 500
and 500 points in CPU seconds, and, where POT is installed, as a ratio to its exact W_2
(which is another distance: POT has no W_inf); of more points also the most MiB that
Python saw allocated. Last, three columns of Adult at once, all pairs of races: the
whole training table from ``--data`` or the directory that the environment variable
SKPUFFER_TEST_DATA names, else the sample that is shipped.

Stores the figures with versions in ``benchmarks/results/transport.csv``; ``--quick``
takes small sizes and the sample, checks what must hold on every machine, and stores
nothing.
"""

import argparse
import itertools
import os
import time
import tracemalloc

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.transport import bottleneck_transport, wasserstein_distance

try:
    import ot
except ImportError:
    ot = None

COLUMNS = ["task", "what", "seconds", "ratio", "to"]


def in_turn(*calls, repeats):
    """Median CPU seconds of each call, taken in turn to meet the same machine."""
    seconds = np.empty((repeats, len(calls)))
    for row in seconds:
        for k, call in enumerate(calls):
            start = time.process_time()
            call()
            row[k] = time.process_time() - start
    return np.median(seconds, axis=0)


def line(n, m, name, draw, repeats):
    """Rows for two samples on the line."""
    x, y = draw(n), draw(m)
    for p, what in ((np.inf, "W_inf"), (2, "W_2")):
        sorts, ours = in_turn(
            lambda: (np.sort(x), np.sort(y)),
            lambda p=p: wasserstein_distance(x, y, p=p),
            repeats=repeats,
        )
        if n == m:  # the monotone coupling pairs sorted values
            apart = np.abs(np.sort(x) - np.sort(y))
            exact = apart.max() if p == np.inf else np.sqrt(np.mean(apart**2))
            assert np.isclose(wasserstein_distance(x, y, p=p), exact)
        yield f"line, {n:,} x {m:,} {name}", what, ours, ours / sorts, "two sorts"


def other_lines(n, repeats):
    """Rows for single precision, ties, equal gaps and weights."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, n))
    ages = rng.integers(17, 91, (2, n)).astype(float)
    counts = rng.integers(1, 10, (2, n))
    floats = rng.random((2, n))
    floats /= floats.sum(axis=1, keepdims=True)
    shares = counts / counts.sum(axis=1, keepdims=True)
    for name, values, weights in (
        ("float32", (x.astype(np.float32), y.astype(np.float32)), (None, None)),
        ("ages", tuple(ages), (None, None)),
        ("all one apart", (x, x + 1), (None, None)),
        ("counts", (x, y), tuple(counts)),
        ("shares of counts", (x, y), tuple(shares)),
        ("float weights", (x, y), tuple(floats)),
        ("ages, counts", tuple(ages), tuple(counts)),
    ):
        sorts, ours = in_turn(
            lambda values=values: [np.sort(part) for part in values],
            lambda values=values, weights=weights: wasserstein_distance(
                *values, *weights
            ),
            repeats=repeats,
        )
        yield f"line, {n:,} x {n:,} {name}", "W_inf", ours, ours / sorts, "two sorts"


def clouds(n, repeats):
    """Rows for many points in the plane: seconds, and MiB at most."""
    rng = np.random.default_rng(2)
    U, V = rng.normal(size=(2, n, 2))
    for name, other in (
        ("normal", V),
        ("shifted", V + 1),
        ("wide", V * 1.5),
    ):
        task = f"plane, {n:,} x {n:,} {name}"
        (seconds,) = in_turn(
            lambda other=other: bottleneck_transport(U, other), repeats=repeats
        )
        tracemalloc.start()
        assert bottleneck_transport(U, other).exact
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield task, "W_inf", seconds, np.nan, ""
        yield task, "MiB", most / 2**20, np.nan, ""


def plane(n, name, U, V, repeats):
    """A row for two clouds of points in the plane."""
    calls = [lambda: bottleneck_transport(U, V)]
    if ot is not None:
        costs = ot.dist(U, V)
        calls.append(lambda: ot.emd2([], [], costs))
    ours, *pot = in_turn(*calls, repeats=repeats)
    found = bottleneck_transport(U, V)
    assert found.exact
    if pot:  # the largest move is no less than the root of the mean squared one
        assert found.distance >= np.sqrt(ot.emd2([], [], costs)) * (1 - 1e-9)
    to = "POT's emd2" if pot else ""
    yield (
        f"plane, {n:,} x {n:,} {name}",
        "W_inf",
        ours,
        ours / pot[0] if pot else np.nan,
        to,
    )


def adult(data):
    """A row for three columns of Adult, over all pairs of races."""
    bunch = fetch_adult(data_home=data, download_if_missing=False) if data else None
    columns = ["age", "hours-per-week", "education-num"]
    races = [
        np.unique(part[columns].to_numpy(float), axis=0, return_counts=True)
        for _, part in (bunch or load_adult()).frame.groupby("race", observed=True)
    ]
    start = time.process_time()
    exact = [
        bottleneck_transport(U, V, u_counts, v_counts).exact
        for (U, u_counts), (V, v_counts) in itertools.combinations(races, 2)
    ]
    seconds = time.process_time() - start
    assert all(exact)
    rows = sum(counts.sum() for _, counts in races)
    task = f"Adult, {rows:,.0f} rows, 3 columns, {len(exact)} pairs of races"
    yield task, "W_inf", seconds, np.nan, ""


def measure(quick, data, repeats):
    """Yield every row."""
    unit = 10**5 if quick else 10**6
    rng = np.random.default_rng(0)
    sizes = [(unit, unit), (2 * unit, 2 * unit), (unit, unit - 17), (unit, unit // 3)]
    for n, m in sizes:
        yield from line(n, m, "normal", lambda size: rng.normal(size=size), repeats)
        yield from line(n, m, "uniform", rng.random, repeats)
    yield from other_lines(unit, repeats)
    for n in (100, 500) if quick else (500, 2000):
        uniform, normal = rng.random((2, n, 2)), rng.normal(size=(3, n, 2))
        yield from plane(n, "uniform", *uniform, repeats)
        yield from plane(n, "normal", *normal[:2], repeats)
        yield from plane(n, "shifted", normal[0], normal[2] + 1, repeats)
    for n in (2000,) if quick else (4000, 16_000, 100_000):
        yield from clouds(n, 1 if n > 16_000 else min(repeats, 3))
    yield from adult(None if quick else data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--repeats", type=int, help="15, or 3 if quick")
    parser.add_argument("--data", default=os.environ.get("SKPUFFER_TEST_DATA"))
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else 15)
    with threadpool_limits(1):
        rows = measure(options.quick, options.data, repeats)
        frame = pd.DataFrame(rows, columns=COLUMNS).assign(repeats=repeats)
    print_table(
        [
            [r.task, r.what, f"{r.seconds:.4f}", f"{r.ratio:.2f} x" if r.to else "-"]
            + [r.to]
            for r in frame.itertuples()
        ],
        ("", "", "seconds", "ratio", "to"),
    )
    for what, at_most in (("W_inf", 20), ("W_2", 20)):
        sorts = frame.loc[(frame["to"] == "two sorts") & (frame["what"] == what)]
        assert sorts["ratio"].max() < at_most, sorts
    if not options.quick:
        used = versions("numpy", "scipy", *(["POT"] if ot is not None else []))
        write_csv(frame.assign(**used).round(5), "transport.csv")


if __name__ == "__main__":
    main()
