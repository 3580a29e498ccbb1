"""What a process knows of the releases in a ledger's file, and whether others fit."""

import json
from collections import Counter

from skpuffer.exceptions import (
    LedgerError,
    LedgerRefusal,
    NotComposableError,
    Statement,
)
from skpuffer.privacy import Certificate, Notion

from ._book import Book
from ._ceilings import Ceiling, plain_limits
from ._store import Entry, News, Store, digest_of, strict_json

__all__ = ["Spent"]

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
        """Take notice of what was added to the file, or begin anew where that failed.

        What an interrupt left out would else never be counted.

        Parameters
        ----------
        store : Store

        Raises
        ------
        LedgerError
            If there is anything that cannot be read.
        """
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
        """Refuse releases of a certificate that do not fit.

        Parameters
        ----------
        kind, count : int

        Raises
        ------
        BudgetExceededError, NotComposableError
        """
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
        """Return the book of a ceiling, or of the only one.

        Parameters
        ----------
        notion : Notion, str or None

        Returns
        -------
        Book

        Raises
        ------
        ValueError
            If there is none of that notion.
        """
        if notion is None and len(self.books) == 1:
            return self.books[0]
        for book in self.books:
            if notion is not None and book.ceiling.notion == Notion.of(notion):
                return book
        known = ", ".join(repr(str(book.ceiling.notion)) for book in self.books)
        raise ValueError(
            Statement("ledger.notion_not_of_ceiling", known=known, notion=notion)
        )

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
