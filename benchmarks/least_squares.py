"""Least squares by gradients and by moments, beside peers at the same epsilon.

    python -m benchmarks.least_squares [--quick] [--data NAME ...]

R2 on a quarter held out, means over fresh splits. Rows are scaled by bounds that are
taken as public and lie in the unit ball, targets by theirs: the same arrays for every
model, all with their defaults. delta is 1e-5; one record added or removed.

* PrivateRidge, as it chooses by itself, by gradients and by moments, and
  PrivateSGDRegressor;
* AdaSSP (Wang 2018, Algorithm 2), a third of the budget for the least eigenvalue, the
  second moments and the cross moments each, by Gaussian noise of the analytic scale
  of each third: a reference written here, which nothing private is made of;
* diffprivlib's LinearRegression (pure epsilon, one record replaced, bounds of each
  column), where SKPUFFER_DIFFPRIVLIB_PYTHON names its interpreter;
* scikit-learn's Ridge without privacy.

Four tables are real (diabetes, grades of pupils, power and heating of a house by the
hour), the others drawn: plain columns of 500 to 10^5 rows, columns that are correlated,
a skewed target, and columns of which all but the mean is small.

The rule of the gradients was chosen on the tables that ``SEEN`` names, at the same
budgets; the others were named before any fit on them. ``--quick`` takes one table and
two seeds and stores nothing; any other run stores its figures in
``benchmarks/results/least_squares.csv`` and checks that PrivateRidge is not beaten by
AdaSSP, by diffprivlib or by itself on moments, by more than 0.02, on any but the table
with a skewed target.

Where most targets are near one end of their bounds (``skewed``, ``heating``) gradients
stay 0.006 to 0.013 below moments, and 0.019 below AdaSSP at most: clipped short they
lead to a median. Longer clip norms for many records (``run_defaults``, *Regression*)
took most of it away; the rest takes longer ones than suit targets that are not skewed,
and which they are only the private rows say.
"""

import argparse
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import skpuffer
from benchmarks._additive_tables import _published as published
from benchmarks._peers import Peer
from benchmarks._report import print_table, read_csv, renewed, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.datasets import fetch_household_power, fetch_student
from skpuffer.exceptions import SeededNoiseWarning
from skpuffer.linear_model import PrivateRidge, PrivateSGDRegressor
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

FILE = "least_squares.csv"
KEY = ["data", "model", "epsilon"]
EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-5
#: Seconds after which a peer has no figure.
PATIENCE = 120
#: What PrivateRidge may be behind, and where it is more.
BEHIND, SKEWED = 0.02, ("skewed",)

DIFFPRIVLIB = Peer(
    name="diffprivlib",
    variable="SKPUFFER_DIFFPRIVLIB_PYTHON",
    script="diffprivlib_linear.py",
    relation="replace",
    pure=True,
)


