"""skpuffer: scikit-learn estimators whose noise is set by what is secret."""

from skpuffer.utils._rooms import attach_stub

from .exceptions import Statement, rendered_by

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _in_words(statement: Statement) -> str:
    from .words import render

    return render(statement)


rendered_by(_in_words)
