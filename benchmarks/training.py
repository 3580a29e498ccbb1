"""Speed of noisy clipped gradient descent, as ratios to what cannot be avoided.

    python -m benchmarks.training [--quick] [--rounds N]

CPU time on one thread, all measured in turn in one run, the least of all turns:

* one epoch of Poisson batches of 1000 out of 100,000 records of 100 features in
  float32, logistic loss, every gradient clipped, sampling and noise included. The
  yardstick is the two products that no gradient can do without, ``X @ w`` and
  ``X.T @ r``, over the whole table; beside it, a loop written plainly in NumPy, and
  Opacus in normal use where SKPUFFER_OPACUS_PYTHON names the interpreter of its
  environment (its stored figure where not);
* the same after other data has gone through the caches, and of 1,000,000 records of 50
  features in batches of 10,000;
* an epoch of ten classes, and of a perceptron with 100 hidden units, each beside a loop
  in plain NumPy that clips without building a gradient, too;
* what is done once a table (norms and checks), of a sparse one beside the sums of
  squares by `reduceat`;
* the memory taken beyond the table, in tables: by a run of full batches, and by one
  that draws them, on an array in either order and on a memory map, rows scaled down to
  a norm;
* 100 epochs on Adult (complete rows, one-hot, z-scored) where SKPUFFER_TEST_DATA names
  the folder of its files, on the sample that is shipped elsewhere, against the fit of
  scikit-learn's LogisticRegression.

An epoch of small batches stays above 2.5 times the two products. Of what it takes over
them 1.4 are for copying rows that were drawn at random, of 400 bytes each, which memory
hands out at a third of the speed of rows in order, in whatever order and however many
at once (1 to 16 of 100 rows: the same); 0.15 for drawing, 0.4 for products with them,
0.2 for loss and clipping, the rest is some 22 microseconds a step, however few
its rows (in batches of ten). Two
threads, for halves of a batch or to copy the next one meanwhile, took a quarter more
CPU and were no faster in batches of 1000. A table in Fortran order is copied once, as a
row of it is spread over as many cache lines as it has columns.

The perceptron takes 0.75 of the plain loop, where 0.67 was the goal: of a millisecond a
step 0.45 are the two products with its hidden layer and 0.1 is the noise of its 10,201
weights, as there, and 0.07 copying rows; the rest are eight passes over the hidden
layer of 20 to 30 microseconds each (bias, activation, slope, the product back, scaling,
two norms). Other routines for the norms (`vecdot`, products of single rows) save 5
microseconds, sums over slices of one length 3; to clip the product back before it is
formed would save one pass.

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
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, read_csv, write_csv
from benchmarks._tables import DATA_DIRECTORY, LOADERS, encoded_adult
from skpuffer.datasets import load_adult
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    PerceptronGradients,
    train,
)

N_CLASSES, N_HIDDEN = 10, 100
FILE, COLUMNS = "training.csv", ["measure", "cpu_ms", "ratio", "to", "versions"]
FLOOR, FIT = "two products over the table", "LogisticRegression"
SQUARES = "sums of squares by reduceat"
OPTIMISER = Optimiser(learning_rate=1.0)


def in_turn(calls, rounds, cold=False):
    """Least CPU milliseconds of each call by name, taken in turn.

    Each is called twice, and the second call counts: caches are then as an epoch that
    follows another finds them, not as another call has left them. With `cold`, other
    data goes through the caches in between.
    """
    taken = {name: [] for name in calls}
    others = np.ones(2**24) if cold else None
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            if others is not None:
                others += 1
            start = time.process_time()
            call()
            taken[name].append(1000 * (time.process_time() - start))
    # what other work on the machine adds, it adds to some turns and takes from none
    return {name: min(times) for name, times in taken.items()}


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    return X, (X[:, 0] > rng.standard_normal(n)).astype(np.float32)


def batches(n, batch_size, n_steps, rng):
    """Poisson batches as a person draws them first."""
    for _ in range(n_steps):
        yield np.flatnonzero(rng.random(n) < batch_size / n)


def plain_loop(X, y, batch_size, n_steps, rng):
    """What a person writes first."""
    n, d = X.shape
    w = np.zeros(d, dtype=np.float32)
    for batch in batches(n, batch_size, n_steps, rng):
        rows = X[batch]
        residual = 1 / (1 + np.exp(-(rows @ w))) - y[batch]
        lengths = np.abs(residual) * np.linalg.norm(rows, axis=1)
        residual /= np.maximum(1, lengths)
        total = rows.T @ residual + rng.normal(size=d)
        w -= (total / batch_size).astype(np.float32)
    return w


def plain_classes(X, y, batch_size, n_steps, rng):
    """The same for several classes."""
    n, d = X.shape
    w = np.zeros((d, N_CLASSES), dtype=np.float32)
    for batch in batches(n, batch_size, n_steps, rng):
        rows = X[batch]
        scores = rows @ w
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(p)), y[batch]] -= 1
        lengths = np.linalg.norm(p, axis=1) * np.linalg.norm(rows, axis=1)
        p /= np.maximum(1, lengths)[:, None]
        total = rows.T @ p + rng.normal(size=w.shape)
        w -= (total / batch_size).astype(np.float32)
    return w


def plain_perceptron(X, y, batch_size, n_steps, rng):
    """The same for one hidden layer, clipped by the norms of what enters and leaves."""
    n, d = X.shape
    layers = [
        rng.normal(scale=0.1, size=(d, N_HIDDEN)).astype(np.float32),
        np.zeros(N_HIDDEN, np.float32),
        rng.normal(scale=0.1, size=N_HIDDEN).astype(np.float32),
        np.zeros((), np.float32),
    ]
    for batch in batches(n, batch_size, n_steps, rng):
        rows, (W, b, v, c) = X[batch], layers
        hidden = np.maximum(rows @ W + b, 0)
        outer = 1 / (1 + np.exp(-(hidden @ v + c))) - y[batch]
        inner = outer[:, None] * v * (hidden > 0)
        squares = (np.linalg.norm(rows, axis=1) ** 2 + 1) * np.linalg.norm(
            inner, axis=1
        ) ** 2 + (np.linalg.norm(hidden, axis=1) ** 2 + 1) * outer**2
        shares = 1 / np.maximum(1, np.sqrt(squares))
        inner, outer = inner * shares[:, None], outer * shares
        sums = rows.T @ inner, inner.sum(axis=0), hidden.T @ outer, outer.sum()
        layers = [
            (layer - (total + rng.normal(size=layer.shape)) / batch_size).astype("f")
            for layer, total in zip(layers, sums, strict=True)
        ]
    return layers


def release_of(n, batch_size):
    return GradientRelease(
        n_records=n,
        batch_size=batch_size,
        n_steps=n // batch_size,
        optimiser=OPTIMISER,
    )


def epoch(n, d, batch_size, rounds, cold=False):
    X, y = table(n, d)
    w, r = X[0].copy(), y - np.float32(0.5)
    gradients = LinearGradients(Logistic(), X, y, intercept_scale=0.0)
    release = release_of(n, batch_size)
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
        cold,
    )


def models(n, d, batch_size, rounds):
    """Epochs of larger models, and of the plain loops that do the same."""
    X, y = table(n, d)
    classes = np.random.default_rng(2).integers(N_CLASSES, size=n)
    release = release_of(n, batch_size)
    noise, rng = GaussianNoise(1.0), np.random.default_rng(1)
    multinomial = LinearGradients(
        Multinomial(), X, classes, n_classes=N_CLASSES, intercept_scale=0.0
    )
    perceptron = PerceptronGradients(Logistic(), X, y, n_hidden=N_HIDDEN)
    plain = batch_size, release.n_steps, rng
    return in_turn(
        {
            "ten classes, plain NumPy": lambda: plain_classes(X, classes, *plain),
            "ten classes": lambda: train(multinomial, release, noise, rng),
            "perceptron, plain NumPy": lambda: plain_perceptron(X, y, *plain),
            "perceptron": lambda: train(perceptron, release, noise, rng),
        },
        rounds,
    )


def sparse_setup(n, per_row, rounds):
    """What is done once a sparse table, and the least that finds its norms."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(
        (
            rng.standard_normal(n * per_row, dtype=np.float32),
            np.sort(rng.integers(10_000, size=(n, per_row)), axis=1).ravel(),
            np.arange(0, n * per_row + 1, per_row),
        ),
        shape=(n, 10_000),
    )
    X.sum_duplicates()
    y = np.zeros(n)

    def setup():
        # whether entries are in order is found out anew
        fresh = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        return LinearGradients(Logistic(), fresh, y)

    def squares():
        values = X.data.astype(float)
        return np.sqrt(np.add.reduceat(values * values, X.indptr[:-1]))

    return in_turn({SQUARES: squares, "once a sparse table": setup}, rounds)


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
    return 1000 * min(found["cpu_seconds"]), f"opacus {found['version']}"


