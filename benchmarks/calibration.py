"""What calibration costs, against the fit without privacy that it protects.

    python -m benchmarks.calibration [--data DIRECTORY] [--quick]

Ratios of processor time taken in one run: calibration over the fit of scikit-learn's
logistic regression on the same rows. The table is Adult, race secret: its 30 k complete
training rows from ``--data`` or the directory that the environment variable
SKPUFFER_TEST_DATA names, else the sample that is shipped.

Stores the figures with versions in ``benchmarks/results/calibration.csv``; ``--quick``
takes the sample, checks what must hold on every machine, and stores nothing.
"""

import argparse
import os
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, ReferenceTable
from skpuffer.summary import PrivateMean


def adult(data):
    """Features, secret and target of the complete rows."""
    bunch = fetch_adult(data_home=data, download_if_missing=False) if data else None
    frame = (bunch or load_adult()).frame.dropna()
    secret = frame["race"].astype(str).to_numpy()
    features = pd.get_dummies(frame.drop(columns=["race", "income"]), dtype=float)
    features = (features - features.mean()) / features.std().replace(0, 1)
    return features, secret, (frame["income"] == ">50K").to_numpy().astype(int)


def seconds(action, repeats):
    """Median processor time of an action."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def forget():
    """Empty the caches, so that every calibration is the first one."""
    MEMORY.clear()


def calibration_time(estimator, X, y, repeats):
    """Processor time from the release to the noise, caches empty."""
    context_of = {}

    class Spy(type(estimator)):
        def _release(self, task):
            context_of["release"] = super()._release(task)
            context_of["scenario"] = task.scenario
            return context_of["release"]

    spy = Spy(**estimator.get_params(deep=False))
    spy.fit(X, y)
    release, scenario = context_of["release"], context_of["scenario"]

    def calibrate():
        forget()
        estimator.accountant.calibrate(release, scenario)

    return seconds(calibrate, repeats), spy.certificate_


def cases(X, secret, y):
    """Estimator, its data and its target, by name."""

    everything = X.assign(race=secret, income=y)

    def scenario(table, **options):
        prior = ReferenceTable(table)
        return AttributeScenario(
            "race", level="record", prior=prior, prior_as="law", **options
        )

    return {
        "mean of one column": (
            PrivateMean(
                scenario(everything[["age", "race"]]),
                GeneralWasserstein(1.0, alpha=4.0),
            ),
            X[["age"]],
            None,
        ),
        "logistic regression by coupling": (
            PrivateLogisticRegression(
                scenario(everything, target="income"),
                GroupPrivacy(1.0, alpha=4.0),
                max_iter=10_000,
            ),
            X,
            y,
        ),
    }


def measure(X, secret, y, repeats):
    """A row for each case."""
    plain, rows = X.to_numpy(), []
    fit = seconds(lambda: LogisticRegression(max_iter=1000).fit(plain, y), repeats)
    for case, (estimator, data, target) in cases(X, secret, y).items():
        taken, certificate = calibration_time(estimator, data, target, repeats)
        rows.append((case, len(X), taken, taken / fit, certificate.gain))
    return pd.DataFrame(
        rows, columns=["case", "rows", "seconds", "ratio_to_fit", "gain"]
    )


def check(frame):
    """What must hold on every machine."""
    ratio = frame.set_index("case")["ratio_to_fit"]
    # five distributions of one column are less work than a model of all of them
    assert ratio["mean of one column"] < 2, ratio
    assert ratio["logistic regression by coupling"] < 20, ratio
    assert (frame["gain"] >= 1).all(), frame


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKPUFFER_TEST_DATA"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    X, secret, y = adult(None if options.quick else options.data)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = measure(X, secret, y, 1 if options.quick else 5)
    print(f"Adult: {X.shape[0]} rows, {X.shape[1]} features, {len(set(secret))} races")
    print_table(
        [
            [r.case, f"{r.seconds:.4f}", f"{r.ratio_to_fit:.4f}", f"{r.gain:.3g}"]
            for r in frame.itertuples()
        ],
        ("calibration of", "seconds", "ratio to fit", "gain"),
    )
    check(frame)
    if not options.quick:
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(frame.assign(**used).round(5), "calibration.csv")


if __name__ == "__main__":
    main()
