"""The time to import one estimator, beside scikit-learn's own.

    python -m benchmarks.imports [--quick] [--turns N]

CPU seconds of fresh processes that import one name each, the least of several turns
that alternate, what is compiled being stored already. What is compared to is the
estimator of scikit-learn that does the like without privacy.

Stores the figures with versions in ``benchmarks/results/imports.csv``. ``--quick``
takes one turn, checks what must hold on every machine, and stores nothing.
"""

import argparse
import os
import resource
import subprocess
import sys

import pandas as pd

from benchmarks._report import print_table, versions, write_csv

PAIRS = {
    "skpuffer": "sklearn.__version__",
    "skpuffer.linear_model.PrivateLogisticRegression": (
        "sklearn.linear_model.LogisticRegression"
    ),
    "skpuffer.linear_model.PrivateRidge": "sklearn.linear_model.Ridge",
    "skpuffer.summary.PrivateMean": "sklearn.preprocessing.StandardScaler",
    "skpuffer.cluster.PrivateKMeans": "sklearn.cluster.KMeans",
    "skpuffer.compose.OutputPerturbation": "sklearn.ensemble.RandomForestClassifier",
}


def seconds(name):
    """CPU seconds of a fresh process that imports a name, and does nothing else."""
    room, _, thing = name.rpartition(".")
    code = f"from {room} import {thing}" if room else f"import {name}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # what modules compile to is stored, as it is wherever a library is installed
    environment = {k: v for k, v in os.environ.items() if "DONTWRITE" not in k}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one turn, nothing stored")
    parser.add_argument("--turns", type=int, default=20, help="20, or 1 if quick")
    arguments = parser.parse_args()
    quick = arguments.quick
    n_turns = 1 if quick else arguments.turns

    nothing = min(seconds("os.path") for _ in range(n_turns))
    rows = []
    for ours, theirs in PAIRS.items():
        seconds(ours)
        turns = [(seconds(ours), seconds(theirs)) for _ in range(n_turns)]
        own, other = (min(column) for column in zip(*turns, strict=True))
        rows.append(
            {
                "ours": ours,
                "beside": theirs,
                "seconds": own,
                "beside_seconds": other,
                "ratio": own / other,
            }
        )
    frame = pd.DataFrame(rows).assign(python_alone=nothing)
    print_table([[*row] for row in frame.round(3).to_numpy()], list(frame.columns))
    # the library alone needs nothing of what it rests on
    alone = frame["ours"] == "skpuffer"
    assert (frame["seconds"] < frame["beside_seconds"])[alone].all()
    if not quick:
        write_csv(
            frame.round(4).assign(**versions("numpy", "scipy", "scikit-learn")),
            "imports.csv",
        )


if __name__ == "__main__":
    main()
