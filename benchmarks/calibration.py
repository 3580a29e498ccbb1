"""What calibration costs, against the fit without privacy that it protects.

    python -m benchmarks.calibration [--data DIRECTORY] [--quick]

Prints ratios of processor time taken in one run: calibration over the fit of
scikit-learn's logistic regression on the same rows. The table is Adult (30 k rows, race
secret) where it can be read, and a synthetic one of the same shape otherwise.
"""

import argparse
import os
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.datasets import fetch_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, ReferenceTable
from skpuffer.scenarios import _attribute_bound as bound_module
from skpuffer.scenarios import _laws as laws_module
from skpuffer.summary import PrivateMean


def adult(data):
    bunch = fetch_adult(data_home=data, download_if_missing=False)
    frame = bunch.frame.dropna()
    secret, target = frame["race"].astype(str), frame[bunch.target.name]
    features = pd.get_dummies(
        frame.drop(columns=["race", bunch.target.name]), dtype=float
    )
    features = (features - features.mean()) / features.std().replace(0, 1)
    return features, secret.to_numpy(), (target == ">50K").to_numpy().astype(int)


def synthetic(n):
    rng = np.random.default_rng(0)
    secret = rng.choice(5, p=[0.85, 0.1, 0.03, 0.01, 0.01], size=n)
    X = rng.normal(size=(n, 100)) + 0.1 * secret[:, None]
    features = pd.DataFrame(X, columns=[f"x{j}" for j in range(100)])
    features.insert(0, "age", rng.integers(17, 91, size=n).astype(float))
    return features, secret.astype(str), (X[:, 0] + rng.normal(size=n) > 0).astype(int)


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
    bound_module._contribution_laws.cache_clear()
    bound_module._scaled_cached.cache_clear()
    laws_module.cached_law_distance.cache_clear()
    laws_module._coordinate_reaches.cache_clear()


def calibration_time(estimator, X, y, repeats):
    """Processor time from the release to the noise, caches empty."""
    context_of = {}

    class Spy(type(estimator)):
        def _release(self, scenario, context, X):
            context_of["release"] = super()._release(scenario, context, X)
            context_of["scenario"] = scenario
            return context_of["release"]

    spy = Spy(**estimator.get_params(deep=False))
    spy.fit(X, y)
    release, scenario = context_of["release"], context_of["scenario"]

    def calibrate():
        forget()
        estimator.accountant.calibrate(release, scenario)

    return seconds(calibrate, repeats), spy.certificate_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKPUFFER_TEST_DATA"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    repeats = 1 if options.quick else 5
    try:
        X, secret, y = adult(options.data)
        name = "Adult"
    except OSError:
        X, secret, y = synthetic(3000 if options.quick else 30_000)
        name = "synthetic"
    print(
        f"{name}: {X.shape[0]} rows, {X.shape[1]} features, secret of "
        f"{len(set(secret))} values"
    )
    rows = X.to_numpy()
    fit = seconds(lambda: LogisticRegression(max_iter=1000).fit(rows, y), repeats)

    def scenario(columns, **options):
        prior = ReferenceTable(X[columns].assign(race=secret, target=y))
        return AttributeScenario(
            "race", level="record", prior=prior, prior_as="law", **options
        )

    def one_column(accountant):
        prior = ReferenceTable(X[["age"]].assign(race=secret))
        secretive = AttributeScenario(
            "race", level="record", prior=prior, prior_as="law"
        )
        return PrivateMean(secretive, accountant)

    cases = {
        "mean of one column": (
            one_column(GeneralWasserstein(1.0, alpha=4.0)),
            X[["age"]],
            None,
        ),
        "logistic regression by coupling": (
            PrivateLogisticRegression(
                scenario(list(X.columns), target="target"),
                GroupPrivacy(1.0, alpha=4.0),
                max_iter=10_000,
            ),
            X,
            y,
        ),
    }
    print(f"{'calibration of':34} {'ratio to fit':>12}   gain")
    for label, (estimator, data, target) in cases.items():
        taken, certificate = calibration_time(estimator, data, target, repeats)
        print(f"{label:34} {taken / fit:12.4f}   {certificate.gain:.3g}")


if __name__ == "__main__":
    main()
