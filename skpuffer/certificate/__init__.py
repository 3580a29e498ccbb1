"""Check certificates of others: every number, by a second path and without data."""

from ._check import check
from ._report import Finding, Report, State
from ._structure import CertificateFileError, schema

__all__ = [
    "CertificateFileError",
    "Finding",
    "Report",
    "State",
    "check",
    "schema",
]
