"""What a declared belief buys a model, beside differential privacy at equal (ε, δ).

    python -m benchmarks.beliefs [--quick] [--splits N]

delta is 1e-5, and models are logistic regressions with library defaults on rows in the
unit ball. Beside each accuracy stand those of plain differential privacy, a record
replaced and a record added or removed, on the same rows.

Adult: race, white or other, is secret; 16,000 public rows have race and features and no
label, 1000 or 5000 private rows have the label. Numbers are z-scored by the public rows
and clipped at 2, categories one-hot and centred, rows halved. Declared are odds of race
by logistic regression on the public rows, with odds of two for the label; or an AUC of
0.72, and no table. Means of five splits of three draws, scored on all other rows.

The files are those of the folder that SKPUFFER_TEST_DATA names; without one, and with
``--quick``, the shipped sample is taken. ``--quick`` takes one split, checks what must
hold on every machine, and stores nothing; any other run stores its figures in
``benchmarks/results``.
"""

import argparse
import os
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    RecordScenario,
)

EPSILONS = (0.1, 0.3, 1.0)
NUMBERS = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
NAMES = ["workclass", "marital-status", "occupation", "relationship", "sex"]
PLAIN = {
    "DP, replace": RecordScenario(relation="replace"),
    "DP, add/remove": RecordScenario(),
}


def unit_rows(frame, public):
    """Rows in the unit ball: numbers z-scored and clipped, others one-hot, centred."""
    numbers = frame.select_dtypes("number")
    z = (numbers - numbers[public].mean()) / numbers[public].std().replace(0, 1)
    parts = [z.clip(-2, 2)]
    if numbers.shape[1] < frame.shape[1]:
        encoded = pd.get_dummies(frame.drop(columns=numbers.columns), dtype=float)
        parts.append(encoded - encoded[public].mean())
    rows = pd.concat(parts, axis=1) / 2
    return rows.set_axis([f"x{i}" for i in range(rows.shape[1])], axis=1)


def score(model, X, y, fitted_on, scored_on):
    """Accuracy of one fit, and the certificate's gain."""
    model = model.fit(X.iloc[fitted_on], y[fitted_on])
    return model.score(X.iloc[scored_on], y[scored_on]), model.certificate_.gain


def census_splits(quick, n_splits):
    """Splits of Adult: size, number, features, labels, indices, scenarios by promise.

    Indices are those of the public rows, of the private ones and of all others.
    """
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
    white = (data["race"] == "White").to_numpy()
    y = np.asarray(y.astype(str))
    for size in (1000,) if quick else (1000, 5000):
        for split in range(n_splits):
            order = np.random.default_rng(split).permutation(len(y))
            indices = np.split(order, [n_public, n_public + size])
            mask = np.isin(np.arange(len(y)), indices[0])
            X = unit_rows(data[NUMBERS + NAMES], mask)
            odds = LogisticRegression(max_iter=1000).fit(X[mask], white[mask])
            beliefs = {
                "declared odds": DeclaredOdds(odds, X[mask], rest=BoundedOdds(2.0)),
                "AUC 0.72": BoundedInference(0.72),
            }
            scenarios = PLAIN | {
                name: AttributeScenario("race", level="record", prior=belief)
                for name, belief in beliefs.items()
            }
            yield size, split, X, y, indices, scenarios


def accountant_of(promise, epsilon):
    """Return the accountant of a promise, at delta of 1e-5."""
    kind = PrivacyLoss if promise in PLAIN else OverlapAmplification
    return kind(epsilon, delta=1e-5)


def census(quick, n_splits):
    """Accuracies on Adult, by size, epsilon and what is promised."""
    rows = []
    for size, split, X, y, indices, scenarios in census_splits(quick, n_splits):
        _, private, held_out = indices
        for epsilon in EPSILONS[:1] if quick else EPSILONS:
            for name, scenario in scenarios.items():
                accountant = accountant_of(name, epsilon)
                model = PrivateLogisticRegression(scenario, accountant)
                for _ in range(3):
                    found, gain = score(model, X, y, private, held_out)
                    rows.append(("adult", size, epsilon, name, split, found, gain))
    return rows


def check(table):
    """What must hold on every machine."""
    for (_, size, epsilon), found in table.groupby(["data", "n", "epsilon"]):
        mean = found.groupby("promise")["accuracy"].mean()
        spread = found.groupby("promise")["accuracy"].sem()
        for name in ("declared odds", "AUC 0.72"):
            slack = 2 * float(np.hypot(spread[name], spread["DP, replace"]))
            assert mean[name] >= mean["DP, replace"] - slack, (
                size,
                epsilon,
                name,
                mean,
            )
    gains = table[table["promise"] == "AUC 0.72"].groupby("epsilon")["gain"].first()
    # by the number alone, whatever the table
    assert np.allclose(gains[0.1], 3.129730, atol=1e-5), gains


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    columns = ["data", "n", "epsilon", "promise", "split", "accuracy", "gain"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds, categories, no gain
        rows = census(options.quick, options.splits or (1 if options.quick else 5))
    table = pd.DataFrame(rows, columns=columns)
    check(table)
    by = table.groupby(["data", "n", "epsilon", "promise"], sort=False)
    summary = by.agg(
        accuracy=("accuracy", "mean"),
        standard_error=("accuracy", "sem"),
        gain=("gain", "mean"),
        splits=("split", "nunique"),
    ).reset_index()
    print_table(
        [
            (data, n, epsilon, promise, f"{acc:.3f}", f"{error:.3f}", f"{gain:.2f}")
            for data, n, epsilon, promise, acc, error, gain, _ in summary.to_numpy()
        ],
        ("data", "n", "ε", "promise", "accuracy", "±", "gain"),
    )
    if not options.quick:
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(summary.assign(**used).round(5), "beliefs.csv")


if __name__ == "__main__":
    main()
