"""Synthetic tables: rows that may be shared in place of the private ones."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
