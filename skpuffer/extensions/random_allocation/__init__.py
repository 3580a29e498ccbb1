"""Random allocation: records in bins, and noise that is correlated across steps."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

# whoever has a strategy has loaded this, so that its runs are accounted for
from ._allocation import register  # noqa: E402

register()
