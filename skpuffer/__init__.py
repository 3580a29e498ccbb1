"""skpuffer: scikit-learn estimators whose noise is set by what is secret."""

from skpuffer.exceptions import Statement, rendered_by
from skpuffer.kernel import loaders
from skpuffer.utils._rooms import attach_stub, load_room

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _in_words(statement: Statement) -> str:
    from .words import render

    return render(statement)


rendered_by(_in_words)


#: Rooms with kinds of plain data, and with sampling schemes.
_ROOMS = ("kernel", "noise", "privacy_loss", "releases", "scenarios", "accountants")


def _load_kinds() -> None:
    for room in _ROOMS:
        load_room(f"{__name__}.{room}")


loaders.append(_load_kinds)
