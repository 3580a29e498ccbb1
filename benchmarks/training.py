"""Speed of noisy clipped gradient descent, as ratios to what cannot be avoided.

    python -m benchmarks.training [--quick] [--rounds N]

CPU time on one thread, all measured in turn in one run, medians:

* one epoch of Poisson batches of 1000 out of 100,000 records of 100 features in
  float32, logistic loss, every gradient clipped, sampling and noise included. The
  yardstick is the two products that no gradient can do without, ``X @ w`` and
  ``X.T @ r``, over the whole table; beside it, a loop written plainly in NumPy, and
  Opacus in normal use where SKPUFFER_OPACUS_PYTHON names the interpreter of its
  environment (its stored figure where not);
* what is done once a table (norms and checks), and the memory taken beyond the table,
  as a multiple of one batch;
* 100 epochs on Adult (complete rows, one-hot, z-scored) where SKPUFFER_TEST_DATA names
  the folder of its files, on the sample that is shipped elsewhere, against the fit of
  scikit-learn's LogisticRegression.

Stores the figures with versions in ``benchmarks/results/training.csv``. ``--quick``
takes smaller tables and no peer, checks what must hold on every machine, and stores
nothing.
"""

import argparse
import json
import os
import subprocess
import time
import tracemalloc
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, read_csv, write_csv
from benchmarks._tables import DATA_DIRECTORY, LOADERS, encoded_adult
from skpuffer.datasets import load_adult
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import LinearGradients, Logistic, train

FILE, COLUMNS = "training.csv", ["measure", "cpu_ms", "ratio", "to", "versions"]
FLOOR, FIT = "two products over the table", "LogisticRegression"
OPTIMISER = Optimiser(learning_rate=1.0)


def in_turn(calls, rounds):
    """Median CPU milliseconds of each call by name, taken in turn.

    Each is called twice, and the second call counts: caches are then as an epoch that
    follows another finds them, not as another call has left them.
    """
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.process_time()
            call()
            taken[name].append(1000 * (time.process_time() - start))
    return {name: float(np.median(times)) for name, times in taken.items()}


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    return X, (X[:, 0] > rng.standard_normal(n)).astype(np.float32)


def plain_loop(X, y, batch_size, n_steps, rng):
    """What a person writes first."""
    n, d = X.shape
    w = np.zeros(d, dtype=np.float32)
    for _ in range(n_steps):
        batch = np.flatnonzero(rng.random(n) < batch_size / n)
        rows = X[batch]
        residual = 1 / (1 + np.exp(-(rows @ w))) - y[batch]
        lengths = np.abs(residual) * np.linalg.norm(rows, axis=1)
        residual /= np.maximum(1, lengths)
        total = rows.T @ residual + rng.normal(size=d)
        w -= (total / batch_size).astype(np.float32)
    return w


def epoch(n, d, batch_size, rounds):
    X, y = table(n, d)
    w, r = X[0].copy(), y - np.float32(0.5)
    gradients = LinearGradients(Logistic(), X, y, intercept_scale=0.0)
    release = GradientRelease(
        n_records=n,
        batch_size=batch_size,
        n_steps=n // batch_size,
        optimiser=OPTIMISER,
    )
    noise, rng = GaussianNoise(1.0), np.random.default_rng(1)

    def setup():
        fresh = LinearGradients(Logistic(), X, y, intercept_scale=0.0)
        return fresh.rows.norms(2.0)

    return in_turn(
        {
            FLOOR: lambda: (X @ w, X.T @ r),
            "one epoch": lambda: train(gradients, release, noise, rng),
            "once a table": setup,
            "one epoch, plain NumPy": lambda: plain_loop(
                X, y, batch_size, release.n_steps, rng
            ),
        },
        rounds,
    )


