"""Gaussian noise shaped by the moves of a vector."""

from ._accountant import ShapedWasserstein

__all__ = ["ShapedWasserstein"]
