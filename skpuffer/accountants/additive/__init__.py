"""Additive noise that covers the output's sensitivity, or a coupling of outputs."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
