"""Noise of runs whose records are dealt to bins, what it does, and what is learnt.

    python -m benchmarks.random_allocation [--quick] [--only PART ...]

After Schuchardt and Kalinin, *Sampling-free privacy accounting for matrix mechanisms
under random allocation*. A record draws one of the batches of an epoch and keeps it;
the noise of the steps is correlated by a strategy. At delta = 1e-5, a record added or
removed. The parts:

* ``noise``: the least noise of the twelve runs of figures 2 and 3, by each account;
  ``chain``, ``restarted`` and ``conditional`` add those that take long;
* ``sampled``: the same by Monte Carlo, with an interval. That is no promise;
* ``checked``: at the least noise that is promised, a fresh estimate of delta;
* ``errors``: of the prefix sums of the steps, at the noise that each strategy takes;
* ``hazards``: how likely the bin that adds most is, given the past: bounds that split
  the probability of failure as printed and as it must be (figure 4), and by family of
  laws (figure 6);
* ``accuracy``: of logistic regression at one budget, under several strategies and
  samplings, on Adult, where SKPUFFER_TEST_DATA names the folder of the published
  files, and on digits.

Rows are stored in ``benchmarks/results/`` as they are found, and a row that is there is
not made again: remove the file to start afresh. ``--quick`` takes few of all and stores
nothing. What must hold is checked in every run.
"""

import argparse
import math
import os
import time
from functools import lru_cache

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._allocation import (
    CHAIN,
    CONDITIONAL,
    DELTA,
    EXACT,
    FRESH,
    KNOWN,
    MORE_RUNS,
    PLAIN,
    POISSON,
    RENYI,
    RESTARTED,
    RUNS,
    SAMPLED,
    accounts_of,
    sampled_divergence,
    sampled_scale,
    scale_of,
)
from benchmarks._allocation_hazards import UNION, by_family, by_split
from benchmarks._allocation_learning import (
    FULL,
    PUBLIC,
    WAYS,
    accuracies,
    public_accuracy,
)
from benchmarks._report import RESULTS, print_table, read_csv, versions, write_csv
from benchmarks._tables import DATA_DIRECTORY
from skpuffer.noise.strategies import (
    banded_inverse_square_root,
    banded_square_root,
    identity,
    restarted,
)

#: In an order in which figures have their shapes early.
EPSILONS = (1.0, 0.5, 2.0, 0.25, 4.0, 8.0)
SMALL_EPSILONS = (0.1, 0.05)
#: Draws by which noise is found, and by which it is checked to begin with. They are
#: moved to where losses are large: worth a thousand times as many plain ones where
#: epsilon is one or more, and hardly more than as many at .05.
DRAWS, FRESH_DRAWS = 100_000, 200_000

#: Accounts of other batches than bins that are kept.
OTHERS = (POISSON, FRESH, RESTARTED)


class Stored:
    """Rows of a part, stored as they come.

    Parameters
    ----------
    name : str
        Of the file.
    key : list of str
        Columns by which a row is known.
    quick : bool
        Whether nothing is stored.
    """

    def __init__(self, name, key, quick):
        self.name, self.key, self.quick = name, key, quick
        there = not quick and (RESULTS / name).is_file()
        self.rows = pd.read_csv(RESULTS / name).to_dict("records") if there else []
        self._known = {self._of(row) for row in self.rows}

    def _of(self, row):
        # floats as they are read back
        return tuple(
            f"{row[k]:.6g}" if isinstance(row[k], float) else str(row[k])
            for k in self.key
        )

    def add(self, row):
        """Add a row, and store all of them."""
        self.rows.append(row)
        self._known.add(self._of(row))
        print_table([[self.name, *(f"{value}" for value in row.values())]])
        if not self.quick:
            frame = pd.DataFrame(self.rows)
            write_csv(frame.assign(**versions("numpy", "scipy")), self.name)

    def __contains__(self, row):
        return self._of(row) in self._known

    @property
    def frame(self):
        return pd.DataFrame(self.rows)


