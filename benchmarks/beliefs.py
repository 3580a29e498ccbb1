"""What a declared belief buys a model, beside differential privacy at equal (ε, δ).

    python -m benchmarks.beliefs [--quick] [--only census|thirds] [--splits N]

delta is 1e-5, and models are logistic regressions with library defaults on rows in the
unit ball. Beside each accuracy stand those of plain differential privacy, a record
replaced and a record added or removed, on the same rows.

* census: Adult. Race, white or other, is secret; 16,000 public rows have race and
  features and no label, 1000 or 5000 private rows have the label. Numbers are z-scored
  by the public rows and clipped at 1.5, categories one-hot and centred, rows halved.
  Declared are odds of race by logistic regression on the public rows, with odds of two
  for the label; or an AUC of 0.72, and no table. Means of five splits of three draws,
  scored on all other rows.
* thirds: sex is secret in diabetes, heart and Student (Portuguese; whether the final
  grade is 12 or more), race in Adult. A third of the rows is public (of Adult 16,000,
  and 1000 are private), with label; a third is private and a third is for scoring. The
  belief is a binned law of the public rows, told apart pair by pair; columns and bins
  are chosen on the public rows, by fits that are simulated there with the budget and
  the number of records of the private table, or none and differential privacy on the
  raw features if that is better there. Means of ten splits of ten draws. The last
  columns are the gain of noise, and that of the same law as a whole.

The files of Adult, heart and Student are those of the folder that SKPUFFER_TEST_DATA
names. ``--quick`` takes the shipped rows of Adult and one split, checks what must hold
on every machine, and stores nothing; any other run stores its figures in
``benchmarks/results``.
"""

import argparse
import os
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
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
    parts = [z.clip(-1.5, 1.5)]
    if numbers.shape[1] < frame.shape[1]:
        encoded = pd.get_dummies(frame.drop(columns=numbers.columns), dtype=float)
        parts.append(encoded - encoded[public].mean())
    rows = pd.concat(parts, axis=1) / 2
    return rows.set_axis([f"x{i}" for i in range(rows.shape[1])], axis=1)


def score(model, X, y, fitted_on, scored_on):
    """Accuracy of one fit, and the certificate's gain."""
    model = model.fit(X.iloc[fitted_on], y[fitted_on])
    return model.score(X.iloc[scored_on], y[scored_on]), model.certificate_.gain


# -- census --------------------------------------------------------------------------


def census(quick, n_splits):
    """Accuracies on Adult, by size, epsilon and what is promised."""
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
    rows = []
    for size in (1000,) if quick else (1000, 5000):
        for split in range(n_splits):
            order = np.random.default_rng(split).permutation(len(y))
            public, private = order[:n_public], order[n_public : n_public + size]
            held_out = order[n_public + size :]
            mask = np.isin(np.arange(len(y)), public)
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
            for epsilon in EPSILONS[:1] if quick else EPSILONS:
                for name, scenario in scenarios.items():
                    accountant = (
                        PrivacyLoss if name in PLAIN else OverlapAmplification
                    )(epsilon, delta=1e-5)
                    model = PrivateLogisticRegression(scenario, accountant)
                    for _ in range(3):
                        found, gain = score(model, X, y, private, held_out)
                        rows.append(("adult", size, epsilon, name, split, found, gain))
    return rows


def check_census(table):
    """What must hold of the census on every machine."""
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


# -- thirds --------------------------------------------------------------------------


def tables():
    """Features, the secret's name, label and sizes of public and private rows."""
    X, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    yield "diabetes", X, "sex", progress > 140, None, None
    directory = os.environ.get("SKPUFFER_TEST_DATA")
    if not directory:
        return
    heart = pd.read_csv(f"{directory}/heart_cleveland.csv").dropna()
    target = heart.columns[-1]
    yield "heart", heart.drop(columns=target), "sex", heart[target] > 0, None, None
    student = pd.read_csv(f"{directory}/student_por.csv", sep=None, engine="python")
    grades = ["G1", "G2", "G3"]
    X = student.drop(columns=grades)
    yield "student", X, "sex", student["G3"] >= 12, None, None
    X, y = fetch_adult(data_home=directory, return_X_y=True)
    X = X[[*NUMBERS, *NAMES, "race"]].assign(
        race=np.where(X["race"] == "White", "White", "other")
    )
    yield "adult", X, "race", y.astype(str) == ">50K", 16_000, 1000


def coded_model(frame, secret, label, columns, n_bins, epsilon):
    """Belief of public rows in few columns, and a model of the coded rows."""
    bins = {c: n_bins for c in columns if pd.api.types.is_numeric_dtype(frame[c])}
    law = BinnedLaw(frame[[*columns, secret, label]], bins)
    scenario = AttributeScenario(secret, level="record", prior=law, target=label)
    return scenario, OverlapAmplification(epsilon, delta=1e-5, if_belief_suffices="cap")


