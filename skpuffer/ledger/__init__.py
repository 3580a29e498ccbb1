"""Durable budgets: what was released of a table, counted across fits and processes."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