def cells(quick):
    """Runs and epsilons, in the order in which they are looked at."""
    keys = ("2a", "2d") if quick else tuple(RUNS)
    for epsilon in EPSILONS[:1] if quick else EPSILONS + SMALL_EPSILONS:
        for key in keys:
            if epsilon not in SMALL_EPSILONS or RUNS[key].independent:
                yield key, RUNS[key], epsilon
        if epsilon == EPSILONS[0] and not quick:
            yield from ((key, run, epsilon) for key, run in MORE_RUNS.items())


def facts(key, run, epsilon):
    """Columns that all tables of noise have."""
    return {
        "panel": key,
        "run": run.name,
        "n_batches": run.n_batches,
        "n_epochs": run.n_epochs,
        "epsilon": epsilon,
    }


# -- noise -------------------------------------------------------------------------


def noise_by(accounts, quick):
    """Least noise by some accounts."""
    stored = Stored("random_allocation.csv", ["panel", "epsilon", "account"], quick)
    starts = {**promised(), **likely()}
    for account in accounts:
        for key, run, epsilon in cells(quick):
            row = facts(key, run, epsilon) | {"account": account}
            if account not in accounts_of(run) or row in stored:
                continue
            start = starts.get((key, epsilon), 1.2 * run.n_epochs**0.5)
            # a bound by chains is some hundredths above the truth of kept bins, and
            # that of fresh ones below it
            start *= {CHAIN: 1.02, RESTARTED: 0.88}.get(account, 1.1)
            began = time.process_time()
            sigma = scale_of(account, run, epsilon, start)
            seconds = round(time.process_time() - began, 2)
            length = float(run.gram(1.0)[0, 0]) ** 0.5
            stored.add(row | {"sigma": sigma, "length": length, "seconds": seconds})
    return stored.frame


def noise(quick):
    """Least noise by accounts that take a moment."""
    return noise_by((KNOWN, EXACT, RENYI, POISSON, FRESH), quick)


def chain(quick):
    """Least noise by Markov chains."""
    return noise_by((CHAIN,), quick)


def restarted_noise(quick):
    """Least noise of fresh bins, under noise that begins anew in every epoch."""
    return noise_by((RESTARTED,), quick)


def conditional(quick):
    """Least noise by conditional composition."""
    return noise_by((CONDITIONAL,), quick)


def check_noise(frame):
    """What must hold of noise: no account beats the exact one, few a known bin."""
    wide = frame.pivot(index=["panel", "epsilon"], columns="account", values="sigma")
    slight = 1 + 3e-3
    kept = wide.drop(columns=[name for name in OTHERS if name in wide])
    # conditional composition may, as it pays for pasts that are not good in any case
    others = kept.drop(columns=CONDITIONAL, errors="ignore")
    # a quick run has the rows of its own part only
    if KNOWN in others:
        fewer = others.le(others[KNOWN] * slight, axis=0) | others.isna()
        assert fewer.all(axis=None)
    if EXACT in kept:
        exact = kept[kept[EXACT].notna()]
        assert (exact.ge(exact[EXACT] / slight, axis=0) | exact.isna()).all(axis=None)


def promised():
    """The least noise that is promised of kept bins, by panel and epsilon."""
    frame = read_csv("random_allocation.csv", ["panel", "epsilon", "account", "sigma"])
    kept = frame[~frame["account"].isin(OTHERS)]
    return kept.groupby(["panel", "epsilon"])["sigma"].min().to_dict()


def likely():
    """Noise by Monte Carlo, by panel and epsilon."""
    frame = read_csv("random_allocation_sampled.csv", ["panel", "epsilon", "sigma"])
    return frame.set_index(["panel", "epsilon"])["sigma"].to_dict()


