"""What is promised, what follows from it, and what may be added up."""

from skpuffer.kernel.certificates import certificates_from
from skpuffer.kernel.plain import kinds_from
from skpuffer.utils._rooms import attach_stub, load_room

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _load_kinds() -> None:
    for room in ("kernel", "noise", "privacy_loss", "scenarios", "accountants"):
        load_room(f"skpuffer.{room}")


# a certificate that is read back may hold a curve of any of these
kinds_from(_load_kinds)


def _load_certificate() -> None:
    from . import _certificate  # noqa: F401


# whose class says more of what follows
certificates_from(_load_certificate)
