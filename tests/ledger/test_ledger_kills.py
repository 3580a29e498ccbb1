"""Searches, pipelines and sessions under kills: what was released is in the ledger."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import time

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import PrivatePipeline
from skpuffer.ensemble import PATEAggregator
from skpuffer.exceptions import LedgerRefusal
from skpuffer.kernel.run import add_noise
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateRidge
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.utils._listeners import listen, listeners, stop_listening

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks"),
]

FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None
X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = (X[:, 0] > 0).astype(int)
RIDGE = PrivateRidge(target_bounds=(0, 1), data_norm=1.0, solver="moments")


def mean():
    return PrivateMean(bounds=(-1, 1)).fit(X)


def pipeline():
    steps = [("scale", PrivateStandardScaler(bounds=(-1, 1))), ("model", RIDGE)]
    return PrivatePipeline(steps, accountant=PrivacyLoss(1.0, 1e-5)).fit(X, Y)


def grid_search():
    grid = {"accountant__epsilon": [0.5, 1.0]}
    scored = {"scoring": lambda model, X, y=None: 0.0, "cv": 2}
    return GridSearchCV(PrivateMean(bounds=(-1, 1)), grid, **scored).fit(X)


def private_search():
    return PrivateGridSearchCV(RIDGE, {"alpha": [0.5, 1.0]}, n_trials=1.5).fit(X, Y)


def session():
    return PATEAggregator(n_classes=2, n_queries=1).aggregate([[30, 20]])


#: Fits, and how many releases each of them enters.
FITS = {mean: 1, pipeline: 2, grid_search: 5, private_search: 1, session: 1}

#: Those whose every release draws noise once.
ONE_DRAW = (mean, pipeline, grid_search, session)


def telling(told):
    """Let a process tell of noise as soon as it is drawn, by an unbuffered byte."""

    def drawn(*arguments, **options):
        value = add_noise(*arguments, **options)
        # what nobody hears of is of public stand-ins, or is a part of a release
        if listeners():
            os.write(told, b"n")
        return value

    for name, module in list(sys.modules.items()):
        if name.startswith("skpuffer.") and vars(module).get("add_noise") is add_noise:
            module.add_noise = drawn


def entered_late():
    """Enter each release after its noise was drawn: what the tests must notice."""
    enter, waiting = PrivacyLedger.enter, []

    def wait(ledger, *arguments, **options):
        while len(waiting) > 2:
            enter(*waiting.pop(0))
        waiting.append((ledger, *arguments))

    PrivacyLedger.enter = wait


def fit_on(path, fit, told, late):
    """Fit on and on in the block of a ledger; tell of each fit that is done."""
    if late:
        entered_late()
    telling(told)
    with contextlib.suppress(LedgerRefusal), PrivacyLedger(path):
        while True:
            fit()
            os.write(told, b"d")


def heard(start, kill):
    """What processes told until they were killed."""
    here, there = os.pipe()
    children = start(there)
    for child in children:
        child.start()
    os.close(there)
    told = kill(here, children)
    for child in children:
        child.join(60)
    while some := os.read(here, 4096):
        told += some
    os.close(here)
    return told


def killed_at_random(path, fit, rng, late=False):
    """Two processes on one file, each killed at a moment of its own."""

    def kill(here, children):
        told = os.read(here, 1)
        for child in children:
            time.sleep(rng.uniform(0, 0.05))
            os.kill(child.pid, signal.SIGKILL)
        return told

    return heard(
        lambda told: [
            FORK.Process(target=fit_on, args=(path, fit, told, late)) for _ in range(2)
        ],
        kill,
    )


@pytest.mark.parametrize(
    "fit, survives",
    [
        (pipeline, "power_loss"),
        (grid_search, "process_kill"),
        (private_search, "power_loss"),
        (session, "process_kill"),
    ],
)
def test_what_a_killed_fit_released_is_paid_below_the_ceiling(fit, survives, tmp_path):
    path, most = tmp_path / "budget.db", 12.0
    fit()  # what is searched for once is found by now
    rng, told = np.random.default_rng(), b""
    PrivacyLedger(path, {"approximate_dp": (most, 1e-5)}, survives=survives).close()
    for kill in range(2):
        told += killed_at_random(path, fit, rng)
        # both files, as they lie there
        copies = tmp_path / str(kill)
        copies.mkdir()
        for name in (path.name, f"{path.name}-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(tmp_path / name, copies / name)
        ledger = PrivacyLedger(path)
        entries = len(ledger.report())
        assert entries == len(PrivacyLedger(copies / path.name).report())
        assert entries >= FITS[fit] * told.count(b"d")
        if fit in ONE_DRAW:
            assert entries >= told.count(b"n")
        assert ledger.total().epsilon <= most * (1 + 1e-6)
        ledger.close()


@pytest.mark.parametrize("fit", [grid_search, session], ids=lambda fit: fit.__name__)
def test_releases_that_are_entered_late_are_noticed(fit, tmp_path):
    path = tmp_path / "budget.db"
    PrivacyLedger(path, {"approximate_dp": (np.inf, 1e-5)}).close()
    told = killed_at_random(path, fit, np.random.default_rng(), late=True)
    assert len(PrivacyLedger(path).report()) < told.count(b"n")


def killed_at_line(path, line, told):
    """Fit once, and die at a line of the ledger's code, or at one just after it."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if f"{os.sep}ledger{os.sep}" not in frame.f_code.co_filename:
            return None
        seen += event == "line"
        if event == "line" and seen == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    telling(told)
    with PrivacyLedger(path):
        sys.settrace(trace)
        mean()
    os.write(told, str(seen).encode())


def test_a_release_that_is_killed_at_any_line_of_its_entry_is_paid(tmp_path):
    path = tmp_path / "budget.db"
    PrivacyLedger(path, {"approximate_dp": (np.inf, 1e-5)}, survives="process_kill")

    def run(line):
        return heard(
            lambda told: [FORK.Process(target=killed_at_line, args=(path, line, told))],
            lambda here, children: b"",
        )

    whole = run(0)
    assert whole.startswith(b"n")
    paid = len(PrivacyLedger(path).report())
    outcomes = set()
    n_lines = int(whole[1:])
    for line in np.random.default_rng().choice(n_lines, 12, replace=False) + 1:
        told = run(int(line))
        entries = len(PrivacyLedger(path).report()) - paid
        assert told.count(b"n") <= entries <= 1
        paid += entries
        outcomes.add(entries)
    assert outcomes == {0, 1}


class Forks:
    """Listener that forks before a release."""

    child = None

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        if self.child is None:
            self.child = os.fork()


@pytest.mark.parametrize(
    "fit", [mean, pipeline, private_search, session], ids=lambda fit: fit.__name__
)
def test_a_fit_goes_on_in_one_process(fit):
    """Two processes would draw the same noise, and one entry would pay for both."""
    here, there = os.pipe()
    forks = Forks()
    listen(forks)
    try:
        fit()
        os.write(there, b"released ")
    except RuntimeError as error:
        assert forks.child == 0
        os.write(there, b"refused " if "forked" in str(error) else b"failed ")
    finally:
        if forks.child == 0:
            os._exit(0)
        stop_listening(forks)
    os.waitpid(forks.child, 0)
    os.close(there)
    assert sorted(os.read(here, 100).split()) == [b"refused", b"released"]
    os.close(here)
