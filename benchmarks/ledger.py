"""What a ledger counts, how fast, and what is left when processes are killed.

    python -m benchmarks.ledger [--quick]

Counts: a search in one process and in two, in which a ceiling allows four releases or
all; eight processes that enter at once, below a ceiling and across it; and kills at
random moments, of which what was released and what was paid for is told.

Rates: entries a second of CPU time, at certificates that are all alike, of many kinds,
of batches, and up to a ceiling, where totals are composed; and how long an entry takes
by the clock, in commits of one row by SQLite alone to the same disk, as safe and in
turn with the entries. One that is to survive a loss of power waits for the disk.

Stores the figures with versions in ``benchmarks/results/ledger.csv``. ``--quick`` takes
fewer, checks what must hold on every machine, and stores nothing.
"""

import argparse
import multiprocessing
import os
import signal
import sqlite3
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import BudgetExceededError
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateMean
from skpuffer.training import Training

FORK = multiprocessing.get_context("fork")
DELTA = 1e-5
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (200, 3))
Y = (X[:, 0] > 0).astype(int)
UNLIMITED = {"approximate_dp": (np.inf, DELTA)}


def certificate(epsilon):
    """A certificate of Gaussian noise."""
    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        n_records=100,
        dim=1,
        sensitivity=Sensitivity(add_remove={2: 0.01}),
    )
    found = PrivacyLoss(epsilon, DELTA).calibrate(release, RecordScenario())
    return found.certificate


def of_batches(epsilon=0.1):
    """A certificate of training by batches, whose loss is composed on a grid."""
    model = PrivateSGDClassifier(
        accountant=PrivacyLoss(epsilon, DELTA), training=Training(batch_size=20)
    )
    return model.fit(X, Y).certificate_


# -- counts ----------------------------------------------------------------------------


def searches(folder):
    """Entries of searches of 3 budgets and 5 folds, in one process and in two."""
    model = PrivateLogisticRegression(accountant=PrivacyLoss(1.0, DELTA))
    grid = {"accountant__epsilon": [0.3, 1.0, 3.0]}
    for n_jobs in (1, 2):
        ledger = PrivacyLedger(folder / f"all{n_jobs}.db", UNLIMITED)
        search = GridSearchCV(model, grid, cv=5, n_jobs=n_jobs)
        search.set_callbacks(ledger).fit(X, Y)
        yield f"a search of 3 x 5 and a last fit, n_jobs={n_jobs}", len(ledger.report())
        one = model.fit(X[:160], Y[:160]).certificate_
        four = compose([one], counts=[4], delta=DELTA).epsilon
        ledger = PrivacyLedger(
            folder / f"four{n_jobs}.db", {"approximate_dp": (four, DELTA)}
        )
        search = GridSearchCV(model, {"max_iter": [10, 20, 30]}, cv=5, n_jobs=n_jobs)
        try:
            search.set_callbacks(ledger).fit(X, Y)
        except BudgetExceededError:
            stopped = len(ledger.report())
        yield f"below a ceiling for four, n_jobs={n_jobs}", stopped


def spend(ledger, one, attempts):
    for _ in range(attempts):
        try:
            ledger.enter(one)
        except BudgetExceededError:
            return


