"""Variance that private principal components keep, beside diffprivlib's.

    python -m benchmarks.pca [--quick]

The share of the variance along the best k directions that lies along the released ones,
on six tables of numbers at epsilon 0.1, 1 and 3, twenty draws of noise each (five of
Adult); beside it that of random directions. Ours is under (epsilon, 1e-5) with Gaussian
noise, and under pure epsilon with noise in the l2 norm and with Laplace noise. The
peer, of pure epsilon, runs on the same arrays where SKPUFFER_DIFFPRIVLIB_PYTHON names
the interpreter of its environment (its stored figures where not), five draws each. It
samples by rejection, and where five draws take longer than ten seconds it is stopped:
its figure is missing then. The range of the table is taken for public bounds, for
either, and columns are as they come ("raw") or scaled to [-1, 1] by them ("scaled").

The data files are those that SKPUFFER_TEST_DATA names. Stores the figures with versions
in ``benchmarks/results/pca.csv``. ``--quick`` takes the small tables and no peer,
checks what must hold on every machine, and stores nothing.
"""

import argparse
import math
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._classic_tables import TABLES, Bounded
from benchmarks._peers import Peer
from benchmarks._report import print_table, read_csv, renewed, write_csv
from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import PrivacyWarning
from skpuffer.noise import L2LaplaceNoise

FILE = "pca.csv"
KEY = ["model", "table", "columns", "k", "epsilon"]
COLUMNS = [*KEY, "kept", "std", "variance_error", "cpu_ms", "n_fits", "versions"]
EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-5
OURS, RANDOM = "ours, delta 1e-5", "random directions"
PURE, LAPLACE = "ours, pure, noise in l2", "ours, pure, Laplace"
#: Directions that are asked for.
KEPT = {"digits": 5}
PEER = Peer(
    name="diffprivlib",
    variable="SKPUFFER_DIFFPRIVLIB_PYTHON",
    script="diffprivlib_pca.py",
    relation="replace",
    pure=True,
)
#: Seconds after which the peer is stopped.
_PATIENCE = 10
VERSIONS = f"numpy {version('numpy')}, scikit-learn {version('scikit-learn')}"
ACCOUNTANTS = {
    OURS: lambda epsilon: PrivacyLoss(epsilon, DELTA, noise="gaussian"),
    PURE: lambda epsilon: GroupPrivacy(epsilon, math.inf, noise=L2LaplaceNoise()),
    LAPLACE: lambda epsilon: GroupPrivacy(epsilon, math.inf, noise="laplace"),
}


def share_kept(components, covariance):
    """Part of the variance along the best directions that lies along these."""
    best = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return float(np.trace(components @ covariance @ components.T) / best)


def our_fit(table, k, accountant, seed, covariance):
    model = PrivatePCA(
        k, bounds=(table.low, table.high), accountant=accountant, random_state=seed
    )
    start = time.process_time()
    model.fit(table.X_train)
    seconds = time.process_time() - start
    exact = np.linalg.eigvalsh(covariance)[::-1][:k]
    error = float(np.abs(model.explained_variance_ - exact).sum() / exact.sum())
    return share_kept(model.components_, covariance), error, seconds


def fits(table, k, n_draws, peer):
    """Yield (model, epsilon, kept, error of variances, CPU seconds, versions)."""
    covariance = np.cov(table.X_train.T)
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        basis = np.linalg.qr(rng.normal(size=(len(covariance), k)))[0].T
        yield RANDOM, 0.0, share_kept(basis, covariance), math.nan, 0.0, VERSIONS
    for model, accountant in ACCOUNTANTS.items():
        for epsilon in EPSILONS:
            for seed in range(n_draws):
                found = our_fit(table, k, accountant(epsilon), seed, covariance)
                yield model, epsilon, *found, VERSIONS
    for epsilon in EPSILONS if peer else ():
        answer = PEER.measure(
            table,
            timeout=_PATIENCE,
            epsilons=[epsilon],
            seeds=list(range(5)),
            n_components=k,
        )
        if answer is None:
            told = f"diffprivlib: none of five fits within {_PATIENCE} s"
            yield PEER.name, epsilon, math.nan, math.nan, math.nan, told
            continue
        told = f"diffprivlib {answer['versions']['peer']}"
        for row in answer["rows"]:
            kept = share_kept(np.array(row["components"]), covariance)
            yield PEER.name, epsilon, kept, math.nan, row["cpu_seconds"], told


def tables(name):
    """A table as it comes, and scaled by its bounds."""
    X, y = TABLES[name]()
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = 2 * (X - low) / (high - low) - 1
    ones = np.ones(X.shape[1])
    none = np.empty((0, X.shape[1]))
    yield "raw", Bounded(X, y, none, y[:0], low, high)
    yield "scaled", Bounded(scaled, y, none, y[:0], -ones, ones)


def measure(quick):
    names = list(TABLES)[:2] if quick else list(TABLES)
    columns = ["model", "epsilon", "kept", "error", "cpu", "versions"]
    for name in names:
        k, n_draws = KEPT.get(name, 2), 5 if name.startswith("Adult") else 20
        peer = not quick and PEER.interpreter is not None
        for kind, table in tables(name):
            frame = pd.DataFrame(fits(table, k, n_draws, peer), columns=columns)
            for (model, epsilon), group in frame.groupby(
                ["model", "epsilon"], sort=False
            ):
                yield {
                    "model": model,
                    "table": name,
                    "columns": kind,
                    "k": k,
                    "epsilon": epsilon,
                    "kept": group["kept"].mean(),
                    "std": group["kept"].std(),
                    "variance_error": group["error"].mean(),
                    "cpu_ms": 1000 * group["cpu"].median(),
                    "n_fits": len(group),
                    "versions": group["versions"].iloc[0],
                }


def check(rows):
    """What must hold on every machine."""
    found = rows[rows["columns"] == "raw"].set_index(["model", "table", "epsilon"])
    kept = found["kept"]
    for name in rows["table"].unique():
        assert kept[OURS, name, 3.0] > kept[RANDOM, name, 0.0] + 0.2, name
        assert kept[OURS, name, 3.0] > 0.85, name


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small, and no peer")
    arguments = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        rows = pd.DataFrame(measure(arguments.quick), columns=COLUMNS)
    if not arguments.quick:
        write_csv(renewed(read_csv(FILE, COLUMNS), rows.round(4), KEY), FILE)
    print_table(
        [
            (
                f"{r.table} ({r.columns}), k = {r.k}: {r.model}",
                f"{r.epsilon:g}",
                f"{r.kept:.3f}",
                "" if math.isnan(r.variance_error) else f"{r.variance_error:.2f}",
                f"{r.cpu_ms:.1f}",
            )
            for r in rows.itertuples()
        ],
        header=("table and model", "epsilon", "kept", "variance error", "CPU ms"),
    )
    check(rows)


if __name__ == "__main__":
    main()
