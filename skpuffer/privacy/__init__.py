"""Promises: what they state, what follows from them, and which may be added up."""

from skpuffer.kernel import certificates as _certificates
from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _certificate_class() -> type[_certificates.Certificate]:
    from ._certificate import Certificate

    return Certificate


# whose class says more of what follows
_certificates.certificates_from(_certificate_class)
