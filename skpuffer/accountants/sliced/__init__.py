"""Slices: noise by how far the output moves along single directions."""

from ._sliced_wasserstein import SlicedWasserstein

__all__ = ["SlicedWasserstein"]