@dataclass(frozen=True)
class Split:
    """Arrays of one seed, and the public bounds of the columns."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    low: np.ndarray
    high: np.ndarray


# -- tables: rows, targets, and public bounds of both ----------------------------------


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y, -0.2, 0.2, (25, 346)


def grades():
    """Final grades of 649 pupils in Portuguese, by all else that is known of them."""
    X, y = published(fetch_student, subject="portuguese")
    columns = pd.get_dummies(pd.DataFrame(X), dtype=float).to_numpy(float)
    return columns, np.asarray(y, float), columns.min(0), columns.max(0), (0, 20)


def _by_the_hour():
    X, y = published(fetch_household_power)
    whole = (X["has_missing_minutes"] == 0).to_numpy()
    hours = pd.date_range("2006-12-16 17:00", periods=len(X), freq="h")
    times = np.column_stack(
        [
            np.cos(2 * np.pi * hours.hour / 24),
            np.sin(2 * np.pi * hours.hour / 24),
            np.cos(2 * np.pi * hours.day_of_year / 365),
            np.where(hours.day_of_week >= 5, 1.0, -1.0),
        ]
    )
    return X[whole], np.asarray(y)[whole], times[whole]


def power():
    """Active power of a house by the time, the voltage and its meters."""
    X, y, times = _by_the_hour()
    meters = X[["Sub_metering_1", "Sub_metering_2", "Sub_metering_3"]].to_numpy(float)
    columns = np.column_stack([times, meters, X["Voltage"] / 60])
    low, high = np.r_[[-1] * 4, 0, 0, 0, 220], np.r_[[1] * 4, 3000, 3000, 1000, 255]
    return columns, y, low, high, (0, 400)


def heating():
    """What the heater and the air conditioner take, by the time and other rooms."""
    X, _, times = _by_the_hour()
    meters = X[["Sub_metering_1", "Sub_metering_2"]].to_numpy(float)
    columns = np.column_stack([times, meters, X["Voltage"] / 60])
    low, high = np.r_[[-1] * 4, 0, 0, 220], np.r_[[1] * 4, 3000, 3000, 255]
    return columns, X["Sub_metering_3"].to_numpy(float), low, high, (0, 1200)


def _plain(n, d, seed):
    def drawn():
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(n, d)), rng.normal(size=d)
        y = X @ w / np.linalg.norm(w) + 0.5 * rng.normal(size=n)
        return X, y, -3.0, 3.0, (-4, 4)

    return drawn


def correlated():
    rng = np.random.default_rng(205)
    X = rng.normal(size=(5_000, 25)) / np.arange(1, 26) ** 0.7
    X = X @ np.linalg.qr(rng.normal(size=(25, 25)))[0]
    y = X @ rng.normal(size=25)
    y = y / y.std() + 0.5 * rng.normal(size=len(y))
    return X, y, -1.5, 1.5, (-4, 4)


def skewed():
    rng = np.random.default_rng(206)
    X = rng.normal(size=(20_000, 8))
    y = np.exp(X @ rng.normal(size=8) / np.sqrt(8) + 0.5 * rng.normal(size=len(X)))
    return X, y, -3.0, 3.0, (0, 20)


def off_centre():
    rng = np.random.default_rng(207)
    spread = 0.15 * np.linspace(1, 0.2, 10)
    X = 0.8 + rng.normal(size=(100_000, 10)) * spread
    y = (X - 0.8) @ rng.normal(size=10)
    return X, y / y.std() + 0.5 * rng.normal(size=len(y)), -1.0, 1.0, (-4, 4)


#: The tables, and how many seeds the scores of each are means of.
LOADERS = {
    "diabetes": (diabetes, 10),
    "grades": (grades, 2),
    "power": (power, 1),
    "heating": (heating, 1),
    "plain, 500": (_plain(667, 5, 201), 4),
    "plain, 5,000": (_plain(6_667, 10, 202), 2),
    "plain, 100,000": (_plain(133_333, 30, 203), 1),
    "correlated": (correlated, 2),
    "skewed": (skewed, 1),
    "off centre": (off_centre, 1),
}

#: Tables by which the rule of the gradients was chosen.
SEEN = ("diabetes", "grades", "power")


def split(table, seed):
    """Scale rows by their bounds into the unit ball, targets by theirs to [-1, 1]."""
    X, y, low, high, (least, most) = table
    n_features = X.shape[1]
    low, high = (np.broadcast_to(np.asarray(b, float), n_features) for b in (low, high))
    width = np.where(high > low, high - low, 1.0)
    rows = np.clip(2 * (X - low) / width - 1, -1, 1) / math.sqrt(n_features)
    # of columns that are far from their bounds most of the time
    rows = rows * 2
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    targets = 2 * (np.asarray(y, float) - least) / (most - least) - 1
    X_train, X_test, y_train, y_test = train_test_split(
        rows, targets, test_size=0.25, random_state=seed
    )
    edge = np.minimum(1.0, 2 / math.sqrt(n_features))
    bounds = np.full(n_features, edge)
    return Split(X_train, np.clip(y_train, -1, 1), X_test, y_test, -bounds, bounds)


# -- models ----------------------------------------------------------------------------


def _r2(arrays, coef, intercept):
    error = arrays.y_test - arrays.X_test @ coef - intercept
    return 1 - np.mean(error**2) / np.var(arrays.y_test)


def ours(arrays, seed):
    """Yield a row for each of our models and budgets."""
    models = {
        "PrivateRidge": PrivateRidge(),
        "PrivateRidge, gradient": PrivateRidge(solver="gradient"),
        "PrivateRidge, moments": PrivateRidge(solver="moments"),
        "PrivateSGDRegressor": PrivateSGDRegressor(),
    }
    for epsilon in EPSILONS:
        for name, model in models.items():
            model.set_params(
                accountant=PrivacyLoss(epsilon=epsilon, delta=DELTA),
                target_bounds=(-1, 1),
                random_state=seed,
            ).fit(arrays.X_train, arrays.y_train)
            r2 = _r2(arrays, model.coef_, np.ravel(model.intercept_)[0])
            yield {"model": name, "epsilon": epsilon, "r2": r2}


def _noise(epsilon, n_records):
    """Scale of Gaussian noise for three sums of sensitivity one each, together."""
    # three sums of norm one at most are a run of as many steps
    release = GradientRelease(n_records=n_records, n_steps=3, sampling="full_batch")
    accountant = PrivacyLoss(epsilon=epsilon, delta=DELTA)
    return float(np.max(accountant.calibrate(release, RecordScenario()).noise.std()))


def adassp(arrays, epsilon, seed):
    """Return coefficients and intercept of AdaSSP; see the module."""
    rng = np.random.default_rng(seed)
    # a constant as another column, in the unit ball with the others
    root = math.sqrt(2)
    Z = np.column_stack([arrays.X_train, np.ones(len(arrays.X_train))]) / root
    d, sigma = Z.shape[1], _noise(epsilon, len(Z))
    square, cross = Z.T @ Z, Z.T @ arrays.y_train
    # rho of Wang, by whom the ridge holds with probability 1 - rho
    rho = 0.05
    least = np.linalg.eigvalsh(square)[0] + sigma * rng.normal()
    least = max(least - math.sqrt(2 * math.log(2 / 1e-6)) * sigma, 0.0)
    ridge = max(0.0, sigma * math.sqrt(d * math.log(2 * d**2 / rho)) - least)
    upper = np.triu(rng.normal(size=(d, d))) * sigma
    square = square + upper + np.triu(upper, 1).T
    cross = cross + sigma * rng.normal(size=d)
    weights = np.linalg.lstsq(square + ridge * np.eye(d), cross, rcond=None)[0]
    return weights[:-1] / root, weights[-1] / root


def references(arrays, seed):
    """Yield rows without privacy, of AdaSSP and of the peer at hand."""
    model = Ridge(alpha=1e-3).fit(arrays.X_train, arrays.y_train)
    yield {
        "model": "Ridge, no privacy",
        "epsilon": np.inf,
        "r2": _r2(arrays, model.coef_, model.intercept_),
    }
    for epsilon in EPSILONS:
        found = adassp(arrays, epsilon, seed)
        yield {"model": "AdaSSP", "epsilon": epsilon, "r2": _r2(arrays, *found)}
    if DIFFPRIVLIB.interpreter is not None:
        options = {"epsilons": EPSILONS, "seed": seed}
        answer = DIFFPRIVLIB.measure(arrays, timeout=PATIENCE, **options)
        # of 58 columns it searches for very long
        for row in () if answer is None else answer["rows"]:
            yield {
                "model": DIFFPRIVLIB.name,
                "epsilon": row["epsilon"],
                "r2": row["r2"],
                "peer": answer["versions"]["peer"],
            }


def measure(name, n_seeds):
    """Return a row for each model and budget: the mean over seeds."""
    table, rows = LOADERS[name][0](), []
    for seed in range(n_seeds):
        arrays = split(table, seed)
        found = [*references(arrays, seed), *ours(arrays, seed)]
        rows += [{"data": name, **row} for row in found]
    frame = pd.DataFrame(rows)
    peer = frame["peer"].dropna() if "peer" in frame else []
    found = frame.groupby(KEY, sort=False)["r2"].agg(["mean", "std"]).reset_index()
    found = found.rename(columns={"mean": "r2"})
    return found.assign(
        n_seeds=n_seeds,
        n_records=len(arrays.y_train),
        n_features=arrays.X_train.shape[1],
        peer=peer.iloc[0] if len(peer) else "",
    )


# -- the command ---------------------------------------------------------------------


def show(frame):
    """Print R2 by table, model and budget."""
    wide = frame.pivot_table("r2", ["data", "model"], "epsilon", sort=False)
    rows = [
        (*key, *("" if np.isnan(v) else f"{v:.3f}" for v in values))
        for key, values in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    print_table(rows, header=("table", "model", *(f"eps={e:g}" for e in wide.columns)))
    print(flush=True)


def check(frame):
    """What must hold on every machine."""
    found = frame[frame["epsilon"].isin(EPSILONS)]
    wide = found.pivot_table("r2", ["data", "epsilon"], "model")
    wide = wide.drop(index=[d for d in SKEWED if d in wide.index.get_level_values(0)])
    others = ["AdaSSP", "PrivateRidge, moments", DIFFPRIVLIB.name]
    best = wide[[name for name in others if name in wide]].max(axis=1)
    behind = best - wide["PrivateRidge"]
    assert behind.max() <= BEHIND, behind[behind > BEHIND]


def main(arguments=None):
    """Measure, print, store; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", nargs="+", choices=list(LOADERS))
    options = parser.parse_args(arguments)
    names = ["plain, 5,000"] if options.quick else options.data or list(LOADERS)
    used = {"skpuffer": skpuffer.__version__}
    used |= versions("numpy", "scipy", "scikit-learn")
    for name in names:
        try:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", SeededNoiseWarning)
                found = measure(name, 2 if options.quick else LOADERS[name][1])
        except OSError as error:
            print(f"{name} is skipped: {error}")
            continue
        found = found.round(5).assign(**used)
        show(found)
        if options.quick:
            check(found)
            return
        write_csv(renewed(read_csv(FILE, found.columns), found, KEY), FILE)
    check(read_csv(FILE, ()))


if __name__ == "__main__":
    main()
