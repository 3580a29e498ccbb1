"""Accountant that asks all others, and takes the one whose noise is least."""

from ._best import Best

__all__ = ["Best"]