def sampled(quick):
    """Noise by Monte Carlo."""
    stored = Stored("random_allocation_sampled.csv", ["panel", "epsilon"], quick)
    n_samples, starts = 10_000 if quick else DRAWS, promised()
    for key, run, epsilon in cells(quick):
        start = starts.get((key, epsilon))
        row = facts(key, run, epsilon)
        if start is None or row in stored:
            continue
        found = sampled_scale(run, epsilon, start, n_samples)
        stored.add(row | {"account": SAMPLED} | found._asdict())
    return stored.frame


def check_sampled(frame):
    """What must hold: what is promised takes no less than what is estimated."""
    noise = promised()
    for row in frame.itertuples():
        assert row.low <= noise[row.panel, row.epsilon] * (1 + 1e-3), row


def checked(quick):
    """Estimates at the least noise that is promised, with fresh draws."""
    stored = Stored(
        "random_allocation_checked.csv", ["panel", "epsilon", "sigma"], quick
    )
    n_samples, scales = 20_000 if quick else FRESH_DRAWS, promised()
    # what was promised when there were fewer accounts is no longer
    stored.rows = [
        row
        for row in stored.rows
        if math.isclose(row["sigma"], scales[row["panel"], row["epsilon"]])
    ]
    for key, run, epsilon in cells(quick):
        sigma = scales.get((key, epsilon))
        row = facts(key, run, epsilon) | {"sigma": sigma}
        if sigma is None or row in stored:
            continue
        found = sampled_divergence(
            run, sigma, epsilon, n_samples, 0 if quick else PLAIN
        )
        stored.add(row | found._asdict())
    return stored.frame


def check_checked(frame):
    """What must hold: no estimate is above delta by more than chance makes it."""
    assert (frame["estimate"] - 4 * frame["error"] <= DELTA).all(), frame


def check_all_checked(frame):
    """What must hold of what is stored: all that is promised was checked well enough.

    No noise is left out, and each estimate is worth ten million plain draws.
    """
    check_checked(frame)
    sigmas = frame.set_index(["panel", "epsilon"])["sigma"].to_dict()
    noise = promised()
    assert sigmas.keys() == noise.keys()
    assert all(math.isclose(sigmas[key], noise[key]) for key in noise)
    assert (frame["plain"] >= PLAIN).all()


# -- what it does ------------------------------------------------------------------


def errors(quick):
    """Errors of the prefix sums, at the noise that each run takes."""
    noise = read_csv("random_allocation.csv", ["panel", "epsilon", "account", "sigma"])
    kept, rows = promised(), []
    for key, run in {**RUNS, **MORE_RUNS}.items():
        part = noise[noise["panel"] == key]
        best = EXACT if run.independent else CHAIN
        for line in part[part["account"].isin((best, KNOWN, *OTHERS))].itertuples():
            by, sigma, strategy = line.account, line.sigma, run.strategy
            if by == best:
                by, sigma = "kept bins", kept[key, line.epsilon]
            if by == RESTARTED:
                strategy = restarted(strategy, run.n_batches)
            row = facts(key, run, line.epsilon) | {"account": by, "sigma": sigma}
            row["mean"] = sigma * _error(strategy, run.n_steps, "mean")
            row["max"] = sigma * _error(strategy, run.n_steps, "max")
            rows.append(row)
    frame = pd.DataFrame(rows)
    if not quick:
        used = versions("numpy", "scipy")
        write_csv(frame.assign(**used), "random_allocation_errors.csv")
    return frame


@lru_cache(maxsize=64)
def _error(strategy, n_steps, kind):
    found = strategy.mean_error if kind == "mean" else strategy.max_error
    return found(n_steps)


def check_errors(frame):
    """What must hold: the mean is no more than the largest."""
    assert (frame["mean"] <= frame["max"] * (1 + 1e-12)).all()


# -- what is learnt ----------------------------------------------------------------

