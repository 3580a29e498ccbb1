"""Check a certificate: ``python -m skpuffer.certificate FILE``."""

import argparse
import json
import sys
from collections.abc import Sequence

from ._check import check
from ._structure import CertificateFileError, schema

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Recompute the numbers of a certificate, and print what was found.

    It returns 0 if the promise's number was recomputed without a contradiction, 1 with
    one, 2 if the file is no certificate, 3 if the number of the promise cannot be
    recomputed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m skpuffer.certificate",
        description="Recompute the numbers of a certificate from what it states, "
        "without data. Whether its premises are true is not checked, nor who wrote it.",
    )
    parser.add_argument("file", nargs="?", help="the JSON of certificate.to_dict()")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema, and check nothing"
    )
    given = parser.parse_args(arguments)
    if given.schema:
        print(json.dumps(schema(), indent=2, ensure_ascii=True))
        return 0
    if given.file is None:
        parser.error("the file of a certificate is needed")
    try:
        report = check(given.file)
    except (CertificateFileError, OSError) as error:
        print(ascii(str(error))[1:-1], file=sys.stderr)
        return 2
    text = json.dumps(report.to_dict(), indent=2) if given.json else str(report)
    encoding = sys.stdout.encoding or "utf-8"
    # whatever it is that is printed to
    print(text.encode(encoding, "backslashreplace").decode(encoding))
    if not report.follows:
        return 1
    return 0 if report.is_promise_recomputed else 3


if __name__ == "__main__":
    sys.exit(main())
