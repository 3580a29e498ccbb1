"""Speed of sliced W_inf distances, as ratios to products and sorts of all slices.

    python -m benchmarks.sliced_transport [--quick] [--repeats N]

The yardstick is one matrix product and one sort of each slice for each distribution, in
turn with ours in one run: of two distributions, and of five for 20 ordered pairs.
Besides, distributions that are one moved (all atoms are as far apart, so all are
sorted), of unequal numbers of points and of unequal masses, and, where POT is
installed, its sliced W_2 of the same slices (which is another distance: POT has no
W_inf). CPU seconds of one thread, except where two threads are compared with one by the
clock.

Stores the figures with versions in ``benchmarks/results/sliced_transport.csv``;
``--quick`` takes small sizes, checks what must hold on every machine, and stores
nothing.
"""

import argparse
import itertools
import time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from benchmarks.transport import in_turn
from skpuffer.transport import SliceProfile, sliced_distances

try:
    import ot
except ImportError:
    ot = None

COLUMNS = ["task", "what", "seconds", "ratio", "to"]


def sorted_slices(worlds, directions):
    """The plain way to all slices: a matrix product, and a sort of each one."""
    for points in worlds:
        (directions @ points.T).sort(axis=1)


def by_the_clock(*calls, repeats):
    """Median seconds of each call, taken in turn."""
    seconds = np.empty((repeats, len(calls)))
    for row in seconds:
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            row[k] = time.perf_counter() - start
    return np.median(seconds, axis=0)


def measure(n, dim, n_slices, repeats):
    """Yield every row."""
    rng = np.random.default_rng(0)
    profile = SliceProfile.sampled(dim, n_slices)
    directions = profile.directions
    worlds = [rng.normal(rng.normal(size=dim), size=(n, dim)) for _ in range(5)]
    two, ordered = worlds[:2], list(itertools.permutations(range(5), 2))
    task = f"{n:,} points, {dim} coordinates, {n_slices} slices"

    exact = [
        np.abs(np.subtract(*(np.sort(x @ u) for x in two))).max() for u in directions
    ]
    np.testing.assert_allclose(sliced_distances(two, profile)[0], exact)
    calls = [
        lambda: sorted_slices(two, directions),
        lambda: sliced_distances(two, profile),
    ]
    if ot is not None:
        projections = directions.T
        calls.append(
            lambda: ot.sliced_wasserstein_distance(*two, projections=projections, p=2)
        )
    floor, ours, *pot = in_turn(*calls, repeats=repeats)
    yield task, "two", ours, ours / floor, "products and sorts"
    if pot:  # the root of the mean of squares that are no larger than ours
        squared = ot.sliced_wasserstein_distance(*two, projections=projections, p=2)
        assert squared <= np.sqrt(np.mean(np.square(exact))) * (1 + 1e-9)
        yield task, "two", ours, ours / pot[0], "POT's sliced W_2"

    of_two, floor, ours = in_turn(
        lambda: sorted_slices(two, directions),
        lambda: sorted_slices(worlds, directions),
        lambda: sliced_distances(worlds, profile, pairs=ordered),
        repeats=repeats,
    )
    what = "five, 20 ordered pairs"
    yield task, what, ours, ours / floor, "products and sorts"
    yield task, what, ours, ours / of_two / 2.5, "those of two, 2.5 times"

    short = [two[0], two[1][: -n // 10]]
    counts = [rng.integers(1, 10, n) for _ in two]
    for what, some, weights in (
        ("two, all moved alike", [two[0], two[0] + 1], None),
        ("two, of unequal numbers", short, None),
        ("two, of unequal masses", two, counts),
    ):
        floor, ours = in_turn(
            lambda some=some: sorted_slices(some, directions),
            lambda some=some, weights=weights: sliced_distances(
                some, profile, weights=weights
            ),
            repeats=repeats,
        )
        yield task, what, ours, ours / floor, "products and sorts"

    one, both = by_the_clock(
        lambda: sliced_distances(worlds, profile, pairs=ordered),
        lambda: sliced_distances(worlds, profile, pairs=ordered, n_jobs=2),
        repeats=repeats,
    )
    yield task, "five, two threads", both, both / one, "one thread"


#: Largest ratio to the yardstick, of full sizes on an idle machine.
AT_MOST = {
    ("two", "products and sorts"): 1,
    ("five, 20 ordered pairs", "those of two, 2.5 times"): 1,
    ("two, all moved alike", "products and sorts"): 1.4,
    ("two", "POT's sliced W_2"): 0.2,
    ("two, of unequal numbers", "products and sorts"): 1,
    ("two, of unequal masses", "products and sorts"): 10,
}


def check(frame, slack=1.0):
    """Hold figures to the largest ratios, where they were measured."""
    found = frame.set_index(["what", "to"])["ratio"]
    for place, at_most in AT_MOST.items():
        if place in found.index:
            assert found[place] <= at_most * slack, (place, found[place])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--repeats", type=int, help="15, or 3 if quick")
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else 15)
    sizes = (2000, 10, 40) if options.quick else (10_000, 50, 200)
    with threadpool_limits(1):
        frame = pd.DataFrame(measure(*sizes, repeats), columns=COLUMNS)
    frame = frame.assign(repeats=repeats)
    print_table(
        [
            [r.task, r.what, f"{r.seconds:.4f}", f"{r.ratio:.2f} x", r.to]
            for r in frame.itertuples()
        ],
        ("", "", "seconds", "ratio", "to"),
    )
    # small sizes, and machines with other work, are slower
    check(frame, slack=5)
    if not options.quick:
        used = versions("numpy", "scipy", *(["POT"] if ot is not None else []))
        write_csv(frame.assign(**used).round(5), "sliced_transport.csv")


if __name__ == "__main__":
    main()
