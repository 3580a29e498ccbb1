"""Prior tables: public rows from which an attacker's belief is read."""

from ._tables import ReferenceTable

__all__ = ["ReferenceTable"]
