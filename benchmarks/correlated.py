"""Records that depend on each other: seconds to account for them, and errors.

    python -m benchmarks.correlated [--quick] [--data DIR]

CPU seconds on one thread, nothing remembered in between:

* the noise of a mean by Markov quilts, for chains of 10,000 and 100,000 records;
* the exact distributions of a count over a chain, by window for long ones;
* the radius within which two clouds of 500 points in the plane are, except for a mass;
* the move of a logistic regression under a Gaussian series.

On real series, at epsilon = 1 and pure privacy, the *released error*: the mean absolute
difference between what is released and the exact answer on the values as they were
recorded, what binning changes included. Asked are the mean, and the share of readings
in each bin; beside Markov quilts and the Wasserstein mechanism stand group privacy and
plain differential privacy, which hides one reading as if no other told of it. The prior
is learnt on the first half, each transition counted once more, and the second half is
released. The whole series are read from ``--data`` or the directory that the
environment variable SKPUFFER_TEST_DATA names, else the shipped beginning of the power
series stands for them.

Stores the figures with versions in ``benchmarks/results/correlated.csv``; ``--quick``
takes short series, checks what must hold on every machine, and stores nothing.
"""

import argparse
import gc
import math
import os
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.datasets import (
    fetch_activity,
    fetch_household_power,
    load_household_power,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import GaussianScenario, MarkovChainScenario, RecordScenario
from skpuffer.transport import near_radius

PURE = {"epsilon": 1.0, "alpha": math.inf, "noise": "laplace"}


def seconds(ask):
    """CPU seconds of one question, asked for the first time."""
    gc.collect()  # or one question is charged for the garbage of another
    start = time.process_time()
    ask()
    return time.process_time() - start


def sticky(k, stay, rng):
    """A chain of k states that stays with a probability, else goes anywhere."""
    chain = rng.dirichlet(np.ones(k), size=k) * (1 - stay)
    return chain + stay * np.eye(k)


def mean_of(values, n):
    """Mean over n records of the row of `values` that stands for each state."""
    values = np.asarray(values, dtype=float)
    apart = np.abs(values[:, None] - values[None, :]).sum(axis=2).max()
    return QueryRelease(
        contribution=lambda X, y: values[np.asarray(X, dtype=int).ravel()],
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=values.shape[1],
        sensitivity=Sensitivity({1: apart / n}, {1: apart / n}),
    )


def numbers(k):
    """The states themselves as values."""
    return np.arange(k)[:, None]


def speed(quick):
    """Seconds of each task, by name."""
    rng = np.random.default_rng(0)
    tasks = {}
    sizes = [(2000, 4)] if quick else [(10_000, 4), (10_000, 10), (100_000, 4)]
    for n, k in sizes:
        scenario = MarkovChainScenario(sticky(k, 0.5, rng))
        tasks[f"quilts, {n:,} records of {k} states"] = lambda n=n, k=k, s=scenario: (
            MarkovQuilt(1.0, noise="laplace").calibrate(mean_of(numbers(k), n), s)
        )
    lengths = [(50, 2)] if quick else [(100, 2), (1000, 2), (10_000, 2), (10_000, 10)]
    for n, k in lengths:
        scenario = MarkovChainScenario(sticky(k, 0.5, rng))
        tasks[f"distributions of a sum, {n:,} records of {k} states"] = (
            lambda n=n, k=k, s=scenario: GeneralWasserstein(**PURE).calibrate(
                mean_of(numbers(k), n), s
            )
        )
    n = 50 if quick else 500
    U, V = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    tasks[f"near radius, {n} x {n} points"] = lambda: near_radius(U, V, 0.01)
    n = 50 if quick else 1000
    times = np.arange(n)
    scenario = GaussianScenario(
        covariance=0.7 ** np.abs(times[:, None] - times),
        covariance_of="records",
        domain=(-1, 1),
    )
    model = PrivateLogisticRegression(scenario, GroupPrivacy(1.0, 4.0))
    X = rng.normal(size=(n, 1))
    tasks[f"logistic regression, Gaussian series of {n:,}"] = lambda: model.fit(
        X, times % 2
    )
    return {name: seconds(task) for name, task in tasks.items()}


@dataclass(frozen=True)
class Series:
    """Readings in order, and what stands for them once they are binned.

    Parameters
    ----------
    recorded : ndarray of shape (n, 1)
        What is averaged, as it was recorded.
    codes : ndarray of shape (n,)
        Number of each reading's bin.
    values : ndarray of shape (n_bins, 1)
        What stands for a reading of each bin.
    unit : str
        Of the recorded values.
    """

    recorded: np.ndarray
    codes: np.ndarray
    values: np.ndarray
    unit: str


def power(target, per_unit, width, k):
    """Mean power in kW, in k bins; what lies beyond the last falls into it."""
    recorded = target.dropna().to_numpy() / per_unit
    codes = np.minimum((recorded / width).astype(int), k - 1)
    return Series(
        recorded[:, None], codes, ((np.arange(k) + 0.5) * width)[:, None], "kW"
    )


def lying(bunch):
    """Whether a person lies, every five seconds of every trial."""
    parts = []
    for _, trial in bunch.frame.groupby("trial", sort=False, observed=True):
        clock = trial["time_s"].to_numpy()
        grid = np.arange(0.0, clock.max() + 1e-9, 5.0)
        last = np.searchsorted(clock, grid, side="right") - 1
        parts.append(trial["activity"].to_numpy()[last] - 1)
    codes = np.concatenate(parts)
    values = np.array([[0.0], [0.0], [1.0], [0.0]])
    return Series(values[codes], codes, values, "share")


def real_series(data):
    """Real series by name: whole from a directory, or what of them is shipped."""
    if data:
        options = {"data_home": data, "download_if_missing": False}
        hours = fetch_household_power("hours", **options)
        minutes = fetch_household_power("minutes_26_days", **options)
        activity = {"activity, every 5 s": lying(fetch_activity(**options))}
    else:
        hours, minutes = map(load_household_power, ("hours", "minutes"))
        activity = {}
    filled = hours.data["Global_active_power_filled"]
    return {
        "power by the hour": power(filled, 60, 0.5, 10),
        "power by the minute": power(minutes.target, 1, 0.8, 12),
        **activity,
    }


def mechanisms(chain):
    """Accountant and scenario of each mechanism, by name."""
    return {
        "group privacy": (
            GroupPrivacy(**PURE),
            MarkovChainScenario(chain, event_delta=0.0),
        ),
        "quilts": (MarkovQuilt(1.0, noise="laplace"), MarkovChainScenario(chain)),
        "quilts, by the gap": (
            MarkovQuilt(1.0, method="approximate", noise="laplace"),
            MarkovChainScenario(chain),
        ),
        "wasserstein": (
            GeneralWasserstein(**PURE),
            MarkovChainScenario(chain, event_delta=1e-6),
        ),
        "plain DP": (GroupPrivacy(**PURE), RecordScenario(relation="replace")),
    }


def released_errors(one, n_draws):
    """Mean absolute error of each release, by question and mechanism.

    "binning alone" is what is left without noise.
    """
    half, k = len(one.codes) // 2, len(one.values)
    counts = np.ones((k, k))
    np.add.at(counts, (one.codes[: half - 1], one.codes[1:half]), 1)
    chain = counts / counts.sum(axis=1, keepdims=True)
    codes = one.codes[half:]
    shares = np.eye(k)
    asked = {
        "mean": (one.values, one.recorded[half:].mean(axis=0)),
        "shares": (shares, shares[codes].mean(axis=0)),
    }
    rng, found = np.random.default_rng(0), {}
    for question, (table, exact) in asked.items():
        bias = table[codes].mean(axis=0) - exact
        found[question, "binning alone"] = np.abs(bias).mean()
        for name, (accountant, scenario) in mechanisms(chain).items():
            if question == "shares" and name == "wasserstein":
                continue  # its distributions are those of one number
            release = mean_of(table, len(codes))
            noise = accountant.calibrate(release, scenario).noise
            draws = noise.sample((n_draws, len(exact)), rng)
            found[question, name] = np.abs(bias + draws).mean()
    return found


def check(found):
    """What must hold of released errors on every machine."""
    for question in ("mean", "shares"):
        errors = {name: error for (q, name), error in found.items() if q == question}
        assert errors["quilts"] < errors["group privacy"] / 10, (question, errors)
        assert errors["quilts, by the gap"] < errors["group privacy"], errors
        # noise for one reading alone is the least there is
        assert errors["plain DP"] < 1.02 * errors["quilts"], (question, errors)
        assert errors["binning alone"] <= 1.02 * errors["plain DP"], errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", default=os.environ.get("SKPUFFER_TEST_DATA"))
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = [("seconds", name, t, "s") for name, t in speed(options.quick).items()]
        for name, one in real_series(None if options.quick else options.data).items():
            found = released_errors(one, 2000 if options.quick else 20_000)
            check(found)
            for (question, mechanism), error in found.items():
                unit = "share" if question == "shares" else one.unit
                case = f"{name}, {question}: {mechanism}"
                rows.append(("released error", case, error, unit))
    print_table(
        [(case, what, f"{v:.4g}", unit) for what, case, v, unit in rows],
        ("", "what", "value", "unit"),
    )
    if not options.quick:
        frame = pd.DataFrame(rows, columns=["what", "case", "value", "unit"])
        used = versions("numpy", "scipy", "scikit-learn")
        write_csv(frame.assign(**used).round(6), "correlated.csv")


if __name__ == "__main__":
    main()
