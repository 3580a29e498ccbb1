"""Strategies: noise that is correlated across the steps of a run, by a matrix C.

The run's noise is ``C^-1 Z`` for independent draws Z; C is what is accounted for.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
