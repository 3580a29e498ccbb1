"""The public code book of a table: what may be known of its columns beforehand."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
