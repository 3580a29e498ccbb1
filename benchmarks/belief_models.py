"""What a declared belief buys other models than logistic regression, on Adult.

    python -m benchmarks.belief_models [--quick] [--splits N]

Rows, beliefs and promises are those of ``benchmarks.beliefs``, and so are the rules for
``--quick`` and for what is stored. The linear support vector classifier and the
perceptron have library defaults. PATE deals 20 private rows to each teacher, a decision
tree of depth 2, and asks once about each of five clusters of 2000 public rows.
"""

import argparse
import warnings

import pandas as pd
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks import beliefs
from benchmarks._report import print_table, versions, write_csv
from skpuffer.ensemble import PATEClassifier
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.svm import PrivateLinearSVC

KEYS = ["data", "model", "n", "epsilon", "promise"]
#: Rows of a teacher, and public rows of its student.
ROWS_A_TEACHER, UNLABELED = 20, 2000


def models(n, unlabeled):
    """Return the models for so many private rows."""
    return (
        PrivateLogisticRegression(),
        PrivateLinearSVC(),
        PrivateMLPClassifier(),
        PATEClassifier(
            DecisionTreeClassifier(max_depth=2),
            n_teachers=n // ROWS_A_TEACHER,
            student="clusters",
            n_queries=5,
            unlabeled=unlabeled,
        ),
    )


def measured(quick, n_splits):
    """Return a data frame with a row for each fit."""
    rows = []
    for size, split, X, y, indices, scenarios in beliefs.census_splits(quick, n_splits):
        public, private, held_out = indices
        for model in models(size, X.iloc[public[:UNLABELED]]):
            for epsilon in beliefs.EPSILONS[:1] if quick else beliefs.EPSILONS:
                for promise, scenario in scenarios.items():
                    accountant = beliefs.accountant_of(promise, epsilon)
                    model.set_params(scenario=scenario, accountant=accountant)
                    key = ("adult", type(model).__name__, size, epsilon, promise, split)
                    for _ in range(3):
                        found = beliefs.score(model, X, y, private, held_out)
                        rows.append((*key, *found))
    return pd.DataFrame(rows, columns=[*KEYS, "split", "accuracy", "gain"])


def check(table):
    """What must hold on every machine."""
    for _, found in table.groupby("model"):
        beliefs.check_census(found)
    gains = table.pivot_table("gain", ["n", "epsilon", "promise"], "model")
    least = gains.div(gains["PrivateLogisticRegression"], axis=0).min()
    assert (least >= 0.95).all(), least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    quick = options.quick
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds, categories, no gain
        table = measured(quick, options.splits or (1 if quick else 5))
    summary = (
        table.groupby(KEYS, sort=False)
        .agg(
            accuracy=("accuracy", "mean"),
            standard_error=("accuracy", "sem"),
            gain=("gain", "mean"),
            splits=("split", "nunique"),
        )
        .reset_index()
    )
    print_table(
        [
            (*map(str, key), f"{accuracy:.3f}", f"{error:.3f}", f"{gain:.2f}")
            for *key, accuracy, error, gain, _ in summary.to_numpy()
        ],
        (*KEYS, "accuracy", "±", "gain"),
    )
    check(table)
    if not quick:
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(summary.assign(**used).round(5), "belief_models.csv")


if __name__ == "__main__":
    main()
