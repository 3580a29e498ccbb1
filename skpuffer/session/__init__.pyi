from ._session import Session

__all__ = ["Session"]
