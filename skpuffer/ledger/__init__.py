"""Durable budgets: what was released of a table, counted across fits and processes."""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
