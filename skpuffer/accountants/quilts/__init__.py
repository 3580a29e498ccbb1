"""Markov quilt mechanism, and the privacy curve of its releases together."""

from ._markov_quilt import MarkovQuilt

__all__ = ["MarkovQuilt"]
