"""The file of a ledger: what is committed stays, whoever is killed or asks at once.

Nothing in it is changed or removed: triggers refuse it. Releases are in the order of
their numbers; clocks decide nothing.
"""

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
import stat
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from skpuffer.exceptions import LedgerError, LedgerRefusal, PrivacyWarning, Statement
from skpuffer.utils._silence import warn

#: What is a ledger that is in no file.
MEMORY = ":memory:"

#: By which a ledger is told from other SQLite files: 'SkPL'.
_APPLICATION = 0x536B504C

#: Version of the tables below.
_VERSION = 1

_TABLES = (
    "CREATE TABLE ledger (id TEXT NOT NULL)",
    """CREATE TABLE limits (
        id INTEGER PRIMARY KEY, time TEXT NOT NULL, limits TEXT NOT NULL)""",
    """CREATE TABLE kinds (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE,
        certificate TEXT NOT NULL)""",
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, kind INTEGER NOT NULL REFERENCES kinds (id),
        time TEXT NOT NULL, process TEXT NOT NULL, estimator TEXT NOT NULL)""",
    *(
        f"""CREATE TRIGGER {table}_{event} BEFORE {event} ON {table}
        BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"""
        for table in ("ledger", "limits", "kinds", "entries")
        for event in ("UPDATE", "DELETE")
    ),
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)

#: Texts beside the entries. Files of earlier versions are without this table.
_NOTES = (
    """CREATE TABLE IF NOT EXISTS notes (
        id INTEGER PRIMARY KEY, time TEXT NOT NULL, note TEXT NOT NULL)""",
    *(
        f"""CREATE TRIGGER IF NOT EXISTS notes_{event} BEFORE {event} ON notes
        BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"""
        for event in ("UPDATE", "DELETE")
    ),
)

#: File systems of other machines, on which locks may not hold.
_NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb2",
        "smb3",
        "smbfs",
    }
)


class Entry(NamedTuple):
    """One release in a file."""

    number: int
    kind: int
    time: str
    process: str
    estimator: str


class News(NamedTuple):
    """Lines added to a file since it was last read.

    Parameters
    ----------
    kinds : list of (int, str)
        New certificates, by number.
    entries : list of (int, int)
        How many new releases there are, by kind.
    limits : str or None
        New ceilings.
    """

    kinds: list[tuple[int, str]]
    entries: list[tuple[int, int]]
    limits: str | None


class Store:
    """The file of a ledger, as one process reads and writes it.

    Parameters
    ----------
    path : str
        Absolute, or `MEMORY`.
    limits : str or None
        With which a file that is missing is made; None refuses that.
    name : str or None
        The `id` that the ledger must have, if that is known.
    timeout : float
        Seconds to wait for others.
    survives : {'power_loss', 'process_kill'}
    writable : bool
        Whether anything is to be added.

    Attributes
    ----------
    id : str
        Name of the ledger; copies of a file share it.
    """

    # of each table, the last row that was read
    _last_kind: int
    _last_entry: int
    _last_limits: int

    def __init__(
        self,
        path: str,
        limits: str | None,
        name: str | None,
        timeout: float,
        survives: str,
        writable: bool,
    ):
        self._path, self._timeout, self._writable = path, timeout, writable
        self._level = "FULL" if survives == "power_loss" else "NORMAL"
        self.rewind()
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        if path == MEMORY:
            if limits is None:
                raise LedgerError(Statement("ledger.memory_limits_missing"))
            self._open = _connect(MEMORY, timeout)
            self.id = _make(self._open, limits)
            return
        refuse_network(path)
        if limits is not None and writable and not os.path.lexists(path):
            _create(path, limits, timeout)
        self.id = self._connect(name)

    def disconnect(self) -> None:
        """Close the file, until it is needed again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._connect(self.id)
        assert self._open is not None  # or that has raised
        return self._open

    def _connect(self, name: str | None) -> str:
        self._file = _identity(self._path)
        if self._writable and not os.access(self._path, os.W_OK):
            raise LedgerError(Statement("ledger.read_only_file", path=self._path))
        with _said_of(self._path):
            mode = "rw" if self._writable else "ro"
            uri = f"{Path(self._path).as_uri()}?mode={mode}"
            self._open = _connect(uri, self._timeout)
            try:
                found = self._check(name)
                self._open.execute(f"PRAGMA synchronous = {self._level}")
                # where a system tells what reached the drive from what is on its disk
                self._open.execute(f"PRAGMA fullfsync = {int(self._level == 'FULL')}")
            except BaseException:
                self.disconnect()
                raise
        return found

    def _check(self, name: str | None) -> str:
        """Refuse what is not a ledger of this version, and return which one it is."""
        run = self._connection.execute
        (application,) = run("PRAGMA application_id").fetchone()
        (version,) = run("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise LedgerError(Statement("ledger.file_not_a_ledger", path=self._path))
        if version > _VERSION:
            raise LedgerError(
                Statement(
                    "ledger.version_too_new",
                    path=self._path,
                    version=version,
                    version2=_VERSION,
                )
            )
        (own,) = run("SELECT id FROM ledger").fetchone()
        if name is not None and own != name:
            raise LedgerError(
                Statement("ledger.file_is_another_ledger", path=self._path)
            )
        if os.name == "posix" and os.stat(self._path).st_mode & stat.S_IWOTH:
            warn(
                Statement("ledger.file_writable_by_anybody", path=self._path),
                PrivacyWarning,
            )
        return str(own)

    # -- reading and adding ------------------------------------------------------------

    def news(self) -> News:
        """Return what was added since this was last asked."""
        with _said_of(self._path):
            run = self._connection.execute
            # before the certificates, so that there is one for each
            entries = run(
                "SELECT kind, COUNT(*), MAX(id) FROM entries WHERE id > ? "
                "GROUP BY kind",
                (self._last_entry,),
            ).fetchall()
            kinds = run(
                "SELECT id, certificate, digest FROM kinds WHERE id > ? ORDER BY id",
                (self._last_kind,),
            ).fetchall()
            for _, text, digest in kinds:
                if digest_of(text) != digest:
                    raise LedgerError(
                        Statement("ledger.certificate_damaged", path=self._path)
                    )
            limits = run(
                "SELECT id, limits FROM limits WHERE id > ? ORDER BY id DESC LIMIT 1",
                (self._last_limits,),
            ).fetchone()
        self._last_kind = max([self._last_kind, *(row[0] for row in kinds)])
        self._last_entry = max([self._last_entry, *(row[2] for row in entries)])
        if limits is not None:
            self._last_limits = limits[0]
        return News(
            [(number, text) for number, text, _ in kinds],
            [(kind, count) for kind, count, _ in entries],
            None if limits is None else limits[1],
        )

    def rewind(self) -> None:
        """Let :meth:`news` begin anew."""
        self._last_kind = self._last_entry = self._last_limits = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep all others from writing, and commit what was added if nothing fails."""
        with _said_of(self._path):
            connection = self._connection
            self._refuse_moved()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                # an error of the file may have ended it already
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def add_kind(self, text: str) -> int:
        """Write a certificate, within :meth:`writing`, and return its number."""
        row = self._connection.execute(
            "INSERT INTO kinds (digest, certificate) VALUES (?, ?)",
            (digest_of(text), text),
        ).lastrowid
        assert row is not None  # of a row that was added
        return row

    def add_entries(self, kind: int, estimators: list[str]) -> None:
        """Write releases of one kind, within :meth:`writing`."""
        self._connection.executemany(
            "INSERT INTO entries (kind, time, process, estimator) VALUES (?, ?, ?, ?)",
            [(kind, now(), process_name(), name) for name in estimators],
        )

    def add_limits(self, limits: str) -> None:
        """Write ceilings, within :meth:`writing`."""
        self._connection.execute(
            "INSERT INTO limits (time, limits) VALUES (?, ?)", (now(), limits)
        )

    def add_note(self, note: str) -> None:
        """Write a text, within :meth:`writing`."""
        for statement in _NOTES:
            self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO notes (time, note) VALUES (?, ?)", (now(), note)
        )

    def notes(self) -> list[str]:
        """Return all texts, in the order in which they were written."""
        with _said_of(self._path):
            run = self._connection.execute
            if not run("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone():
                return []
            return [row[0] for row in run("SELECT note FROM notes ORDER BY id")]

    def entries(self) -> list[Entry]:
        """Return all releases, in the order in which they were entered."""
        with _said_of(self._path):
            rows = self._connection.execute(
                "SELECT id, kind, time, process, estimator FROM entries WHERE id <= ? "
                "ORDER BY id",
                (self._last_entry,),
            ).fetchall()
        return [Entry(*row) for row in rows]

    def _refuse_moved(self) -> None:
        """Refuse a file that was removed, or another in its place.

        What is written to one that was removed is lost.
        """
        if self._path != MEMORY and self._file != _identity(self._path):
            raise LedgerError(
                Statement("ledger.file_replaced_while_open", path=self._path)
            )


def now() -> str:
    """Return the time, for people."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def process_name() -> str:
    """Return the host and the number of this process."""
    return f"{platform.node()}:{os.getpid()}"


def digest_of(text: str) -> str:
    """Return what tells a text from all others."""
    return hashlib.sha256(text.encode()).hexdigest()


def strict_json(plain: Any) -> str:
    """Return plain data as one line, the same for the same data."""
    return json.dumps(plain, allow_nan=False, sort_keys=True, separators=(",", ":"))


def refuse_network(path: str, mounts: str = "/proc/self/mountinfo") -> None:
    """Refuse a file on a file system of another machine, where that is known."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8").splitlines()
    except OSError:
        return  # not Linux: nothing is known
    folder = Path(os.path.realpath(path)).parent
    kind, deepest = "", -1
    for line in lines:
        # fields up to a dash, then the kind (man 5 proc); of two on one place the later
        fields, _, rest = line.partition(" - ")
        place = Path(fields.split()[4].replace("\\040", " "))
        if folder.is_relative_to(place) and len(place.parts) >= deepest:
            kind, deepest = rest.split()[0], len(place.parts)
    if kind in _NETWORK:
        raise LedgerError(Statement("ledger.network_file_system", path=path, kind=kind))


class _Connection(sqlite3.Connection):
    """Closes itself with the ledger that holds it, as Python 3.13 asks."""

    def __del__(self) -> None:
        self.close()


def _connect(database: str, timeout: float) -> sqlite3.Connection:
    # whoever uses it from several threads holds its lock
    return sqlite3.connect(
        database,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
        uri=database != MEMORY,
    )


def _make(connection: sqlite3.Connection, limits: str) -> str:
    """Write the tables of a new ledger, and return its id."""
    name = uuid.uuid4().hex
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO ledger VALUES (?)", (name,))
    connection.execute(
        "INSERT INTO limits (time, limits) VALUES (?, ?)", (now(), limits)
    )
    return name


def _create(path: str, limits: str, timeout: float) -> None:
    """Make a ledger that is whole as soon as it is there, unless another was faster."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise LedgerError(Statement("ledger.folder_missing", folder=folder))
    # its last entries, which SQLite would take for those of any file of this name
    if os.path.lexists(f"{path}-wal"):
        raise LedgerError(
            Statement("ledger.wal_file_separated", path=path, path2=path + "-wal")
        )
    with _said_of(path):
        # readable and writable by its owner alone
        handle, draft = tempfile.mkstemp(prefix=".ledger-", dir=folder)
        os.close(handle)
        try:
            connection = _connect(Path(draft).as_uri(), timeout)
            # readers go on while one writes, and a commit is one write to the disk
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            _make(connection, limits)
            connection.close()
            # in one step, and not over a file that is there
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            _settle(folder)
        finally:
            os.unlink(draft)


def _settle(folder: str) -> None:
    """Write to the disk that a file is in a folder, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        raise LedgerError(Statement("ledger.file_not_found", path=path)) from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(Statement("ledger.path_not_a_file", path=path))
    return found.st_dev, found.st_ino


@contextmanager
def _said_of(path: str) -> Iterator[None]:
    """Say in the words of a ledger what SQLite or the system has against its file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        busy = "locked" in str(error) or "busy" in str(error)
        remedy = (
            Statement("ledger.remedy_wait_or_timeout")
            if busy
            else Statement("ledger.remedy_make_file_writable")
        )
        raise LedgerError(
            Statement(
                "ledger.unusable_with_remedy", path=path, error=error, remedy=remedy
            )
        ) from None
    except sqlite3.DatabaseError as error:
        raise LedgerError(
            Statement("ledger.file_damaged", path=path, error=error)
        ) from None
    except OSError as error:
        raise LedgerError(
            Statement("ledger.file_unusable", path=path, error=error)
        ) from None


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse a release for what is wrong with the ledger, so that it is not hidden."""
    try:
        yield
    except LedgerError as error:
        raise LedgerRefusal(
            Statement("ledger.release_cannot_be_paid", error=error)
        ) from None


# -- no file of a ledger is open while a process forks ---------------------------------
# SQLite keeps what is locked by process, in memory that a fork copies. A child would
# believe that it holds the locks of its parent, and its parent would not see those of
# the child: the last to close a file, as either believes to be, tidies up what the
# other writes.


class ForkSafe(Protocol):
    """An object that holds a file open, and a lock."""

    def _before_fork(self) -> None:
        """Take the lock, and close the file."""

    def _after_fork(self, in_child: bool) -> None:
        """Give the lock back, or have a new one."""


_WATCHED: weakref.WeakSet[ForkSafe] = weakref.WeakSet()


def watch(thing: ForkSafe) -> None:
    """Have something told of every fork of this process."""
    _WATCHED.add(thing)


def _before() -> None:
    # in one order, whichever threads fork at once
    for thing in sorted(_WATCHED, key=id):
        thing._before_fork()


def _after_in_parent() -> None:
    for thing in tuple(_WATCHED):
        thing._after_fork(in_child=False)


def _after_in_child() -> None:
    for thing in tuple(_WATCHED):
        thing._after_fork(in_child=True)


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(
        before=_before,
        after_in_parent=_after_in_parent,
        after_in_child=_after_in_child,
    )
