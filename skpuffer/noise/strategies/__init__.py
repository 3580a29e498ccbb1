"""Strategies: noise that is correlated across the steps of a run.

Noise of one step that is partly taken back at later ones hurts sums of many steps less.
A strategy says how, by a matrix C: the run's noise is ``C^-1 Z`` for independent draws
Z, and what is accounted for is C.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
