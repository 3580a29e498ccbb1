"""Inertia of private k-means over that of scikit-learn's, beside a peer.

    python -m benchmarks.kmeans [--quick] [--seeds N]

Rows are scaled to [-1, 1] by public bounds, and one record is added or removed. Each
figure is the mean over 10 seeds of the inertia of the private rows, over the one of
scikit-learn's KMeans (the best of 10 starts); "one centre" is that of the exact mean.
Ours has library defaults: (epsilon, 1e-5) by Gaussian noise, and pure epsilon by
Laplace noise. diffprivlib's KMeans (pure epsilon, its defaults, the same bounds) is run
in its own environment, whose interpreter SKPUFFER_DIFFPRIVLIB_PYTHON names; without one
it is left out, and nothing is stored. Rice and Adult (five numbers) are read from
the folder that SKPUFFER_TEST_DATA names. ``--quick`` takes small blobs and stores
nothing.
"""

import argparse
import math
import os
import time
import warnings
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_blobs
from threadpoolctl import threadpool_limits

from benchmarks._peers import Peer
from benchmarks._report import print_table, versions, write_csv
from benchmarks._tables import DATA_DIRECTORY
from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.cluster import PrivateKMeans
from skpuffer.datasets import fetch_adult, fetch_rice
from skpuffer.exceptions import PrivacyWarning

EPSILONS = (0.1, 0.3, 1.0, 3.0)
OURS, PURE, PEER, ONE = "ours", "ours, pure", "diffprivlib, pure", "one centre"

DIFFPRIVLIB = Peer(
    name="diffprivlib",
    variable="SKPUFFER_DIFFPRIVLIB_PYTHON",
    script="diffprivlib_kmeans.py",
    relation="add_remove",
    pure=True,
)

#: Largest ratio to scikit-learn's inertia at epsilon = 1, and of the peer's excess.
MOST = {"iris": 1.5, "wine": 1.5}
USUAL_MOST, SHARE_OF_PEER = 1.05, 0.5


@dataclass(frozen=True)
class Rows:
    """A table to cluster.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    n_clusters : int
    bounds : pair (low, high)
        Round numbers, as who knows the units would give them.
    """

    X: np.ndarray
    n_clusters: int
    bounds: tuple

    @property
    def scaled(self):
        """Rows in [-1, 1]."""
        low, high = (np.asarray(side, dtype=float) for side in self.bounds)
        return np.clip((2 * self.X - low - high) / (high - low), -1, 1)


def _wine():
    low = [11, 0.5, 1, 10, 70, 0.5, 0, 0, 0, 1, 0.4, 1, 250]
    high = [15, 6, 3.5, 30, 170, 4, 6, 0.7, 4, 13, 2, 4, 1700]
    return Rows(load_wine().data, 3, (low, high))


def _rice(options):
    low = [7000, 350, 140, 55, 0.75, 7000, 0.45]
    high = [19000, 550, 240, 110, 0.95, 20000, 0.9]
    X, _ = fetch_rice(return_X_y=True, as_frame=False, **options)
    return Rows(X, 2, (low, high))


def _adult(options):
    bounds = {
        "age": (17, 90),
        "education-num": (1, 16),
        "capital-gain": (0, 99_999),
        "capital-loss": (0, 4356),
        "hours-per-week": (1, 99),
    }
    X, _ = fetch_adult(return_X_y=True, **options)
    low, high = zip(*bounds.values(), strict=True)
    return Rows(X[list(bounds)].to_numpy(float), 5, (low, high))


def _blobs(n, d, k):
    X, _ = make_blobs(n, n_features=d, centers=k, random_state=0)
    return Rows(X, k, (-14, 14))


def tables(quick):
    """Return what is clustered, by name."""
    if quick:
        return {"blobs, 2-d": _blobs(3000, 2, 5)}
    found = {
        "iris": Rows(load_iris().data, 3, ([4, 2, 1, 0], [8, 5, 7, 3])),
        "wine": _wine(),
        "blobs, 2-d": _blobs(5000, 2, 5),
        "blobs, 6-d": _blobs(5000, 6, 8),
    }
    directory = os.environ.get(DATA_DIRECTORY)
    if directory:
        options = {"data_home": directory, "download_if_missing": False}
        found |= {"rice": _rice(options), "adult": _adult(options)}
    return found


