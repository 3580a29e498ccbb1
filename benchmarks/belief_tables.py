"""What a declared belief buys models of tables, on Adult.

    python -m benchmarks.belief_tables [--quick] [--splits N]

Race, white or other, is secret; 16,000 public rows have race and features and no label,
1000 or 5000 private rows have the label. Declared are odds of race by logistic
regression on the public rows, with odds of two for the label. An additive model and
naive Bayes of cells read the ten raw columns by a code book of the public rows;
logistic regression reads them as in ``benchmarks.beliefs``. All have library defaults.
Beside each accuracy stand those of plain differential privacy at equal (epsilon,
delta), a record replaced and a record added or removed. Means of five splits of three
draws, scored on all other rows.

The files of Adult are those of the folder that SKPUFFER_TEST_DATA names; without one,
and with ``--quick``, the shipped sample is taken. ``--quick`` takes one split and the
smallest epsilon, checks what must hold on every machine, and stores nothing.
"""

import argparse
import os
import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import beliefs
from benchmarks._report import print_table, versions, write_csv
from benchmarks._rows import EPSILONS, NAMES, NUMBERS, PLAIN, unit_rows
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.scenarios import AttributeScenario, BoundedOdds, DeclaredOdds
from skpuffer.schema import Schema

KEYS = ["data", "model", "n", "epsilon", "promise"]
DECLARED = "declared odds"
AMOUNTS = ["capital-gain", "capital-loss"]
INCOMES = ["<=50K", ">50K"]
#: What a prototype of the additive model had, by model, number and epsilon.
SEEN = {
    ("PrivateAdditiveClassifier", n, epsilon): accuracy
    for n, found in ((1000, (0.791, 0.825, 0.839)), (5000, (0.838, 0.847, 0.856)))
    for epsilon, accuracy in zip(EPSILONS, found, strict=True)
}


def splits(quick, n_splits):
    """Yield splits of Adult: size, number, raw columns, labels, indices, race."""
    directory = os.environ.get("SKPUFFER_TEST_DATA")
    if quick or not directory:
        parts = [load_adult(subset=subset) for subset in ("test", "train")]
        data = pd.concat([part.data for part in parts], ignore_index=True)
        y = pd.concat([part.target for part in parts], ignore_index=True)
        n_public = 2000
    else:
        data, y = fetch_adult(data_home=directory, return_X_y=True)
        data, y = data.reset_index(drop=True), y.reset_index(drop=True)
        n_public = 16_000
    X = data[NUMBERS].join(data[NAMES].astype(object).fillna("unknown"))
    white, labels = (data["race"] == "White").to_numpy(), np.asarray(y.astype(str))
    for size in (1000,) if quick else (1000, 5000):
        for split in range(n_splits):
            order = np.random.default_rng(split).permutation(len(y))
            indices = np.split(order, [n_public, n_public + size])
            yield size, split, X, labels, indices, white


def scenarios_of(odds, X, public, white):
    """Return promises by name, with a classifier of race fitted on public rows."""
    odds.fit(X.iloc[public], white[public])
    belief = DeclaredOdds(odds, X.iloc[public], rest=BoundedOdds(2.0))
    return PLAIN | {DECLARED: AttributeScenario("race", level="record", prior=belief)}


def readings(X, public, white):
    """Yield models with what they read, and the scenarios of it."""
    schema = Schema.from_public(X.iloc[public], amounts=AMOUNTS)
    encoder = make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), NAMES)
    )
    odds = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    scenarios = scenarios_of(odds, X, public, white)
    for kind in (PrivateAdditiveClassifier, PrivateCategoricalNB):
        yield partial(kind, schema=schema, classes=INCOMES), X, scenarios
    rows = unit_rows(X, np.isin(np.arange(len(X)), public))
    scenarios = scenarios_of(LogisticRegression(max_iter=1000), rows, public, white)
    yield partial(PrivateLogisticRegression, classes=INCOMES), rows, scenarios


def measured(quick, n_splits):
    """Return a data frame with a row for each fit."""
    found = []
    for size, split, X, labels, indices, white in splits(quick, n_splits):
        public, private, held_out = indices
        truth = labels[held_out] == INCOMES[1]
        for make, rows, scenarios in readings(X, public, white):
            for epsilon, (promise, scenario) in product(
                EPSILONS[:1] if quick else EPSILONS, scenarios.items()
            ):
                model = make(scenario, beliefs.accountant_of(promise, epsilon))
                for _ in range(3):
                    model.fit(rows.iloc[private], labels[private])
                    chance = model.predict_proba(rows.iloc[held_out])[:, 1]
                    scores = (
                        float(np.mean((chance > 0.5) == truth)),
                        float(roc_auc_score(truth, chance)),
                        model.certificate_.gain,
                    )
                    key = ("adult", type(model).__name__, size, epsilon, promise, split)
                    found.append(key + scores)
    return pd.DataFrame(found, columns=[*KEYS, "split", "accuracy", "auc", "gain"])


def check(table):
    """Check what must hold on every machine: a belief is not worse than a record."""
    for key, found in table.groupby(["model", "n", "epsilon"]):
        by = found.groupby("promise")["accuracy"]
        mean, error = by.mean(), by.sem()
        slack = 2 * float(np.hypot(error[DECLARED], error["DP, replace"]))
        assert mean[DECLARED] >= mean["DP, replace"] - slack, (key, mean)
        if key in SEEN and found["split"].nunique() > 1:
            assert mean[DECLARED] >= SEEN[key] - 0.005, (key, mean)
    gains = table[table["promise"] == DECLARED].groupby(["model", "n", "epsilon"])
    assert (gains["gain"].min() > 1).all(), gains["gain"].min()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    quick = options.quick
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no gain, too little for a model
        table = measured(quick, options.splits or (1 if quick else 5))
    summary = (
        table.groupby(KEYS, sort=False)
        .agg(
            accuracy=("accuracy", "mean"),
            standard_error=("accuracy", "sem"),
            auc=("auc", "mean"),
            gain=("gain", "mean"),
            splits=("split", "nunique"),
        )
        .reset_index()
    )
    print_table(
        [
            (
                *map(str, key),
                f"{accuracy:.3f}",
                f"{error:.3f}",
                f"{auc:.3f}",
                f"{g:.2f}",
            )
            for *key, accuracy, error, auc, g, _ in summary.to_numpy()
        ],
        (*KEYS, "accuracy", "±", "AUC", "gain"),
    )
    check(table)
    if not quick:
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(summary.assign(**used).round(5), "belief_tables.csv")


if __name__ == "__main__":
    main()
