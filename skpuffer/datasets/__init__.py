"""Real tables to try private estimators on, in scikit-learn's conventions.

What ``load_`` reads is shipped with the package; what ``fetch_`` reads lies in a folder
or is downloaded.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
