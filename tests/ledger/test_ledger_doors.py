"""Doors that are seldom walked through: each counts, or refuses, as the front one."""

import contextlib
import gc
import math
import os
import pickle
import sqlite3
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skpuffer.accountants import GroupPrivacy, OverlapAmplification, PrivacyLoss
from skpuffer.exceptions import (
    BudgetExceededError,
    LedgerError,
    LedgerRefusal,
    NotComposableError,
)
from skpuffer.ledger import PrivacyLedger, _store
from skpuffer.privacy import Certificate, Notion, compose
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.summary import PrivateMean
from tests.refused import refused as is_refused

RELEASE = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=100,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 0.01, 2: 0.01}),
)
REPLACED = replace(
    RELEASE, sensitivity=Sensitivity(add_remove={}, replace={1: 0.01, 2: 0.01})
)
ONE = PrivacyLoss(0.5, 1e-5).calibrate(RELEASE, RecordScenario()).certificate
CEILING = {"approximate_dp": (2.0, 1e-5)}


def of_table(name, mu=0.5, **fields):
    """A promise of pairs of tables at most mu apart, under a coupling of one table."""
    fields = {"coupling_id": "of any", "table": name, "n_records": 10, **fields}
    return Certificate(
        notion="renyi_pufferfish",
        epsilon=mu**2,
        alpha=2.0,
        curve=GaussianCurve(mu),
        composable=True,
        **fields,
    )


# -- who hears ------------------------------------------------------------------------


def test_ledgers_in_memory_are_each_told_of_a_release():
    ledgers = [PrivacyLedger(":memory:", CEILING) for _ in range(2)]
    with ledgers[0], ledgers[1]:
        PrivateMean(bounds=(0, 1)).fit(np.zeros((20, 1)))
    assert [len(ledger.report()) for ledger in ledgers] == [1, 1]


def test_a_release_is_entered_once_by_each_ledger_that_is_told_of_it():
    ledger, other = (PrivacyLedger(":memory:", CEILING) for _ in range(2))
    task = SimpleNamespace(task_name="release", parent=None)
    metadata = {"certificate": ONE}
    for _ in range(2):
        ledger.on_fit_task_begin("model", task, metadata=metadata)
    other.on_fit_task_begin("model", task, metadata=metadata)
    assert [len(one.report()) for one in (ledger, other)] == [1, 1]
    # other tasks of a fit release nothing
    other.on_fit_task_begin(
        "model",
        SimpleNamespace(task_name="fit", parent=None),
        metadata={"certificate": ONE},
    )
    assert len(other.report()) == 1