def _accountants(epsilon):
    return {
        OURS: PrivacyLoss(epsilon, 1e-5),
        PURE: GroupPrivacy(epsilon, alpha=math.inf, noise="laplace"),
    }


def _ours(rows, seeds):
    for epsilon in EPSILONS:
        for method, accountant in _accountants(epsilon).items():
            for seed in range(seeds):
                model = PrivateKMeans(
                    rows.n_clusters,
                    bounds=rows.bounds,
                    accountant=accountant,
                    random_state=seed,
                )
                start = time.process_time()
                model.fit(rows.X)
                yield {
                    "method": method,
                    "epsilon": epsilon,
                    "inertia": -model.score(rows.X),
                    "cpu_seconds": time.process_time() - start,
                }


def _peer(rows, seeds):
    answer = DIFFPRIVLIB.measure(
        SimpleNamespace(rows=rows.scaled),
        n_clusters=rows.n_clusters,
        epsilons=EPSILONS,
        seeds=seeds,
    )
    version = answer["versions"]["peer"]
    return [{"method": PEER, "peer": version, **row} for row in answer["rows"]]


def measured(quick, seeds):
    """Return a data frame with a row for each fit."""
    found = []
    for name, rows in tables(quick).items():
        scaled = rows.scaled
        exact = KMeans(rows.n_clusters, n_init=10, random_state=0)
        start = time.process_time()
        reference = exact.fit(scaled).inertia_
        key = {"data": name, "n": len(scaled), "d": scaled.shape[1]}
        key |= {"k": rows.n_clusters, "sklearn_seconds": time.process_time() - start}
        every = list(_ours(rows, seeds))
        every.append(
            {
                "method": ONE,
                "epsilon": math.inf,
                "inertia": np.square(scaled - scaled.mean(axis=0)).sum(),
            }
        )
        if not quick and DIFFPRIVLIB.interpreter:
            every += _peer(rows, seeds)
        found += [key | row | {"ratio": row["inertia"] / reference} for row in every]
    return pd.DataFrame(found)


def check(summary):
    """What must hold at epsilon = 1."""
    at_one = summary[summary["epsilon"] == 1.0].pivot_table(
        "ratio", "data", "method", sort=False
    )
    for name, ratios in at_one.iterrows():
        assert ratios[OURS] <= MOST.get(name, USUAL_MOST), (name, ratios)
        if PEER in ratios:
            excess = (ratios[PEER] - 1) * SHARE_OF_PEER
            assert ratios[PURE] - 1 <= excess, (name, ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # seeds, too much noise
        frame = measured(options.quick, 2 if options.quick else options.seeds)
    key = ["data", "n", "d", "k", "method", "epsilon"]
    summary = (
        frame.groupby(key, sort=False)
        .agg(
            ratio=("ratio", "mean"),
            standard_error=("ratio", "sem"),
            seeds=("ratio", "size"),
            cpu_seconds=("cpu_seconds", "median"),
            sklearn_seconds=("sklearn_seconds", "first"),
        )
        .reset_index()
    )
    shown = summary.pivot_table("ratio", ["data", "method"], "epsilon", sort=False)
    print_table(
        [
            (*at, *("" if math.isnan(v) else f"{v:.2f}" for v in ratios))
            for at, ratios in zip(shown.index, shown.to_numpy(), strict=True)
        ],
        ("data", "method", *(f"{e:g}" for e in shown.columns)),
    )
    check(summary)
    if not options.quick and PEER in set(summary["method"]):
        used = versions("numpy", "scipy", "scikit-learn")
        peer = frame["peer"].dropna().iloc[0]
        write_csv(summary.assign(**used, diffprivlib=peer).round(4), "kmeans.csv")


if __name__ == "__main__":
    main()
