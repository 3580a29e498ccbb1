"""What a declared belief buys a model, beside differential privacy at equal (ε, δ).

    python -m benchmarks.beliefs [--quick] [--only census|thirds] [--splits N]

delta is 1e-5, and models are logistic regressions on rows in the unit ball. Beside each
accuracy stand those of plain differential privacy, a record replaced and a record added
or removed, of the same people, with library defaults.

* census: of Adult race, white or other, is secret; 16,000 public rows have race and
  features and no label, 1000 or 5000 private rows have the label. Numbers are z-scored
  by the public rows and clipped at 2, categories one-hot and centred, rows halved.
  Declared are odds of race by logistic regression on the public rows, with odds of two
  for the label; or an AUC of 0.72, and no table. Means of five splits of three draws,
  scored on all other rows.
* thirds: public rows have the label. Secret is sex in diabetes, heart and Student
  (Portuguese; whether the final grade is 12 or more, without the first two), race in
  Adult. A third is public, a third private, a third for scoring; of Adult 16,000 rows
  are public and 1000 private. The belief is the binned law of the public rows, secret
  and label with it, told apart pair by pair. Columns, bins and scale are chosen on the
  public rows, by private fits that are simulated there; so is, for each epsilon,
  whether to take raw features and differential privacy after all, which is taken of
  equals. Differential privacy is shown of raw features, as it comes, and of the coded
  rows, which says what the coding does and what the belief. Beside them stands a
  logistic regression on the public rows alone, which is as good as any private one:
  where public rows have the label, this is the line to beat.
  Means of ten splits of ten draws, with common seeds. Gains are of noise over
  differential privacy where the law is taken: pair by pair, and of the law as a whole.
  The fallback is the epsilon that holds whatever is believed, and raw the share of
  splits in which raw features were taken.

The files of Adult are those of the folder that SKPUFFER_TEST_DATA names; without one
the census takes the shipped sample, and there is no Adult in thirds. ``--quick`` takes
the sample and diabetes, one split of few draws, checks what must hold on every machine,
and stores nothing; any other run stores its figures in ``benchmarks/results``, and with
all splits checks that thirds reach what they are to, up to two standard errors.
"""

import argparse
import itertools
import os
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from benchmarks._rows import EPSILONS, NAMES, NUMBERS, PLAIN, unit_rows
from benchmarks._thirds import BELIEVING, LEAST, LEAST_GAIN, one_split, tables
from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
)

# -- census --------------------------------------------------------------------------


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
    columns = ["data", "n", "epsilon", "promise", "split", "accuracy", "gain"]
    return pd.DataFrame(rows, columns=columns)


def check_census(table):
    """Check what must hold on every machine."""
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


def summary_of_census(table):
    """Accuracy and gain, with standard errors over splits and draws."""
    by = table.groupby(["data", "n", "epsilon", "promise"], sort=False)
    return by.agg(
        accuracy=("accuracy", "mean"),
        standard_error=("accuracy", "sem"),
        gain=("gain", "mean"),
        splits=("split", "nunique"),
    ).reset_index()


# -- thirds --------------------------------------------------------------------------


def thirds(quick, n_splits):
    """Accuracies by table, epsilon and what is promised."""
    n_draws, epsilons = (2, EPSILONS[:1]) if quick else (10, EPSILONS)
    # diabetes comes first
    chosen = itertools.islice(tables(), 1) if quick else tables()
    return pd.DataFrame(
        row
        for table in chosen
        for split in range(n_splits)
        for row in one_split(table, split, epsilons, n_draws)
    )


def check_thirds(table):
    """Check what all splits must reach; of fewer, what gains must."""
    believed = table[table["promise"] == BELIEVING]
    gains = believed["gain"] / believed["gain_of_the_whole"]
    assert (gains.dropna() >= 1).all(), gains
    if table["split"].nunique() < 10:
        return
    assert (gains.groupby(believed["data"]).mean() >= LEAST_GAIN).all(), gains
    keys = ["data", "epsilon", "split"]
    means = table.groupby([*keys, "promise"])["accuracy"].mean().unstack()
    lead = (means[BELIEVING] - means["DP, replace"]).groupby(keys[:2])
    assert (lead.mean() >= -2 * lead.sem()).all(), lead.mean()
    first = means[BELIEVING].xs(EPSILONS[0], level="epsilon").groupby("data")
    # of other splits: up to their errors
    most = first.mean() + 2 * first.sem()
    assert (most >= pd.Series(LEAST)[most.index]).all(), first.mean()


def summary_of_thirds(table):
    """Accuracies and gains, with standard errors over splits."""
    raw = table["choice"].eq("raw").astype(float)
    table = table.assign(raw=raw.where(table["promise"] == BELIEVING))
    keys = ["data", "n", "epsilon", "promise"]
    figures = ["accuracy", "gain", "gain_of_the_whole", "fallback", "raw"]
    means = table.groupby([*keys, "split"], sort=False)[figures].mean()
    by = means.groupby(keys, sort=False)
    found = by.mean()
    found.insert(1, "standard_error", by["accuracy"].sem())
    return found.assign(splits=by.size()).reset_index()


PARTS = {
    "census": (census, check_census, summary_of_census, 5, "beliefs.csv"),
    "thirds": (thirds, check_thirds, summary_of_thirds, 10, "beliefs_thirds.csv"),
}


def report(summary):
    """Print the figures that are there."""
    figures = [c for c in summary if c not in ("data", "n", "promise", "splits")]
    shown = summary.drop(columns="splits").copy()
    for name in figures[1:]:
        digits = 3 if name in ("accuracy", "standard_error") else 2
        shown[name] = [f"{value:.{digits}f}" for value in summary[name]]
    titles = {"epsilon": "ε", "standard_error": "±", "gain_of_the_whole": "whole"}
    print_table(shown.to_numpy().tolist(), [titles.get(c, c) for c in shown])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    for name in PARTS if options.only is None else (options.only,):
        measure, check, summary_of, usual, file = PARTS[name]
        n_splits = options.splits or (1 if options.quick else usual)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds, categories, seeds, no gain
            table = measure(options.quick, n_splits)
        summary = summary_of(table)
        report(summary)
        check(table)
        if not options.quick:
            used = versions("numpy", "scipy", "scikit-learn")
            write_csv(summary.assign(**used).round(5), file)


if __name__ == "__main__":
    main()
