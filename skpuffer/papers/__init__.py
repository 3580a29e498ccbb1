"""Estimates, simulations and figures of papers of the field.

The rest of the library does not rest on them; they are kept for readers of the papers.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
