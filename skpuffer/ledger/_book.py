"""Book of one ceiling: whether another release fits, without adding up all of them.

Costs grow with every release, so any part of what was found to fit fits too. Rényi
costs and such parts answer cheaply; the composition of all certificates decides the
rest.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    LedgerError,
    LedgerRefusal,
    NotComposableError,
    Statement,
    UncertifiedError,
    reason_of,
    value_error,
)
from skpuffer.kernel.curves import conversion_terms
from skpuffer.kernel.numbers import Floats
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.privacy_loss._overlap import OverlapCurve, WorstOverlapCurve

from ._ceilings import Ceiling, plain_limits
from ._store import Entry, News, Store, digest_of, strict_json

#: Orders of the cheap bound: denser towards one, where a long sum is least.
_ORDERS = (*(1 + 2.0 ** np.arange(-6, 12.5, 0.5)).tolist(), math.inf)

#: What is raised where certificates do not add up.
_DO_NOT_ADD = (CompositionError, UncertifiedError, ValueError)


@dataclass
class Account:
    """The releases of a book that are about one table.

    Parameters
    ----------
    counts : Counter
        How many there are of each kind.
    others : int
        How many releases about it promise the notions of other ceilings alone.
    costs : ndarray of shape (n_orders,) or None
        Their Rényi costs together, where these add up without further ado.
    events : float
        Mass outside of the events they rest on, together.
    places : set
        Parts that have to be one and the same for that.
    fits, too_much : Counter or None
        A multiset that is known to fit, and one that is known not to.
    """

    counts: Counter[int] = field(default_factory=Counter)
    others: int = 0
    costs: Floats | None = field(default_factory=lambda: np.zeros(len(_ORDERS)))
    events: float = 0.0
    places: frozenset[Any] = frozenset()
    fits: Counter[int] | None = None
    too_much: Counter[int] | None = None


class Book:
    """The releases whose certificates promise the notion of a ceiling.

    Parameters
    ----------
    kinds : mapping of int to Certificate
        Those of the ledger, by number; grows with it.

    Attributes
    ----------
    accounts : dict
        By table. That of None is of the releases that name none, which count as about
        every table.
    """

    def __init__(self, ceiling: Ceiling, kinds: Mapping[int, Certificate]):
        self.ceiling, self._kinds = ceiling, kinds
        self.accounts: dict[str | None, Account] = {None: Account()}
        # what is known of each kind by itself
        self._reasons: dict[int, Statement | None] = {}
        self._costs: dict[int, Floats | None] = {}
        at = ceiling.at
        # what the conversion of a Rényi cost to epsilon adds at each order
        self._terms = None
        if "delta" in at:
            self._terms = conversion_terms(np.array(_ORDERS), at["delta"])

    def why_not(self, kind: int) -> Statement | None:
        """Return why releases of a kind are not in the book, or None if they are."""
        if kind not in self._reasons:
            reason = None
            try:
                self.ceiling.total([self._kinds[kind]], [1])
            except _DO_NOT_ADD as error:
                reason = reason_of(error)
            self._reasons[kind] = reason
        return self._reasons[kind]

    def add(self, kind: int, count: int) -> None:
        """Enter releases of one kind, which are released."""
        c = self._kinds[kind]
        for table, account in self._concerned(c).items():
            self.accounts[table] = account
            if self.why_not(kind) is not None:
                account.others += count
                continue
            account.counts[kind] += count
            cost = self._cost(kind)
            account.places |= {_place(c)}
            if cost is None or account.costs is None:
                account.costs = None
            else:
                account.costs = account.costs + count * cost
                account.events += count * c.event_delta

    def total(self, table: str | None) -> Certificate | None:
        """Return what the releases about a table promise together, or None."""
        account = self.accounts.get(table, self.accounts[None])
        return self._composed(account.counts) if account.counts else None

    def check(self, kind: int, count: int) -> None:
        """Refuse releases of one kind that would take a total above the ceiling."""
        if self.why_not(kind) is not None:
            return
        for table, account in self._concerned(self._kinds[kind]).items():
            if not self._costs_fit(account, kind, count):
                self._check_exactly(table, account, kind, count)

    def _concerned(self, c: Certificate) -> dict[str | None, Account]:
        """Accounts of those who may be in the table of a release, by table."""
        if c.table is None:
            return dict(self.accounts)
        if c.table in self.accounts:
            return {c.table: self.accounts[c.table]}
        # what names no table is about a new one as well
        every = self.accounts[None]
        new = Account(
            Counter(every.counts),
            every.others,
            every.costs,
            every.events,
            every.places,
        )
        return {c.table: new}

    def _check_exactly(
        self, table: str | None, account: Account, kind: int, count: int
    ) -> None:
        counts = account.counts + Counter({kind: count})
        if account.fits is not None and counts <= account.fits:
            return
        try:
            total = self._composed(counts)
        except _DO_NOT_ADD as error:
            before = sum(account.counts.values())
            raise NotComposableError(
                Statement(
                    "ledger.release_does_not_add_up",
                    certificate=self._kinds[kind],
                    before=before,
                    error=error,
                )
            ) from None
        if self.ceiling.exceeded_by(total):
            account.too_much = counts
            said = self._exceeded(table, account.counts, kind, count, total)
            raise BudgetExceededError(said)
        account.fits = self._ahead(account, counts)

    def _composed(self, counts: Counter[int]) -> Certificate:
        certificates = [self._kinds[kind] for kind in counts]
        return self.ceiling.total(certificates, list(counts.values()))

    def _ahead(self, account: Account, counts: Counter[int]) -> Counter[int]:
        """As many more of each kind as fit, in proportion, at most as there are."""
        share = 1.0
        while True:
            more = Counter({kind: int(share * n) for kind, n in counts.items()})
            if not more.total():
                return counts
            tried = counts + more
            # what holds more than what does not fit does not fit
            if account.too_much is None or not account.too_much <= tried:
                try:
                    exceeded = self.ceiling.exceeded_by(self._composed(tried))
                except _DO_NOT_ADD:
                    # such as one that adds up with nothing, not even with itself
                    return counts
                if not exceeded:
                    return tried
                account.too_much = tried
            share /= 2

    def _costs_fit(self, account: Account, kind: int, count: int) -> bool:
        """Whether Rényi costs together prove that releases fit."""
        c, cost = self._kinds[kind], self._cost(kind)
        if cost is None or account.costs is None:
            return False
        # releases of one coupling, table and relation, or what composes them decides
        if account.places - {_place(c)}:
            return False
        # costs of independent or adaptive mechanisms add, order by order
        costs = account.costs + count * cost
        if self._terms is None:
            # that of an order is at most that of the next one held, infinity at last
            held = np.searchsorted(_ORDERS, self.ceiling.at["alpha"])
            return bool(costs[held] <= self.ceiling.most)
        terms, events = self._terms, account.events + count * c.event_delta
        if events:
            left = self.ceiling.at["delta"] - events
            if left <= 0:
                return False
            terms = conversion_terms(np.array(_ORDERS), left)
        # each order proves its own epsilon (`privacy_loss.renyi_to_approximate`)
        return bool(np.min(costs + terms) <= self.ceiling.most)

    def _cost(self, kind: int) -> Floats | None:
        """Rényi cost of one release at each order, where costs add up by themselves."""
        if kind not in self._costs:
            self._costs[kind] = _costs_of(self._kinds[kind], self.ceiling)
        return self._costs[kind]

    def _exceeded(
        self,
        table: str | None,
        before: Counter[int],
        kind: int,
        count: int,
        total: Certificate,
    ) -> Statement:
        spent = self.ceiling.spent(self._composed(before) if before else None)
        about = "" if table is None else Statement("ledger.about_table", table=table)
        number = sum(before.values()) + count
        said = "1 release" if number == 1 else f"{number} releases"
        return Statement(
            "ledger.ceiling_exceeded",
            certificate=self._kinds[kind],
            said=said,
            about=about,
            total=self.ceiling.spent(total),
            ceiling=self.ceiling,
            spent=spent,
        )


def _place(c: Certificate) -> tuple[Any, ...]:
    """What has to be the same of releases that add up without further ado."""
    of_table = None if c.table is None else (c.table, c.n_records, c.columns)
    return c.coupling_id, c.relation, of_table, c.notion.differential


def _costs_of(c: Certificate, ceiling: Ceiling) -> Floats | None:
    plain = (
        c.composable
        and c.coupling_id is not None
        and c.curve is not None
        and c.notion.approximate is not None
        and not isinstance(c.curve, OverlapCurve | WorstOverlapCurve)
        and bool(ceiling.at)
    )
    if not plain:
        return None
    assert c.curve is not None  # one of the conditions above
    if isinstance(c.curve, PrivacyLossCurve):
        return np.array(c.curve.renyi_costs(_ORDERS))
    return np.array([float(c.curve.renyi(alpha)) for alpha in _ORDERS])


# -- what a process knows of the releases in a ledger's file, and whether others fit ---


#: How many releases are looked ahead at most.
_MOST = 2**20


class Spent:
    """Certificates, counts and books, as far as a file was read.

    Attributes
    ----------
    ceilings : tuple of Ceiling
    books : tuple of Book
        One for each.
    certificates : dict of int to Certificate
        By numbers of this process.
    """

    ceilings: tuple[Ceiling, ...]
    books: tuple[Book, ...]
    certificates: dict[int, Certificate]
    # numbers of certificates in this process, by digest and by those in the file
    _kinds: dict[str, int]
    _in_file: dict[int, int]
    _counts: Counter[int]
    _is_whole: bool

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.ceilings = self.books = ()
        self.certificates, self._kinds, self._in_file = {}, {}, {}
        self._counts = Counter()
        self._is_whole = True

    # -- reading -----------------------------------------------------------------------

    def refresh(self, store: Store) -> None:
        """Read what was added to the file, or begin anew where that failed."""
        if not self._is_whole:
            self._forget()
            store.rewind()
        self._is_whole = False
        self._read(store.news())
        self._is_whole = True

    def _read(self, news: News) -> None:
        for in_file, text in news.kinds:
            self._in_file[in_file] = self._number(text, None)
        for in_file, count in news.entries:
            kind = self._in_file[in_file]
            self._counts[kind] += count
            for book in self.books:
                book.add(kind, count)
        if news.limits is not None:
            self.ceilings = plain_limits(json.loads(news.limits))
            self.books = tuple(Book(c, self.certificates) for c in self.ceilings)
            for book in self.books:
                for kind, count in self._counts.items():
                    book.add(kind, count)

    def kind(self, certificate: Certificate) -> int:
        """Return the number of a certificate in this process, in the file or not."""
        return self._number(strict_json(certificate.to_dict()), certificate)

    def _number(self, text: str, certificate: Certificate | None) -> int:
        kind = self._kinds.setdefault(digest_of(text), len(self._kinds))
        if kind not in self.certificates:
            self.certificates[kind] = certificate or _from_file(text)
        return kind

    def enter(self, store: Store, kind: int, estimators: list[str]) -> None:
        """Write releases of one kind to a file, within its transaction."""
        known = [at for at, own in self._in_file.items() if own == kind]
        if not known:
            text = strict_json(self.certificates[kind].to_dict())
            known = [store.add_kind(text)]
        store.add_entries(known[0], estimators)

    def entries(self, store: Store) -> list[Entry]:
        """Return all releases, their kinds by the numbers of this process."""
        return [e._replace(kind=self._in_file[e.kind]) for e in store.entries()]

    # -- what fits ---------------------------------------------------------------------

    def check(self, kind: int, count: int) -> None:
        """Refuse releases of a certificate that do not fit."""
        certificate = self.certificates[kind]
        if not certificate.certified:
            raise NotComposableError(
                Statement(
                    "ledger.release_is_estimate",
                    certificate=certificate,
                    assumptions=certificate.assumptions[-2:],
                )
            )
        if certificate.seeded:
            raise NotComposableError(
                Statement("ledger.release_noise_from_seed", certificate=certificate)
            )
        reasons = [book.why_not(kind) for book in self.books]
        if None not in reasons:
            ceilings = "; ".join(
                f"{book.ceiling}: {reason}"
                for book, reason in zip(self.books, reasons, strict=True)
            )
            raise NotComposableError(
                Statement(
                    "ledger.release_notion_without_ceiling",
                    certificate=certificate,
                    ceilings=ceilings,
                )
            )
        for book in self.books:
            book.check(kind, count)

    def more(self, kind: int) -> int:
        """Return how many more releases of a kind fit, at most 2**20."""
        fits, too_many = 0, 1
        while too_many <= _MOST and self._admits(kind, too_many):
            fits, too_many = too_many, 2 * too_many
        while too_many - fits > 1 and fits < _MOST:
            middle = (fits + too_many) // 2
            if self._admits(kind, middle):
                fits = middle
            else:
                too_many = middle
        return fits

    def _admits(self, kind: int, count: int) -> bool:
        try:
            self.check(kind, count)
        except LedgerRefusal:
            return False
        return True

    # -- what is spent -----------------------------------------------------------------

    def book(self, notion: Notion | str | None) -> Book:
        """Return the book of a ceiling, or of the only one."""
        if notion is None and len(self.books) == 1:
            return self.books[0]
        for book in self.books:
            if notion is not None and book.ceiling.notion == Notion.of(notion):
                return book
        known = ", ".join(repr(str(book.ceiling.notion)) for book in self.books)
        raise value_error("ledger.notion_not_of_ceiling", known=known, notion=notion)

    def total(self, book: Book, table: str | None) -> Certificate | None:
        """Return what is spent of a table, or of that of which most is."""
        if table is not None:
            return book.total(table)
        known = [total for t in book.accounts if (total := book.total(t)) is not None]
        return max(known, key=book.ceiling.spent, default=None)

    def remaining(self, table: str | None) -> dict[str, float]:
        """Return what is left of each ceiling, by notion."""
        left = {}
        for book in self.books:
            spent = book.ceiling.spent(self.total(book, table))
            left[str(book.ceiling.notion)] = max(0.0, book.ceiling.most - spent)
        return left


def _from_file(text: str) -> Certificate:
    try:
        return Certificate.from_dict(json.loads(text))
    except ValueError as error:
        raise LedgerError(
            Statement("ledger.certificate_unreadable", error=error)
        ) from None
