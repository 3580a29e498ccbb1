"""Caps over all histories of a run: the accountant of sliced Rényi Pufferfish SGD."""

from ._uniform_cap import HistoryUniformCap

__all__ = ["HistoryUniformCap"]