def together(folder, each):
    """Entries of eight processes at once, without a ceiling and across one."""
    one = certificate(0.1)
    for fits in (8 * each, 5 * each):
        most = compose([one], counts=[fits], delta=DELTA).epsilon
        limits = {"approximate_dp": (most, DELTA)}
        ledger = PrivacyLedger(folder / f"eight{fits}.db", limits)
        children = [
            FORK.Process(target=spend, args=(ledger, one, each)) for _ in range(8)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert ledger.total().epsilon <= most * (1 + 1e-6)
        yield f"8 processes x {each}, of which {fits} fit", len(ledger.report())


def release(path, told):
    """Fit without an end, and tell of every release as soon as its noise is drawn."""
    warnings.simplefilter("ignore")
    ledger = PrivacyLedger(path, survives="process_kill")
    execute = PrivateMean._execute

    def telling(self, *arguments):
        value = execute(self, *arguments)
        os.write(told, b"x")
        return value

    PrivateMean._execute = telling
    model = PrivateMean(bounds=(-1, 1)).set_callbacks(ledger)
    while True:
        model.fit(X)


def kills(folder, number):
    """Kill a process that fits, at random moments; compare what left with what is paid.

    Returns
    -------
    released, paid, unpaid : int
        The last is of kills after which more was released than paid for.
    """
    path = folder / "kills.db"
    ledger = PrivacyLedger(path, UNLIMITED)
    released = unpaid = 0
    for _ in range(number):
        here, there = os.pipe()
        child = FORK.Process(target=release, args=(path, there))
        child.start()
        os.close(there)
        os.read(here, 1)
        time.sleep(RNG.uniform(0, 0.1))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        released += 1
        while some := os.read(here, 4096):
            released += len(some)
        os.close(here)
        unpaid += released > len(ledger.report())
    return released, len(ledger.report()), unpaid


# -- rates -----------------------------------------------------------------------------


def rates(folder, number, most=np.inf, kinds=1, survives="process_kill", batches=False):
    """Entries, entries a second of CPU time, and their time in bare commits."""
    certificates = [of_batches()] if batches else []
    certificates += [certificate(0.01 * (1 + k / 1000)) for k in range(kinds)]
    name = f"{number}-{most}-{kinds}-{survives}-{batches}"
    limits = {"approximate_dp": (most, DELTA)}
    ledger = PrivacyLedger(folder / f"{name}.db", limits, survives=survives)
    bare = sqlite3.connect(folder / f"{name}-bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode = WAL")
    level = {"power_loss": "FULL", "process_kill": "NORMAL"}[survives]
    bare.execute(f"PRAGMA synchronous = {level}")
    bare.execute("CREATE TABLE bare (number INTEGER)")
    clocks, used, entered = np.zeros(2), 0.0, 0
    for k in range(number):
        start, cpu = time.perf_counter(), time.process_time()
        try:
            ledger.enter(certificates[k % len(certificates)])
        except BudgetExceededError:
            break
        used += time.process_time() - cpu
        between = time.perf_counter()
        bare.execute("INSERT INTO bare VALUES (1)")
        clocks += between - start, time.perf_counter() - between
        entered += 1
    bare.close()
    return entered, entered / used, clocks[0] / clocks[1], entered / clocks[1]


def all_rates(folder, number):
    mixed = certificate(0.01), of_batches()
    half = number // 2
    near = compose(mixed, counts=[half, half], delta=DELTA).epsilon
    for what, settings in {
        "alike": {},
        "alike, ten times as many": {"number": 10 * number},
        "200 kinds": {"kinds": 200},
        "with batches": {"batches": True},
        "with batches, up to the ceiling": {"batches": True, "most": near},
        "that survive a loss of power": {"survives": "power_loss"},
    }.items():
        settings = {"number": number} | settings
        if "survives" in settings:
            settings["number"] = min(number, 500)
        yield what, *rates(folder, **settings)


def check(frame):
    """What must hold on every machine."""
    counts = frame.set_index("what")["count"]
    for n_jobs in (1, 2):
        assert counts[f"a search of 3 x 5 and a last fit, n_jobs={n_jobs}"] == 16
        assert counts[f"below a ceiling for four, n_jobs={n_jobs}"] == 4
    eight = frame[frame["what"].str.startswith("8 processes")]
    fit = eight["what"].str.extract(r"which (\d+) fit")[0].astype(int)
    assert (eight["count"] == fit).all()
    assert (frame["a_second_of_cpu"].dropna() > 200).all()
    assert counts["kills after which more was released than paid for"] == 0
    released, paid = counts["released before kills"], counts["paid for before kills"]
    assert released <= paid <= released + counts["kills"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few, nothing stored")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted = [*searches(folder), *together(folder, 10 if quick else 100)]
        number = 5 if quick else 50
        released, paid, unpaid = kills(folder, number)
        counted += [
            ("kills", number),
            ("released before kills", released),
            ("paid for before kills", paid),
            ("kills after which more was released than paid for", unpaid),
        ]
        rows += [{"what": what, "count": count} for what, count in counted]
        entries = 200 if quick else 2000
        for what, count, of_cpu, beside, bare in all_rates(folder, entries):
            rows.append(
                {
                    "what": f"entries {what}",
                    "count": count,
                    "a_second_of_cpu": of_cpu,
                    "clock_in_bare_commits": beside,
                    "bare_commits_a_second": bare,
                }
            )
    frame = pd.DataFrame(rows)
    print_table([[*row] for row in frame.round(1).to_numpy()], list(frame.columns))
    check(frame)
    if not quick:
        write_csv(
            frame.round(1).assign(**versions("numpy", "scipy", "scikit-learn")),
            "ledger.csv",
        )


if __name__ == "__main__":
    main()