def memory(n, d, batch_size):
    """Yield how tables are stored and drawn from, and tables at the peak besides."""
    X = table(n, d)[0].astype(np.float64)
    y = np.zeros(n)
    drawn, full = release_of(n, batch_size), release_of(n, n)
    full = replace(full, batch_size=None, sampling="full_batch", n_steps=3)
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "table.npy", X)
        mapped = np.load(Path(folder) / "table.npy", mmap_mode="r")
        for store, Z in (("C", X), ("F", np.asfortranarray(X)), ("map", mapped)):
            for kind, release in (("full batches", full), ("batches", drawn)):
                tracemalloc.start()
                gradients = LinearGradients(Logistic(), Z, y, data_norm=10.0)
                train(gradients, release, GaussianNoise(1.0), np.random.default_rng(0))
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                yield f"memory, {store}, {kind}", peak / X.nbytes
        # a mapped file that is open cannot be removed everywhere
        del mapped, Z, gradients


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


def over(taken, name, to):
    """Ratio of what was taken, and to what."""
    return taken[name] / taken[to], to


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
    taken = epoch(n, d, batch_size, rounds, cold=True)
    yield "one epoch, cold", taken["one epoch"], *over(taken, "one epoch", FLOOR), ours
    many = (50_000, 50, 1000) if quick else (1_000_000, 50, 10_000)
    taken = epoch(*many, max(1, rounds // 5))
    yield "one epoch, long", taken["one epoch"], *over(taken, "one epoch", FLOOR), ours
    taken = models(n, d, batch_size, max(1, rounds // 3))
    for name in ("ten classes", "perceptron"):
        yield name, taken[name], *over(taken, name, f"{name}, plain NumPy"), ours
    taken = sparse_setup(n, 50, rounds)
    name = "once a sparse table"
    yield name, taken[name], *over(taken, name, SQUARES), ours
    for name, tables in memory(n, d, batch_size):
        yield name, np.nan, tables, "tables", ours
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
    assert ratio["memory, C, batches"] < 1, ratio
    assert ratio["once a sparse table"] < 50, ratio
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
        peers = old["versions"].str.startswith("opacus")
        missing = old[peers & ~old["measure"].isin(rows["measure"])]
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
