"""The Markov quilt mechanism and what its releases cost together."""

from ._markov_quilt import MarkovQuilt

__all__ = ["MarkovQuilt"]
