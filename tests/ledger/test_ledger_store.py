"""The file: durable, of one ledger, and refused where it is not as it must be."""

import os
import pickle
import sqlite3
import stat
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import LedgerError, LedgerRefusal, PrivacyWarning
from skpuffer.ledger import PrivacyLedger, _store
from skpuffer.ledger._book import Spent
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from tests.refused import refused, warned

CEILING = {"approximate_dp": (10.0, 1e-5)}
RELEASE = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=100,
    dim=1,
    sensitivity=Sensitivity(add_remove={2: 0.01}),
)
ONE = PrivacyLoss(0.1, 1e-5).calibrate(RELEASE, RecordScenario()).certificate


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path):
    made = PrivacyLedger(path, CEILING)
    made.enter(ONE)
    return made


def test_what_is_entered_is_there_when_it_is_opened_again(ledger, path):
    ledger.close()
    again = PrivacyLedger(path)
    assert again.total() == ONE
    pd.testing.assert_frame_equal(again.report(), ledger.report())
    # closed is not forgotten
    ledger.enter(ONE)
    assert len(again.report()) == 2


def test_a_new_file_is_its_owners_alone_and_leaves_nothing_beside_it(path):
    PrivacyLedger(path, CEILING).close()
    assert os.listdir(path.parent) == ["budget.db"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_anybody_may_write_to_is_warned_of(ledger, path):
    ledger.close()
    path.chmod(0o666)
    with warned(PrivacyWarning, "ledger.file_writable_by_anybody"):
        PrivacyLedger(path)


@pytest.mark.parametrize(
    "how", ["missing", "folder", "in_no_folder", "empty_name", "bytes"]
)
def test_a_path_without_a_ledger_is_refused(path, how):
    if how == "folder":
        path.mkdir()
    named = {"in_no_folder": path / "a" / "b", "empty_name": "", "bytes": b"budget"}
    where = named.get(how, path)
    limits = None if how == "missing" else CEILING
    with pytest.raises(LedgerError):
        PrivacyLedger(where, limits)


@pytest.mark.parametrize("content", [b"", b"hello", 4000 * b"\x07"])
def test_a_file_that_is_no_ledger_is_left_alone(path, content):
    path.write_bytes(content)
    with refused(LedgerError, ("ledger.file_damaged", "ledger.file_not_a_ledger")):
        PrivacyLedger(path, CEILING)
    assert path.read_bytes() == content


def test_another_sqlite_file_is_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE ledger (id TEXT)")
    other.close()
    with refused(LedgerError, "ledger.file_not_a_ledger"):
        PrivacyLedger(path, CEILING)


def test_a_newer_version_is_not_guessed_at(ledger, path):
    ledger.close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 2")
    raw.close()
    with refused(LedgerError, "ledger.version_too_new"):
        PrivacyLedger(path)


@pytest.mark.parametrize(
    "statement",
    [
        *(f"DELETE FROM {table}" for table in ("ledger", "limits", "kinds", "entries")),
        "UPDATE entries SET kind = 2",
        "UPDATE kinds SET certificate = '{}'",
        "UPDATE limits SET limits = '{}'",
        "UPDATE ledger SET id = 'x'",
    ],
)
def test_nothing_is_taken_back(ledger, path, statement):
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        raw.execute(statement)
    raw.close()
    assert len(ledger.report()) == 1


def test_a_certificate_that_is_damaged_is_noticed(ledger, path):
    ledger.close()
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER kinds_UPDATE")
        raw.execute("UPDATE kinds SET certificate = replace(certificate, '0.1', '0.0')")
    raw.close()
    with refused(LedgerError, "ledger.certificate_damaged"):
        PrivacyLedger(path)


def test_pages_that_are_damaged_refuse_a_release(ledger, path):
    ledger.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x01" * (len(content) - 4096)
    path.write_bytes(content)
    with refused(LedgerError, "ledger.file_damaged"):
        PrivacyLedger(path)
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        ledger.enter(ONE)


def test_a_file_that_was_removed_or_replaced_refuses_a_release(ledger, path):
    path.rename(path.with_name("moved.db"))
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        ledger.enter(ONE)
    # what is left of it would be read as a part of any file of its name
    with refused(LedgerError, "ledger.wal_file_separated"):
        PrivacyLedger(path, CEILING)
    for name in ("wal", "shm"):
        os.unlink(f"{path}-{name}")
    other = PrivacyLedger(path, CEILING)
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        ledger.enter(ONE)
    ledger.close()
    # nor is it taken for the one that it was when it is opened again
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        ledger.enter(ONE)
    assert not len(other.report())


def test_a_file_that_may_only_be_read_is_looked_at(ledger, path, monkeypatch):
    looking = pickle.loads(pickle.dumps(PrivacyLedger.read_only(path)))
    assert len(looking.report()) == 1
    # who looks waits as long as who writes, unless told
    assert looking.timeout == ledger.timeout
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        looking.enter(ONE)
    ledger.close()
    # who is root may write to any
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with refused(LedgerError, "ledger.read_only_file"):
        PrivacyLedger(path)


def test_who_waits_too_long_is_refused(ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    impatient = PrivacyLedger(path, timeout=0.05)
    # what is there can be read meanwhile
    assert len(impatient.report()) == 1
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        impatient.enter(ONE)
    other.execute("ROLLBACK")
    other.close()
    impatient.enter(ONE)
    assert len(ledger.report()) == 2


def test_the_order_is_that_of_the_entries_whatever_clocks_say(ledger, monkeypatch):
    monkeypatch.setattr(_store, "now", lambda: "1999-12-31T23:59:59.000+00:00")
    ledger.enter(ONE)
    report = ledger.report()
    assert list(report.index) == [1, 2]
    assert report["time"].iloc[1] < report["time"].iloc[0]
    assert report["time"].iloc[0] <= pd.Timestamp(datetime.now().astimezone())


@pytest.mark.parametrize("survives", ["power_loss", "process_kill"])
def test_what_an_entry_survives(path, survives):
    ledger = PrivacyLedger(path, CEILING, survives=survives)
    run = ledger._store._connection.execute
    (level,) = run("PRAGMA synchronous").fetchone()
    assert level == {"power_loss": 2, "process_kill": 1}[survives]
    assert run("PRAGMA journal_mode").fetchone() == ("wal",)
    with refused(ValueError, "parameter.option_unknown", name="survives"):
        PrivacyLedger(path, survives="everything")
    with refused(ValueError, "parameter.not_positive", name="timeout"):
        PrivacyLedger(path, timeout=-1)


def test_files_of_other_machines_are_refused(tmp_path):
    mounts = tmp_path / "mountinfo"
    place = str(tmp_path / "far away").replace(" ", "\\040")
    lines = [
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
        f"40 22 0:30 / {place} rw,relatime shared:7 - nfs4 host:/x rw",
        f"41 40 0:31 / {place}/near rw,relatime - ext4 /dev/sdb1 rw",
    ]
    (tmp_path / "far away" / "near").mkdir(parents=True)
    # in whatever order they are listed
    for listed in (lines, lines[::-1]):
        mounts.write_text("\n".join(listed))
        with refused(LedgerError, "ledger.network_file_system", kind="nfs4"):
            _store.refuse_network(str(tmp_path / "far away" / "x.db"), str(mounts))
        for local in ("x.db", "far away/near/x.db", "far awayish/x.db"):
            _store.refuse_network(str(tmp_path / local), str(mounts))
    # of two on one place the later one is seen
    mounts.write_text("\n".join([*lines, lines[0].replace("ext4", "nfs")]))
    with refused(LedgerError, "ledger.network_file_system", kind="nfs"):
        _store.refuse_network(str(tmp_path / "x.db"), str(mounts))
    # where nothing is known nothing is refused
    _store.refuse_network("x.db", str(tmp_path / "none"))


def test_equal_certificates_are_stored_once(ledger, path):
    ledger.enter(ONE, count=50)
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT COUNT(*) FROM kinds").fetchone() == (1,)
    assert raw.execute("SELECT COUNT(*) FROM entries").fetchone() == (51,)
    raw.close()


def test_a_number_that_json_has_not_is_not_written():
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match="JSON"):
            _store.strict_json({"epsilon": number})


def test_a_refused_release_leaves_nothing_in_the_file(path):
    ledger = PrivacyLedger(path, {"approximate_dp": (0.01, 1e-5)})
    with pytest.raises(LedgerRefusal):
        ledger.enter(ONE)
    raw = sqlite3.connect(path)
    for table in ("kinds", "entries"):
        assert raw.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    raw.close()
    assert np.isclose(ledger.remaining()["approximate_dp"], 0.01)


def test_an_interrupt_while_reading_leaves_nothing_uncounted(path, monkeypatch):
    one, other = PrivacyLedger(path, CEILING), PrivacyLedger(path)
    other.enter(ONE, count=5)
    read = Spent._read

    def interrupted(self, news):
        monkeypatch.setattr(Spent, "_read", read)
        raise KeyboardInterrupt

    monkeypatch.setattr(Spent, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.remaining()
    assert one.remaining() == other.remaining()
    assert one.total().n_releases == 5


def test_a_certificate_that_is_not_known_here_refuses_every_release(ledger, path):
    text = _store.strict_json({**ONE.to_dict(), "curve": {"kind": "of another"}})
    raw = sqlite3.connect(path)
    with raw:
        raw.execute(
            "INSERT INTO kinds (digest, certificate) VALUES (?, ?)",
            (_store.digest_of(text), text),
        )
    raw.close()
    for _ in range(2):
        with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
            ledger.enter(ONE)
    with refused(LedgerError, "ledger.certificate_unreadable"):
        ledger.total()


def test_a_refusal_changes_nothing_of_what_is_counted(path):
    ledger = PrivacyLedger(path, {"approximate_dp": (0.1, 1e-5)})
    ledger.enter(ONE)
    with pytest.raises(LedgerRefusal):
        ledger.enter(ONE, count=2)
    assert ledger.total().n_releases == 1


def test_a_pickle_is_of_the_ledger_that_it_was_made_of(ledger, path):
    text = pickle.dumps(ledger)
    ledger.close()
    path.unlink()
    new = PrivacyLedger(path, CEILING)
    old = pickle.loads(text)
    assert old is not new
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        old.enter(ONE)
    assert not len(new.report())


def test_what_another_enters_meanwhile_counts(path, monkeypatch):
    """Between the check that keeps nobody waiting and the one that decides."""
    one = PrivacyLedger(path, {"approximate_dp": (ONE.epsilon, ONE.delta)})
    other = PrivacyLedger(path)
    writing = _store.Store.writing

    def late(self):
        monkeypatch.setattr(_store.Store, "writing", writing)
        other.enter(ONE)
        return writing(self)

    monkeypatch.setattr(_store.Store, "writing", late)
    with refused(LedgerRefusal, "ledger.ceiling_exceeded"):
        one.enter(ONE)
    assert len(other.report()) == 1


def test_notes_are_kept_beside_the_entries_and_never_changed(ledger, path):
    # a file of an earlier version has no table of notes
    assert ledger.notes() == []
    ledger.add_note("a", first=True)
    ledger.add_note("b", first=True)
    ledger.add_note("c")
    ledger.close()
    again = PrivacyLedger(path)
    assert again.notes() == ["a", "c"] and len(again.report()) == 1
    assert PrivacyLedger.read_only(path).notes() == ["a", "c"]
    with sqlite3.connect(path) as connection:
        for change in ("DELETE FROM notes", "UPDATE notes SET note = 'd'"):
            with pytest.raises(sqlite3.DatabaseError, match="only added to"):
                connection.execute(change)
    with pytest.raises(LedgerError):
        PrivacyLedger.read_only(path).add_note("e")
