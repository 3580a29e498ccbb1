"""Execution of gradient releases: batches, clipped gradients, noise, steps.

Nothing here knows of scenarios, budgets or accountants. No example's gradient is ever
built: its norm follows from what enters and what leaves a layer.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
