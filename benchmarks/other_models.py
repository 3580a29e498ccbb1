"""Other models on the tables of additive models: linear ones, naive Bayes, boosting.

    python -m benchmarks.other_models [--quick] [--data NAME ...] [--seeds N]

Tables, code books, splits and promise (delta = 1e-5, one record added or removed) are
those of ``benchmarks.additive_models``, whose figures stand beside these. ``student``,
one of the tables that its rule was not chosen on, gets the additive model here.

* Logistic and ridge regression read the code book, whose numbers are scaled by their
  bounds; ``public moments`` is the same with the means, deviations and shares of levels
  of the whole table in it, taken as known beforehand: what they have where there are
  public rows.
* Naive Bayes counts the cells of the code book. All have library defaults.
* Without privacy: scikit-learn's logistic and ridge regression on scaled one-hot rows,
  and its histogram boosting, with its defaults.

``--quick`` takes two small tables, checks what must hold on every machine and stores
nothing. Tables whose files SKPUFFER_TEST_DATA does not name are skipped.
"""

import argparse
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._additive_tables import LOADERS, LOADERS_OF_REGRET
from benchmarks._report import print_table, read_csv, renewed, versions, write_csv
from benchmarks.additive_models import model_of
from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import PrivacyWarning
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Number, Schema

DELTA = 1e-5
EPSILONS = (0.1, 0.3, 1.0)
FILE = "other_models.csv"
KEY = ["data", "model", "setting", "epsilon"]
TABLES = LOADERS | {"student": LOADERS_OF_REGRET["student"]}


def with_moments(schema, X):
    """Return a code book that knows how its columns are distributed."""
    frame, columns = schema.frame(X), {}
    for name in schema.names:
        column, values = schema[name], frame[name]
        if isinstance(column, Number):
            scaled = column.scale(pd.to_numeric(values).dropna().to_numpy(dtype=float))
            # a pixel that is never dark has no spread
            spread = max(float(scaled.std()), 1e-3)
            columns[name] = replace(column, centre=float(scaled.mean()), spread=spread)
        else:
            shares = tuple(float((values == level).mean()) for level in column.levels)
            columns[name] = replace(column, shares=shares)
    return Schema(columns)


def models(name, table):
    """Yield the models: what they are, the setting, private or not, and a factory."""
    private = {"code book": table.schema}
    private["public moments"] = with_moments(table.schema, table.X)
    if name not in LOADERS:
        yield "PrivateAdditiveClassifier", "code book", True, partial(_additive, table)
    for setting, schema in private.items():
        if table.is_regression:
            make = partial(PrivateRidge, target_bounds=table.target, schema=schema)
            yield "PrivateRidge", setting, True, make
        else:
            options = {"classes": table.target, "schema": schema}
            make = partial(PrivateLogisticRegression, **options)
            yield "PrivateLogisticRegression", setting, True, make
    if not table.is_regression:
        make = partial(PrivateCategoricalNB, **options | {"schema": table.schema})
        yield "PrivateCategoricalNB", "code book", True, make
    rows = FunctionTransformer(table.schema.encoding("box"))
    if table.is_regression:
        linear, boosting = Ridge(), HistGradientBoostingRegressor(random_state=0)
    else:
        linear = LogisticRegression(max_iter=2000)
        boosting = HistGradientBoostingClassifier(random_state=0)
    pipeline = make_pipeline(rows, StandardScaler(), linear)
    yield type(linear).__name__, "no privacy", False, lambda: pipeline
    codes = make_pipeline(FunctionTransformer(table.schema.encoding("raw")), boosting)
    yield type(boosting).__name__, "no privacy", False, lambda: codes


def _additive(table, scenario, accountant, random_state):
    return model_of(table, accountant.epsilon, random_state)


def measure(name, table, epsilons, n_seeds):
    """Return the mean score of each model, with its standard error."""
    rows = []
    for seed in range(n_seeds):
        X, X_test, y, y_test = table.split(seed)
        for model, setting, is_private, make in models(name, table):
            if not is_private:
                if table.test is None or not seed:
                    score = make().fit(X, y).score(X_test, y_test)
                    rows.append((name, model, setting, np.inf, score))
                continue
            for epsilon in epsilons:
                promise = RecordScenario(), PrivacyLoss(epsilon, DELTA)
                fitted = make(*promise, random_state=seed).fit(X, y)
                score = fitted.score(X_test, y_test)
                rows.append((name, model, setting, epsilon, score))
    found = pd.DataFrame(rows, columns=[*KEY, "score"])
    found = found.groupby(KEY, sort=False)["score"].agg(["mean", "sem", "size"])
    found = found.set_axis(["score", "standard_error", "n_seeds"], axis=1)
    shape = {"score_is": "R2" if table.is_regression else "accuracy"}
    shape |= {"n": len(X), "n_features": len(table.schema)}
    used = versions("numpy", "scipy", "scikit-learn", "skpuffer")
    return found.reset_index().round(5).assign(**shape, **used)


def check(table):
    """What must hold on every machine: known means do not harm at epsilon = 1."""
    linear = table[table["model"].isin(["PrivateLogisticRegression", "PrivateRidge"])]
    linear = linear[linear["epsilon"] == 1.0].set_index(["setting", "data"])["score"]
    gain = linear["public moments"] - linear["code book"]
    assert (gain >= -0.05).all(), gain


def main():
    """Measure, print, store; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", nargs="+", choices=list(TABLES))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    names = ["wine", "diabetes"] if options.quick else options.data or list(TABLES)
    frames = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for name in names:
            try:
                table = TABLES[name]()
            except OSError as error:
                print(f"{name} is skipped: {error}")
                continue
            n_seeds = 2 if options.quick else 3 if len(table.y) > 10_000 else 10
            epsilons = EPSILONS[-1:] if options.quick else EPSILONS
            frames.append(measure(name, table, epsilons, options.seeds or n_seeds))
            print(name, "done", flush=True)
    found = pd.concat(frames, ignore_index=True)
    if not options.quick:
        found = renewed(read_csv(FILE, found.columns), found, KEY)
        write_csv(found, FILE)
    print_table(
        [
            (f"{row['data']}, {row['model']}, {row['setting']}", f"{row['epsilon']:g}")
            + (f"{row['score']:.3f}", f"{row['standard_error']:.3f}")
            for _, row in found.iterrows()
        ],
        ("table, model, setting", "epsilon", "score", "±"),
    )
    check(found)


if __name__ == "__main__":
    main()
