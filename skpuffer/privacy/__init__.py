"""Promises: what they state, what follows from them, and which may be added up."""

from skpuffer.kernel.certificates import certificates_from
from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _load_certificate() -> None:
    from . import _certificate  # noqa: F401


# whose class says more of what follows
certificates_from(_load_certificate)
