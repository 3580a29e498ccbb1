"""Search for the best parameters of a private estimator, within one budget."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
