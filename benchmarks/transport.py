"""Speed of the Wasserstein distances, as ratios to what cannot be avoided.

    python -m benchmarks.transport [--quick] [--data DIR]

On the line, the yardstick is two `np.sort` calls on the same values, taken in turn with
ours in one run. In the plane, W_inf of 500 and 500 points in CPU seconds, and, where
POT is installed, as a ratio to its exact W_2 (which is another distance: POT has no
W_inf). With a directory that holds `adult_train.csv.gz` (``--data``, or the
environment variable SKPUFFER_TEST_DATA): three columns at once, all pairs of races.
"""

import argparse
import itertools
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

from skpuffer.transport import bottleneck_transport, wasserstein_distance

try:
    import ot
except ImportError:
    ot = None


def in_turn(*calls, repeats, clock=time.perf_counter):
    """Median seconds of each call, taken in turn so that all meet the same machine."""
    seconds = np.empty((repeats, len(calls)))
    for row in seconds:
        for k, call in enumerate(calls):
            start = clock()
            call()
            row[k] = clock() - start
    return np.median(seconds, axis=0)


def line(n, m, name, draw, repeats):
    x, y = draw(n), draw(m)

    def ratio(p):
        sorts, ours = in_turn(
            lambda: (np.sort(x), np.sort(y)),
            lambda: wasserstein_distance(x, y, p=p),
            repeats=repeats,
        )
        return f"{ours / sorts:5.2f} x"

    print(
        f"line   {n:>9,} x {m:<9,} {name:8s} W_inf {ratio(np.inf)} two sorts   "
        f"W_2 {ratio(2)} two sorts"
    )


def plane(n, name, U, V, repeats):
    calls = [lambda: bottleneck_transport(U, V)]
    if ot is not None:
        costs = ot.dist(U, V)
        calls.append(lambda: ot.emd2([], [], costs))
    ours, *pot = in_turn(*calls, repeats=repeats, clock=time.process_time)
    ratio = f"   {ours / pot[0]:5.2f} x POT's emd2" if pot else "   (POT not installed)"
    print(f"plane  {n:>9,} x {n:<9,} {name:8s} W_inf {ours:.4f} s CPU{ratio}")


def adult(directory):
    columns = ["age", "hours-per-week", "education-num"]
    table = pd.read_csv(directory / "adult_train.csv.gz")
    races = {
        race: np.unique(part[columns].to_numpy(float), axis=0, return_counts=True)
        for race, part in table.groupby("race")
    }
    start = time.process_time()
    exact = [
        bottleneck_transport(U, V, u_counts, v_counts).exact
        for (U, u_counts), (V, v_counts) in itertools.combinations(races.values(), 2)
    ]
    print(
        f"Adult  {', '.join(columns)}, {len(exact)} pairs of races: W_inf "
        f"{time.process_time() - start:.2f} s CPU, {sum(exact)} exact"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--data", type=Path, help="directory of adult_train.csv.gz")
    options = parser.parse_args()
    repeats = 3 if options.quick else 15
    unit = 10**5 if options.quick else 10**6
    rng = np.random.default_rng(0)

    sizes = [(unit, unit), (2 * unit, 2 * unit), (unit, unit - 17), (unit, unit // 3)]
    for n, m in sizes:
        line(n, m, "normal", lambda size: rng.normal(size=size), repeats)
        line(n, m, "uniform", lambda size: rng.random(size), repeats)

    for n in (100, 500) if options.quick else (500, 2000):
        plane(n, "uniform", rng.random((n, 2)), rng.random((n, 2)), repeats)
        plane(n, "normal", rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), repeats)
        shifted = rng.normal(size=(n, 2)) + 1
        plane(n, "shifted", rng.normal(size=(n, 2)), shifted, repeats)

    directory = options.data or os.environ.get("SKPUFFER_TEST_DATA")
    if directory:
        adult(Path(directory))
    else:
        print("Adult  skipped: name a directory by --data")


if __name__ == "__main__":
    main()
