"""Amplification by overlap: of a record as a whole, and pair by pair."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
