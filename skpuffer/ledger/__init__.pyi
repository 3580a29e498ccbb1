from ._ledger import PrivacyLedger

__all__ = ["PrivacyLedger"]
