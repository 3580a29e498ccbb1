"""Random allocation: records in bins, under independent Gaussian noise."""

from ._pair import AllocationPair

__all__ = ["AllocationPair"]
