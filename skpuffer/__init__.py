"""skpuffer: scikit-learn estimators whose noise is set by what is secret."""

import lazy_loader as lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
