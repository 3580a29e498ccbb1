"""Processes, forks and kills: nothing is spent twice, and all that left is paid."""

import multiprocessing
import os
import signal
import sqlite3
import threading
import time

import numpy as np
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import BudgetExceededError, LedgerRefusal
from skpuffer.ledger import PrivacyLedger
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateMean

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks"),
]

FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None
RELEASE = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=100,
    dim=1,
    sensitivity=Sensitivity(add_remove={2: 0.01}),
)
ONE = PrivacyLoss(0.1, 1e-5).calibrate(RELEASE, RecordScenario()).certificate
X = np.linspace(-0.5, 0.5, 40)[:, None]


def spend(ledger, attempts, told=None):
    """Enter as often as it is asked, or until it is refused; tell of each."""
    for _ in range(attempts):
        try:
            ledger.enter(ONE)
        except BudgetExceededError:
            return
        if told is not None:
            os.write(told, b"x")


def run_all(target, *arguments, count=4):
    children = [FORK.Process(target=target, args=arguments) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
        assert child.exitcode == 0


@pytest.mark.parametrize("opened", ["before", "after"])
def test_processes_enter_all_and_none_over_the_ceiling(tmp_path, opened):
    path = tmp_path / "budget.db"
    most = compose([ONE], counts=[50], delta=1e-5).epsilon
    ledger = PrivacyLedger(
        path, {"approximate_dp": (most, 1e-5)}, survives="process_kill"
    )
    ledger.enter(ONE)
    if opened == "after":
        ledger.close()
    # 60 are asked for, and 49 are left
    run_all(spend, ledger, 15)
    assert len(ledger.report()) == 50
    assert len(set(ledger.report()["process"])) > 1
    assert ledger.total().epsilon <= most * (1 + 1e-6)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_threads_enter_all_and_none_over_the_ceiling(tmp_path):
    most = compose([ONE], counts=[50], delta=1e-5).epsilon
    for path in (tmp_path / "budget.db", ":memory:"):
        ledger = PrivacyLedger(
            path, {"approximate_dp": (most, 1e-5)}, survives="process_kill"
        )
        threads = [threading.Thread(target=spend, args=(ledger, 15)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(ledger.report()) == 50


def test_a_fork_while_another_thread_writes(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "budget.db",
        {"approximate_dp": (1000.0, 1e-5)},
        survives="process_kill",
    )
    writing = threading.Thread(target=spend, args=(ledger, 200))
    writing.start()
    for _ in range(5):
        run_all(spend, ledger, 4, count=2)
    writing.join(120)
    assert len(ledger.report()) == 240


def test_a_parent_that_closes_takes_nothing_from_its_child(tmp_path):
    """Locks that a child believes to hold, and does not, would let that happen."""
    path = tmp_path / "budget.db"
    ledger = PrivacyLedger(path, {"approximate_dp": (1000.0, 1e-5)})
    ledger.enter(ONE)
    here, there = os.pipe()
    child = FORK.Process(target=spend, args=(ledger, 40, there))
    child.start()
    os.read(here, 1)
    # the last to close a file tidies up what is not yet in it
    ledger.close()
    child.join(120)
    assert len(PrivacyLedger(path).report()) == 41


def _refused(ledger, told):
    try:
        ledger.enter(ONE)
    except LedgerRefusal as error:
        os.write(told, str(error).encode())


def test_a_ledger_in_memory_refuses_a_forked_process():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (1000.0, 1e-5)})
    here, there = os.pipe()
    run_all(_refused, ledger, there, count=1)
    assert b"another" in os.read(here, 1000)
    ledger.enter(ONE)
    assert len(ledger.report()) == 1


def _fit_in_block(ledger):
    # the block of the parent holds here as well
    PrivateMean(bounds=(-1, 1)).fit(X)


def test_a_forked_process_is_in_the_block_of_its_parent(tmp_path):
    ledger = PrivacyLedger(tmp_path / "b.db", {"approximate_dp": (1000.0, 1e-5)})
    with ledger:
        run_all(_fit_in_block, ledger, count=2)
    assert len(ledger.report()) == 2


def release(path, told):
    """Fit without an end; tell of every release as soon as its noise is drawn."""
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


def killed(path, after):
    """How many were released before a process was killed."""
    here, there = os.pipe()
    child = FORK.Process(target=release, args=(path, there))
    child.start()
    os.close(there)
    os.read(here, 1)
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    told = 1
    while some := os.read(here, 4096):
        told += len(some)
    os.close(here)
    return told


def test_what_a_killed_process_released_is_paid(tmp_path):
    path = tmp_path / "budget.db"
    ledger = PrivacyLedger(path, {"approximate_dp": (np.inf, 1e-5)})
    rng = np.random.default_rng(0)
    released, kills = 0, 12
    for kill in range(kills):
        released += killed(path, rng.uniform(0, 0.05))
        paid = len(ledger.report())
        # the one in flight of each may be paid for and not released
        assert released <= paid <= released + kill + 1
    assert released > kills
