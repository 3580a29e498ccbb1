"""What a model pays for a record of a series, whose neighbours tell of it too.

    python -m benchmarks.series [--quick]

(1, 1e-5) throughout. Household power by the hour: does the next hour take more than a
kilowatt, by how much this one takes (four levels)? A record is an hour and the next
one. The first half of the series is public: the chain is learnt on it, each transition
counted once more, and accuracy is measured on it; models are fitted to the other half,
by noisy gradients and by votes of 80 teachers. Side by side stand plain DP (one record
replaced, as if no other told of it), all records of the window outside of which the
chain forgets, the whole series, and Markov quilts; votes also with stretches of 200
hours dealt to one teacher each. `noise` is its scale, of a sum or of a count of votes.

A series of 400 records of correlation 0.7 from one to the next, of which one's value is
secret within 0.2 of the norm of a row: how far a sum of gradients moves, and how far
where all 400 may become any others.

The series is that of the folder that SKPUFFER_TEST_DATA names; without one the shipped
year is taken. ``--quick`` takes two levels and the first 800 hours, no votes, checks
what must hold on every machine, and stores nothing.
"""

import argparse
import os
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import MarkovQuilt, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import fetch_household_power, load_household_power
from skpuffer.ensemble import PATEClassifier
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.releases import PublicContext
from skpuffer.scenarios import GaussianScenario, MarkovChainScenario, RecordScenario
from skpuffer.training import Training

BUDGET = (1.0, 1e-5)
STRETCH, TEACHERS, QUERIES = 200, 80, 4


class Hours:
    """An hour's level and the next one's, as records of a chain of such pairs."""

    def __init__(self, kilowatts, edges):
        self.n_levels = k = len(edges) + 1
        levels = np.searchsorted(edges, kilowatts)
        half = len(levels) // 2
        counts = np.ones((k, k))
        np.add.at(counts, (levels[: half - 1], levels[1:half]), 1)
        step = counts / counts.sum(axis=1, keepdims=True)
        self.pairs = np.array([(a, b) for a in range(k) for b in range(k)], float)
        self.transitions = np.zeros((k * k, k * k))
        for i, (_, now) in enumerate(self.pairs.astype(int)):
            self.transitions[i, now * k : (now + 1) * k] = step[now]
        X = np.column_stack([levels[:-1], levels[1:]]).astype(float)
        y = (X[:, 1] >= k // 2).astype(int)
        self.public, self.private = (X[:half], y[:half]), (X[half:], y[half:])

    def chain(self, event_delta):
        """Chain of the pairs, of which more than a window differ with so much mass."""
        return MarkovChainScenario(
            self.transitions, states=self.pairs, event_delta=event_delta
        )

    def one_hot(self, X):
        """Levels of the first hour of each pair, one column each."""
        return np.eye(self.n_levels)[np.asarray(X)[:, 0].astype(int)]

    def fitted(self, model, **options):
        """Model on levels, fitted to the private half, and its accuracy."""
        found = PublicPreprocessing(FunctionTransformer(self.one_hot), model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no gain
            found.fit(*self.private, **options)
        return found, found.score(*self.public)


def household(quick):
    """Rows of (release, promise, records, scale, accuracy, seconds) for the power."""
    directory = os.environ.get("SKPUFFER_TEST_DATA")
    if quick or not directory:
        data = load_household_power("hours").data
    else:
        data = fetch_household_power(
            "hours", data_home=directory, download_if_missing=False
        ).data
    kilowatts = data["Global_active_power_filled"].dropna().to_numpy() / 60
    hours = Hours(kilowatts[:800], [1.0]) if quick else Hours(kilowatts, [0.5, 1, 2])
    n = len(hours.private[1])
    chain, certain = hours.chain(1e-6), hours.chain(0.0)
    window = 2 * chain.bind(PublicContext(n_records=n)).width - 1
    quilts = MarkovQuilt(BUDGET[0], delta=BUDGET[1], noise="gaussian")
    by_loss = PrivacyLoss(*BUDGET)
    promises = {
        "plain DP": (RecordScenario(relation="replace"), by_loss, 1),
        "window": (RecordScenario(window, relation="replace"), by_loss, window),
        "whole series": (certain, by_loss, n),
        "quilts": (chain, quilts, np.nan),
    }
    rows = []

    def add(release, promise, model, **options):
        scenario, accountant, records = promises[promise]
        model.set_params(scenario=scenario, accountant=accountant, classes=[0, 1])
        start = time.process_time()
        found, accuracy = hours.fitted(model, **options)
        scale = float(found.estimator_.noise_.scale)
        spent = time.process_time() - start
        rows.append((release, promise, records, scale, accuracy, spent))

    for promise in promises:
        add(
            "gradients",
            promise,
            PrivateSGDClassifier(training=Training(sampling="full_batch")),
        )
    if quick:
        return rows

    def votes():
        return PATEClassifier(
            LogisticRegression(), n_teachers=TEACHERS, n_queries=QUERIES
        )

    for promise in ("plain DP", "window", "quilts"):
        add("votes", promise, votes())
    stretches = np.arange(n) // STRETCH
    add("votes by stretches", "quilts", votes(), groups=stretches)
    return rows


def gaussian_series():
    """How far a step's sum moves with one value of a series, and all others with it."""
    n = 400
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    scenario = GaussianScenario(
        covariance=0.7**lags, covariance_of="records", domain=([-0.1], [0.1])
    )
    rng = np.random.default_rng(0)
    X = np.linalg.cholesky(0.7**lags) @ rng.normal(size=(n, 1))
    start = time.process_time()
    model = PrivateLogisticRegression(scenario, solver="gradient")
    model.fit(X, X[:, 0] > 0)
    spent = time.process_time() - start
    return model.certificate_.sensitivity, 2 * n * model.release_.clip_norm, spent


def check(table, moved, any_records, quick):
    """What must hold on every machine."""
    # the own moves, 0.2 (1 + .7) / (1 - .7) in all, of gradients that rise by 5 at most
    assert moved < 6 < any_records / 100, moved
    scales = table.set_index(["release", "promise"])["scale"]
    order = ["plain DP", "quilts", "window", "whole series"]
    found = scales["gradients"][order]
    assert found.is_monotonic_increasing, found
    if quick:
        return
    accuracy = table.set_index(["release", "promise"])["accuracy"]
    for release in ("gradients", "votes by stretches"):
        assert accuracy[release, "quilts"] >= 0.80, accuracy
    # fewer teachers meet a stretch than a record's neighbours dealt one by one
    assert scales["votes by stretches", "quilts"] < scales["votes", "quilts"] / 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        moved, any_records, spent = gaussian_series()
        rows = household(quick)
    columns = ["release", "promise", "records", "scale", "accuracy", "seconds"]
    table = pd.DataFrame(rows, columns=columns)
    print(f"a sum moves by {moved:.3f} with one value of a series of 400,")
    print(f"and by {any_records:.0f} where all become any others ({spent:.1f} s)\n")
    print_table(
        [
            (r.release, r.promise, f"{r.records:g}", f"{r.scale:.4g}")
            + (f"{r.accuracy:.3f}", f"{r.seconds:.1f}")
            for r in table.itertuples()
        ],
        ("release", "promise", "records", "noise", "accuracy", "seconds"),
    )
    check(table, moved, any_records, quick)
    if not quick:
        series = ("gradients of a series", "each its own move", 400, moved)
        table.loc[len(table)] = (*series, np.nan, spent)
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(table.assign(**used).round(4), "series.csv")


if __name__ == "__main__":
    main()
