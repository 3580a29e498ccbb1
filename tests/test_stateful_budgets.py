"""A budget that is spent in several calls is never exceeded, however they are split.

Random calls go through the public doors: portions of queries, copies, pickles and
threads of a session; entries, copies and sessions of a ledger's file.
"""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.ensemble import PATEAggregator, PATEClassifier
from skpuffer.exceptions import LedgerRefusal, QueryBudgetError
from skpuffer.ledger import PrivacyLedger
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

COPIES = (copy.copy, copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held)))
N_TEACHERS = 40


def some_votes(n, rng):
    """Votes of which about half have a leader that passes a threshold."""
    leads = np.where(rng.random(n) < 0.5, N_TEACHERS, N_TEACHERS // 2)
    return np.column_stack([leads, N_TEACHERS - leads])


@pytest.mark.parametrize("threshold", [None, 0.9 * N_TEACHERS])
@pytest.mark.parametrize("seed", range(8))
def test_portions_copies_and_pickles_share_one_budget_of_votes(threshold, seed):
    rng = np.random.default_rng(seed)
    n_queries = int(rng.integers(5, 40))
    most = n_queries if threshold is None else int(rng.integers(1, 8))
    aggregator = PATEAggregator(
        n_teachers=N_TEACHERS,
        n_classes=2,
        n_queries=n_queries,
        threshold=threshold,
        max_answers=None if threshold is None else most,
        accountant=PrivacyLoss(200.0, 1e-5),
    ).calibrate()
    holders, asked, answered, refused = [aggregator], 0, 0, 0
    for _ in range(40):
        holder = holders[rng.integers(len(holders))]
        if rng.random() < 0.3:
            holders.append(COPIES[rng.integers(len(COPIES))](holder))
        votes = some_votes(int(rng.integers(0, 6)), rng)
        try:
            labels = holder.aggregate(votes)
        except QueryBudgetError:
            refused += 1
            # whole portions or nothing: what is refused was too much
            assert asked + len(votes) > n_queries or answered == most
        else:
            asked, answered = asked + len(votes), answered + int(np.sum(labels >= 0))
    assert refused
    assert asked <= n_queries and answered <= most


def test_threads_share_one_budget_of_votes():
    aggregator = PATEAggregator(
        n_teachers=N_TEACHERS,
        n_classes=2,
        n_queries=50,
        threshold=0.9 * N_TEACHERS,
        max_answers=12,
        accountant=PrivacyLoss(200.0, 1e-5),
    ).calibrate()

    def ask(seed):
        try:
            votes = some_votes(3, np.random.default_rng(seed))
            return aggregator.aggregate(votes)
        except QueryBudgetError:
            return None

    with ThreadPoolExecutor(8) as pool:
        told = [found for found in pool.map(ask, range(40)) if found is not None]
    assert 3 * len(told) <= 50
    assert sum(int(np.sum(labels >= 0)) for labels in told) <= 12


def test_portions_and_copies_share_the_queries_of_an_ensemble():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = PATEClassifier(
        LogisticRegression(), n_teachers=3, n_queries=10, classes=[False, True]
    ).fit(X, X[:, 0] > 0)
    holders, asked = [model], set()
    for at in range(40):
        holder = holders[rng.integers(len(holders))]
        if at % 5 == 0:
            holders.append(COPIES[rng.integers(len(COPIES))](holder))
        rows = rng.normal(size=(int(rng.integers(1, 4)), 2))
        try:
            holder.predict(rows)
        except QueryBudgetError:
            continue
        asked |= set(map(tuple, rows.tolist()))
    assert 0 < len(asked) <= 10


def certificates():
    """Promises of two notions, each of a budget of its own; the last on an event."""
    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        n_records=100,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 0.01, 2: 0.01}),
    )
    accountants = [
        PrivacyLoss(0.5, 1e-5, noise="gaussian"),
        PrivacyLoss(0.1, 1e-6, noise="laplace"),
        GroupPrivacy(0.2, alpha=math.inf, noise="laplace"),
    ]
    found = [a.calibrate(release, RecordScenario()).certificate for a in accountants]
    # of three of them a hundredth of delta is left
    return [*found, replace(found[0], event_delta=3.3e-6)]


@pytest.mark.parametrize("seed", range(2))
def test_entries_copies_and_sessions_share_one_ledger(seed, tmp_path):
    rng, path = np.random.default_rng(seed), tmp_path / "budget.db"
    known, entered, refused = certificates(), [], 0
    limits = {"approximate_dp": (float(rng.uniform(1, 3)), 1e-5)}
    ledger = PrivacyLedger(path, limits, survives="process_kill")
    for _ in range(30):
        how = rng.integers(6)
        if how == 0:
            ledger.close()
            ledger = PrivacyLedger(path)
        elif how == 1:
            ledger = pickle.loads(pickle.dumps(ledger))
        certificate, count = known[rng.integers(4)], int(rng.integers(1, 4))
        room = ledger.remaining(certificate)
        try:
            ledger.enter(certificate, count=count)
        except LedgerRefusal:
            refused += 1
            assert room < count
            added = [*entered, *count * [certificate]]
            assert (
                sum(c.event_delta for c in added) >= 1e-5
                or compose(added, delta=1e-5).epsilon > limits["approximate_dp"][0]
            )
        else:
            assert room >= count
            entered += count * [certificate]
    spent = compose(entered, delta=1e-5).epsilon
    assert refused
    assert spent <= limits["approximate_dp"][0] * (1 + 1e-6)
    assert ledger.total().epsilon == pytest.approx(spent, rel=1e-6)
    assert len(ledger.report()) == len(entered)
    ledger.close()
