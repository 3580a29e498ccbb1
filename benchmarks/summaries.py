"""Summaries beside NumPy and pandas: time and memory of the same, without privacy.

    POLARS_MAX_THREADS=1 python -m benchmarks.summaries [--quick]

A whole fit, its calibration included, over what it cannot avoid in the same run: means
beside ``np.mean``, means and deviations beside both of NumPy, histograms beside
``np.histogram``, groups beside pandas and Polars. CPU seconds on one thread, the least
of several turns that alternate; peaks of memory by ``tracemalloc``, in tables.

Means stay above 2.5 times ``np.mean``, which is one reading of the table: finding NaN
and infinity before anything is paid for is another, and clipping and adding up block by
block takes 2.2 more at best (``ndarray.clip`` and a product with ones; tried were
minimum and maximum, comparisons with repair of what is outside, and blocks whose
extremes lie within the bounds, at 2^12 to 2^18 numbers each). Calibration, checks and
exact noise take 3 to 7 ms besides, whatever the number of rows.

Polars is kept to one thread by POLARS_MAX_THREADS=1, and takes its own memory, of which
``tracemalloc`` does not know.

Stores the figures with versions in ``benchmarks/results/summaries.csv``. ``--quick``
takes small tables, checks what must hold on every machine, and stores nothing.
"""

import argparse
import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.exceptions import PrivacyWarning
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary

BOUNDS = (-3.0, 3.0)
LEVELS, HOW = [f"group {i}" for i in range(50)], ("mean", "std")


def tasks(n):
    """Yield (task, table, private, plain), the last two functions of nothing.

    Of n records; for means, of ten times as many numbers.
    """
    rng = np.random.default_rng(0)
    for d in (1, 10, 100):
        X = rng.normal(size=(10 * n // d, d))
        for order in "CF" if d > 1 else "C":
            X = np.array(X, order=order)
            shape = f"{len(X)} x {d}, {order}"
            mean = PrivateMean(bounds=BOUNDS)
            yield f"mean, {shape}", X, lambda m=mean, X=X: m.fit(X), X.mean
            both = PrivateStandardScaler(bounds=BOUNDS)
            yield (
                f"mean and std, {shape}",
                X,
                lambda m=both, X=X: m.fit(X),
                lambda X=X: (X.mean(axis=0), X.std(axis=0)),
            )
    x = rng.normal(size=(n, 1))
    for bins in (20, 1000):
        counts = PrivateSummary(statistics="histogram", bins=bins, bounds=BOUNDS)
        edges = np.linspace(*BOUNDS, bins + 1)
        for kind, grid in (("even", {"bins": bins, "range": BOUNDS}), ("edges", None)):
            yield (
                f"histogram, {n}, {bins} bins, np.histogram by {kind}",
                x,
                lambda m=counts: m.fit(x),
                lambda grid=grid or {"bins": edges}: np.histogram(x[:, 0], **grid),
            )
    codes = rng.integers(0, len(LEVELS), n)
    frame = pd.DataFrame({"x": x[:, 0], "y": x[:, 0] ** 2})
    for kind, column in (
        ("texts", np.array(LEVELS, dtype=object)[codes]),
        ("categories", pd.Categorical.from_codes(codes, LEVELS)),
    ):
        grouped = frame.assign(g=column)
        summary = PrivateSummary(
            statistics=["count", "mean", "std"],
            by="g",
            categories={"g": LEVELS},
            bounds=BOUNDS,
        )
        yield (
            f"groups, {n} x 2, {len(LEVELS)} {kind}",
            grouped,
            lambda m=summary, t=grouped: m.fit(t),
            lambda t=grouped: t.groupby("g", observed=False).agg(
                ["count", "mean", "std"]
            ),
        )
    texts = pl.DataFrame({**frame, "g": pl.Series(LEVELS).gather(codes)})
    asked = [pl.len()]
    asked += [getattr(pl.col(c), how)().alias(c + how) for c in frame for how in HOW]
    yield (
        f"groups, {n} x 2, {len(LEVELS)} texts in Polars",
        texts,
        lambda: summary.fit(texts),
        lambda: texts.group_by("g").agg(asked),
    )


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def peak(call):
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def measured(n, n_runs):
    rows = []
    for task, table, private, plain in tasks(n):
        pairs = [(seconds(private), seconds(plain)) for _ in range(n_runs)]
        ours, theirs = np.min(pairs, axis=0)
        if isinstance(table, pd.DataFrame):
            size = table.memory_usage(index=False).sum()
        elif isinstance(table, pl.DataFrame):
            size = table.estimated_size()
        else:
            size = table.nbytes
        rows.append(
            {
                "task": task,
                "seconds": ours,
                "plain_seconds": theirs,
                "ratio": ours / max(theirs, 1e-9),
                "peak_tables": peak(private) / size,
                "plain_peak_tables": peak(plain) / size,
            }
        )
    return pd.DataFrame(rows)


def check(frame):
    """Check what holds on every machine, loosely."""
    counts = frame.task.str.startswith("histogram")
    assert frame.peak_tables[counts].max() < 20, frame  # an array of records by bins


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PrivacyWarning)
    with threadpool_limits(1):
        frame = measured(10_000 if quick else 1_000_000, 2 if quick else 7)
    if not quick:
        check(frame)
    header = ["", "ms", "plain ms", "ratio", "peak", "plain peak"]
    print_table(
        [
            [
                task,
                f"{1e3 * a:.1f}",
                f"{1e3 * b:.1f}",
                f"{r:.2f}",
                f"{p:.2f}",
                f"{q:.2f}",
            ]
            for task, a, b, r, p, q in frame.to_numpy()
        ],
        header,
    )
    if not quick:
        frame = frame.assign(**versions("numpy", "pandas", "polars", "scikit-learn"))
        write_csv(frame.round(6), "summaries.csv")


if __name__ == "__main__":
    main()
