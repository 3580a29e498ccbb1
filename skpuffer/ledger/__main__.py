"""Print what a ledger holds: ``python -m skpuffer.ledger FILE``."""

import argparse
import sys
from collections.abc import Sequence

from skpuffer.exceptions import LedgerError

from ._ledger import PrivacyLedger

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a ledger; return 1 if there is no ledger to be read, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="python -m skpuffer.ledger",
        description="Print what is spent of a privacy ledger, and its last releases.",
    )
    parser.add_argument("file", help="the SQLite file of the ledger")
    parser.add_argument(
        "--csv", action="store_true", help="all releases, as comma-separated values"
    )
    given = parser.parse_args(arguments)
    try:
        ledger = PrivacyLedger.read_only(given.file)
        print(ledger.report().to_csv() if given.csv else ledger)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
