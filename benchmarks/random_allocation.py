"""Noise of runs whose records are dealt to bins, what it does, and what is learnt.

    python -m benchmarks.random_allocation [--quick] [--only PART ...]

After Schuchardt and Kalinin, *Sampling-free privacy accounting for matrix mechanisms
under random allocation*. A record draws one of the batches of an epoch and keeps it;
the noise of the steps is correlated by a strategy. At delta = 1e-5, a record added or
removed. The parts:

* ``noise``: the least noise of the twelve runs of figures 2 and 3, by each account;
* ``sampled``: the same by Monte Carlo, with an interval. That is no promise;
* ``checked``: at the least noise that is promised, a fresh estimate of what it promises;
* ``errors``: of the prefix sums of the steps, at the noise that each strategy takes;
* ``accuracy``: of logistic regression at one budget, under several strategies and
  samplings, on Adult, where SKPUFFER_TEST_DATA names the folder of the published
  files, and on digits.

Rows are stored in ``benchmarks/results/`` as they are found, and a row that is there is
not made again: remove the file to start afresh. ``--quick`` takes few of all and stores
nothing. What must hold is checked in every run.
"""

import argparse
import time
from functools import lru_cache

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._allocation import (
    DELTA,
    EXACT,
    FRESH,
    KNOWN,
    POISSON,
    RUNS,
    SAMPLED,
    accounts_of,
    sampled_divergence,
    sampled_scale,
    scale_of,
)
from benchmarks._allocation_learning import accuracies
from benchmarks._report import print_table, read_csv, versions, write_csv

#: In an order in which figures have their shapes early.
EPSILONS = (1.0, 0.5, 2.0, 0.25, 4.0, 8.0)
SMALL_EPSILONS = (0.1, 0.05)
#: Draws by which noise is found, and by which it is checked. They are moved to where
#: losses are large, and worth some hundred times as many plain ones.
DRAWS, FRESH_DRAWS = 200_000, 1_000_000

#: Accounts of other batches than bins that are kept.
OTHERS = (POISSON, FRESH)


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
        old = pd.DataFrame() if quick else read_csv(name, key)
        self.rows = old.to_dict("records")
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


def noise(quick):
    """Least noise by every account."""
    stored = Stored("random_allocation.csv", ["panel", "epsilon", "account"], quick)
    for key, run, epsilon in cells(quick):
        start = 2.0 * run.n_epochs**0.5
        for account in accounts_of(run):
            row = facts(key, run, epsilon) | {"account": account}
            if row in stored:
                found = [r for r in stored.rows if stored._of(r) == stored._of(row)]
                start = found[0]["sigma"]
                continue
            began = time.process_time()
            start = sigma = scale_of(account, run, epsilon, start)
            length = float(run.gram(1.0)[0, 0]) ** 0.5
            seconds = time.process_time() - began
            stored.add(
                row | {"sigma": sigma, "length": length, "seconds": round(seconds, 2)}
            )
    return stored.frame


def check_noise(frame):
    """What must hold of noise: no account beats the exact one, nor a known bin."""
    wide = frame.pivot(index=["panel", "epsilon"], columns="account", values="sigma")
    slight = 1 + 3e-3
    kept = wide.drop(columns=[name for name in OTHERS if name in wide])
    assert (kept.le(kept[KNOWN] * slight, axis=0) | kept.isna()).all(axis=None), wide
    exact = kept[kept[EXACT].notna()]
    assert (exact.ge(exact[EXACT] / slight, axis=0) | exact.isna()).all(axis=None)


@lru_cache
def promised():
    """The least noise that is promised of kept bins, by panel and epsilon."""
    frame = read_csv("random_allocation.csv", ["panel", "epsilon", "account", "sigma"])
    kept = frame[~frame["account"].isin(OTHERS)]
    return kept.groupby(["panel", "epsilon"])["sigma"].min().to_dict()


def sampled(quick):
    """Noise by Monte Carlo."""
    stored = Stored("random_allocation_sampled.csv", ["panel", "epsilon"], quick)
    n_samples = 10_000 if quick else DRAWS
    for key, run, epsilon in cells(quick):
        start = promised().get((key, epsilon))
        row = facts(key, run, epsilon)
        if start is None or row in stored:
            continue
        found = sampled_scale(run, epsilon, start, n_samples)
        stored.add(row | {"account": SAMPLED} | found._asdict())
    return stored.frame


def check_sampled(frame):
    """What must hold: what is promised takes no less than what is estimated."""
    for row in frame.itertuples():
        assert row.low <= promised()[row.panel, row.epsilon] * (1 + 1e-3), row


def checked(quick):
    """Estimates at the least noise that is promised, with fresh draws."""
    stored = Stored("random_allocation_checked.csv", ["panel", "epsilon"], quick)
    n_samples = 20_000 if quick else FRESH_DRAWS
    for key, run, epsilon in cells(quick):
        sigma = promised().get((key, epsilon))
        row = facts(key, run, epsilon)
        if sigma is None or row in stored:
            continue
        found = sampled_divergence(run, sigma, epsilon, n_samples)
        row |= {"sigma": sigma, "estimate": found.estimate, "error": found.error}
        stored.add(row | {"n_samples": n_samples})
    return stored.frame


def check_checked(frame):
    """What must hold: no estimate is above delta by more than chance makes it."""
    assert (frame["estimate"] - 4 * frame["error"] <= DELTA).all(), frame