def opacus_epoch(n, d, batch_size):
    """CPU milliseconds of an epoch and the version, or None without Opacus."""
    interpreter = os.environ.get("SKPUFFER_OPACUS_PYTHON")
    if not (interpreter and Path(interpreter).is_file()):
        return None
    X, y = table(n, d)
    with TemporaryDirectory() as folder:
        arrays = Path(folder) / "table.npz"
        np.savez(arrays, X=X, y=y)
        script = Path(__file__).parent / "_peers" / "opacus_epoch.py"
        answer = subprocess.run(
            [interpreter, str(script), str(arrays), str(batch_size)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    found = json.loads(answer.stdout)
    return 1000 * float(np.median(found["cpu_seconds"])), f"opacus {found['version']}"


def memory(n, d, batch_size):
    """Bytes at the peak beyond the table, over those of one batch of rows."""
    X, y = table(n, d)
    release = GradientRelease(
        n_records=n,
        batch_size=batch_size,
        n_steps=n // batch_size,
        optimiser=OPTIMISER,
    )
    tracemalloc.start()
    gradients = LinearGradients(Logistic(), X, y)
    train(gradients, release, GaussianNoise(1.0), np.random.default_rng(0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (batch_size * d * X.itemsize)


def hundred_epochs(X, y, rounds):
    n = len(X)
    batch_size = n // 10
    kinds = {"full_batch": (None, 100), "poisson": (batch_size, 1000)}

    def run(sampling):
        size, n_steps = kinds[sampling]
        gradients = LinearGradients(Logistic(), X, y)
        release = GradientRelease(
            n_records=n,
            batch_size=size,
            n_steps=n_steps,
            sampling=sampling,
            optimiser=OPTIMISER,
        )
        rng = np.random.default_rng(0)
        train(gradients, release, GaussianNoise(1.0), rng)

    return in_turn(
        {
            FIT: lambda: LogisticRegression(max_iter=1000).fit(X, y),
            "100 epochs, full batches": lambda: run("full_batch"),
            "100 epochs, a tenth a batch": lambda: run("poisson"),
        },
        rounds,
    )


def measure(quick, rounds):
    """Yield rows of the result."""
    ours = f"numpy {version('numpy')}"
    n, d, batch_size = (20_000, 100, 1000) if quick else (100_000, 100, 1000)
    taken = epoch(n, d, batch_size, rounds)
    for name, ms in taken.items():
        yield name, ms, ms / taken[FLOOR], FLOOR, ours
    peer = None if quick else opacus_epoch(n, d, batch_size)
    if peer is not None:
        ms, versions = peer
        yield "one epoch, Opacus", ms, ms / taken[FLOOR], FLOOR, versions
    yield "memory beyond the table", np.nan, memory(n, d, batch_size), "one batch", ours
    learn = f"{ours}, scikit-learn {version('scikit-learn')}"
    if not quick and os.environ.get(DATA_DIRECTORY):
        X, y = LOADERS["adult"]()
        fit = f"{FIT}, Adult"
    else:
        X, y = encoded_adult(*load_adult(return_X_y=True))
        fit = f"{FIT}, sample of Adult"
    X = StandardScaler().fit_transform(X)
    taken = hundred_epochs(X, y, max(1, rounds // 5))
    for name, ms in taken.items():
        yield name, ms, ms / taken[FIT], fit, learn


def check(rows):
    """What must hold on every machine."""
    ratio = rows.set_index("measure")["ratio"]
    assert ratio["one epoch"] < ratio["one epoch, plain NumPy"], ratio
    assert ratio["one epoch"] < 20, ratio
    assert ratio["memory beyond the table"] < 20, ratio
    assert ratio["100 epochs, full batches"] < 50, ratio


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small, and no peer")
    parser.add_argument("--rounds", type=int, help="repetitions (25, or 5 if quick)")
    arguments = parser.parse_args()
    rounds = arguments.rounds or (5 if arguments.quick else 25)
    with threadpool_limits(1):
        rows = pd.DataFrame(measure(arguments.quick, rounds), columns=COLUMNS)
    check(rows)
    if not arguments.quick:
        old = read_csv(FILE, COLUMNS)
        # a peer that is not here keeps its stored figure
        missing = old[~old["measure"].isin(rows["measure"])]
        rows = pd.concat([rows, missing], ignore_index=True) if len(missing) else rows
        write_csv(rows.round(3), FILE)
    print_table(
        [
            (
                r.measure,
                "" if np.isnan(r.cpu_ms) else f"{r.cpu_ms:.2f}",
                f"{r.ratio:.2f} x",
                r.to,
            )
            for r in rows.itertuples()
        ],
        header=("measure", "CPU ms", "ratio", "to"),
    )


if __name__ == "__main__":
    main()