#: Budgets of the accuracies, and passes over the table.
BUDGETS, EPOCHS = (0.5, 2.0, 1.0, 8.0), (1, 10)
#: Splits by which rates are chosen, and splits of the accuracies.
TUNED, SEEDS = 3, 10


def accuracy(quick):
    """Accuracy on rows that were held out."""
    key = ["table", "n_epochs", "epsilon", "way"]
    stored = Stored("random_allocation_accuracy.csv", key, quick)
    tables = ["digits"]
    if os.environ.get(DATA_DIRECTORY) and not quick:
        tables.append("adult")
    n_tuned, n_seeds = (1, 2) if quick else (TUNED, SEEDS)
    ways = (FULL, FRESH) if quick else WAYS
    for table in tables:
        row = dict(zip(key, (table, 0, np.inf, PUBLIC), strict=True))
        if row not in stored:
            stored.add(row | public_accuracy(table, n_seeds))
    for n_epochs in EPOCHS[:1] if quick else EPOCHS:
        for epsilon in BUDGETS[:1] if quick else BUDGETS:
            for way in ways:
                for table in tables:
                    cell = (table, n_epochs, epsilon, way)
                    row = dict(zip(key, cell, strict=True))
                    if row not in stored:
                        stored.add(row | accuracies(*cell, n_tuned, n_seeds))
    return stored.frame


def check_accuracy(frame):
    """What must hold: nothing that is private is better than what is not, by much."""
    best = frame[frame["way"] == PUBLIC].set_index("table")["accuracy"]
    assert (frame["accuracy"] <= frame["table"].map(best) + 0.02).all()


# -- what is known of a bin --------------------------------------------------------

#: Batches, epochs and deviations of figures 4 and 6.
HAZARD_BATCHES, HAZARD_EPOCHS, HAZARD_SIGMAS = 100, 4, (2.0, 5.0)


def hazards(quick):
    """Bounds of the probability of the bin that adds most, by step."""
    n_batches = 10 if quick else HAZARD_BATCHES
    of_splits = {"DP-SGD": identity(), "BSR, p = 4": banded_square_root(4)}
    of_families = {
        "BSR, p = 4": banded_square_root(4),
        "BISR, p = 4": banded_inverse_square_root(4),
    }
    frames = []
    for figure, runs, curves in (
        (4, of_splits, by_split),
        (6, of_families, by_family),
    ):
        for name, strategy in runs.items():
            for sigma in HAZARD_SIGMAS:
                frame = curves(strategy, n_batches, HAZARD_EPOCHS, sigma).round(5)
                frame.insert(0, "step", np.arange(1, len(frame) + 1))
                frame.insert(0, "sigma", sigma)
                frame.insert(0, "run", name)
                frame.insert(0, "figure", figure)
                frames.append(frame)
    frame = pd.concat(frames, ignore_index=True)
    if not quick:
        used = versions("numpy", "scipy")
        write_csv(frame.assign(**used), "random_allocation_hazards.csv")
    return frame


def check_hazards(frame):
    """What must hold: more laws are no worse, and no bound is below a blind guess."""
    assert (frame["1, 3"] <= frame["1"] + 2e-5).where(frame["1"].notna(), True).all()
    assert frame[UNION].dropna().gt(0).all()


PARTS = {
    "noise": (noise, check_noise),
    "sampled": (sampled, check_sampled),
    "chain": (chain, check_noise),
    "restarted": (restarted_noise, check_noise),
    "conditional": (conditional, check_noise),
    "checked": (checked, check_checked),
    "errors": (errors, check_errors),
    "hazards": (hazards, check_hazards),
    "accuracy": (accuracy, check_accuracy),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=PARTS)
    options = parser.parse_args()
    for part in options.only or PARTS:
        measure, check = PARTS[part]
        with threadpool_limits(1):
            frame = measure(options.quick)
        if len(frame):
            check(frame)
        print(f"{part}: {len(frame)} rows")


if __name__ == "__main__":
    main()
