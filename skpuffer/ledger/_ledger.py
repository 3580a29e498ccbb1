"""The ledger: callback of scikit-learn, context manager, and the file it keeps."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from skpuffer.exceptions import LedgerError, PrivacyLeakWarning, Statement, type_error
from skpuffer.kernel.numbers import check_count, check_option, check_positive
from skpuffer.privacy import Certificate, Notion
from skpuffer.utils._listeners import (
    begin_carrying,
    end_carrying,
    is_carrying,
    listen,
    listen_here,
    stop_listening,
    stop_listening_here,
)
from skpuffer.utils._silence import parts_of, warn

from ._book import Spent
from ._ceilings import read_limits, write_limits
from ._display import entries_frame, ledger_html, ledger_text, totals_frame
from ._store import MEMORY, Store, refusing, strict_json, watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd


#: The ledgers of this process, by path or, in memory, by id: one each.
_OPEN: weakref.WeakValueDictionary[str, PrivacyLedger] = weakref.WeakValueDictionary()

#: Those that came here by pickling.
_REOPENED: list[PrivacyLedger] = []


class PrivacyLedger:
    """Keep a durable budget: enter each release before its noise, or refuse it.

    Set on an estimator (``estimator.set_callbacks(ledger)``) it records each release of
    its fits, through pipelines and searches and in worker processes. In a ``with``
    statement it records every private fit of the process.

    Parameters
    ----------
    path : str or path-like
        An SQLite file, made if it is missing, on a local disk; or ``':memory:'``, for
        one process alone.
    limits : mapping, default=None
        Joint budget of releases, by notion: ``{'approximate_dp': (3.0, 1e-5)}``. A pair
        (epsilon, delta) for 'approximate_dp' and 'approximate_pufferfish', (epsilon,
        alpha) for 'renyi_dp', 'renyi_pufferfish' and averages over subsamples, a number
        for 'pure_dp', 'pure_pufferfish' and bounds on a mutual information. An infinite
        epsilon only counts. None takes those of the file, which must be there; others
        than those are refused, see :meth:`set_limits`.
    timeout : float, default=60.0
        Seconds to wait while other processes write.
    survives : {'power_loss', 'process_kill'}, default='power_loss'
        Failures that an entry survives. 'power_loss' waits some milliseconds for the
        disk.

    Attributes
    ----------
    path : str
        Absolute path of the file.

    Raises
    ------
    LedgerError
        If the file cannot be used, is not a ledger, or has other ceilings.

    Notes
    -----
    A ceiling is of all releases whose certificates promise its notion, or a stronger
    one. Other releases are refused, and those that do not add up with earlier ones.
    Certificates of different named tables are kept apart, which is right if nobody is
    in two of them; those that name no table count for all.

    A killed process may leave one release in flight, paid for. A refusal raises
    :class:`~skpuffer.exceptions.LedgerRefusal`, which is no ``Exception``, so that
    scikit-learn's `error_score` does not hide it.

    Restoring an older copy forgets what was spent since, and anyone who may write to
    the file can forge it. While it is open its last entries are in a second file,
    ending in '-wal': move both, or :meth:`close` first.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.ledger import PrivacyLedger
    >>> from skpuffer.summary import PrivateMean
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> ledger = PrivacyLedger(":memory:", {"approximate_dp": (2.0, 1e-5)})
    >>> mean = PrivateMean(accountant=PrivacyLoss(noise="gaussian"), bounds=(0, 1))
    >>> with ledger:
    ...     mean = mean.fit(X)
    >>> ledger.total()
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    >>> ledger.remaining()
    {'approximate_dp': 1.0}
    >>> ledger.remaining(mean.certificate_)
    2
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Mapping[str | Notion, Any] | None = None,
        *,
        timeout: float = 60.0,
        survives: str = "power_loss",
    ):
        named = os.fspath(path)
        if not isinstance(named, str) or not named:
            raise LedgerError(
                Statement("ledger.path_invalid", memory=MEMORY, path=path)
            )
        # a process may leave its folder, and a worker has another
        self.path = named if named == MEMORY else os.path.realpath(named)
        self.timeout = check_positive(timeout=timeout)
        self.survives = check_option(("power_loss", "process_kill"), survives=survives)
        ceilings = None if limits is None else read_limits(limits)
        plain = None if ceilings is None else strict_json(write_limits(ceilings))
        self._name: str | None = None
        self._writable = True
        self._begin()
        with self._opened(plain):
            if ceilings is not None and ceilings != self._spent.ceilings:
                listed = "; ".join(map(str, self._spent.ceilings))
                raise LedgerError(
                    Statement(
                        "ledger.limits_differ_from_stored",
                        path=self.path,
                        listed=listed,
                    )
                )
        _OPEN[self._key] = self

    @property
    def max_propagation_depth(self) -> None:
        """None: sub-estimators at any depth are heard too, as scikit-learn has it."""
        return None

    @classmethod
    def read_only(cls, path: str | os.PathLike[str]) -> Self:
        """Return a ledger to look at, which refuses every release.

        Parameters
        ----------
        path : str or path-like
            Path of a file that is there.

        Returns
        -------
        PrivacyLedger
        """
        ledger = cls.__new__(cls)
        ledger.path, ledger.timeout = os.path.realpath(os.fspath(path)), 60.0
        ledger.survives, ledger._name = "power_loss", None
        ledger._writable = False
        ledger._begin()
        with ledger._opened():
            return ledger

    def _begin(self) -> None:
        """Have no file open, and know nothing of it."""
        self._store: Store | None = None
        self._spent, self._lock = Spent(), threading.RLock()
        # fits that go on, by the estimator that is fitted
        self._carried: dict[int, str] = {}
        watch(self)

    @property
    def _key(self) -> str:
        return f"{MEMORY}{self._name}" if self.path == MEMORY else self.path

    # -- scikit-learn's callbacks, and the context manager -----------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Record what is fitted within a fit, and warn of outputs beside releases.

        Parameters
        ----------
        estimator : estimator
        context : CallbackContext
        """
        listen_here(self)
        parts = _nested(estimator)
        self._carried[id(estimator)] = begin_carrying(parts, self)
        # it knows many estimators, which a ledger in a block has no need to load
        from skpuffer.compose import audit_pipeline

        for leak in audit_pipeline(estimator).leaks:
            warn(
                Statement(
                    "ledger.estimator_part_not_covered",
                    estimator_type=type(estimator).__name__,
                    leak=leak,
                ),
                PrivacyLeakWarning,
            )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Undo :meth:`setup`."""
        stop_listening_here(self)
        fit = self._carried.pop(id(estimator), None)
        if fit is not None:
            end_carrying(_nested(estimator), fit)

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None
    ) -> None:
        """Enter the certificate of a release, or refuse the release.

        Parameters
        ----------
        estimator : estimator
        context : CallbackContext
            Only tasks named 'release' matter.
        metadata : dict
            With the `certificate`.
        """
        if context.task_name != "release" or "certificate" not in (metadata or {}):
            return
        assert metadata is not None  # it has a certificate
        # one release may be told of by more than one way
        paid = metadata.setdefault("ledgers", set())
        if self._key not in paid:
            self.enter(metadata["certificate"], estimator=_path_of(estimator, context))
            paid.add(self._key)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Do nothing: what was entered stays, whether the fit succeeded or not."""

    def __enter__(self) -> Self:
        listen(self)
        return self

    def __exit__(self, *exception: object) -> None:
        stop_listening(self)

    # -- what is spent -----------------------------------------------------------------

    @property
    def limits(self) -> dict[str, float | tuple[float, float]]:
        """The ceilings, as they are given."""
        with self._opened():
            return {
                str(c.notion): c.most if c.parameter is None else (c.most, c.parameter)
                for c in self._spent.ceilings
            }

    def enter(
        self, certificate: Certificate, *, count: int = 1, estimator: str = "by hand"
    ) -> None:
        """Pay for releases of one certificate, or refuse them all.

        For what was released by other means, or to pay for several releases at once.

        Parameters
        ----------
        certificate : Certificate
        count : int, default=1
            Number of releases.
        estimator : str, default='by hand'
            Author of the releases, for the report.

        Raises
        ------
        BudgetExceededError
            If the total would be above a ceiling.
        NotComposableError
            If they do not add up with earlier ones, or promise the notion of no
            ceiling.
        """
        if not isinstance(certificate, Certificate):
            raise type_error(
                "ledger.entry_not_certificate",
                certificate_type=type(certificate).__name__,
            )
        count = check_count(count=count)
        with refusing(), self._opened() as store:
            # what takes long, before others are kept waiting
            kind = self._spent.kind(certificate)
            self._spent.check(kind, count)
            with store.writing():
                # what others have entered since counts as well
                self._spent.refresh(store)
                self._spent.check(kind, count)
                self._spent.enter(store, kind, count * [estimator])

    def remaining(
        self, certificate: Certificate | None = None, *, table: str | None = None
    ) -> dict[str, float] | int:
        """Return what is left of each ceiling, or how many more releases fit.

        Parameters
        ----------
        certificate : Certificate, default=None
            Certificate of a release, to return how many more of it fit.
        table : str, default=None
            Table of what is left; None is the one of which most is spent.

        Returns
        -------
        dict or int
            Ceiling less total, by notion: releases cost less together than their
            epsilons add up to, so more may fit. Or a number of releases, at most 2**20.
        """
        with self._opened():
            if certificate is None:
                return self._spent.remaining(table)
            return self._spent.more(self._spent.kind(certificate))

    def total(
        self, notion: Notion | str | None = None, *, table: str | None = None
    ) -> Certificate | None:
        """Return what all releases under a ceiling promise together.

        Parameters
        ----------
        notion : Notion or str, default=None
            Notion of the ceiling; None where there is one alone.
        table : str, default=None
            Table of the releases to count; None is the one of which most is spent.

        Returns
        -------
        Certificate or None
            None if nothing was released.
        """
        with self._opened():
            return self._spent.total(self._spent.book(notion), table)

    def report(self) -> pd.DataFrame:
        """Return every release as a data frame, in the order of entry."""
        with self._opened() as store:
            return entries_frame(self._spent.entries(store), self._spent.certificates)

    def totals(self) -> pd.DataFrame:
        """Return what is spent of each ceiling by table, as a data frame."""
        with self._opened():
            return totals_frame(
                [
                    (
                        book.ceiling,
                        table,
                        sum(account.counts.values()),
                        account.others,
                        book.total(table),
                    )
                    for book in self._spent.books
                    for table, account in book.accounts.items()
                ]
            )

    def add_note(self, note: str, *, first: bool = False) -> None:
        """Keep a text beside the entries, such as a table that was released.

        A note costs nothing and is never changed. Anyone who reads the file can read
        it, so write only what was released or is public.

        Parameters
        ----------
        note : str
        first : bool, default=False
            Write the note only if the ledger has none yet.
        """
        with self._opened() as store, store.writing():
            if not (first and store.notes()):
                store.add_note(note)

    def notes(self) -> list[str]:
        """Return all notes, in the order in which they were written."""
        with self._opened() as store:
            return store.notes()

    def set_limits(self, limits: Mapping[str | Notion, Any]) -> None:
        """Change the ceilings from now on; the file keeps those before.

        Parameters
        ----------
        limits : mapping
            As the parameter of the class. Budget that is spent stays spent.
        """
        plain = strict_json(write_limits(read_limits(limits)))
        with self._opened() as store, store.writing():
            store.add_limits(plain)

    def close(self) -> None:
        """Close the file until it is needed again; a ledger in memory stays."""
        with self._lock:
            if self._store is not None and self.path != MEMORY:
                self._store.disconnect()

    # -- its parts ---------------------------------------------------------------------

    @contextmanager
    def _opened(self, limits: str | None = None) -> Iterator[Store]:
        """Keep the file to this thread, of this process, and know what is in it."""
        with self._lock:
            store = self._open(limits)
            self._spent.refresh(store)
            yield store

    def _open(self, limits: str | None) -> Store:
        """The file, as this process reads and writes it."""
        if self._store is None:
            if self.path == MEMORY and self._name is not None:
                raise LedgerError(_ELSEWHERE)
            self._store = Store(
                self.path,
                limits,
                self._name,
                self.timeout,
                self.survives,
                self._writable,
            )
            self._name = self._store.id
        return self._store

    def _before_fork(self) -> None:
        """Close the file, and keep other threads from opening it."""
        self._lock.acquire()
        self.close()

    def _after_fork(self, in_child: bool) -> None:
        """Let the file be opened again, by whoever needs it."""
        if not in_child:
            # one that was made by another thread meanwhile was not acquired
            with contextlib.suppress(RuntimeError):
                self._lock.release()
            return
        self._lock = threading.RLock()
        if self.path == MEMORY:
            # a copy that nobody else sees: whoever enters anything is refused
            self._store = None

    # -- copies ------------------------------------------------------------------------

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # a copy would count for itself
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self.timeout, self.survives, self._writable
        return _reopened, (self.path, self._name, *settings)

    def __repr__(self) -> str:
        return f"PrivacyLedger({self.path!r})"

    def __str__(self) -> str:
        return ledger_text(self.path, self.totals(), self.report())

    def _repr_html_(self) -> str:
        return ledger_html(self.path, self.totals(), self.report())


_ELSEWHERE = Statement("ledger.memory_in_other_process")


def _reopened(
    path: str, name: str | None, timeout: float, survives: str, writable: bool
) -> PrivacyLedger:
    """The ledger of a file in this process; the file is opened when it is needed."""
    key = f"{MEMORY}{name}" if path == MEMORY else path
    present = _OPEN.get(key)
    if present is not None and present._name == name and present._writable == writable:
        return present
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger.path, ledger.timeout, ledger.survives = path, timeout, survives
    ledger._name, ledger._writable = name, writable
    ledger._begin()
    _OPEN[key] = ledger
    # for the next task of this worker, which would else read the whole file again
    _REOPENED.append(ledger)
    return ledger


def _nested(estimator: Any) -> list[Any]:
    """Estimators in the parameters of one that is fitted, which release something."""
    parts = [one for one in parts_of(estimator, set()) if one is not estimator]
    return [one for one in parts if is_carrying(one)]


def _path_of(estimator: Any, context: Any) -> str:
    """The estimator, and those within which it is fitted."""
    names = [type(estimator).__name__]
    task = context.parent
    while task is not None:
        if task.estimator_name != names[-1]:
            names.append(task.estimator_name)
        task = task.parent
    return " in ".join(names)
