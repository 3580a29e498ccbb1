"""Execution of gradient releases: batches, clipped gradients, noise, steps.

Nothing here knows of scenarios, budgets or accountants. No example's gradient is ever
built: its norm follows from what enters and what leaves a layer.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