class Coded:
    """A classifier of rows that are coded by a law, one-hot in the unit ball."""

    def __init__(self, public, secret, label, columns, n_bins, epsilon):
        self.columns, self.secret = columns, secret
        scenario, accountant = coded_model(
            public, secret, label, columns, n_bins, epsilon
        )
        numbers = [c for c in columns if pd.api.types.is_numeric_dtype(public[c])]
        names = [c for c in columns if c not in numbers]
        steps = make_pipeline(
            make_column_transformer(
                (StandardScaler(), numbers),
                (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), names),
            ),
            StandardScaler(with_std=False),
        )
        self.model = PublicPreprocessing(
            steps,
            PrivateLogisticRegression(
                scenario, accountant, data_norm=float(np.sqrt(len(columns)))
            ),
        )

    def fit(self, frame, y):
        self.model.fit(frame[[*self.columns, self.secret]], y)
        return self

    def score(self, frame, y):
        return self.model.score(frame[self.columns], y)


def told_apart(public, secret, label):
    """Columns by how well each alone tells the label on public rows, best first."""
    found = {}
    for name in public.columns.drop([secret, label]):
        if pd.api.types.is_numeric_dtype(public[name]):
            groups = pd.qcut(public[name], 4, duplicates="drop").astype(str)
        else:
            groups = public[name].astype(str)
        rates = public[label].groupby(groups).agg(["mean", "size"])
        found[name] = float(
            (rates["size"] * (rates["mean"] - public[label].mean()) ** 2).sum()
        )
    return sorted(found, key=found.get, reverse=True)


def chosen(public, secret, label, size, epsilon, rng):
    """Columns and bins by simulated fits on public rows; None for raw features."""
    folds = rng.permutation(len(public)) % 2
    ranked = told_apart(public, secret, label)
    candidates = [(ranked[:k], bins) for k in (1, 2, 3) for bins in (2, 4)]

    def simulated(make):
        scores = []
        for fold in (0, 1):
            known, rest = public[folds == fold], public[folds != fold]
            drawn = rest.sample(size, replace=True, random_state=rng.integers(2**31))
            for _ in range(2):
                model = make(known).fit(drawn, drawn[label])
                scores.append(model.score(known, known[label]))
        return float(np.mean(scores))

    best, most = None, simulated(lambda known: Raw(known, secret, label, epsilon))
    for columns, bins in candidates:
        found = simulated(
            lambda known, c=columns, b=bins: Coded(known, secret, label, c, b, epsilon)
        )
        if found > most:
            best, most = (columns, bins), found
    return best


class Raw:
    """Differential privacy on raw features, scaled by public rows."""

    def __init__(self, public, secret, label, epsilon, relation="replace"):
        self.public = public.drop(columns=[secret, label])
        self.model = PrivateLogisticRegression(
            RecordScenario(relation=relation), PrivacyLoss(epsilon, 1e-5)
        )

    def _rows(self, frame):
        both = pd.concat([self.public, frame[self.public.columns]], ignore_index=True)
        mask = np.arange(len(both)) < len(self.public)
        return unit_rows(both, mask)[~mask]

    def fit(self, frame, y):
        self.model.fit(self._rows(frame), np.asarray(y))
        return self

    def score(self, frame, y):
        return self.model.score(self._rows(frame), np.asarray(y))


def thirds(n_splits, n_draws):
    """Accuracies where a public third has the label, by table and epsilon."""
    rows = []
    for name, X, secret, y, n_public, n_private in tables():
        frame = X.reset_index(drop=True).assign(label=np.asarray(y, int))
        n_public = len(frame) // 3 if n_public is None else n_public
        n_private = len(frame) // 3 if n_private is None else n_private
        for split in range(n_splits):
            rng = np.random.default_rng(split)
            order = rng.permutation(len(frame))
            public = frame.iloc[order[:n_public]]
            private = frame.iloc[order[n_public : n_public + n_private]]
            rest = frame.iloc[order[n_public + n_private :]]
            for epsilon in EPSILONS:
                best = chosen(public, secret, "label", n_private, epsilon, rng)
                models = {
                    "DP, replace": Raw(public, secret, "label", epsilon),
                    "DP, add/remove": Raw(
                        public, secret, "label", epsilon, "add_remove"
                    ),
                    "binned law": Raw(public, secret, "label", epsilon)
                    if best is None
                    else Coded(public, secret, "label", *best, epsilon),
                }
                for promise, model in models.items():
                    for _ in range(n_draws):
                        model.fit(private, private["label"])
                        accuracy = model.score(rest, rest["label"])
                        gain = model.model.certificate_.gain
                        rows.append(
                            (name, n_private, epsilon, promise, split, accuracy, gain)
                        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("census", "thirds"))
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    columns = ["data", "n", "epsilon", "promise", "split", "accuracy", "gain"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds, categories, no gain
        rows = []
        if options.only != "thirds":
            found = census(options.quick, options.splits or (1 if options.quick else 5))
            check_census(pd.DataFrame(found, columns=columns))
            rows += found
        if options.only != "census" and not options.quick:
            rows += thirds(options.splits or 10, 10)
    table = pd.DataFrame(rows, columns=columns)
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
        name = "beliefs.csv" if options.only is None else f"beliefs_{options.only}.csv"
        write_csv(summary.assign(**used).round(5), name)


if __name__ == "__main__":
    main()
