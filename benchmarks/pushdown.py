"""Summaries of tables that lie in an engine, beside its own aggregation of them.

    python -m benchmarks.pushdown [--quick] [--units] [--rows 100000000]

A whole fit of `PrivateSummary` to a lazy data frame of five columns of numbers in a
Parquet file, its calibration included, over what the engine takes for counts, means and
deviations (or histograms) without privacy: CPU seconds of all threads, the least of
turns that alternate in one process. Peaks of memory are those of a whole process, its
imports included, when its first fit is done.

Stores the figures with versions in ``benchmarks/results/pushdown.csv``. ``--quick``
takes small tables, checks what must hold on every machine, and stores nothing.

``--units`` is of means of five columns with gaps by units, ten rows each on average, of
which five count. A whole fit is measured beside two aggregations of the engine: means
of which the rows of a unit are weighed by the same rule, and plain means of all rows.
Figures are in ``benchmarks/results/pushdown_units.csv``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._report import print_table, versions, write_csv
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateMean, PrivateSummary

NAMES = list("abcde")
BOUNDS = (0.0, 100.0)
N_BINS = 20
TASKS = {"moments": ("count", "mean", "std"), "histogram": ("histogram",)}
#: Rows of a unit, on average and at most.
ROWS, MOST = 10, 5


class DuckDB:
    """Parquet files by DuckDB."""

    def __init__(self, path):
        import duckdb

        # the number of threads stays: both sides have as many
        self._connection = duckdb.connect()
        self.table = self._connection.read_parquet(str(path))

    def bare(self, task):
        if task == "units":
            sums = [f"sum({c}) s_{c}, count({c}) n_{c}" for c in NAMES]
            means = [f"sum(w * s_{c}) / sum(w * n_{c})" for c in NAMES]
            weight = f"least(1.0, {MOST} / count(*)) w"
            units = self.table.aggregate(", ".join([weight, *sums]), "id")
            return units.aggregate(", ".join(means)).fetchall()
        if task == "plain":
            return self.table.aggregate(
                ", ".join(f"avg({c})" for c in NAMES)
            ).fetchall()
        if task == "moments":
            asked = [f"avg({c}), stddev_pop({c})" for c in NAMES]
            return self.table.aggregate(", ".join(["count(*)", *asked])).fetchall()
        width = (BOUNDS[1] - BOUNDS[0]) / N_BINS
        return [
            self.table.aggregate(
                f"floor({c} / {width})::int as bin, count(*)"
            ).fetchall()
            for c in NAMES
        ]


class Polars:
    """Parquet files by Polars, streaming."""

    def __init__(self, path):
        import polars as pl

        self._pl = pl
        self.table = pl.scan_parquet(path)

    def bare(self, task):
        pl = self._pl
        columns = [pl.col(c) for c in NAMES]
        if task == "units":
            sums = [c.sum().name.prefix("s_") for c in columns]
            counts = [c.count().name.prefix("n_") for c in columns]
            units = self.table.group_by("id").agg(pl.len().alias("n"), *sums, *counts)
            w = pl.min_horizontal(pl.lit(1.0), MOST / pl.col("n"))
            means = [
                ((w * pl.col(f"s_{c}")).sum() / (w * pl.col(f"n_{c}")).sum()).alias(c)
                for c in NAMES
            ]
            return units.select(*means).collect(engine="streaming")
        if task == "plain":
            return self.table.select(c.mean() for c in columns).collect(
                engine="streaming"
            )
        if task == "moments":
            asked = [
                statistic
                for c in columns
                for statistic in (
                    c.mean().name.suffix("_mean"),
                    c.std(ddof=0).name.suffix("_std"),
                )
            ]
            return self.table.select(pl.len(), *asked).collect(engine="streaming")
        edges = np.linspace(*BOUNDS, N_BINS + 1)
        return [
            self.table.select(c.cut(edges[1:-1], left_closed=True).alias("bin"))
            .group_by("bin")
            .agg(pl.len())
            .collect(engine="streaming")
            for c in columns
        ]


ENGINES = {"duckdb": DuckDB, "polars": Polars}


def private(engine, task):
    """Fit a summary, and return it."""
    if task == "units":
        scenario = RecordScenario(unit="id", max_rows=MOST)
        schema = Schema({c: Number(*BOUNDS, missing=True) for c in NAMES})
        return PrivateMean(scenario, schema=schema).fit(engine.table)
    summary = PrivateSummary(statistics=TASKS[task], bounds=BOUNDS, bins=N_BINS)
    return summary.fit(engine.table)


def make_table(path, n, rng, units=False):
    """Write a Parquet file of n records, a part at a time; of units, with gaps."""
    import polars as pl

    parts = path.with_suffix("")
    parts.mkdir()
    size = 10**6
    for i in range(-(-n // size)):
        rows = min(size, n - i * size)
        part = {c: rng.normal(40, 20, rows).clip(-50, 150) for c in NAMES}
        if units:
            gaps = {c: rng.random(rows) < 0.1 for c in NAMES}
            part = {c: np.where(gaps[c], np.nan, x) for c, x in part.items()}
            part["id"] = rng.integers(0, max(1, n // ROWS), rows)
        table = pl.DataFrame(part)
        if units:
            table = table.with_columns(pl.col(NAMES).fill_nan(None))
        table.write_parquet(parts / f"{i:05}.parquet")
    return parts / "*.parquet"


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def peak_megabytes():
    """Largest resident memory of this process (Linux; NaN elsewhere)."""
    # what `resource` tells is that of the process it was forked from, if that is larger
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    held = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return held[0] / 1024 if held else float("nan")


def child(asked):
    """What a process of its own measures, as asked on its command line."""
    engine = ENGINES[asked["engine"]](asked["path"])
    task = asked["task"]
    calls = {
        "private": lambda: private(engine, task),
        "bare": lambda: engine.bare(task),
    }
    if task == "units":
        calls["plain"] = lambda: engine.bare("plain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        first = seconds(calls["private"])
        peak = peak_megabytes()
        turns = [{k: seconds(c) for k, c in calls.items()} for _ in range(3)]
    took = {k: min(turn[k] for turn in turns) for k in calls}
    return took | {"private": min(first, took["private"]), "peak": peak}


def measured(**asked):
    command = [
        sys.executable,
        "-m",
        "benchmarks.pushdown",
        "--child",
        json.dumps(asked),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def figures(sizes, folder, units):
    rng = np.random.default_rng(0)
    for n in sizes:
        path = str(make_table(Path(folder) / f"{n}.parquet", n, rng, units))
        for engine in ENGINES:
            # histograms take long on both sides, and grow as moments do
            tasks = TASKS if n < 10**8 else ["moments"]
            for task in ["units"] if units else tasks:
                took = measured(engine=engine, task=task, path=path)
                row = {
                    "engine": engine,
                    "task": task,
                    "n_records": n,
                    "seconds": took["private"],
                    "bare_seconds": took["bare"],
                    "ratio": took["private"] / max(took["bare"], 1e-9),
                    "peak_mb": took["peak"],
                }
                if units:
                    row |= {
                        "plain_seconds": took["plain"],
                        "plain_ratio": took["private"] / max(took["plain"], 1e-9),
                    }
                yield row
                print(n, engine, task, "done", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child)))
        return
    sizes = (
        [10**4, 10**5]
        if options.quick
        else sorted({10**6, options.rows // 10, options.rows})
    )
    with tempfile.TemporaryDirectory() as folder:
        frame = pd.DataFrame(figures(sizes, folder, options.units))
    print_table(
        [
            [
                f"{r.engine}, {r.task}",
                f"{r.n_records:.0e}",
                f"{r.seconds:.2f} s",
                f"{r.bare_seconds:.2f} s",
                f"{r.ratio:.2f}",
                f"{r.peak_mb:.0f} MB",
            ]
            for r in frame.itertuples()
        ],
        ["engine, task", "rows", "private", "bare", "ratio", "peak"],
    )
    if options.quick:
        assert not (frame["peak_mb"] > 2000).any()
        return
    for package, version in versions("numpy", "duckdb", "narwhals", "polars").items():
        frame[package] = version
    write_csv(frame, "pushdown_units.csv" if options.units else "pushdown.csv")


if __name__ == "__main__":
    main()