def test_what_is_too_much_is_refused_before_others_are_waited_for(tmp_path):
    path = tmp_path / "budget.db"
    ledger = PrivacyLedger(path, {"approximate_dp": (0.1, 1e-5)}, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with is_refused(BudgetExceededError, "ledger.ceiling_exceeded"):
        ledger.enter(ONE)
    # nor does anybody wait longer than was asked for
    start = time.monotonic()
    with is_refused(LedgerError, "ledger.remedy_wait_or_timeout"):
        ledger.set_limits(CEILING)
    assert time.monotonic() - start < 3
    other.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_after_a_fork_every_thread_of_the_parent_may_enter(tmp_path):
    ledgers = [PrivacyLedger(tmp_path / f"{i}.db", CEILING) for i in range(3)]
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    for ledger in ledgers:
        thread = threading.Thread(target=ledger.enter, args=(ONE,), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        assert len(ledger.report()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_files_are_closed_while_a_process_forks(tmp_path):
    ledgers = [PrivacyLedger(tmp_path / f"{i}.db", CEILING) for i in range(3)]
    child = os.fork()
    if not child:
        # of what the parent had open nothing is open here
        os._exit(sum(ledger._store._open is not None for ledger in ledgers))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("given", [1.0, None, "approximate_dp", {"epsilon": 1.0}])
def test_what_is_no_certificate_is_not_entered(given):
    ledger = PrivacyLedger(":memory:", CEILING)
    with is_refused(TypeError, "ledger.entry_not_certificate"):
        ledger.enter(given)
    for count in (0, -1, 1.5):
        with is_refused(
            (TypeError, ValueError), "parameter.count_too_small", name="count"
        ):
            ledger.enter(ONE, count=count)
    assert not len(ledger.report())


@pytest.mark.parametrize(
    "limits",
    [
        {"approximate_dp": (math.inf, 1e-5)},
        {"pure_dp": math.inf},
        {"renyi_pufferfish": (math.inf, 2.0)},
        {"mutual_information": math.inf},
    ],
)
def test_an_estimate_is_refused_under_any_ceiling_and_says_why(limits):
    ledger = PrivacyLedger(":memory:", limits)
    estimate = ONE.as_estimate("the bounds were read off the rows")
    with is_refused(NotComposableError, "ledger.release_is_estimate"):
        ledger.enter(estimate)
    assert ledger.remaining(estimate) == 0
    assert not len(ledger.report())


def test_what_others_entered_meanwhile_is_seen_before_it_is_decided(monkeypatch):
    """Between the look that keeps nobody waiting and the one that decides."""
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (ONE.epsilon, ONE.delta)})
    writing = _store.Store.writing

    @contextlib.contextmanager
    def late(self):
        with writing(self):
            kind = self.add_kind(_store.strict_json(ONE.to_dict()))
            self.add_entries(kind, ["another process"])
            yield

    monkeypatch.setattr(_store.Store, "writing", late)
    with is_refused(BudgetExceededError, "ledger.ceiling_exceeded"):
        ledger.enter(ONE)


def test_a_ledger_in_memory_that_is_closed_forgets_nothing():
    ledger = PrivacyLedger(":memory:", CEILING)
    ledger.enter(ONE)
    ledger.close()
    assert len(ledger.report()) == 1


def test_a_ledger_in_memory_counts_nowhere_else():
    """Neither when it comes back without the one it was made of, nor after a fork."""
    made = PrivacyLedger(":memory:", CEILING)
    made.enter(ONE)
    stored, name = pickle.dumps(made), repr(made)
    assert pickle.loads(stored) is made
    made._before_fork()
    made._after_fork(in_child=True)
    with is_refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        made.enter(ONE)
    with is_refused(LedgerError, "ledger.memory_in_other_process"):
        made.report()
    del made
    gc.collect()
    again = pickle.loads(stored)
    assert repr(again) == name == "PrivacyLedger(':memory:')"
    with is_refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        again.enter(ONE)


def test_a_fork_closes_a_file_and_leaves_nobody_waiting(tmp_path):
    ledger = PrivacyLedger(tmp_path / "budget.db", CEILING)
    for in_child in (False, True):
        ledger.enter(ONE)
        ledger._before_fork()
        assert ledger._store._open is None
        # nobody opens it while the process is copied
        waiting = threading.Thread(target=ledger.enter, args=(ONE,), daemon=True)
        if not in_child:
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive() and ledger._store._open is None
        ledger._after_fork(in_child=in_child)
        if not in_child:
            waiting.join(20)
            assert not waiting.is_alive()
    assert len(ledger.report()) == 3


def test_where_no_file_can_be_made_nothing_is_left_of_it(tmp_path, monkeypatch):
    def refused(*args):
        raise OSError("Read-only file system")

    monkeypatch.setattr(os, "link", refused)
    with is_refused(LedgerError, "ledger.file_unusable"):
        PrivacyLedger(tmp_path / "budget.db", CEILING)
    assert not os.listdir(tmp_path)


def test_who_was_faster_has_made_the_ledger(tmp_path, monkeypatch):
    path, link = tmp_path / "budget.db", os.link

    def late(draft, target):
        monkeypatch.setattr(os, "link", link)
        PrivacyLedger(path, {"approximate_dp": (0.1, 1e-5)}).close()
        link(draft, target)

    monkeypatch.setattr(os, "link", late)
    with is_refused(LedgerError, "ledger.limits_differ_from_stored"):
        PrivacyLedger(path, CEILING)
    assert PrivacyLedger(path).limits == {"approximate_dp": (0.1, 1e-5)}
    assert os.listdir(tmp_path)


def test_a_ledger_stays_in_its_folder_whoever_leaves_it(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger("budget.db", CEILING)
    assert ledger.path == os.path.realpath(tmp_path / "budget.db")
    ledger.enter(ONE)
    ledger.close()
    stored = pickle.dumps(ledger)
    monkeypatch.chdir(tmp_path / "other")
    ledger.enter(ONE)
    assert len(pickle.loads(stored).report()) == 2
    assert not os.listdir()
    # by another name it is the same one, which is told of a release once
    os.symlink(ledger.path, "linked.db")
    linked = PrivacyLedger("linked.db")
    with ledger, linked:
        PrivateMean(bounds=(0, 1)).fit(np.zeros((20, 1)))
    assert len(linked.report()) == len(ledger.report()) == 3


@pytest.mark.parametrize("named", ["", b"", b"budget.db"])
def test_a_ledger_has_a_name_that_is_a_text(named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with is_refused(LedgerError, "ledger.path_invalid"):
        PrivacyLedger(named, CEILING)
    assert not os.listdir(tmp_path)


# -- what is written ------------------------------------------------------------------


def test_a_file_says_what_it_is_and_waits_for_the_disk(tmp_path):
    path = tmp_path / "budget.db"
    for survives, full in (("power_loss", 1), ("process_kill", 0)):
        ledger = PrivacyLedger(path, CEILING, survives=survives)
        run = ledger._store._connection.execute
        assert run("PRAGMA fullfsync").fetchone() == (full,)
        assert run("PRAGMA application_id").fetchone() == (int.from_bytes(b"SkPL"),)
        assert run("PRAGMA user_version").fetchone() == (1,)
    # the same for the same data, in whatever order it was put together
    assert _store.strict_json({"b": [1, 2.5], "a": None}) == '{"a":null,"b":[1,2.5]}'


def test_the_report_tells_the_releases_apart(tmp_path):
    ledger = PrivacyLedger(tmp_path / "budget.db", CEILING)
    other = replace(ONE, release="another")
    # in this order the file has seen `other` first, and this process `ONE`
    reader = PrivacyLedger(tmp_path / "budget.db")
    reader.remaining(ONE)
    ledger.enter(other)
    reader.enter(ONE)
    ledger.enter(other)
    for each in (ledger, reader, PrivacyLedger(tmp_path / "budget.db")):
        assert list(each.report()["release"]) == ["another", ONE.release, "another"]
        assert each.total() == compose([other, ONE], counts=[2, 1], delta=1e-5)


# -- what counts ----------------------------------------------------------------------


def test_what_names_no_table_counts_for_tables_named_before_and_after():
    """Each total is that of a composition of exactly those it is about."""
    ledger = PrivacyLedger(":memory:", {"renyi_pufferfish": (9.0, 2.0)})
    anybody = of_table(None, 0.25, n_records=None)
    for certificate in (of_table("a"), anybody, of_table("b"), anybody):
        ledger.enter(certificate)
    epsilons = {None: 2 * 0.25**2, "a": 0.25 + 2 * 0.25**2, "b": 0.25 + 2 * 0.25**2}
    for table, epsilon in epsilons.items():
        # of a table that nobody named there is what names none
        total = ledger.total(table=table or "c")
        assert total.epsilon == pytest.approx(epsilon)
    # where none is asked for, it is the one of which most is spent
    assert ledger.total().epsilon == pytest.approx(0.375)
    left = {table: 9.0 - epsilon for table, epsilon in epsilons.items()}
    assert ledger.remaining(table="a")["renyi_pufferfish"] == pytest.approx(left["a"])
    assert ledger.remaining(table="c")["renyi_pufferfish"] == pytest.approx(left[None])
    assert ledger.remaining()["renyi_pufferfish"] == pytest.approx(left["a"])
    totals = ledger.totals().set_index("table")["releases"]
    assert totals.loc["a"] == totals.loc["b"] == 3 and totals.sum() == 8


def test_the_ceiling_of_a_new_table_is_that_of_all_who_are_in_it():
    """What names no table is paid for out of a table that is first named later."""
    ledger = PrivacyLedger(":memory:", {"renyi_pufferfish": (1.0, 2.0)})
    ledger.enter(of_table(None, 0.5, n_records=None), count=3)
    ledger.enter(of_table("a", 0.5))
    with is_refused(BudgetExceededError, "ledger.about_table", table="a"):
        ledger.enter(of_table("a", 0.1))
    ledger.enter(of_table("b", 0.1))
    with pytest.raises(BudgetExceededError):
        ledger.enter(of_table(None, 0.5, n_records=None))


@pytest.mark.parametrize(
    "other", [{"coupling_id": "of others"}, {"n_records": 9}, {"columns": ("y",)}]
)
def test_near_no_ceiling_what_does_not_add_up_is_refused_all_the_same(other):
    """As costs that do add up may well be far from the ceiling together."""
    ledger = PrivacyLedger(":memory:", {"renyi_pufferfish": (1e3, 2.0)})
    one = of_table("a", columns=("x",))
    two = replace(one, **other)
    ledger.enter(one)
    with is_refused(NotComposableError, "ledger.release_does_not_add_up", before=1):
        ledger.enter(two)
    assert len(ledger.report()) == 1


@pytest.mark.parametrize(
    "unfit", [{"coupling_id": None}, {"composable": False}, {"curve": None}]
)
def test_near_no_ceiling_what_does_not_add_up_with_itself_is_entered_once(unfit):
    ledger = PrivacyLedger(":memory:", {"renyi_pufferfish": (1e3, 2.0)})
    one = replace(of_table("a"), **unfit)
    with pytest.raises(NotComposableError):
        ledger.enter(one, count=2)
    ledger.enter(one)
    for _ in range(2):
        with is_refused(NotComposableError, "ledger.release_does_not_add_up", before=1):
            ledger.enter(one)
    assert len(ledger.report()) == 1 and ledger.total() == one


@pytest.mark.parametrize("order", ["ab", "ba", "aba", "bab", "aab", "bba"])
def test_what_has_no_costs_of_its_own_adds_up_in_any_order(order):
    """A belief about one record amplifies the sum, and not each release."""
    race = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    certificates = {
        "a": OverlapAmplification(0.3).calibrate(REPLACED, race).certificate,
        "b": PrivacyLoss(0.3)
        .calibrate(REPLACED, RecordScenario(relation="replace"))
        .certificate,
    }
    given = [certificates[name] for name in order]
    ledger = PrivacyLedger(":memory:", {"approximate_pufferfish": (5.0, 1e-5)})
    for certificate in given:
        ledger.enter(certificate)
    total = compose(given, delta=1e-5)
    assert ledger.total().epsilon == pytest.approx(total.epsilon)
    assert ledger.total().n_releases == len(order)


def test_a_ceiling_of_an_order_is_read_at_that_order_or_above():
    """Between the orders at which costs are held, and beyond the last of them."""
    for alpha in (1.01, 1.7, 2.0, 3.3, 4000.0, 1e5):
        ceiling = (alpha * 0.125 * 4, alpha)
        ledger = PrivacyLedger(":memory:", {"renyi_dp": ceiling})
        one = Certificate(
            notion="renyi_dp",
            epsilon=alpha * 0.125,
            alpha=alpha,
            curve=GaussianCurve(0.5),
            coupling_id=ONE.coupling_id,
            relation=ONE.relation,
            composable=True,
        )
        ledger.enter(one, count=4)
        with pytest.raises(BudgetExceededError):
            ledger.enter(one)
        assert ledger.total().epsilon == pytest.approx(ceiling[0])


def test_events_are_paid_for_far_from_the_ceiling():
    """Each release may miss its event, and delta pays for all of them."""
    eventful = replace(
        ONE,
        notion=Notion.APPROXIMATE_RENYI_PUFFERFISH,
        alpha=2.0,
        epsilon=float(ONE.curve.renyi(2.0)),
        delta=2.4e-6,
        event_delta=2.4e-6,
        coupling_id="of blocks",
        relation=None,
    )
    ledger = PrivacyLedger(":memory:", {"approximate_pufferfish": (30.0, 1e-5)})
    for _ in range(4):
        ledger.enter(eventful)
    expected = compose([eventful], counts=[4], delta=1e-5)
    assert ledger.total().event_delta == pytest.approx(9.6e-6)
    assert ledger.total().epsilon == pytest.approx(expected.epsilon)
    # five times 2.4e-6 is above delta
    with is_refused(NotComposableError, "ledger.release_does_not_add_up"):
        ledger.enter(eventful)


@pytest.mark.parametrize("event", [0.0, 2.4e-6])
@pytest.mark.parametrize("most", [2.0, 30.0])
def test_as_many_fit_at_once_as_one_by_one(event, most):
    """Also where the cost of each order, or a delta of events, decides."""
    one = replace(
        ONE,
        notion=Notion.APPROXIMATE_RENYI_PUFFERFISH,
        alpha=2.0,
        epsilon=float(ONE.curve.renyi(2.0)),
        delta=event,
        event_delta=event,
        coupling_id="of blocks",
        relation=None,
    )
    limits = {"approximate_pufferfish": (most, 1e-5)}
    refusals = BudgetExceededError, NotComposableError
    single, fitting = PrivacyLedger(":memory:", limits), 0
    while fitting < 8:
        try:
            single.enter(one)
        except refusals:
            break
        fitting += 1
    PrivacyLedger(":memory:", limits).enter(one, count=fitting)
    if fitting < 8:
        with pytest.raises(refusals):
            PrivacyLedger(":memory:", limits).enter(one, count=fitting + 1)


def test_a_refusal_says_what_is_spent_and_what_it_would_come_to():
    ledger = PrivacyLedger(":memory:", {"renyi_pufferfish": (1.0, 2.0)})
    with is_refused(BudgetExceededError, "ledger.ceiling_exceeded", said="1 release"):
        ledger.enter(of_table(None, 2.0, n_records=None))
    ledger.enter(of_table(None, 0.5, n_records=None), count=2)
    ledger.enter(of_table("a", 0.5))
    said = "ledger.ceiling_exceeded"
    with is_refused(BudgetExceededError, said):
        ledger.enter(of_table("a", 0.5), count=2)
    # what was refused is not counted, and what still fits is entered
    ledger.enter(of_table("a", 0.5))
    assert ledger.remaining(table="a") == {"renyi_pufferfish": pytest.approx(0.0)}


# -- alone ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits, certificate, epsilon",
    [
        # at its own numbers, without a curve
        (("approximate_dp", (1.0, 1e-5)), ("approximate_dp", 0.5, None, 1e-5), 0.5),
        (("approximate_dp", (1.0, 1e-5)), ("approximate_dp", 0.5, None, 1e-6), 0.5),
        (("approximate_dp", (1.0, 1e-5)), ("approximate_dp", 0.5, None, 1e-4), None),
        (("approximate_dp", (1.0, 1e-5)), ("pure_dp", 0.5, math.inf, 0.0), 0.5),
        # of one order no (epsilon, delta) promise at the same numbers follows
        (("approximate_dp", (1.0, 1e-5)), ("renyi_dp", 0.5, 2.0, 0.0), None),
        (("renyi_dp", (1.0, 4.0)), ("renyi_dp", 0.5, 4.0, 0.0), 0.5),
        (("renyi_dp", (1.0, 4.0)), ("renyi_dp", 0.5, 5.0, 0.0), 0.5),
        (("renyi_dp", (1.0, 4.0)), ("renyi_dp", 0.5, 3.0, 0.0), None),
        (("renyi_dp", (1.0, 4.0)), ("pure_dp", 0.5, math.inf, 0.0), 0.5),
        (("renyi_dp", (1.0, 4.0)), ("approximate_dp", 0.5, None, 1e-5), None),
        (("pure_dp", 1.0), ("pure_dp", 0.5, math.inf, 0.0), 0.5),
        (("pure_dp", 1.0), ("renyi_dp", 0.5, 1e6, 0.0), None),
        (("pure_dp", 1.0), ("approximate_dp", 0.5, None, 1e-9), None),
    ],
)
def test_a_release_alone_counts_at_its_own_numbers_if_they_are_no_weaker(
    limits, certificate, epsilon
):
    notion, own, alpha, delta = certificate
    one = Certificate(notion=notion, epsilon=own, alpha=alpha, delta=delta)
    ledger = PrivacyLedger(":memory:", dict([limits]))
    if epsilon is None:
        with is_refused(NotComposableError, "ledger.release_notion_without_ceiling"):
            ledger.enter(one)
        return
    ledger.enter(one)
    assert ledger.total().epsilon == epsilon
    assert ledger.remaining() == {limits[0]: 1.0 - epsilon}


def test_a_renyi_release_alone_counts_at_what_its_curve_gives():
    """And never at its own epsilon, which is of another notion and smaller."""
    curve = GaussianCurve(0.5)
    one = Certificate(notion="renyi_dp", epsilon=0.25, alpha=2.0, curve=curve)
    for limits, epsilon in (
        ({"approximate_dp": (3.0, 1e-5)}, curve.epsilon(1e-5)),
        ({"approximate_pufferfish": (3.0, 1e-6)}, None),
        ({"renyi_dp": (3.0, 8.0)}, curve.renyi(8.0)),
        ({"renyi_dp": (3.0, 1.5)}, 0.25),
    ):
        ledger = PrivacyLedger(":memory:", limits)
        ledger.enter(replace(one, relation="replace"))
        (parameter,) = (given[1] for given in limits.values())
        expected = curve.epsilon(parameter) if epsilon is None else epsilon
        assert ledger.total().epsilon == pytest.approx(expected)
        # nor twice: nothing says that two of them add up
        with is_refused(NotComposableError, "ledger.release_does_not_add_up", before=1):
            ledger.enter(replace(one, relation="replace"))


def test_the_smaller_of_its_own_and_of_its_curves_numbers_counts():
    """A curve may promise more, or less, than the numbers that were asked for."""
    pure = GroupPrivacy(0.5, alpha=math.inf, noise="laplace")
    own = pure.calibrate(RELEASE, RecordScenario()).certificate
    ledger = PrivacyLedger(":memory:", CEILING)
    ledger.enter(own)
    by_curve = own.to_approximate(1e-5).epsilon
    assert ledger.total().epsilon == min(own.epsilon, by_curve)
    smaller = PrivacyLoss(0.5, 1e-8).calibrate(RELEASE, RecordScenario()).certificate
    ledger = PrivacyLedger(":memory:", CEILING)
    ledger.enter(smaller)
    assert ledger.total().epsilon == smaller.to_approximate(1e-5).epsilon < 0.5
