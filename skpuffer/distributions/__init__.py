"""Output distributions: what is known of a query's output; how far two are apart."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
