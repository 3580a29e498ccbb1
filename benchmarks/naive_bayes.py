"""Accuracy of private naive Bayes, beside diffprivlib's and none of privacy.

    python -m benchmarks.naive_bayes [--quick]

* Gaussian naive Bayes on five tables of numbers at epsilon 0.3, 1 and 3: ten splits, a
  quarter held out, twenty draws of noise each (five of Adult). Ours is
  under (epsilon, 1e-5) with Gaussian noise and under pure epsilon with Laplace noise;
  the peer, of pure epsilon, runs on the same arrays where SKPUFFER_DIFFPRIVLIB_PYTHON
  names the interpreter of its environment (its stored figures where not). The range of
  the whole table is taken for public bounds, for either.
* Categorical naive Bayes on Adult's 13 columns, trained on the publisher's training
  part and tested on the other, at epsilon 0.1, 0.3 and 1 with delta 1e-5: accuracy,
  area under the curve and CPU time of a fit.

The data files are those that SKPUFFER_TEST_DATA names. Stores the figures with versions
in ``benchmarks/results/naive_bayes.csv``. ``--quick`` takes the small tables, one split
and no peer, checks what must hold on every machine, and stores nothing.
"""

import argparse
import math
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from benchmarks._classic_tables import TABLES, Bounded, adult
from benchmarks._peers import Peer
from benchmarks._report import print_table, read_csv, renewed, write_csv
from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.exceptions import PrivacyWarning
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.schema import Schema

FILE = "naive_bayes.csv"
KEY = ["model", "table", "epsilon"]
COLUMNS = [*KEY, "accuracy", "std", "auc", "cpu_ms", "n_fits", "versions"]
EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-5
OURS, PURE, EXACT = "ours, delta 1e-5", "ours, pure", "scikit-learn, no privacy"
PEER = Peer(
    name="diffprivlib",
    variable="SKPUFFER_DIFFPRIVLIB_PYTHON",
    script="diffprivlib_naive_bayes.py",
    relation="add_remove",
    pure=True,
)
VERSIONS = f"numpy {version('numpy')}, scikit-learn {version('scikit-learn')}"


def splits(name, n_splits):
    """Splits of a table, with the range of the whole as public bounds."""
    X, y = TABLES[name]()
    low, high = X.min(axis=0), X.max(axis=0)
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, random_state=seed, stratify=y
        )
        yield Bounded(X_train, y_train, X_test, y_test, low, high)


def our_accuracy(split, accountant, seed):
    model = PrivateGaussianNB(
        accountant=accountant,
        bounds=(split.low, split.high),
        classes=np.unique(split.y_train),
        random_state=seed,
    )
    start = time.process_time()
    model.fit(split.X_train, split.y_train)
    seconds = time.process_time() - start
    return model.score(split.X_test, split.y_test), seconds


def gaussian(name, n_splits, n_draws, peer):
    """Yield (model, epsilon, accuracy, CPU seconds, versions) of single fits."""
    for number, split in enumerate(splits(name, n_splits)):
        # other draws for each split
        seeds = [1000 * number + draw for draw in range(n_draws)]
        exact = GaussianNB().fit(split.X_train, split.y_train)
        yield EXACT, math.inf, exact.score(split.X_test, split.y_test), 0.0, VERSIONS
        for epsilon in EPSILONS:
            accountants = {
                OURS: PrivacyLoss(epsilon, DELTA, noise="gaussian"),
                PURE: GroupPrivacy(epsilon, math.inf, noise="laplace"),
            }
            for model, accountant in accountants.items():
                for seed in seeds:
                    found = our_accuracy(split, accountant, seed)
                    yield model, epsilon, *found, VERSIONS
        if peer:
            answer = PEER.measure(split, epsilons=EPSILONS, seeds=seeds)
            told = f"diffprivlib {answer['versions']['peer']}"
            for row in answer["rows"]:
                yield (
                    PEER.name,
                    row["epsilon"],
                    row["accuracy"],
                    row["cpu_seconds"],
                    told,
                )


def summarised(name, rows):
    """Means over splits and draws, as rows of the result."""
    columns = ["model", "epsilon", "accuracy", "cpu", "versions"]
    frame = pd.DataFrame(rows, columns=columns)
    for (model, epsilon), group in frame.groupby(["model", "epsilon"], sort=False):
        yield {
            "model": model,
            "table": name,
            "epsilon": epsilon,
            "accuracy": group["accuracy"].mean(),
            "std": group["accuracy"].std(),
            "auc": math.nan,
            "cpu_ms": 1000 * group["cpu"].median(),
            "n_fits": len(group),
            "versions": group["versions"].iloc[0],
        }


def categorical(n_draws=5):
    """Yield rows of the categorical model on Adult."""
    (X, y), (X_test, y_test) = adult("train"), adult("test")
    # of questions that are public: the levels and ranges of the questionnaire
    schema = Schema.from_public(
        X.assign(income=y),
        target="income",
        amounts=["capital-gain", "capital-loss"],
        max_levels=50,
    )
    positive = y_test == schema.classes[1]
    for epsilon in (0.1, 0.3, 1.0, math.inf):
        found = []
        for seed in range(n_draws):
            budget = 1e6 if math.isinf(epsilon) else epsilon
            model = PrivateCategoricalNB(
                accountant=PrivacyLoss(budget, DELTA, noise="gaussian"),
                schema=schema,
                random_state=seed,
            )
            start = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - start
            scores = model.predict_proba(X_test)[:, 1]
            right = model.score(X_test, y_test)
            found.append((right, roc_auc_score(positive, scores), seconds))
        means, spread = np.mean(found, axis=0), np.std(found, axis=0)
        yield {
            "model": "categorical, ours, delta 1e-5",
            "table": "Adult, 13 columns",
            "epsilon": epsilon,
            "accuracy": means[0],
            "std": spread[0],
            "auc": means[1],
            "cpu_ms": 1000 * np.median(np.array(found)[:, 2]),
            "n_fits": n_draws,
            "versions": VERSIONS,
        }


def measure(quick):
    names = [name for name in TABLES if name != "digits"]
    for name in names[:3] if quick else names:
        large = name.startswith("Adult")
        n_splits = 1 if quick else 10
        peer = not quick and PEER.interpreter is not None
        n_draws = 5 if large or quick else 20
        yield from summarised(name, gaussian(name, n_splits, n_draws, peer))
    if not quick:
        yield from categorical()


def check(rows):
    """What must hold on every machine."""
    found = rows.set_index(KEY)["accuracy"]
    for name in rows["table"].unique():
        if (EXACT, name, math.inf) in found:
            exact = found[EXACT, name, math.inf]
            assert found[OURS, name, 3.0] > exact - 0.15, name
            assert found[OURS, name, 0.3] <= exact + 0.05, name


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small, and no peer")
    arguments = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        rows = pd.DataFrame(measure(arguments.quick), columns=COLUMNS)
    check(rows)
    if not arguments.quick:
        write_csv(renewed(read_csv(FILE, COLUMNS), rows.round(4), KEY), FILE)
    print_table(
        [
            (
                f"{r.table}: {r.model}",
                f"{r.epsilon:g}",
                f"{r.accuracy:.3f}",
                "" if math.isnan(r.auc) else f"{r.auc:.3f}",
                f"{r.cpu_ms:.1f}",
            )
            for r in rows.itertuples()
        ],
        header=("table and model", "epsilon", "accuracy", "AUC", "CPU ms"),
    )


if __name__ == "__main__":
    main()
