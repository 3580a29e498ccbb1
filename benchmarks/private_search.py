"""What a private search is worth: beside a plain grid of one budget, and none.

    python -m benchmarks.private_search [--quick]

The accuracy on held-out records that nobody trained or chose on, of logistic regression
whose C is not known, at one (epsilon, 1e-5) for all that is released:

- ``usual``: one fit of the default, on all records. No search.
- ``known``: one fit of the candidate that does best at this budget, as if it was known.
- ``grid``: every candidate once, on the records that a search fits, with a noisy score
  each on the others, and the winner kept. The budget is composed over all of them.
- ``geometric``, ``poisson``: :class:`~skpuffer.model_selection.PrivateGridSearchCV`.

Of 4 and 16 candidates from 1e-4 to 1e4, on 2000 records of Adult, five draws each of
what is random; the number of trials is two for each candidate, and twenty at most.
Beside it the epsilon of a single trial, by which its noise is set. The data files are
those that SKPUFFER_TEST_DATA names. Stores the figures with versions in
``benchmarks/results/private_search.csv``. ``--quick`` takes few draws and a made-up
table, checks what must hold on every machine, and stores nothing.
"""

import argparse
import math
import os
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.datasets import fetch_adult
from skpuffer.exceptions import PrivacyWarning
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.privacy_loss import GaussianCurve

FILE = "private_search.csv"
COLUMNS = [
    "candidates",
    "epsilon",
    "way",
    "trial_epsilon",
    "accuracy",
    "std",
    "n_fits",
    "versions",
]
DELTA = 1e-5
VERSIONS = f"numpy {version('numpy')}, scikit-learn {version('scikit-learn')}"
EPSILONS = (1.0,)
SIZES = (4, 16)
#: Records of the census that are taken.
N_RECORDS = 2000
#: Trials on average: for each candidate, and at most.
PER_CANDIDATE, MOST = 2, 20
HELD_OUT = 0.2


def adult():
    """Adult as the census has it, by its code book."""
    home = os.environ.get("SKPUFFER_TEST_DATA")
    train, test = (
        fetch_adult(subset=name, data_home=home) for name in ("train", "test")
    )
    model = PrivateLogisticRegression(schema=train.schema)
    X, y = train.data[:N_RECORDS], train.target.array[:N_RECORDS]
    return model, X, y, test.data, test.target.array


def made_up(n=600):
    X, y = make_classification(n, 5, random_state=0)
    X = X / np.linalg.norm(X, axis=1).max()
    half = n // 2
    model = PrivateLogisticRegression(classes=[0, 1])
    return model, X[:half], y[:half], X[half:], y[half:]


def fit(model, X, y, epsilon, seed, **params):
    one = PrivacyLoss(epsilon, DELTA, noise="gaussian")
    made = model.set_params(accountant=one, random_state=seed, **params)
    return made.fit(X, y)


def in_a_grid(epsilon, n):
    """Epsilon of each of n Gaussian releases that keep one together, and its noise.

    A fit reads one part of the records and its score the other, so that a record is in
    n releases. The noise is that of a count.
    """
    each = gaussian_mu(epsilon, DELTA) / math.sqrt(n)
    return GaussianCurve(each).epsilon(DELTA), 1 / each


def by_grid(model, grid, X, y, epsilon, seed):
    """Best of a plain grid, and the epsilon of each of its fits and scores."""
    rng = np.random.default_rng(seed)
    held = rng.random(len(X)) < HELD_OUT
    each, std = in_a_grid(epsilon, len(grid))
    found = []
    for at, C in enumerate(grid):
        made = fit(fresh(model), X[~held], y[~held], each, 1000 * seed + at, C=C)
        right = np.sum(np.asarray(made.predict(X[held])) == np.asarray(y[held]))
        found.append((right + std * rng.normal(), made))
    return max(found, key=lambda pair: pair[0])[1], each


def fresh(model):
    kept = model.get_params(deep=False) | {"accountant": None, "random_state": None}
    return PrivateLogisticRegression(**kept)


def ways(table, n_candidates, epsilon, seeds):
    """Yield (way, epsilon of a trial, accuracy on test records)."""
    model, X, y, X_test, y_test = table
    grid = np.geomspace(1e-4, 1e4, n_candidates).tolist()
    n_trials = min(PER_CANDIDATE * n_candidates, MOST)

    def score(made):
        return made.score(X_test, y_test)

    alone = {
        C: [score(fit(fresh(model), X, y, epsilon, seed, C=C)) for seed in seeds]
        for C in grid
    }
    best = max(alone, key=lambda C: np.mean(alone[C]))
    for accuracy in alone[best]:
        yield "known", epsilon, accuracy
    for seed in seeds:
        yield "usual", epsilon, score(fit(fresh(model), X, y, epsilon, seed))
        made, each = by_grid(fresh(model), grid, X, y, epsilon, seed)
        yield "grid", each, score(made)
        for trials in ("geometric", "poisson"):
            search = PrivateGridSearchCV(
                fresh(model),
                {"C": grid},
                accountant=PrivacyLoss(epsilon, DELTA, noise="gaussian"),
                n_trials=n_trials,
                trials=trials,
                validation_fraction=HELD_OUT,
                random_state=seed,
            ).fit(X, y)
            one = search.best_estimator_.accountant_.epsilon
            yield trials, one, score(search)


def measure(quick):
    table = made_up() if quick else adult()
    for n_candidates in SIZES[:1] if quick else SIZES:
        for epsilon in EPSILONS:
            frame = pd.DataFrame(
                ways(table, n_candidates, epsilon, range(2 if quick else 5)),
                columns=["way", "trial", "accuracy"],
            )
            for way, group in frame.groupby("way", sort=False):
                yield {
                    "candidates": n_candidates,
                    "epsilon": epsilon,
                    "way": way,
                    "trial_epsilon": group["trial"].mean(),
                    "accuracy": group["accuracy"].mean(),
                    "std": group["accuracy"].std(),
                    "n_fits": len(group),
                    "versions": VERSIONS,
                }


def check(rows):
    """What must hold on every machine."""
    assert rows["accuracy"].between(0.4, 1).all()
    assert (rows["trial_epsilon"] <= rows["epsilon"] * (1 + 1e-6)).all()
    for _, group in rows.groupby(["candidates", "epsilon"]):
        one = group.set_index("way")["trial_epsilon"]
        assert one["grid"] < one["known"]
        assert one["poisson"] < one["geometric"] < one["known"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small table, 2 draws")
    quick = parser.parse_args().quick
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", PrivacyWarning)
        rows = pd.DataFrame(measure(quick), columns=COLUMNS)
    check(rows)
    print_table(
        [
            (
                f"{r.candidates} candidates, epsilon {r.epsilon:g}: {r.way}",
                f"{r.trial_epsilon:.3f}",
                f"{r.accuracy:.4f}",
                f"{r.std:.4f}",
            )
            for r in rows.itertuples()
        ],
        header=("search", "epsilon of a trial", "accuracy", "std"),
    )
    if not quick:
        write_csv(rows.round(5), FILE)


if __name__ == "__main__":
    main()
