"""Real tables to try private estimators on, in scikit-learn's conventions.

Tables that ``load_`` reads are shipped with the package; those that ``fetch_`` reads
lie in a folder or are downloaded.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
