"""Prior tables: what an attacker believes, read off public rows."""

from ._tables import ReferenceTable

__all__ = ["ReferenceTable"]
